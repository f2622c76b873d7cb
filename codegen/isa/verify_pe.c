/* Step 9, the PE: groups of rows and columns, passes of 4-byte data, PSUM flags and regions.
 * Fields are found by name, so that every format of the PE is held to what it has. */
#include "codegen/isa/verify.h"

#include <string.h>

typedef struct pe {
    cps_checker *c;
    const cps_operand *in, *out;
} pe;

/* A field of the format by name; false when the format has none on this generation. */
static bool
field(const pe *p, const char *name, unsigned *v)
{
    for (unsigned f = p->c->first; f < p->c->end; f++)
        if (cps_fields[f].name[0] == name[0] && strcmp(cps_fields[f].name, name) == 0 &&
            cps_check_has(p->c, f)) {
            *v = cps_check_get(p->c, (cps_field)f);
            return true;
        }
    return false;
}

// First partition and width of a group mask; width 0 when it is none.
static unsigned
group_width(unsigned mask, unsigned *start)
{
    for (unsigned width = 128; width >= 32; width /= 2)
        for (unsigned s = 0; s < 128; s += width)
            if (cps_isa_pe_group(s, width) == mask) {
                *start = s;
                return width;
            }
    return 0;
}

static void
group(const pe *p, const char *name, const char *active, const cps_operand *o)
{
    unsigned start, mask, span;
    if (!field(p, name, &mask))
        return;
    if (!field(p, active, &span))
        span = 1;
    unsigned width = group_width(mask, &start);
    if (!width)
        cps_check_report(p->c, CPS_RULE_GROUP, "%s 0x%x is no group of 32, 64 or 128", name,
                         mask);
    else if (span > width)
        cps_check_report(p->c, CPS_RULE_GROUP, "%s 0x%x has %u partitions, %u are active", name,
                         mask, width, span);
    else if (o && o->fixed && o->ap.addr < CPS_PSUM_END &&
             cps_addr_partition(o->ap.addr) != start)
        cps_check_report(p->c, CPS_RULE_GROUP, "%s 0x%x starts at partition %u, %s at %u", name,
                         mask, start, o->r->name, cps_addr_partition(o->ap.addr));
}

static void
fp32_mode(const pe *p)
{
    unsigned mode;
    if (!field(p, "fp32_mode", &mode))
        return;
    bool word = p->in->bytes == 4;
    if (word != (mode != CPS_PE_FP32MODE_NONE))
        cps_check_report(p->c, CPS_RULE_FP32_MODE, "fp32_mode %u does not go with %u-byte data",
                         mode, p->in->bytes);
}

static void
accumulate(const pe *p)
{
    unsigned flags;
    if (field(p, "psum_accumulate_flags", &flags) && flags > 3 &&
        !(p->c->g >= CPS_V4 && (flags == 4 || flags == 6)))
        cps_check_report(p->c, CPS_RULE_ACCUMULATE, "accumulate flags 0x%x do not exist on %s",
                         flags, cps_gen_name(p->c->g));
}

static void
zero_region(const pe *p)
{
    unsigned region;
    if (!p->out || !p->out->fixed || !p->out->psum || !field(p, "psum_zero_region", &region) ||
        region > 3)
        return;
    cps_operand words = *p->out;
    words.bytes = words.bytes ? words.bytes : 4;
    int64_t low, high, size = (int64_t)CPS_PSUM_BANK << region;
    cps_check_extent(&words, &low, &high);
    if (low >= 0 && low / size != high / size)
        cps_check_report(p->c, CPS_RULE_ZERO_REGION,
                         "dst covers bytes %lld to %lld and leaves its zero region of %lld",
                         (long long)low, (long long)high, (long long)size);
}

// v2 crossbar: 0x10 for the whole array, 1 and 4 for halves, else the group; whether the last
// quarter has a value is disputed.
static void
xbus(const pe *p)
{
    unsigned sel, cols;
    if (!field(p, "xbus_sel", &sel) || !field(p, "col_grp", &cols))
        return;
    unsigned want = cols == 0xF ? 0x10 : cols == 0x3 ? 1 : cols == 0xC ? 4 : cols;
    if (sel != want)
        cps_check_report_as(p->c, CPS_RULE_XBUS, cols == 8 ? CPS_SURE_I : CPS_SURE_S,
                            "xbus_sel is 0x%x, 0x%x goes with col_grp 0x%x", sel, want, cols);
}

void
cps_check_pe(cps_checker *c, const cps_operands *o)
{
    if (c->insn->engines != CPS_ON_PE || !o->ins)
        return;
    pe p = {.c = c, .in = o->in[0], .out = o->out};
    fp32_mode(&p);
    group(&p, "row_grp", "num_active_rows", p.in);
    group(&p, "col_grp", "num_active_cols", p.out);
    accumulate(&p);
    zero_region(&p);
    xbus(&p);
}

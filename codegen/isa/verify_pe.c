/* Geometry of the PE: groups of rows and columns, passes of 4-byte data, PSUM flags and regions
 * (LDWEIGHTS and MATMUL; the MX and sparse forms have too few public facts). */
#include "codegen/isa/verify.h"

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
group(cps_checker *c, const char *name, unsigned mask, unsigned span, const cps_operand *o)
{
    unsigned start, width = group_width(mask, &start);
    if (!width)
        cps_check_report(c, CPS_E5515, "%s 0x%x is no group of 32, 64 or 128", name, mask);
    else if (span > width)
        cps_check_report(c, CPS_E5515, "%s 0x%x has %u partitions, %u are active", name, mask,
                         width, span);
    else if (o && o->fixed && cps_addr_partition(o->ap.addr) != start)
        cps_check_report(c, CPS_E5515, "%s 0x%x starts at partition %u, %s at %u", name, mask,
                         start, o->r->name, cps_addr_partition(o->ap.addr));
}

static void
stationary(cps_checker *c, const cps_operand *src)
{
    group(c, "row_grp", cps_check_get(c, CPS_F_S3_LW_row_grp),
          cps_check_get(c, CPS_F_S3_LW_num_active_rows), src);
    group(c, "col_grp", cps_check_get(c, CPS_F_S3_LW_col_grp),
          cps_check_get(c, CPS_F_S3_LW_num_active_cols), NULL);
}

static void
moving(cps_checker *c, const cps_operand *src, const cps_operand *dst)
{
    group(c, "row_grp", cps_check_get(c, CPS_F_S3D3_MM_row_grp),
          cps_check_get(c, CPS_F_S3D3_MM_num_active_rows), src);
    group(c, "col_grp", cps_check_get(c, CPS_F_S3D3_MM_col_grp),
          cps_check_get(c, CPS_F_S3D3_MM_num_active_cols), dst);
    unsigned flags = cps_check_get(c, CPS_F_S3D3_MM_psum_accumulate_flags);
    if (flags > 3 && !(c->g >= CPS_V4 && (flags == 4 || flags == 6)))
        cps_check_report(c, CPS_E5515, "accumulate flags 0x%x do not exist on %s", flags,
                         cps_gen_name(c->g));
    unsigned region = cps_check_get(c, CPS_F_S3D3_MM_psum_zero_region);
    if (!dst->fixed || !dst->psum || region > 3)
        return;
    cps_operand words = *dst;
    words.bytes = dst->bytes ? dst->bytes : 4;
    int64_t low, high, size = 2048ll << region;
    cps_check_extent(&words, &low, &high);
    if (low >= 0 && low / size != high / size)
        cps_check_report(c, CPS_E5515,
                         "dst covers bytes %lld to %lld and leaves its zero region of %lld",
                         (long long)low, (long long)high, (long long)size);
}

void
cps_check_pe(cps_checker *c, const cps_operands *o)
{
    bool lw = c->insn->format == CPS_FMT_S3_LW, mm = c->insn->format == CPS_FMT_S3D3_MM;
    if (!lw && !mm)
        return;
    const cps_operand *in = &o->in[0];
    unsigned mode = cps_check_get(c, lw ? CPS_F_S3_LW_fp32_mode : CPS_F_S3D3_MM_fp32_mode);
    bool word = in->bytes == 4;
    if (word != (mode != CPS_PE_FP32MODE_NONE))
        cps_check_report(c, CPS_E5515, "fp32_mode %u does not go with %u-byte data", mode,
                         in->bytes);
    if (lw)
        stationary(c, in);
    else
        moving(c, in, &o->out);
    // v2 crossbar: 0x10 for the whole array; other values were read from one place only.
    unsigned xbus = cps_check_get(c, lw ? CPS_F_S3_LW_xbus_sel : CPS_F_S3D3_MM_xbus_sel);
    unsigned cols = cps_check_get(c, lw ? CPS_F_S3_LW_col_grp : CPS_F_S3D3_MM_col_grp);
    unsigned want = cols == 0xF ? 0x10 : cols == 0x3 ? 1 : cols == 0xC ? 4 : cols;
    if (c->g == CPS_V2 && xbus != want)
        cps_check_report(c, CPS_W5516, "xbus_sel is 0x%x, 0x%x goes with col_grp 0x%x", xbus,
                         want, cols);
}

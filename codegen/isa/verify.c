/* The rules of one bundle, in the order of the shipped checker.
 *
 * In: 64 bytes, a generation, and the engine of the stream if known. Out: errors for confirmed
 * and strong rules, warnings for inferred ones; every finding belongs to a row of rule.def.
 * Steps 1 to 4 (header, sync, engine, reserved bytes) are here; 5 to 8 in verify_field.c for
 * what a field's kind says and in verify_row.c for what rule.def says of an instruction; 9 in
 * verify_pe.c; what only a whole stream shows in verify_stream.c. Operands whose address or
 * shape comes from a register are checked no further, as in the shipped checker. */
#include "codegen/isa/verify.h"

#include "codegen/isa/sync_row.h"

#include <stdio.h>

/* ---- reports ---- */

CPS_PRINTF(4, 0)
static void
vreport(cps_checker *c, cps_rule rule, unsigned sure, const char *fmt, va_list ap)
{
    char text[256];
    const cps_rule_kind *k = &cps_rules[rule];
    vsnprintf(text, sizeof text, fmt, ap);
    cps_code code = k->code;
    if (sure == CPS_SURE_I && cps_diag_rows[code].name[0] == 'E')
        code = CPS_W5516;
    c->good = c->good && cps_diag_rows[code].name[0] != 'E';
    if (c->hits) {
        c->hits->rule[rule] = true;
        if (c->row)
            c->hits->row[c->row - cps_rule_rows] = true;
        c->hits->disorder |= k->step < c->hits->step;
        c->hits->step = k->step;
    }
    cps_error(c->d, code, c->at, "'%s': %s", c->insn->name[0] ? c->insn->name : "instruction",
              text);
}

void
cps_check_report(cps_checker *c, cps_rule rule, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vreport(c, rule, c->row ? c->row->sure : cps_rules[rule].sure, fmt, ap);
    va_end(ap);
}

void
cps_check_report_as(cps_checker *c, cps_rule rule, unsigned sure, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vreport(c, rule, sure, fmt, ap);
    va_end(ap);
}

/* ---- sync ---- */

static void
band(cps_checker *c, const cps_sync_band *s)
{
    unsigned wait = cps_check_get(c, s->wait_mode), update = cps_check_get(c, s->update_mode);
    unsigned wait_value = cps_check_get(c, s->wait_value);
    unsigned then_value = cps_check_get(c, s->update_value);
    if (!(wait | update | wait_value | then_value))
        return;
    const cps_sync_row *w = cps_wait_row(wait), *u = cps_update_row(update);
    if (!w || wait == CPS_WAIT_INVALID)
        cps_check_report(c, CPS_RULE_WAIT_MODE, "no wait mode 0x%02x", wait);
    if (!u || update == CPS_UPDATE_INVALID)
        cps_check_report(c, CPS_RULE_UPDATE_MODE, "no update mode 0x%02x", update);
    if (!w || !u)
        return;
    if (w->operand == CPS_SYNC_REGISTER && wait_value > 63)
        cps_check_report(c, CPS_RULE_SYNC_REG, "the wait's register is %u", wait_value);
    if (u->operand == CPS_SYNC_REGISTER && then_value > 63)
        cps_check_report(c, CPS_RULE_SYNC_REG, "the update's register is %u", then_value);
    if (w->sure == CPS_SURE_I || u->sure == CPS_SURE_I)
        cps_check_report(c, CPS_RULE_SYNC_SEEN,
                         "the sync mode follows the pattern of others but was never seen");
    bool wait_uses = w->operand != CPS_SYNC_NOTHING, then_uses = u->operand != CPS_SYNC_NOTHING;
    bool shared = s->wait_value == s->update_value;
    if (shared && wait_uses && then_uses)
        cps_check_report(c, CPS_RULE_SYNC_SHARED, "wait and update share the value %u",
                         wait_value);
    if (wait_value && !wait_uses && !(shared && then_uses))
        cps_check_report(c, CPS_RULE_SYNC_UNUSED,
                         shared ? "the sync value %u is used by neither side"
                                : "the wait's value %u is not used",
                         wait_value);
    if (!shared && then_value && !then_uses)
        cps_check_report(c, CPS_RULE_SYNC_UNUSED, "the update's value %u is not used",
                         then_value);
}

static void
sync(cps_checker *c)
{
    const cps_sync_band *h = &cps_sync_bands[0], *x = cps_sync_second(c->insn->format);
    band(c, h);
    if (!x)
        return;
    band(c, x);
    if ((cps_check_get(c, h->wait_mode) && cps_check_get(c, x->wait_mode)) ||
        (cps_check_get(c, h->update_mode) && cps_check_get(c, x->update_mode)))
        cps_check_report(c, CPS_RULE_SYNC_TWICE, "both bands are used for the same side");
}

/* ---- header, engine, reserved bytes ---- */

static void
header(cps_checker *c)
{
    unsigned len = c->b->b[1];
    bool fits = len == cps_fields[CPS_F_HDR_inst_word_len].dflt;
    for (unsigned i = cps_rule_of_insn(c->id); i && cps_rule_rows[i].rule != CPS_RULES; i++) {
        const cps_rule_row *r = &cps_rule_rows[i];
        fits = fits || (r->rule == CPS_RULE_LENGTH && r->a == len);
        c->row = r;
        if (r->rule == CPS_RULE_REFUSED && (r->a >> c->g & 1))
            cps_check_report(c, CPS_RULE_REFUSED, "the shipped checker refuses it on %s",
                             cps_gen_name(c->g));
    }
    c->row = NULL;
    if (!fits)
        cps_check_report(c, CPS_RULE_LENGTH, "the length byte is 0x%02x, not 0x10", len);
}

static void
engine(cps_checker *c)
{
    if ((unsigned)c->e < CPS_ENGINES && !(c->insn->engines & (1u << c->e)))
        cps_check_report(c, CPS_RULE_ENGINE, "the %s engine does not run it",
                         cps_engine_name(c->e));
}

static void
reserved(cps_checker *c)
{
    uint64_t free = cps_isa_reserved(c->insn->format, c->g);
    for (; free; free &= free - 1) {
        unsigned i = (unsigned)__builtin_ctzll(free);
        if (!c->b->b[i])
            continue;
        bool sure = cps_formats[c->insn->format].sure == CPS_SURE_C &&
                    c->insn->sure != CPS_SURE_I; // else a field may be unknown
        cps_check_report_as(c, CPS_RULE_RESERVED, sure ? CPS_SURE_C : CPS_SURE_I,
                            "byte %u is reserved on %s but holds 0x%02x", i, cps_gen_name(c->g),
                            c->b->b[i]);
        return;
    }
}

/* ---- whole ---- */

static cps_checker
checker(const cps_bundle *b, cps_gen g, cps_engine e, cps_diags *d, cps_span at)
{
    cps_insn id = cps_isa_find(b->b[0], g);
    return (cps_checker){.b = b,
                         .id = id,
                         .insn = &cps_insns[id],
                         .g = g,
                         .e = e,
                         .d = d,
                         .at = at,
                         .good = true};
}

bool
cps_isa_verify_sync(const cps_bundle *b, cps_gen g, cps_engine e, cps_diags *d, cps_span at)
{
    cps_checker c = checker(b, g, e, d, at);
    sync(&c);
    return c.good;
}

bool
cps_isa_verify_hits(const cps_bundle *b, cps_gen g, cps_engine e, cps_diags *d, cps_span at,
                    cps_rule_hits *hits)
{
    cps_checker c = checker(b, g, e, d, at);
    c.hits = hits;
    if (hits)
        hits->step = 0;
    if (!c.id) {
        c.insn = &cps_insns[cps_isa_find_any(b->b[0])];
        cps_check_report(&c, CPS_RULE_OPCODE, "opcode 0x%02x is no instruction of %s", b->b[0],
                         cps_gen_name(g));
        return false;
    }
    c.first = cps_formats[c.insn->format].first;
    c.end = cps_formats[c.insn->format + 1].first;
    cps_operands o;
    header(&c);
    sync(&c);
    engine(&c);
    reserved(&c);
    cps_check_operands(&c, &o);
    cps_check_dtypes(&c, &o);
    cps_check_rows(&c, &o, 5);
    cps_check_values(&c);
    cps_check_rows(&c, &o, 6);
    cps_check_partitions(&c, &o);
    cps_check_rows(&c, &o, 7);
    cps_check_patterns(&c, &o);
    cps_check_rows(&c, &o, 8);
    cps_check_pe(&c, &o);
    return c.good;
}

bool
cps_isa_verify(const cps_bundle *b, cps_gen g, cps_engine e, cps_diags *d, cps_span at)
{
    return cps_isa_verify_hits(b, g, e, d, at, NULL);
}

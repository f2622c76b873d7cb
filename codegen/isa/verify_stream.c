/* What only a whole stream shows: PSUM regions that start and end, branches, records of several
 * parts. Inferred from what the formats are for, so findings are warnings. The stream is read
 * from the first record to the last; with a branch in it the order of PSUM accesses is not
 * known here and is left alone. */
#include "codegen/isa/verify.h"

#include <string.h>

enum { QUADRANTS = 4, BANKS = 8 };

typedef struct stream {
    const cps_bundle *b;
    size_t n, i;
    cps_gen g;
    cps_diags *d;
    const cps_span *at;
    cps_rule_hits *hits;
    uint32_t opened[QUADRANTS][BANKS]; /* number + 1 of the record that started the bank */
} stream;

static cps_checker
checker(const stream *s, size_t i)
{
    cps_insn id = cps_isa_find(s->b[i].b[0], s->g);
    return (cps_checker){.b = &s->b[i],
                         .id = id,
                         .insn = &cps_insns[id],
                         .g = s->g,
                         .e = CPS_ENGINE_ANY,
                         .d = s->d,
                         .at = s->at ? s->at[i] : CPS_NOSPAN,
                         .first = cps_formats[cps_insns[id].format].first,
                         .end = cps_formats[cps_insns[id].format + 1].first,
                         .hits = s->hits,
                         .good = true};
}

/* ---- PSUM regions ---- */

// Banks and groups of 32 partitions that a MATMUL of the record touches; false when none.
static bool
region(const cps_checker *c, unsigned *flags, unsigned *quadrants, unsigned *bank,
       unsigned *banks)
{
    cps_operands o;
    unsigned zero = 0;
    bool has = false;
    *quadrants = 0;
    for (unsigned f = c->first; f < c->end; f++) {
        const char *name = cps_fields[f].name;
        if (cps_fields[f].kind == CPS_FK_FLAGS &&
            cps_fields[f].arg == CPS_ENUM_PSUM_ACCUMULATE) {
            *flags = cps_check_get(c, (cps_field)f);
            has = true;
        } else if (strcmp(name, "col_grp") == 0) {
            *quadrants = cps_check_get(c, (cps_field)f) & 15;
        } else if (strcmp(name, "psum_zero_region") == 0) {
            zero = cps_check_get(c, (cps_field)f) & 3;
        }
    }
    if (!has)
        return false;
    cps_check_operands(c, &o);
    if (!o.out || !o.out->fixed || !o.out->psum)
        return false;
    *banks = 1u << zero;
    *bank = cps_addr_byte(o.out->ap.addr) / CPS_PSUM_BANK / *banks * *banks;
    return *bank + *banks <= BANKS;
}

static void
psum(stream *s)
{
    cps_checker c = checker(s, s->i);
    unsigned flags, quadrants, bank, banks;
    if (!c.id || !region(&c, &flags, &quadrants, &bank, &banks))
        return;
    bool start = flags & CPS_PSUM_ACCUMULATE_START, end = flags & CPS_PSUM_ACCUMULATE_END;
    bool adds = flags & CPS_PSUM_ACCUMULATE_ACCUMULATE, open = true;
    uint32_t by = 0;
    for (unsigned q = 0; q < QUADRANTS; q++)
        for (unsigned k = bank; k < bank + banks && (quadrants >> q & 1); k++) {
            by = s->opened[q][k] ? s->opened[q][k] : by;
            open = open && s->opened[q][k];
            s->opened[q][k] = end ? 0 : start ? (uint32_t)s->i + 1 : s->opened[q][k];
        }
    if (start && by)
        cps_check_report(&c, CPS_RULE_PSUM_AGAIN,
                         "bank %u starts again; record %u started it and nothing ended it",
                         bank, by - 1);
    if (!start && !adds && !open)
        cps_check_report(&c, CPS_RULE_PSUM_OPEN, "bank %u is added to and was not started",
                         bank);
}

static void
psum_left(stream *s)
{
    const uint32_t *all = &s->opened[0][0];
    for (unsigned i = 0; i < QUADRANTS * BANKS; i++) {
        unsigned first = 0; // of the banks that the same record started
        while (all[first] != all[i])
            first++;
        if (!all[i] || first < i)
            continue;
        cps_checker c = checker(s, all[i] - 1);
        cps_check_report(&c, CPS_RULE_PSUM_LEFT, "bank %u starts here and never ends",
                         i % BANKS);
    }
}

/* ---- branches and parts ---- */

// The relative target of a branch record; false when it has none.
static bool
branch(const cps_bundle *b, cps_gen g, int64_t *by)
{
    cps_insn id = cps_isa_find(b->b[0], g);
    if (cps_insns[id].format != CPS_FMT_CTRL_BR)
        return false;
    *by = (int64_t)cps_isa_get(b, CPS_F_CTRL_BR_branch);
    return true;
}

static void
target(stream *s)
{
    int64_t by, to;
    if (!branch(&s->b[s->i], s->g, &by))
        return;
    cps_checker c = checker(s, s->i);
    if (cps_check_get(&c, CPS_F_CTRL_BR_target_mode) != CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE)
        return;
    if (__builtin_add_overflow((int64_t)s->i, by, &to) || to < 0 || to > (int64_t)s->n)
        cps_check_report(&c, CPS_RULE_TARGET, "a branch of %lld from record %zu of %zu",
                         (long long)by, s->i, s->n);
}

static void
parts(stream *s)
{
    cps_checker c = checker(s, s->i);
    unsigned i = cps_rule_of_insn(c.id);
    for (; i && cps_rule_rows[i].rule != CPS_RULES; i++) {
        const cps_rule_row *r = &cps_rule_rows[i];
        if (r->rule != CPS_RULE_FOLLOWS)
            continue;
        uint64_t v = cps_check_get64(&c, (cps_field)r->f), want = CPS_MIN(v, r->b), have = 0;
        while (have < want && s->i + have + 1 < s->n &&
               cps_isa_find(s->b[s->i + have + 1].b[0], s->g) == (cps_insn)r->a)
            have++;
        c.row = r;
        if (have < want)
            cps_check_report(&c, CPS_RULE_FOLLOWS, "%s is %llu, and %llu of %s follow",
                             cps_fields[r->f].name, (unsigned long long)v,
                             (unsigned long long)have, cps_insns[r->a].name);
    }
}

/* ---- whole ---- */

bool
cps_isa_verify_stream_hits(const cps_bundle *b, size_t n, cps_gen g, cps_diags *d,
                           const cps_span *at, cps_rule_hits *hits)
{
    stream s = {.b = b, .n = n, .g = g, .d = d, .at = at, .hits = hits};
    unsigned before = cps_diags_count(d);
    bool branches = false;
    int64_t by;
    for (size_t i = 0; i < n; i++)
        branches = branches || branch(&b[i], g, &by);
    for (s.i = 0; s.i < n; s.i++) {
        target(&s);
        parts(&s);
        if (!branches)
            psum(&s);
    }
    if (!branches)
        psum_left(&s);
    return cps_diags_count(d) == before;
}

bool
cps_isa_verify_stream(const cps_bundle *b, size_t n, cps_gen g, cps_diags *d,
                      const cps_span *at)
{
    return cps_isa_verify_stream_hits(b, n, g, d, at, NULL);
}

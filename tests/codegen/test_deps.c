/* Overlap of strided accesses against counting bytes, and what dependence finding must report.
 */
#include "codegen/deps.h"
#include "codegen/view.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

static cps_macc
random_access(cps_rng *r, int64_t pitch)
{
    static const int64_t runs[] = {2, 4, 8, 16};
    cps_macc a = {.space = CPS_SBUF, .part = (uint16_t)(32 * cps_rng_below(r, 4)), .parts = 32};
    a.run = runs[cps_rng_below(r, 4)];
    a.base = 2 * (int64_t)cps_rng_below(r, 64);
    int64_t least = a.run + 2;
    int nd = (int)cps_rng_below(r, 3);
    for (int i = nd; i-- > 0;) {
        int64_t step =
            cps_rng_below(r, 3) ? (i ? least : pitch) : 2 * (int64_t)cps_rng_below(r, 60) + 2;
        if (step < least)
            step = least;
        a.d[i].step = step;
        a.d[i].num = 2 + (int64_t)cps_rng_below(r, 4);
        least = step * a.d[i].num;
    }
    a.nd = nd;
    a.write = cps_rng_below(r, 2);
    return a;
}

static void
paint(const cps_macc *a, uint8_t *bytes)
{
    int64_t idx[CPS_ACC_DIMS] = {0};
    for (;;) {
        int64_t at = a->base;
        for (int i = 0; i < a->nd; i++)
            at += idx[i] * a->d[i].step;
        memset(bytes + at, 1, (size_t)a->run);
        int i = a->nd;
        while (i-- > 0) {
            if (++idx[i] < a->d[i].num)
                break;
            idx[i] = 0;
        }
        if (i < 0)
            return;
    }
}

static void
overlap_is_safe(void)
{
    static uint8_t x[1 << 16], y[1 << 16];
    cps_rng r;
    cps_rng_init(&r, 7, 0);
    int claims = 0, apart = 0;
    for (int n = 0; n < 20000; n++) {
        int64_t pitch = 128 + 32 * (int64_t)cps_rng_below(&r, 8);
        cps_macc a = random_access(&r, pitch), b = random_access(&r, pitch);
        memset(x, 0, sizeof x);
        memset(y, 0, sizeof y);
        paint(&a, x);
        paint(&b, y);
        bool meet = false;
        for (size_t i = 0; i < sizeof x && !meet; i++)
            meet = x[i] && y[i];
        meet = meet && a.part == b.part;
        bool said = cps_acc_overlap(&a, &b);
        if (meet && !said) {
            CHECK(!"an overlap was missed");
            return;
        }
        apart += !meet;
        claims += !meet && !said;
    }
    // Most disjoint pairs must be recognised: a false dependence costs time.
    CHECK(claims * 100 >= apart * 90);
}

// Tiles of one row-major tensor: exact.
static void
tiles_are_exact(void)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            cps_macc t[2];
            for (int k = 0; k < 2; k++) {
                int n = k ? j : i;
                t[k] = (cps_macc){.space = CPS_HBM,
                                  .base = (n / 4) * 32 * 4096 + (n % 4) * 1024,
                                  .run = 1024,
                                  .nd = 1,
                                  .write = true};
                t[k].d[0].step = 4096;
                t[k].d[0].num = 32;
            }
            CHECK_INT(cps_acc_overlap(&t[0], &t[1]), i == j);
        }
}

static void
hidden_accesses(void)
{
    cps_arena *a = cps_arena_create();
    const cps_target *t = cps_target_find("trn2");
    cps_mprog p = {.k = cps_kbin_new(a, "k", "trn2", CPS_V3)};
    // write, read (pe), read (pe) of the same bytes, read (act) of half, write
    const struct {
        cps_engine e;
        bool write;
        int64_t base, run;
    } ops[] = {{CPS_DVE, true, 0, 1024},   {CPS_PE, false, 0, 1024}, {CPS_PE, false, 0, 1024},
               {CPS_ACT, false, 512, 512}, {CPS_DVE, true, 0, 512},  {CPS_DVE, true, 0, 1024}};
    for (size_t i = 0; i < cps_countof(ops); i++) {
        cps_mop m = {
            .kind = CPS_M_UNIT, .engine = (uint8_t)ops[i].e, .acc = p.accs.n, .nacc = 1};
        cps_macc c = {.space = CPS_SBUF,
                      .write = ops[i].write,
                      .parts = 128,
                      .base = ops[i].base,
                      .run = ops[i].run};
        cps_vec_push(a, &p.ops, m);
        cps_vec_push(a, &p.accs, c);
    }
    cps_deps *d = cps_deps_new(a, &p, t);
    static const char *want[] = {"", "0", "0", "0", "02", "0234"};
    for (uint32_t i = 0; i < p.ops.n; i++) {
        cps_oplist out = {0};
        cps_deps_find(d, i, &out);
        char got[8] = "";
        for (uint32_t k = 0; k < p.ops.n; k++)
            for (uint32_t q = 0; q < out.n; q++)
                if (out.data[q] == k) {
                    got[strlen(got)] = (char)('0' + k);
                    break;
                }
        // The first of two equal reads of one engine is hidden by the second.
        CHECK_STR(got, want[i]);
    }
    cps_arena_destroy(a);
}

// Counted, byte by byte: walks here end below 16 KiB.
static bool
share_bytes(const cps_macc *a, const cps_macc *b)
{
    static uint8_t x[1 << 14], y[1 << 14];
    if (a->part >= b->part + b->parts || b->part >= a->part + a->parts ||
        !cps_acc_overlap(a, b))
        return false;
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    paint(a, x);
    paint(b, y);
    bool meet = false;
    for (size_t i = 0; i < sizeof x; i++)
        meet |= x[i] && y[i];
    return meet;
}

// Whatever two operations touch in common, one writing, is ordered by the dependences found and
// by the order inside a datapath.
static void
nothing_is_missed(void)
{
    enum { N = 60 };
    const cps_target *t = cps_target_find("trn2");
    for (unsigned seed = 0; seed < 200; seed++) {
        cps_arena *a = cps_arena_create();
        cps_rng r;
        cps_rng_init(&r, seed, 5);
        cps_mprog p = {.k = cps_kbin_new(a, "k", "trn2", CPS_V3)};
        for (int i = 0; i < N; i++) {
            cps_mop m = {.kind = cps_rng_below(&r, 3) ? CPS_M_UNIT : CPS_M_DMA,
                         .engine = (uint8_t)cps_rng_below(&r, 3),
                         .acc = p.accs.n};
            m.nacc = 1 + (uint32_t)cps_rng_below(&r, 3);
            for (uint32_t k = 0; k < m.nacc; k++) {
                cps_macc c = random_access(&r, 128);
                c.write = k == 0;
                c.part = (uint16_t)(16 * cps_rng_below(&r, 3));
                c.parts = (uint16_t)(16 * (1 + cps_rng_below(&r, 2)));
                cps_vec_push(a, &p.accs, c);
            }
            cps_vec_push(a, &p.ops, m);
        }
        cps_deps *d = cps_deps_new(a, &p, t);
        static bool after[N][N];
        memset(after, 0, sizeof after);
        bool ok = true;
        for (uint32_t j = 0; j < N; j++) {
            const cps_mop *m = &p.ops.data[j];
            cps_oplist out = {0};
            cps_deps_find(d, j, &out);
            for (uint32_t i = 0; i < j; i++) {
                const cps_mop *o = &p.ops.data[i];
                bool edge =
                    m->kind == CPS_M_UNIT && o->kind == CPS_M_UNIT && m->engine == o->engine;
                for (uint32_t q = 0; q < out.n && !edge; q++)
                    edge = out.data[q] == i;
                for (uint32_t q = 0; edge && q < N; q++)
                    after[j][q] |= q == i || after[i][q];
            }
            for (uint32_t i = 0; i < j; i++)
                for (uint32_t x = 0; x < m->nacc; x++)
                    for (uint32_t y = 0; y < p.ops.data[i].nacc; y++) {
                        const cps_macc *u = &p.accs.data[m->acc + x];
                        const cps_macc *v = &p.accs.data[p.ops.data[i].acc + y];
                        if ((u->write || v->write) && ok && !after[j][i])
                            ok = !share_bytes(u, v);
                    }
        }
        CHECK(ok);
        cps_arena_destroy(a);
    }
}

static cps_pat
random_pat(cps_rng *r, const int64_t *num, int nd)
{
    cps_pat p = {.nd = 0};
    int64_t step = 1 + (int64_t)cps_rng_below(r, 3);
    // Glue some neighbouring axes together, so that walks differ in shape but not in length.
    for (int i = nd; i-- > 0;) {
        p.d[i] = (cps_tdim){step, num[i]};
        step *= num[i];
        if (cps_rng_below(r, 2))
            step += 1 + (int64_t)cps_rng_below(r, 5);
    }
    p.nd = nd;
    if (cps_rng_below(r, 2))
        cps_pat_merge(&p, INT32_MAX);
    return p;
}

static int64_t
nth(const cps_pat *p, int64_t n)
{
    int64_t at = 0;
    for (int i = p->nd; i-- > 0;) {
        at += n % p->d[i].num * p->d[i].step;
        n /= p->d[i].num;
    }
    return at;
}

static void
walks_keep_order(void)
{
    cps_rng r;
    cps_rng_init(&r, 3, 0);
    for (int n = 0; n < 2000; n++) {
        int64_t num[4];
        int nd = 1 + (int)cps_rng_below(&r, 4);
        for (int i = 0; i < nd; i++)
            num[i] = 1 + (int64_t)cps_rng_below(&r, 6);
        cps_pat p[3], q[3];
        for (int i = 0; i < 3; i++)
            p[i] = q[i] = random_pat(&r, num, nd);
        int64_t elems = cps_pat_elems(&p[0]);
        CHECK(cps_pat_refine(q, 3, 1000));
        for (int i = 0; i < 3; i++) {
            CHECK_INT(q[i].nd, q[0].nd);
            bool same = cps_pat_elems(&q[i]) == elems;
            for (int k = 0; k < q[i].nd; k++)
                same = same && q[i].d[k].num == q[0].d[k].num;
            for (int64_t k = 0; k < elems && same; k++)
                same = nth(&p[i], k) == nth(&q[i], k);
            CHECK(same);
        }
    }
    // Six elements never pair with four, nor 2 x 3 with 3 x 2 broken the other way.
    cps_pat a[2] = {{.nd = 1, .d = {{1, 6}}}, {.nd = 1, .d = {{1, 4}}}};
    CHECK(!cps_pat_refine(a, 2, 1000));
    cps_pat b[2] = {{.nd = 2, .d = {{10, 2}, {1, 3}}}, {.nd = 2, .d = {{10, 3}, {1, 2}}}};
    CHECK(!cps_pat_refine(b, 2, 1000));
    cps_pat c = {.nd = 1, .d = {{1, 100000}}};
    CHECK(cps_pat_cut(&c, 1, 65535));
    CHECK_INT(c.nd, 2);
    CHECK_INT(c.d[0].num * c.d[1].num, 100000);
    cps_pat prime = {.nd = 1, .d = {{1, 65537}}};
    CHECK(!cps_pat_cut(&prime, 1, 65535));
}

int
main(void)
{
    overlap_is_safe();
    tiles_are_exact();
    hidden_accesses();
    nothing_is_missed();
    walks_keep_order();
    return CHECK_DONE();
}

/* The footprints of transfers that are found by rows (ring_share.c) against those found run by run:
 * random copies between SBUF and HBM and within SBUF, with and without a change of dtype. For each
 * DMA engine both must name the same bytes, and what one refuses the other must. */
#include "runtime/base/rng.h"
#include "runtime/sim/machine.h"
#include "tests/check.h"

enum { BYTES = 1 << 20, TRIES = 4000 };

typedef CPS_VEC(uint64_t) places;

static void
spell(cps_arena *a, const rect *r, unsigned d, int64_t base, places *out)
{
    if (d < r->nd) {
        for (int64_t i = 0; i < r->num[d]; i++)
            spell(a, r, d + 1, base + i * r->step[d], out);
        return;
    }
    for (int64_t i = 0; i < r->run; i++)
        cps_vec_push(a, out, (uint64_t)r->space << 60 | (uint64_t)r->var << 48 | (uint64_t)(base + i));
}

static int
by_place(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static places
bytes_of(cps_arena *a, const rectvec *v)
{
    places p = {0}, once = {0};
    for (uint32_t i = 0; i < v->n; i++)
        spell(a, &v->data[i], 0, v->data[i].base, &p);
    if (p.n)
        qsort(p.data, p.n, sizeof *p.data, by_place);
    for (uint32_t i = 0; i < p.n; i++)
        if (!i || p.data[i] != p.data[i - 1])
            cps_vec_push(a, &once, p.data[i]);
    return once;
}

static bool
same(cps_arena *a, const rectvec *x, const rectvec *y)
{
    places p = bytes_of(a, x), q = bytes_of(a, y);
    return p.n == q.n && (!p.n || !memcmp(p.data, q.data, p.n * sizeof *p.data));
}

/* A side of `n` rows of parts of elements of `es` bytes; now and then it leaves the memory. */
static side
random_side(cps_rng *r, const cps_sim *s, bool chip, int64_t n, int64_t parts, int64_t run, int64_t es)
{
    side x = {.nd = 1, .size = {run * es}, .step = {1}};
    int64_t gap = run * es + (cps_rng_below(r, 3) ? (int64_t)cps_rng_below(r, 40) : 0);
    if (parts > 1 || cps_rng_below(r, 2)) {
        x.step[x.nd] = gap;
        x.size[x.nd++] = parts;
    }
    int64_t row = gap * (parts - 1) + run * es;
    if (n > 1 || cps_rng_below(r, 2)) {
        x.step[x.nd] = chip ? CPS_SBUF_STRIDE : row + (cps_rng_below(r, 2) ? (int64_t)cps_rng_below(r, 100) : 0);
        x.size[x.nd++] = n;
    }
    if (!chip && cps_rng_below(r, 3) == 0) // a matrix without gaps, or some of its rows
        x = cps_rng_below(r, 2) ? (side){.nd = 1, .size = {n * parts * run * es}, .step = {1}}
                                : (side){.nd = 2, .size = {parts * run * es / 2, 2 * n},
                                         .step = {1, parts * run * es / 2 + 8}};
    if (chip) {
        int64_t part = (int64_t)cps_rng_below(r, (uint32_t)(LANES - n + 1)) + !cps_rng_below(r, 60);
        int64_t room = (int64_t)s->sbuf_bytes - row + 1;
        int64_t at = cps_rng_below(r, 60) ? (int64_t)cps_rng_below(r, (uint32_t)room) : room;
        x.addr = addr_of_sb(part * CPS_SBUF_STRIDE + at);
    } else {
        x.var = 1 + cps_rng_below(r, 2);
        x.addr = s->vars.data[x.var].addr + cps_rng_below(r, BYTES / 2);
    }
    return x;
}

static block *
build(cps_sim *s, cps_arena *a, const item *it, unsigned n, cps_diags *d)
{
    s->d = d;
    block *b = block_new(s, a);
    bool ok = true;
    for (unsigned i = 0; ok && i < n; i++)
        ok = block_add(s, b, &it[i], NULL);
    if (ok)
        block_close(s, b);
    s->d = NULL;
    return ok ? b : NULL;
}

int
main(void)
{
    cps_arena *all = cps_arena_create();
    cps_diags *d = cps_diags_create();
    const cps_target *target = cps_target_find("trn2");
    cps_kbin *k = cps_kbin_new(all, "test", "trn2", target->gen);
    cps_kvar var = {.name = "a", .kind = CPS_VAR_INPUT, .dtype = CPS_DT_U8, .rank = 1, .dim = {BYTES}, .bytes = BYTES};
    cps_vec_push(all, &k->vars, var);
    var.name = "b";
    var.kind = CPS_VAR_OUTPUT;
    cps_vec_push(all, &k->vars, var);
    cps_sim *walks = cps_sim_create(target), *shares = load_for_proof(target);
    CHECK(cps_sim_load(walks, k, d) && cps_sim_load(shares, k, d));
    cps_rng r;
    cps_rng_init(&r, 5, 0);
    unsigned found = 0, refused = 0;
    bool good = true;
    for (int t = 0; t < TRIES; t++) {
        cps_arena *a = cps_arena_create();
        item it[2] = {{0}};
        unsigned n = 1 + cps_rng_below(&r, 2);
        for (unsigned i = 0; i < n; i++) {
            int64_t rows = 1 + (int64_t)cps_rng_below(&r, cps_rng_below(&r, 2) ? 128 : 20);
            int64_t elems = 12 * (1 + (int64_t)cps_rng_below(&r, 4)), cut[] = {1, 2, 3, 4, 6};
            int64_t fp = cut[cps_rng_below(&r, 5)], tp = cps_rng_below(&r, 2) ? fp : cut[cps_rng_below(&r, 5)];
            bool wide = cps_rng_below(&r, 4) == 0;
            int kind = (int)cps_rng_below(&r, 3);
            it[i].op = CPS_DESC_COPY;
            it[i].from_dtype = wide ? CPS_DT_BF16 : CPS_DT_U8;
            it[i].to_dtype = wide ? CPS_DT_FP32 : CPS_DT_U8;
            it[i].alu = cps_rng_below(&r, 4) ? CPS_DGE_COMPUTE_OP_NONE : CPS_DGE_COMPUTE_OP_ADD;
            it[i].from = random_side(&r, walks, kind != 0, rows, fp, elems / fp, wide ? 2 : 1);
            it[i].to = random_side(&r, walks, kind != 1, rows, tp, elems / tp, wide ? 4 : 1);
        }
        block *x = build(walks, a, it, n, d), *y = build(shares, a, it, n, d);
        cps_diags_clear(d);
        good = good && !x == !y;
        refused += !x;
        if (x && y) {
            dma_share seen[DMA_RINGS];
            int64_t descs = 0;
            found += ring_shares(shares, &it[0], it[0].from_dtype == CPS_DT_BF16 ? 2 : 1,
                                 it[0].to_dtype == CPS_DT_FP32 ? 4 : 1, seen, &descs) != 0;
            good = good && x->ndesc == y->ndesc;
            for (unsigned e = 0; e < DMA_RINGS; e++)
                good = good && same(a, &x->ring[e].reads, &y->ring[e].reads) &&
                       same(a, &x->ring[e].writes, &y->ring[e].writes);
        }
        if (!good)
            printf("try %d\n", t);
        cps_arena_destroy(a);
        if (!good)
            break;
    }
    CHECK(good);
    CHECK(found > TRIES / 2);
    CHECK(refused > 10);
    cps_sim_destroy(shares);
    cps_sim_destroy(walks);
    cps_diags_destroy(d);
    cps_arena_destroy(all);
    return CHECK_DONE();
}

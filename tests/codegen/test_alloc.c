/* Allocation: capacity, live ranges, rings, pins and the diagnostics of each. */
#include "codegen/pass.h"
#include "runtime/base/rng.h"
#include "tests/check.h"
#include "tests/codegen/tp.h"

static bool
run(tp *p)
{
    cps_cg g = {.arena = p->a, .t = p->t, .d = p->d, .f = p->f};
    return cps_pass_alloc(&g);
}

static bool
has(const tp *p, cps_code c)
{
    for (unsigned i = 0; i < cps_diags_count(p->d); i++)
        if (cps_diags_code(p->d, i) == c)
            return true;
    return false;
}

// Random tiles with random uses: no two that live at once may share a byte, all within limits.
static void
random_programs(void)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        cps_rng r;
        cps_rng_init(&r, seed, 0);
        tp p = tp_new(seed % 3 == 0 ? "trn1" : seed % 3 == 1 ? "trn2" : "trn3");
        int n = 20 + (int)cps_rng_below(&r, 120);
        uint32_t ids[150];
        int64_t limit = p.t->sbuf_bytes - p.t->sbuf_reserve;
        for (int i = 0; i < n; i++) {
            bool psum = cps_rng_below(&r, 6) == 0;
            uint32_t ring = 1 + (uint32_t)i % 11 + (psum ? 100 : 0);
            bool ringed = cps_rng_below(&r, 2);
            ids[i] = tp_tile(&p, "b", psum ? CPS_PSUM : CPS_SBUF, CPS_DT_FP32, 128,
                             1 + (int64_t)cps_rng_below(&r, psum ? 700 : 5000),
                             ringed ? ring : 0, (uint32_t)i / 11, 0);
        }
        // Each tile is written, then read up to a few tiles later.
        int reads[150][2];
        for (int i = 0; i < n; i++) {
            tp_1(&p, CPS_T_MEMSET, tp_view(&p, ids[i], 0, 128, 0, 1), cps_to_imm(0));
            reads[i][0] = i;
            int back = i - (int)cps_rng_below(&r, 4);
            reads[i][1] = back < 0 ? 0 : back;
            tp_2(&p, CPS_T_TENSOR_TENSOR, tp_view(&p, ids[i], 0, 128, 0, 1),
                 tp_view(&p, ids[i], 0, 128, 0, 1),
                 tp_view(&p, ids[reads[i][1]], 0, 128, 0, 1));
        }
        if (!run(&p)) {
            CHECK(has(&p, CPS_E4101) || has(&p, CPS_E4102));
            tp_free(&p);
            continue;
        }
        int first[150], last[150];
        for (int i = 0; i < n; i++) {
            first[i] = 2 * i;
            last[i] = 2 * i + 1;
        }
        for (int i = 0; i < n; i++)
            last[reads[i][1]] = CPS_MAX(last[reads[i][1]], 2 * i + 1);
        bool ok = true;
        for (int i = 0; i < n; i++) {
            const cps_tbuf *a = &p.f->bufs.data[ids[i]];
            int64_t end = a->byte + cps_tbuf_bytes(a);
            ok = ok && a->placed &&
                 end <=
                     (a->space == CPS_PSUM ? p.t->psum_banks * p.t->psum_bank_bytes : limit) &&
                 (a->space != CPS_PSUM || a->byte % 2048 == 0);
            for (int k = 0; k < i; k++) {
                const cps_tbuf *b = &p.f->bufs.data[ids[k]];
                bool live = first[i] <= last[k] && first[k] <= last[i];
                bool meet = a->byte < b->byte + cps_tbuf_bytes(b) && b->byte < end;
                ok = ok && !(a->space == b->space && live && meet);
            }
        }
        CHECK(ok);
        tp_free(&p);
    }
}

static void
rings(void)
{
    tp p = tp_new("trn2");
    uint32_t t[6];
    for (uint32_t i = 0; i < 6; i++) {
        t[i] = tp_tile(&p, "x", CPS_SBUF, CPS_DT_BF16, 128, 100 + i, 7, i, 3);
        tp_1(&p, CPS_T_MEMSET, tp_view(&p, t[i], 0, 128, 0, 1), cps_to_imm(0));
    }
    CHECK(run(&p));
    // Slots of the largest instance (105 elements, rounded to 32 bytes), taken in turn.
    for (uint32_t i = 0; i < 6; i++)
        CHECK_INT(p.f->bufs.data[t[i]].byte, 224 * (i % 3));
    tp_free(&p);

    // Four instances needed at once, two slots declared.
    p = tp_new("trn2");
    for (uint32_t i = 0; i < 4; i++) {
        t[i] = tp_tile(&p, "w", CPS_SBUF, CPS_DT_BF16, 128, 8, 7, i, 2);
        tp_1(&p, CPS_T_MEMSET, tp_view(&p, t[i], 0, 128, 0, 8), cps_to_imm(0));
    }
    for (uint32_t i = 0; i < 4; i++)
        tp_1(&p, CPS_T_COPY, tp_view(&p, t[i], 0, 128, 0, 8), tp_view(&p, t[i], 0, 128, 0, 8));
    CHECK(!run(&p));
    CHECK(has(&p, CPS_E4107));
    tp_free(&p);
}

static void
limits(void)
{
    tp p = tp_new("trn1");
    uint32_t a = tp_tile(&p, "big", CPS_SBUF, CPS_DT_FP32, 128, 30000, 0, 0, 0);
    uint32_t b = tp_tile(&p, "more", CPS_SBUF, CPS_DT_FP32, 128, 20000, 0, 0, 0);
    tp_2(&p, CPS_T_TENSOR_TENSOR, tp_view(&p, a, 0, 128, 0, 1), tp_view(&p, b, 0, 128, 0, 1),
         tp_view(&p, a, 0, 128, 0, 1));
    CHECK(!run(&p));
    CHECK(has(&p, CPS_E4101));
    CHECK(strstr(cps_diags_text(p.d, 0), "200000") != NULL);
    tp_free(&p);

    p = tp_new("trn2");
    for (uint32_t i = 0; i < 9; i++) {
        a = tp_tile(&p, "acc", CPS_PSUM, CPS_DT_FP32, 128, 512, 0, 0, 0);
        tp_1(&p, CPS_T_MEMSET, tp_view(&p, a, 0, 128, 0, 1), cps_to_imm(0));
    }
    for (uint32_t i = 1; i <= 9; i++)
        tp_1(&p, CPS_T_MEMSET, tp_view(&p, i, 0, 128, 0, 1), cps_to_imm(0));
    CHECK(!run(&p));
    CHECK(has(&p, CPS_E4102));
    tp_free(&p);

    p = tp_new("trn2");
    a = tp_tile(&p, "a", CPS_SBUF, CPS_DT_FP32, 128, 64, 0, 0, 0);
    b = tp_tile(&p, "b", CPS_SBUF, CPS_DT_FP32, 128, 64, 0, 0, 0);
    p.f->bufs.data[a].pin_byte = 1024;
    p.f->bufs.data[b].pin_byte = 1100;
    tp_2(&p, CPS_T_TENSOR_TENSOR, tp_view(&p, a, 0, 128, 0, 1), tp_view(&p, b, 0, 128, 0, 1),
         tp_view(&p, a, 0, 128, 0, 1));
    CHECK(!run(&p));
    CHECK(has(&p, CPS_E4103));
    p.f->bufs.data[b].pin_byte = 1280;
    cps_diags_clear(p.d);
    CHECK(run(&p));
    CHECK_INT(p.f->bufs.data[a].byte, 1024);
    CHECK_INT(p.f->bufs.data[b].byte, 1280);
    tp_free(&p);
}

int
main(void)
{
    random_programs();
    rings();
    limits();
    return CHECK_DONE();
}

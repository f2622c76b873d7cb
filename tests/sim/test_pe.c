/* The tensor engine against a plain triple loop: types, groups, accumulation, transposes. */
#include "tests/sim/kb.h"

/* A deterministic small number. */
static float
val(unsigned k)
{
    k = k * 2654435761u + 12345;
    return (float)((int)(k >> 16 & 255) - 128) / 64.0f;
}

static void
set_sbuf(kb *b, uint32_t var, const char *queue, uint32_t id, int part, int parts, int byte,
         int64_t off, int64_t row)
{
    kb_block(b, CPS_SP, queue, id, 3, true, var, off, row, part, parts, byte, row);
    kb_put(b, CPS_SP, kb_trigger(b, queue, id));
}

typedef struct mmcase {
    const char *target;
    cps_dtype t;
    int k, m, n;
    unsigned row_grp, col_grp, part, out_part;
    unsigned wmode, mmode; /* one pass when wmode is not LOW */
    unsigned flags;
} mmcase;

static unsigned
xbus(unsigned col_grp)
{
    return col_grp == 0xF ? 0x10 : col_grp == 3 ? 1 : col_grp == 0xC ? 4 : col_grp;
}

static cps_bundle
lw(kb *b, const mmcase *c, unsigned byte, unsigned mode)
{
    cps_bundle x = kb_insn(b, CPS_INSN_LDWEIGHTS);
    kb_ap(&x, CPS_F_S3_LW_src, ap1(cps_addr_sbuf(c->part, byte), c->m));
    cps_isa_set(&x, CPS_F_S3_LW_in_dtype, wire(c->t));
    cps_isa_set(&x, CPS_F_S3_LW_fp32_mode, mode);
    cps_isa_set(&x, CPS_F_S3_LW_num_active_rows, (unsigned)c->k);
    cps_isa_set(&x, CPS_F_S3_LW_num_active_cols, (unsigned)c->m);
    cps_isa_set(&x, CPS_F_S3_LW_row_grp, c->row_grp);
    cps_isa_set(&x, CPS_F_S3_LW_col_grp, c->col_grp);
    if (b->k->gen == CPS_V2)
        cps_isa_set(&x, CPS_F_S3_LW_xbus_sel, xbus(c->col_grp));
    return x;
}

static cps_bundle
mm(kb *b, const mmcase *c, unsigned byte, unsigned mode, unsigned flags, unsigned psum)
{
    cps_bundle x = kb_insn(b, CPS_INSN_MATMUL);
    kb_ap(&x, CPS_F_S3D3_MM_src, ap1(cps_addr_sbuf(c->part, byte), c->n));
    kb_ap(&x, CPS_F_S3D3_MM_dst, ap1(cps_addr_psum(c->out_part, psum), c->n));
    cps_isa_set(&x, CPS_F_S3D3_MM_in_dtype, wire(c->t));
    cps_isa_set(&x, CPS_F_S3D3_MM_fp32_mode, mode);
    cps_isa_set(&x, CPS_F_S3D3_MM_num_active_rows, (unsigned)c->k);
    cps_isa_set(&x, CPS_F_S3D3_MM_num_active_cols, (unsigned)c->m);
    cps_isa_set(&x, CPS_F_S3D3_MM_psum_accumulate_flags, flags);
    cps_isa_set(&x, CPS_F_S3D3_MM_row_grp, c->row_grp);
    cps_isa_set(&x, CPS_F_S3D3_MM_col_grp, c->col_grp);
    if (b->k->gen == CPS_V2)
        cps_isa_set(&x, CPS_F_S3D3_MM_xbus_sel, xbus(c->col_grp));
    else
        cps_isa_set(&x, CPS_F_S3D3_MM_out_dtype, wire(CPS_DT_FP32));
    return x;
}

/* PSUM fp32 -> SBUF -> HBM variable "y", after PE raised semaphore 4 to `count`. */
static void
drain_psum(kb *b, const mmcase *c, unsigned psum, unsigned count, int n)
{
    cps_bundle x = kb_insn(b, CPS_INSN_COPY);
    kb_ap(&x, CPS_F_S4D4_TR_src, ap1(cps_addr_psum(c->out_part, psum), n));
    kb_ap(&x, CPS_F_S4D4_TR_dst, ap1(cps_addr_sbuf(c->out_part, 65536), n));
    cps_isa_set(&x, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&x, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&x, CPS_F_S4D4_TR_ch, (unsigned)c->m);
    kb_wait(&x, 4, count);
    kb_inc(&x, 6);
    kb_put(b, CPS_DVE, x);
    uint32_t y = kb_var(b, "y", CPS_VAR_OUTPUT, CPS_DT_FP32, (int64_t)c->m * n);
    kb_block(b, CPS_SP, "q_out", 0, 5, false, y, 0, n * 4, (int)c->out_part, c->m, 65536,
             n * 4);
    cps_bundle t = kb_trigger(b, "q_out", 0);
    kb_wait(&t, 6, 1);
    kb_put(b, CPS_SP, t);
}

static void
test_matmul(const mmcase *c)
{
    kb b = kb_new(c->target);
    int es = (int)cps_dtype_bytes(c->t);
    int64_t per = c->m + c->n;
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, c->t, c->k * per);
    set_sbuf(&b, x, "q_in", 0, (int)c->part, c->k, 1024, 0, per * es);
    bool pass2 = c->wmode == CPS_PE_FP32MODE_LOW;
    cps_bundle w = lw(&b, c, 1024, c->wmode);
    kb_wait(&w, 3, 16);
    kb_put(&b, CPS_PE, w);
    unsigned byte = 1024 + (unsigned)(c->m * es);
    cps_bundle v = mm(&b, c, byte, c->mmode, pass2 ? 1 : c->flags, 2048);
    if (!pass2)
        kb_inc(&v, 4);
    kb_put(&b, CPS_PE, v);
    if (pass2) {
        kb_put(&b, CPS_PE, lw(&b, c, 1024, CPS_PE_FP32MODE_HIGH));
        v = mm(&b, c, byte, c->mmode, b.k->gen == CPS_V4 ? 6 : 2, 2048);
        kb_inc(&v, 4);
        kb_put(&b, CPS_PE, v);
    }
    drain_psum(&b, c, 2048, 1, c->n);
    CHECK(kb_load(&b));
    uint8_t *in = malloc((size_t)(c->k * per) * 4);
    float *f = malloc((size_t)(c->k * per) * 4), *y = malloc((size_t)(c->m * c->n) * 4);
    for (int64_t i = 0; i < c->k * per; i++) {
        float u =
            val((unsigned)i) * (c->t == CPS_DT_FP32 ? 1.0f + (float)(i % 7) * 0x1p-20f : 1);
        cps_from_f32(c->t, in + i * es, u);
        f[i] = cps_to_f32(c->t, in + i * es);
    }
    cps_sim_bind(b.s, "x", in, (size_t)(c->k * per * es), true, b.d);
    cps_sim_bind(b.s, "y", y, (size_t)(c->m * c->n) * 4, false, b.d);
    bool ok = kb_run(&b);
    CHECK(ok);
    if (!ok)
        kb_show(&b);
    double worst = 0, big = 0;
    for (int m = 0; m < c->m; m++) {
        for (int n = 0; n < c->n; n++) {
            double sum = 0;
            for (int k = 0; k < c->k; k++)
                sum += (double)f[k * per + m] * f[k * per + c->m + n];
            worst = fmax(worst, fabs(sum - y[m * c->n + n]));
            big = fmax(big, fabs(sum));
        }
    }
    CHECK(big > 1);
    CHECK(worst <= big * 2e-6);
    CHECK_INT(b.rep.pe_macs, (int64_t)c->k * c->m * c->n * (pass2 ? 2 : 1));
    free(in);
    free(f);
    free(y);
    kb_free(&b);
}

/* Weights of 1: the result is the sum of X; what accumulates and what overwrites. flags per
 * pass, `cols` the columns each pass writes; want: multiple of the column sum. */
static void
test_flags(const char *target, const unsigned *flags, int passes, double want)
{
    kb b = kb_new(target);
    mmcase c = {.target = target,
                .t = CPS_DT_BF16,
                .k = 128,
                .m = 128,
                .n = 64,
                .row_grp = 0xF,
                .col_grp = 0xF};
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_BF16, 128 * 192);
    set_sbuf(&b, x, "q_in", 0, 0, 128, 0, 0, 384);
    cps_bundle w = lw(&b, &c, 0, 0);
    kb_wait(&w, 3, 16);
    kb_put(&b, CPS_PE, w);
    for (int p = 0; p < passes; p++) {
        cps_bundle v = mm(&b, &c, 256, 0, flags[p], 0);
        if (p == passes - 1)
            kb_inc(&v, 4);
        kb_put(&b, CPS_PE, v);
    }
    drain_psum(&b, &c, 0, 1, 64);
    CHECK(kb_load(&b));
    uint16_t *in = malloc(128 * 192 * 2);
    float *y = malloc(128 * 64 * 4);
    for (int i = 0; i < 128 * 192; i++)
        cps_from_f32(CPS_DT_BF16, &in[i], i % 192 < 128 ? 1.0f : 0.5f);
    cps_sim_bind(b.s, "x", in, 128 * 192 * 2, true, b.d);
    cps_sim_bind(b.s, "y", y, 128 * 64 * 4, false, b.d);
    bool ok = kb_run(&b);
    if (want < 0) { // reads PSUM that nothing has written
        CHECK(!ok);
        CHECK(kb_has(&b, CPS_E8304));
    } else {
        CHECK(ok);
        CHECK(y[5 * 64 + 7] == want * 64);
    }
    free(in);
    free(y);
    kb_free(&b);
}

/* Weights with one 1 in each of `cols` columns, or (`spoilt`) nearly so, twice against X, whose numbers are of all
 * kinds: the bits are those of the sums in order. */
static void
test_picks(int cols, int spoilt)
{
    enum { K = 128, N = 80, MOST = K, PER = MOST + N };
    kb b = kb_new("trn2");
    mmcase c = {.target = "trn2", .t = CPS_DT_BF16, .k = K, .m = cols, .n = N, .row_grp = 0xF, .col_grp = 0xF};
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_BF16, K * PER);
    set_sbuf(&b, x, "q_in", 0, 0, K, 0, 0, PER * 2);
    cps_bundle w = lw(&b, &c, 0, 0);
    kb_wait(&w, 3, 16);
    kb_put(&b, CPS_PE, w);
    kb_put(&b, CPS_PE, mm(&b, &c, MOST * 2, 0, 1, 0));
    cps_bundle v = mm(&b, &c, MOST * 2, 0, 2, 0);
    kb_inc(&v, 4);
    kb_put(&b, CPS_PE, v);
    drain_psum(&b, &c, 0, 1, N);
    CHECK(kb_load(&b));
    static uint16_t in[K * PER];
    static float f[K * PER], y[MOST * N];
    for (int k = 0; k < K; k++) {
        for (int m = 0; m < cols; m++)
            in[k * PER + m] = k == m * 37 % K ? 0x3F80 : m % 2 ? 0x8000 : 0;
        for (int n = 0; n < N; n++) { // with subnormal numbers and both zeros
            float u = val((unsigned)(k * N + n));
            cps_from_f32(CPS_DT_BF16, &in[k * PER + MOST + n], n % 5 == 4 ? u * 0x1p-132f : u);
            if (n % 7 == 6)
                in[k * PER + MOST + n] = 0x8000;
        }
    }
    if (spoilt == 1) // a second 1, a weight that is none, infinity, NaN
        in[5 * PER + 9] = 0x3F80;
    if (spoilt == 2)
        in[37 * PER + 1] = 0x4000;
    if (spoilt >= 3)
        in[111 * PER + MOST + 30] = spoilt == 3 ? 0xFF80 : 0x7FC1;
    for (int i = 0; i < K * PER; i++)
        f[i] = cps_to_f32(CPS_DT_BF16, &in[i]);
    cps_sim_bind(b.s, "x", in, sizeof in, true, b.d);
    cps_sim_bind(b.s, "y", y, (size_t)cols * N * sizeof *y, false, b.d);
    CHECK(kb_run(&b));
    unsigned bad = 0;
    for (int m = 0; m < cols; m++) {
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++) {
                float p = f[k * PER + m] * f[k * PER + MOST + n];
                sum = sum + p;
            }
            float want = sum + sum, got = y[m * N + n];
            bad += isnan(want) ? !isnan(got) : cps_f32_bits(got) != cps_f32_bits(want);
        }
    }
    CHECK_INT(bad, 0);
    kb_free(&b);
}

/* START on columns 0..31 makes the whole bank fresh: columns 32..63 of a second group that was
 * open there are overwritten instead of added to. */
static void
test_zero_region(void)
{
    kb b = kb_new("trn2");
    mmcase c = {.t = CPS_DT_BF16, .k = 128, .m = 128, .n = 32, .row_grp = 0xF, .col_grp = 0xF};
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_BF16, 128 * 192);
    set_sbuf(&b, x, "q_in", 0, 0, 128, 0, 0, 384);
    cps_bundle w = lw(&b, &c, 0, 0);
    kb_wait(&w, 3, 16);
    kb_put(&b, CPS_PE, w);
    kb_put(&b, CPS_PE, mm(&b, &c, 256, 0, 1, 128)); // group B, columns 32..63
    kb_put(&b, CPS_PE, mm(&b, &c, 256, 0, 1, 0));   // group A starts in the same bank
    kb_put(&b, CPS_PE, mm(&b, &c, 256, 0, 0, 0));   // A adds: 2
    cps_bundle v = mm(&b, &c, 256, 0, 2, 128);      // B meant to add, overwrites: 1
    kb_inc(&v, 4);
    kb_put(&b, CPS_PE, v);
    drain_psum(&b, &c, 0, 1, 64);
    CHECK(kb_load(&b));
    uint16_t *in = malloc(128 * 192 * 2);
    float *y = malloc(128 * 64 * 4);
    for (int i = 0; i < 128 * 192; i++)
        cps_from_f32(CPS_DT_BF16, &in[i], i % 192 < 128 ? 1.0f : 0.5f);
    cps_sim_bind(b.s, "x", in, 128 * 192 * 2, true, b.d);
    cps_sim_bind(b.s, "y", y, 128 * 64 * 4, false, b.d);
    CHECK(kb_run(&b));
    CHECK(y[3 * 64 + 4] == 128);
    CHECK(y[3 * 64 + 40] == 64);
    free(in);
    free(y);
    kb_free(&b);
}

/* Transpose mode moves bits, NaN and infinity included; out in the input's type. */
static void
test_transpose(const char *target, cps_dtype t, cps_dtype out)
{
    kb b = kb_new(target);
    unsigned es = cps_dtype_bytes(t), os = cps_dtype_bytes(out);
    int k = 96, m = 64;
    // rows: k x (m data | k identity)
    int64_t row = (m + k) * (int64_t)es;
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, t, k * (m + k));
    set_sbuf(&b, x, "q_in", 0, 0, k, 0, 0, row);
    mmcase c = {.t = t, .k = k, .m = m, .n = k, .row_grp = 0xF, .col_grp = 0x3};
    cps_bundle w = lw(&b, &c, 0, 0);
    bool v4 = b.k->gen == CPS_V4;
    if (t == CPS_DT_FP32)
        cps_isa_set(&w, CPS_F_S3_LW_fp32_mode, CPS_PE_FP32MODE_HIGH);
    if (v4)
        cps_isa_set(&w, CPS_F_S3_LW_flags, CPS_LW_FLAG_TRANSPOSE);
    else
        cps_isa_set(&w, CPS_F_S3_LW_transpose_mode, 1);
    kb_wait(&w, 3, 16);
    kb_put(&b, CPS_PE, w);
    cps_bundle v =
        mm(&b, &c, (unsigned)m * es, t == CPS_DT_FP32 ? CPS_PE_FP32MODE_HIGH : 0, 3, 0);
    if (v4)
        cps_isa_set(&v, CPS_F_S3D3_MM_flags, CPS_MM_FLAG_TRANSPOSE);
    else
        cps_isa_set(&v, CPS_F_S3D3_MM_transpose_mode, 1);
    cps_isa_set(&v, CPS_F_S3D3_MM_out_dtype, wire(out));
    kb_inc(&v, 4);
    kb_put(&b, CPS_PE, v);
    cps_bundle cp = kb_insn(&b, CPS_INSN_COPY);
    kb_ap(&cp, CPS_F_S4D4_TR_src, ap1(cps_addr_psum(0, 0), k));
    kb_ap(&cp, CPS_F_S4D4_TR_dst, ap1(cps_addr_sbuf(0, 65536), k));
    cps_isa_set(&cp, CPS_F_S4D4_TR_in_dtype, wire(out));
    cps_isa_set(&cp, CPS_F_S4D4_TR_out_dtype, wire(out));
    cps_isa_set(&cp, CPS_F_S4D4_TR_ch, (unsigned)m);
    kb_wait(&cp, 4, 1);
    kb_inc(&cp, 6);
    kb_put(&b, CPS_DVE, cp);
    uint32_t y = kb_var(&b, "y", CPS_VAR_OUTPUT, out, m * k);
    kb_block(&b, CPS_SP, "q_out", 0, 5, false, y, 0, k * os, 0, m, 65536, k * os);
    cps_bundle tr = kb_trigger(&b, "q_out", 0);
    kb_wait(&tr, 6, 1);
    kb_put(&b, CPS_SP, tr);
    CHECK(kb_load(&b));
    uint8_t *in = calloc((size_t)(k * (m + k)), es), *got = calloc((size_t)(m * k), os);
    for (int i = 0; i < k; i++) {
        for (int j = 0; j < m + k; j++) {
            float u = j >= m ? (j - m == i ? 1.0f : 0.0f) : val((unsigned)(i * 131 + j));
            if (i == 3 && j == 5)
                u = NAN;
            if (i == 4 && j == 5)
                u = INFINITY;
            cps_from_f32(t, in + (size_t)(i * (m + k) + j) * es, u);
        }
    }
    cps_sim_bind(b.s, "x", in, (size_t)(k * (m + k)) * es, true, b.d);
    cps_sim_bind(b.s, "y", got, (size_t)(m * k) * os, false, b.d);
    bool ok = kb_run(&b);
    CHECK(ok);
    if (!ok)
        kb_show(&b);
    unsigned bad = 0;
    for (int j = 0; j < m; j++) {
        for (int i = 0; i < k; i++) {
            const uint8_t *want = in + (size_t)(i * (m + k) + j) * es;
            const uint8_t *have = got + (size_t)(j * k + i) * os;
            if (es == os)
                bad += memcmp(want, have, es) != 0;
            else
                bad += have[0] != want[0] || have[1] != 0; // fp8: upper byte zero
        }
    }
    CHECK_INT(bad, 0);
    free(in);
    free(got);
    kb_free(&b);
}

int
main(void)
{
    const mmcase cases[] = {
        {"trn2", CPS_DT_BF16, 128, 128, 512, 0xF, 0xF, 0, 0, 0, 0, 3},
        {"trn1", CPS_DT_BF16, 128, 128, 512, 0xF, 0xF, 0, 0, 0, 0, 3},
        {"trn3", CPS_DT_BF16, 128, 96, 200, 0xF, 0xF, 0, 0, 0, 0, 3},
        {"trn2", CPS_DT_FP16, 128, 17, 33, 0xF, 1, 0, 0, 0, 0, 3},
        {"trn2", CPS_DT_FP8E4M3, 64, 64, 64, 0x3, 0xC, 0, 64, 0, 0, 3},
        {"trn2", CPS_DT_FP8E5M2, 32, 32, 64, 0x2, 0x4, 32, 64, 0, 0, 3},
        {"trn2", CPS_DT_FP32, 128, 128, 256, 0xF, 0xF, 0, 0, CPS_PE_FP32MODE_LOW,
         CPS_PE_FP32MODE_LOW_HIGH, 0},
        {"trn1", CPS_DT_FP32, 100, 50, 41, 0xF, 0x3, 0, 0, CPS_PE_FP32MODE_LOW,
         CPS_PE_FP32MODE_LOW_HIGH, 0},
        {"trn3", CPS_DT_FP32, 128, 128, 64, 0xF, 0xF, 0, 0, CPS_PE_FP32MODE_LOW,
         CPS_PE_FP32MODE_LOW_HIGH, 0},
    };
    for (unsigned i = 0; i < cps_countof(cases); i++)
        test_matmul(&cases[i]);
    test_flags("trn2", (unsigned[]){1, 0, 2}, 3, 3);
    test_flags("trn2", (unsigned[]){3, 3}, 2, 1);
    test_flags("trn3", (unsigned[]){1, 4, 6}, 3, 3);
    test_flags("trn3", (unsigned[]){1, 0, 2}, 3, 3);
    test_flags("trn2", (unsigned[]){0, 2}, 2, -1);
    for (int spoilt = 0; spoilt < 5; spoilt++)
        for (int cols = 96; cols <= 128; cols += 32) // some rows are left out, or none
            test_picks(cols, spoilt);
    test_zero_region();
    test_transpose("trn2", CPS_DT_BF16, CPS_DT_BF16);
    test_transpose("trn3", CPS_DT_BF16, CPS_DT_BF16);
    test_transpose("trn2", CPS_DT_FP32, CPS_DT_FP32);
    test_transpose("trn2", CPS_DT_FP8E5M2, CPS_DT_BF16);
    return CHECK_DONE();
}

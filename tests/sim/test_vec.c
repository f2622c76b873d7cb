/* Element-wise instructions and folds against scalar models written here: every operator of the
 * arithmetic class, strided and broadcast patterns, pointers, reversed operands, accumulators.
 */
#include "tests/sim/rig.h"

enum { P = 96, N = 60, A = 0, B = 4096, C = 8192, O = 16384 };

/* The test's own view of the operators. */
static double
model(unsigned op, double x, double y)
{
    switch (op) {
    case CPS_ALU_ADD:
        return (float)(x + y);
    case CPS_ALU_SUBTRACT:
        return (float)(x - y);
    case CPS_ALU_MULT:
        return (float)(x * y);
    case CPS_ALU_MAX:
        return fmax(x, y);
    case CPS_ALU_MIN:
        return fmin(x, y);
    case CPS_ALU_LOGICAL_AND:
        return x && y;
    case CPS_ALU_LOGICAL_OR:
        return x || y;
    case CPS_ALU_LOGICAL_XOR:
        return !x != !y;
    case CPS_ALU_IS_EQ:
        return x == y;
    case CPS_ALU_IS_NE:
        return x != y;
    case CPS_ALU_IS_GT:
        return x > y;
    case CPS_ALU_IS_GE:
        return x >= y;
    case CPS_ALU_IS_LE:
        return x <= y;
    case CPS_ALU_IS_LT:
        return x < y;
    case CPS_ALU_ABS_DIFF:
        return (float)fabs(x - y);
    case CPS_ALU_ABS_VALUE:
        return fabs(x);
    default:
        return x;
    }
}

static const unsigned ops[] = {
    CPS_ALU_ADD,   CPS_ALU_SUBTRACT,    CPS_ALU_MULT,       CPS_ALU_MAX,
    CPS_ALU_MIN,   CPS_ALU_LOGICAL_AND, CPS_ALU_LOGICAL_OR, CPS_ALU_LOGICAL_XOR,
    CPS_ALU_IS_EQ, CPS_ALU_IS_NE,       CPS_ALU_IS_GT,      CPS_ALU_IS_GE,
    CPS_ALU_IS_LE, CPS_ALU_IS_LT,       CPS_ALU_ABS_DIFF,   CPS_ALU_ABS_VALUE};

static cps_bundle
tt(rig *r, cps_insn id, unsigned op, cps_dtype a, cps_dtype b, cps_dtype o, cps_ap x, cps_ap y,
   cps_ap z, unsigned rows)
{
    cps_bundle i = kb_insn(&r->b, id);
    cps_isa_set(&i, CPS_F_S3S3D3_TT_in0_in1_dtype, pair(a, b));
    cps_isa_set(&i, CPS_F_S3S3D3_TT_out_dtype, wire(o));
    cps_isa_set(&i, CPS_F_S3S3D3_TT_op, op);
    cps_isa_set(&i, CPS_F_S3S3D3_TT_ch, rows);
    kb_ap(&i, CPS_F_S3S3D3_TT_src0, x);
    kb_ap(&i, CPS_F_S3S3D3_TT_src1, y);
    kb_ap(&i, CPS_F_S3S3D3_TT_dst, z);
    return i;
}

static void
test_tensor_tensor(void)
{
    float *v = rig_vals(2 * P * N);
    for (int i = 0; i < P * N; i += 3)
        v[P * N + i] = v[i]; // equal and zero elements
    for (int i = 0; i < P * N; i += 7)
        v[i] = 0;
    for (unsigned k = 0; k < cps_countof(ops); k++) {
        rig r = rig_new("trn2");
        rig_in(&r, 0, P, A, CPS_DT_BF16, N, v);
        rig_in(&r, 0, P, B, CPS_DT_FP16, N, v + P * N);
        rig_put(&r, CPS_DVE,
                tt(&r, CPS_INSN_TENSOR_TENSOR_ARITH, ops[k], CPS_DT_BF16, CPS_DT_FP16,
                   CPS_DT_BF16, ap1(A, N), ap1(B, N), ap1(O, N), P));
        rig_run(&r, 0, P, O, N * 2);
        unsigned bad = 0;
        for (int p = 0; p < P; p++) {
            for (int i = 0; i < N; i++) {
                double x = rig_round(CPS_DT_BF16, v[p * N + i]);
                double y = rig_round(CPS_DT_FP16, v[P * N + p * N + i]);
                bad += rig_f32(&r, p, i, CPS_DT_BF16) !=
                       rig_round(CPS_DT_BF16, (float)model(ops[k], x, y));
            }
        }
        CHECK_INT(bad, 0);
        rig_free(&r);
    }
    free(v);
}

/* [4][15] read backwards in X, b broadcast over Y, out transposed with gaps. */
static void
test_patterns(void)
{
    float *v = rig_vals(P * N + P * 15);
    rig r = rig_new("trn2");
    rig_in(&r, 0, P, A, CPS_DT_FP32, N, v);
    rig_in(&r, 0, P, B, CPS_DT_FP32, 15, v + P * N);
    rig_in(&r, 0, P, O, CPS_DT_FP32, 2 * N, (float[2 * P * N]){0});
    cps_ap x = ap2(A + 14 * 4, -1, 15, 15, 4), y = ap2(B, 1, 15, 0, 4), z = ap2(O, 8, 15, 2, 4);
    rig_put(&r, CPS_DVE,
            tt(&r, CPS_INSN_TENSOR_TENSOR_ARITH, CPS_ALU_SUBTRACT, CPS_DT_FP32, CPS_DT_FP32,
               CPS_DT_FP32, x, y, z, P));
    rig_run(&r, 0, P, O, 2 * N * 4);
    unsigned bad = 0;
    for (int p = 0; p < P; p++) {
        for (int j = 0; j < 4; j++) {
            for (int i = 0; i < 15; i++) {
                float want = v[p * N + j * 15 + 14 - i] - v[P * N + p * 15 + i];
                bad += rig_f32(&r, p, i * 8 + j * 2, CPS_DT_FP32) != want;
                bad += rig_f32(&r, p, i * 8 + j * 2 + 1, CPS_DT_FP32) != 0;
            }
        }
    }
    CHECK_INT(bad, 0);
    rig_free(&r);
    free(v);
}

static void
test_integers(void)
{
    static float v[2 * 32 * 16];
    for (int i = 0; i < 2 * 32 * 16; i++)
        v[i] = (float)((i * 7919) % 65536 - 32768);
    // 32-bit sums on GpSimd are true integers; on the vector engine they go through fp32
    static const unsigned simple[] = {CPS_ALU_ADD, CPS_ALU_MULT, CPS_ALU_ADD_INT,
                                      CPS_ALU_MULT_INT, CPS_ALU_SUB_INT};
    for (unsigned k = 0; k < cps_countof(simple); k++) {
        rig r = rig_new("trn2");
        rig_in(&r, 0, 32, A, CPS_DT_I32, 16, v);
        rig_in(&r, 0, 32, B, CPS_DT_I32, 16, v + 512);
        rig_put(&r, CPS_POOL,
                tt(&r, CPS_INSN_TENSOR_TENSOR_ARITH, simple[k], CPS_DT_I32, CPS_DT_I32,
                   CPS_DT_I32, ap1(A, 16), ap1(B, 16), ap1(O, 16), 32));
        rig_run(&r, 0, 32, O, 64);
        unsigned bad = 0;
        for (int i = 0; i < 512; i++) {
            uint32_t x = (uint32_t)(int32_t)v[i], y = (uint32_t)(int32_t)v[512 + i];
            uint32_t w = simple[k] == CPS_ALU_ADD || simple[k] == CPS_ALU_ADD_INT ? x + y
                         : simple[k] == CPS_ALU_SUB_INT                           ? x - y
                                                                                  : x * y;
            bad += rig_int(&r, i / 16, i % 16, CPS_DT_I32) != (int32_t)w;
        }
        CHECK_INT(bad, 0);
        rig_free(&r);
    }
    static const unsigned bits[] = {CPS_ALU_BITWISE_AND, CPS_ALU_BITWISE_OR,
                                    CPS_ALU_BITWISE_XOR};
    for (unsigned k = 0; k < cps_countof(bits); k++) {
        rig r = rig_new("trn2");
        rig_in(&r, 0, 32, A, CPS_DT_I16, 16, v);
        rig_in(&r, 0, 32, B, CPS_DT_I16, 16, v + 512);
        rig_put(&r, CPS_DVE,
                tt(&r, CPS_INSN_TENSOR_TENSOR_BITVEC, bits[k], CPS_DT_I16, CPS_DT_I16,
                   CPS_DT_I16, ap1(A, 16), ap1(B, 16), ap1(O, 16), 32));
        rig_run(&r, 0, 32, O, 32);
        unsigned bad = 0;
        for (int i = 0; i < 512; i++) {
            int x = (int16_t)v[i], y = (int16_t)v[512 + i];
            int w = k == 0 ? x & y : k == 1 ? x | y : x ^ y;
            bad += rig_int(&r, i / 16, i % 16, CPS_DT_I16) != (int16_t)w;
        }
        CHECK_INT(bad, 0);
        rig_free(&r);
    }
}

static cps_bundle
ts(rig *r, cps_insn id, cps_dtype in, cps_dtype out, unsigned op0, unsigned op1, unsigned rev,
   uint32_t s0, uint32_t s1, bool ptr0)
{
    cps_bundle i = kb_insn(&r->b, id);
    kb_ap(&i, CPS_F_S3D3_TS_src, ap1(A, N));
    kb_ap(&i, CPS_F_S3D3_TS_dst, ap1(O, N));
    cps_isa_set(&i, CPS_F_S3D3_TS_in_dtype, wire(in));
    cps_isa_set(&i, CPS_F_S3D3_TS_out_dtype, wire(out));
    cps_isa_set(&i, CPS_F_S3D3_TS_ch, P);
    cps_isa_set(&i, CPS_F_S3D3_TS_op0, op0);
    cps_isa_set(&i, CPS_F_S3D3_TS_op1, op1);
    cps_isa_set(&i, CPS_F_S3D3_TS_reverse_operands, rev);
    cps_isa_set(&i, CPS_F_S3D3_TS_imm0, s0);
    cps_isa_set(&i, CPS_F_S3D3_TS_imm1, s1);
    cps_isa_set(&i, CPS_F_S3D3_TS_imm0_src,
                ptr0 ? CPS_IMM_SRC_POINTER_IMMEDIATE : CPS_IMM_SRC_INSTRUCTION_IMMEDIATE);
    return i;
}

static void
test_tensor_scalar(void)
{
    float *v = rig_vals(P * N + P);
    for (unsigned rev = 0; rev < 4; rev++) {
        for (unsigned k = 0; k < cps_countof(ops); k++) {
            unsigned op1 = ops[(k * 5 + 3) % cps_countof(ops)];
            rig r = rig_new("trn2");
            rig_in(&r, 0, P, A, CPS_DT_FP16, N, v);
            rig_in(&r, 0, P, B, CPS_DT_FP32, 1, v + P * N);
            rig_put(&r, CPS_DVE,
                    ts(&r, CPS_INSN_TENSOR_SCALAR_ARITH, CPS_DT_FP16, CPS_DT_FP32, ops[k], op1,
                       rev, B, cps_f32_bits(0.75f), true));
            rig_run(&r, 0, P, O, N * 4);
            unsigned bad = 0;
            for (int p = 0; p < P; p++) {
                double s = v[P * N + p];
                for (int i = 0; i < N; i++) {
                    double x = rig_round(CPS_DT_FP16, v[p * N + i]);
                    double m = rev & 1 ? model(ops[k], s, x) : model(ops[k], x, s);
                    double w = rev & 2 ? model(op1, 0.75, m) : model(op1, m, 0.75);
                    bad += rig_f32(&r, p, i, CPS_DT_FP32) != (float)w;
                }
            }
            CHECK_INT(bad, 0);
            rig_free(&r);
        }
    }
    // bits: (x << 3) ^ 0x55 on u8
    float *u = rig_vals(P * N);
    for (int i = 0; i < P * N; i++)
        u[i] = (float)(i % 251);
    rig r = rig_new("trn2");
    rig_in(&r, 0, P, A, CPS_DT_U8, N, u);
    rig_put(&r, CPS_DVE,
            ts(&r, CPS_INSN_TENSOR_SCALAR_BITVEC, CPS_DT_U8, CPS_DT_U8,
               CPS_ALU_LOGICAL_SHIFT_LEFT, CPS_ALU_BITWISE_XOR, 0, 3, 0x55, false));
    rig_run(&r, 0, P, O, N);
    unsigned bad = 0;
    for (int i = 0; i < P * N; i++)
        bad += rig_int(&r, i / N, i % N, CPS_DT_U8) != (((i % 251) << 3 & 255) ^ 0x55);
    CHECK_INT(bad, 0);
    rig_free(&r);
    free(u);
    free(v);
}

/* Accumulator commands over two instructions, read out by DVE_READ_ACCUMULATOR. */
static void
test_cache_reduce(void)
{
    static const unsigned red[] = {CPS_ALU_ADD, CPS_ALU_MAX, CPS_ALU_MIN, CPS_ALU_MULT};
    float *v = rig_vals(P * N);
    for (int i = 0; i < P * N; i++)
        v[i] = 1 + v[i] / 64;
    for (unsigned k = 0; k < cps_countof(red); k++) {
        rig r = rig_new("trn2");
        rig_in(&r, 0, P, A, CPS_DT_FP32, N, v);
        for (unsigned c = 0; c < 2; c++) {
            cps_bundle i = ts(&r, CPS_INSN_TENSOR_SCALAR_CACHE_REDUCE, CPS_DT_FP32, CPS_DT_FP32,
                              CPS_ALU_MULT, red[k], 0, cps_f32_bits(c ? 1.5f : 0.5f), 0, false);
            cps_isa_set(&i, CPS_F_S3D3_TS_accumulator_cmd,
                        c ? CPS_ACCUM_CMD_ACCUMULATE : CPS_ACCUM_CMD_ZERO_ACCUMULATE);
            rig_put(&r, CPS_DVE, i);
        }
        cps_bundle rd = kb_insn(&r.b, CPS_INSN_DVE_READ_ACCUMULATOR);
        kb_ap(&rd, CPS_F_D1_RD_dst, ap1(C, 1));
        cps_isa_set(&rd, CPS_F_D1_RD_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&rd, CPS_F_D1_RD_ch, P);
        cps_isa_set(&rd, CPS_F_D1_RD_negated, 1);
        rig_put(&r, CPS_DVE, rd);
        rig_run(&r, 0, P, C, 4);
        unsigned bad = 0;
        for (int p = 0; p < P; p++) {
            float acc = red[k] == CPS_ALU_MULT  ? 1
                        : red[k] == CPS_ALU_MAX ? -INFINITY
                        : red[k] == CPS_ALU_MIN ? INFINITY
                                                : 0;
            for (int c = 0; c < 2; c++) {
                for (int i = 0; i < N; i++)
                    acc = (float)model(red[k], acc, v[p * N + i] * (c ? 1.5f : 0.5f));
            }
            bad += rig_f32(&r, p, 0, CPS_DT_FP32) != -acc;
        }
        CHECK_INT(bad, 0);
        rig_free(&r);
    }
    // running form, seeded by LOAD_ACCUMULATE
    rig r = rig_new("trn2");
    rig_in(&r, 0, P, A, CPS_DT_FP32, N, v);
    cps_bundle i = ts(&r, CPS_INSN_TENSOR_SCALAR_CACHE_CUMULATIVE, CPS_DT_FP32, CPS_DT_FP32,
                      CPS_ALU_MULT, CPS_ALU_ADD, 0, cps_f32_bits(2), cps_f32_bits(10), false);
    cps_isa_set(&i, CPS_F_S3D3_TS_accumulator_cmd, CPS_ACCUM_CMD_LOAD_ACCUMULATE);
    rig_put(&r, CPS_DVE, i);
    rig_run(&r, 0, P, O, N * 4);
    unsigned bad = 0;
    for (int p = 0; p < P; p++) {
        float acc = 10;
        for (int k = 0; k < N; k++) {
            acc += 2 * v[p * N + k];
            bad += rig_f32(&r, p, k, CPS_DT_FP32) != acc;
        }
    }
    CHECK_INT(bad, 0);
    rig_free(&r);
    free(v);
}

static cps_bundle
stt(rig *r, cps_insn id, unsigned op0, unsigned op1, unsigned rev, float imm)
{
    cps_bundle i = kb_insn(&r->b, id);
    kb_ap(&i, CPS_F_S2S2D2_STT_src0, ap1(A, N));
    kb_ap(&i, CPS_F_S2S2D2_STT_src1, ap1(B, N));
    kb_ap(&i, CPS_F_S2S2D2_STT_dst, ap1(O, N));
    cps_isa_set(&i, CPS_F_S2S2D2_STT_op0, op0);
    cps_isa_set(&i, CPS_F_S2S2D2_STT_op1, op1);
    cps_isa_set(&i, CPS_F_S2S2D2_STT_reverse_operands, rev);
    cps_isa_set(&i, CPS_F_S2S2D2_STT_in0_in1_dtype, pair(CPS_DT_BF16, CPS_DT_FP32));
    cps_isa_set(&i, CPS_F_S2S2D2_STT_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&i, CPS_F_S2S2D2_STT_ch, P);
    cps_isa_set(&i, CPS_F_S2S2D2_STT_imm0_dtype, wire(CPS_DT_FP32));
    cps_isa_set_f32(&i, CPS_F_S2S2D2_STT_imm0, imm);
    return i;
}

static void
test_stt_scan(void)
{
    float *v = rig_vals(2 * P * N);
    for (unsigned rev = 0; rev < 4; rev++) {
        rig r = rig_new("trn2");
        rig_in(&r, 0, P, A, CPS_DT_BF16, N, v);
        rig_in(&r, 0, P, B, CPS_DT_FP32, N, v + P * N);
        rig_put(&r, CPS_DVE,
                stt(&r, CPS_INSN_SCALAR_TENSOR_TENSOR_ARITH, CPS_ALU_SUBTRACT, CPS_ALU_SUBTRACT,
                    rev, 0.3f));
        rig_run(&r, 0, P, O, N * 4);
        unsigned bad = 0;
        for (int k = 0; k < P * N; k++) {
            float x = rig_round(CPS_DT_BF16, v[k]), y = v[P * N + k];
            float m = rev & 1 ? 0.3f - x : x - 0.3f, w = rev & 2 ? y - m : m - y;
            bad += rig_f32(&r, k / N, k % N, CPS_DT_FP32) != w;
        }
        CHECK_INT(bad, 0);
        rig_free(&r);
    }
    rig r = rig_new("trn2");
    rig_in(&r, 0, P, A, CPS_DT_BF16, N, v);
    rig_in(&r, 0, P, B, CPS_DT_FP32, N, v + P * N);
    rig_put(&r, CPS_DVE,
            stt(&r, CPS_INSN_TENSOR_TENSOR_SCAN_ARITH, CPS_ALU_MULT, CPS_ALU_ADD, 0, 0.5f));
    rig_run(&r, 0, P, O, N * 4);
    unsigned bad = 0;
    for (int p = 0; p < P; p++) {
        float s = 0.5f;
        for (int k = 0; k < N; k++) {
            float m = rig_round(CPS_DT_BF16, v[p * N + k]) * s;
            s = m + v[P * N + p * N + k];
            bad += rig_f32(&r, p, k, CPS_DT_FP32) != s;
        }
    }
    CHECK_INT(bad, 0);
    rig_free(&r);
    free(v);
}

static cps_bundle
tr(rig *r, cps_insn id, cps_dtype in, cps_dtype out, cps_ap x, cps_ap z, unsigned op,
   unsigned dim, unsigned rows)
{
    cps_bundle i = kb_insn(&r->b, id);
    kb_ap(&i, CPS_F_S4D4_TR_src, x);
    kb_ap(&i, CPS_F_S4D4_TR_dst, z);
    cps_isa_set(&i, CPS_F_S4D4_TR_in_dtype, wire(in));
    cps_isa_set(&i, CPS_F_S4D4_TR_out_dtype, wire(out));
    cps_isa_set(&i, CPS_F_S4D4_TR_ch, rows);
    cps_isa_set(&i, CPS_F_S4D4_TR_op, op);
    cps_isa_set(&i, CPS_F_S4D4_TR_op_dim, dim);
    return i;
}

static void
test_reduce(void)
{
    static const unsigned red[] = {CPS_ALU_ADD, CPS_ALU_MAX, CPS_ALU_MIN, CPS_ALU_MULT};
    float *v = rig_vals(P * N);
    for (unsigned k = 0; k < 8; k++) {
        bool neg = k >= 4;
        rig r = rig_new("trn2");
        rig_in(&r, 0, P, A, CPS_DT_BF16, N, v);
        // [4][15] over X after a transposed read: X runs over the 4
        cps_bundle i = tr(&r, CPS_INSN_TENSOR_REDUCE_ARITH, CPS_DT_BF16, CPS_DT_FP32,
                          ap2(A, 15, 4, 1, 15), ap1(O, 15), red[k % 4], CPS_TENSOR_SUBDIM_X, P);
        cps_isa_set(&i, CPS_F_S4D4_TR_negated, neg);
        rig_put(&r, CPS_DVE, i);
        rig_run(&r, 0, P, O, 15 * 4);
        unsigned bad = 0;
        for (int p = 0; p < P; p++) {
            for (int c = 0; c < 15; c++) {
                double acc = rig_round(CPS_DT_BF16, v[p * N + c]);
                for (int q = 1; q < 4; q++)
                    acc = model(red[k % 4], acc, rig_round(CPS_DT_BF16, v[p * N + q * 15 + c]));
                bad += rig_f32(&r, p, c, CPS_DT_FP32) != (float)(neg ? -acc : acc);
            }
        }
        CHECK_INT(bad, 0);
        rig_free(&r);
    }
    // bitwise or of all 60 bytes
    for (int i = 0; i < P * N; i++)
        v[i] = (float)(i * 37 % 255);
    rig r = rig_new("trn2");
    rig_in(&r, 0, P, A, CPS_DT_U8, N, v);
    rig_put(&r, CPS_DVE,
            tr(&r, CPS_INSN_TENSOR_REDUCE_BITVEC, CPS_DT_U8, CPS_DT_U8, ap1(A, N), ap1(O, 1),
               CPS_ALU_BITWISE_XOR, CPS_TENSOR_SUBDIM_X, P));
    rig_run(&r, 0, P, O, 1);
    unsigned bad = 0;
    for (int p = 0; p < P; p++) {
        int acc = 0;
        for (int k = 0; k < N; k++)
            acc ^= (p * N + k) * 37 % 255;
        bad += rig_int(&r, p, 0, CPS_DT_U8) != acc;
    }
    CHECK_INT(bad, 0);
    rig_free(&r);
    free(v);
}

/* Conversions: floats to nearest even, floats to integers saturate, copies keep NaN payloads.
 */
static void
test_copy_cast(void)
{
    const float v[8] = {1.5f, 2.5f, -0.5f, 300.0f, -300.0f, NAN, 1e9f, 126.6f};
    const int64_t i8[8] = {2, 2, 0, 127, -128, 0, 127, 127};
    static float many[32 * 8];
    for (int i = 0; i < 256; i++)
        many[i] = v[i % 8];
    rig r = rig_new("trn2");
    rig_in(&r, 0, 32, A, CPS_DT_FP32, 8, many);
    rig_put(&r, CPS_DVE,
            tr(&r, CPS_INSN_CAST, CPS_DT_FP32, CPS_DT_I8, ap1(A, 8), ap1(O, 8), 0, 0, 32));
    rig_run(&r, 0, 32, O, 8);
    for (int i = 0; i < 8; i++)
        CHECK_INT(rig_int(&r, 31, i, CPS_DT_I8), i8[i]);
    rig_free(&r);
    r = rig_new("trn2");
    rig_in(&r, 0, 32, A, CPS_DT_FP32, 8, many);
    uint32_t nan = 0x7FA12345;
    memcpy(r.mem[0] + 4, &nan, 4);
    rig_put(&r, CPS_ACT,
            tr(&r, CPS_INSN_COPY, CPS_DT_FP32, CPS_DT_FP32, ap1(A, 8), ap1(O, 8), 0, 0, 32));
    const uint8_t *o = rig_run(&r, 0, 32, O, 32);
    CHECK(memcmp(o, r.mem[0], 32 * 32) == 0);
    rig_free(&r);
    r = rig_new("trn2");
    rig_in(&r, 0, 32, A, CPS_DT_BF16, 8, many);
    rig_put(
        &r, CPS_DVE,
        tr(&r, CPS_INSN_RECIPROCAL, CPS_DT_BF16, CPS_DT_FP32, ap1(A, 8), ap1(O, 8), 0, 0, 32));
    rig_run(&r, 0, 32, O, 32);
    CHECK(rig_f32(&r, 3, 0, CPS_DT_FP32) == 1.0f / 1.5f);
    CHECK(rig_f32(&r, 3, 1, CPS_DT_FP32) == 0.4f);
    rig_free(&r);
}

static void
test_predicates(void)
{
    float *v = rig_vals(P * N), *m = rig_vals(P * N), *o = rig_vals(P * N);
    for (int i = 0; i < P * N; i++) {
        m[i] = (float)(i % 3 == 0);
        o[i] = -7;
    }
    rig r = rig_new("trn2");
    rig_in(&r, 0, P, A, CPS_DT_U8, N, m);
    rig_in(&r, 0, P, B, CPS_DT_FP32, N, v);
    rig_in(&r, 0, P, O, CPS_DT_FP32, N, o);
    rig_put(&r, CPS_DVE,
            tt(&r, CPS_INSN_COPY_PREDICATED, CPS_ALU_BYPASS, CPS_DT_U8, CPS_DT_FP32,
               CPS_DT_FP32, ap1(A, N), ap1(B, N), ap1(O, N), P));
    rig_run(&r, 0, P, O, N * 4);
    unsigned bad = 0;
    for (int i = 0; i < P * N; i++)
        bad += rig_f32(&r, i / N, i % N, CPS_DT_FP32) != (i % 3 == 0 ? v[i] : -7);
    CHECK_INT(bad, 0);
    rig_free(&r);

    r = rig_new("trn2"); // select with running maximum
    rig_in(&r, 0, P, A, CPS_DT_U8, N, m);
    rig_in(&r, 0, P, B, CPS_DT_FP32, N, v);
    cps_bundle i = stt(&r, CPS_INSN_SELECT_REDUCE, CPS_ALU_BYPASS, CPS_ALU_MAX, 0, -1.25f);
    cps_isa_set(&i, CPS_F_S2S2D2_STT_in0_in1_dtype, pair(CPS_DT_U8, CPS_DT_FP32));
    cps_isa_set(&i, CPS_F_S2S2D2_STT_accumulator_cmd, CPS_ACCUM_CMD_ZERO_ACCUMULATE);
    rig_put(&r, CPS_DVE, i);
    cps_bundle rd = kb_insn(&r.b, CPS_INSN_DVE_READ_ACCUMULATOR);
    kb_ap(&rd, CPS_F_D1_RD_dst, ap1(O + N * 4, 1));
    cps_isa_set(&rd, CPS_F_D1_RD_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&rd, CPS_F_D1_RD_ch, P);
    rig_put(&r, CPS_DVE, rd);
    rig_run(&r, 0, P, O, N * 4 + 4);
    bad = 0;
    for (int p = 0; p < P; p++) {
        float most = -INFINITY;
        for (int k = 0; k < N; k++) {
            float w = (p * N + k) % 3 == 0 ? v[p * N + k] : -1.25f;
            most = fmaxf(most, w);
            bad += rig_f32(&r, p, k, CPS_DT_FP32) != w;
        }
        bad += rig_f32(&r, p, N, CPS_DT_FP32) != most;
    }
    CHECK_INT(bad, 0);
    rig_free(&r);

    r = rig_new("trn2"); // range select: 10 <= i < bound[p]
    for (int p = 0; p < P; p++)
        o[p] = (float)(p % N);
    rig_in(&r, 0, P, A, CPS_DT_FP32, N, v);
    rig_in(&r, 0, P, B, CPS_DT_FP32, 1, o);
    i = kb_insn(&r.b, CPS_INSN_RANGE_SELECT);
    kb_ap(&i, CPS_F_S2D2_RS_src, ap1(A, N));
    kb_ap(&i, CPS_F_S2D2_RS_dst, ap1(O, N));
    cps_isa_set(&i, CPS_F_S2D2_RS_ch, P);
    cps_isa_set(&i, CPS_F_S2D2_RS_in_out_dtype, pair(CPS_DT_FP32, CPS_DT_FP32));
    cps_isa_set(&i, CPS_F_S2D2_RS_reduce_cmd, CPS_REDUCE_CMD_RESET_REDUCE);
    cps_isa_set(&i, CPS_F_S2D2_RS_comp_op0, CPS_ALU_IS_GE);
    cps_isa_set(&i, CPS_F_S2D2_RS_comp_op1, CPS_ALU_IS_LT);
    cps_isa_set_f32(&i, CPS_F_S2D2_RS_bound0, 10);
    cps_isa_set(&i, CPS_F_S2D2_RS_bound1_src, CPS_IMM_SRC_POINTER_IMMEDIATE);
    cps_isa_set(&i, CPS_F_S2D2_RS_bound1, B);
    rig_put(&r, CPS_DVE, i);
    rig_run(&r, 0, P, O, N * 4);
    bad = 0;
    for (int k = 0; k < P * N; k++) {
        bool in = k % N >= 10 && k % N < k / N % N;
        bad +=
            rig_f32(&r, k / N, k % N, CPS_DT_FP32) != (in ? v[k] : -3.40282346638528859812e38f);
    }
    CHECK_INT(bad, 0);
    rig_free(&r);

    r = rig_new("trn2"); // TENSOR_SCALAR_SELECT by a predicate per partition
    for (int p = 0; p < P; p++)
        o[p] = (float)(p & 1);
    rig_in(&r, 0, P, A, CPS_DT_FP32, N, v);
    rig_in(&r, 0, P, B, CPS_DT_U32, 1, o);
    i = kb_insn(&r.b, CPS_INSN_TENSOR_SCALAR_SELECT);
    kb_ap(&i, CPS_F_S3D3_TS_SELECT_src0, ap1(A, N));
    kb_ap(&i, CPS_F_S3D3_TS_SELECT_dst, ap1(O, N));
    cps_isa_set(&i, CPS_F_S3D3_TS_SELECT_ch, P);
    cps_isa_set(&i, CPS_F_S3D3_TS_SELECT_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&i, CPS_F_S3D3_TS_SELECT_pred_imm_dtype, wire(CPS_DT_U32));
    cps_isa_set_f32(&i, CPS_F_S3D3_TS_SELECT_src1_imm, 9.5f);
    cps_isa_set(&i, CPS_F_S3D3_TS_SELECT_pred_imm_src, CPS_IMM_SRC_POINTER_IMMEDIATE);
    cps_isa_set(&i, CPS_F_S3D3_TS_SELECT_pred_imm, B);
    rig_put(&r, CPS_DVE, i);
    rig_run(&r, 0, P, O, N * 4);
    bad = 0;
    for (int k = 0; k < P * N; k++)
        bad += rig_f32(&r, k / N, k % N, CPS_DT_FP32) != (k / N & 1 ? v[k] : 9.5f);
    CHECK_INT(bad, 0);
    rig_free(&r);
    free(v);
    free(m);
    free(o);
}

int
main(void)
{
    test_tensor_tensor();
    test_patterns();
    test_integers();
    test_tensor_scalar();
    test_cache_reduce();
    test_stt_scan();
    test_reduce();
    test_copy_cast();
    test_predicates();
    return CHECK_DONE();
}

/* Costs of single instructions against published points (NKI documents and their profiles). */
#include "codegen/isa/timing.h"
#include "tests/check.h"

static const cps_target *trn1, *trn2, *trn3;

static void
near(const char *what, cps_ps got, double want_ns, double tolerance)
{
    double ns = (double)got / 1000.0, err = (ns - want_ns) / want_ns;
    CHECK(err <= tolerance && err >= -tolerance);
    if (err > tolerance || err < -tolerance)
        fprintf(stderr, "%s: %.1f ns, published %.1f\n", what, ns, want_ns);
}

static cps_ap
flat(uint32_t addr, uint16_t n)
{
    return (cps_ap){.addr = addr, .nd = 1, .step = {1}, .num = {n}};
}

static cps_bundle
matmul(cps_gen g, unsigned dtype, unsigned mode, uint16_t n)
{
    cps_bundle b = cps_isa_new(CPS_INSN_MATMUL, g);
    cps_ap src = flat(0, n), dst = flat(CPS_PSUM_BASE, n);
    cps_isa_set_ap(&b, CPS_F_S3D3_MM_src, &src);
    cps_isa_set_ap(&b, CPS_F_S3D3_MM_dst, &dst);
    cps_isa_set(&b, CPS_F_S3D3_MM_in_dtype, dtype);
    cps_isa_set(&b, CPS_F_S3D3_MM_fp32_mode, mode);
    cps_isa_set(&b, CPS_F_S3D3_MM_num_active_rows, 128);
    cps_isa_set(&b, CPS_F_S3D3_MM_num_active_cols, 128);
    return b;
}

static cps_bundle
activate(uint16_t n)
{
    cps_bundle b = cps_isa_new(CPS_INSN_ACTIVATE, CPS_V3);
    cps_ap src = flat(0, n), dst = flat(0x8000, n);
    cps_isa_set_ap(&b, CPS_F_S3D3_AC_src, &src);
    cps_isa_set_ap(&b, CPS_F_S3D3_AC_dst, &dst);
    cps_isa_set(&b, CPS_F_S3D3_AC_in_bias_dtype, 0x66);
    cps_isa_set(&b, CPS_F_S3D3_AC_out_dtype, 6);
    cps_isa_set(&b, CPS_F_S3D3_AC_activation_function, CPS_ACTFN_EXP);
    return b;
}

static cps_bundle
tensor_tensor(unsigned dtype, uint32_t a, uint32_t bb, uint16_t n)
{
    cps_bundle b = cps_isa_new(CPS_INSN_TENSOR_TENSOR_ARITH, CPS_V3);
    cps_ap src0 = flat(a, n), src1 = flat(bb, n), dst = flat(0x10000, n);
    cps_isa_set_ap(&b, CPS_F_S3S3D3_TT_src0, &src0);
    cps_isa_set_ap(&b, CPS_F_S3S3D3_TT_src1, &src1);
    cps_isa_set_ap(&b, CPS_F_S3S3D3_TT_dst, &dst);
    cps_isa_set(&b, CPS_F_S3S3D3_TT_in0_in1_dtype, dtype | dtype << 4);
    cps_isa_set(&b, CPS_F_S3S3D3_TT_out_dtype, dtype);
    cps_isa_set(&b, CPS_F_S3S3D3_TT_op, CPS_ALU_ADD);
    return b;
}

static cps_bundle
copy(unsigned dtype, uint32_t from, uint32_t to, int16_t step, uint16_t n)
{
    cps_bundle b = cps_isa_new(CPS_INSN_COPY, CPS_V3);
    cps_ap src = flat(from, n), dst = flat(to, n);
    src.step[0] = step;
    cps_isa_set_ap(&b, CPS_F_S4D4_TR_src, &src);
    cps_isa_set_ap(&b, CPS_F_S4D4_TR_dst, &dst);
    cps_isa_set(&b, CPS_F_S4D4_TR_in_dtype, dtype);
    cps_isa_set(&b, CPS_F_S4D4_TR_out_dtype, dtype);
    return b;
}

static cps_cost
cost(const cps_target *t, cps_engine e, cps_bundle b)
{
    cps_cost c;
    cps_timing(t, e, &b, &c);
    return c;
}

static void
tensor_engine(void)
{
    // fp32 128 x 128 x 512 on trn2: members of a pair 430 ns apart, 597 to 600 ns end to end.
    cps_cost c = cost(trn2, CPS_PE, matmul(CPS_V3, 10, CPS_PE_FP32MODE_LOW_HIGH, 512));
    CHECK_INT(c.cycles, 1031);
    near("fp32 matmul period", c.occupy, 430, 0.005);
    near("fp32 matmul end to end", c.cross, 598.5, 0.01);
    // trn1 at N = 512: 209 ns in bf16, 836 ns for a pair in fp32.
    near("bf16 trn1", cost(trn1, CPS_PE, matmul(CPS_V2, 6, 0, 512)).occupy, 209, 0.005);
    near("fp32 pair trn1", 2 * cost(trn1, CPS_PE, matmul(CPS_V2, 10, 3, 512)).occupy, 836,
         0.005);
    // trn1 128 columns end to end: 188 ns with 1 stationary column, 219 ns with 96.
    cps_bundle m = matmul(CPS_V2, 6, 0, 128);
    cps_isa_set(&m, CPS_F_S3D3_MM_num_active_cols, 1);
    near("bf16 128x1 trn1", cost(trn1, CPS_PE, m).cross, 188, 0.01);
    cps_isa_set(&m, CPS_F_S3D3_MM_num_active_cols, 96);
    near("bf16 128x96 trn1", cost(trn1, CPS_PE, m).cross, 219, 0.04);
    // One column still takes 64.
    CHECK_INT(cost(trn1, CPS_PE, matmul(CPS_V2, 6, 0, 1)).cycles, 64);
    cps_bundle w = cps_isa_new(CPS_INSN_LDWEIGHTS, CPS_V3);
    CHECK_INT(cost(trn2, CPS_PE, w).occupy, 0);
}

static void
scalar_engine(void)
{
    // trn2 exp in bf16: 400 ns at N = 128, 3,710 ns at N = 4096; table load 1.28 us.
    near("exp 128", cost(trn2, CPS_ACT, activate(128)).cross, 400, 0.01);
    near("exp 4096", cost(trn2, CPS_ACT, activate(4096)).cross, 3710, 0.01);
    near("exp 4096 occupancy", cost(trn2, CPS_ACT, activate(4096)).occupy, 3453.3, 0.001);
    CHECK_INT(cost(trn2, CPS_ACT, activate(4096)).cycles, 4096);
    // trn1 dependent chain of N = 1: 189 ns apart, 159 ns long.
    near("chain of 1", cost(trn1, CPS_ACT, activate(1)).self, 189, 0.01);
    near("length of 1", cost(trn1, CPS_ACT, activate(1)).cross, 159, 0.01);
    cps_bundle load = cps_isa_new(CPS_INSN_ACTIVATION_TABLE_LOAD, CPS_V3);
    near("table", cost(trn2, CPS_ACT, load).occupy, 1280, 0.01);
}

static void
vector_engine(void)
{
    // trn2 fp32 N = 512, one input in PSUM: 533 ns; both in SBUF twice that.
    near("tt psum", cost(trn2, CPS_DVE, tensor_tensor(10, CPS_PSUM_BASE, 0, 512)).occupy, 533,
         0.01);
    CHECK_INT(cost(trn2, CPS_DVE, tensor_tensor(10, 0x800, 0, 512)).cycles, 1024);
    CHECK_INT(cost(trn2, CPS_DVE, tensor_tensor(6, 0x800, 0, 512)).cycles, 512);
    CHECK_INT(cost(trn1, CPS_DVE, tensor_tensor(6, 0x800, 0, 512)).cycles, 512);
    CHECK_INT(cost(trn1, CPS_DVE, tensor_tensor(7, 0x800, 0, 512)).cycles, 1024);
    // trn1 fp32 N = 8192 from SBUF: 14,987 ns end to end.
    near("tt 8192", cost(trn1, CPS_DVE, tensor_tensor(10, 0x8000, 0, 8192)).cross, 14987,
         0.015);
    // 16-bit modes: v3 only, 4 in SBUF, 2 strided or with PSUM.
    CHECK_INT(cost(trn1, CPS_DVE, copy(6, 0, 0x1000, 1, 1024)).cycles, 1024);
    CHECK_INT(cost(trn2, CPS_DVE, copy(6, 0, 0x1000, 1, 1024)).cycles, 256);
    CHECK_INT(cost(trn2, CPS_DVE, copy(6, 0, 0x1000, 2, 1024)).cycles, 512);
    CHECK_INT(cost(trn2, CPS_DVE, copy(6, CPS_PSUM_BASE, 0x1000, 1, 1024)).cycles, 512);
    CHECK_INT(cost(trn2, CPS_DVE, copy(10, 0, 0x1000, 1, 1024)).cycles, 1024);
    CHECK_INT(cost(trn3, CPS_DVE, copy(15, 0, 0x1000, 1, 1024)).cycles, 256);
    CHECK_INT(cost(trn2, CPS_DVE, copy(6, 0x80000005u, 0x1000, 1, 16)).cycles, 600);
    CHECK_INT(cost(trn2, CPS_ACT, copy(6, 0, 0x1000, 1, 1024)).cycles, 1024);
    cps_bundle r = cps_isa_new(CPS_INSN_RECIPROCAL, CPS_V3);
    cps_ap ap = flat(0, 512);
    cps_isa_set_ap(&r, CPS_F_S4D4_TR_src, &ap);
    cps_isa_set_ap(&r, CPS_F_S4D4_TR_dst, &ap);
    CHECK_INT(cost(trn2, CPS_DVE, r).cycles, 512);
    // A dependent instruction waits 112 cycles more.
    cps_cost c = cost(trn1, CPS_DVE, tensor_tensor(10, CPS_PSUM_BASE, 0, 512));
    CHECK_INT(c.self - c.occupy, 98000);
    cps_bundle z = cps_isa_new(CPS_INSN_MEMSET, CPS_V3);
    cps_isa_set_ap(&z, CPS_F_D4_MR_dst, &ap);
    cps_isa_set(&z, CPS_F_D4_MR_dtype, 6);
    CHECK_INT(cost(trn2, CPS_DVE, z).cycles, 256);
    cps_isa_set(&z, CPS_F_D4_MR_set_value, 0x3F80);
    CHECK_INT(cost(trn2, CPS_DVE, z).cycles, 512);
}

static void
others(void)
{
    cps_bundle b = cps_isa_new(CPS_INSN_IOTA, CPS_V3);
    cps_ap p = {.nd = 1, .step = {1}, .num = {256}}, dst = flat(0, 256);
    cps_isa_set_ap(&b, CPS_F_D4_IOTA_pattern, &p);
    cps_isa_set_ap(&b, CPS_F_D4_IOTA_dst, &dst);
    CHECK_INT(cost(trn2, CPS_POOL, b).cycles, 406);
    near("event", cost(trn1, CPS_ACT, cps_isa_new(CPS_INSN_EVENT_SEMAPHORE, CPS_V2)).occupy, 9,
         0.01);
    // Every byte pattern has a cost, on every engine and target; none is negative.
    for (unsigned op = 0; op < 256; op++)
        for (unsigned e = 0; e <= CPS_ENGINES; e++) {
            cps_bundle any;
            memset(&any, 0xFF, sizeof any);
            any.b[0] = (uint8_t)op;
            for (unsigned t = 0; t < cps_target_count(); t++) {
                cps_cost c;
                cps_timing(cps_target_at(t), e < CPS_ENGINES ? (cps_engine)e : CPS_ENGINE_ANY,
                           &any, &c);
                CHECK(c.occupy >= 0 && c.self >= c.occupy && c.cross >= 0 && c.cycles >= 0);
            }
        }
}

int
main(void)
{
    trn1 = cps_target_find("trn1");
    trn2 = cps_target_find("trn2");
    trn3 = cps_target_find("trn3");
    tensor_engine();
    scalar_engine();
    vector_engine();
    others();
    return CHECK_DONE();
}

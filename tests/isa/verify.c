/* The verifier: golden vectors pass on every generation they name, each rule has a bundle that
 * breaks it, and the table's own check finds nothing. Bundles are written as .cas text. */
#include "codegen/isa/text.h"
#include "runtime/base/rng.h"
#include "tests/check.h"
#include "tests/isa/golden.h"

static cps_diags *diags;

static void
show(const char *what)
{
    cps_buf text = {0};
    cps_diags_render(diags, &text, false);
    fprintf(stderr, "%s\n%s", what, text.n ? text.data : "(no message)\n");
    cps_buf_fini(&text);
}

static void
table(void)
{
    cps_buf out = {0};
    CHECK_INT(cps_isa_check(&out), 0);
    if (out.n)
        fprintf(stderr, "%s", out.data);
    cps_buf_fini(&out);
}

static void
golden_vectors(void)
{
    static golden v[128];
    unsigned n = golden_read(v, 128), warned = 0;
    CHECK_INT(n, 47);
    for (unsigned i = 0; i < n; i++)
        for (unsigned g = 0; g < CPS_GENS; g++) {
            if (!(v[i].gens & (1u << g)))
                continue;
            cps_diags_clear(diags);
            bool ok = cps_isa_verify(&v[i].b, (cps_gen)g, CPS_ENGINE_ANY, diags, CPS_NOSPAN);
            CHECK(ok);
            CHECK_INT(cps_diags_errors(diags), 0);
            warned += cps_diags_count(diags);
            if (!ok)
                show(v[i].name);
        }
    CHECK_INT(warned, 0);
}

#define MM "MATMUL src=bf16@sbuf[p0][1][512] num_active_rows=128 num_active_cols=128 "
#define AC "ACTIVATE exp src=fp32@sbuf[p0][1][8] scale=1.0 "
#define TT "TENSOR_TENSOR_ARITH ch=128 "

static const struct {
    const char *line;
    cps_gen g;
    cps_engine e;
    cps_code code; // CPS_CODE_NONE: passes without a finding
} cases[] = {
    // header and engine
    {"NOP hdr.inst_word_len=0x20", CPS_V3, CPS_ENGINE_ANY, CPS_E5502},
    {"COPY hdr.inst_word_len=0x11 src=bf16@sbuf[p0][1][8] ch=1 dst=bf16@sbuf[p0][1][8]", CPS_V3,
     CPS_ENGINE_ANY, CPS_E5502},
    {"NOP", CPS_V3, CPS_SP, CPS_CODE_NONE},
    {"MAX8 src=fp32@sbuf[p0][1][64] ch=8 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_CODE_NONE},
    {"MAX8 src=fp32@sbuf[p0][1][64] ch=8 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_ACT, CPS_E5505},
    {"RANGE_SELECT", CPS_V2, CPS_ENGINE_ANY, CPS_E5501},
    {".bytes "
     "00100000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "000000000000000000000000000000000000000000",
     CPS_V3, CPS_ENGINE_ANY, CPS_E5501},
    // sync
    {"NOP hdr.wait_mode=0x40", CPS_V3, CPS_ENGINE_ANY, CPS_E5503},
    {"NOP hdr.update_mode=0x40", CPS_V3, CPS_ENGINE_ANY, CPS_E5503},
    {"EVENT_SEMAPHORE wait_mode=0x40", CPS_V3, CPS_ENGINE_ANY, CPS_E5503},
    {"NOP wait S[3]>=4 then S[4]+=4@complete", CPS_V3, CPS_ENGINE_ANY, CPS_W5504},
    {"NOP wait S[3]>=4 then S[4]++@complete", CPS_V3, CPS_ENGINE_ANY, CPS_CODE_NONE},
    {"NOP hdr.semaphore_value=4", CPS_V3, CPS_ENGINE_ANY, CPS_W5504},
    {"NOP then S[4]+=r4@read", CPS_V3, CPS_ENGINE_ANY, CPS_W5504},
    {"EVENT_SEMAPHORE wait S[1]>=1 wait2 S[2]>=1", CPS_V3, CPS_ENGINE_ANY, CPS_W5504},
    {"EVENT_SEMAPHORE wait S[1]>=1 then2 S[2]+=3@complete", CPS_V3, CPS_ENGINE_ANY,
     CPS_CODE_NONE},
    // bytes and fields
    {"NOP raw[20]=1", CPS_V3, CPS_ENGINE_ANY, CPS_E5506},
    {"DRAIN raw[20]=1", CPS_V3, CPS_ENGINE_ANY, CPS_W5516},
    {MM "xbus_sel=0x10 row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V3, CPS_PE,
     CPS_E5506},
    {"MOVE num_mov=1 dtype=i32 source=7", CPS_V3, CPS_ENGINE_ANY, CPS_E5509},
    {"MOVE num_mov=9 dtype=i32", CPS_V3, CPS_ENGINE_ANY, CPS_E5509},
    {"ACTIVATE activation_function=0xf src=fp32@sbuf[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_ACT, CPS_W5516},
    {"STREAM_TRANSPOSE src=bf16@sbuf[p0][1][32] ch=33 dst=bf16@sbuf[p0][1][32]", CPS_V3,
     CPS_DVE, CPS_E5509},
    {TT "op=abs_max src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5509},
    // dtypes
    {AC "ch=1 dst=tf32@sbuf[p0][1][8]", CPS_V3, CPS_ACT, CPS_CODE_NONE},
    {"CAST src=tf32@sbuf[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5507},
    {"CAST src=u64@sbuf[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5507},
    {"COPY src=u64@sbuf[p0][1][8] ch=1 dst=u64@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_CODE_NONE},
    {"COPY src=bf16@sbuf[p0][1][8] ch=1 dst=fp16@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5507},
    {AC "ch=1 dst=bf16@psum[p0][1][8]", CPS_V3, CPS_ACT, CPS_E5507},
    {"COPY src=0x17@sbuf[p0][1][8] ch=1 dst=0x17@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5507},
    {MM "row_grp=0xf col_grp=0xf dst=bf16@psum[p0][1][512]", CPS_V3, CPS_PE, CPS_E5507},
    {MM "row_grp=0xf col_grp=0xf dst=bf16@psum[p0][1][512]", CPS_V4, CPS_PE, CPS_CODE_NONE},
    {MM "transpose_mode=1 row_grp=0xf col_grp=0xf dst=bf16@psum[p0][1][512]", CPS_V3, CPS_PE,
     CPS_CODE_NONE},
    // addresses and patterns
    {"COPY src=fp32@sbuf[p0+0x2][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_E5508},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=mult imm0=ptr[0x2] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5508},
    {"COPY src=fp32@sbuf[p0][1][0] ch=1 dst=fp32@sbuf[p0][1][0]", CPS_V3, CPS_DVE, CPS_E5513},
    {"COPY src=fp32@sbuf[p0+0x2fff0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V2, CPS_DVE,
     CPS_E5513},
    {"COPY src=fp32@sbuf[p0+0x2fff0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_CODE_NONE},
    {"COPY src=fp32@sbuf[p0][-1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5513},
    {"COPY src=fp32@psum[p0+0x3ff0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_E5513},
    {"COPY src=fp32@0x3000000[1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5513},
    {"COPY src=fp32@0x20000000[1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5513},
    {"COPY src=fp32@reg[5][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_CODE_NONE},
    {"COPY src=fp32@0x40000000[1][0] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_CODE_NONE},
    // partitions and memories
    {"COPY src=fp32@sbuf[p16][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5511},
    {"COPY src=fp32@sbuf[p64][1][8] ch=65 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5511},
    {"COPY src=fp32@sbuf[p96][1][8] ch=32 dst=fp32@sbuf[p32][1][8]", CPS_V3, CPS_DVE,
     CPS_CODE_NONE},
    {"COPY src=fp32@sbuf[p0][1][8] ch=129 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5511},
    {"COPY src=fp32@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5511},
    {TT "op=add src0=fp32@psum[p0][1][8] src1=fp32@psum[p0][1][8] dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5512},
    {"TENSOR_TENSOR_ARITH ch=32 op=add src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p32][1][8] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V2, CPS_DVE, CPS_E5512},
    {"TENSOR_TENSOR_ARITH ch=32 op=add src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p32][1][8] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_W5516},
    {"COPY src=fp32@psum[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_POOL, CPS_E5512},
    {"MATMUL src=bf16@psum[p0][1][8] num_active_rows=128 num_active_cols=128 row_grp=0xf "
     "col_grp=0xf dst=psum[p0][1][8]",
     CPS_V3, CPS_PE, CPS_E5512},
    {MM "row_grp=0xf col_grp=0xf dst=fp32@sbuf[p0][1][512]", CPS_V3, CPS_PE, CPS_E5512},
    // operators
    {TT
     "op=bitwise_and src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5510},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=divide imm0=2.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5510},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=divide imm0=2.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_POOL, CPS_CODE_NONE},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op1=add dst=fp32@sbuf[p0][1][8]", CPS_V3,
     CPS_DVE, CPS_E5510},
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=rsqrt op1=add "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5510},
    {TT "op=add_int src0=i32@sbuf[p0][1][8] src1=i32@sbuf[p0][1][8] dst=i32@sbuf[p0][1][8]",
     CPS_V3, CPS_POOL, CPS_CODE_NONE},
    {TT "op=add_int src0=i32@sbuf[p0][1][8] src1=i32@sbuf[p0][1][8] dst=i32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5510},
    // counts
    {"COPY src=fp32@sbuf[p0][1][8] ch=1 dst=fp32@sbuf[p0][1][9]", CPS_V3, CPS_DVE, CPS_E5514},
    {"COPY src=fp32@sbuf[p0][1,4][4,2] ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_CODE_NONE},
    {"TENSOR_REDUCE_ARITH src=fp32@sbuf[p0][1,8][8,4] ch=1 op=add op_dim=X "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5514},
    {"MAX8 src=fp32@sbuf[p0][1][64] ch=8 dst=fp32@sbuf[p0][1][7]", CPS_V3, CPS_DVE, CPS_E5514},
    {"MAX8 src=fp32@sbuf[p0][1][7] ch=8 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5514},
    {"BATCH_NORM_STATS2 src=fp32@sbuf[p0][1][513] ch=8 dst=fp32@sbuf[p0][1][6]", CPS_V3,
     CPS_DVE, CPS_E5514},
    {"BATCH_NORM_AGGREGATE src=fp32@sbuf[p0][1][7] ch=8 dst=fp32@sbuf[p0][1][2]", CPS_V3,
     CPS_DVE, CPS_E5514},
    {"MEMSET dst_element_count=9 ch=1 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE, CPS_E5514},
    {"NONZERO_WITH_COUNT ch=1 src=i32@sbuf[p0][1][8] dst=i32@sbuf[p0][1][8] in_dtype=i32",
     CPS_V3, CPS_POOL, CPS_E5514},
    {"CROSS_LANE_REDUCE_ARITH src=fp32@sbuf[p0][1][8] ch=128 reduce_axis=PARTITIONS "
     "dst=fp32@sbuf[p0][1][1]",
     CPS_V3, CPS_POOL, CPS_E5514},
    {"MEMSET dst_element_count=8 ch=1 set_value=0x10000 dst=bf16@sbuf[p0][1][8]", CPS_V3,
     CPS_DVE, CPS_E5509},
    {"LDWEIGHTS src=bf16@sbuf[p0][1][64] num_active_rows=128 num_active_cols=128 row_grp=0xf "
     "col_grp=0xf",
     CPS_V3, CPS_PE, CPS_E5514},
    {"LDWEIGHTS src=fp8e4m3@sbuf[p0][1,128][128,2] perf_opt=DOUBLE_ROW num_active_rows=128 "
     "num_active_cols=128 row_grp=0xf col_grp=0xf",
     CPS_V3, CPS_PE, CPS_CODE_NONE},
    {"DMA_MEMCPY src_num_elem=[4,1] src_elem_size=4 dst_num_elem=[2,1] dst_elem_size=4", CPS_V3,
     CPS_SP, CPS_E5514},
    {"DMA_MEMCPY src_num_elem=[4,1] src_elem_size=4 dst_num_elem=[2,2] dst_elem_size=4", CPS_V3,
     CPS_SP, CPS_CODE_NONE},
    {"RANGE_SELECT ch=1 fill=0x0 reduce_op=max comp_op0=is_ge comp_op1=is_lt "
     "src=fp32@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5509},
    {"FIND_INDEX8 src=fp32@sbuf[p0][1][64] ch=8 dst=fp32@sbuf[p0][1][8]", CPS_V3, CPS_DVE,
     CPS_E5507},
    {"TENSOR_SCALAR_CACHE_REDUCE accumulator_cmd=ZERO_ACCUMULATE src=i32@sbuf[p0][1][8] ch=1 "
     "op1=add "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5507},
    {"COPY_PREDICATED ch=1 src0=fp32@sbuf[p0][1][8] src1=fp32@sbuf[p0][1][8] "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5507},
    {"STREAM_TRANSPOSE src=bf16@sbuf[p0][1][33] ch=32 dst=bf16@sbuf[p0][1][32]", CPS_V3,
     CPS_DVE, CPS_E5514},
    {"STREAM_TRANSPOSE src=bf16@sbuf[p0][1][64] ch=32 dst=bf16@sbuf[p0][1][32]", CPS_V3,
     CPS_DVE, CPS_CODE_NONE},
    {"TENSOR_LOAD dtype=i32 num_elem=[8,5]", CPS_V3, CPS_SP, CPS_E5514},
    {"TENSOR_LOAD dtype=i32 num_elem=[8,4]", CPS_V3, CPS_SP, CPS_CODE_NONE},
    {"EVENT_SEMAPHORE_RANGE_CLEAR clear=RANGE first=9 last=8", CPS_V3, CPS_SP, CPS_E5509},
    // joined fields
    {"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][8] ch=1 op0=rsqrt imm0=2.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5509},
    {"TENSOR_SCALAR_BITVEC src=u16@sbuf[p0][1][8] ch=1 op0=arith_shift_right imm0=0x2 "
     "dst=u16@sbuf[p0][1][8]",
     CPS_V3, CPS_DVE, CPS_E5510},
    {"ACTIVATE2 exp src=fp32@sbuf[p0][1][8] op0=add op1=add ch=1 imm0=0.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V4, CPS_ACT, CPS_E5510},
    {"ACTIVATE2 exp src=fp32@sbuf[p0][1][8] op0=mult op1=add ch=1 imm0=0.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V4, CPS_ACT, CPS_CODE_NONE},
    {"ACTIVATE2 exp src=fp32@sbuf[p0][1][8] reduce_cmd=REDUCE op0=mult op1=add ch=1 imm0=0.0 "
     "dst=fp32@sbuf[p0][1][8]",
     CPS_V4, CPS_ACT, CPS_E5510},
    // PE
    {MM "row_grp=0x5 col_grp=0xf dst=psum[p0][1][512]", CPS_V3, CPS_PE, CPS_E5515},
    {MM "row_grp=0x3 col_grp=0xf dst=psum[p0][1][512]", CPS_V3, CPS_PE, CPS_E5515},
    {MM "fp32_mode=LOW_HIGH row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V3, CPS_PE,
     CPS_E5515},
    {MM "psum_accumulate_flags=0x4 row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V3,
     CPS_PE, CPS_E5515},
    {MM "psum_accumulate_flags=0x4 row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V4,
     CPS_PE, CPS_CODE_NONE},
    {MM "row_grp=0xf col_grp=0xf dst=psum[p0+0x400][1][512]", CPS_V3, CPS_PE, CPS_E5515},
    {"MATMUL src=bf16@sbuf[p32][1][64] num_active_rows=32 num_active_cols=32 row_grp=0x1 "
     "col_grp=0x1 dst=psum[p0][1][64]",
     CPS_V3, CPS_PE, CPS_E5515},
    {MM "row_grp=0xf col_grp=0xf dst=psum[p0][1][512]", CPS_V2, CPS_PE, CPS_W5516},
};

static void
rules(void)
{
    for (size_t i = 0; i < cps_countof(cases); i++) {
        cps_buf bytes = {0};
        cps_diags_clear(diags);
        bool parsed =
            cps_isa_parse(cases[i].line, strlen(cases[i].line), 0, cases[i].g, diags, &bytes);
        CHECK(parsed && bytes.n == CPS_BUNDLE_BYTES);
        if (!parsed) {
            show(cases[i].line);
            continue;
        }
        bool ok = cps_isa_verify((const cps_bundle *)bytes.data, cases[i].g, cases[i].e, diags,
                                 CPS_NOSPAN);
        cps_code want = cases[i].code;
        bool error = want != CPS_CODE_NONE && cps_diag_rows[want].name[0] == 'E';
        bool found = false;
        for (unsigned j = 0; j < cps_diags_count(diags); j++)
            found = found || cps_diags_code(diags, j) == want;
        bool fine =
            ok == !error && (want == CPS_CODE_NONE ? cps_diags_count(diags) == 0 : found);
        CHECK(fine);
        if (!fine)
            show(cases[i].line);
        cps_buf_fini(&bytes);
    }
    cps_diags_clear(diags);
}

// Any bytes give a verdict, and the verdict agrees with the messages.
static void
arbitrary_bytes(void)
{
    cps_rng r;
    cps_rng_init(&r, 11, 0);
    for (unsigned k = 0; k < 20000; k++) {
        cps_bundle b;
        for (unsigned j = 0; j < CPS_BUNDLE_BYTES; j++)
            b.b[j] = (uint8_t)(cps_rng_next(&r) >> (k & 1 ? 32 : 60));
        b.b[0] = (uint8_t)k;
        bool ok = cps_isa_verify(&b, (cps_gen)(k % 3), (cps_engine)(k % 6 < 5 ? k % 6 : 0xFF),
                                 diags, CPS_NOSPAN);
        CHECK(ok == (cps_diags_errors(diags) == 0));
        cps_diags_clear(diags);
    }
}

int
main(void)
{
    diags = cps_diags_create();
    table();
    golden_vectors();
    rules();
    arbitrary_bytes();
    cps_diags_destroy(diags);
    return CHECK_DONE();
}

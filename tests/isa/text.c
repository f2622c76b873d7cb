/* .cas text: parse(print(b)) == b for golden vectors, for every row on every generation, and
 * for arbitrary bytes; the look of the text; and every diagnostic of the parser. */
#include "codegen/isa/text.h"
#include "runtime/base/rng.h"
#include "tests/check.h"
#include "tests/isa/golden.h"

static cps_diags *diags;

static bool
same_after_text(const cps_bundle *b, cps_gen g)
{
    cps_buf text = {0}, back = {0};
    cps_isa_print(b, g, &text);
    bool ok = cps_isa_parse(text.data, text.n, 0, g, diags, &back) &&
              back.n == CPS_BUNDLE_BYTES && memcmp(back.data, b->b, CPS_BUNDLE_BYTES) == 0;
    ok = ok && !memchr(text.data, '\n', text.n);
    if (!ok) {
        cps_buf why = {0};
        cps_diags_render(diags, &why, false);
        fprintf(stderr, "no round trip on %s: %s\n%s", cps_gen_name(g), text.data,
                why.n ? why.data : "");
        for (unsigned i = 0; i < CPS_BUNDLE_BYTES && back.n == CPS_BUNDLE_BYTES; i++)
            if ((uint8_t)back.data[i] != b->b[i])
                fprintf(stderr, "byte %u: %02x became %02x\n", i, b->b[i],
                        (uint8_t)back.data[i]);
        cps_buf_fini(&why);
        cps_diags_clear(diags);
    }
    cps_buf_fini(&text);
    cps_buf_fini(&back);
    return ok;
}

static void
golden_vectors(void)
{
    static golden v[128];
    unsigned n = golden_read(v, 128);
    CHECK_INT(n, 47);
    for (unsigned i = 0; i < n; i++)
        for (unsigned g = 0; g < CPS_GENS; g++)
            if (v[i].gens & (1u << g)) {
                CHECK(cps_isa_find(v[i].b.b[0], (cps_gen)g) != CPS_INSN_NONE);
                CHECK(same_after_text(&v[i].b, (cps_gen)g));
                // No golden vector needs the escape forms.
                cps_buf text = {0};
                cps_isa_print(&v[i].b, (cps_gen)g, &text);
                CHECK(!strstr(text.data, "raw[") && !strstr(text.data, ".bytes"));
                cps_buf_fini(&text);
            }
}

static void
every_row(void)
{
    cps_rng r;
    cps_rng_init(&r, 7, 0);
    for (unsigned i = 1; i < CPS_INSNS; i++)
        for (unsigned g = 0; g < CPS_GENS; g++) {
            if (!(cps_insns[i].gens & (1u << g)))
                continue;
            cps_bundle b = cps_isa_new((cps_insn)i, (cps_gen)g);
            CHECK(same_after_text(&b, (cps_gen)g));
            unsigned fmt = cps_insns[i].format;
            bool ok = true;
            for (unsigned k = 0; k < 60; k++) {
                b = cps_isa_new((cps_insn)i, (cps_gen)g);
                for (unsigned j = 4; j < 12; j++)
                    b.b[j] = (uint8_t)(k % 3 ? 0 : cps_rng_below(&r, 32));
                for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
                    for (unsigned j = 0; j < cps_fields[f].bits / 8u; j++)
                        if (cps_rng_below(&r, 3))
                            b.b[cps_fields[f].byte + j] =
                                (uint8_t)(cps_rng_below(&r, 2) ? cps_rng_below(&r, 16)
                                                               : cps_rng_below(&r, 256));
                ok = same_after_text(&b, (cps_gen)g) && ok;
            }
            CHECK(ok);
        }
}

static void
arbitrary_bytes(void)
{
    cps_rng r;
    cps_rng_init(&r, 7, 1);
    bool ok = true;
    for (unsigned k = 0; k < 30000; k++) {
        cps_bundle b;
        for (unsigned j = 0; j < CPS_BUNDLE_BYTES; j++)
            b.b[j] = (uint8_t)(cps_rng_below(&r, 4) ? cps_rng_next(&r) >> 32 : 0);
        if (k & 1)
            b.b[1] = 0x10;
        ok = same_after_text(&b, (cps_gen)(k % CPS_GENS)) && ok;
    }
    CHECK(ok);
    // Every opcode with every wait and update mode.
    for (unsigned m = 0; m < 256 * 256; m += 7) {
        cps_bundle b = {{0}};
        b.b[0] = (uint8_t)(m & 1 ? 0xA0 : 0xA4);
        b.b[1] = 0x10;
        b.b[4] = (uint8_t)m;
        b.b[6] = (uint8_t)(m >> 8);
        b.b[5] = 9;
        b.b[8] = (uint8_t)(m >> 3);
        if (b.b[0] == 0xA0) {
            b.b[32] = (uint8_t)(m >> 8);
            b.b[34] = (uint8_t)m;
            b.b[36] = 4;
        }
        ok = same_after_text(&b, CPS_V3) && ok;
    }
    CHECK(ok);
}

static void
floats(void)
{
    cps_rng r;
    cps_rng_init(&r, 7, 2);
    bool ok = true;
    for (unsigned k = 0; k < 60000; k++) {
        cps_bundle b = cps_isa_new(CPS_INSN_POOL, CPS_V3);
        cps_isa_set(&b, CPS_F_S4D4_PL_pool_scale, cps_rng_next(&r) >> 32);
        ok = same_after_text(&b, CPS_V3) && ok;
    }
    CHECK(ok);
    static const struct {
        float v;
        const char *text;
    } known[] = {{0.25f, "0.25"},
                 {1.0f, "1.0"},
                 {-2.5f, "-2.5"},
                 {0.1f, "0.1"},
                 {1e-3f, "0.001"},
                 {0.088388346f, "0.088388346"},
                 {16777216.0f, "16777216.0"},
                 {3.4028235e38f, "3.4028235e38"},
                 {1e-45f, "1e-45"},
                 {1.17549435e-38f, "1.1754944e-38"}};
    for (size_t i = 0; i < cps_countof(known); i++) {
        cps_bundle b = cps_isa_new(CPS_INSN_POOL, CPS_V3);
        cps_isa_set_f32(&b, CPS_F_S4D4_PL_pool_scale, known[i].v);
        cps_buf text = {0};
        cps_isa_print(&b, CPS_V3, &text);
        const char *at = strstr(text.data, "pool_scale=");
        char got[32] = "";
        if (at)
            sscanf(at, "pool_scale=%31s", got);
        CHECK_STR(got, known[i].text);
        cps_buf_fini(&text);
    }
}

// Golden name -> text.
static void
the_look(void)
{
    static const struct {
        const char *name, *text;
    } want[] = {
        {"activate_exp",
         "ACTIVATE exp src=fp32@psum[p0][1][512] ch=128 scale=0.5 bias=fp32@0.0 "
         "dst=bf16@sbuf[p0+0x2000][1][512]"},
        {"activate_exp_bias_acc", "ACTIVATE exp accumulator_cmd=ZERO_ACCUMULATE "
                                  "src=fp32@sbuf[p0][1][256] ch=128 scale=1.0 "
                                  "bias=fp32@ptr[0x1000] dst=fp32@sbuf[p0+0x4000][1][256]"},
        {"matmul_tile32",
         "MATMUL src=bf16@sbuf[p32][1][64] num_active_rows=32 num_active_cols=32 "
         "psum_accumulate_flags=START|END row_grp=0x2 col_grp=0x4 dst=psum[p64+0x800][1][64]"},
        {"reduce_max_x",
         "TENSOR_REDUCE_ARITH src=fp32@sbuf[p0][1,64][64,8] ch=128 op=max op_dim=X "
         "dst=fp32@sbuf[p0+0x4000][1][8]"},
        {"tt_add", "TENSOR_TENSOR_ARITH op=add ch=128 src0=bf16@sbuf[p0][1][512] "
                   "src1=fp32@psum[p0+0x1000][1][512] dst=bf16@sbuf[p0+0x2000][1][512]"},
        {"ts_rsub_ptr", "TENSOR_SCALAR_ARITH src=fp32@sbuf[p0][1][512] ch=128 op0=subtract "
                        "reverse_operands=FIRST "
                        "imm0=ptr[0x3000] dst=fp32@sbuf[p0+0x2000][1][512]"},
        {"pe_collective",
         "PSEUDO_TRIGGER_COLLECTIVE op=add dtype=fp32 input_tensor_id=3 output_tensor_id=4 "
         "num_elements=32 ctype=ALL_REDUCE wait S[10]>0 then S[22]++@complete"},
        {"pool_dma_trigger0", "PSEUDO_DMA_TRIGGER queue=\"q_gradient_in\""},
        {"sem_inc_7", "EVENT_SEMAPHORE then2 S[7]+=1@complete"},
        {"wait_ge", "EVENT_SEMAPHORE wait S[3]>=4"},
        {"move_imm", "MOVE num_mov=1 dtype=i32 source=IMMEDIATE dst_regs=[2] imm=[42]"},
        {"br_gt_imm_rel",
         "COMPARE_BRANCH cmp_op=GT_IMM dtype=i32 target_mode=RELATIVE_IMMEDIATE "
         "cmp_imm=9 cmp_reg0=6 branch=-2 hdr.debug_hint=0x2"},
        {"iota", "IOTA pattern=10[1][128] ch=128 channel_multiplier=1000 "
                 "dst=i32@sbuf[p0+0x2000][1][128]"},
        {"nop", "NOP"},
    };
    static golden v[128];
    unsigned n = golden_read(v, 128);
    for (size_t i = 0; i < cps_countof(want); i++) {
        bool found = false;
        for (unsigned j = 0; j < n; j++)
            if (strcmp(v[j].name, want[i].name) == 0) {
                cps_buf text = {0};
                cps_isa_print(&v[j].b, CPS_V3, &text);
                CHECK_STR(text.data, want[i].text);
                cps_buf_fini(&text);
                found = true;
            }
        CHECK(found);
    }
}

// The checked-in listing of all golden vectors, both ways.
static void
golden_listing(void)
{
    static golden v[128];
    unsigned n = golden_read(v, 128);
    cps_buf want = {0}, back = {0};
    for (unsigned i = 0; i < n; i++) {
        cps_buf_printf(&want, "// %s\n", v[i].name);
        cps_isa_print(&v[i].b, v[i].gens & CPS_IN_V3 ? CPS_V3 : CPS_V2, &want);
        cps_buf_putc(&want, '\n');
    }
    cps_file f;
    if (!cps_file_open("tests/golden/isa.cas", true, &f)) {
        CHECK(!"tests/golden/isa.cas is missing");
    } else {
        bool same = f.n == want.n && memcmp(f.data, want.data, f.n) == 0;
        CHECK(same);
        if (!same)
            fprintf(stderr, "tests/golden/isa.cas should read\n%s", want.data);
        CHECK(cps_isa_parse((const char *)f.data, f.n, 0, CPS_V3, diags, &back));
        CHECK_INT(back.n, n * CPS_BUNDLE_BYTES);
        for (unsigned i = 0; i < n && back.n == n * CPS_BUNDLE_BYTES; i++)
            CHECK(memcmp(back.data + i * CPS_BUNDLE_BYTES, v[i].b.b, CPS_BUNDLE_BYTES) == 0);
        cps_file_close(&f);
    }
    cps_buf_fini(&want);
    cps_buf_fini(&back);
}

static void
hand_written(void)
{
    cps_buf a = {0};
    static const char text[] = "// a comment, and an empty line\n"
                               "\n"
                               "  nop   // trailing\r\n"
                               "PSEUDO_DMA_TRIGGER queue=\"a // b\" block_id=2\n"
                               "tensor_scalar_arith src=f32@sbuf[p0][1][8] op0=multiply "
                               "imm0=1e3 dst=bfloat16@psum[p0][1][8]\n"
                               "DMA_MEMCPY src=var[7+0x40] dst=0x1000 src_step_elem=[-1,2]";
    CHECK(cps_isa_parse(text, sizeof text - 1, 0, CPS_V3, diags, &a));
    CHECK_INT(a.n, 4 * CPS_BUNDLE_BYTES);
    const cps_bundle *b = (const cps_bundle *)a.data;
    CHECK_INT(b[0].b[0], 0xA4);
    CHECK_STR((const char *)b[1].b + 12, "a // b");
    CHECK_INT(cps_isa_get(&b[1], CPS_F_PSEUDO_DMA_TRIGGER_block_id), 2);
    CHECK_INT(cps_isa_get(&b[2], CPS_F_S3D3_TS_in_dtype), 0x0A);
    CHECK_INT(cps_isa_get(&b[2], CPS_F_S3D3_TS_out_dtype), 0x06);
    CHECK_INT(cps_isa_get(&b[2], CPS_F_S3D3_TS_imm0), 0x447A0000);
    CHECK(cps_isa_get(&b[3], CPS_F_DMA_DIRECT2D_src) == (0x10ull << 56 | 7ull << 32 | 0x40));
    CHECK_INT((int32_t)cps_isa_get_elem(&b[3], CPS_F_DMA_DIRECT2D_src_step_elem, 0), -1);
    CHECK_INT(cps_diags_count(diags), 0);
    cps_buf_fini(&a);
}

// Forms of addresses and patterns, each in both directions.
static void
forms(void)
{
    static const struct {
        const char *line;
        unsigned at; // of the bytes below
        const char *bytes;
    } want[] = {
        {"COPY src=bf16@reg[5][1][8] ch=1 dst=bf16@sbuf[p0][1][8]", 12, "05000080"},
        {"COPY src=bf16@shape:sbuf[p32+0x10][3][4] ch=1 dst=bf16@sbuf[p0][1][8]", 12,
         "10008040"},
        {"COPY src=bf16@shape:reg[9][3][4] ch=1 dst=bf16@sbuf[p0][1][8]", 12, "090000c0"},
        {"COPY src=bf16@index:sbuf[p0+0x100]->sbuf[p0+0x4000][512] ch=1 "
         "dst=bf16@sbuf[p0][1][8]",
         12,
         "00010020"
         "00400000"
         "0002"
         "00000000000000000000"},
        {"COPY src=bf16@index:reg[3]->psum[p64][7] ch=1 dst=bf16@sbuf[p0][1][8]", 12,
         "030000a0"
         "00002002"
         "0700"},
        {"COPY src=bf16@index:sbuf[p0][1][2] ch=1 dst=bf16@sbuf[p0][1][8]", 12,
         "00000020"
         "0100"
         "0100"
         "0100"
         "0100"
         "0200"
         "0100"
         "0100"
         "0100"},
        {"INDIRECT_COPY src_idx=index:sbuf[p0+0x40] src=bf16@sbuf[p0] src_num_elem=16 ch=16 "
         "dst=bf16@sbuf[p0][1][8]",
         12,
         "40000020"
         "00000000"
         "1000"},
        {"LDWEIGHTS_MX src=fp8e5m2@sbuf[p0+0x80]*sbuf[p0+0x4000][64,1,4] num_active_rows=128",
         16,
         "80000000"
         "00400000"
         "4000"
         "01"
         "04"
         "00000000"},
        {"LDWEIGHTS_MX src=fp8e5m2@sbuf[p0]*sbuf[p0][64,-1,0,0x5] num_active_rows=128", 16,
         "00000000"
         "00000000"
         "4000"
         "ff"
         "00"
         "05000000"},
        {"LDWEIGHTS_MX src=fp4e2m1_x4@index:sbuf[p0]->sbuf[p0+0x80]*sbuf[p0+0x40][64,4]", 16,
         "00000020"
         "80000000"
         "40000000"
         "4000"
         "00"
         "04"},
        {"DMA_MEMCPY src=var[7+0x40] dst=sbuf[p1+0x8]", 16, "4000000007000010"},
        {"DMA_MEMCPY src=reg[4,5]", 16, "0405000000000080"},
        {"DMA_MEMCPY src=shape:reg[4,5]", 16, "04050000000000c0"},
        {"DMA_MEMCPY src=wide:reg[4,5]", 16, "0405000000000084"},
        {"DMA_MEMCPY src=table[7+0x40]", 16, "4000000007000020"},
        {"DMA_MEMCPY src=table[7+r5]", 16, "0500000007000028"},
        {"DMA_MEMCPY src=shape:table[7]", 16, "0000000007000060"},
        {"DMA_MEMCPY src=shape:0x123456789", 16, "8967452301000040"},
        {"DMA_MEMCPY src=psum[p2+0x10]", 16, "1000010200000000"},
        {"DMA_MEMCPY src=0x900000000000000a", 16, "0a00000000000090"},
        {"DMA_MEMCPY dma_configs=PRIORITY:3|0x10 src_bound_reg=REG:5|ENABLED", 12, "13"},
        {"DMA_MEMCPY src_bound_reg=REG:5|QUIET|ENABLED", 38, "c5"},
        {"DMA_INDIRECT flags=MODE:2|NON_UNIQUE_DST|GATHER_DIM:3", 15, "3a"},
        {"MATMUL src=bf16@sbuf[p0][1][8] psum_accumulate_flags=START|END|0x8 "
         "dst=psum[p0][1][8]",
         43, "0b"},
        {"MATMUL src=bf16@sbuf[p0][1][8] flags=SCALAR:2|SEED:1|TRANSPOSE dst=psum[p0][1][8]",
         42, "26"},
        {"BATCH_NORM_GRAD_ACCUMULATE2 imm0=fp32@0x40 src0=bf16@sbuf[p0][1][8] "
         "src1=bf16@sbuf[p0][1][8] dst=fp32@sbuf[p0][1][3] imm1=fp32@0x80 "
         "imm0_imm1_src=IMM0:1|IMM1:2",
         62, "21"},
    };
    for (size_t i = 0; i < cps_countof(want); i++) {
        cps_buf out = {0}, text = {0};
        CHECK(cps_isa_parse(want[i].line, strlen(want[i].line), 0, CPS_V4, diags, &out));
        CHECK_INT(out.n, CPS_BUNDLE_BYTES);
        if (out.n == CPS_BUNDLE_BYTES) {
            char hex[129];
            size_t n = strlen(want[i].bytes);
            for (unsigned k = 0; k < n / 2; k++)
                snprintf(hex + 2 * k, 3, "%02x", (uint8_t)out.data[want[i].at + k]);
            CHECK_STR(hex, want[i].bytes);
            cps_isa_print((const cps_bundle *)out.data, CPS_V4, &text);
            CHECK_STR(text.data, want[i].line);
        }
        cps_buf_fini(&out);
        cps_buf_fini(&text);
    }
}

static void
symbols(void)
{
    cps_buf a = {0}, b = {0};
    static const char text[] =
        ".set COUNT 0x10   // elements\n"
        ".set input sbuf[p32+0x100]\n"
        ".set eps 1e-6\n"
        ".set done 4\n"
        "MOVE num_mov=1 dtype=i32 source=IMMEDIATE dst_regs=[2] imm=[COUNT]\n"
        "loop:\n"
        "  CAST src=fp32@input[1][COUNT] ch=32 dst=bf16@sbuf[p0+COUNT][1][COUNT]\n"
        "  TENSOR_SCALAR_ARITH src=fp32@input[1][1] ch=32 op0=add imm0=eps "
        "dst=fp32@input[1][1] then S[done]++@complete\n"
        "  COMPARE_BRANCH cmp_op=EQ_IMM target_mode=RELATIVE_IMMEDIATE branch=out\n"
        "  COMPARE_BRANCH target_mode=RELATIVE_IMMEDIATE branch=loop\n"
        "out: NOP\n";
    static const char plain[] =
        "MOVE num_mov=1 dtype=i32 source=IMMEDIATE dst_regs=[2] imm=[16]\n"
        "CAST src=fp32@sbuf[p32+0x100][1][16] ch=32 dst=bf16@sbuf[p0+0x10][1][16]\n"
        "TENSOR_SCALAR_ARITH src=fp32@sbuf[p32+0x100][1][1] ch=32 op0=add imm0=1e-6 "
        "dst=fp32@sbuf[p32+0x100][1][1] then S[4]++@complete\n"
        "COMPARE_BRANCH cmp_op=EQ_IMM target_mode=RELATIVE_IMMEDIATE branch=2\n"
        "COMPARE_BRANCH target_mode=RELATIVE_IMMEDIATE branch=-3\n"
        "NOP\n";
    CHECK(cps_isa_parse(text, sizeof text - 1, 0, CPS_V3, diags, &a));
    CHECK(cps_isa_parse(plain, sizeof plain - 1, 0, CPS_V3, diags, &b));
    CHECK_INT(a.n, 6 * CPS_BUNDLE_BYTES);
    CHECK(a.n == b.n && memcmp(a.data, b.data, b.n) == 0);
    CHECK_INT(cps_diags_count(diags), 0);
    cps_buf_fini(&a);
    cps_buf_fini(&b);
}

static void
bad_text(void)
{
    static const struct {
        const char *line;
        cps_code code;
        const char *at; // text under the caret
    } bad[] = {
        {"FROB", CPS_E9201, "FROB"},
        {"MATMULL", CPS_E9201, "MATMULL"},
        {"=3", CPS_E9201, "="},
        {"NOP colour=3", CPS_E9202, "colour"},
        {"COPY hdr.opcode=3", CPS_E9202, "hdr.opcode"},
        {"COPY sorc=sbuf[p0][1][1]", CPS_E9202, "sorc"},
        {"COPY 12", CPS_E9203, "12"},
        {"COPY ch", CPS_E9203, "ch"},
        {"COPY ch=", CPS_E9203, NULL},
        {"COPY ch=x", CPS_E9203, "x"},
        {"COPY ch=1x", CPS_E9203, "1x"},
        {"COPY op=frob", CPS_E9203, "frob"},
        {"COPY op_dim=FROB", CPS_E9203, "FROB"},
        {"COPY src=fp33@sbuf[p0][1][1]", CPS_E9203, "fp33"},
        {"COPY src=fp32@", CPS_E9203, NULL},
        {"COPY src=sbuf[p0[1][1]", CPS_E9203, "["},
        {"COPY src=sbuf[p0][1][1]x", CPS_E9203, "x"},
        {"ACTIVATE frob", CPS_E9203, "frob"},
        {"PSEUDO_DMA_TRIGGER queue=\"abc", CPS_E9203, "\"abc"},
        {"PSEUDO_DMA_TRIGGER queue=abc", CPS_E9203, "abc"},
        {"LOAD_MASK_SELECT immediate=0x123", CPS_E9203, "0x123"},
        {"NOP wait X[1]>=2", CPS_E9203, "X[1]>=2"},
        {"NOP wait S[1]>>2", CPS_E9203, "S[1]>>2"},
        {"NOP then S[1]+=2", CPS_E9203, NULL},
        {"NOP then S[1]+=2@noon", CPS_E9203, "S[1]+=2@noon"},
        {"NOP wait2 S[1]>=2", CPS_E9203, "wait2"},
        {"COPY ch=256", CPS_E9204, "256"},
        {"COPY ch=-1", CPS_E9204, "-1"},
        {"COPY ch=99999999999999999999", CPS_E9204, "99999999999999999999"},
        {"COPY src=sbuf[p128][1][1]", CPS_E9204, "128"},
        {"COPY src=psum[p0+0x8000][1][1]", CPS_E9204, "0x8000"},
        {"COPY src=sbuf[p0][1,1,1,1,1][1,1,1,1,1]", CPS_E9204, "[1,1,1,1,1][1,1,1,1,1]"},
        {"COPY src=sbuf[p0][1,1][1]", CPS_E9204, "[1,1][1]"},
        {"COPY src=sbuf[p0][40000][1]", CPS_E9204, NULL},
        {"NOP raw[3]=1", CPS_E9204, "raw[3]=1"},
        {"PSEUDO_DMA_TRIGGER queue=\"0123456789012345678901234567890123\"", CPS_E9204, NULL},
        {"TENSOR_SCALAR_ARITH imm0=0x100000000", CPS_E9204, "0x100000000"},
        {"TENSOR_SCALAR_SELECT src0=fp32@sbuf[p0][1][1] dst=bf16@sbuf[p0][1][1]", CPS_E9205,
         NULL},
        {"NOP wait S[1]>=2 then S[3]+=5@complete", CPS_E9205, "S[3]+=5@complete"},
        {"COPY ch=3 ch=4", CPS_E9206, "ch"},
        {".bytes 0011", CPS_E9207, "0011"},
        {".bytes", CPS_E9207, NULL},
        {"COPY src=sbuf[p0]->sbuf[p0][8]", CPS_E9203, "->"},
        {"COPY src=index:sbuf[p0]->sbuf[p0][1][8]", CPS_E9203, NULL},
        {"ACTIVATION_READ_ACCUMULATOR dst=index:sbuf[p0]->sbuf[p0][8]", CPS_E9204, "[8]"},
        {"COPY src=shape:frob[1][1]", CPS_E9203, "frob[1][1]"},
        {"DMA_MEMCPY src=table[65536]", CPS_E9204, "65536"},
        {"DMA_MEMCPY src=reg[4]", CPS_E9203, "]"},
        {"MATMUL psum_accumulate_flags=START|FROB", CPS_E9203, "FROB"},
        {"MATMUL flags=SCALAR", CPS_E9203, NULL},
        {"MATMUL flags=SCALAR:4", CPS_E9204, "SCALAR:4"},
        {"LDWEIGHTS_MX src=sbuf[p0][1][8]", CPS_E9203, NULL},
        {".set", CPS_E9203, NULL},
        {".set 3 4", CPS_E9203, "3"},
        {".set a", CPS_E9203, NULL},
        {".set a 1 2", CPS_E9203, "2"},
        {"COPY ch=nowhere", CPS_E9203, "nowhere"},
    };
    for (size_t i = 0; i < cps_countof(bad); i++) {
        cps_buf out = {0};
        cps_diags_clear(diags);
        size_t n = strlen(bad[i].line);
        uint32_t file = cps_diags_source(diags, "t.cas", bad[i].line, n);
        CHECK(!cps_isa_parse(bad[i].line, n, file, CPS_V3, diags, &out));
        CHECK_INT(out.n, 0);
        bool code = cps_diags_errors(diags) == 1 && cps_diags_code(diags, 0) == bad[i].code;
        cps_buf text = {0};
        cps_diags_render(diags, &text, false);
        CHECK(code);
        if (bad[i].at) {
            // The caret run is as long as the word and starts under it.
            char mark[128] = "| ";
            size_t col = (size_t)(strstr(bad[i].line, bad[i].at) - bad[i].line);
            if (strcmp(bad[i].at, "ch") == 0 && bad[i].code == CPS_E9206)
                col = strlen("COPY ch=3 ");
            else if (strcmp(bad[i].at, "[") == 0)
                col = strlen("COPY src=sbuf[p0");
            else if (strcmp(bad[i].at, "x") == 0 && strstr(bad[i].line, "sbuf"))
                col = n - 1;
            else if (strcmp(bad[i].at, "2") == 0)
                col = n - 1;
            else if (strcmp(bad[i].at, "[8]") == 0)
                col = n - 3;
            memset(mark + 2, ' ', col);
            mark[2 + col] = '^';
            memset(mark + 3 + col, '~', strlen(bad[i].at) - 1);
            mark[2 + col + strlen(bad[i].at)] = '\n';
            mark[3 + col + strlen(bad[i].at)] = '\0';
            code = code && strstr(text.data, mark);
            CHECK(strstr(text.data, mark) != NULL);
        }
        if (!code)
            fprintf(stderr, "%s\n%s\n", bad[i].line, text.n ? text.data : "(no message)");
        cps_buf_fini(&text);
        cps_buf_fini(&out);
    }
    // A zero byte is a character like any other.
    cps_buf zero = {0};
    cps_diags_clear(diags);
    CHECK(!cps_isa_parse("NOP wait E[0]--\0\0\0\0", 19, 0, CPS_V3, diags, &zero));
    CHECK_INT(cps_diags_code(diags, 0), CPS_E9203);
    // Near misses are named.
    static const struct {
        const char *line, *help;
    } near[] = {{"MATMULL", "did you mean 'MATMUL'?"},
                {"nopp", "did you mean 'NOP'?"},
                {"COPY sorc=sbuf[p0][1][1]", "did you mean 'src'?"},
                {"COPY op_dim=FROB", "XYZW"}};
    for (size_t i = 0; i < cps_countof(near); i++) {
        cps_buf none = {0}, text = {0};
        cps_diags_clear(diags);
        CHECK(!cps_isa_parse(near[i].line, strlen(near[i].line), 0, CPS_V3, diags, &none));
        cps_diags_render(diags, &text, false);
        CHECK(text.n && strstr(text.data, near[i].help));
        cps_buf_fini(&text);
    }
    // A bad line does not hide the next one.
    cps_diags_clear(diags);
    cps_buf out = {0};
    CHECK(!cps_isa_parse("FROB\nNOP\nBRAF\n", 14, 0, CPS_V3, diags, &out));
    CHECK_INT(cps_diags_errors(diags), 2);
    CHECK_INT(out.n, CPS_BUNDLE_BYTES);
    cps_buf_fini(&out);
    cps_diags_clear(diags);
}

// Text in pieces of every size up to its own gives what the whole text gives, bundles and
// messages; and a line may not be endless.
static void
pieces(void)
{
    static const char text[] = "NOP\n\n// c\nCOPY src=fp32@sbuf[p0][1][8] ch=3 // done\r\n"
                               "FROB 1\n  NOP x=3 // why\nMATMUL wait S[4]>=1";
    size_t n = sizeof text - 1;
    cps_buf whole = {0}, said = {0};
    cps_diags_clear(diags);
    uint32_t file = cps_diags_source(diags, "t.cas", text, n);
    CHECK(!cps_isa_parse(text, n, file, CPS_V3, diags, &whole));
    cps_diags_render(diags, &said, false);
    for (size_t step = 1; step <= n; step++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_buf out = {0}, told = {0};
        cps_cas *ps = cps_isa_parser(a, "t.cas", CPS_V3, d);
        bool ok = true;
        for (size_t at = 0; at < n; at += step) {
            char copy[sizeof text]; // gone after the call, as a read buffer is
            size_t len = CPS_MIN(step, n - at);
            memcpy(copy, text + at, len);
            ok &= cps_isa_parse_piece(ps, copy, len, &out);
            memset(copy, '?', len);
        }
        ok &= cps_isa_parse_end(ps, &out);
        CHECK(!ok);
        CHECK(out.n == whole.n && memcmp(out.data, whole.data, out.n) == 0);
        cps_diags_render(d, &told, false);
        CHECK_STR(told.data, said.data);
        cps_buf_fini(&out);
        cps_buf_fini(&told);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    cps_buf_fini(&whole);
    cps_buf_fini(&said);
    cps_diags_clear(diags);

    cps_arena *a = cps_arena_create();
    cps_cas *ps = cps_isa_parser(a, "t.cas", CPS_V3, diags);
    cps_buf blanks = {0}, out = {0};
    for (unsigned i = 0; i < 1u << 16; i++)
        cps_buf_putc(&blanks, ' ');
    bool ok = cps_isa_parse_piece(ps, "NOP\n", 4, &out);
    CHECK(ok);
    for (unsigned i = 0; i < 40; i++) // 2.5 MiB
        ok &= cps_isa_parse_piece(ps, blanks.data, blanks.n, &out);
    CHECK(!ok);
    CHECK_INT(cps_diags_errors(diags), 1);
    cps_isa_parse_piece(ps, "BRAF\nNOP\nFROB", 13, &out); // BRAF ends the long line
    CHECK_INT(cps_diags_errors(diags), 1);
    CHECK(!cps_isa_parse_end(ps, &out));
    CHECK_INT(cps_diags_errors(diags), 2);
    CHECK_INT(out.n, 2 * CPS_BUNDLE_BYTES);
    cps_buf said_long = {0};
    cps_diags_render(diags, &said_long, false);
    CHECK(strstr(said_long.data, "t.cas:2:1: error: line of more than 1048576 bytes [E9208]"));
    CHECK(strstr(said_long.data, "t.cas:4:1: error: no instruction 'FROB' [E9201]"));
    cps_buf_fini(&said_long);
    cps_buf_fini(&blanks);
    cps_buf_fini(&out);
    cps_arena_destroy(a);
    cps_diags_clear(diags);
}

// Branches to labels before and after them, some far and overlapping, against the same text
// with numbers; whole, and in pieces of random size.
static void
random_labels(void)
{
    enum { LINES = 4000 };
    cps_rng r;
    cps_rng_init(&r, 7, 4);
    cps_buf text = {0}, plain = {0}, want = {0}, whole = {0}, out = {0};
    for (int i = 0; i < LINES; i++) {
        int far = cps_rng_below(&r, 50) ? 20 : LINES;
        int a = i - far + (int)cps_rng_below(&r, 2 * (unsigned)far);
        int b = i + (int)cps_rng_below(&r, 9);
        a = CPS_MAX(0, CPS_MIN(a, LINES - 1));
        b = CPS_MIN(b, LINES - 1);
        if (i % 2)
            cps_buf_printf(&text, "L%d: ", i);
        else
            cps_buf_printf(&text, "L%d: // here\n  M%d:\n", i, i);
        if (i % 3)
            cps_buf_printf(&text, "COMPARE_BRANCH branch=L%d\n", a);
        else // two names, and one of them in the second place
            cps_buf_printf(&text, "COMPARE_BRANCH branch=L%d cmp_imm=L%d // x\n", a, b);
        cps_buf_printf(&plain, "COMPARE_BRANCH branch=%d", a - i);
        if (i % 3 == 0)
            cps_buf_printf(&plain, " cmp_imm=%d", b - i);
        cps_buf_putc(&plain, '\n');
    }
    CHECK(cps_isa_parse(plain.data, plain.n, 0, CPS_V3, diags, &want));
    CHECK(cps_isa_parse(text.data, text.n, 0, CPS_V3, diags, &whole));
    CHECK(whole.n == want.n && memcmp(whole.data, want.data, want.n) == 0);
    for (unsigned k = 0; k < 20; k++) {
        cps_arena *a = cps_arena_create();
        cps_cas *ps = cps_isa_parser(a, "t.cas", CPS_V3, diags);
        out.n = 0;
        for (size_t at = 0, len; at < text.n; at += len) {
            len = 1 + cps_rng_below(&r, 1u << k % 16);
            len = CPS_MIN(len, text.n - at);
            cps_isa_parse_piece(ps, text.data + at, len, &out);
        }
        CHECK(cps_isa_parse_end(ps, &out));
        CHECK(out.n == want.n && memcmp(out.data, want.data, want.n) == 0);
        cps_arena_destroy(a);
    }
    CHECK_INT(cps_diags_count(diags), 0);
    cps_buf_fini(&text);
    cps_buf_fini(&plain);
    cps_buf_fini(&want);
    cps_buf_fini(&whole);
    cps_buf_fini(&out);
}

// Names that are used and not defined, or not in time; errors in lines that waited.
static void
bad_labels(void)
{
    static const char text[] = "COMPARE_BRANCH branch=one frob=1\n"
                               "COPY ch=two\n"
                               "NOP\n"
                               ".set two 2\n"
                               "COPY ch=two\n"
                               "one: COPY ch=three\n"
                               "COPY bias=inf\n"
                               ".set four five\n"
                               "COPY ch=one\n"
                               "one: NOP\n"
                               "five:";
    static const char *const want[] = {
        "t.cas:1:27: error: 'frob' is no operand of this instruction [E9202]",
        "t.cas:7:6: error: 'bias' is no operand of this instruction [E9202]",
        "t.cas:8:11: error: expected a number [E9203]",
        "t.cas:9:9: error: the field takes no negative number [E9204]",
        "t.cas:10:1: error: 'one' is defined twice [E9206]",
        "t.cas:2:9: error: expected a number [E9203]",
        "t.cas:6:14: error: expected a number [E9203]"};
    cps_buf out = {0}, said = {0};
    cps_diags_clear(diags);
    uint32_t file = cps_diags_source(diags, "t.cas", text, sizeof text - 1);
    CHECK(!cps_isa_parse(text, sizeof text - 1, file, CPS_V3, diags, &out));
    CHECK_INT(out.n, 3 * CPS_BUNDLE_BYTES);
    CHECK_INT(cps_diags_errors(diags), cps_countof(want));
    cps_diags_render(diags, &said, false);
    const char *at = said.data;
    for (size_t i = 0; i < cps_countof(want); i++) {
        const char *hit = at ? strstr(at, want[i]) : NULL;
        CHECK(hit != NULL); // in this order
        at = hit;
    }
    cps_buf_fini(&said);

    // The last place where a label may stand, and one further.
    for (unsigned late = 0; late < 2; late++) {
        cps_arena *a = cps_arena_create();
        cps_diags_clear(diags);
        cps_cas *ps = cps_isa_parser(a, "t.cas", CPS_V3, diags);
        cps_buf nops = {0};
        for (unsigned i = 0; i < 1024; i++)
            cps_buf_puts(&nops, "NOP\n");
        out.n = 0;
        cps_isa_parse_piece(ps, "COMPARE_BRANCH branch=far\n", 26, &out);
        for (unsigned i = 0; i < 1023; i++)
            cps_isa_parse_piece(ps, nops.data, nops.n, &out);
        cps_isa_parse_piece(ps, nops.data, nops.n - (late ? 0 : 4), &out);
        CHECK(late ? out.n > 0 : out.n == 0);
        cps_isa_parse_piece(ps, "far: NOP\n", 9, &out);
        CHECK(cps_isa_parse_end(ps, &out) == !late);
        CHECK_INT(cps_diags_errors(diags), late);
        CHECK_INT(out.n, ((1u << 20) + 1) * CPS_BUNDLE_BYTES);
        if (!late)
            CHECK_INT(cps_isa_get((const cps_bundle *)out.data, CPS_F_CTRL_BR_branch),
                      1u << 20);
        cps_buf_fini(&nops);
        cps_arena_destroy(a);
    }
    cps_buf_fini(&out);
    cps_diags_clear(diags);
}

// Damaged text gives messages, never anything worse.
static void
damaged_text(void)
{
    static golden v[128];
    unsigned n = golden_read(v, 128);
    cps_rng r;
    cps_rng_init(&r, 7, 3);
    for (unsigned k = 0; k < 20000 && n; k++) {
        cps_buf text = {0}, out = {0};
        cps_isa_print(&v[k % n].b, CPS_V3, &text);
        for (unsigned j = 0; j < 3; j++) {
            size_t at = cps_rng_below(&r, text.n);
            text.data[at] = cps_rng_below(&r, 3) ? " =[],+@.\"/0x9-"[cps_rng_below(&r, 14)]
                                                 : (char)cps_rng_below(&r, 256);
        }
        cps_isa_parse(text.data, text.n, 0, CPS_V3, diags, &out);
        CHECK(out.n % CPS_BUNDLE_BYTES == 0);
        cps_buf_fini(&text);
        cps_buf_fini(&out);
        cps_diags_clear(diags);
    }
}

int
main(void)
{
    diags = cps_diags_create();
    golden_vectors();
    every_row();
    arbitrary_bytes();
    floats();
    the_look();
    golden_listing();
    forms();
    symbols();
    hand_written();
    bad_text();
    pieces();
    random_labels();
    bad_labels();
    damaged_text();
    cps_diags_destroy(diags);
    return CHECK_DONE();
}

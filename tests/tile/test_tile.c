/* Tile level: texts print, parse and print to the same bytes; each rule of the verifier has a
 * program that breaks it and nothing else; the evaluator reports what it meets while running;
 * two thousand mutants neither crash nor change by a round trip. Numbers are oracle.py's. */
#include "codegen/isa/isa.h"
#include "codegen/isa/target.h"
#include "ir/tile.h"
#include "runtime/base/file.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

static const char sample[] =
    "copse.tile 1\n"
    "kernel @softmax_rows on trn2 core 1 of 2\n"
    "%x.1 = hbm bf16[128,64] in\n"
    "%\"odd name\".2 = hbm fp32[64,128] inout\n"
    "%y.3 = hbm bf16[128,64] out\n"
    "%w.4 = hbm fp32[2,2] data [1.0, -0.0, nan, 0x7fc00001]\n"
    "%t.5 = hbm u8[20] data\n"
    "  \"000102030405060708090a0b0c0d0e0f10111213\"\n"
    "%tmp.6 = hbm bf16[128,64] local\n"
    "%xt.7 = sbuf bf16[128,64] ring 2 turn 3 slots 3\n"
    "%8 = sbuf fp32[128,64] at 1024 parts 0 placed 0:1024\n"
    "%ps.9 = psum fp32[64,128] bank 2\n"
    "%l.10 = sbuf fp32[128,1]\n"
    "%ix.11 = sbuf i32[128,1]\n"
    "%i.12 = reg i32[]\n"
    "%m.13 = sbuf u16[128,64]\n"
    "dma_copy %xt.7[p0:128, 0, 1*64] <- %x.1[0, 64*128, 1*64] {dge=1} pin sp\n"
    "iota %ix.11[p0:128, 0, 1*1] {base=3, channel=-1, pattern=[7]} on pool\n"
    "iota %8[p0:128, 0, 1*64] {pattern=[16*4, 1*16]}\n"
    "activation %8[p0:128, 0, 1*64], %l.10[p0:128, 0] <- %xt.7[p0:128, 0, 1*64], 1.0, "
    "%l.10[p0:128, 0] {func=exp, acc=3} on act label 3\n"
    "tensor_scalar %8[p0:128, 0, 1*64] <- %8[p0:128, 63, -1*64], %l.10[p0:128, 0], _ "
    "{op0=mult, reverse=1} after 3 priority -2 round 4 stage 1\n"
    "tensor_scalar %m.13[p0:128, 0, 1*64] <- %xt.7 as u16[p0:128, 0, 1*64], 255, 3 "
    "{op0=bitwise_and, op1=logical_shift_left}\n"
    "memset %m.13[p32:32, 0, 2*32] <- -7\n"
    "memset %8[p32:32, 0, 2*32] <- inf\n"
    "nc_stream_shuffle %8[p0:64, 0, 1*64] <- %8[p64:64, 0, 1*64] {mask=[255, 0, 1, 2, 3, 4, 5, "
    "6, "
    "7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, "
    "31]}\n"
    "nc_transpose %ps.9[p0:64, 0, 1*128] <- %8[p0:128, 0, 1*64] on pe\n"
    "nc_matmul %ps.9[p0:64, 0, 1*128] <- %xt.7[p0:64, 0, 1*64], %m.13 as bf16[p0:64, 0, 0*128] "
    "{start, stop}\n"
    "register_move %i.12 <- 5\n"
    "loop %i.12 <- 0, %i.12\n"
    "  when %i.12, 3 {op0=is_lt}\n"
    "    dma_copy %tmp.6[0, 64*128, 1*2, reg %i.12*4] <- %xt.7[p0:128, 0, 1*2] {oob=0}\n"
    "  else\n"
    "    register_alu %i.12 <- %i.12, 1 {op0=add}\n"
    "  end\n"
    "end\n"
    "dma_copy %y.3[0, 64*128, 1*64, index %ix.11[p0:128, 0]] <- %xt.7[p0:128, 0, 1*64] "
    "{oob=1}\n"
    "fence\n";

static cps_tfunc *
parse(cps_arena *a, cps_diags *d, const char *text)
{
    size_t n = strlen(text);
    return cps_tile_parse(a, text, n, cps_diags_source(d, "t.cir", text, n), d);
}

static void
show(const cps_diags *d)
{
    cps_buf b = {0};
    cps_diags_render(d, &b, false);
    fprintf(stderr, "%s\n", b.data ? b.data : "");
    cps_buf_fini(&b);
}

static void
hand_written(void)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_tfunc *f = parse(a, d, sample);
    if (!f)
        show(d);
    CHECK(f);
    if (f) {
        cps_buf b = {0}, c = {0};
        cps_tile_print(f, false, &b);
        CHECK_STR(b.data, sample);
        cps_buf_fini(&b);
        CHECK_INT(f->core, 1);
        CHECK_STR(f->bufs.data[2].name, "odd name");
        CHECK_INT(f->bufs.data[7].slots, 3);
        CHECK(!f->bufs.data[8].name && f->bufs.data[8].placed && f->bufs.data[8].byte == 1024);
        CHECK_INT(((const uint8_t *)f->bufs.data[5].data)[19], 0x13);
        CHECK(f->insts.data[0].pinned && f->insts.data[0].engine == CPS_SP);
        bool ok = cps_tile_verify(f, cps_target_find("trn2"), d);
        if (!ok)
            show(d);
        CHECK(ok);
        // With places: they come back.
        cps_tile_print(f, true, &b);
        CHECK(strstr(b.data, " loc 1:"));
        cps_tfunc *g = parse(a, d, b.data);
        CHECK(g);
        if (g) {
            cps_tile_print(g, true, &c);
            CHECK_STR(c.data, b.data);
            // Names and places do not count.
            g->name = "other";
            g->bufs.data[1].name = "renamed";
            cps_digest x = cps_tile_digest(f), y = cps_tile_digest(g);
            CHECK(cps_digest_eq(&x, &y));
            g->insts.data[0].engine = CPS_ACT;
            y = cps_tile_digest(g);
            CHECK(!cps_digest_eq(&x, &y));
        }
        cps_buf_fini(&b);
        cps_buf_fini(&c);
    }
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

/* ---- random programs, for the text alone ---- */

static int64_t
below(cps_rng *r, int64_t n)
{
    return (int64_t)cps_rng_below(r, (uint64_t)n);
}

static uint32_t
random_view(cps_rng *r, cps_tfunc *f, bool inner)
{
    cps_tview v = {.buf = (uint32_t)(1 + below(r, f->bufs.n - 2)), .off = below(r, 100) - 5};
    v.dtype = (cps_dtype)(1 + below(r, CPS_DT_COUNT - 1));
    if (below(r, 2))
        v.dtype = f->bufs.data[v.buf].dtype;
    if (below(r, 3))
        v.part = (uint16_t)below(r, 128), v.parts = (uint16_t)(1 + below(r, 128));
    v.nd = (int)below(r, CPS_TILE_DIMS + 1);
    for (int i = 0; i < v.nd; i++)
        v.d[i] = (cps_tdim){below(r, 1000) - 500, below(r, 600)};
    if (below(r, 5) == 0)
        v.reg = f->bufs.n - 1, v.reg_step = below(r, 9) - 4;
    if (!inner && below(r, 6) == 0)
        v.index = random_view(r, f, true) + 1;
    return cps_tile_view(f, v);
}

static cps_toper
random_oper(cps_rng *r, cps_tfunc *f)
{
    static const float odd[] = {0, -0.0f, 1e-45f, 3.4e38f, INFINITY, -INFINITY, NAN, 0.1f};
    cps_toper o = {0};
    uint32_t bits;
    switch (below(r, 6)) {
    case 0:
        return o;
    case 1:
        o = cps_to_imm(odd[below(r, cps_countof(odd))]);
        return o;
    case 2:
        bits = (uint32_t)cps_rng_next(r);
        memcpy(&o.imm, &bits, sizeof bits);
        o.kind = CPS_TO_IMM;
        return o;
    case 3:
        o.kind = CPS_TO_IMM;
        o.is_int = true;
        o.ival = (int64_t)cps_rng_next(r) >> below(r, 64);
        return o;
    case 4:
        o.kind = CPS_TO_REG;
        o.id = f->bufs.n - 1;
        return o;
    default:
        return cps_to_view(random_view(r, f, false));
    }
}

static void
random_attrs(cps_rng *r, cps_tfunc *f, cps_tinst *x)
{
    for (int k = 0; k < CPS_TATTRS; k++) {
        if (below(r, 8))
            continue;
        int32_t v = (int32_t)cps_rng_next(r);
        switch ((cps_tattr_kind)cps_tattrs[k].kind) {
        case CPS_TK_FLAG:
            v = below(r, 4) ? 1 : 0;
            break;
        case CPS_TK_ALU:
            v = below(r, 4) ? CPS_ALU_MULT : v;
            break;
        case CPS_TK_FUNC:
            v = below(r, 4) ? CPS_ACTFN_GELU : v;
            break;
        case CPS_TK_INTS: {
            cps_tlist l = {.n = (int)below(r, 9)};
            int filled = below(r, 2) ? l.n : 2 * l.n;
            for (int i = 0; i < filled; i++)
                l.v[i] = i < l.n ? (int32_t)cps_rng_next(r) : 1 + (int32_t)below(r, 99);
            cps_vec_push(f->arena, &f->lists, l);
            v = (int32_t)f->lists.n - 1;
            break;
        }
        case CPS_TK_INT:
            break;
        }
        cps_tinst_set(x, (cps_tattr_key)k, v);
    }
}

static cps_tfunc *
random_func(cps_arena *a, uint64_t seed)
{
    static const char *const names[] = {NULL, "x", "a.b", "q\"\\\n", "9", "_", "p0"};
    cps_rng r;
    cps_rng_init(&r, seed, 3);
    cps_tfunc *f =
        cps_tile_new(a, below(&r, 2) ? "leaf" : "a leaf", below(&r, 2) ? "trn2" : "x.xml");
    for (int i = 0; i < 6; i++) {
        cps_tbuf b = {.name = names[below(&r, cps_countof(names))],
                      .space = (cps_space)below(&r, 3),
                      .pin_byte = -1,
                      .pin_bank = -1,
                      .pin_part = -1,
                      .rank = 2,
                      .dim = {1 + below(&r, 128), below(&r, 40)}};
        b.dtype = (cps_dtype)(1 + below(&r, CPS_DT_COUNT - 1));
        b.role = b.space == CPS_HBM ? (cps_role)below(&r, 5) : CPS_LOCAL;
        if (b.role == CPS_DATA) {
            int64_t n = cps_tbuf_bytes(&b);
            uint8_t *p = cps_arena_alloc(a, (size_t)n + 1);
            for (int64_t k = 0; k < n; k++)
                p[k] = b.dtype == CPS_DT_BOOL ? below(&r, 2) : (uint8_t)cps_rng_next(&r);
            if (b.dtype == CPS_DT_FP4E2M1)
                memset(p, 0, (size_t)n);
            b.data = p;
        }
        if (below(&r, 2))
            b.ring = (uint32_t)(1 + below(&r, 9)), b.turn = (uint32_t)below(&r, 9);
        b.slots = (uint16_t)below(&r, 4);
        if (below(&r, 3) == 0)
            b.pin_byte = (int32_t)below(&r, 9999), b.pin_bank = (int32_t)below(&r, 8);
        if (below(&r, 3) == 0)
            b.placed = true, b.byte = (uint32_t)below(&r, 99999),
            b.part = (uint16_t)below(&r, 96);
        cps_tile_buf(f, b);
    }
    cps_tile_buf(f, (cps_tbuf){.name = "i",
                               .space = CPS_REG,
                               .dtype = CPS_DT_I32,
                               .pin_byte = -1,
                               .pin_bank = -1,
                               .pin_part = -1});
    for (int i = 0; i < 30; i++) {
        cps_top op = (cps_top)(1 + below(&r, CPS_TOPS - 1));
        cps_tinst x = *cps_tile_inst(f, op, CPS_NOSPAN);
        const cps_toprow *row = &cps_tops[op];
        x.nout = row->nout_max ? (uint8_t)(1 + below(&r, row->nout_max)) : 0;
        x.nin = row->nin_max ? (uint8_t)(1 + below(&r, row->nin_max)) : 0;
        for (int k = 0; k < x.nout; k++)
            x.out[k] = random_oper(&r, f);
        for (int k = 0; k < x.nin; k++)
            x.in[k] = random_oper(&r, f);
        random_attrs(&r, f, &x);
        if (below(&r, 2))
            x.engine = (uint8_t)below(&r, CPS_ENGINES), x.pinned = below(&r, 2);
        x.label = below(&r, 4) ? 0 : (uint32_t)(1 + below(&r, 99));
        x.after = below(&r, 4) ? 0 : (uint32_t)(1 + below(&r, 99));
        x.priority = (int32_t)below(&r, 5) - 2;
        x.round = (int32_t)below(&r, 3) - 1;
        x.stage = (int32_t)below(&r, 3) - 1;
        f->insts.data[f->insts.n - 1] = x;
    }
    return f;
}

static void
random_programs(void)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_tfunc *f = random_func(a, seed);
        cps_buf one = {0}, two = {0};
        cps_tile_print(f, false, &one);
        cps_tfunc *g = parse(a, d, one.data);
        if (!g)
            show(d);
        CHECK(g);
        if (g) {
            cps_tile_print(g, false, &two);
            CHECK_STR(two.data, one.data);
            cps_digest x = cps_tile_digest(f), y = cps_tile_digest(g);
            CHECK(cps_digest_eq(&x, &y));
            cps_tile_verify(g, cps_target_find("trn2"), d); // says something; does not crash
        }
        cps_buf_fini(&one);
        cps_buf_fini(&two);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
}

/* ---- rules ---- */

// Declarations that every case shares; `%` names without numbers.
#define HEAD(target) "copse.tile 1\nkernel @k on " target " core 0 of 1\n" DECLS
#define DECLS                                                                                  \
    "%x = hbm fp32[128,512] in %y = hbm fp32[128,512] out %h = hbm bf16[512,128] in "          \
    "%q = hbm i64[128] in %a = sbuf fp32[128,512] %b = sbuf fp32[128,512] %c = sbuf "          \
    "fp32[128,1] "                                                                             \
    "%d = sbuf bf16[128,512] %e = sbuf bf16[128,512] %p = psum fp32[128,512] "                 \
    "%r = psum fp32[128,512] %u = sbuf u16[128,512] %v = sbuf i32[128,512] "                   \
    "%w = sbuf fp8e4m3fn[128,512] %z = psum bf16[128,512] %k = sbuf fp4e2m1_x4[128,512] "      \
    "%n = sbuf u8[128,512] %i = reg i32[]\n"
#define FULL "[p0:128, 0, 1*512]"
#define COL "[p0:128, 0]"

static const struct {
    const char *target, *body, *code;
} rules[] = {
    // arity, roles, attributes
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL " {op0=add}", "E5101"},
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL ", 1.0 {op0=add}", "E5101"},
    {"trn2", "memset %a" FULL " <- %b" FULL, "E5101"},
    {"trn2", "loop %a" FULL " <- 0, 3\nend", "E5101"},
    {"trn2", "register_move %i <- 1.5", "E5101"},
    {"trn2", "register_move %i <- 3000000000", "E5101"},
    {"trn2", "reciprocal %a" FULL " <- %b" FULL " {op0=add}", "E5101"},
    {"trn2", "tensor_copy %a[p0:128, 0, 1*512, index %v" COL "] <- %b" FULL, "E5101"},
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL ", %a" FULL, "E5110"},
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL ", %a" FULL " {op0=99}", "E5110"},
    {"trn2", "activation %a" FULL " <- %b" FULL ", _, _ {func=250}", "E5110"},
    {"trn2", "activation %a" FULL " <- %b" FULL ", _, _ {func=exp, acc=4}", "E5110"},
    {"trn2", "nc_stream_shuffle %a" FULL " <- %b" FULL, "E5110"},
    {"trn2", "nc_stream_shuffle %a" FULL " <- %b" FULL " {mask=[1, 2]}", "E5110"},
    {"trn2", "iota %a" FULL " {pattern=[1, 2]}", "E5110"},
    {"trn2", "iota %a" FULL " {pattern=[1*500]}", "E5110"},
    {"trn2", "tensor_reduce %c" COL " <- %b" FULL " {op0=is_gt, axes=1}", "E5110"},
    {"trn2", "tensor_reduce %c" COL " <- %b" FULL " {op0=add, axes=2}", "E5110"},
    {"trn2",
     "tensor_scalar_reduce %a" FULL ", %c" COL " <- %b" FULL ", 1.0 {op0=add, red=abs_diff}",
     "E5110"},
    {"trn3", "affine_select %a" FULL " <- %b" FULL ", 0.0 {op0=mult}", "E5110"},
    {"trn2", "tensor_scalar %v" FULL " <- %v" FULL ", 1, 2 {op0=bitwise_and, op1=add}",
     "E5110"},
    {"trn2", "tensor_scalar %v" FULL " <- %v" FULL ", 1, _ {op0=add_int}", "E5110"},
    {"trn2", "when 1, 2 {op0=add}\nend", "E5110"},
    {"trn2", "register_alu %i <- 1, 2 {op0=pow}", "E5110"},
    {"trn2", "fence after 7", "E5110"},
    // engines
    {"trn2", "nc_matmul %p" FULL " <- %d[p0:128, 0, 1*128], %e" FULL " {start} on act",
     "E5102"},
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL ", %p" FULL " {op0=add} on pool", "E5102"},
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL ", %a" FULL " {op0=pow} on dve", "E5102"},
    {"trn2", "tensor_tensor %a" FULL " <- %p" FULL ", %a" FULL " {op0=pow}", "E5102"},
    {"trn2", "tensor_scalar %a" FULL " <- %b" FULL ", 1.0, _ {op0=max} on act", "E5102"},
    {"trn1", "tensor_scalar %a" FULL " <- %b" FULL ", 1.0, _ {op0=mult} on act", "E5102"},
    {"trn2", "tensor_scalar %v" FULL " <- %v" FULL ", 1, _ {op0=bitwise_and} on act", "E5102"},
    {"trn1", "tensor_copy %v" FULL " <- %v" FULL " on act", "E5102"},
    {"trn2", "nc_transpose %p" FULL "<- %a[p0:128, 0, 1*128] on act", "E5107"},
    {"trn2", "nc_transpose %a[p0:128, 0, 1*128] <- %b[p0:128, 0, 1*128] on pe", "E5102"},
    // memories
    {"trn2", "tensor_copy %x[0, 512*128, 1*512] <- %b" FULL, "E5103"},
    {"trn2", "dma_copy %p" FULL " <- %x[0, 512*128, 1*512]", "E5103"},
    {"trn2", "nc_matmul %a" FULL " <- %d[p0:128, 0, 1*128], %e" FULL " {start}", "E5103"},
    {"trn2", "nc_matmul %p" FULL " <- %z[p0:128, 0, 1*128], %e" FULL " {start}", "E5103"},
    {"trn2", "register_load %i <- %p as i32[p0:1, 0]", "E5103"},
    {"trn2", "tensor_tensor %a" FULL " <- %p" FULL ", %r" FULL " {op0=add}", "E5104"},
    {"trn2",
     "scalar_tensor_tensor %a" FULL " <- %p" FULL ", 1.0, %r" FULL " {op0=add, op1=add}",
     "E5104"},
    // partitions
    {"trn2", "tensor_copy %a[p0:32, 0, 1*512] <- %b[p16:32, 0, 1*512]", "E5105"},
    {"trn2", "tensor_copy %a[p0:64, 0, 1*512] <- %b[p32:64, 0, 1*512]", "E5105"},
    {"trn2", "tensor_copy %a[p0:96, 0, 1*512] <- %b[p32:96, 0, 1*512]", "E5105"},
    {"trn2",
     "nc_matmul %p[p0:64, 0, 1*512] <- %d[p0:32, 0, 1*64], %e[p32:32, 0, 1*512] {start}",
     "E5105"},
    // bounds
    {"trn2", "tensor_copy %a[p0:128, 1, 1*512] <- %b" FULL, "E5106"},
    {"trn2", "tensor_copy %a[p0:128, 510, -1*512] <- %b" FULL, "E5106"},
    {"trn2", "tensor_copy %a[p64:128, 0, 1*512] <- %b" FULL, "E5106"},
    {"trn2", "tensor_copy %a[0, 1*512] <- %b" FULL, "E5106"},
    {"trn2", "tensor_copy %a as u16[p0:128, 513, 1*512] <- %u" FULL, "E5106"},
    {"trn2", "dma_copy %a" FULL " <- %x[1, 512*128, 1*512]", "E5106"},
    {"trn2", "dma_copy %a" FULL " <- %x[p0:1, 0, 512*128, 1*512]", "E5106"},
    // counts
    {"trn2", "tensor_copy %a[p0:128, 0, 1*511] <- %b" FULL, "E5107"},
    {"trn2", "tensor_copy %a[p0:64, 0, 1*512] <- %b" FULL, "E5107"},
    {"trn2", "tensor_copy %a[p0:128, 0, 1*0] <- %b[p0:128, 0, 1*0]", "E5107"},
    {"trn2", "tensor_scalar %a" FULL " <- %b" FULL ", %c[p0:64, 0], _ {op0=add}", "E5107"},
    {"trn2", "tensor_scalar %a" FULL " <- %b" FULL ", %b[p0:128, 0, 1*2], _ {op0=add}",
     "E5107"},
    {"trn2", "dma_copy %a" FULL " <- %x[0, 512*128, 1*511]", "E5107"},
    {"trn2", "nc_matmul %p" FULL " <- %d[p0:128, 0, 1*127], %e" FULL " {start}", "E5107"},
    {"trn2", "nc_matmul %p" FULL " <- %d[p0:64, 0, 1*128], %e" FULL " {start}", "E5107"},
    {"trn2", "tensor_reduce %c" COL " <- %b[p0:128, 0, 256*2, 1*256] {op0=add, axes=1}",
     "E5107"},
    {"trn2", "bn_stats %a[p0:128, 0, 1*5] <- %b" FULL, "E5107"},
    {"trn2", "bn_aggr %a[p0:128, 0, 1*2] <- %b[p0:128, 0, 1*7]", "E5107"},
    {"trn2", "max8 %a[p0:128, 0, 1*8] <- %b[p0:128, 0, 1*7]", "E5107"},
    {"trn2", "nc_find_index8 %u[p0:128, 0, 1*8] <- %b" FULL ", %a[p0:128, 0, 1*7]", "E5107"},
    {"trn2", "tensor_partition_reduce %c[p0:2, 0] <- %b" FULL " {op0=add}", "E5107"},
    {"trn2", "nc_transpose %a[p0:32, 0, 1*48] <- %b[p0:48, 0, 1*32] on dve", "E5107"},
    {"trn2", "dma_copy %a[p0:64, 0, 1*512] <- %x[0, 512*64, 1*512, index %v" COL "]", "E5107"},
    {"trn2", "register_load %i <- %v" FULL, "E5107"},
    // dtypes
    {"trn2", "dma_copy %a[p0:128, 0] <- %q[0, 1*128]", "E5108"},
    {"trn2", "dma_copy %a" FULL " <- %k" FULL, "E5108"},
    {"trn2", "dma_transpose %a[p0:128, 0, 1*512] <- %h[0, 128*512, 1*128]", "E5108"},
    {"trn2", "dma_copy %y[0, 1*512] <- %v[p0:1, 0, 1*512] {accumulate}", "E5108"},
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL ", %k" FULL " {op0=add}", "E5108"},
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL ", %w" FULL " {op0=add}", "E5108"},
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL ", %v" FULL " {op0=bitwise_and}", "E5108"},
    {"trn2", "tensor_tensor %v" FULL " <- %u" FULL ", %v" FULL " {op0=bitwise_and}", "E5108"},
    {"trn2", "nc_matmul %p" FULL " <- %u[p0:128, 0, 1*128], %u" FULL " {start}", "E5108"},
    {"trn2", "nc_matmul %p" FULL " <- %d[p0:128, 0, 1*128], %a" FULL " {start}", "E5108"},
    {"trn2", "nc_matmul %z" FULL " <- %d[p0:128, 0, 1*128], %e" FULL " {start}", "E5108"},
    {"trn3", "nc_matmul %p" FULL " <- %w[p0:128, 0, 1*128], %n as fp8e4m3" FULL " {start}",
     "E5108"},
    {"trn2", "nc_matmul %p" FULL " <- %w[p0:128, 0, 1*128], %w" FULL " {start}", "E5108"},
    {"trn2",
     "nc_matmul %p[p0:128, 0, 1*128] <- %d[p0:128, 0, 1*128], %e[p0:128, 0, 1*128] "
     "{start, transpose}",
     "E5108"},
    {"trn2", "nc_transpose %p[p0:128, 0, 1*128] <- %d[p0:128, 0, 1*128]", "E5108"},
    {"trn2", "tensor_copy_predicated %a" FULL " <- %b" FULL ", %a" FULL, "E5108"},
    {"trn2", "select_reduce %a" FULL " <- %v" FULL ", %b" FULL ", 0.0", "E5108"},
    {"trn2", "range_select %a" FULL " <- %v" FULL ", 0.0, 1.0 {op0=is_ge, op1=is_lt}", "E5108"},
    {"trn2", "nc_find_index8 %n[p0:128, 0, 1*8] <- %b" FULL ", %a[p0:128, 0, 1*8]", "E5108"},
    {"trn2", "dma_copy %a" FULL " <- %x[0, 512*128, 1*512, index %u" COL "]", "E5108"},
    {"trn2",
     "nc_matmul %p[p0:64, 0, 1*512] <- %d[p0:128, 0, 64*2, 1*64], "
     "%h[0, 128*128, 1*8] {start, perf=1}",
     "E5103"},
    // limits of the PE
    {"trn2",
     "nc_matmul %p[p0:128, 0, 1*512, 0*2] <- %d[p0:128, 0, 1*128], %e[p0:128, 0, 1*512, 0*2] "
     "{start}",
     "E5109"},
    {"trn2",
     "nc_matmul %p as fp32[p0:128, 4, 1*510] <- %d[p0:128, 0, 1*128], %e[p0:128, 0, 1*510] "
     "{start}",
     "E5106"},
    // generations
    {"trn1", "range_select %a" FULL " <- %b" FULL ", 0.0, 1.0 {op0=is_ge, op1=is_lt}", "E5111"},
    {"trn1",
     "nc_matmul %z[p0:128, 0, 1*128] <- %d[p0:128, 0, 1*128], %e[p0:128, 0, 1*128] "
     "{start, transpose}",
     "E5111"},
    {"trn1",
     "nc_matmul %p[p0:64, 0, 1*64] <- %n as fp8e4m3[p0:128, 0, 64*2, 1*64], "
     "%n as fp8e4m3[p0:128, 0, 64*2, 1*64] {start, perf=1}",
     "E5111"},
    {"trn2", "tensor_tensor %a" FULL " <- %b" FULL ", %a" FULL " {op0=abs_max}", "E5111"},
    {"trn1", "activation %a" FULL " <- %b" FULL ", _, %c" COL " {func=reciprocal}", "E5111"},
    {"trn1", "dma_copy %a" FULL " <- %x[0, 512*128, 1*512] {dge=2}", "E5111"},
    // control
    {"trn2", "loop %i <- 0, 3", "E5112"},
    {"trn2", "end", "E5112"},
    {"trn2", "else", "E5112"},
    {"trn2", "loop %i <- 0, 3\nelse\nend", "E5112"},
    {"trn2", "when 1, 2 {op0=is_lt}\nelse\nelse\nend", "E5112"},
};

static const struct {
    const char *target, *decl, *code;
} buffers[] = {
    {"trn2", "%a = sbuf fp32[129,4]", "E5113"},
    {"trn2", "%a = sbuf fp32[]", "E5113"},
    {"trn2", "%a = sbuf fp32[128,60000] at 0", "E5113"},
    {"trn1", "%a = sbuf fp32[128,50000] placed 0:0", "E5113"},
    {"trn2", "%a = psum fp32[128,4097]", "E5113"},
    {"trn2", "%a = psum fp32[128,512] bank 8", "E5113"},
    {"trn2", "%a = sbuf fp32[128,512] bank 1", "E5113"},
    {"trn2", "%a = sbuf fp32[128,512] at 211000", "E5113"},
    {"trn2", "%a = sbuf fp32[64,512] parts 96", "E5113"},
    {"trn2", "%a = reg fp32[]", "E5113"},
    {"trn2", "%a = reg i32[2]", "E5113"},
    {"trn2", "%a = hbm fp32[100] data", "E5113"},
};

static void
broken(const char *target, const char *text, const char *code)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_tfunc *f = parse(a, d, text);
    const char *got = "no text";
    if (f) {
        bool ok = cps_tile_verify(f, cps_target_find(target), d);
        got = ok                        ? "sound"
              : cps_diags_count(d) == 1 ? cps_diag_rows[cps_diags_code(d, 0)].name
                                        : "several";
    }
    if (strcmp(got, code) != 0) {
        fprintf(stderr, "%s\n", strrchr(text, '\n') ? text + strlen(HEAD("trn2")) : text);
        show(d);
    }
    CHECK_STR(got, code);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

static void
verifier(void)
{
    cps_buf b = {0};
    for (size_t i = 0; i < cps_countof(rules); i++) {
        b.n = 0;
        cps_buf_printf(&b, "%s%s\n", HEAD("trn2"), rules[i].body);
        broken(rules[i].target, b.data, rules[i].code);
    }
    for (size_t i = 0; i < cps_countof(buffers); i++) {
        b.n = 0;
        cps_buf_printf(&b, "copse.tile 1\nkernel @k on trn2 core 0 of 1\n%s\n",
                       buffers[i].decl);
        broken(buffers[i].target, b.data, buffers[i].code);
    }
    // A pattern across two banks.
    broken("trn2",
           "copse.tile 1\nkernel @k on trn2 core 0 of 1\n%p = psum fp32[128,1024]\n"
           "%d = sbuf bf16[128,512]\n"
           "nc_matmul %p[p0:128, 256, 1*512] <- %d[p0:128, 0, 1*128], %d" FULL " {start}\n",
           "E5109");
    b.n = 0;
    for (int i = 0; i < 65; i++)
        cps_buf_puts(&b, i ? "loop %i <- 0, 1\n"
                           : "copse.tile 1\nkernel @k on trn2 core 0 of 1\n"
                             "%i = reg i32[]\n");
    cps_buf_puts(&b, "loop %i <- 0, 1\n");
    for (int i = 0; i < 65; i++)
        cps_buf_puts(&b, "end\n");
    broken("trn2", b.data, "E5112");
    cps_buf_fini(&b);
}

static void
bad_texts(void)
{
#define K "copse.tile 1\nkernel @k on trn2 core 0 of 1\n"
    static const struct {
        const char *text, *code;
    } cases[] = {
        {"copse.graph 1\n", "E9107"},
        {"copse.tile 1\nkernel k on trn2 core 0 of 1", "E9101"},
        {"copse.tile 1\nkernel @k trn2 core 0 of 1", "E9101"},
        {"copse.tile 1\nkernel @k on trn2 core 0 of 0", "E9104"},
        {K "%a = hbm fp32[2]", "E9101"},
        {K "%a = vram fp32[2]", "E9101"},
        {K "%a = sbuf fp99[2]", "E9102"},
        {K "%a = sbuf fp32[2,2]\n%a = sbuf fp32[2,2]", "E9103"},
        {K "%a = sbuf fp32[2,2] ring 1", "E9101"},
        {K "%a = sbuf fp32[2,2] slots 70000", "E9104"},
        {K "%a = hbm u8[4] data \"0011\"", "E9104"},
        {K "%a = hbm u8[2] data \"001122\"", "E9104"},
        {K "%a = hbm u8[2] data \"0g11\"", "E9104"},
        {K "%a = hbm u8[3] data \"00112\"", "E9104"},
        {K "%a = hbm u8[99999999999] data \"00\"", "E9104"},
        {K "%a = hbm u8[99999] data [1]", "E9105"},
        {K "nop", "E9102"},
        {K "fence 1, 2, 3", "E9105"},
        {K "memset %a[p0:1, 0] <- 1.0", "E9102"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:0, 0] <- 1.0", "E9104"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[q0:1, 0] <- 1.0", "E9101"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0, 1*1, 1*1, 1*1, 1*1, 1*1, 1*1, 1*1] <- 1.0",
         "E9105"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0, 1] <- 1.0", "E9101"},
        {K
         "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0, index %a[p0:1, 0, index %a[p0:1, 0]]] <- 1.0",
         "E9101"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0] <- 1.0, 2.0, 3.0, 4.0", "E9105"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0] <- 1.0,", "E9101"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0] <- 1.0 {op9=add}", "E9102"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0] <- 1.0 {op0=adds}", "E9102"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0] <- 1.0 {op0=add, op0=add}", "E9103"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0] <- 1.0 {pattern=[1*2, 3]}", "E9101"},
        {K "%a = sbuf fp32[2,2]\nmemset %a[p0:1, 0] <- 1.0 on dsp", "E9102"},
    };
    for (size_t i = 0; i < cps_countof(cases); i++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        CHECK(!parse(a, d, cases[i].text));
        const char *got = cps_diags_count(d) == 1 ? cps_diag_rows[cps_diags_code(d, 0)].name
                                                  : "not one message";
        if (strcmp(got, cases[i].code) != 0)
            fprintf(stderr, "case %zu: %s\n", i, cases[i].text);
        CHECK_STR(got, cases[i].code);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
}

/* ---- what the evaluator meets ---- */

static void
runs(const char *body, const char *code)
{
    static float x[128 * 512], y[128 * 512];
    static uint16_t h[512 * 128];
    static int64_t q[128];
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_buf b = {0};
    for (int i = 0; i < 128 * 512; i++)
        x[i] = (float)(i % 97) - 3, y[i] = 0;
    for (int i = 0; i < 128; i++)
        q[i] = i;
    cps_buf_printf(&b, "%s%s\n", HEAD("trn2"), body);
    cps_tfunc *f = parse(a, d, b.data);
    CHECK(f);
    const char *got = "";
    if (f && cps_tile_eval(f, (void *[]){x, y, h, q}, d))
        got = "fine";
    else if (cps_diags_count(d) == 1)
        got = cps_diag_rows[cps_diags_code(d, 0)].name;
    if (strcmp(got, code) != 0) {
        fprintf(stderr, "%s\n", body);
        show(d);
    }
    CHECK_STR(got, code);
    cps_buf_fini(&b);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

static void
evaluator(void)
{
#define LOAD "dma_copy %a" FULL " <- %x[0, 512*128, 1*512]\n"
    runs(LOAD "dma_copy %y[0, 512*128, 1*512] <- %a" FULL, "fine");
    runs("dma_copy %y[0, 512*128, 1*512] <- %a" FULL, "E8101");
    // One element is missing, in the last partition.
    runs("memset %a[p0:96, 0, 1*512] <- 0.0\nmemset %a[p96:32, 0, 1*511] <- 0.0\n"
         "tensor_copy %b" FULL " <- %a" FULL,
         "E8101");
    runs("memset %a[p0:128, 0, 2*256] <- 0.0\ntensor_copy %b[p0:128, 0, 1*256] <- %a[p0:128, "
         "0, 2*256]",
         "fine");
    runs("memset %a[p0:128, 0, 2*256] <- 0.0\ntensor_copy %b[p0:128, 0, 1*256] <- %a[p0:128, "
         "1, 2*256]",
         "E8101");
    // Half of an fp32 through a view of another dtype.
    runs("memset %a as u16[p0:128, 0, 2*512] <- 0\ntensor_copy %b" FULL " <- %a" FULL, "E8101");
    runs("dma_copy %a" FULL " <- %y[0, 512*128, 1*512]", "E8101");
    runs("nc_matmul %p[p0:8, 0, 1*8] <- %d[p0:8, 0, 1*8], %e[p0:8, 0, 1*8] {start}", "E8101");
    runs("memset %d" FULL " <- 1.0\nnc_matmul %p" FULL " <- %d[p0:128, 0, 1*128], %d" FULL
         " {stop}",
         "E8101");
    runs("memset %n" FULL " <- 0\nmemset %b" FULL " <- 0.0\n"
         "tensor_copy_predicated %a" FULL " <- %n" FULL ", %b" FULL "\n"
         "tensor_copy %b" FULL " <- %a" FULL,
         "E8101");
    runs("register_alu %i <- %i, 1 {op0=add}", "E8101");
    runs(LOAD "tensor_copy %b" FULL " <- %a[p0:128, 0, 1*512, reg %i*1]", "E8101");
    runs(LOAD "register_move %i <- 1\ntensor_copy %b" FULL " <- %a[p0:128, 0, 1*512, reg %i*1]",
         "E8102");
    runs(LOAD "register_move %i <- -1\ntensor_copy %b[p0:128, 0, 1*8] <- %a[p0:128, 8, 1*8, "
              "reg %i*8]",
         "fine");
    runs("memset %v" FULL " <- 128\ndma_copy %a" FULL " <- %x[0, 512*128, 1*512, index %v" COL
         "]",
         "E8102");
    runs("memset %v" FULL " <- 128\ndma_copy %a" FULL " <- %x[0, 512*128, 1*512, index %v" COL
         "] {oob=1}",
         "fine");
    // A left-out row was not written.
    runs("memset %v" FULL " <- 128\ndma_copy %a" FULL " <- %x[0, 512*128, 1*512, index %v" COL
         "] {oob=1}\ntensor_copy %b" FULL " <- %a" FULL,
         "E8101");
    runs(LOAD "activation %b" FULL " <- %a" FULL ", _, _ {func=exp, acc=2}", "E8104");
    runs(LOAD "memset %d" FULL " <- 1.0\n"
              "nc_matmul %z[p0:128, 0, 1*128] <- %d[p0:128, 0, 1*128], %d[p0:128, 0, 1*128] "
              "{start, transpose}",
         "E8104");
    runs("loop %i <- 0, 3\nfence\nend\nloop %i <- 3, -3\nmemset %a" FULL " <- %i\nend",
         "E5101");
    runs("loop %i <- 0, 2000000000\nfence\nend", "E8103");
    runs("register_move %i <- 0\nwhen %i, 0 {op0=is_ne}\ndma_copy %y[0, 512*128, 1*512] <- "
         "%a" FULL "\nend",
         "fine");
}

/* ---- many tiles, one after the other ---- */

static void
unrolled(void)
{
    // 3000 tiles of 128 KiB: what was used last must go.
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_tfunc *f = cps_tile_new(a, "k", "trn2");
    cps_tbuf h = {.name = "x",
                  .space = CPS_HBM,
                  .role = CPS_IN,
                  .dtype = CPS_DT_FP32,
                  .rank = 2,
                  .dim = {128, 256},
                  .pin_byte = -1,
                  .pin_bank = -1,
                  .pin_part = -1};
    uint32_t x = cps_tile_buf(f, h);
    h.role = CPS_OUT;
    uint32_t y = cps_tile_buf(f, h);
    for (uint32_t i = 0; i < 3000; i++) {
        cps_tbuf b = {.space = CPS_SBUF,
                      .dtype = CPS_DT_FP32,
                      .rank = 2,
                      .dim = {128, 256},
                      .ring = 1,
                      .turn = i,
                      .pin_byte = -1,
                      .pin_bank = -1,
                      .pin_part = -1};
        uint32_t t = cps_tile_buf(f, b);
        cps_tview in = {.buf = x, .dtype = CPS_DT_FP32, .nd = 2, .d = {{256, 128}, {1, 256}}};
        cps_tview on = {.buf = t, .dtype = CPS_DT_FP32, .parts = 128, .nd = 1, .d = {{1, 256}}};
        cps_tview out = in;
        out.buf = y;
        cps_tinst *l = cps_tile_inst(f, CPS_T_DMA, CPS_NOSPAN);
        l->nout = l->nin = 1;
        l->out[0] = cps_to_view(cps_tile_view(f, on));
        l->in[0] = cps_to_view(cps_tile_view(f, in));
        cps_tinst *s = cps_tile_inst(f, CPS_T_DMA, CPS_NOSPAN);
        s->nout = s->nin = 1;
        s->out[0] = cps_to_view(cps_tile_view(f, out));
        s->in[0] = f->insts.data[f->insts.n - 2].out[0];
    }
    float *in = malloc(128 * 256 * 4), *out = malloc(128 * 256 * 4);
    for (int i = 0; i < 128 * 256; i++)
        in[i] = (float)i;
    CHECK(cps_tile_verify(f, cps_target_find("trn2"), d));
    CHECK(cps_tile_eval(f, (void *[]){in, out}, d));
    CHECK(memcmp(in, out, 128 * 256 * 4) == 0);
    free(in);
    free(out);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

/* ---- mutants ---- */

static void
mutate(cps_rng *r, char *text, size_t *len, size_t room)
{
    bool numbers = cps_rng_below(r, 2); // of half of them only numbers change: most parse
    for (uint64_t k = 1 + cps_rng_below(r, 3); k; k--) {
        size_t at = cps_rng_below(r, *len), cut = cps_rng_below(r, 20);
        while (numbers && (text[at] < '0' || text[at] > '9'))
            at = (at + 1) % *len;
        switch (numbers ? 9 : cps_rng_below(r, 4)) {
        case 9:
            text[at] = (char)('0' + cps_rng_below(r, 10));
            break;
        case 0:
            text[at] = (char)cps_rng_next(r);
            break;
        case 1:
            text[at] = "0123456789[]{}%@,:=\"\\-.*p"[cps_rng_below(r, 25)];
            break;
        case 2:
            cut = CPS_MIN(cut, *len - at);
            memmove(text + at, text + at + cut, *len - at - cut);
            *len -= CPS_MIN(cut, *len - 1);
            break;
        default:
            cut = CPS_MIN(CPS_MIN(cut, *len - at), room - *len);
            memmove(text + at + cut, text + at, *len - at);
            *len += cut;
        }
    }
    text[*len] = 0;
}

static bool
has_loop(const cps_tfunc *f)
{
    for (uint32_t i = 0; i < f->insts.n; i++)
        if (f->insts.data[i].op == CPS_T_LOOP)
            return true;
    return false;
}

// Arguments as large as the mutant claims, when that is reasonable.
static void
run_mutant(const cps_tfunc *f, cps_diags *d)
{
    void *args[32];
    unsigned n = 0;
    int64_t total = 0;
    for (uint32_t i = 1; i < f->bufs.n; i++)
        total += cps_tbuf_bytes(&f->bufs.data[i]) * (f->bufs.data[i].space ? 128 : 1);
    if (total > 1 << 27 || has_loop(f))
        return;
    for (uint32_t i = 1; i < f->bufs.n && n < 32; i++) {
        const cps_tbuf *b = &f->bufs.data[i];
        if (b->space == CPS_HBM && b->role != CPS_LOCAL && b->role != CPS_DATA)
            args[n++] = calloc((size_t)cps_tbuf_bytes(b) + 1, 1);
    }
    cps_tile_eval(f, args, d);
    while (n)
        free(args[--n]);
}

static void
mutants(void)
{
    cps_rng r;
    size_t parsed = 0, sound = 0;
    // Without the loop, so that mutants can be executed.
    char *base = malloc(sizeof sample);
    memcpy(base, sample, sizeof sample);
    char *from = strstr(base, "register_move"), *to = strstr(base, "dma_copy %y.3");
    memmove(from, to, strlen(to) + 1);
    size_t n = strlen(base);
    cps_rng_init(&r, 43, 0);
    for (int i = 0; i < 2000; i++) {
        char *text = malloc(n + 65);
        size_t len = n;
        memcpy(text, base, n);
        mutate(&r, text, &len, n + 64);
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_tfunc *f = cps_tile_parse(a, text, len, cps_diags_source(d, "m", text, len), d);
        CHECK(f || cps_diags_errors(d) == 1);
        if (f) {
            cps_buf one = {0}, two = {0};
            parsed++;
            cps_tile_print(f, false, &one);
            cps_tfunc *g = parse(a, d, one.data);
            CHECK(g);
            if (g) {
                cps_tile_print(g, false, &two);
                CHECK_STR(two.data, one.data);
            }
            sound += cps_tile_verify(f, cps_target_find("trn2"), d);
            run_mutant(f, d); // refuses what has no sound structure
            cps_buf_fini(&one);
            cps_buf_fini(&two);
        }
        cps_diags_destroy(d);
        cps_arena_destroy(a);
        free(text);
    }
    if (parsed <= 400 || sound <= 50)
        fprintf(stderr, "%zu of the mutants parse, %zu are sound\n", parsed, sound);
    CHECK(parsed > 400 && sound > 50);
    free(base);
}

// The example of IR.md is what the printer prints, and a sound program.
static void
documented(void)
{
    cps_file f;
    CHECK(cps_file_open("ir/IR.md", true, &f));
    const char *from = strstr((const char *)f.data, "\ncopse.tile 1\n");
    const char *to = from ? strstr(from, "\n```") : NULL;
    CHECK(to);
    if (to) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_tfunc *t = cps_tile_parse(a, from + 1, (size_t)(to - from), 0, d);
        CHECK(t);
        cps_buf b = {0};
        if (t)
            cps_tile_print(t, false, &b);
        CHECK(t && cps_tile_verify(t, cps_target_find("trn2"), d));
        CHECK(b.n == (size_t)(to - from) && memcmp(b.data, from + 1, b.n) == 0);
        cps_buf_fini(&b);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    cps_file_close(&f);
}

static void
rows(void)
{
    for (int i = 1; i < CPS_TOPS; i++) {
        const cps_toprow *t = &cps_tops[i];
        CHECK_INT(cps_top_find(t->name), i);
        CHECK_INT(strlen(t->outs), t->nout_max);
        CHECK_INT(strlen(t->ins), t->nin_max);
    }
    CHECK_INT(cps_top_find("nothing"), CPS_T_NONE);
}

int
main(void)
{
    rows();
    documented();
    hand_written();
    random_programs();
    verifier();
    bad_texts();
    evaluator();
    unrolled();
    mutants();
    return CHECK_DONE();
}

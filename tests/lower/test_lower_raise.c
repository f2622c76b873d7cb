/* Masks and rotary tables in the spellings of exporters, not folded: what `raise` makes of each
 * with the shipped registry, and that the graph computes the same before and after. */
#include "codegen/isa/target.h"
#include "frontend/dsl/registry.h"
#include "lower/lower.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <math.h>

typedef struct spelling {
    const char *mask; // lines that define %m, of 6 queries and 6 keys
    const char *bits; // or the elements of a constant, row by row
    const char *use;  // lines from the scores %s and %m to %z
    int window;       // -1: no operator has this mask, it stays a subgraph
} spelling;

#define ADD "  %z = add %s, %m : fp32[2,6,6]\n"
#define KEEP "  %z = select %m, %s, %low : fp32[2,6,6]\n"
#define HIDE "  %z = select %m, %low, %s : fp32[2,6,6]\n"
#define IJ                                                                                     \
    "  %i = index {axis=0, dtype=i32, shape=[6, 1]} : i32[6,1]\n"                              \
    "  %j = index {axis=1, dtype=i32, shape=[1, 6]} : i32[1,6]\n"
#define RANGES                                                                                 \
    "  %r = const i32[6] [0, 1, 2, 3, 4, 5]\n"                                                 \
    "  %i = reshape %r {shape=[6, 1]} : i32[6,1]\n"                                            \
    "  %j = reshape %r {shape=[1, 6]} : i32[1,6]\n"
#define TRILU(op, by)                                                                          \
    "  %i = index {axis=0, dtype=i32, shape=[6, 6]} : i32[6,6]\n"                              \
    "  %j = index {axis=1, dtype=i32, shape=[6, 6]} : i32[6,6]\n"                              \
    "  %d = sub %j, %i : i32[6,6]\n"                                                           \
    "  %by = const i32[] [" by "]\n"                                                           \
    "  %c = " op " %d, %by : bool[6,6]\n"

static const spelling spellings[] = {
    {NULL, "100000 110000 111000 111100 111110 111111", KEEP, 0},
    {NULL, "011111 001111 000111 000011 000001 000000", HIDE, 0},
    {NULL,
     "100000 110000 111000 111100 111110 111111 100000 110000 111000 111100 111110 111111",
     KEEP, 0},
    {NULL, "100000 110000 011000 001100 000110 000011", KEEP, 2},
    {TRILU("ge", "1") "  %full = broadcast %low {shape=[6, 6]} : fp32[6,6]\n  %nil = const "
                      "fp32[] [0.0]\n"
                      "  %m = select %c, %full, %nil : fp32[6,6]\n",
     NULL, ADD, 0},
    {TRILU("le", "0") "  %nil = const fp32[] [0.0]\n  %m = select %c, %nil, %low : fp32[6,6]\n",
     NULL, ADD, 0},
    {IJ "  %m = le %j, %i : bool[6,6]\n", NULL, KEEP, 0},
    {RANGES "  %m = ge %i, %j : bool[6,6]\n", NULL, KEEP, 0},
    {RANGES "  %m = lt %i, %j : bool[6,6]\n", NULL, HIDE, 0},
    {RANGES "  %n = lt %i, %j : bool[6,6]\n  %m = not %n : bool[6,6]\n", NULL, KEEP, 0},
    {RANGES "  %n = lt %i, %j : bool[6,6]\n  %f = cast %n {dtype=fp32} : fp32[6,6]\n"
            "  %m = mul %f, %low : fp32[6,6]\n",
     NULL, ADD, 0},
    // a window as exporters of sliding attention write it
    {RANGES
     "  %a = le %j, %i : bool[6,6]\n  %w = const i32[] [3]\n  %l = sub %i, %w : i32[6,1]\n"
     "  %b = gt %j, %l : bool[6,6]\n  %m = and %a, %b : bool[6,6]\n",
     NULL, KEEP, 3},
    {IJ "  %d = sub %i, %j : i32[6,6]\n  %z0 = const i32[] [0]\n  %w = const i32[] [4]\n  %a = "
        "ge %d, %z0 : bool[6,6]\n"
        "  %b = lt %d, %w : bool[6,6]\n  %m = and %a, %b : bool[6,6]\n",
     NULL, KEEP, 4},
    // not the triangle: one key further, one nearer, the wrong side, two rows, a hole, a half
    {TRILU("le", "1") "  %nil = const fp32[] [0.0]\n  %m = select %c, %nil, %low : fp32[6,6]\n",
     NULL, ADD, -1},
    {IJ "  %m = lt %j, %i : bool[6,6]\n", NULL, KEEP, -1},
    {IJ "  %m = ge %j, %i : bool[6,6]\n", NULL, KEEP, -1},
    {NULL,
     "100000 110000 111000 111100 111110 111111 100000 110000 111000 111100 110110 111111",
     KEEP, -1},
    {NULL, "100000 110000 111000 101100 111110 111111", KEEP, -1},
    {NULL, "100000 110000 011000 011100 000110 000011", KEEP, -1},
    {RANGES "  %n = lt %i, %j : bool[6,6]\n  %f = cast %n {dtype=fp32} : fp32[6,6]\n"
            "  %h = const fp32[] [-0.5]\n  %m = mul %f, %h : fp32[6,6]\n",
     NULL, ADD, -1},
    // integers that wrap and floats that round: true above the diagonal as well
    {"  %i = index {axis=0, dtype=u32, shape=[6, 6]} : u32[6,6]\n"
     "  %j = index {axis=1, dtype=u32, shape=[6, 6]} : u32[6,6]\n"
     "  %d = sub %i, %j : u32[6,6]\n  %nil = const u32[] [0]\n  %m = ge %d, %nil : bool[6,6]\n",
     NULL, KEEP, -1},
    {IJ "  %w = const i32[] [100]\n  %a = mul %i, %w : i32[6,1]\n  %b = mul %j, %w : i32[1,6]\n"
        "  %c = cast %a {dtype=i8} : i8[6,1]\n  %d = cast %b {dtype=i8} : i8[1,6]\n  %m = ge "
        "%c, %d : bool[6,6]\n",
     NULL, KEEP, -1},
    {IJ "  %w = const bf16[] [256.0]\n  %a = cast %i {dtype=bf16} : bf16[6,1]\n  %b = cast %j "
        "{dtype=bf16} : bf16[1,6]\n"
        "  %c = add %a, %w : bf16[6,1]\n  %d = add %b, %w : bf16[1,6]\n  %m = ge %c, %d : "
        "bool[6,6]\n",
     NULL, KEEP, -1},
};

typedef struct table {
    const char *text; // lines that define %cos and %sin for x[1,2,3,4], positions along axis 2
    unsigned ropes;
} table;

#define HALVES "  %x2 = concat %f, %f {axis=1} : fp32[3,4]\n"
#define COSSIN                                                                                 \
    "  %c0 = cos %x2 : fp32[3,4]\n  %s0 = sin %x2 : fp32[3,4]\n"                               \
    "  %cos = reshape %c0 {shape=[1, 1, 3, 4]} : fp32[1,1,3,4]\n"                              \
    "  %sin = reshape %s0 {shape=[1, 1, 3, 4]} : fp32[1,1,3,4]\n"
#define GATHERED(last)                                                                         \
    "  %ct = const fp32[5,4] [1.0,2.0,1.0,2.0, 3.0,4.0,3.0,4.0, 5.0,6.0,5.0,6.0, "             \
    "7.0,8.0,7.0,8.0, " last "]\n"                                                             \
    "  %c0 = gather %ct, %pos {axis=0} : fp32[1,3,4]\n"                                        \
    "  %cos = reshape %c0 {shape=[1, 1, 3, 4]} : fp32[1,1,3,4]\n"                              \
    "  %sin = neg %cos : fp32[1,1,3,4]\n"

static const table tables[] = {
    {HALVES COSSIN, 1},
    {"  %x2 = concat %f, %f2 {axis=1} : fp32[3,4]\n" COSSIN, 0},
    {"  %ct = const fp32[5,4] [1.0,2.0,1.0,2.0, 3.0,4.0,3.0,4.0, 5.0,6.0,5.0,6.0, "
     "7.0,8.0,7.0,8.0, 1.5,2.5,1.5,2.5]\n"
     "  %st = const fp32[5,4] [9.0,2.0,9.0,2.0, 3.0,8.0,3.0,8.0, 5.0,6.0,5.0,6.0, "
     "7.0,8.0,7.0,8.0, 1.5,2.5,1.5,2.5]\n"
     "  %c0 = gather %ct, %pos {axis=0} : fp32[1,3,4]\n  %s0 = gather %st, %pos {axis=0} : "
     "fp32[1,3,4]\n"
     "  %cos = reshape %c0 {shape=[1, 1, 3, 4]} : fp32[1,1,3,4]\n"
     "  %sin = reshape %s0 {shape=[1, 1, 3, 4]} : fp32[1,1,3,4]\n",
     1},
    {GATHERED("1.5,2.5,1.5,2.25"), 0},
};

typedef struct run {
    cps_arena *a;
    cps_diags *d;
    cps_module *m;
    cps_registry *reg;
    cps_lower_opts o;
    cps_tensor *in;
} run;

static bool
eval(run *r, cps_tensor *out)
{
    cps_eval_opts e = {.threads = 1, .call = cps_lower_eval, .user = &r->o};
    return cps_ir_eval(r->a, r->m, r->m->funcs.data[0], r->in, out, &e, r->d);
}

static void
inputs(run *r)
{
    const cps_func *f = r->m->funcs.data[0];
    cps_rng g;
    cps_rng_init(&g, 5, 1);
    r->in = cps_new_array(r->a, cps_tensor, f->inputs.n + 1);
    for (uint32_t i = 0; i < f->inputs.n; i++) {
        cps_tensor *x = &r->in[i];
        x->type = f->vals.data[f->inputs.data[i]].type;
        size_t n = (size_t)cps_type_count(&x->type);
        x->f = cps_dtype_is_float(x->type.dtype) ? cps_new_array(r->a, double, n + 1) : NULL;
        x->i = x->f ? NULL : cps_new_array(r->a, int64_t, n + 1);
        for (size_t k = 0; k < n; k++)
            if (x->f)
                x->f[k] = cps_round_f64(CPS_DT_FP32, cps_rng_normal(&g));
            else
                x->i[k] = (int64_t)cps_rng_below(&g, 5);
    }
}

/* Raises the graph of the lines; the first result before and after is compared. */
static void
raised(run *r, const char *lines)
{
    *r = (run){.a = cps_arena_create(), .d = cps_diags_create()};
    r->reg = cps_dsl_registry_create(r->a, r->d);
    r->o = (cps_lower_opts){.registry = r->reg,
                            .target = cps_target_find("trn2"),
                            .cores = 1,
                            .auto_cast = "none",
                            .cast_type = CPS_DT_BF16,
                            .passes = "raise",
                            .verify_each = true};
    const char *text =
        cps_arena_printf(r->a, "copse.graph 1\nmodule \"t\"\nfunc @main {\n%s}\n", lines);
    uint32_t src = cps_diags_source(r->d, "t.cir", text, strlen(text));
    r->m = cps_ir_parse(r->a, text, strlen(text), src, r->d, NULL, NULL);
    cps_tensor want = {0}, got = {0};
    bool ok = r->m != NULL;
    if (ok) {
        inputs(r);
        ok = eval(r, &want) && cps_lower_select(r->m, &r->o, r->d) && eval(r, &got);
    }
    CHECK(ok);
    if (!ok) {
        cps_buf b = {0};
        cps_diags_render(r->d, &b, false);
        fprintf(stderr, "%s%s", text, b.data ? b.data : "");
        cps_buf_fini(&b);
        return;
    }
    double top = 0, worst = 0;
    for (int64_t i = 0; i < cps_type_count(&want.type); i++) {
        top = fmax(top, fabs(want.f[i]));
        worst = fmax(worst, fabs(want.f[i] - got.f[i]));
    }
    CHECK(top > 0 && worst <= 1e-6 * top);
}

static void
end(run *r)
{
    cps_dsl_registry_destroy(r->reg);
    cps_diags_destroy(r->d);
    cps_arena_destroy(r->a);
}

static const cps_node *
call(const run *r, const char *callee, unsigned *count)
{
    const cps_node *found = NULL;
    const cps_func *f = r->m ? r->m->funcs.data[0] : NULL;
    *count = 0;
    for (uint32_t i = 0; f && i < f->nodes.n; i++)
        if (f->nodes.data[i].op == CPS_OP_CALL &&
            strcmp(f->nodes.data[i].callee, callee) == 0) {
            found = &f->nodes.data[i];
            ++*count;
        }
    return found;
}

/* The constant as text. */
static const char *
bools(cps_arena *a, const char *bits)
{
    cps_buf b = {0};
    for (const char *p = bits; *p; p++)
        if (*p != ' ')
            cps_buf_printf(&b, "%s%s", b.n ? ", " : "", *p == '1' ? "true" : "false");
    const char *text = cps_arena_printf(a, "  %%m = const bool[%s6,6] [%s]\n",
                                        strlen(bits) > 41 ? "2," : "", b.data);
    cps_buf_fini(&b);
    return text;
}

static void
test_masks(void)
{
    for (size_t i = 0; i < cps_countof(spellings); i++) {
        const spelling *p = &spellings[i];
        cps_arena *a = cps_arena_create();
        run r;
        unsigned n;
        char lines[4096];
        snprintf(
            lines, sizeof lines,
            "  input %%q: fp32[2,6,4]\n  input %%key: fp32[2,6,4]\n  input %%v: fp32[2,6,4]\n"
            "  %%low = const fp32[] [-1.0e9]\n%s"
            "  %%kt = transpose %%key {perm=[0, 2, 1]} : fp32[2,4,6]\n  %%s = matmul %%q, %%kt "
            ": fp32[2,6,6]\n%s"
            "  %%x = reduce_max %%z {axes=[2], keep=true} : fp32[2,6,1]\n  %%y = sub %%z, %%x "
            ": fp32[2,6,6]\n"
            "  %%e = exp %%y : fp32[2,6,6]\n  %%t = reduce_sum %%e {axes=[2], keep=true} : "
            "fp32[2,6,1]\n"
            "  %%p = div %%e, %%t : fp32[2,6,6]\n  %%o = matmul %%p, %%v : fp32[2,6,4]\n  "
            "output \"o\" %%o\n",
            p->mask ? p->mask : bools(a, p->bits), p->use);
        raised(&r, lines);
        const cps_node *c = call(&r, "attention", &n);
        if (n != (p->window >= 0))
            fprintf(stderr, "mask %zu\n", i);
        CHECK_INT(n, p->window >= 0);
        if (c) {
            CHECK_INT(cps_attr_int(c->attr, c->nattr, "causal", 0), 1);
            CHECK_INT(cps_attr_int(c->attr, c->nattr, "window", 0), p->window);
        }
        end(&r);
        cps_arena_destroy(a);
    }
}

/* Doubled thirty times: operands with two readers are no reason to look at them 2^30 times. */
static void
test_shared(void)
{
    cps_buf b = {0};
    cps_buf_puts(&b,
                 "  input %q: fp32[2,6,4]\n  input %k: fp32[2,4,6]\n  input %v: fp32[2,6,4]\n"
                 "  %low = const fp32[] [-1.0e9]\n" IJ "  %m0 = le %j, %i : bool[6,6]\n");
    for (int i = 0; i < 30; i++)
        cps_buf_printf(&b, "  %%m%d = and %%m%d, %%m%d : bool[6,6]\n", i + 1, i, i);
    cps_buf_puts(
        &b, "  %s = matmul %q, %k : fp32[2,6,6]\n  %z = select %m30, %s, %low : fp32[2,6,6]\n"
            "  %x = reduce_max %z {axes=[2], keep=true} : fp32[2,6,1]\n  %y = sub %z, %x : "
            "fp32[2,6,6]\n"
            "  %e = exp %y : fp32[2,6,6]\n  %t = reduce_sum %e {axes=[2], keep=true} : "
            "fp32[2,6,1]\n"
            "  %p = div %e, %t : fp32[2,6,6]\n  %o = matmul %p, %v : fp32[2,6,4]\n  output "
            "\"o\" %o\n");
    run r;
    unsigned n;
    raised(&r, b.data);
    call(&r, "attention", &n);
    CHECK_INT(n, 0);
    end(&r);
    cps_buf_fini(&b);
}

static void
test_tables(void)
{
    for (size_t i = 0; i < cps_countof(tables); i++)
        for (int order = 0; order < 4; order++) { // of the factors
            run r;
            unsigned n;
            char lines[4096];
            snprintf(lines, sizeof lines,
                     "  input %%x: fp32[1,2,3,4]\n  input %%pos: i32[1,3]\n  input %%f: "
                     "fp32[3,2]\n  input %%f2: fp32[3,2]\n%s"
                     "  %%lo = slice %%x {start=[0, 0, 0, 0], stop=[1, 2, 3, 2], step=[1, 1, "
                     "1, 1]} : fp32[1,2,3,2]\n"
                     "  %%hi = slice %%x {start=[0, 0, 0, 2], stop=[1, 2, 3, 4], step=[1, 1, "
                     "1, 1]} : fp32[1,2,3,2]\n"
                     "  %%n = neg %%hi : fp32[1,2,3,2]\n  %%r = concat %%n, %%lo {axis=3} : "
                     "fp32[1,2,3,4]\n"
                     "  %%a = mul %s : fp32[1,2,3,4]\n  %%b = mul %s : fp32[1,2,3,4]\n"
                     "  %%y = add %%a, %%b : fp32[1,2,3,4]\n  output \"y\" %%y\n",
                     tables[i].text, order & 1 ? "%cos, %x" : "%x, %cos",
                     order & 2 ? "%sin, %r" : "%r, %sin");
            raised(&r, lines);
            call(&r, "rope", &n);
            if (n != tables[i].ropes)
                fprintf(stderr, "table %zu\n", i);
            CHECK_INT(n, tables[i].ropes);
            end(&r);
        }
}

int
main(void)
{
    test_masks();
    test_shared();
    test_tables();
    return CHECK_DONE();
}

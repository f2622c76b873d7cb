/* Builders and shape rules: the type of every op on chosen operands, and a diagnostic with its
 * code for each way to misuse one. */
#include "ir/build.h"
#include "tests/check.h"

#include <stdlib.h>

typedef struct fix {
    cps_arena *a;
    cps_diags *d;
    cps_builder b;
} fix;

static fix
begin(void)
{
    fix x = {.a = cps_arena_create(), .d = cps_diags_create()};
    cps_module *m = cps_module_new(x.a, "m");
    x.b = (cps_builder){.m = m, .f = cps_func_new(m, "main"), .d = x.d};
    return x;
}

static void
end(fix *x)
{
    cps_diags_destroy(x->d);
    cps_arena_destroy(x->a);
}

// "bf16[2,3]" as an input.
static cps_val
in(fix *x, const char *text)
{
    const char *br = strchr(text, '[');
    cps_type t = {.dtype = cps_dtype_parse(text, (size_t)(br - text))};
    for (const char *p = br + 1; *p && *p != ']';) {
        char *e;
        t.dim[t.rank++] = strtoll(p, &e, 10);
        p = *e == ',' ? e + 1 : e;
    }
    return cps_b_input(&x->b, "x", t);
}

static const char *
type_of(fix *x, cps_val v)
{
    cps_buf b = {0};
    if (!v)
        return "none";
    cps_type_print(cps_b_type(&x->b, v), &b);
    const char *s = cps_arena_strdup(x->a, b.data);
    cps_buf_fini(&b);
    return s;
}

#define INTS(key, ...)                                                                         \
    cps_a_ints(key, sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

// One op on up to three operand types; the text of the first result's type, or the error's
// code.
static void
rule_at(int line, cps_op op, const char *operands, int nattr, const cps_attr *attr,
        const char *want)
{
    fix x = begin();
    char buf[128];
    cps_val v[4], out[2];
    int n = 0;
    snprintf(buf, sizeof buf, "%s", operands);
    for (char *p = strtok(buf, " "); p; p = strtok(NULL, " "))
        v[n++] = in(&x, p);
    const char *got;
    if (cps_b_node(&x.b, op, n, v, nattr, attr, out))
        got = type_of(&x, out[0]);
    else
        got = cps_diags_count(x.d) == 1 ? cps_diag_rows[cps_diags_code(x.d, 0)].name : "silent";
    check_ran++;
    if (strcmp(got, want) != 0) {
        check_failed++;
        fprintf(stderr, "line %d: %s(%s) gives %s, want %s\n", line, cps_ops[op].name, operands,
                got, want);
        cps_buf b = {0};
        cps_diags_render(x.d, &b, false);
        fprintf(stderr, "%s\n", b.data ? b.data : "");
        cps_buf_fini(&b);
    }
    end(&x);
}
#define RULE(op, operands, want, ...)                                                          \
    rule_at(__LINE__, CPS_OP_##op, operands, (int)cps_countof(((cps_attr[]){__VA_ARGS__})),    \
            (cps_attr[]){__VA_ARGS__}, want)
#define RULE0(op, operands, want) rule_at(__LINE__, CPS_OP_##op, operands, 0, NULL, want)

static void
types(void)
{
    RULE0(NEG, "bf16[2,3]", "bf16[2,3]");
    RULE0(EXP, "i32[2]", "E7102");
    RULE0(NOT, "fp32[2]", "E7102");
    RULE0(NOT, "bool[2]", "bool[2]");
    RULE0(ISNAN, "fp32[2]", "bool[2]");
    RULE0(ADD, "fp32[2,3] fp32[3]", "fp32[2,3]");
    RULE0(ADD, "fp32[3] fp32[2,1]", "fp32[2,3]");
    RULE0(ADD, "fp32[] fp32[]", "fp32[]");
    RULE0(ADD, "fp32[0,3] fp32[1,3]", "fp32[0,3]");
    RULE0(ADD, "fp32[2,3] fp32[2]", "E7103");
    RULE0(ADD, "fp32[2] bf16[2]", "E7102");
    RULE0(ADD, "fp32[2]", "E7101");
    RULE0(LT, "i64[4,1] i64[5]", "bool[4,5]");
    RULE0(SELECT, "bool[4,1] fp32[5] fp32[]", "fp32[4,5]");
    RULE0(SELECT, "i32[4] fp32[4] fp32[4]", "E7102");
    RULE(CAST, "fp32[2]", "i8[2]", cps_a_dtype("dtype", CPS_DT_I8));
    RULE(CAST, "fp32[2]", "E7105", cps_a_dtype("dtype", CPS_DT_FP4E2M1_X4));
    RULE(CAST, "fp32[2]", "E7104", cps_a_int("dtype", 3));
    RULE0(CAST, "fp32[2]", "E7104");
    RULE(NEG, "fp32[2]", "E7104", cps_a_int("axis", 0));
    RULE(SUM, "fp32[2,3,4]", "fp32[2,4]", INTS("axes", 1), cps_a_bool("keep", false));
    RULE(SUM, "fp32[2,3,4]", "fp32[1,3,1]", INTS("axes", -1, 0), cps_a_bool("keep", true));
    RULE(SUM, "fp32[2,3,4]", "E7105", INTS("axes", 1, 1), cps_a_bool("keep", true));
    RULE(SUM, "fp32[2,3,4]", "E7105", INTS("axes", 3), cps_a_bool("keep", true));
    RULE(RMAX, "fp32[2,0]", "E7103", INTS("axes", 1), cps_a_bool("keep", true));
    RULE0(MATMUL, "fp32[2,3] fp32[3,4]", "fp32[2,4]");
    RULE0(MATMUL, "fp32[5,1,2,3] fp32[7,3,4]", "fp32[5,7,2,4]");
    RULE0(MATMUL, "fp32[3,4] fp32[7,2,4,5]", "fp32[7,2,3,5]");
    RULE0(MATMUL, "fp32[2,3] fp32[4,4]", "E7103");
    RULE0(MATMUL, "fp32[3] fp32[3,4]", "E7103");
    RULE0(MATMUL, "fp32[2,2,3] fp32[3,3,4]", "E7103");
    RULE(RESHAPE, "fp32[2,6]", "fp32[3,4]", INTS("shape", 3, 4));
    RULE(RESHAPE, "fp32[2,6]", "E7103", INTS("shape", 5));
    RULE(RESHAPE, "fp32[2,6]", "E7106", INTS("shape", -3, -4));
    RULE(RESHAPE, "fp32[2]", "E7106", INTS("shape", 1, 1, 1, 1, 1, 1, 1, 1, 2));
    RULE(TRANSPOSE, "fp32[2,3,4]", "fp32[4,2,3]", INTS("perm", 2, 0, 1));
    RULE(TRANSPOSE, "fp32[2,3]", "E7105", INTS("perm", 0, 0));
    RULE(TRANSPOSE, "fp32[2,3]", "E7105", INTS("perm", 0));
    RULE(BROADCAST, "fp32[3,1]", "fp32[2,3,4]", INTS("shape", 2, 3, 4));
    RULE(BROADCAST, "fp32[3]", "E7103", INTS("shape", 3, 2));
    RULE(BROADCAST, "fp32[3,2]", "E7103", INTS("shape", 2));
    RULE(BROADCAST, "fp32[1,1]", "E7106", INTS("shape", 1 << 24, 1 << 24));
    RULE(SLICE, "fp32[10,4]", "fp32[3,4]", INTS("start", 1, 3), INTS("stop", 9, -1),
         INTS("step", 3, -1));
    RULE(SLICE, "fp32[10]", "E7105", INTS("start", 1), INTS("stop", 11), INTS("step", 1));
    RULE(SLICE, "fp32[10]", "E7105", INTS("start", 1), INTS("stop", 5), INTS("step", 0));
    RULE(SLICE, "fp32[10]", "E7105", INTS("start", 10), INTS("stop", 5), INTS("step", -1));
    RULE(SLICE, "fp32[10]", "fp32[0]", INTS("start", 4), INTS("stop", 4), INTS("step", 1));
    RULE(CONCAT, "fp32[2,3] fp32[2,5]", "fp32[2,8]", cps_a_int("axis", -1));
    RULE(CONCAT, "fp32[2,3] fp32[1,5]", "E7103", cps_a_int("axis", 1));
    RULE(CONCAT, "fp32[2,3] fp32[2]", "E7103", cps_a_int("axis", 1));
    RULE(CONCAT, "fp32[2] bf16[2]", "E7102", cps_a_int("axis", 0));
    RULE(CONCAT, "fp32[2]", "E7105", cps_a_int("axis", 1));
    RULE(PAD, "fp32[2,3] fp32[]", "fp32[3,8]", INTS("lo", 0, 2), INTS("hi", 1, 3));
    RULE(PAD, "fp32[2] fp32[1]", "E7103", INTS("lo", 0), INTS("hi", 1));
    RULE(PAD, "fp32[2] fp32[]", "E7105", INTS("lo", -1), INTS("hi", 1));
    RULE(REPEAT, "fp32[2,3]", "fp32[8,3]", cps_a_int("axis", 0), cps_a_int("n", 4));
    RULE(REPEAT, "fp32[2,3]", "E7105", cps_a_int("axis", 0), cps_a_int("n", -4));
    RULE(INDEX, "", "i32[2,3]", INTS("shape", 2, 3), cps_a_int("axis", 1),
         cps_a_dtype("dtype", CPS_DT_I32));
    RULE(INDEX, "", "E7105", INTS("shape", 2, 3), cps_a_int("axis", 2),
         cps_a_dtype("dtype", CPS_DT_I32));
    RULE(INDEX, "", "E7105", INTS("shape", 2), cps_a_int("axis", 0),
         cps_a_dtype("dtype", CPS_DT_BOOL));
    RULE(GATHER, "fp32[5,6] i64[2,3]", "fp32[5,2,3]", cps_a_int("axis", 1));
    RULE(GATHER, "fp32[5,6] i64[]", "fp32[5]", cps_a_int("axis", 1));
    RULE(GATHER, "fp32[5,6] fp32[2]", "E7102", cps_a_int("axis", 1));
    RULE(GATHER, "fp32[1,1,1,1,1] i32[1,1,1,1,1]", "E7106", cps_a_int("axis", 1));
    RULE(GATHER_ELEMS, "fp32[5,6] i64[2,9]", "fp32[2,9]", cps_a_int("axis", 1));
    RULE(GATHER_ELEMS, "fp32[5,6] i64[6,9]", "E7103", cps_a_int("axis", 1));
    RULE(GATHER_ELEMS, "fp32[5,6] i64[6]", "E7103", cps_a_int("axis", 1));
    RULE(SCATTER, "fp32[5,6] i32[2] fp32[2,6]", "fp32[5,6]", cps_a_int("axis", 0),
         cps_a_bool("add", false));
    RULE(SCATTER, "fp32[5,6] i32[2] fp32[3,6]", "E7103", cps_a_int("axis", 0),
         cps_a_bool("add", false));
    RULE(SCATTER, "bool[5] i32[2] bool[2]", "E7102", cps_a_int("axis", 0),
         cps_a_bool("add", true));
    RULE(CUMSUM, "fp32[5,6]", "fp32[5,6]", cps_a_int("axis", -1));
    RULE(CUMSUM, "fp32[5,6]", "fp32[5,6]", cps_a_int("axis", 0), cps_a_bool("exclusive", true),
         cps_a_bool("reverse", true));
    RULE(CUMSUM, "fp32[]", "E7105", cps_a_int("axis", 0));
    RULE(SORT, "bf16[5,6]", "bf16[5,6]", cps_a_int("axis", 1), cps_a_bool("descending", true));
}

static void
builders(void)
{
    fix x = begin();
    cps_val p = in(&x, "fp32[2,3]"), q = in(&x, "fp32[4]");
    cps_val bad = cps_b_binary(&x.b, CPS_OP_ADD, p, q);
    CHECK_INT(bad, 0);
    CHECK_INT(cps_diags_count(x.d), 1);
    // One mistake, one message.
    CHECK_INT(cps_b_unary(&x.b, CPS_OP_EXP, bad), 0);
    CHECK_INT(cps_b_reshape(&x.b, bad, 1, (int64_t[]){6}), 0);
    CHECK_INT(cps_b_select(&x.b, bad, p, p), 0);
    CHECK_INT(cps_diags_count(x.d), 1);
    CHECK_STR(type_of(&x, cps_b_reshape(&x.b, p, 2, (int64_t[]){-1, 2})), "fp32[3,2]");
    CHECK_INT(cps_b_cast(&x.b, p, CPS_DT_FP32), p);
    CHECK_INT(cps_b_broadcast(&x.b, p, 2, (int64_t[]){2, 3}), p);
    cps_val s = cps_b_scalar(&x.b, CPS_DT_BF16, 1.5);
    CHECK_STR(type_of(&x, s), "bf16[]");
    cps_val i = cps_b_ints(&x.b, CPS_DT_I64, 3, (int64_t[]){1, -2, INT64_MAX});
    CHECK_STR(type_of(&x, i), "i64[3]");
    const cps_node *n = &x.b.f->nodes.data[x.b.f->nodes.n - 1];
    const int64_t *v = x.b.m->consts.data[n->cst].data;
    CHECK(n->op == CPS_OP_CONST && v[1] == -2 && v[2] == INT64_MAX);
    cps_val out[2];
    CHECK(cps_b_node(&x.b, CPS_OP_SORT, 1, &p, 2,
                     (cps_attr[]){cps_a_int("axis", -1), cps_a_bool("descending", true)}, out));
    CHECK_STR(type_of(&x, out[1]), "i64[2,3]");
    // Attributes are canonical and sorted in the node.
    n = &x.b.f->nodes.data[x.b.f->nodes.n - 1];
    CHECK_INT(cps_attr_int(n->attr, n->nattr, "axis", 9), 1);
    CHECK_STR(n->attr[0].key, "axis");
    cps_type rt = cps_type_make(CPS_DT_FP32, 1, (int64_t[]){7});
    CHECK(cps_b_call(&x.b, "rmsnorm", 3, (cps_val[]){p, 0, q}, 1,
                     (cps_attr[]){cps_a_float("eps", 1e-6)}, 1, &rt, out));
    n = &x.b.f->nodes.data[x.b.f->nodes.n - 1];
    CHECK_STR(n->callee, "rmsnorm");
    CHECK(cps_attr_float(n->attr, n->nattr, "eps", 0) == 1e-6);
    CHECK_INT(x.b.f->vals.data[out[0]].def, x.b.f->nodes.n);
    cps_type neg = cps_type_make(CPS_DT_FP32, 1, (int64_t[]){-7});
    CHECK_INT(cps_b_input(&x.b, "n", neg), 0);
    CHECK_INT(cps_diags_count(x.d), 2);
    end(&x);
}

static void
attributes(void)
{
    cps_arena *a = cps_arena_create();
    cps_attr *l = NULL;
    uint16_t n = 0;
    cps_attr_put(a, &l, &n, cps_a_int("m", 1));
    cps_attr_put(a, &l, &n, cps_a_int("z", 2));
    cps_attr_put(a, &l, &n, cps_a_int("a", 3));
    cps_attr_put(a, &l, &n, cps_a_int("m", 4));
    CHECK_INT(n, 3);
    CHECK_STR(l[0].key, "a");
    CHECK_INT(l[1].i, 4);
    CHECK(!cps_attr_find(l, n, "q"));
    CHECK_INT(cps_attr_int(l, n, "q", 77), 77);
    for (int i = 1; i < CPS_OPS; i++)
        CHECK_INT(cps_op_find(cps_ops[i].name), i);
    CHECK_INT(cps_op_find("nope"), CPS_OP_NONE);
    cps_arena_destroy(a);
}

int
main(void)
{
    types();
    builders();
    attributes();
    return CHECK_DONE();
}

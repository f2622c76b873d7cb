/* The importer on small files: what they become, what it says about broken ones, sizes. */
#include "frontend/onnx/onnx.h"
#include "tests/check.h"

#include <stdlib.h>

#define DATA "tests/onnx/data/"

typedef struct run {
    cps_arena *a;
    cps_diags *d;
    cps_onnx_files files;
    cps_module *m;
} run;

static run
import(const char *path, unsigned ndims, const char *const *dims)
{
    run r = {.a = cps_arena_create(), .d = cps_diags_create()};
    cps_onnx_opts o = {.ndims = ndims, .dims = dims, .files = &r.files};
    r.m = cps_onnx_import(r.a, path, &o, r.d);
    return r;
}

static void
done(run *r)
{
    cps_onnx_close(&r->files);
    cps_diags_destroy(r->d);
    cps_arena_destroy(r->a);
}

static unsigned
count(const cps_module *m, cps_op op)
{
    unsigned n = 0;
    const cps_func *f = m->funcs.data[0];
    for (uint32_t i = 0; i < f->nodes.n; i++)
        n += f->nodes.data[i].op == op;
    return n;
}

static void
must_print_alike(run *r)
{
    cps_buf once = {0}, again = {0};
    cps_ir_print(r->m, &once);
    cps_ir_print(r->m, &again);
    CHECK_STR(again.data, once.data);
    CHECK(once.n > 0);
    cps_buf_fini(&once);
    cps_buf_fini(&again);
}

static void
test_mlp(void)
{
    const char *dims[] = {"batch=2"};
    run r = import(DATA "mlp.onnx", 1, dims);
    CHECK(r.m != NULL);
    CHECK_INT(cps_diags_count(r.d), 0);
    if (r.m) {
        const cps_func *f = r.m->funcs.data[0];
        CHECK(cps_ir_verify(r.m, r.d));
        CHECK_STR(r.m->name, "mlp");
        CHECK_STR(f->vals.data[f->inputs.data[0]].name, "x");
        CHECK_STR(f->output_names.data[0], "y");
        CHECK_INT(f->vals.data[f->outputs.data[0]].type.dim[0], 2);
        CHECK_INT(f->vals.data[f->outputs.data[0]].type.dim[1], 3);
        CHECK_INT(count(r.m, CPS_OP_MATMUL), 2);
        CHECK_INT(count(r.m, CPS_OP_RELU), 1);
        for (uint32_t i = 0; i < f->nodes.n; i++)
            if (f->nodes.data[i].op == CPS_OP_RELU)
                CHECK_STR(f->nodes.data[i].from, "/Relu_4");
        must_print_alike(&r);
        // y = 0.5 relu(x w + b) v' + c, by hand on one row.
        double x[8] = {1, -2, 0.5, 3, 0, 0, 0, 0};
        cps_tensor in = {.type = f->vals.data[f->inputs.data[0]].type, .f = x}, out;
        cps_eval_opts o = {.threads = 1};
        CHECK(cps_ir_eval(r.a, r.m, f, &in, &out, &o, r.d));
        CHECK_INT(cps_type_count(&out.type), 6);
    }
    done(&r);
}

static void
test_encoder_folds_shapes(void)
{
    const char *dims[] = {"B=2", "S=3"};
    run r = import(DATA "encoder.onnx", 2, dims);
    CHECK(r.m != NULL);
    CHECK_INT(cps_diags_count(r.d), 0);
    if (r.m) {
        CHECK(cps_ir_verify(r.m, r.d));
        CHECK_INT(count(r.m, CPS_OP_CONCAT), 0);
        CHECK_INT(count(r.m, CPS_OP_SLICE), 0);
        CHECK_INT(count(r.m, CPS_OP_MATMUL), 8);
        CHECK(count(r.m, CPS_OP_GATHER) >= 1); // the one by input ids stays
        must_print_alike(&r);
    }
    done(&r);
}

static void
test_forms(void)
{
    run r = import(DATA "forms.onnx", 0, NULL);
    CHECK(r.m != NULL);
    CHECK_INT(cps_diags_errors(r.d), 0);
    CHECK_INT(cps_diags_code(r.d, 0), CPS_W7012); // 0.1 is not exact
    if (r.m) {
        const cps_func *f = r.m->funcs.data[0];
        double x[3] = {100, 200, 300};
        int64_t n[3] = {1, 1, 1};
        cps_tensor in[2] = {{.type = f->vals.data[f->inputs.data[0]].type, .f = x},
                            {.type = f->vals.data[f->inputs.data[1]].type, .i = n}};
        cps_tensor out[2];
        cps_eval_opts o = {.threads = 1};
        CHECK(cps_ir_eval(r.a, r.m, f, in, out, &o, r.d));
        // f + r + h + i + u + d, where o; else x; plus x
        CHECK(out[0].f[0] > 107.0999 && out[0].f[0] < 107.1001);
        CHECK(out[0].f[1] == 400);
        CHECK(out[0].f[2] == 3 + 6 + 3 - 3 + 7 + 1 + 300);
        CHECK(out[1].i[0] == 0 && out[1].i[1] == 3 && out[1].i[2] == (1LL << 40) + 1);
    }
    done(&r);
}

static void
test_external(void)
{
    run r = import(DATA "external.onnx", 0, NULL);
    CHECK(r.m != NULL);
    CHECK_INT(r.files.file.n, 2);
    if (r.m) { // nothing was copied
        const uint8_t *lo = r.files.file.data[1].map.data, *p = NULL;
        for (uint32_t i = 0; i < r.m->consts.n; i++)
            if (cps_type_count(&r.m->consts.data[i].type) == 20)
                p = r.m->consts.data[i].data;
        CHECK(p == lo + 64);
    }
    done(&r);
}

/* ---- what is said about what is wrong ---- */

typedef struct bad {
    const char *file;
    cps_code code;
    const char *text; /* part of the message */
} bad;

static const bad bads[] = {
    {"bad-operators.onnx", CPS_E7008,
     "2 operators of 3 nodes are not taken: Conv (2), com.acme.Attn (1)"},
    {"bad-opset.onnx", CPS_E7003, "operator set 9, this reads 11 and later"},
    {"bad-order.onnx", CPS_E7010, "operand 'a' is not defined before it"},
    {"bad-twice.onnx", CPS_E7010, "the value 'y' is defined twice"},
    {"bad-output.onnx", CPS_E7010, "output 'y' is not defined"},
    {"bad-axis.onnx", CPS_E7009, "(Softmax, #0): axis 5 is outside a tensor of rank 2"},
    {"bad-attribute.onnx", CPS_E7009, "attribute 'axis' has kind 1, expected 2"},
    {"bad-operand.onnx", CPS_E7009, "operand 1 is missing"},
    {"bad-dynamic.onnx", CPS_E7011, "shape ('s') is not known at compile time"},
    {"bad-double.onnx", CPS_E7012, "a cast of a value that is not constant to double"},
    {"bad-string.onnx", CPS_E7012, "a constant that is not a dense tensor of numbers"},
    {"bad-shapes.onnx", CPS_E7103, ""},
    {"bad-rank.onnx", CPS_E7002, "the result has more than 8 axes"},
    {"bad-size.onnx", CPS_E7002, "a tensor of more than"},
    {"bad-data.onnx", CPS_E7004, "has 23 bytes of data, its shape needs 24"},
    {"bad-external-escapes.onnx", CPS_E7005, "outside the model's folder"},
    {"bad-external-short.onnx", CPS_E7005, "bytes 100 to 180 of 'external.bin', which has 144"},
    {"bad-declared.onnx", CPS_W7013, "value 'a' is fp32[2,3], its declaration says otherwise"},
    {"bad-declared-output.onnx", CPS_W7013, "value 'y' is fp32[2,3], its declaration says otherwise"},
    {"bad-newer.onnx", CPS_W7003, "operator set 99 is newer than 28"},
    {"absent.onnx", CPS_E1001, "No such file"},
    {"external.bin", CPS_E7001, ""},
};

static void
test_bad(void)
{
    for (size_t i = 0; i < cps_countof(bads); i++) {
        cps_arena *a = cps_arena_create();
        run r = import(cps_arena_printf(a, DATA "%s", bads[i].file), 0, NULL);
        bool error = cps_diag_rows[bads[i].code].name[0] == 'E';
        CHECK((r.m == NULL) == error);
        CHECK(cps_diags_count(r.d) > 0);
        if (cps_diags_count(r.d)) {
            CHECK_INT(cps_diags_code(r.d, 0), bads[i].code);
            if (!strstr(cps_diags_text(r.d, 0), bads[i].text))
                CHECK_STR(cps_diags_text(r.d, 0), bads[i].text);
        }
        done(&r);
        cps_arena_destroy(a);
    }
}

typedef struct dims_case {
    unsigned n;
    const char *dims[3];
    cps_code code; /* CPS_CODE_NONE: fine */
    const char *text;
} dims_case;

static const dims_case dims_cases[] = {
    {0, {0}, CPS_E7006, "dimensions without a size: 'B' (ids:0), 'S' (ids:1)"},
    {1, {"B=2"}, CPS_E7006, "dimensions without a size: 'S' (ids:1)"},
    {2, {"B=2", "S=4"}, CPS_CODE_NONE, ""},
    {3, {"B=2", "ids:1=4", "mask:1=4"}, CPS_CODE_NONE, ""},
    {3, {"B=2", "S=4", "T=3"}, CPS_E7007, "--dim names 'T', no input has such a dimension"},
    {2, {"B=0", "S=4"}, CPS_E7007, "'--dim B=0' is not NAME=N"},
    {2, {"B", "S=4"}, CPS_E7007, "'--dim B' is not NAME=N"},
    {2, {"B=99999999999", "S=4"}, CPS_E7007, "is not NAME=N"},
    {2, {"B=2", "B=2"}, CPS_E7007, "--dim gives 'B' twice"},
};

static void
test_dims(void)
{
    for (size_t i = 0; i < cps_countof(dims_cases); i++) {
        const dims_case *c = &dims_cases[i];
        run r = import(DATA "encoder.onnx", c->n, c->dims);
        CHECK((r.m != NULL) == (c->code == CPS_CODE_NONE));
        CHECK_INT(cps_diags_count(r.d), c->code != CPS_CODE_NONE);
        if (cps_diags_count(r.d)) {
            CHECK_INT(cps_diags_code(r.d, 0), c->code);
            if (!strstr(cps_diags_text(r.d, 0), c->text))
                CHECK_STR(cps_diags_text(r.d, 0), c->text);
        }
        done(&r);
    }
    const char *wrong[] = {"x:1=5", "batch=1"};
    run r = import(DATA "mlp.onnx", 2, wrong);
    CHECK(r.m == NULL);
    CHECK_INT(cps_diags_code(r.d, 0), CPS_E7007);
    done(&r);
}

static void
test_rows(void)
{
    const cps_onnx_row *rows;
    unsigned n = cps_onnx_rows(&rows);
    CHECK(n > 90);
    for (unsigned i = 0; i < n; i++) {
        CHECK(rows[i].nin_min <= rows[i].nin_max && rows[i].since >= 1);
        for (unsigned k = 0; k < i; k++)
            CHECK(strcmp(rows[i].name, rows[k].name) ||
                  strcmp(rows[i].domain, rows[k].domain) ||
                  (rows[k].until && rows[k].until < rows[i].since));
    }
}

int
main(void)
{
    test_rows();
    test_mlp();
    test_encoder_folds_shapes();
    test_forms();
    test_external();
    test_bad();
    test_dims();
    return CHECK_DONE();
}

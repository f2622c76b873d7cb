/* Every leaf on every target it names, over its `cases` and shapes next to them: inferred, held
 * against its predicates, traced, verified, executed by the tile evaluator, and compared with
 * the op's body at the leaf's own tolerance. Sizes are cut so that a checking build stays
 * quick; what is cut still exercises every edge (one more, one less than a tile). `test_leaves
 * NAME` runs one. */
#include "frontend/dsl/body.h"
#include "frontend/dsl/registry.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

static cps_diags *D;
static cps_registry *R;
static cps_dsl_set *S;
static unsigned traced, refused, compared;

static const cps_dtype float_kinds[] = {CPS_DT_BF16, CPS_DT_FP32};

/* ---- building a call ---- */

static int64_t
dim_of(const cps_dsl_case *c, const char *name, int64_t dflt)
{
    for (uint32_t i = 0; i < c->ndim; i++)
        if (cps_streq(c->dim[i], name))
            return c->size[i];
    return dflt;
}

// An extent: a name, a number, or arithmetic on both.
static bool
extent(const cps_dsl_case *c, cps_expr_p e, int64_t *out)
{
    int64_t a, b;
    switch (e->kind) {
    case CPS_EX_INT:
        *out = CPS_AST_AS(int, e)->value;
        return true;
    case CPS_EX_NAME:
        *out = dim_of(c, CPS_AST_AS(ref, e)->name.text, -1);
        return *out >= 0;
    case CPS_EX_BINARY:
        if (!extent(c, CPS_AST_AS(binary, e)->a, &a) ||
            !extent(c, CPS_AST_AS(binary, e)->b, &b))
            return false;
        switch (CPS_AST_AS(binary, e)->op) {
        case CPS_BIN_ADD:
            *out = a + b;
            return true;
        case CPS_BIN_SUB:
            *out = a - b;
            return true;
        case CPS_BIN_MUL:
            *out = a * b;
            return true;
        case CPS_BIN_DIV:
            *out = b ? a / b : 0;
            return b != 0;
        default:
            return false;
        }
    default:
        return false;
    }
}

static bool
has_word(const char *list, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = list; (p = strstr(p, w)) != NULL; p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return true;
    return false;
}

static cps_attr
attr_of(const char *key, const char *text)
{
    cps_attr x = {.key = key};
    if (cps_parse_int(text, strlen(text), &x.i)) {
        x.kind = CPS_A_INT;
    } else if (cps_parse_double(text, strlen(text), &x.f)) {
        x.kind = CPS_A_FLOAT;
    } else if (!strcmp(text, "true") || !strcmp(text, "false")) {
        x.kind = CPS_A_BOOL;
        x.i = *text == 't';
    } else {
        cps_dtype t = cps_dtype_parse(text, strlen(text));
        x.kind = t ? CPS_A_DTYPE : CPS_A_STR;
        x.i = t;
        x.s = text;
    }
    return x;
}

static bool
call_of(cps_arena *a, const cps_dsl_op *op, const cps_dsl_case *c, cps_dtype t, bool with,
        const cps_target *target, cps_instance *out)
{
    *out = (cps_instance){.op = op->ast->name.text,
                          .target = target,
                          .cores = 1,
                          .noperands = (int)op->ast->noperand};
    for (uint32_t k = 0; k < op->ast->noperand; k++) {
        const cps_ast_operand *o = &op->ast->operand[k];
        cps_operand *x = &out->operand[k];
        x->present = !o->optional || with || has_word(c->with ? c->with : "", o->name.text);
        if (!x->present)
            continue;
        x->type.dtype = t;
        if (o->dtype && o->dtype->kind == CPS_EX_NAME) {
            const char *s = CPS_AST_AS(ref, o->dtype)->name.text;
            cps_dtype given = cps_dtype_parse(s, strlen(s));
            if (given)
                x->type.dtype = given;
        }
        x->type.rank = (int)o->n;
        for (uint32_t d = 0; d < o->n; d++)
            if (!extent(c, o->extent[d], &x->type.dim[d]))
                return false;
    }
    for (uint32_t k = 0; k < c->nattr; k++)
        cps_attr_put(a, &out->attr, &out->nattr, attr_of(c->attr[k], c->text[k]));
    return true;
}

/* ---- running ---- */

static void *
fill(cps_arena *a, const cps_type *t, uint64_t index, int64_t below)
{
    cps_rng r;
    size_t n = (size_t)cps_type_count(t), es = cps_dtype_bytes(t->dtype);
    char *p = cps_arena_alloc(a, n * es + 64);

    cps_rng_init(&r, 7, index);
    for (size_t i = 0; i < n; i++) {
        if (cps_dtype_is_int(t->dtype))
            cps_from_i64(t->dtype, p + i * es,
                         (int64_t)cps_rng_below(&r, (uint64_t)CPS_MAX(below, 1)));
        else
            cps_from_f64(t->dtype, p + i * es, cps_rng_normal(&r));
    }
    return p;
}

// Index operands stay inside the smallest first axis of the others.
static int64_t
index_bound(const cps_instance *i)
{
    int64_t n = INT64_MAX;
    for (int k = 0; k < i->noperands; k++)
        if (i->operand[k].present && i->operand[k].type.rank > 1)
            n = CPS_MIN(n, i->operand[k].type.dim[0]);
    return n == INT64_MAX ? 100 : n;
}

// The storage of an operand: swapped last axes when its order says so.
static void *
stored(cps_arena *a, const cps_operand *o, const void *logical)
{
    const cps_type *t = &o->type;
    if (o->order == 0 || t->rank < 2)
        return (void *)(uintptr_t)logical;
    int64_t m = t->dim[t->rank - 2], k = t->dim[t->rank - 1],
            outer = cps_type_count(t) / (m * k);
    size_t es = cps_dtype_bytes(t->dtype);
    char *p = cps_arena_alloc(a, (size_t)(outer * m * k) * es);
    for (int64_t b = 0; b < outer; b++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < k; j++)
                memcpy(p + (size_t)((b * k + j) * m + i) * es,
                       (const char *)logical + (size_t)((b * m + i) * k + j) * es, es);
    return p;
}

static bool
close_to(const cps_tensor *want, const void *got, const cps_type *t, double rtol, double atol,
         double *worst)
{
    size_t n = (size_t)cps_type_count(t), es = cps_dtype_bytes(t->dtype);
    double most = 0;
    *worst = 0;
    for (size_t i = 0; i < n; i++) {
        double w = want->f ? want->f[i] : (double)want->i[i];
        if (isfinite(w))
            most = fmax(most, fabs(w));
    }
    for (size_t i = 0; i < n; i++) {
        double w = want->f ? want->f[i] : (double)want->i[i];
        double g = cps_to_f64(t->dtype, (const char *)got + i * es);
        if (isnan(w) || isinf(w)) {
            if (!(isnan(w) ? isnan(g) : w == g))
                return *worst = INFINITY, false;
            continue;
        }
        double e = fabs(w - g);
        if (!(e <= atol + rtol * most))
            *worst = fmax(*worst, most > 0 ? e / most : e);
    }
    return *worst == 0;
}

static bool
compare(cps_arena *a, const cps_instance *i, const cps_tfunc *f, const cps_candidate *c)
{
    void *args[2 * CPS_MAX_OPERANDS];
    cps_tensor in[CPS_MAX_OPERANDS], out[2 * CPS_MAX_OPERANDS];
    int n = 0, nin = 0;
    bool ok = true;
    double worst;

    for (int k = 0; k < i->noperands; k++) {
        const cps_operand *o = &i->operand[k];
        if (!o->present)
            continue;
        void *p = fill(a, &o->type, (uint64_t)k, index_bound(i));
        in[nin++] = cps_tensor_from(a, &o->type, p);
        args[n++] = stored(a, o, p);
    }
    for (int k = 0; k < i->nresults; k++)
        args[n++] = cps_arena_alloc(a, (size_t)cps_type_bytes(&i->result[k].type) + 64);
    cps_module *m = cps_module_new(a, "reference");
    cps_func *b = R->body(R->self, m, i, D);
    if (!b || !cps_ir_eval(a, m, b, in, out, &(cps_eval_opts){.threads = 1}, D) ||
        !cps_tile_eval(f, args, D))
        return false;
    for (int k = 0; k < i->nresults; k++)
        if (!close_to(&out[k], args[nin + k], &i->result[k].type, c->rtol, c->atol, &worst)) {
            cps_buf t = {0};
            cps_instance_print(i, &t);
            fprintf(stderr,
                    "%s: result %d of %s differs by %.3g of the largest, allowed %.3g\n",
                    c->leaf, k, t.data, worst, c->rtol);
            cps_buf_fini(&t);
            ok = false;
        }
    compared++;
    return ok;
}

static bool
run(const cps_dsl_leaf *l, const cps_dsl_op *op, const cps_dsl_case *c, cps_dtype t, bool with,
    const cps_target *target, bool order)
{
    cps_arena *a = cps_arena_create();
    cps_instance i;
    cps_candidate cand = {0};
    bool ok = true;

    if (call_of(a, op, c, t, with, target, &i)) {
        if (order)
            i.operand[0].order = 1;
        ok =
            cps_dsl_infer(S, a, op, &i, D) && cps_dsl_candidate(S, a, l, &i, NULL, 0, &cand, D);
        if (ok && !cand.ok)
            refused++;
        if (ok && cand.ok) {
            cps_tfunc *f = R->trace(R->self, a, &i, &cand, 0, D);
            ok = f && cps_tile_verify(f, target, D) && compare(a, &i, f, &cand);
            traced++;
        }
        if (!ok) {
            cps_buf b = {0};
            cps_instance_print(&i, &b);
            fprintf(stderr, "%s failed on %s\n", l->ast->name.text, b.data);
            cps_buf_fini(&b);
        }
    }
    cps_arena_destroy(a);
    return ok;
}

/* ---- shapes ---- */

// Large cases shrink: what counts is how a size sits in its tiles. Two dims may stay larger.
static int64_t
cut(int64_t n, int64_t most)
{
    while (n > most)
        n = n > 2 * most && n % 2 == 0 ? n / 2 : n - most / 2;
    return n;
}

static void
leaf(const cps_dsl_leaf *l, const cps_target *target)
{
    cps_arena *a = cps_arena_create();
    const cps_dsl_op *op = cps_dsl_need_op(S, l->ast->op.text);
    bool full = target->gen == CPS_V3; // the other generations see the plain cases
    cps_dsl_case *cases;
    uint32_t n;

    if (!op || !cps_dsl_cases(S, a, l, &cases, &n, D)) {
        CHECK(!"cases");
        return;
    }
    for (uint32_t k = 0; k < n; k++) {
        cps_dsl_case c = cases[k];
        int64_t *size = cps_new_array(a, int64_t, c.ndim);
        for (uint32_t i = 0; i < c.ndim; i++)
            size[i] = cut(c.size[i], c.ndim > 2 ? 640 : i ? 3000 : 300);
        c.size = size;
        for (unsigned v = 0; v < cps_countof(float_kinds); v++) {
            cps_dtype t = c.dtype ? c.dtype : float_kinds[v];
            if (v > 0 && (c.dtype || !full))
                break;
            CHECK(run(l, op, &c, t, false, target, false));
            CHECK(run(l, op, &c, t, true, target, false));
            CHECK(run(l, op, &c, t, false, target, true));
        }
        // One more and one less in each dimension.
        for (uint32_t i = 0; i < c.ndim && k == 0 && full; i++)
            for (int d = -1; d <= 1; d += 2) {
                int64_t keep = size[i];
                size[i] = CPS_MAX(1, keep + d);
                CHECK(run(l, op, &c, c.dtype ? c.dtype : CPS_DT_BF16, false, target, false));
                size[i] = keep;
            }
    }
    cps_arena_destroy(a);
}

int
main(int argc, char **argv)
{
    cps_arena *a = cps_arena_create();
    cps_buf b = {0};

    D = cps_diags_create();
    R = cps_dsl_registry_create(a, D);
    for (unsigned i = 0; i < R->leaves(R->self); i++) {
        cps_leafinfo info;
        R->leaf(R->self, i, &info);
        if (argc > 1 && strcmp(argv[1], info.name) != 0)
            continue;
        S = cps_dsl_registry_set(R, info.op);
        const cps_dsl_leaf *l = cps_dsl_find_leaf(S, info.name);
        CHECK(l != NULL);
        unsigned before = traced;
        for (unsigned k = 0; l && k < cps_target_count(); k++)
            if (has_word(info.targets, cps_target_at(k)->name))
                leaf(l, cps_target_at(k));
        if (traced == before && !has_word(info.targets, "host"))
            fprintf(stderr, "%s takes none of its own cases\n", info.name);
        CHECK(traced > before || has_word(info.targets, "host"));
    }
    cps_diags_render(D, &b, false);
    if (b.n)
        fputs(b.data, stderr);
    printf("%u traced, %u refused, %u compared\n", traced, refused, compared);
    CHECK(traced == compared);
    cps_buf_fini(&b);
    cps_dsl_registry_destroy(R);
    cps_diags_destroy(D);
    cps_arena_destroy(a);
    return CHECK_DONE();
}

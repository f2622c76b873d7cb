#include "tests/lower/fake.h"

#include "ir/build.h"

#include <stdlib.h>
#include <string.h>

typedef cps_val (*body_fn)(cps_builder *b, const cps_instance *i, const cps_val *in);

typedef struct op_row {
    const char *name;
    const char *operands; /* separated by ';' */
    const char *result;
    const char *attrs; /* keys, blank-separated */
    body_fn body;
} op_row;

/* ---- bodies ---- */

static const char *
text(const cps_instance *i, const char *key, const char *dflt)
{
    const cps_attr *a = cps_attr_find(i->attr, i->nattr, key);
    return a && a->kind == CPS_A_STR ? a->s : dflt;
}

static double
number(const cps_instance *i, const char *key, double dflt)
{
    return cps_attr_float(i->attr, i->nattr, key, dflt);
}

static cps_val
scalar(cps_builder *b, cps_val like, double v)
{
    return cps_b_scalar(b, cps_b_type(b, like)->dtype, v);
}

static cps_val
op_named(cps_builder *b, const char *name, cps_val x, cps_val y)
{
    cps_op op = cps_op_find(name);
    cps_assert(op != CPS_OP_NONE);
    return y ? cps_b_binary(b, op, x, y) : cps_b_unary(b, op, x);
}

static cps_val
act(cps_builder *b, const cps_instance *i, cps_val x)
{
    const char *f = text(i, "act", "none");
    return strcmp(f, "none") == 0 ? x : op_named(b, f, x, 0);
}

static cps_val
transposed(cps_builder *b, cps_val x)
{
    const cps_type *t = cps_b_type(b, x);
    int64_t perm[CPS_MAX_RANK];
    for (int k = 0; k < t->rank; k++)
        perm[k] = k < t->rank - 2 ? k : t->rank - 1 - (k - (t->rank - 2));
    return cps_b_transpose(b, x, perm);
}

static cps_val
softmax_of(cps_builder *b, cps_val x, int64_t axis)
{
    cps_val top = cps_b_reduce(b, CPS_OP_RMAX, x, 1, &axis, true);
    cps_val e = cps_b_unary(b, CPS_OP_EXP, cps_b_binary(b, CPS_OP_SUB, x, top));
    return cps_b_binary(b, CPS_OP_DIV, e, cps_b_reduce(b, CPS_OP_SUM, e, 1, &axis, true));
}

static cps_val
matmul(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    cps_val y = cps_b_matmul(b, in[0], in[1]);
    if (in[2])
        y = cps_b_binary(b, CPS_OP_ADD, y, in[2]);
    y = act(b, i, y);
    return in[3] ? cps_b_binary(b, CPS_OP_ADD, y, in[3]) : y;
}

static cps_val
mlp(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    cps_val g = act(b, i, cps_b_matmul(b, in[0], in[1]));
    cps_val u = cps_b_matmul(b, in[0], in[2]);
    return cps_b_matmul(b, cps_b_binary(b, CPS_OP_MUL, g, u), in[3]);
}

static cps_val
softmax(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    (void)i;
    return softmax_of(b, in[0], 1);
}

static cps_val
repeat(cps_builder *b, cps_val x, int64_t n)
{
    cps_val y = 0;
    cps_attr a[2] = {cps_a_int("axis", 0), cps_a_int("n", n)};
    return n == 1 ? x : cps_b_node(b, CPS_OP_REPEAT, 1, &x, 2, a, &y) ? y : 0;
}

static cps_val
attention(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    const cps_type q = i->operand[0].type, k = i->operand[1].type;
    cps_val kk = repeat(b, in[1], q.dim[0] / k.dim[0]),
            vv = repeat(b, in[2], q.dim[0] / k.dim[0]);
    cps_val s = cps_b_matmul(b, in[0], transposed(b, kk));
    s = cps_b_binary(b, CPS_OP_MUL, s, scalar(b, s, number(i, "scale", 1)));
    if (in[4]) {
        const cps_type m = i->operand[4].type;
        cps_val mask = repeat(b, in[4], q.dim[0] / m.dim[0]);
        mask = cps_b_reshape(b, mask, 3, (int64_t[]){q.dim[0], 1, m.dim[1]});
        s = cps_b_binary(b, CPS_OP_ADD, s, mask);
    }
    if (cps_attr_int(i->attr, i->nattr, "causal", 0)) {
        int64_t shape[2] = {q.dim[1], k.dim[1]};
        cps_val pos[2];
        for (int a = 0; a < 2; a++) {
            cps_attr at[3] = {cps_a_ints("shape", 2, shape), cps_a_int("axis", a),
                              cps_a_dtype("dtype", CPS_DT_I32)};
            cps_b_node(b, CPS_OP_INDEX, 0, NULL, 3, at, &pos[a]);
        }
        cps_val seen = cps_b_binary(b, CPS_OP_LE, pos[1], pos[0]);
        s = cps_b_select(b, seen, s, scalar(b, s, -1e30));
    }
    return cps_b_matmul(b, softmax_of(b, s, 2), vv);
}

static cps_val
norm(cps_builder *b, const cps_instance *i, cps_val x, bool center)
{
    int64_t axis = 1;
    cps_val d =
        center ? cps_b_binary(b, CPS_OP_SUB, x, cps_b_reduce(b, CPS_OP_MEAN, x, 1, &axis, true))
               : x;
    cps_val v = cps_b_reduce(b, CPS_OP_MEAN, cps_b_unary(b, CPS_OP_SQUARE, d), 1, &axis, true);
    v = cps_b_binary(b, CPS_OP_ADD, v, scalar(b, v, number(i, "eps", 1e-5)));
    return cps_b_binary(b, CPS_OP_MUL, d, cps_b_unary(b, CPS_OP_RSQRT, v));
}

static cps_val
rmsnorm(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    return cps_b_binary(b, CPS_OP_MUL, norm(b, i, in[0], false), in[1]);
}

static cps_val
layernorm(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    cps_val x = in[3] ? cps_b_binary(b, CPS_OP_ADD, in[0], in[3]) : in[0];
    cps_val y = cps_b_binary(b, CPS_OP_MUL, norm(b, i, x, true), in[1]);
    return cps_b_binary(b, CPS_OP_ADD, y, in[2]);
}

static cps_val
unary(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    return op_named(b, text(i, "f", "relu"), in[0], 0);
}

static cps_val
binary(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    bool r = cps_attr_int(i->attr, i->nattr, "reverse", 0) != 0;
    return op_named(b, text(i, "f", "add"), in[r], in[!r]);
}

static cps_val
affine(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    cps_val y = cps_b_binary(b, CPS_OP_MUL, in[0], scalar(b, in[0], number(i, "mul", 1)));
    return cps_b_binary(b, CPS_OP_ADD, y, scalar(b, in[0], number(i, "add", 0)));
}

static cps_val
cast(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    return cps_b_cast(b, in[0], (cps_dtype)cps_attr_int(i->attr, i->nattr, "to", CPS_DT_FP32));
}

static cps_val
swap(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    (void)i;
    return cps_b_type(b, in[0])->rank == 3 ? transposed(b, in[0])
                                           : cps_b_transpose(b, in[0], (int64_t[]){0, 2, 1, 3});
}

static cps_val
slice(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    const cps_type *t = cps_b_type(b, in[0]);
    int64_t at = cps_attr_int(i->attr, i->nattr, "start", 0);
    int64_t n = cps_attr_int(i->attr, i->nattr, "count", 1);
    return cps_b_slice(b, in[0], (int64_t[]){0, at, 0},
                       (int64_t[]){t->dim[0], at + n, t->dim[2]}, (int64_t[]){1, 1, 1});
}

static cps_val
part(cps_builder *b, cps_val x, int64_t from, int64_t to)
{
    const cps_type *t = cps_b_type(b, x);
    return cps_b_slice(b, x, (int64_t[]){0, 0, 0, from},
                       (int64_t[]){t->dim[0], t->dim[1], t->dim[2], to},
                       (int64_t[]){1, 1, 1, 1});
}

static cps_val
rope(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    const cps_type t = i->operand[0].type;
    int64_t h = t.dim[3] / 2, row[4] = {1, t.dim[1], 1, h};
    cps_val lo = part(b, in[0], 0, h), hi = part(b, in[0], h, 2 * h);
    cps_val c = cps_b_reshape(b, in[1], 4, row), s = cps_b_reshape(b, in[2], 4, row);
    cps_val y[2];
    y[0] = cps_b_binary(b, CPS_OP_SUB, cps_b_binary(b, CPS_OP_MUL, lo, c),
                        cps_b_binary(b, CPS_OP_MUL, hi, s));
    y[1] = cps_b_binary(b, CPS_OP_ADD, cps_b_binary(b, CPS_OP_MUL, hi, c),
                        cps_b_binary(b, CPS_OP_MUL, lo, s));
    return cps_b_concat(b, 2, y, 3);
}

static cps_val
concat(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    (void)i;
    return cps_b_concat(b, 2, in, 1);
}

static cps_val
gather_rows(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    (void)i;
    return cps_b_gather(b, in[0], in[1], 0);
}

static cps_val
reduce(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    const char *f = text(i, "f", "sum");
    cps_op op = strcmp(f, "sum") == 0    ? CPS_OP_SUM
                : strcmp(f, "mean") == 0 ? CPS_OP_MEAN
                : strcmp(f, "max") == 0  ? CPS_OP_RMAX
                                         : CPS_OP_RMIN;
    return cps_b_reduce(b, op, in[0], 1, &(int64_t){1}, false);
}

static cps_val
cumsum(cps_builder *b, const cps_instance *i, const cps_val *in)
{
    (void)i;
    cps_val y = 0;
    cps_attr a = cps_a_int("axis", 1);
    cps_b_node(b, CPS_OP_CUMSUM, 1, in, 1, &a, &y);
    return y;
}

static const op_row ops[] = {
    {"matmul", "x[M, K];w[K, N];bias?[N];residual?[M, N]", "y[M, N]", "act", matmul},
    {"bmm", "x[B, M, K];w[B, K, N]", "y[B, M, N]", "", matmul},
    {"mlp", "x[T, H];w_gate[H, I];w_up[H, I];w_down[I, H]", "y[T, H]", "act", mlp},
    {"softmax", "x[T, N]", "y[T, N]", "", softmax},
    {"attention", "q[B, Sq, d];k[Bkv, Skv, d];v[Bkv, Skv, d];sink?[B];mask?[Bm, Skv]",
     "o[B, Sq, d]", "scale causal", attention},
    {"rmsnorm", "x[T, H];gamma[H]", "y[T, H]", "eps", rmsnorm},
    {"layernorm", "x[T, H];gamma[H];beta[H];residual?[T, H]", "y[T, H]", "eps", layernorm},
    {"rope", "x[B, S, h, d];cos[S, e];sin[S, e]", "y[B, S, h, d]", "", rope},
    {"unary", "x[T, N]", "y[T, N]", "f", unary},
    {"binary", "x[T, N];y[Ty, Ny]", "z[T, N]", "f reverse", binary},
    {"affine", "x[T, N]", "y[T, N]", "mul add", affine},
    {"cast", "x[T, N]", "y[T, N]", "to", cast},
    {"transpose", "x[A, B, C]", "y[A, C, B]", "", swap},
    {"swap_axes", "x[A, B, C, D]", "y[A, C, B, D]", "", swap},
    {"slice", "x[A, N, B]", "y[A, count, B]", "start count", slice},
    {"concat", "x[A, N, B];y[A, M, B]", "z[A, sum, B]", "", concat},
    {"gather_rows", "table[V, H];ids[T]", "y[T, H]", "", gather_rows},
    {"reduction", "x[A, N, B]", "y[A, B]", "f", reduce},
    {"cumsum", "x[B, N]", "y[B, N]", "", cumsum},
};

/* ---- the functions of the registry ---- */

static bool
word_in(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list ? list : ""; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

static const op_row *
row_of(const cps_fake *f, const char *name)
{
    for (size_t i = 0; i < cps_countof(ops); i++)
        if (strcmp(ops[i].name, name) == 0 && !word_in(f->absent, name))
            return &ops[i];
    return NULL;
}

// Piece i of a list by ';', in static storage of the row: cut by a copy.
static const char *
piece(const char *list, int i, char *buf, size_t cap)
{
    while (i--) {
        list = strchr(list, ';');
        if (!list)
            return NULL;
        list++;
    }
    size_t n = strcspn(list, ";");
    cps_assert(n < cap);
    memcpy(buf, list, n);
    buf[n] = 0;
    return buf;
}

static char pieces[cps_countof(ops)][8][24];

static bool
find_op(void *self, const char *name, cps_opinfo *out)
{
    const op_row *r = row_of(self, name);
    if (!r)
        return false;
    *out = (cps_opinfo){.name = r->name, .tree = "reference", .nresults = 1};
    out->result[0] = r->result;
    size_t k = (size_t)(r - ops);
    while (out->noperands < 8 &&
           piece(r->operands, out->noperands, pieces[k][out->noperands], 24)) {
        out->operand[out->noperands] = pieces[k][out->noperands];
        out->noperands++;
    }
    return true;
}

typedef struct dims {
    int n;
    char name[16][8];
    int64_t value[16];
} dims;

static int64_t *
dim_at(dims *d, const char *s, size_t n)
{
    for (int i = 0; i < d->n; i++)
        if (strlen(d->name[i]) == n && memcmp(d->name[i], s, n) == 0)
            return &d->value[i];
    cps_assert(d->n < 16 && n < 8);
    memcpy(d->name[d->n], s, n);
    d->name[d->n][n] = 0;
    d->value[d->n] = -1;
    return &d->value[d->n++];
}

// Binds the extents of "[M, K]" to the type, or fills the type from them.
static bool
extents(dims *d, const char *sig, cps_type *t, bool fill)
{
    int i = 0;
    for (const char *p = strchr(sig, '[') + 1; *p && *p != ']'; i++) {
        size_t n = strcspn(p, ",]");
        int64_t *v = dim_at(d, p, n);
        if (fill) {
            t->dim[i] = *v;
        } else {
            if (i >= t->rank || (*v >= 0 && *v != t->dim[i]))
                return false;
            *v = t->dim[i];
        }
        p += n + (p[n] == ',');
        p += *p == ' ';
    }
    if (fill)
        t->rank = i;
    return i == t->rank;
}

static bool
infer(void *self, cps_arena *a, cps_instance *i, cps_diags *d)
{
    (void)a;
    const op_row *r = row_of(self, i->op);
    dims dm = {0};
    char buf[24];
    bool ok = r != NULL;
    for (uint16_t k = 0; ok && k < i->nattr; k++) {
        ok = word_in(r->attrs, i->attr[k].key);
        if (strcmp(i->attr[k].key, "count") == 0)
            *dim_at(&dm, "count", 5) = i->attr[k].i;
    }
    for (int k = 0; ok && k < i->noperands; k++) {
        const char *p = piece(r->operands, k, buf, sizeof buf);
        bool optional = strchr(p, '?') != NULL;
        ok = i->operand[k].present ? extents(&dm, p, &i->operand[k].type, false) : optional;
        if (ok && i->operand[k].present && strcmp(i->op, "gather_rows") != 0)
            ok = i->operand[k].type.dtype == i->operand[0].type.dtype;
    }
    if (ok && strcmp(i->op, "attention") == 0)
        ok = i->operand[0].type.dim[0] % i->operand[1].type.dim[0] == 0;
    if (ok && strcmp(i->op, "binary") == 0)
        for (int k = 0; k < 2; k++) {
            int64_t x = i->operand[0].type.dim[k], y = i->operand[1].type.dim[k];
            ok = ok && (y == x || y == 1);
        }
    if (ok && strcmp(i->op, "concat") == 0)
        *dim_at(&dm, "sum", 3) = i->operand[0].type.dim[1] + i->operand[1].type.dim[1];
    if (!ok) {
        cps_error(d, CPS_E7402, CPS_NOSPAN, "'%s' does not take these operands", i->op);
        return false;
    }
    i->result[0].type.dtype =
        (cps_dtype)cps_attr_int(i->attr, i->nattr, "to", i->operand[0].type.dtype);
    return extents(&dm, r->result, &i->result[0].type, true);
}

static unsigned
candidates(void *self, cps_arena *a, const cps_instance *i, cps_candidate **out, cps_diags *d)
{
    (void)d;
    cps_fake *f = self;
    f->asked++;
    bool extra = strcmp(i->op, "matmul") == 0 && f->plain_matmul &&
                 (i->operand[2].present || i->operand[3].present ||
                  strcmp(text(i, "act", "none"), "none") != 0);
    *out = cps_new_array(a, cps_candidate, 2);
    for (int k = 0; k < 2; k++) {
        cps_candidate *c = &(*out)[k];
        c->leaf = cps_arena_printf(a, "%s_%s", i->op, k ? "slow" : "fast");
        c->ok = !extra && !word_in(f->refused, i->op);
        c->cost_ns = k ? 2000 : 1000;
        c->bound = "hbm";
        if (!c->ok) {
            c->reason = cps_new_array(a, const char *, 1);
            c->reason[c->nreasons++] = extra ? "a plain product only" : "told to refuse";
        }
    }
    return 2;
}

static cps_func *
body(void *self, cps_module *m, const cps_instance *i, cps_diags *d)
{
    const op_row *r = row_of(self, i->op);
    cps_builder b = {.m = m, .f = cps_func_new(m, i->op), .d = d};
    cps_val in[CPS_MAX_OPERANDS] = {0};
    for (int k = 0; k < i->noperands; k++)
        if (i->operand[k].present)
            in[k] = cps_b_input(&b, i->operand[k].name, i->operand[k].type);
    cps_b_output(&b, "y", r->body(&b, i, in));
    return b.f->outputs.n ? b.f : NULL;
}

static cps_digest
digest(void *self, const char *leaf)
{
    (void)self;
    (void)leaf;
    return (cps_digest){{0}};
}

void
cps_fake_init(cps_fake *f)
{
    *f = (cps_fake){.reg = {.self = f,
                            .find_op = find_op,
                            .infer = infer,
                            .candidates = candidates,
                            .digest = digest,
                            .body = body}};
}

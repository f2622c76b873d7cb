/* Modules, functions, types, attributes and constants of the graph level: what the other files
 * of the room build on. Tables come from op.def. Nothing here checks a program: building goes
 * through build.c, text through parse.c, and both end in the rules of infer.c. */
#include "ir/ir.h"

const cps_oprow cps_ops[CPS_OPS] = {
    [CPS_OP_NONE] = {.name = "none"},
#define CPS_OP(id, name, min, max, nout, cls, attrs, doc, kinds, rule)                         \
    [CPS_OP_##id] = {name, min, max, nout, CPS_OC_##cls, attrs, doc, kinds},
#include "ir/op.def"
};

cps_op
cps_op_find(const char *name)
{
    for (int i = 1; i < CPS_OPS; i++)
        if (cps_streq(cps_ops[i].name, name))
            return (cps_op)i;
    return CPS_OP_NONE;
}

cps_module *
cps_module_new(cps_arena *a, const char *name)
{
    cps_module *m = cps_new(a, cps_module);
    m->arena = a;
    m->name = cps_arena_strdup(a, name ? name : "");
    return m;
}

cps_func *
cps_func_new(cps_module *m, const char *name)
{
    cps_func *f = cps_new(m->arena, cps_func);
    f->name = cps_arena_strdup(m->arena, name);
    cps_vec_add(m->arena, &f->vals); // value 0 is no value
    cps_vec_push(m->arena, &m->funcs, f);
    return f;
}

/* ---- types ---- */

cps_type
cps_type_make(cps_dtype t, int rank, const int64_t *dim)
{
    cps_assert(rank >= 0 && rank <= CPS_MAX_RANK);
    cps_type r = {.dtype = t, .rank = rank};
    for (int i = 0; i < rank; i++)
        r.dim[i] = dim[i];
    return r;
}

bool
cps_type_ok(const cps_type *t)
{
    if (t->dtype <= CPS_DT_NONE || t->dtype >= CPS_DT_COUNT || t->rank < 0 ||
        t->rank > CPS_MAX_RANK)
        return false;
    // Zero extents do not hide an overflow of the others: strides are computed too.
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] < 0 || __builtin_mul_overflow(n, CPS_MAX(t->dim[i], 1), &n) ||
            n > CPS_MAX_ELEMS)
            return false;
    return true;
}

int64_t
cps_type_count(const cps_type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

int64_t
cps_type_bytes(const cps_type *t)
{
    return cps_type_count(t) * cps_dtype_bytes(t->dtype);
}

bool
cps_type_eq(const cps_type *a, const cps_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

void
cps_type_print(const cps_type *t, cps_buf *out)
{
    cps_buf_puts(out, cps_dtype_name(t->dtype));
    cps_buf_putc(out, '[');
    for (int i = 0; i < t->rank; i++)
        cps_buf_printf(out, i ? ",%lld" : "%lld", (long long)t->dim[i]);
    cps_buf_putc(out, ']');
}

/* ---- attributes ---- */

const cps_attr *
cps_attr_find(const cps_attr *a, uint32_t n, const char *key)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].key, key) == 0)
            return &a[i];
    return NULL;
}

int64_t
cps_attr_int(const cps_attr *a, uint32_t n, const char *key, int64_t dflt)
{
    const cps_attr *x = cps_attr_find(a, n, key);
    return x && x->kind != CPS_A_FLOAT && x->kind != CPS_A_STR && x->kind != CPS_A_INTS ? x->i
                                                                                        : dflt;
}

double
cps_attr_float(const cps_attr *a, uint32_t n, const char *key, double dflt)
{
    const cps_attr *x = cps_attr_find(a, n, key);
    if (!x)
        return dflt;
    return x->kind == CPS_A_FLOAT ? x->f : x->kind == CPS_A_INT ? (double)x->i : dflt;
}

void
cps_attr_put(cps_arena *a, cps_attr **list, uint16_t *n, cps_attr x)
{
    uint32_t at = 0;
    while (at < *n && strcmp((*list)[at].key, x.key) < 0)
        at++;
    if (at < *n && strcmp((*list)[at].key, x.key) == 0) {
        (*list)[at] = x;
        return;
    }
    cps_assert(*n < UINT16_MAX);
    cps_attr *grown = cps_new_array(a, cps_attr, *n + 1);
    if (*n) {
        memcpy(grown, *list, at * sizeof x);
        memcpy(grown + at + 1, *list + at, (*n - at) * sizeof x);
    }
    grown[at] = x;
    *list = grown;
    ++*n;
}

cps_attr
cps_attr_copy(cps_arena *a, const cps_attr *x)
{
    cps_attr r = *x;
    r.key = cps_arena_strdup(a, x->key);
    if (x->kind == CPS_A_STR)
        r.s = cps_arena_strdup(a, x->s);
    if (x->kind == CPS_A_INTS) {
        int64_t *v = cps_new_array(a, int64_t, x->n);
        if (x->n)
            memcpy(v, x->ints, x->n * sizeof *v);
        r.ints = v;
    }
    return r;
}

static const char *const akind_names[] = {"int", "float", "bool", "string", "dtype", "ints"};

const char *
cps_akind_name(cps_akind k)
{
    return akind_names[k];
}

/* ---- constants ---- */

const cps_digest *
cps_const_digest(cps_const *c)
{
    if (!c->hashed) {
        cps_hasher h;
        cps_hash_init(&h, "copse.const");
        cps_hash_str(&h, 1, cps_dtype_name(c->type.dtype));
        cps_hash_u64(&h, 2, (uint64_t)c->type.rank);
        for (int i = 0; i < c->type.rank; i++)
            cps_hash_u64(&h, 3, (uint64_t)c->type.dim[i]);
        cps_hash_u64(&h, 4, (uint64_t)cps_type_bytes(&c->type));
        cps_hash_bytes(&h, c->data, (size_t)cps_type_bytes(&c->type));
        c->digest = cps_hash_final(&h);
        c->hashed = true;
    }
    return &c->digest;
}

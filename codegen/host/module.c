/* The module: one internal function for each group, called in order by cps_model_run. Functions
 * with the same body are one, which makes repeated layers cheap to compile: addresses are
 * parameters, so that layers differ in nothing but the call. No mutable global exists. */
#include "codegen/host/gen.h"

#include <stdio.h>

static void
attribute(gen *g, V fn, LLVMAttributeIndex at, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(fn, at, LLVMCreateEnumAttribute(g->ctx, kind, 0));
}

static void
text_attribute(gen *g, V fn, const char *key, const char *value)
{
    LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(g->ctx, key, (unsigned)strlen(key), value,
                                                      (unsigned)strlen(value)));
}

static void
common_attributes(gen *g, V fn)
{
    attribute(g, fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind");
    char bits[16];
    snprintf(bits, sizeof bits, "%d", g->lanes * 32);
    text_attribute(g, fn, "prefer-vector-width", bits);
    text_attribute(g, fn, "no-trapping-math", "true");
}

V
cps_gen_begin(gen *g, T type)
{
    V fn = LLVMAddFunction(g->mod, "cps_part", type);
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    common_attributes(g, fn);
    attribute(g, fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "noinline");
    g->fn = fn;
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->ctx, fn, ""));
    return fn;
}

V
cps_gen_end(gen *g, V fn)
{
    char *text = LLVMPrintValueToString(fn);
    const char *body = strchr(text, '('); // after the name
    cps_assert(body);
    bool fresh;
    uint64_t *at = cps_map_at_str(&g->bodies, body, &fresh);
    LLVMDisposeMessage(text);
    if (fresh) {
        *at = (uint64_t)(uintptr_t)fn;
        return fn;
    }
    LLVMDeleteFunction(fn);
    return (V)(uintptr_t)*at;
}

/* ---- addresses of values ---- */

static V
offset(gen *g, V p, int64_t by)
{
    V at = i64c(g, by);
    return by ? LLVMBuildInBoundsGEP2(g->b, g->i8, p, &at, 1, "") : p;
}

static V
embedded(gen *g, uint32_t index)
{
    if (g->embedded[index])
        return g->embedded[index];
    const cps_const *c = &g->p->m->consts.data[index];
    char name[32];
    snprintf(name, sizeof name, "cps_const_%u", index);
    V init = LLVMConstStringInContext2(g->ctx, c->data, (size_t)cps_type_bytes(&c->type), 1);
    V v = LLVMAddGlobal(g->mod, LLVMTypeOf(init), name);
    LLVMSetInitializer(v, init);
    LLVMSetLinkage(v, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(v, 1);
    LLVMSetAlignment(v, 64);
    return g->embedded[index] = v;
}

// In cps_model_run: parameters are weights, in, out, scratch.
static V
address(gen *g, V run, cps_val v)
{
    const host_val *h = &g->p->val[v];
    switch (h->place) {
    case HP_IN:
    case HP_OUT: {
        V at = i64c(g, h->index);
        V p = LLVMBuildInBoundsGEP2(g->b, g->ptr, LLVMGetParam(run, h->place == HP_IN ? 1 : 2),
                                    &at, 1, "");
        return LLVMBuildLoad2(g->b, g->ptr, p, "");
    }
    case HP_CONST: {
        int64_t off = g->p->offset ? g->p->offset[h->index] : -1;
        return off < 0 ? embedded(g, h->index) : offset(g, LLVMGetParam(run, 0), off);
    }
    default:
        return offset(g, LLVMGetParam(run, 3), h->at);
    }
}

/* ---- groups ---- */

typedef struct bases {
    CPS_VEC(cps_val) v;
} bases;

static void
take(gen *g, bases *b, cps_val v)
{
    if (!v)
        return;
    for (uint32_t i = 0; i < b->v.n; i++)
        if (b->v.data[i] == v)
            return;
    cps_vec_push(g->arena, &b->v, v);
}

static void
collect(gen *g, const host_group *grp, bases *b)
{
    for (uint32_t i = 0; i < grp->stages.n; i++) {
        const host_stage *s = &grp->stages.data[i];
        for (uint32_t k = 0; k < s->nx; k++)
            take(g, b, s->x[k].base);
        if (s->mm) {
            take(g, b, s->mm->a.base);
            take(g, b, s->mm->b.base);
            take(g, b, s->mm->add.base);
            take(g, b, s->mm->work);
        }
        if (s->sort) {
            take(g, b, s->sort->base);
            take(g, b, s->sort->values);
            take(g, b, s->sort->order);
            take(g, b, s->sort->work);
        }
        take(g, b, s->to);
    }
}

static void
emit_stage(gen *g, const host_stage *s, const nest_at *rows, int from)
{
    nest_at at = *rows;
    switch (s->kind) {
    case HS_MAP:
        cps_gen_map(g, s, &at, from);
        break;
    case HS_REDUCE:
        cps_gen_reduce(g, s, &at, from);
        break;
    case HS_SCAN:
        cps_gen_scan(g, s, &at, from);
        break;
    case HS_SCATTER:
        cps_gen_scatter(g, s, &at, from);
        break;
    case HS_SORT:
        cps_gen_sort(g, s);
        break;
    default:
        cps_gen_matmul(g, s);
    }
}

static V
group_function(gen *g, const host_group *grp, const bases *b)
{
    T *params = cps_new_array(g->arena, T, b->v.n + 1), type;
    for (uint32_t i = 0; i < b->v.n; i++)
        params[i] = g->ptr;
    type = LLVMFunctionType(LLVMVoidTypeInContext(g->ctx), params, b->v.n, 0);
    V fn = cps_gen_begin(g, type);
    for (uint32_t i = 0; i < b->v.n; i++) {
        cps_val v = b->v.data[i];
        g->base[v] = LLVMGetParam(fn, i);
        if (!g->p->val[v].shared)
            attribute(g, fn, i + 1, "noalias");
    }
    loop l[HOST_LOOPS];
    nest_at at = {.axis = -1, .lanes = 1};
    for (int i = 0; i < grp->rows; i++) {
        cps_loop_open(g, &l[i], i64c(g, grp->stages.data[0].extent[i]), 1);
        at.iv[i] = l[i].iv;
    }
    for (uint32_t i = 0; i < grp->stages.n; i++)
        emit_stage(g, &grp->stages.data[i], &at, grp->rows);
    for (int i = grp->rows - 1; i >= 0; i--)
        cps_loop_close(g, &l[i]);
    LLVMBuildRetVoid(g->b);
    for (uint32_t i = 0; i < b->v.n; i++)
        g->base[b->v.data[i]] = NULL;
    return cps_gen_end(g, fn);
}

static void
export_u64(gen *g, const char *name, int64_t value)
{
    V v = LLVMAddGlobal(g->mod, g->i64, name);
    LLVMSetInitializer(v, i64c(g, value));
    LLVMSetGlobalConstant(v, 1);
    LLVMSetAlignment(v, 8);
}

void
cps_gen_module(gen *g)
{
    const host_plan *p = g->p;
    g->base = cps_new_array(g->arena, V, p->nval + 1);
    g->embedded = cps_new_array(g->arena, V, p->m->consts.n + 1);
    cps_map_init(&g->bodies, g->arena);
    T type = LLVMFunctionType(g->i32, (T[]){g->ptr, g->ptr, g->ptr, g->ptr}, 4, 0);
    V run = LLVMAddFunction(g->mod, "cps_model_run", type);
    common_attributes(g, run);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(g->ctx, run, "");
    for (uint32_t i = 0; i < p->groups.n; i++) {
        bases b = {{0}};
        collect(g, &p->groups.data[i], &b);
        V *args = cps_new_array(g->arena, V, b.v.n + 1);
        V fn = group_function(g, &p->groups.data[i], &b);
        LLVMPositionBuilderAtEnd(g->b, entry);
        for (uint32_t k = 0; k < b.v.n; k++)
            args[k] = address(g, run, b.v.data[k]);
        LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, args, b.v.n, "");
    }
    LLVMPositionBuilderAtEnd(g->b, entry);
    LLVMBuildRet(g->b, LLVMConstNull(g->i32));
    export_u64(g, "cps_model_scratch_bytes", p->scratch);
    export_u64(g, "cps_model_weights_bytes", p->weights);
}

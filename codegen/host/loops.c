/* Loops, addresses, loads and stores: what every stage is made of. Loops are emitted closed
 * (one test at the end), because every extent is known to be at least one; counters are i64. An
 * access whose step along the lanes is 1 is a vector access, 0 a scalar one spread over the
 * lanes, anything else a gather or scatter. */
#include "codegen/host/gen.h"

#include <stdlib.h>

int
cps_gen_lanes(V v)
{
    T t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t) : 1;
}

T
cps_gen_scalar(V v)
{
    T t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

V
cps_gen_splat(gen *g, V scalar, int lanes)
{
    if (lanes == 1)
        return scalar;
    if (LLVMIsConstant(scalar)) {
        V all[64];
        for (int i = 0; i < lanes; i++)
            all[i] = scalar;
        return LLVMConstVector(all, (unsigned)lanes);
    }
    V v = LLVMBuildInsertElement(g->b, LLVMGetPoison(vec(LLVMTypeOf(scalar), lanes)), scalar,
                                 i64c(g, 0), "");
    return LLVMBuildShuffleVector(g->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstNull(vec(g->i32, lanes)), "");
}

V
cps_gen_const_f(gen *g, T scalar, int lanes, double v)
{
    return cps_gen_splat(g, LLVMConstReal(scalar, v), lanes);
}

V
cps_gen_const_i(gen *g, T scalar, int lanes, int64_t v)
{
    return cps_gen_splat(g, LLVMConstInt(scalar, (unsigned long long)v, 1), lanes);
}

V
cps_gen_lane_mask(gen *g, int lanes, int64_t live)
{
    V all[64];
    for (int i = 0; i < lanes; i++)
        all[i] = LLVMConstInt(g->i1, i < live, 0);
    return LLVMConstVector(all, (unsigned)lanes);
}

V
cps_gen_call(gen *g, const char *intrinsic, int ntypes, T *types, int n, V *args)
{
    unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
    cps_assert(id);
    V f = LLVMGetIntrinsicDeclaration(g->mod, id, types, (size_t)ntypes);
    T ft = LLVMIntrinsicGetType(g->ctx, id, types, (size_t)ntypes);
    return LLVMBuildCall2(g->b, ft, f, args, (unsigned)n, "");
}

V
cps_gen_call1(gen *g, const char *intrinsic, V x)
{
    return cps_gen_call(g, intrinsic, 1, (T[]){LLVMTypeOf(x)}, 1, &x);
}

/* ---- loops ---- */

void
cps_loop_open(gen *g, loop *l, V end, int64_t step)
{
    memset(l, 0, sizeof *l);
    l->before = LLVMGetInsertBlock(g->b);
    l->body = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    l->after = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    l->end = end;
    l->step = step;
    LLVMBuildBr(g->b, l->body);
    LLVMPositionBuilderAtEnd(g->b, l->body);
    l->iv = LLVMBuildPhi(g->b, g->i64, "");
}

V
cps_loop_carry(gen *g, loop *l, V init)
{
    cps_assert(l->ncarried < CARRIED);
    V phi = LLVMBuildPhi(g->b, LLVMTypeOf(init), "");
    LLVMAddIncoming(phi, &init, &l->before, 1);
    l->phi[l->ncarried++] = phi;
    return phi;
}

void
cps_loop_close(gen *g, loop *l)
{
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    V next = LLVMBuildNSWAdd(g->b, l->iv, i64c(g, l->step), "");
    V more = LLVMBuildICmp(g->b, LLVMIntSLT, next, l->end, "");
    LLVMBuildCondBr(g->b, more, l->body, l->after);
    V zero = i64c(g, 0);
    LLVMAddIncoming(l->iv, &zero, &l->before, 1);
    LLVMAddIncoming(l->iv, &next, &end, 1);
    for (int i = 0; i < l->ncarried; i++)
        LLVMAddIncoming(l->phi[i], &l->next[i], &end, 1);
    LLVMMoveBasicBlockAfter(l->after, end);
    LLVMPositionBuilderAtEnd(g->b, l->after);
}

/* ---- addresses ---- */

V
cps_gen_aff(gen *g, const host_aff *a, const nest_at *at)
{
    V sum = i64c(g, a->c);
    for (int l = 0; l < HOST_LOOPS; l++) {
        if (!a->a[l] || !at->iv[l])
            continue;
        V t = a->a[l] == 1 ? at->iv[l] : LLVMBuildNSWMul(g->b, at->iv[l], i64c(g, a->a[l]), "");
        sum = LLVMBuildNSWAdd(g->b, sum, t, "");
    }
    return sum;
}

static V
element(gen *g, cps_val base, T elem, V index)
{
    cps_assert(g->base[base]);
    return LLVMBuildInBoundsGEP2(g->b, elem, g->base[base], &index, 1, "");
}

// Addresses of all lanes.
static V
addresses(gen *g, cps_val base, T elem, V index, int64_t step, int lanes)
{
    V each[64];
    for (int i = 0; i < lanes; i++)
        each[i] = i64c(g, step * i);
    V all = LLVMBuildAdd(g->b, cps_gen_splat(g, index, lanes),
                         LLVMConstVector(each, (unsigned)lanes), "");
    return LLVMBuildInBoundsGEP2(g->b, elem, g->base[base], &all, 1, "");
}

static V
full_mask(gen *g, const nest_at *at)
{
    return at->mask ? at->mask : cps_gen_lane_mask(g, at->lanes, at->lanes);
}

static V
load_at(gen *g, cps_val base, T elem, V index, int64_t step, const nest_at *at)
{
    unsigned align = LLVMGetTypeKind(elem) == LLVMIntegerTypeKind
                         ? LLVMGetIntTypeWidth(elem) / 8
                     : LLVMGetTypeKind(elem) == LLVMHalfTypeKind ? 2
                                                                 : 4;
    int lanes = at->lanes;
    if (lanes == 1 || step == 0) {
        V x = LLVMBuildLoad2(g->b, elem, element(g, base, elem, index), "");
        LLVMSetAlignment(x, align);
        return cps_gen_splat(g, x, lanes);
    }
    T vt = vec(elem, lanes);
    V al = LLVMConstInt(g->i32, align, 0);
    if (step == 1 && !at->mask) {
        V x = LLVMBuildLoad2(g->b, vt, element(g, base, elem, index), "");
        LLVMSetAlignment(x, align);
        return x;
    }
    if (step == 1) {
        V args[4] = {element(g, base, elem, index), al, at->mask, LLVMConstNull(vt)};
        return cps_gen_call(g, "llvm.masked.load", 2, (T[]){vt, g->ptr}, 4, args);
    }
    V args[4] = {addresses(g, base, elem, index, step, lanes), al, full_mask(g, at),
                 LLVMConstNull(vt)};
    return cps_gen_call(g, "llvm.masked.gather", 2, (T[]){vt, vec(g->ptr, lanes)}, 4, args);
}

static int64_t
lane_step(const host_aff *a, const nest_at *at)
{
    return at->axis < 0 ? 0 : a->a[at->axis];
}

V
cps_gen_load(gen *g, cps_val base, cps_dtype t, const host_aff *a, const nest_at *at)
{
    V x = load_at(g, base, cps_gen_mem(g, t), cps_gen_aff(g, a, at), lane_step(a, at), at);
    return cps_gen_widen(g, t, x);
}

void
cps_gen_store(gen *g, cps_val base, cps_dtype t, const host_aff *a, const nest_at *at, V v)
{
    T elem = cps_gen_mem(g, t);
    V x = cps_gen_narrow(g, t, v), index = cps_gen_aff(g, a, at);
    unsigned align = cps_dtype_bytes(t);
    int64_t step = lane_step(a, at);
    if (at->lanes == 1 || (step == 1 && !at->mask)) {
        V st = LLVMBuildStore(g->b, x, element(g, base, elem, index));
        LLVMSetAlignment(st, align);
        return;
    }
    V al = LLVMConstInt(g->i32, align, 0);
    T vt = LLVMTypeOf(x);
    if (step == 1) {
        V args[4] = {x, element(g, base, elem, index), al, at->mask};
        cps_gen_call(g, "llvm.masked.store", 2, (T[]){vt, g->ptr}, 4, args);
        return;
    }
    V args[4] = {x, addresses(g, base, elem, index, step, at->lanes), al, full_mask(g, at)};
    cps_gen_call(g, "llvm.masked.scatter", 2, (T[]){vt, vec(g->ptr, at->lanes)}, 4, args);
}

/* ---- storage and register forms ---- */

T
cps_gen_mem(const gen *g, cps_dtype t)
{
    if (t == CPS_DT_FP32 || t == CPS_DT_TF32)
        return g->f32;
    if (t == CPS_DT_FP16)
        return g->f16;
    return LLVMIntTypeInContext(g->ctx, cps_dtype_bytes(t) * 8);
}

T
cps_gen_reg(const gen *g, cps_dtype t)
{
    if (cps_dtype_is_float(t))
        return g->f32;
    return t == CPS_DT_BOOL ? g->i1 : cps_gen_mem(g, t);
}

V
cps_gen_widen(gen *g, cps_dtype t, V x)
{
    int n = cps_gen_lanes(x);
    switch (t) {
    case CPS_DT_FP16:
        return LLVMBuildFPExt(g->b, x, vec(g->f32, n), "");
    case CPS_DT_BF16: {
        V w = LLVMBuildZExt(g->b, x, vec(g->i32, n), "");
        w = LLVMBuildShl(g->b, w, cps_gen_const_i(g, g->i32, n, 16), "");
        return LLVMBuildBitCast(g->b, w, vec(g->f32, n), "");
    }
    case CPS_DT_BOOL:
        return LLVMBuildICmp(g->b, LLVMIntNE, x, LLVMConstNull(vec(g->i8, n)), "");
    default:
        return x;
    }
}

V
cps_gen_narrow(gen *g, cps_dtype t, V x)
{
    int n = cps_gen_lanes(x);
    switch (t) {
    case CPS_DT_FP16:
        return LLVMBuildFPTrunc(g->b, x, vec(g->f16, n), "");
    case CPS_DT_BF16: { // to nearest, ties to even; NaN stays NaN
        T it = vec(g->i32, n);
        V u = LLVMBuildBitCast(g->b, x, it, "");
        V high = LLVMBuildLShr(g->b, u, cps_gen_const_i(g, g->i32, n, 16), "");
        V odd = LLVMBuildAnd(g->b, high, cps_gen_const_i(g, g->i32, n, 1), "");
        V r = LLVMBuildAdd(
            g->b, u, LLVMBuildAdd(g->b, odd, cps_gen_const_i(g, g->i32, n, 0x7fff), ""), "");
        r = LLVMBuildLShr(g->b, r, cps_gen_const_i(g, g->i32, n, 16), "");
        V nan = LLVMBuildOr(g->b,
                            LLVMBuildAnd(g->b, high, cps_gen_const_i(g, g->i32, n, 0x8000), ""),
                            cps_gen_const_i(g, g->i32, n, 0x7fc0), "");
        V is = LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, "");
        return LLVMBuildTrunc(g->b, LLVMBuildSelect(g->b, is, nan, r, ""), vec(g->i16, n), "");
    }
    case CPS_DT_TF32: { // ten bits of fraction; infinities and NaN keep theirs
        T it = vec(g->i32, n);
        V u = LLVMBuildBitCast(g->b, x, it, "");
        V odd =
            LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, u, cps_gen_const_i(g, g->i32, n, 13), ""),
                         cps_gen_const_i(g, g->i32, n, 1), "");
        V r = LLVMBuildAdd(
            g->b, u, LLVMBuildAdd(g->b, odd, cps_gen_const_i(g, g->i32, n, 0xfff), ""), "");
        r = LLVMBuildAnd(g->b, r, cps_gen_const_i(g, g->i32, n, ~(int64_t)0x1fff), "");
        V is = LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, "");
        return LLVMBuildSelect(g->b, is, x, LLVMBuildBitCast(g->b, r, LLVMTypeOf(x), ""), "");
    }
    case CPS_DT_BOOL:
        return LLVMBuildZExt(g->b, x, vec(g->i8, n), "");
    default:
        return x;
    }
}

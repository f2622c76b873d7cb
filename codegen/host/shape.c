/* What moves elements to places only the data knows: scatter and sort. All other shape ops are
 * views or plain maps (fuse.c). Indices outside the axis are skipped, as the graph says of
 * negative ones. The sort is a stable merge sort of (key, position) pairs, one internal
 * function for all sorts of the module; keys are integers ordered as the values are, NaN last.
 */
#include "codegen/host/gen.h"

static bool
depends(const host_stage *s, uint32_t x, int axis)
{
    if (s->x[x].at.a[axis])
        return true;
    for (uint32_t i = 0; i < s->x[x].nin; i++)
        if (depends(s, s->x[x].in[i], axis))
            return true;
    return false;
}

static void
scatter_point(gen *g, const host_stage *s, nest_at *at)
{
    V *all = cps_new_array(g->arena, V, s->nx);
    V x = cps_gen_eval(g, s, at, all);
    cps_dtype it = s->x[s->index].dtype;
    V index = LLVMBuildIntCast2(g->b, all[s->index], g->i64, cps_dtypes[it].kind == 'S', "");
    V ok = LLVMBuildICmp(g->b, LLVMIntULT, index, i64c(g, s->limit), "");
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    LLVMBuildCondBr(g->b, ok, then, after);
    LLVMPositionBuilderAtEnd(g->b, then);
    V by = LLVMBuildMul(g->b, index, i64c(g, s->step), ""), old = g->base[s->to];
    g->base[s->to] = LLVMBuildInBoundsGEP2(g->b, cps_gen_mem(g, s->dtype), old, &by, 1, "");
    if (cps_attr_int(s->node->attr, s->node->nattr, "add", 0)) {
        V had = cps_gen_load(g, s->to, s->dtype, &s->store, at);
        x = cps_dtype_is_float(s->dtype) ? LLVMBuildFAdd(g->b, had, x, "")
                                         : LLVMBuildAdd(g->b, had, x, "");
    }
    cps_gen_store(g, s->to, s->dtype, &s->store, at, x);
    g->base[s->to] = old;
    LLVMBuildBr(g->b, after);
    LLVMPositionBuilderAtEnd(g->b, after);
}

void
cps_gen_scatter(gen *g, const host_stage *s, nest_at *at, int from)
{
    loop l[HOST_LOOPS], in;
    int last = s->nloop - 1, end = s->nloop;
    bool wide = last >= from && s->store.a[last] == 1 && !depends(s, s->index, last) &&
                s->extent[last] >= g->lanes;
    if (wide)
        end = last;
    for (int i = from; i < end; i++) {
        cps_loop_open(g, &l[i], i64c(g, s->extent[i]), 1);
        at->iv[i] = l[i].iv;
    }
    at->lanes = 1;
    at->axis = -1;
    if (!wide) {
        scatter_point(g, s, at);
    } else {
        int64_t whole = s->extent[last] / g->lanes * g->lanes;
        at->axis = last;
        at->lanes = g->lanes;
        cps_loop_open(g, &in, i64c(g, whole), g->lanes);
        at->iv[last] = in.iv;
        scatter_point(g, s, at);
        cps_loop_close(g, &in);
        if (s->extent[last] > whole) {
            at->iv[last] = i64c(g, whole);
            at->mask = cps_gen_lane_mask(g, g->lanes, s->extent[last] - whole);
            scatter_point(g, s, at);
        }
    }
    for (int i = end - 1; i >= from; i--)
        cps_loop_close(g, &l[i]);
}

/* ---- sort ---- */

static V
gep(gen *g, T elem, V p, V index)
{
    return LLVMBuildInBoundsGEP2(g->b, elem, p, &index, 1, "");
}

static V
smaller(gen *g, V a, V b)
{
    return LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, a, b, ""), a, b, "");
}

// ptr merge_sort(a, b, n, levels): sorts n pairs in a with the help of b; yields where they
// are.
static V
merge_function(gen *g)
{
    if (g->merge_fn)
        return g->merge_fn;
    LLVMBasicBlockRef back = LLVMGetInsertBlock(g->b);
    V outer = g->fn;
    T pair = LLVMVectorType(g->i64, 2);
    g->fn =
        LLVMAddFunction(g->mod, "cps_merge_sort",
                        LLVMFunctionType(g->ptr, (T[]){g->ptr, g->ptr, g->i64, g->i64}, 4, 0));
    LLVMSetLinkage(g->fn, LLVMInternalLinkage);
    V fn = g->fn, n = LLVMGetParam(fn, 2);
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->ctx, fn, ""));
    loop level, run, step;
    cps_loop_open(g, &level, LLVMGetParam(fn, 3), 1);
    V a = cps_loop_carry(g, &level, LLVMGetParam(fn, 0));
    V b = cps_loop_carry(g, &level, LLVMGetParam(fn, 1));
    V half = LLVMBuildShl(g->b, i64c(g, 1), level.iv, "");
    V shift = LLVMBuildAdd(g->b, level.iv, i64c(g, 1), "");
    V full = LLVMBuildShl(g->b, half, i64c(g, 1), "");
    V runs = LLVMBuildSub(g->b, LLVMBuildAdd(g->b, n, full, ""), i64c(g, 1), "");
    cps_loop_open(g, &run, LLVMBuildLShr(g->b, runs, shift, ""), 1);
    V lo = LLVMBuildShl(g->b, run.iv, shift, "");
    V mid = smaller(g, LLVMBuildAdd(g->b, lo, half, ""), n);
    V hi = smaller(g, LLVMBuildAdd(g->b, lo, full, ""), n);
    cps_loop_open(g, &step, LLVMBuildSub(g->b, hi, lo, ""), 1);
    V i = cps_loop_carry(g, &step, lo), j = cps_loop_carry(g, &step, mid);
    V left = LLVMBuildICmp(g->b, LLVMIntSLT, i, mid, "");
    V right = LLVMBuildICmp(g->b, LLVMIntSLT, j, hi, "");
    // an exhausted side is read at the run's begin, and the value not used
    V pi =
        LLVMBuildLoad2(g->b, pair, gep(g, pair, a, LLVMBuildSelect(g->b, left, i, lo, "")), "");
    V pj = LLVMBuildLoad2(g->b, pair, gep(g, pair, a, LLVMBuildSelect(g->b, right, j, lo, "")),
                          "");
    LLVMSetAlignment(pi, 16);
    LLVMSetAlignment(pj, 16);
    V le = LLVMBuildICmp(g->b, LLVMIntSLE, LLVMBuildExtractElement(g->b, pi, i64c(g, 0), ""),
                         LLVMBuildExtractElement(g->b, pj, i64c(g, 0), ""), "");
    V ahead = LLVMBuildOr(g->b, le, LLVMBuildNot(g->b, right, ""), "");
    V take = LLVMBuildAnd(g->b, left, ahead, "");
    V st = LLVMBuildStore(g->b, LLVMBuildSelect(g->b, take, pi, pj, ""),
                          gep(g, pair, b, LLVMBuildAdd(g->b, lo, step.iv, "")));
    LLVMSetAlignment(st, 16);
    V one = LLVMBuildZExt(g->b, take, g->i64, "");
    step.next[0] = LLVMBuildAdd(g->b, i, one, "");
    step.next[1] = LLVMBuildAdd(g->b, j, LLVMBuildSub(g->b, i64c(g, 1), one, ""), "");
    cps_loop_close(g, &step);
    cps_loop_close(g, &run);
    level.next[0] = b;
    level.next[1] = a;
    cps_loop_close(g, &level);
    LLVMBuildRet(g->b, level.next[0]);
    g->merge_fn = fn;
    g->fn = outer;
    LLVMPositionBuilderAtEnd(g->b, back);
    return fn;
}

static V
key_of(gen *g, cps_dtype t, V x, bool down)
{
    V key;
    if (cps_dtype_is_float(t)) {
        V zero = LLVMConstReal(g->f32, 0), top = LLVMConstInt(g->i32, 0x7fffffff, 0);
        V bits = LLVMBuildBitCast(g->b, x, g->i32, "");
        V flip = LLVMBuildXor(g->b, bits, top, "");
        V neg = LLVMBuildICmp(g->b, LLVMIntSLT, bits, LLVMConstNull(g->i32), "");
        key = LLVMBuildSelect(g->b, neg, flip, bits, "");
        V is_zero = LLVMBuildFCmp(g->b, LLVMRealOEQ, x, zero, "");
        key = LLVMBuildSelect(g->b, is_zero, LLVMConstNull(g->i32), key, "");
        key = LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, ""), top, key, "");
        key = LLVMBuildSExt(g->b, key, g->i64, "");
    } else {
        key = LLVMBuildIntCast2(g->b, x, g->i64, cps_dtypes[t].kind == 'S', "");
        if (t == CPS_DT_U64)
            key = LLVMBuildXor(g->b, key, LLVMConstInt(g->i64, (uint64_t)1 << 63, 0), "");
    }
    return down ? LLVMBuildNot(g->b, key, "") : key;
}

void
cps_gen_sort(gen *g, const host_stage *s)
{
    const host_sort *q = s->sort;
    cps_dtype t = cps_host_type(g->p, s->node->in[0])->dtype;
    T raw = cps_gen_mem(g, t), pair = LLVMVectorType(g->i64, 2);
    loop l[CPS_MAX_RANK], k;
    V from = i64c(g, q->off), to = i64c(g, 0);
    for (int i = 0; i < q->nloop; i++) {
        cps_loop_open(g, &l[i], i64c(g, q->extent[i]), 1);
        from =
            LLVMBuildAdd(g->b, from, LLVMBuildMul(g->b, l[i].iv, i64c(g, q->from[i]), ""), "");
        to = LLVMBuildAdd(g->b, to, LLVMBuildMul(g->b, l[i].iv, i64c(g, q->to[i]), ""), "");
    }
    V source = gep(g, raw, g->base[q->base], from), a = g->base[q->work];
    V b = gep(g, pair, a, i64c(g, q->n));
    cps_loop_open(g, &k, i64c(g, q->n), 1);
    V at = LLVMBuildMul(g->b, k.iv, i64c(g, q->step), "");
    V x = LLVMBuildLoad2(g->b, raw, gep(g, raw, source, at), "");
    LLVMSetAlignment(x, cps_dtype_bytes(t));
    V p = LLVMBuildInsertElement(g->b, LLVMGetPoison(pair),
                                 key_of(g, t, cps_gen_widen(g, t, x), q->down), i64c(g, 0), "");
    p = LLVMBuildInsertElement(g->b, p, k.iv, i64c(g, 1), "");
    LLVMSetAlignment(LLVMBuildStore(g->b, p, gep(g, pair, a, k.iv)), 16);
    cps_loop_close(g, &k);
    int64_t levels = 0;
    while (((int64_t)1 << levels) < q->n)
        levels++;
    if (levels) {
        V fn = merge_function(g);
        V args[4] = {a, b, i64c(g, q->n), i64c(g, levels)};
        a = LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, args, 4, "");
    }
    cps_loop_open(g, &k, i64c(g, q->n), 1);
    V index =
        LLVMBuildLoad2(g->b, g->i64, gep(g, g->i64, gep(g, pair, a, k.iv), i64c(g, 1)), "");
    V out = LLVMBuildAdd(g->b, to, LLVMBuildMul(g->b, k.iv, i64c(g, q->out_step), ""), "");
    if (q->values) {
        V y = LLVMBuildLoad2(
            g->b, raw, gep(g, raw, source, LLVMBuildMul(g->b, index, i64c(g, q->step), "")),
            "");
        LLVMSetAlignment(y, cps_dtype_bytes(t));
        LLVMSetAlignment(LLVMBuildStore(g->b, y, gep(g, raw, g->base[q->values], out)),
                         cps_dtype_bytes(t));
    }
    if (q->order)
        LLVMSetAlignment(LLVMBuildStore(g->b, index, gep(g, g->i64, g->base[q->order], out)),
                         8);
    cps_loop_close(g, &k);
    for (int i = q->nloop - 1; i >= 0; i--)
        cps_loop_close(g, &l[i]);
}

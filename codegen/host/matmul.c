/* Matrix products. A register tile of mr rows by nv vectors runs along k; panels of B and,
 * where needed, blocks of A are packed into scratch as they come by (tile.c decides). Tiles and
 * packers are internal functions whose strides are constants; equal ones are shared by all
 * products of the module. A product of few rows with both operands contiguous along k takes
 * sums along k instead.
 *
 * Narrow floats are widened when packed or loaded, summed in fp32 and rounded once. Integers
 * are summed in their own width, which wraps as the graph says. */
#include "codegen/host/gen.h"

enum { AHEAD = 16 }; // rows of B fetched before they are packed

typedef struct mmgen {
    gen *g;
    const host_mm *q;
    const host_tile *t;
    T elem; // in registers and in packed memory
    int nr;
} mmgen;

static V
gep(gen *g, T elem, V p, V index)
{
    return LLVMBuildInBoundsGEP2(g->b, elem, p, &index, 1, "");
}
static V
times(gen *g, V x, int64_t by)
{
    return by == 0 ? i64c(g, 0) : by == 1 ? x : LLVMBuildNSWMul(g->b, x, i64c(g, by), "");
}
static V
plus(gen *g, V x, V y)
{
    return LLVMBuildNSWAdd(g->b, x, y, "");
}
static V
least(gen *g, V x, V y)
{
    return LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, x, y, ""), x, y, "");
}

// Lanes i with first + i < end.
static V
live_lanes(gen *g, V first, V end, int lanes)
{
    V all[64];
    for (int i = 0; i < lanes; i++)
        all[i] = i64c(g, i);
    V at = LLVMBuildAdd(g->b, cps_gen_splat(g, first, lanes),
                        LLVMConstVector(all, (unsigned)lanes), "");
    return LLVMBuildICmp(g->b, LLVMIntSLT, at, cps_gen_splat(g, end, lanes), "");
}

static unsigned
align_of(const mmgen *m, cps_dtype raw)
{
    return raw ? cps_dtype_bytes(raw)
               : cps_dtype_bytes(m->q->dtype == CPS_DT_BF16 || m->q->dtype == CPS_DT_FP16
                                     ? CPS_DT_FP32
                                     : m->q->dtype);
}

/* Memory is either raw (the dtype of the product) or packed (the register type). `mask` NULL:
 * all lanes. */
static V
load(const mmgen *m, bool raw, V p, int lanes, V mask)
{
    gen *g = m->g;
    cps_dtype dt = raw ? m->q->dtype : CPS_DT_NONE;
    T e = raw ? cps_gen_mem(g, dt) : m->elem, vt = vec(e, lanes);
    V x;
    if (mask) {
        V args[4] = {p, LLVMConstInt(g->i32, align_of(m, dt), 0), mask, LLVMConstNull(vt)};
        x = cps_gen_call(g, "llvm.masked.load", 2, (T[]){vt, g->ptr}, 4, args);
    } else {
        x = LLVMBuildLoad2(g->b, vt, p, "");
        LLVMSetAlignment(x, align_of(m, dt));
    }
    return raw ? cps_gen_widen(g, dt, x) : x;
}

static void
store(const mmgen *m, bool raw, V p, V x, V mask)
{
    gen *g = m->g;
    cps_dtype dt = raw ? m->q->dtype : CPS_DT_NONE;
    if (raw)
        x = cps_gen_narrow(g, dt, x);
    if (mask) {
        V args[4] = {x, p, LLVMConstInt(g->i32, align_of(m, dt), 0), mask};
        cps_gen_call(g, "llvm.masked.store", 2, (T[]){LLVMTypeOf(x), g->ptr}, 4, args);
        return;
    }
    LLVMSetAlignment(LLVMBuildStore(g->b, x, p), align_of(m, dt));
}

static V
mul_add(const mmgen *m, V a, V b, V acc)
{
    gen *g = m->g;
    if (cps_dtype_is_float(m->q->dtype))
        return cps_m_fma(g, a, b, acc);
    return LLVMBuildAdd(g->b, acc, LLVMBuildMul(g->b, a, b, ""), "");
}

static T
raw_type(const mmgen *m)
{
    return cps_gen_mem(m->g, m->q->dtype);
}

/* ---- the register tile ---- */

typedef struct tile {
    int rows;
    int64_t cols; // elements of the panel that exist
    bool later;   // adds to what C holds
} tile;

// void tile(A, B, C, D, k): C = D + A B, D the addend (or C itself), none: 0.
static V
tile_function(const mmgen *m, tile k)
{
    gen *g = m->g;
    const host_mm *q = m->q;
    const host_tile *t = m->t;
    T type = LLVMFunctionType(LLVMVoidTypeInContext(g->ctx),
                              (T[]){g->ptr, g->ptr, g->ptr, g->ptr, g->i64}, 5, 0);
    LLVMBasicBlockRef back = LLVMGetInsertBlock(g->b);
    V outer = g->fn, fn = cps_gen_begin(g, type);
    V a = LLVMGetParam(fn, 0), b = LLVMGetParam(fn, 1), c = LLVMGetParam(fn, 2);
    V d = LLVMGetParam(fn, 3);
    int lanes = t->lanes, nv = (int)cps_ceil_div(k.cols, lanes);
    int64_t rest = k.cols % lanes;
    V last = rest ? cps_gen_lane_mask(g, lanes, rest) : NULL, acc[CARRIED];
    T ae = t->pack_a ? m->elem : raw_type(m), be = t->pack_b ? m->elem : raw_type(m);
    int64_t ars = t->pack_a ? t->a_stride : q->a.rs, acs = t->pack_a ? 1 : q->a.cs;
    int64_t brs = t->pack_b ? m->nr : q->b.rs;
    bool addend = k.later || q->add.base;
    int64_t drs = k.later ? q->c.rs : q->add.rs, dcs = k.later ? 1 : q->add.cs;
    cps_assert(k.rows * nv <= CARRIED);
    for (int r = 0; r < k.rows; r++)
        for (int v = 0; v < nv; v++) {
            V x = LLVMConstNull(vec(m->elem, lanes));
            if (addend) {
                V p = gep(g, raw_type(m), d, i64c(g, r * drs + v * lanes * dcs));
                x = dcs ? load(m, true, p, lanes, v == nv - 1 ? last : NULL)
                        : cps_gen_splat(g, load(m, true, p, 1, NULL), lanes);
            }
            acc[r * nv + v] = x;
        }
    loop l;
    cps_loop_open(g, &l, LLVMGetParam(fn, 4), 1);
    for (int i = 0; i < k.rows * nv; i++)
        acc[i] = cps_loop_carry(g, &l, acc[i]);
    V bv[8], bp = gep(g, be, b, times(g, l.iv, brs));
    for (int v = 0; v < nv; v++)
        bv[v] = load(m, !t->pack_b, gep(g, be, bp, i64c(g, v * lanes)), lanes,
                     v == nv - 1 && !t->pack_b ? last : NULL);
    V ap = gep(g, ae, a, times(g, l.iv, acs));
    for (int r = 0; r < k.rows; r++) {
        V x = load(m, !t->pack_a, gep(g, ae, ap, i64c(g, r * ars)), 1, NULL);
        x = cps_gen_splat(g, x, lanes);
        for (int v = 0; v < nv; v++)
            l.next[r * nv + v] = mul_add(m, x, bv[v], acc[r * nv + v]);
    }
    cps_loop_close(g, &l);
    for (int r = 0; r < k.rows; r++)
        for (int v = 0; v < nv; v++)
            store(m, true, gep(g, raw_type(m), c, i64c(g, r * q->c.rs + v * lanes)),
                  l.next[r * nv + v], v == nv - 1 ? last : NULL);
    LLVMBuildRetVoid(g->b);
    fn = cps_gen_end(g, fn);
    g->fn = outer;
    LLVMPositionBuilderAtEnd(g->b, back);
    return fn;
}

/* ---- packing ---- */

// A square block, read along rows of `step` elements: block[i] lane j = p[j * step + i].
static void
load_block(const mmgen *m, V p, int64_t step, V first, V end, int64_t live, V *block)
{
    gen *g = m->g;
    int lanes = m->t->lanes;
    V mask = live_lanes(g, first, end, lanes);
    for (int j = 0; j < lanes; j++)
        block[j] = j < live
                       ? load(m, true, gep(g, raw_type(m), p, i64c(g, j * step)), lanes, mask)
                       : LLVMConstNull(vec(m->elem, lanes));
    cps_gen_transpose(g, block, lanes);
}

static V
load_strided(const mmgen *m, V p, int64_t step, V mask)
{
    gen *g = m->g;
    int lanes = m->t->lanes;
    V each[64];
    T vt = vec(raw_type(m), lanes);
    for (int i = 0; i < lanes; i++)
        each[i] = i64c(g, i * step);
    V at = LLVMConstVector(each, (unsigned)lanes);
    V args[4] = {LLVMBuildInBoundsGEP2(g->b, raw_type(m), p, &at, 1, ""),
                 LLVMConstInt(g->i32, align_of(m, m->q->dtype), 0), mask, LLVMConstNull(vt)};
    V x = cps_gen_call(g, "llvm.masked.gather", 2, (T[]){vt, vec(g->ptr, lanes)}, 4, args);
    return cps_gen_widen(g, m->q->dtype, x);
}

// Rows of a matrix lie too far apart for the hardware to foresee. The address may lie outside.
static void
fetch_ahead(const mmgen *m, V p, int64_t elements)
{
    gen *g = m->g;
    V at = i64c(g, elements);
    V args[4] = {LLVMBuildGEP2(g->b, raw_type(m), p, &at, 1, ""), LLVMConstInt(g->i32, 0, 0),
                 LLVMConstInt(g->i32, 3, 0), LLVMConstInt(g->i32, 1, 0)};
    cps_gen_call(g, "llvm.prefetch", 1, &g->ptr, 4, args);
}

// void pack(B, to, k): to[k][nr], columns beyond `cols` zero.
static V
pack_b_function(const mmgen *m, int64_t cols)
{
    gen *g = m->g;
    const host_mat *b = &m->q->b;
    int lanes = m->t->lanes, nv = (int)cps_ceil_div(cols, lanes);
    T type =
        LLVMFunctionType(LLVMVoidTypeInContext(g->ctx), (T[]){g->ptr, g->ptr, g->i64}, 3, 0);
    LLVMBasicBlockRef back = LLVMGetInsertBlock(g->b);
    V outer = g->fn, fn = cps_gen_begin(g, type);
    V from = LLVMGetParam(fn, 0), to = LLVMGetParam(fn, 1), depth = LLVMGetParam(fn, 2);
    loop l;
    bool along = b->rs == 1 && b->cs != 1;
    cps_loop_open(g, &l, depth, along ? lanes : 1);
    V p = gep(g, raw_type(m), from, times(g, l.iv, b->rs));
    V z = gep(g, m->elem, to, times(g, l.iv, m->nr));
    for (int v = 0; v < nv; v++) {
        int64_t live = CPS_MIN(lanes, cols - v * lanes);
        V pv = gep(g, raw_type(m), p, i64c(g, v * lanes * b->cs));
        V zv = gep(g, m->elem, z, i64c(g, v * lanes));
        V mask = cps_gen_lane_mask(g, lanes, live);
        if (along) {
            V block[64];
            load_block(m, pv, b->cs, l.iv, depth, live, block);
            for (int i = 0; i < lanes; i++)
                store(m, false, gep(g, m->elem, zv, i64c(g, (int64_t)i * m->nr)), block[i],
                      NULL);
        } else if (b->cs == 1) {
            fetch_ahead(m, pv, b->rs * AHEAD);
            store(m, false, zv, load(m, true, pv, lanes, live < lanes ? mask : NULL), NULL);
        } else {
            store(m, false, zv, load_strided(m, pv, b->cs, mask), NULL);
        }
    }
    cps_loop_close(g, &l);
    LLVMBuildRetVoid(g->b);
    fn = cps_gen_end(g, fn);
    g->fn = outer;
    LLVMPositionBuilderAtEnd(g->b, back);
    return fn;
}

// void pack(A, to, rows, k): to[rows][a_stride].
static V
pack_a_function(const mmgen *m)
{
    gen *g = m->g;
    const host_mat *a = &m->q->a;
    int lanes = m->t->lanes;
    T type = LLVMFunctionType(LLVMVoidTypeInContext(g->ctx),
                              (T[]){g->ptr, g->ptr, g->i64, g->i64}, 4, 0);
    LLVMBasicBlockRef back = LLVMGetInsertBlock(g->b);
    V outer = g->fn, fn = cps_gen_begin(g, type);
    V from = LLVMGetParam(fn, 0), to = LLVMGetParam(fn, 1);
    V rows = LLVMGetParam(fn, 2), depth = LLVMGetParam(fn, 3);
    loop r, l;
    bool along = a->rs == 1 && a->cs != 1; // columns are contiguous: squares of lanes
    cps_loop_open(g, &r, rows, along ? lanes : 1);
    cps_loop_open(g, &l, depth, lanes);
    V at = plus(g, times(g, r.iv, a->rs), times(g, l.iv, a->cs));
    V p = gep(g, raw_type(m), from, at);
    V z = gep(g, m->elem, to, plus(g, times(g, r.iv, m->t->a_stride), l.iv));
    V inside = live_lanes(g, l.iv, depth, lanes);
    if (along) {
        V block[64], mask = live_lanes(g, r.iv, rows, lanes);
        V left = LLVMBuildNSWSub(g->b, LLVMBuildNSWSub(g->b, depth, l.iv, ""), i64c(g, 1), "");
        for (int j = 0; j < lanes; j++) { // columns beyond the depth repeat the last one
            V col = least(g, i64c(g, j), left);
            block[j] = load(m, true, gep(g, raw_type(m), p, times(g, col, a->cs)), lanes, mask);
        }
        cps_gen_transpose(g, block, lanes);
        for (int i = 0; i < lanes; i++)
            store(m, false, gep(g, m->elem, z, i64c(g, i * m->t->a_stride)), block[i], NULL);
    } else if (a->cs == 1) {
        store(m, false, z, load(m, true, p, lanes, inside), NULL);
    } else {
        store(m, false, z, load_strided(m, p, a->cs, inside), NULL);
    }
    cps_loop_close(g, &l);
    cps_loop_close(g, &r);
    LLVMBuildRetVoid(g->b);
    fn = cps_gen_end(g, fn);
    g->fn = outer;
    LLVMPositionBuilderAtEnd(g->b, back);
    return fn;
}

/* ---- blocks ---- */

static void
call(gen *g, V fn, int n, V *args)
{
    LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, args, (unsigned)n, "");
}

typedef struct block {
    V a, b, c, d; // of this batch element
    V row, rows;  // block of rows: first, how many whole tiles
    V has_rest;   // the rows below a whole tile belong to this block
    V k, depth;   // block of k: first, how many
    V pa, pb;     // packed A and panel of B
} block;

// All row tiles of the block against one panel.
static void
panel(const mmgen *m, const block *x, V col, int64_t cols)
{
    gen *g = m->g;
    const host_mm *q = m->q;
    const host_tile *t = m->t;
    T raw = raw_type(m);
    V b = gep(g, raw, x->b, plus(g, times(g, x->k, q->b.rs), times(g, col, q->b.cs)));
    if (t->pack_b) {
        call(g, pack_b_function(m, cols), 3, (V[]){b, x->pb, x->depth});
        b = x->pb;
    }
    int rest = (int)(q->m % t->mr);
    V first = LLVMBuildICmp(g->b, LLVMIntEQ, x->k, i64c(g, 0), "");
    for (int part = 0; part < 2; part++) { // whole tiles, then the rest
        if (part == 0 ? q->m < t->mr : rest == 0)
            continue;
        tile k = {part ? rest : t->mr, cols, false};
        V fn = tile_function(m, k);
        T type = LLVMGlobalGetValueType(fn);
        if (t->kc < q->k) {
            k.later = true;
            fn = LLVMBuildSelect(g->b, first, fn, tile_function(m, k), "");
        }
        LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
        LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
        V some = part ? x->has_rest : LLVMBuildICmp(g->b, LLVMIntSGT, x->rows, i64c(g, 0), "");
        LLVMBuildCondBr(g->b, some, then, after);
        LLVMPositionBuilderAtEnd(g->b, then);
        loop l;
        V n = part ? i64c(g, 1) : x->rows;
        cps_loop_open(g, &l, n, 1);
        V in = times(g, part ? x->rows : l.iv, t->mr); // row inside the block
        V row = plus(g, x->row, in);
        V a = t->pack_a
                  ? gep(g, m->elem, x->pa, times(g, in, t->a_stride))
                  : gep(g, raw, x->a, plus(g, times(g, row, q->a.rs), times(g, x->k, q->a.cs)));
        V c = gep(g, raw, x->c, plus(g, times(g, row, q->c.rs), col));
        V d = c;
        if (q->add.base) {
            d = gep(g, raw, x->d, plus(g, times(g, row, q->add.rs), times(g, col, q->add.cs)));
            if (t->kc < q->k)
                d = LLVMBuildSelect(g->b, first, d, c, "");
        }
        LLVMBuildCall2(g->b, type, fn, (V[]){a, b, c, d, x->depth}, 5, "");
        cps_loop_close(g, &l);
        LLVMBuildBr(g->b, after);
        LLVMMoveBasicBlockAfter(after, LLVMGetInsertBlock(g->b));
        LLVMPositionBuilderAtEnd(g->b, after);
    }
}

static void
blocks(const mmgen *m, block x)
{
    gen *g = m->g;
    const host_mm *q = m->q;
    const host_tile *t = m->t;
    int64_t tiles = q->m / t->mr,
            per = t->mc / t->mr; // whole tiles, and how many a block takes
    int64_t nblocks = CPS_MAX(1, cps_ceil_div(tiles, per));
    loop lm, lk, ln;
    cps_loop_open(g, &lm, i64c(g, nblocks), 1);
    x.row = times(g, lm.iv, t->mc);
    x.rows =
        least(g, i64c(g, per), LLVMBuildNSWSub(g->b, i64c(g, tiles), times(g, lm.iv, per), ""));
    x.has_rest = LLVMBuildICmp(g->b, LLVMIntEQ, lm.iv, i64c(g, nblocks - 1), "");
    cps_loop_open(g, &lk, i64c(g, q->k), t->kc);
    x.k = lk.iv;
    x.depth = least(g, i64c(g, t->kc), LLVMBuildNSWSub(g->b, i64c(g, q->k), lk.iv, ""));
    if (t->pack_a) {
        V rest = LLVMBuildSelect(g->b, x.has_rest, i64c(g, q->m % t->mr), i64c(g, 0), "");
        V rows = plus(g, times(g, x.rows, t->mr), rest);
        V from =
            gep(g, raw_type(m), x.a, plus(g, times(g, x.row, q->a.rs), times(g, x.k, q->a.cs)));
        call(g, pack_a_function(m), 4, (V[]){from, x.pa, rows, x.depth});
    }
    int64_t whole = q->n / m->nr;
    if (whole) {
        cps_loop_open(g, &ln, i64c(g, whole * m->nr), m->nr);
        panel(m, &x, ln.iv, m->nr);
        cps_loop_close(g, &ln);
    }
    if (q->n % m->nr)
        panel(m, &x, i64c(g, whole * m->nr), q->n % m->nr);
    cps_loop_close(g, &lk);
    cps_loop_close(g, &lm);
}

/* ---- few rows, contiguous along k ---- */

static V
sum_lanes(const mmgen *m, V x)
{
    gen *g = m->g;
    for (int n = cps_gen_lanes(x); n > 1; n /= 2) {
        V lo[64], hi[64];
        for (int i = 0; i < n / 2; i++) {
            lo[i] = LLVMConstInt(g->i32, (unsigned)i, 0);
            hi[i] = LLVMConstInt(g->i32, (unsigned)(i + n / 2), 0);
        }
        V none = LLVMGetPoison(LLVMTypeOf(x));
        V a = LLVMBuildShuffleVector(g->b, x, none, LLVMConstVector(lo, (unsigned)n / 2), "");
        V b = LLVMBuildShuffleVector(g->b, x, none, LLVMConstVector(hi, (unsigned)n / 2), "");
        x = LLVMBuildFAdd(g->b, a, b, "");
    }
    return LLVMBuildExtractElement(g->b, x, i64c(g, 0), "");
}

static void
dots(const mmgen *m, const block *x, V col, int cols)
{
    gen *g = m->g;
    const host_mm *q = m->q;
    int lanes = m->t->lanes, rows = (int)q->m;
    int64_t whole = q->k / lanes * lanes;
    T raw = raw_type(m);
    V acc[16], b = gep(g, raw, x->b, times(g, col, q->b.cs));
    loop l;
    cps_loop_open(g, &l, i64c(g, whole), lanes);
    for (int i = 0; i < rows * cols; i++)
        acc[i] = cps_loop_carry(g, &l, LLVMConstNull(vec(m->elem, lanes)));
    for (int part = 0; part < (q->k > whole ? 2 : 1); part++) {
        V at = part ? i64c(g, whole) : l.iv, mask = NULL, av[4];
        if (part) {
            cps_loop_close(g, &l);
            memcpy(acc, l.next, sizeof acc);
            mask = cps_gen_lane_mask(g, lanes, q->k - whole);
        }
        for (int r = 0; r < rows; r++)
            av[r] = load(m, true, gep(g, raw, x->a, plus(g, at, i64c(g, r * q->a.rs))), lanes,
                         mask);
        for (int c = 0; c < cols; c++) {
            V p = gep(g, raw, b, plus(g, at, i64c(g, c * q->b.cs)));
            V bv = load(m, true, p, lanes, mask);
            for (int r = 0; r < rows; r++)
                acc[r * cols + c] = mul_add(m, av[r], bv, acc[r * cols + c]);
        }
        if (!part)
            memcpy(l.next, acc, sizeof acc);
    }
    if (q->k == whole)
        cps_loop_close(g, &l);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++) {
            V y = sum_lanes(m, acc[r * cols + c]), at = plus(g, col, i64c(g, c));
            if (q->add.base) {
                V d =
                    gep(g, raw, x->d, plus(g, times(g, at, q->add.cs), i64c(g, r * q->add.rs)));
                y = LLVMBuildFAdd(g->b, y, load(m, true, d, 1, NULL), "");
            }
            store(m, true, gep(g, raw, x->c, plus(g, at, i64c(g, r * q->c.rs))), y, NULL);
        }
}

void
cps_gen_matmul(gen *g, const host_stage *s)
{
    const host_mm *q = s->mm;
    mmgen m = {g, q, &q->tile, cps_gen_reg(g, q->dtype), q->tile.nv * q->tile.lanes};
    loop l[CPS_MAX_RANK];
    const host_mat *all[4] = {&q->a, &q->b, &q->c, &q->add};
    V at[4];
    for (int k = 0; k < 4; k++)
        at[k] = all[k]->base ? gep(g, raw_type(&m), g->base[all[k]->base], i64c(g, all[k]->off))
                             : NULL;
    for (int i = 0; i < q->nbatch; i++) {
        cps_loop_open(g, &l[i], i64c(g, q->batch[i]), 1);
        for (int k = 0; k < 4; k++)
            if (at[k])
                at[k] = gep(g, raw_type(&m), at[k], times(g, l[i].iv, all[k]->bs[i]));
    }
    block x = {.a = at[0], .b = at[1], .c = at[2], .d = at[3]};
    if (q->work) {
        x.pa = g->base[q->work];
        x.pb = gep(g, g->i8, g->base[q->work], i64c(g, q->tile.a_bytes));
    }
    if (q->tile.dot) {
        loop ln;
        int64_t whole = q->n / 4 * 4;
        if (whole) {
            cps_loop_open(g, &ln, i64c(g, whole), 4);
            dots(&m, &x, ln.iv, 4);
            cps_loop_close(g, &ln);
        }
        if (q->n > whole)
            dots(&m, &x, i64c(g, whole), (int)(q->n - whole));
    } else {
        blocks(&m, x);
    }
    for (int i = q->nbatch - 1; i >= 0; i--)
        cps_loop_close(g, &l[i]);
}

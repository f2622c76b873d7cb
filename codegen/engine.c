/* Engine assignment: afterwards every instruction has one engine that can run it.
 *
 * An engine written in the source is kept, or refused when it cannot do the work; so is one
 * that the front end chose. Otherwise the first engine of the instruction's row that can.
 * Copies and fills, which several engines do equally well, go where the work before them ends
 * first (by the cost model of the ISA room), unless the source says otherwise.
 *
 * DMA: transfers that bring data in are started by SP, which does nothing else and runs ahead
 * as far as slots are free. Everything that waits for results (stores, on-chip moves, reloads
 * of what the kernel itself stored) is started by POOL, so that it never stands before a load.
 * Since every engine keeps program order, no assignment can deadlock. */
#include "codegen/legal.h"

#define MARGIN 2000000 /* ps of work ahead before work moves to another engine */

static unsigned
row_engines(cps_top op)
{
    unsigned mask = 0;
    for (const char *s = cps_tops[op].engines; *s;) {
        size_t n = strcspn(s, " ");
        char word[8] = "";
        if (n < sizeof word) {
            memcpy(word, s, n);
            cps_engine e = cps_engine_parse(word);
            mask |= e < CPS_ENGINES ? 1u << e : cps_streq(word, "any") ? CPS_ON_ANY : 0;
        }
        s += n + (s[n] == ' ');
    }
    return mask;
}

static cps_engine
preferred(cps_top op, int i)
{
    for (const char *s = cps_tops[op].engines; *s; i--) {
        size_t n = strcspn(s, " ");
        if (i == 0) {
            char word[8] = "";
            memcpy(word, s, CPS_MIN(n, sizeof word - 1));
            return cps_engine_parse(word);
        }
        s += n + (s[n] == ' ');
    }
    return CPS_ENGINE_ANY;
}

static bool
any_psum(const cps_tfunc *f, const cps_tinst *x)
{
    for (int i = 0; i < x->nout + x->nin; i++) {
        const cps_toper *o = i < x->nout ? &x->out[i] : &x->in[i - x->nout];
        if (o->kind == CPS_TO_VIEW && f->bufs.data[f->views.data[o->id].buf].space == CPS_PSUM)
            return true;
    }
    return false;
}

static bool
scale_and_shift(const cps_tinst *x)
{
    int a = cps_tinst_get(x, CPS_TA_OP0, 0), b = cps_tinst_get(x, CPS_TA_OP1, 0);
    return !cps_tinst_get(x, CPS_TA_REVERSE, 0) &&
           ((a == CPS_ALU_MULT && (b == CPS_ALU_ADD || b == CPS_ALU_BYPASS)) ||
            (a == CPS_ALU_ADD && b == CPS_ALU_BYPASS));
}

// A copy by ACTIVATE goes through fp32: exact for every type but 32-bit integers.
static bool
through_fp32(const cps_tfunc *f, const cps_tinst *x)
{
    const cps_tview *a = &f->views.data[x->in[0].id], *b = &f->views.data[x->out[0].id];
    return !(cps_dtype_is_int(a->dtype) && cps_dtype_bytes(a->dtype) > 2) &&
           !(cps_dtype_is_int(b->dtype) && cps_dtype_bytes(b->dtype) > 2) && a->nd <= 3 &&
           b->nd <= 3;
}

static const char *
refusal(const cps_cg *g, const cps_tinst *x, cps_engine e)
{
    if (!(row_engines(x->op) >> e & 1))
        return "it does not have this instruction";
    const cps_lower_row *row = &cps_lower[x->op];
    if (row->shape == CPS_SHAPE_SEQ || row->shape == CPS_SHAPE_DMA)
        return NULL;
    if (e == CPS_POOL && any_psum(g->f, x))
        return "it has no way to PSUM";
    if (x->op == CPS_T_TENSOR_SCALAR || x->op == CPS_T_TENSOR_TENSOR || x->op == CPS_T_STT)
        for (int i = 0; i < 2; i++) {
            unsigned alu =
                (unsigned)cps_tinst_get(x, i ? CPS_TA_OP1 : CPS_TA_OP0, CPS_ALU_BYPASS);
            cps_alu_class c = cps_alu_class_of(alu, g->t->gen);
            if ((c == CPS_ALUC_SPECIAL || c == CPS_ALUC_INT || c == CPS_ALUC_CRC) &&
                e != CPS_POOL)
                return "only POOL has this operator";
            if (c == CPS_ALUC_BITVEC &&
                (e == CPS_ACT || (e == CPS_POOL && x->op != CPS_T_TENSOR_TENSOR)))
                return "it has no bitwise form";
        }
    if (e == CPS_ACT && x->op == CPS_T_TENSOR_SCALAR &&
        (!g->t->act_copies || !scale_and_shift(x)))
        return "it multiplies and adds only, from v3 on";
    if (e == CPS_ACT && x->op == CPS_T_COPY && !g->t->act_copies && !through_fp32(g->f, x))
        return "its copies go through fp32 on this generation";
    return NULL;
}

static int64_t
cost(const cps_cg *g, const cps_tinst *x, cps_engine e)
{
    cps_cost c;
    cps_tile_cost(g, x, e, &c);
    return c.occupy;
}

static cps_engine
dma_engine(const cps_cg *g, const cps_tinst *x)
{
    const cps_tview *src = &g->f->views.data[x->in[0].id];
    const cps_tbuf *b = &g->f->bufs.data[src->buf];
    // Only the software DGE follows indices, and POOL owns it (NKI DGE guide).
    if (src->index || g->f->views.data[x->out[0].id].index)
        return CPS_POOL;
    // Only from v3 on do other engines generate descriptors for moving views.
    if ((src->reg || g->f->views.data[x->out[0].id].reg) && g->t->gen == CPS_V2)
        return CPS_POOL;
    bool ready = b->space == CPS_HBM && (b->role == CPS_IN || b->role == CPS_DATA);
    return ready ? CPS_SP : CPS_POOL;
}

bool
cps_pass_engine(cps_cg *g)
{
    bool ok = true;
    int64_t load[CPS_ENGINES] = {0};
    for (uint32_t n = 0; n < g->f->insts.n; n++) {
        cps_tinst *x = &g->f->insts.data[n];
        const cps_lower_row *row = &cps_lower[x->op];
        // What the front end suggests is not binding for work that several engines do equally
        // well.
        bool flexible = (x->op == CPS_T_COPY || x->op == CPS_T_MEMSET) && !x->pinned;
        uint8_t first = x->engine;
        if (flexible)
            x->engine = CPS_ENGINE_ANY;
        if (x->engine != CPS_ENGINE_ANY) {
            const char *why =
                x->engine < CPS_ENGINES ? refusal(g, x, x->engine) : "no such engine";
            if (why) {
                cps_error(g->d, CPS_E5303, x->loc, "'%s' cannot run on %s: %s",
                          cps_tops[x->op].name, cps_engine_name(x->engine), why);
                ok = false;
                continue;
            }
        } else if (row->shape == CPS_SHAPE_SEQ) {
            continue; // every engine
        } else if (row->shape == CPS_SHAPE_DMA) {
            x->engine = (uint8_t)dma_engine(g, x);
        } else if (x->op == CPS_T_TRANSPOSE) {
            bool psum = g->f->bufs.data[g->f->views.data[x->out[0].id].buf].space == CPS_PSUM;
            x->engine = psum ? CPS_PE : CPS_DVE;
        } else {
            int64_t best = 0;
            for (int i = 0;; i++) {
                cps_engine e = preferred(x->op, i);
                if (e >= CPS_ENGINES)
                    break;
                if (refusal(g, x, e))
                    continue;
                // GpSimd streams are slow and would hold up the stores it starts.
                if (x->op != CPS_T_MEMSET && e == CPS_POOL && x->engine != CPS_ENGINE_ANY)
                    continue;
                int64_t end = flexible ? load[e] + cost(g, x, e) : 0;
                // Neighbours tend to depend on each other: leaving the engine that comes first
                // must be worth the way to another one and back.
                if (first == CPS_ENGINE_ANY)
                    first = (uint8_t)e;
                end += e == first ? 0 : MARGIN;
                if (x->engine == CPS_ENGINE_ANY || end < best) {
                    best = end;
                    x->engine = (uint8_t)e;
                }
                if (!flexible)
                    break;
            }
            if (x->engine == CPS_ENGINE_ANY) {
                cps_error(g->d, CPS_E5303, x->loc, "no engine of %s can run this '%s'",
                          g->t->name, cps_tops[x->op].name);
                ok = false;
                continue;
            }
        }
        if (row->shape != CPS_SHAPE_SEQ && row->shape != CPS_SHAPE_DMA && x->engine != CPS_PE)
            load[x->engine] += cost(g, x, x->engine);
    }
    return ok;
}

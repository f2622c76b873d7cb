/* Counts an operator's reference body: two FLOPs per multiply-add of every matrix product, each
 * operand and result once. */
#include "frontend/roof.h"

#include <string.h>

/* Passes of the PE per element type: fp32 takes four, fp8 half where pairs share a PE. */
static double
pe_passes(const cps_target *t, cps_dtype dt)
{
    if (dt == CPS_DT_FP32)
        return 4;
    return cps_dtype_bytes(dt) == 1 && t->pe_fp8_double_row ? 0.5 : 1;
}

/* The storage type behind a value: what a cast, a move or a broadcast was made of. The body computes
 * in fp32 where a number meets a narrow tensor; the PE takes the tensor as it is stored. */
static cps_dtype
stored_as(const cps_func *f, cps_val v)
{
    for (;;) {
        uint32_t def = f->vals.data[v].def;
        const cps_node *n = def ? &f->nodes.data[def - 1] : NULL;
        if (!n || !n->nin || (n->op != CPS_OP_CAST && cps_ops[n->op].opclass != CPS_OC_SHAPE))
            return f->vals.data[v].type.dtype;
        v = n->in[0];
    }
}

/* Bytes of input `v` that must be read: what is only gathered from or sliced counts what is taken. */
static int64_t
input_bytes(const cps_func *f, cps_val v)
{
    int64_t rows = 0, all = cps_type_bytes(&f->vals.data[v].type);
    for (uint32_t i = 0; i < f->outputs.n; i++)
        if (f->outputs.data[i] == v)
            return all; // handed through
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        const cps_node *n = &f->nodes.data[i];
        for (unsigned k = 0; k < n->nin; k++) {
            if (n->in[k] != v)
                continue;
            if ((n->op != CPS_OP_GATHER && n->op != CPS_OP_SLICE) || k != 0)
                return all;
            rows += cps_type_bytes(&f->vals.data[n->out[0]].type);
        }
    }
    return CPS_MIN(rows, all);
}

/* The share of query and key pairs that attention must work on: causal counts half (contract), and
 * a window counts only the keys in it. 1 for every other operator. */
static double
pairs_share(const cps_instance *i)
{
    if (!cps_attr_int(i->attr, i->nattr, "causal", 0) || i->noperands < 2 ||
        i->operand[0].type.rank < 2 || i->operand[1].type.rank < 2)
        return 1.0;
    const cps_type *q = &i->operand[0].type, *k = &i->operand[1].type;
    int64_t sq = q->dim[q->rank - 2], skv = k->dim[k->rank - 2];
    int64_t window = cps_attr_int(i->attr, i->nattr, "window", 0);
    if (!window && sq == skv)
        return 0.5;
    double pairs = 0;
    for (int64_t r = 0; r < sq; r++) { // row r sees keys r - window + 1 .. r
        int64_t hi = CPS_MIN(r + 1, skv), lo = window ? CPS_MAX(0, r - window + 1) : 0;
        pairs += (double)CPS_MAX(0, hi - lo);
    }
    if (!window)
        return pairs / ((double)sq * (double)skv);
    return CPS_MIN(0.5, pairs / ((double)sq * (double)skv));
}

/* Nothing is computed: whatever the results hold lies somewhere in the operands. */
static bool
moves_only(const cps_func *f)
{
    for (uint32_t i = 0; i < f->nodes.n; i++)
        if (cps_ops[f->nodes.data[i].op].opclass != CPS_OC_SHAPE)
            return false;
    return true;
}

bool
cps_roof_of(cps_registry *r, cps_arena *a, const cps_instance *inst, cps_roof *out, cps_diags *d)
{
    *out = (cps_roof){.bound = "memory"};
    cps_module *m = cps_module_new(a, inst->op);
    cps_func *f = r->body(r->self, m, inst, d);
    if (!f)
        return false;
    double pe_ns = 0;
    double share = pairs_share(inst);
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        const cps_node *n = &f->nodes.data[i];
        if (n->op != CPS_OP_MATMUL)
            continue;
        const cps_type *x = &f->vals.data[n->in[0]].type;
        double macs = (double)cps_type_count(&f->vals.data[n->out[0]].type) *
                      (double)x->dim[x->rank - 1] * share;
        out->flops += (int64_t)(2 * macs);
        // the narrower operand decides: the other is made on chip and can be written so
        cps_dtype a0 = stored_as(f, n->in[0]), b0 = stored_as(f, n->in[1]);
        cps_dtype dt = cps_dtype_bytes(a0) < cps_dtype_bytes(b0) ? a0 : b0;
        if (inst->target)
            pe_ns += macs / (128.0 * 128.0) * pe_passes(inst->target, dt) * 1e3 /
                     inst->target->pe_mhz;
    }
    for (uint32_t i = 0; i < f->inputs.n; i++)
        out->bytes += input_bytes(f, f->inputs.data[i]);
    int64_t written = 0;
    for (uint32_t i = 0; i < f->outputs.n; i++)
        written += cps_type_bytes(&f->vals.data[f->outputs.data[i]].type);
    out->bytes += written;
    if (!inst->target)
        return true;
    // a core beside a busy neighbour has a little less of their HBM (contract)
    double rate = inst->target->hbm_roof_bytes_per_ns;
    if (inst->cores > 1)
        rate = CPS_MIN(rate, inst->target->hbm_pair_bytes_per_ns);
    // the rate is that of the DMA engines, which bytes on their way from place to place in memory pass once
    double mem_ns = (double)(moves_only(f) ? written : out->bytes) / rate;
    double cores = inst->cores;
    out->roofline_ns = CPS_MAX(pe_ns, mem_ns) / cores;
    out->bound = pe_ns > mem_ns ? "compute" : "memory";
    out->engines_ns = out->roofline_ns;
    cps_costs min = {0};
    if (r->minimum && r->minimum(r->self, inst, &min, d)) {
        const double mhz[CPS_ENGINES] = {
            [CPS_PE] = inst->target->pe_mhz,     [CPS_ACT] = inst->target->act_mhz,
            [CPS_POOL] = inst->target->pool_mhz, [CPS_DVE] = inst->target->dve_mhz,
            [CPS_SP] = inst->target->sp_mhz,
        };
        for (int e = 0; e < CPS_ENGINES; e++)
            out->engines_ns = CPS_MAX(out->engines_ns, min.cycles[e] * 1e3 / mhz[e] / cores);
    }
    return true;
}

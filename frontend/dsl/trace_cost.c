/* Cycles of the instructions that the combining table chooses between: the cost formulas the
 * NKI documents gave until release 2.26 (restated in the ISA semantics reference, appendix A),
 * with the 16-bit performance modes of the vector engine of v3 and later. Only ratios matter
 * here; the simulator and the scheduler have a timing model of their own. */
#include "frontend/dsl/trace_combine.h"

static bool
is16(const cps_view *v)
{
    return v && cps_dtype_bytes(v->dtype) == 2 && cps_dtype_is_float(v->dtype);
}

static bool
in_psum(const cps_view *v)
{
    return v && v->space == CPS_PSUM;
}

static bool
contiguous(const cps_view *v)
{
    for (int i = v->nd - 1; i >= 0; i--) {
        const cps_vaxis *x = &v->ax[i];
        if (i != v->paxis && x->num > 1)
            return x->l[x->nl - 1].step == 1;
    }
    return true;
}

// Divisor of the performance mode for one source and one destination.
static int64_t
copy_mode(const cps_target *t, const cps_view *in, const cps_view *out)
{
    if (!t->dve_perf_modes || !is16(in) || !is16(out))
        return 1;
    bool psum = in_psum(in) || in_psum(out), line = contiguous(in) && contiguous(out);
    return !psum && line ? 4 : !psum || line ? 2 : 1;
}

int64_t
cps_x_cycles(const cps_target *t, const cps_xcost *c)
{
    int64_t n = c->n;

    switch (c->op) {
    case CPS_T_ACTIVATION:
        return CPS_MAX(64, n) + (c->acc ? 64 : 0);
    case CPS_T_TENSOR_TENSOR: {
        int psum = in_psum(c->in[0]) + in_psum(c->in[1]);
        if (psum == 1)
            return CPS_MAX(64, n);
        bool all16 = is16(c->in[0]) && is16(c->in[1]) && is16(c->out);
        bool simple =
            c->op0 == CPS_ALU_ADD || c->op0 == CPS_ALU_SUBTRACT || c->op0 == CPS_ALU_MULT;
        if (all16 && !in_psum(c->out) && t->dve_perf_modes)
            return CPS_MAX(64, n);
        bool bf = all16 && c->in[0]->dtype == CPS_DT_BF16 && c->in[1]->dtype == CPS_DT_BF16 &&
                  c->out->dtype == CPS_DT_BF16;
        if (bf && simple && contiguous(c->in[0]) && contiguous(c->in[1]))
            return CPS_MAX(64, n);
        return CPS_MAX(64, 2 * n);
    }
    case CPS_T_TENSOR_SCALAR:
        if (c->op0 == CPS_ALU_RSQRT)
            return CPS_MAX(64, 4 * n);
        return CPS_MAX(64, c->engine == CPS_DVE ? n / copy_mode(t, c->in[0], c->out) : n);
    case CPS_T_STT: {
        bool fast = is16(c->in[0]) && is16(c->in[1]) && c->op0 == CPS_ALU_SUBTRACT &&
                    c->op1 == CPS_ALU_MULT && n % 2 == 0;
        return CPS_MAX(64, fast ? n : 2 * n);
    }
    case CPS_T_TENSOR_REDUCE: {
        bool fast =
            is16(c->in[0]) && is16(c->out) && (c->op0 == CPS_ALU_ADD || c->op0 == CPS_ALU_MAX);
        return CPS_MAX(64, fast ? n / 2 : n);
    }
    case CPS_T_TS_REDUCE:
        return CPS_MAX(64, n) + 64;
    case CPS_T_SCAN:
        return CPS_MAX(64, 2 * n);
    case CPS_T_RECIPROCAL:
        return CPS_MAX(64, 8 * n);
    case CPS_T_COPY:
        return CPS_MAX(64, c->engine == CPS_DVE ? n / copy_mode(t, c->in[0], c->out) : n);
    case CPS_T_MEMSET:
        return CPS_MAX(64, c->zero && is16(c->out) ? n / 2 : n);
    case CPS_T_COPY_PRED:
        return CPS_MAX(64, in_psum(c->in[0]) || in_psum(c->in[1]) ? n : 2 * n);
    case CPS_T_IOTA:
    case CPS_T_AFFINE_SELECT:
        return 150 + n;
    default:
        return CPS_MAX(64, n);
    }
}

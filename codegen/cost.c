/* What a tile instruction costs an engine, by the timing of the ISA room: for engine assignment
 * and scheduling, before there are bundles. A bundle of the right instruction and size stands
 * in; what it lacks (scalars, operators) does not enter the formulas. Neighbours are alike, so the
 * last stand-in of each kind keeps its cost. */
#include "codegen/legal.h"

static cps_ap
walk(const cps_cg *g, const cps_tview *v)
{
    cps_ap ap = {.nd = (uint8_t)CPS_MIN(v->nd, 4)};
    for (int k = 0; k < ap.nd; k++) {
        cps_tdim d = v->d[v->nd - 1 - k];
        ap.step[k] = (int16_t)d.step;
        ap.num[k] = (uint16_t)CPS_MIN(d.num, 65535);
    }
    ap.addr = g->f->bufs.data[v->buf].space == CPS_PSUM ? CPS_PSUM_BASE : 0;
    return ap;
}

static uint64_t
tag(const cps_tview *v)
{
    return (uint64_t)cps_dtypes[v->dtype].wire & 15;
}

#define SET(field, value) cps_isa_set(&b, CPS_F_##field, (uint64_t)(value))
#define SLOT(field, view)                                                                      \
    do {                                                                                       \
        cps_ap ap_ = walk(g, view);                                                            \
        ap_.nd = (uint8_t)CPS_MIN(ap_.nd, cps_fields[CPS_F_##field].arg);                      \
        cps_isa_set_ap(&b, CPS_F_##field, &ap_);                                               \
    } while (0)

void
cps_tile_cost(const cps_cg *g, const cps_tinst *x, cps_engine e, cps_cost *out)
{
    const cps_tview *in[3] = {NULL}, *o = &g->f->views.data[x->out[0].id];
    int n = 0;
    for (int k = 0; k < x->nin; k++)
        if (x->in[k].kind == CPS_TO_VIEW) {
            const cps_tview *v = &g->f->views.data[x->in[k].id];
            if (cps_tview_elems(v) > 1 || n == 0)
                in[n++] = v;
        }
    const cps_tview *a = n > 0 ? in[0] : o, *c = n > 1 ? in[1] : a;
    cps_bundle b;
    switch ((cps_top)x->op) {
    case CPS_T_MATMUL:
        b = cps_cg_bundle(g, CPS_INSN_MATMUL);
        SET(S3D3_MM_in_dtype, tag(c));
        SET(S3D3_MM_fp32_mode, c->dtype == CPS_DT_FP32 ? CPS_PE_FP32MODE_LOW_HIGH : 0);
        SLOT(S3D3_MM_src, c);
        SLOT(S3D3_MM_dst, o);
        break;
    case CPS_T_TENSOR_TENSOR:
    case CPS_T_COPY_PRED:
        b = cps_cg_bundle(g, x->op == CPS_T_COPY_PRED ? CPS_INSN_COPY_PREDICATED
                                                      : CPS_INSN_TENSOR_TENSOR_ARITH);
        SET(S3S3D3_TT_in0_in1_dtype, tag(a) | tag(c) << 4);
        SET(S3S3D3_TT_out_dtype, tag(o));
        SET(S3S3D3_TT_op, cps_tinst_get(x, CPS_TA_OP0, 0));
        SLOT(S3S3D3_TT_src0, a);
        SLOT(S3S3D3_TT_src1, c);
        SLOT(S3S3D3_TT_dst, o);
        break;
    case CPS_T_STT:
    case CPS_T_SCAN:
    case CPS_T_SELECT_REDUCE:
        b = cps_cg_bundle(g, x->op == CPS_T_SCAN ? CPS_INSN_TENSOR_TENSOR_SCAN_ARITH
                                                 : CPS_INSN_SCALAR_TENSOR_TENSOR_ARITH);
        SET(S2S2D2_STT_in0_in1_dtype, tag(a) | tag(c) << 4);
        SET(S2S2D2_STT_out_dtype, tag(o));
        SET(S2S2D2_STT_op0, cps_tinst_get(x, CPS_TA_OP0, 0));
        SET(S2S2D2_STT_op1, cps_tinst_get(x, CPS_TA_OP1, 0));
        SLOT(S2S2D2_STT_src0, a);
        SLOT(S2S2D2_STT_src1, c);
        SLOT(S2S2D2_STT_dst, o);
        break;
    case CPS_T_TENSOR_SCALAR:
    case CPS_T_TS_REDUCE:
        b = cps_cg_bundle(g, CPS_INSN_TENSOR_SCALAR_ARITH);
        SET(S3D3_TS_in_dtype, tag(a));
        SET(S3D3_TS_out_dtype, tag(o));
        SLOT(S3D3_TS_src, a);
        SLOT(S3D3_TS_dst, o);
        break;
    case CPS_T_ACTIVATION:
        b = cps_cg_bundle(g, CPS_INSN_ACTIVATE);
        SET(S3D3_AC_in_bias_dtype, tag(a));
        SET(S3D3_AC_out_dtype, tag(o));
        SLOT(S3D3_AC_src, a);
        SLOT(S3D3_AC_dst, o);
        break;
    case CPS_T_MEMSET:
        b = cps_cg_bundle(g, CPS_INSN_MEMSET);
        SET(D4_MR_dtype, tag(o));
        SET(D4_MR_set_value, x->in[0].kind == CPS_TO_IMM && x->in[0].imm != 0);
        SLOT(D4_MR_dst, o);
        break;
    default:
        b = cps_cg_bundle(g, x->op == CPS_T_TENSOR_REDUCE ? CPS_INSN_TENSOR_REDUCE_ARITH
                             : a->dtype == o->dtype       ? CPS_INSN_COPY
                                                          : CPS_INSN_CAST);
        SET(S4D4_TR_in_dtype, tag(a));
        SET(S4D4_TR_out_dtype, tag(o));
        SET(S4D4_TR_op, cps_tinst_get(x, CPS_TA_OP0, 0));
        SLOT(S4D4_TR_src, a);
        SLOT(S4D4_TR_dst, o);
        break;
    }
    cps_cost_seen *seen = &g->costs[x->op];
    if (!seen->some || seen->engine != e || memcmp(&seen->b, &b, sizeof b) != 0) {
        *seen = (cps_cost_seen){.b = b, .engine = (uint8_t)e, .some = true};
        cps_timing(g->t, e, &b, &seen->cost);
    }
    *out = seen->cost;
    if (x->op == CPS_T_MATMUL && c->dtype == CPS_DT_FP32)
        out->occupy *= 2; // two passes
}

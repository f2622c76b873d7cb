/* `acc += a' @ b` is one nc_matmul, `d = t'` one nc_transpose: operands, limits, and which
 * engine transposes. Start and stop flags follow from the groups (trace_emit.c). */
#include "frontend/dsl/trace_priv.h"

static bool
operand(cps_tracer *t, const cps_view *v, cps_span at, const char *side)
{
    if (v->space == CPS_HBM) {
        cps_eval_error(&t->ev, CPS_E3205, at,
                       "`%s` is an hbm tensor, and engines do not reach HBM", v->name);
        cps_help(t->d, "load what is needed first: sbuf t[...] <- %s[...];", v->name);
        return false;
    }
    if (v->space != CPS_SBUF) {
        cps_eval_error(&t->ev, CPS_E3211, at,
                       "the %s operand of @ must be in sbuf, `%s` is in psum", side, v->name);
        cps_help(t->d, "copy it first: sbuf t[...] = %s;", v->name);
        return false;
    }
    if (v->all)
        return cps_eval_error(
            &t->ev, CPS_E3211, at,
            "`%s` holds one row on every partition: as an operand of @ it needs "
            "a number of rows",
            v->name);
    if (cps_view_folded(v)) {
        const cps_vaxis *x = &v->ax[v->paxis];
        cps_eval_error(
            &t->ev, CPS_E3211, at,
            "the %lld rows of `%s` lie in %lld folds; one product contracts one fold",
            (long long)x->num, v->name, (long long)cps_ceil_div(x->num, x->fold));
        cps_help(t->d, "for k in tiles(K, %lld) { acc += a[k, m]' @ b[k, n]; }",
                 (long long)x->fold);
        return false;
    }
    return true;
}

static bool
wide(cps_dtype t)
{
    return t == CPS_DT_FP32 || t == CPS_DT_TF32;
}

// Two rows of the contraction to a partition: [p, 2, n].
static bool
planes_of(const cps_view *v)
{
    return v->nd == 3 && v->paxis == 0 && v->ax[1].num == 2;
}

bool
cps_tr_matmul(cps_tracer *t, const cps_view *dst, cps_span dst_at, const cps_trproduct *p,
              bool add, const cps_trmarks *m)
{
    const cps_view *a = p->a, *b = p->b;
    cps_trstore *s = dst->store;
    cps_tview acc;
    cps_view_err e;

    if (!operand(t, a, p->at_a, "left") || !operand(t, b, p->at_b, "right"))
        return false;
    if (m->red) {
        cps_eval_error(&t->ev, CPS_E3203, m->red_at, "a product cannot reduce on the side");
        return false;
    }
    int64_t planes = p->double_row ? 2 : 1;
    int64_t k = cps_view_parts(a), kb = cps_view_parts(b), cols = cps_view_free(a) / planes,
            n = cps_view_free(b) / planes;
    if (p->double_row && !(planes_of(a) && planes_of(b)))
        return cps_eval_error(&t->ev, CPS_E3211, p->at,
                              "double rows take [p, 2, n] tiles, not %s and %s",
                              cps_view_shape(t->keep, a), cps_view_shape(t->keep, b));
    if (b->paxis > 0)
        return cps_eval_error(
            &t->ev, CPS_E3211, p->at_b,
            "the right operand of @ has the contraction on its partitions and "
            "is not transposed");
    if (k != kb)
        return cps_eval_error(&t->ev, CPS_E3211, p->at,
                              "the operands of @ have %lld and %lld rows to contract",
                              (long long)k, (long long)kb);
    if (dst->space != CPS_PSUM) {
        cps_eval_error(&t->ev, CPS_E3212, dst_at, "a product goes to psum, `%s` is in %s",
                       s->name, dst->space == CPS_SBUF ? "sbuf" : "hbm");
        cps_help(t->d, "psum p[m, n]: fp32 = ...; then copy: %s = p;", s->name);
        return false;
    }
    if (cols > t->t->sbuf_partitions)
        return cps_eval_error(&t->ev, CPS_E3211, p->at_a,
                              "%lld stationary columns, one product takes %lld",
                              (long long)cols, (long long)t->t->sbuf_partitions);
    int64_t most = t->t->pe_moving_max * (dst->dtype == CPS_DT_BF16 ? 2 : 1);
    if (n > most)
        return cps_eval_error(&t->ev, CPS_E3211, p->at_b,
                              "%lld moving columns, one product takes %lld on %s", (long long)n,
                              (long long)most, t->t->name);
    if (wide(a->dtype) != wide(b->dtype))
        return cps_eval_error(&t->ev, CPS_E3211, p->at, "%s and %s cannot meet in a product",
                              cps_dtype_name(a->dtype), cps_dtype_name(b->dtype));
    if (cps_view_folded(dst) || dst->paxis > 0 ||
        (dst->all ? 0 : cps_view_parts(dst)) != cols || cps_view_free(dst) != n) {
        cps_eval_error(&t->ev, CPS_E3202, dst_at, "a [%lld, %lld] product does not fit `%s` %s",
                       (long long)cols, (long long)n, s->name, cps_view_shape(t->keep, dst));
        return false;
    }
    if (dst->dtype != CPS_DT_FP32 && !(dst->dtype == CPS_DT_BF16 && t->t->gen >= CPS_V4))
        return cps_eval_error(&t->ev, CPS_E4104, dst_at,
                              "products accumulate in fp32 on %s, `%s` "
                              "is %s",
                              t->t->name, s->name, cps_dtype_name(dst->dtype));
    cps_tinst *i = cps_tr_begin(t, CPS_T_MATMUL, m);
    if (p->double_row)
        cps_tinst_set(i, CPS_TA_PERF, 1);
    if (m->on == CPS_ENGINE_ANY)
        i->engine = CPS_PE;
    else if (m->on != CPS_PE)
        return cps_eval_error(&t->ev, CPS_E5102, m->on_at, "products run on pe, not on %s",
                              cps_engine_name(m->on));
    if (!cps_tr_in(t, i, a, 0, p->at_a) || !cps_tr_in(t, i, b, 0, p->at_b))
        return false;
    if (!cps_view_lower(dst, s->buf, 0, true, &acc, t->keep, &e))
        return cps_tr_fail(t, dst_at, &e);
    return cps_tr_group(t, i, &acc, s, add, p->at) && cps_tr_out_view(t, i, acc, s, dst_at);
}

// [r, c] in blocks of 32 x 32 that stay in place: what VectorE transposes.
static bool
in_block(const cps_view *v)
{
    return cps_view_parts(v) <= 32 && cps_view_free(v) <= 32;
}

bool
cps_tr_pe_transpose(cps_tracer *t, const cps_view *dst, cps_span dst_at, const cps_view *src,
                    cps_span src_at, const cps_trmarks *m)
{
    cps_trstore *s = dst->store;
    bool pe = dst->space == CPS_PSUM;

    if (m->red)
        return cps_eval_error(&t->ev, CPS_E3203, m->red_at,
                              "a transpose cannot reduce on the side");
    if (src->paxis != src->nd - 1 || cps_view_folded(src) || cps_view_folded(dst) || src->all)
        return cps_eval_error(&t->ev, CPS_E3202, src_at,
                              "a transpose takes one [p, n] tile in one fold");
    int64_t r = cps_view_parts(src), c = cps_view_free(src);
    if (dst->paxis != 0 || cps_view_parts(dst) != c || cps_view_free(dst) != r) {
        cps_eval_error(&t->ev, CPS_E3202, dst_at,
                       "a [%lld, %lld] transpose does not fit `%s` %s", (long long)c,
                       (long long)r, s->name, cps_view_shape(t->keep, dst));
        return false;
    }
    bool on_dve = in_block(src) && in_block(dst) && m->on != CPS_PE;
    if (!pe && !on_dve) {
        cps_eval_error(&t->ev, CPS_E3203, src_at,
                       "a [%lld, %lld] transpose into sbuf has no instruction", (long long)r,
                       (long long)c);
        cps_help(t->d, "transpose on the PE into psum, then copy: psum t[...]: %s = ...';",
                 cps_dtype_name(src->dtype));
        return false;
    }
    if (m->on == CPS_DVE)
        pe = false;
    if (pe && c > t->t->sbuf_partitions)
        return cps_eval_error(&t->ev, CPS_E3211, src_at,
                              "%lld columns to transpose, one instruction takes %lld",
                              (long long)c, (long long)t->t->sbuf_partitions);
    // Without the transpose datapath (v2) it is a product with the identity, fp32 in PSUM.
    cps_dtype want = pe && !t->t->pe_transpose ? CPS_DT_FP32 : src->dtype;
    if (dst->dtype != want) {
        cps_eval_error(&t->ev, CPS_E4104, dst_at,
                       "a transpose of %s gives %s on %s, `%s` is %s",
                       cps_dtype_name(src->dtype), cps_dtype_name(want), t->t->name, s->name,
                       cps_dtype_name(dst->dtype));
        cps_help(t->d, "declare it `transposed(%s)`", cps_dtype_name(src->dtype));
        return false;
    }
    if (src->space == CPS_PSUM && pe)
        return cps_eval_error(&t->ev, CPS_E3211, src_at,
                              "the PE reads sbuf only, `%s` is in psum", src->name);
    cps_tinst *i = cps_tr_begin(t, CPS_T_TRANSPOSE, m);
    i->engine = pe ? CPS_PE : CPS_DVE;
    if (m->on != CPS_ENGINE_ANY && m->on != i->engine)
        return cps_eval_error(&t->ev, CPS_E5102, m->on_at, "a transpose does not run on %s",
                              cps_engine_name(m->on));
    if (!cps_tr_in(t, i, src, 0, src_at))
        return false;
    if (pe) {
        cps_tview id = {.buf = cps_tr_identity(t, src->dtype),
                        .dtype = src->dtype,
                        .parts = (uint16_t)r,
                        .nd = 1};
        id.d[0] = (cps_tdim){1, r};
        i->in[i->nin++] = cps_to_view(cps_tile_view(t->f, id));
    }
    return cps_tr_out(t, i, dst, 0, dst_at);
}

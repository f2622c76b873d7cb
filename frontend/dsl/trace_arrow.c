/* Arrows: `d <- s` is a DMA. Copies, casts, broadcasts to `[all, n]`, transposes, indirect
 * rows, register offsets, lists of the package, and staging tiles for what engines compute
 * first.
 *
 * Both sides end up as views whose axes pair in row-major order, the partition axis first; a
 * folded side becomes [rows, folds, ...] for whole folds and one more transfer for a ragged
 * last fold. */
#include "frontend/dsl/trace_priv.h"

#include <stdio.h>
#include <string.h>

typedef struct arrow {
    cps_tracer *t;
    const cps_trmarks *m;
    cps_span dst_at, src_at;
    bool add;
    const void *site;
} arrow;

// Axes that are no units, in order.
static int
real_axes(const cps_view *v, int *out)
{
    int n = 0;
    for (int i = 0; i < v->nd; i++)
        if (v->ax[i].num != 1 && !(v->all && i == v->paxis))
            out[n++] = i;
    return n;
}

static void
axis_first(cps_view *v, int k)
{
    cps_vaxis x = v->ax[k];
    for (int i = k; i > 0; i--)
        v->ax[i] = v->ax[i - 1];
    v->ax[0] = x;
    if (v->paxis == k)
        v->paxis = 0;
    else if (v->paxis >= 0 && v->paxis < k)
        v->paxis++;
}

static bool
mismatch(arrow *w, const cps_view *d, const cps_view *s)
{
    return cps_eval_error(&w->t->ev, CPS_E5201, w->dst_at,
                          "%s does not fit %s: shapes agree but for axes of 1",
                          cps_view_shape(w->t->keep, s), cps_view_shape(w->t->keep, d));
}

static bool
set_marks(arrow *w, cps_tinst *i, const cps_view *d, const cps_view *s)
{
    cps_tracer *t = w->t;
    bool moving = d->reg || s->reg, indexed = d->index || s->index;

    if (w->m->via == 0 && (moving || indexed)) {
        cps_eval_error(&t->ev, CPS_E5203, w->m->via_at, "static descriptors cannot follow %s",
                       indexed ? "an index tile" : "a register");
        cps_note(t->d, CPS_NOSPAN, "the rows are known on the device only; %s",
                 indexed ? "indirect offsets need swdge" : "dynamic offsets need a DGE");
        cps_help(t->d, "leave `via` out");
        return false;
    }
    if (w->m->via == 2 && (indexed || (d->dtype != s->dtype))) {
        cps_eval_error(&t->ev, CPS_E5203, w->m->via_at, "hwdge %s",
                       indexed ? "cannot follow an index tile" : "does not convert dtypes");
        return false;
    }
    if (w->m->via >= 0 && w->m->via <= 2)
        cps_tinst_set(i, CPS_TA_DGE, w->m->via);
    else if (indexed)
        cps_tinst_set(i, CPS_TA_DGE, 1);
    if (w->m->oob_given && w->m->oob_skip)
        cps_tinst_set(i, CPS_TA_OOB, 1);
    if (w->add)
        cps_tinst_set(i, CPS_TA_ACCUMULATE, 1);
    return true;
}

static bool
put(arrow *w, cps_tinst *i, const cps_view *v, bool out, int64_t parts, bool merge, cps_span at)
{
    cps_tracer *t = w->t;
    cps_trstore *s = v->store;
    cps_tview x, ix;
    cps_view_err e;

    if (!cps_view_lower(v, s->buf, parts, merge, &x, t->keep, &e))
        return cps_tr_fail(t, at, &e);
    if (v->index) {
        cps_trstore *is = v->index->store;
        if (!cps_view_lower(v->index, is->buf, 0, true, &ix, t->keep, &e))
            return cps_tr_fail(t, at, &e);
        if (!is->written)
            return cps_eval_error(&t->ev, CPS_E4201, at,
                                  "`%s` is read before anything was written to it", is->name);
        x.index = cps_tile_view(t->f, ix) + 1;
    }
    return out ? cps_tr_out_view(t, i, x, s, at) : cps_tr_in_view(t, i, x, s, at);
}

// One transfer; both views have their axes in one order.
static bool
copy(arrow *w, const cps_view *d, const cps_view *s)
{
    cps_tracer *t = w->t;
    int64_t all = t->t->sbuf_partitions;
    cps_view wide = *s;

    if (d->all) { // one row to every partition: the source does not move over them
        if (wide.nd == CPS_VIEW_AXES)
            return mismatch(w, d, s);
        for (int i = wide.nd; i > 0; i--)
            wide.ax[i] = wide.ax[i - 1];
        wide.nd++;
        if (wide.paxis >= 0)
            wide.paxis++;
        wide.ax[0] = (cps_vaxis){.num = all, .nl = 1, .l = {{0, all}}};
        s = &wide;
    }
    cps_tinst *i = cps_tr_begin(t, CPS_T_DMA, w->m);
    if (!set_marks(w, i, d, s))
        return false;
    return put(w, i, s, false, s->all ? 1 : 0, true, w->src_at) &&
           put(w, i, d, true, d->all ? all : 0, true, w->dst_at);
}

/* ---- transposes ---- */

static void
swap_axes(cps_view *v, int i, int j)
{
    cps_vaxis x = v->ax[i];
    v->ax[i] = v->ax[j];
    v->ax[j] = x;
    v->paxis = v->paxis == i ? j : v->paxis == j ? i : v->paxis;
}

// The DMA form: dst [A, B], src [B, A], both two axes and in one fold; outer axes one by one.
static bool
transpose(arrow *w, const cps_view *d, const cps_view *s)
{
    cps_tracer *t = w->t;
    cps_view x = *d, y = *s;
    int a[CPS_VIEW_AXES], b[CPS_VIEW_AXES], bad;
    int n = real_axes(d, a);
    cps_view_err e;

    real_axes(s, b);
    if (n > 2) { // every position of the axis in the middle that is shortest
        int k = 1;
        for (int i = 0; i < n; i++)
            if (a[i] != d->paxis && b[i] != s->paxis && i != n - 1)
                k = i;
        for (int64_t p = 0; p < d->ax[a[k]].num; p++) {
            cps_vsub sd[CPS_VIEW_AXES], ss[CPS_VIEW_AXES];
            for (int i = 0; i < CPS_VIEW_AXES; i++)
                sd[i] = ss[i] = (cps_vsub){.kind = CPS_VS_ALL};
            sd[a[k]] = ss[b[k]] = (cps_vsub){.kind = CPS_VS_AT, .lo = p};
            if (!cps_view_index(&x, d, d->nd, sd, t->keep, &bad, &e) ||
                !cps_view_index(&y, s, s->nd, ss, t->keep, &bad, &e))
                return cps_tr_fail(t, w->dst_at, &e);
            if (!transpose(w, &x, &y))
                return false;
        }
        return true;
    }
    // Written with the source as it lies: swap the order of its two axes back, or, where rows of a
    // tile turn on their way to storage that has the other axis inside, that of the destination.
    bool out = s->space != CPS_HBM && s->paxis == b[0] && d->space == CPS_HBM;
    swap_axes(out ? &x : &y, (out ? a : b)[0], (out ? a : b)[1]);
    cps_tinst *i = cps_tr_begin(t, CPS_T_DMA_TRANSPOSE, w->m);
    if (w->m->via == 2 || w->m->via == 1)
        cps_tinst_set(i, CPS_TA_DGE, w->m->via);
    if (y.space != CPS_HBM && y.paxis > 0) // [B, A] with B on the partitions
        axis_first(&y, y.paxis);
    if (x.space != CPS_HBM && x.paxis > 0)
        axis_first(&x, x.paxis);
    return put(w, i, &y, false, 0, false, w->src_at) &&
           put(w, i, &x, true, 0, false, w->dst_at);
}

static bool
no_transpose(arrow *w, const cps_view *d, const cps_view *s)
{
    cps_tracer *t = w->t;

    if (cps_dtype_bytes(s->dtype) != 2)
        cps_eval_error(&t->ev, CPS_E5204, w->src_at,
                       "a DMA transposes 2-byte data, `%s` holds %s", s->name,
                       cps_dtype_name(s->dtype));
    else if (d->dtype != s->dtype)
        cps_eval_error(&t->ev, CPS_E5204, w->src_at,
                       "a DMA transpose does not convert %s to %s", cps_dtype_name(s->dtype),
                       cps_dtype_name(d->dtype));
    else
        cps_eval_error(&t->ev, CPS_E5204, w->src_at, "%s has no DMA transpose", t->t->name);
    cps_note(t->d, CPS_NOSPAN, "the contiguous axis of `%s` is not that of `%s`", s->name,
             d->name);
    cps_help(t->d,
             "load it as it lies and transpose on the PE (psum t[k, m] = x[m, k]'), or take "
             "element-wise descriptors: `via elements`");
    return false;
}

// Position of the contiguous axis among the real ones, -1 when there is none that counts.
static int
inner_place(const cps_view *v, const int *ax, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        const cps_vaxis *x = &v->ax[ax[i]];
        if (x->nl > 0 && x->l[x->nl - 1].step == 1 && x->l[x->nl - 1].num > 1)
            return i;
    }
    return -1;
}

static bool
needs_transpose(const cps_view *d, const cps_view *s)
{
    int a[CPS_VIEW_AXES], b[CPS_VIEW_AXES];
    int n = real_axes(d, a);
    real_axes(s, b);
    if (n < 2)
        return false;
    int x = inner_place(d, a, n), y = inner_place(s, b, n);
    return x >= 0 && y >= 0 && x != y;
}

/* ---- pairing ---- */

// Rows [lo, lo + n) of axis k, then [fold, folds] when there are several.
static bool
rows_of(arrow *w, const cps_view *v, int k, int64_t lo, int64_t n, int64_t fold, cps_view *out)
{
    cps_tracer *t = w->t;
    cps_vsub sub[CPS_VIEW_AXES];
    cps_view part;
    cps_view_err e;
    int bad;

    for (int i = 0; i < v->nd; i++)
        sub[i] = (cps_vsub){.kind = CPS_VS_ALL};
    sub[k] =
        (cps_vsub){.kind = CPS_VS_SLICE, .lo = lo, .hi = lo + n, .has_hi = true, .step = 1};
    if (!cps_view_index(&part, v, v->nd, sub, t->keep, &bad, &e))
        return cps_tr_fail(t, w->src_at, &e);
    if (n <= fold) {
        *out = part;
        return true;
    }
    static const char letter[] = "abcdefgh";
    char pat[96];
    int at = 0;
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < part.nd; i++)
            at += snprintf(pat + at, sizeof(pat) - (size_t)at,
                           i != k ? "%c "
                           : side ? "y z "
                                  : "(z y) ",
                           letter[i]);
        if (side == 0)
            at += snprintf(pat + at, sizeof(pat) - (size_t)at, "-> ");
    }
    const char *name = "y";
    if (!cps_view_reshape(out, &part, pat, 1, &name, &fold, t->keep, &e))
        return cps_tr_fail(t, w->src_at, &e);
    return true;
}

static bool pair(arrow *w, const cps_view *d, const cps_view *s);

// Cuts a folded side into whole folds and the rest.
static bool
by_folds(arrow *w, const cps_view *d, const cps_view *s)
{
    bool on_d = cps_view_folded(d);
    const cps_view *f = on_d ? d : s, *o = on_d ? s : d;
    int a[CPS_VIEW_AXES], b[CPS_VIEW_AXES], n = real_axes(f, a), at = -1;
    int64_t rows = f->ax[f->paxis].num, fold = f->ax[f->paxis].fold, full = rows / fold * fold;
    cps_view_err e;

    real_axes(o, b);
    for (int i = 0; i < n; i++)
        if (a[i] == f->paxis)
            at = i;
    cps_assert(at >= 0);
    for (int k = 0; k < 2; k++) {
        int64_t lo = k ? full : 0, m = k ? rows - full : full;
        cps_view x, y;
        if (m == 0)
            continue;
        if (!cps_view_unfold(&x, f, lo, m, &e))
            return cps_tr_fail(w->t, w->dst_at, &e);
        if (cps_view_folded(o) && b[at] == o->paxis && o->ax[o->paxis].fold == fold) {
            if (!cps_view_unfold(&y, o, lo, m, &e))
                return cps_tr_fail(w->t, w->dst_at, &e);
        } else if (!rows_of(w, o, b[at], lo, m, fold, &y)) {
            return false;
        }
        if (!pair(w, on_d ? &x : &y, on_d ? &y : &x))
            return false;
    }
    return true;
}

// A transpose of a folded side: fold by fold.
static bool
transpose_folds(arrow *w, const cps_view *d, const cps_view *s)
{
    bool on_d = cps_view_folded(d);
    const cps_view *f = on_d ? d : s, *o = on_d ? s : d;
    int a[CPS_VIEW_AXES], b[CPS_VIEW_AXES], n, at = -1;
    cps_view_err e;

    if (!on_d && !cps_view_folded(s))
        return transpose(w, d, s);
    n = real_axes(f, a);
    real_axes(o, b);
    for (int i = 0; i < n; i++)
        if (a[i] == f->paxis)
            at = i;
    int64_t rows = f->ax[f->paxis].num, fold = f->ax[f->paxis].fold;
    for (int64_t lo = 0; lo < rows; lo += fold) {
        int64_t m = CPS_MIN(fold, rows - lo);
        cps_view x, y;
        if (!cps_view_unfold(&x, f, lo, m, &e))
            return cps_tr_fail(w->t, w->dst_at, &e);
        if (!rows_of(w, o, b[at], lo, m, m, &y))
            return false;
        const cps_view *dd = on_d ? &x : &y, *ss = on_d ? &y : &x;
        if (!(needs_transpose(dd, ss) ? transpose_folds(w, dd, ss) : pair(w, dd, ss)))
            return false;
    }
    return true;
}

static bool
pair(arrow *w, const cps_view *d, const cps_view *s)
{
    int a[CPS_VIEW_AXES], b[CPS_VIEW_AXES], n;
    cps_view x = *d, y = *s;

    if (cps_view_folded(d) || cps_view_folded(s))
        return by_folds(w, d, s);
    n = real_axes(d, a);
    real_axes(s, b);
    // The partition axis comes first on both sides.
    int pd = -1, ps = -1;
    for (int i = 0; i < n; i++) {
        if (d->space != CPS_HBM && a[i] == d->paxis)
            pd = i;
        if (s->space != CPS_HBM && b[i] == s->paxis)
            ps = i;
    }
    if (pd >= 0 && ps >= 0 && pd != ps) {
        cps_eval_error(&w->t->ev, CPS_E5201, w->dst_at,
                       "the partitions of `%s` would go to another axis of `%s`", s->name,
                       d->name);
        cps_help(w->t->d, "transpose on the PE, or copy through an hbm tensor");
        return false;
    }
    int k = pd >= 0 ? pd : ps;
    if (k >= 0) {
        axis_first(&x, a[k]);
        axis_first(&y, b[k]);
    }
    if ((x.index && k >= 0 && a[k] != 0) || (y.index && k >= 0 && b[k] != 0))
        return cps_eval_error(&w->t->ev, CPS_E5202, w->dst_at,
                              "rows of an index tile pair with the partitions of the tile");
    return copy(w, &x, &y);
}

static bool
move(arrow *w, const cps_view *d, const cps_view *s)
{
    cps_tracer *t = w->t;
    int a[CPS_VIEW_AXES], b[CPS_VIEW_AXES], n;

    if (d->space == CPS_PSUM) {
        cps_eval_error(&t->ev, CPS_E5201, w->dst_at, "a DMA does not reach PSUM");
        cps_help(t->d, "engines write it: products, transposes, `=`");
        return false;
    }
    n = real_axes(d, a);
    if (n != real_axes(s, b))
        return mismatch(w, d, s);
    for (int i = 0; i < n; i++)
        if (d->ax[a[i]].num != s->ax[b[i]].num)
            return mismatch(w, d, s);
    if (w->m->via != 3 && needs_transpose(d, s)) {
        if (cps_dtype_bytes(s->dtype) != 2 || d->dtype != s->dtype || !t->t->dma_transpose)
            return no_transpose(w, d, s);
        if (d->index || s->index || w->add)
            return cps_eval_error(&t->ev, CPS_E5202, w->dst_at,
                                  "a DMA transpose follows no index tile and does not add");
        return transpose_folds(w, d, s);
    }
    return pair(w, d, s);
}

/* ---- sources that are not in memory yet ---- */

static bool
list_size(cps_tracer *t, cps_cv v, cps_span at, int depth, int64_t *dim, int *nd)
{
    if (v.kind != CPS_V_LIST) {
        *nd = CPS_MAX(*nd, depth);
        return true;
    }
    if (depth == CPS_MAX_RANK)
        return cps_eval_error(&t->ev, CPS_E5201, at, "the list is nested too deeply");
    if (v.u.seq->n == 0)
        return cps_eval_error(&t->ev, CPS_E5201, at, "the list is empty");
    if (dim[depth] && dim[depth] != v.u.seq->n)
        return cps_eval_error(&t->ev, CPS_E5201, at, "the rows of the list differ in length");
    dim[depth] = v.u.seq->n;
    for (uint32_t i = 0; i < v.u.seq->n; i++)
        if (!list_size(t, v.u.seq->item[i], at, depth + 1, dim, nd))
            return false;
    return true;
}

static bool
list_fill(cps_tracer *t, cps_cv v, cps_span at, cps_dtype dt, char **p)
{
    double x;
    if (v.kind == CPS_V_LIST) {
        for (uint32_t i = 0; i < v.u.seq->n; i++)
            if (!list_fill(t, v.u.seq->item[i], at, dt, p))
                return false;
        return true;
    }
    if (!cps_cv_num(v, &x))
        return cps_eval_error(&t->ev, CPS_E2301, at,
                              "a list of the package holds numbers, not %s",
                              cps_eval_describe(&t->ev, v));
    if (cps_dtype_is_int(dt) && v.kind == CPS_V_INT)
        cps_from_i64(dt, *p, v.u.i);
    else
        cps_from_f64(dt, *p, x);
    *p += cps_dtype_bytes(dt);
    return true;
}

static bool
from_list(arrow *w, const cps_view *dst, cps_cv v)
{
    cps_tracer *t = w->t;
    int64_t dim[CPS_MAX_RANK] = {0}, n = 1;
    cps_type type = {.dtype = dst->dtype};
    int nd = 0;

    if (!list_size(t, v, w->src_at, 0, dim, &nd))
        return false;
    type.rank = nd;
    for (int i = 0; i < nd; i++) {
        type.dim[i] = dim[i];
        n *= dim[i];
    }
    char *data = cps_arena_alloc(t->out, (size_t)n * cps_dtype_bytes(dst->dtype)), *p = data;
    if (!list_fill(t, v, w->src_at, dst->dtype, &p))
        return false;
    // The same list is one constant, however often the statement runs.
    cps_digest dig = cps_digest_of(data, (size_t)(p - data));
    char hex[65];
    cps_digest_hex(&dig, hex);
    const char *key = cps_arena_printf(t->keep, "%s %d %lld %s", cps_dtype_name(dst->dtype), nd,
                                       (long long)dim[0], hex);
    uint64_t *at = cps_map_at_str(&t->hoisted, key, NULL);
    if (*at == 0) {
        cps_trstore *s = cps_tr_argument(t, "list", CPS_DATA, &type, 0, NULL, t->at);
        if (!s)
            return false;
        t->f->bufs.data[s->buf].data = data;
        s->can_write = false;
        *at = (uint64_t)(uintptr_t)s;
    }
    const cps_trstore *s = (const cps_trstore *)(uintptr_t)*at;
    return move(w, dst, &s->view);
}

// The folds of the tiles that an expression of so many rows reads; 0: none.
static int64_t
fold_of(const cps_xgraph *g, int64_t rows)
{
    for (cps_xid i = 1; i < g->n.n; i++) {
        const cps_xnode *x = cps_x_at(g, i);
        if (x->kind == CPS_X_TILE && cps_view_folded(x->view) && x->view->ax[x->view->paxis].num == rows)
            return x->view->ax[x->view->paxis].fold;
    }
    return 0;
}

static cps_trstore *
staging(arrow *w, const cps_view *dst, cps_cv v)
{
    cps_tracer *t = w->t;
    const cps_view *src = cps_tr_view(v);
    cps_vdim d[CPS_VIEW_AXES] = {{0}};
    int nd = 0;

    if (src) {
        for (int i = 0; i < src->nd; i++)
            d[nd++] = (cps_vdim){.num = src->ax[i].num,
                                 .fold = i == src->paxis ? src->ax[i].fold : 0};
        if (src->paxis > 0) // a transposed tile: its shape as read
            d[src->paxis].fold = 0;
    } else {
        const cps_xnode *n =
            v.kind == CPS_V_OPAQUE ? cps_x_at(t->graph, ((const cps_trexpr *)v.u.p)->id) : NULL;
        if (n && (n->rows || n->nfree)) {
            d[nd++] = (cps_vdim){.num = n->rows ? n->rows : 1, .fold = fold_of(t->graph, n->rows)};
            for (int i = 0; i < n->nfree; i++)
                d[nd++].num = n->free[i];
        } else {
            for (int i = 0; i < dst->nd; i++)
                d[nd++].num = dst->ax[i].num;
        }
    }
    if (nd == 1)
        d[nd++].num = 1;
    return cps_tr_tile(t, cps_arena_printf(t->keep, "%s_out", dst->name), CPS_SBUF, dst->dtype,
                       nd, d, w->site, 1, w->m->bufs, t->at);
}

bool
cps_tr_arrow(cps_tracer *t, const cps_view *dst, cps_span dst_at, cps_cv value,
             cps_span value_at, bool add, const cps_trmarks *m, const void *site)
{
    arrow w = {.t = t, .m = m, .dst_at = dst_at, .src_at = value_at, .add = add, .site = site};
    const cps_view *s = cps_tr_view(value);
    bool computed = value.kind == CPS_V_OPAQUE && value.tag == CPS_TR_EXPR;
    double num;

    if (m->red && !computed)
        return cps_eval_error(&t->ev, CPS_E2212, m->red_at, "a plain transfer cannot reduce");
    if (value.kind == CPS_V_LIST)
        return from_list(&w, dst, value);
    if (s && s->space != CPS_PSUM)
        return move(&w, dst, s);
    if (!s && !computed && !cps_cv_num(value, &num)) {
        if (value.kind == CPS_V_OPAQUE && value.tag == CPS_TR_PRODUCT)
            return cps_tr_node(t, value, value_at) != 0;
        return cps_eval_error(
            &t->ev, CPS_E2301, value_at,
            "the source of an arrow must be a tensor, a tile, an expression or "
            "a list, not %s",
            cps_eval_describe(&t->ev, value));
    }
    cps_trstore *stage = staging(&w, dst, value);
    if (!stage)
        return false;
    // Marks go with the part they mean: reduce with the expression, the rest with the transfer.
    cps_trmarks compute = {.on = CPS_ENGINE_ANY,
                           .red = m->red,
                           .red_at = m->red_at,
                           .red_op = m->red_op,
                           .onto = m->onto,
                           .via = -1,
                           .bufs = -1};
    return cps_tr_assign(t, &stage->view, value_at, value, value_at, &compute, site) &&
           move(&w, dst, &stage->view);
}

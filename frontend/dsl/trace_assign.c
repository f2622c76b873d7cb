/* Assignments: the expression is covered by the combining table and the plan becomes
 * instructions. A destination over several folds is done fold-wise: whole folds in one go, a
 * ragged last fold by instructions of its own. */
#include "frontend/dsl/trace_priv.h"

#include <math.h>
#include <string.h>

typedef struct stmt { /* one plan on its way into the tile program */
    cps_tracer *t;
    cps_xgraph *g;
    const cps_xplan *plan;
    const cps_trmarks *m;
    const void *site;
    cps_trstore **temp;
    cps_xid dst, red;
    cps_span dst_at, red_at;
    cps_view *made; /* views of temporaries, by index */
} stmt;

/* ---- folds ---- */

// The graph with every folded tile cut to rows [lo, lo + n) of the destination.
static bool
cut_graph(cps_tracer *t, const cps_xgraph *from, cps_xgraph *to, int64_t lo, int64_t n,
          int64_t total, cps_xid *map)
{
    cps_view_err e;

    cps_x_init(to, from->arena);
    for (cps_xid i = 1; i < from->n.n; i++) {
        const cps_xnode x = *cps_x_at(from, i);
        cps_xid a = x.a ? map[x.a] : 0, b = x.b ? map[x.b] : 0, c = x.c ? map[x.c] : 0, r = 0;
        switch (x.kind) {
        case CPS_X_TILE: {
            const cps_view *v = x.view;
            if (cps_view_folded(v) && v->ax[v->paxis].num == total) {
                cps_view *w = cps_arena_raw(from->arena, sizeof(*w));
                if (!cps_view_unfold(w, v, lo, n, &e))
                    return cps_tr_fail(t, x.at, &e);
                v = w;
            }
            r = cps_x_tile(to, v, x.at, &e);
            break;
        }
        case CPS_X_NUM:
            r = cps_x_num(to, x.num, x.is_int, x.at);
            break;
        case CPS_X_INDEX:
            r = cps_x_index(to, x.base, x.channel, x.col, x.rows, x.free[0], x.at);
            break;
        case CPS_X_ALU:
            r = cps_x_alu(to, (cps_alu)x.sub, a, b, x.at, &e);
            break;
        case CPS_X_FUNC:
            r = cps_x_func(to, (cps_actfn)x.sub, a, x.at);
            break;
        case CPS_X_RECIP:
            r = cps_x_div(to, cps_x_num(to, 1, true, x.at), a, x.at, &e);
            break;
        case CPS_X_REDUCE:
            r = cps_x_reduce(to, (cps_alu)x.sub, a, x.axes, x.at, &e);
            break;
        case CPS_X_SELECT:
            r = cps_x_select(to, a, b, c, x.at, &e);
            break;
        case CPS_X_PREV:
            r = cps_x_prev(to, x.at);
            break;
        case CPS_X_SCAN: {
            cps_xid in = cps_x_alu(to, (cps_alu)x.sub, a, cps_x_prev(to, x.at), x.at, &e);
            in = in ? cps_x_alu(to, (cps_alu)x.sub2, in, b, x.at, &e) : 0;
            r = in ? cps_x_scan(to, in, c, x.at, &e) : 0;
            break;
        }
        case CPS_X_KINDS:
            r = UINT32_MAX;
            break; // shapes between: not needed again
        }
        if (r == 0)
            return cps_tr_fail(t, x.at, &e);
        map[i] = r;
    }
    return true;
}

/* ---- operands ---- */

// The view spread over the free axes of the instruction by steps of 0.
static bool
spread(const cps_view *v, int nfree, const int64_t *free_, cps_view *out, cps_view_err *e)
{
    int64_t want = 1, have = 1;
    int at[CPS_VIEW_AXES], n = 0;

    for (int i = 0; i < nfree; i++)
        want *= free_[i];
    for (int i = 0; i < v->nd; i++)
        if (i != v->paxis) {
            at[n++] = i;
            have *= v->ax[i].num;
        }
    *out = *v;
    if (want == have)
        return true;
    if (have == 1) {
        if (out->nd == CPS_VIEW_AXES)
            return *e = (cps_view_err){.code = CPS_E3108, .text = "too many axes"}, false;
        out->ax[out->nd++] = (cps_vaxis){.num = want, .nl = 1, .l = {{0, want}}};
        return true;
    }
    for (int i = 0; i < nfree; i++) { // NumPy: from the last axis on
        int k = n - nfree + i;
        if (k >= 0 && v->ax[at[k]].num != free_[i])
            out->ax[at[k]] = (cps_vaxis){.num = free_[i], .nl = 1, .l = {{0, free_[i]}}};
    }
    if (n < nfree) { // leading axes are missing: put them behind the partition axis
        int add = nfree - n, first = v->paxis + 1;
        if (out->nd + add > CPS_VIEW_AXES)
            return *e = (cps_view_err){.code = CPS_E3108, .text = "too many axes"}, false;
        for (int i = out->nd - 1; i >= first; i--)
            out->ax[i + add] = out->ax[i];
        for (int i = 0; i < add; i++)
            out->ax[first + i] = (cps_vaxis){.num = free_[i], .nl = 1, .l = {{0, free_[i]}}};
        out->nd += add;
    }
    return true;
}

static const cps_view *
value_view(stmt *s, const cps_xval *v, cps_span *at)
{
    switch (v->kind) {
    case CPS_XV_NODE:
        *at = cps_x_at(s->g, v->id)->at;
        return cps_x_at(s->g, v->id)->view;
    case CPS_XV_TEMP:
        *at = s->t->at;
        return &s->temp[v->id]->view;
    case CPS_XV_DST:
        *at = s->dst_at;
        return cps_x_at(s->g, s->dst)->view;
    case CPS_XV_RED:
        *at = s->red_at;
        return cps_x_at(s->g, s->red)->view;
    default:
        cps_bug("a value of kind %d has no view", (int)v->kind);
    }
}

static int64_t
rows_of(stmt *s)
{
    int64_t r = cps_x_at(s->g, s->dst)->rows;
    return r ? r : s->t->t->sbuf_partitions;
}

static bool
put_in(stmt *s, cps_tinst *i, const cps_xval *v, bool scalar, int nfree, const int64_t *free_)
{
    cps_tracer *t = s->t;
    cps_view w;
    cps_view_err e;
    cps_span at;

    if (v->kind == CPS_XV_NUM) {
        i->in[i->nin] = cps_to_imm((float)v->num);
        if (v->is_int) {
            i->in[i->nin].is_int = true;
            i->in[i->nin].ival = (int64_t)v->num;
        }
        i->nin++;
        return true;
    }
    if (v->kind == CPS_XV_HOIST) {
        uint32_t b = cps_tr_hoist(t, v->num, v->is_int, v->dtype);
        cps_tview h = {.buf = b, .dtype = v->dtype, .parts = (uint16_t)rows_of(s), .nd = 1};
        int64_t n = 1;
        for (int k = 0; !scalar && k < nfree; k++)
            n *= free_[k];
        h.d[0] = (cps_tdim){n > 1 ? 0 : 1, n};
        i->in[i->nin++] = cps_to_view(cps_tile_view(t->f, h));
        return true;
    }
    const cps_view *view = value_view(s, v, &at);
    if (scalar)
        w = *view;
    else if (!spread(view, nfree, free_, &w, &e))
        return cps_tr_fail(t, at, &e);
    return cps_tr_in(t, i, &w, view->all ? rows_of(s) : 0, at);
}

static void
set_attrs(cps_tinst *i, const cps_xinst *x)
{
    i->set |= x->set;
    for (int k = 0; k < CPS_TATTRS; k++)
        if (x->set >> k & 1)
            i->attr[k] = x->attr[k];
}

// Steps of the free levels of `w`: the last axis counts columns.
static bool
pattern(cps_tracer *t, cps_tinst *i, const cps_view *v, int64_t col)
{
    cps_tlist l = {0};
    int last = -1;

    for (int k = 0; k < v->nd; k++)
        if (k != v->paxis)
            last = k;
    for (int k = 0; k < v->nd; k++)
        for (int j = 0; k != v->paxis && j < v->ax[k].nl; j++) {
            int64_t inner = 1;
            if (v->ax[k].l[j].num == 1)
                continue;
            for (int m = j + 1; m < v->ax[k].nl; m++)
                inner *= v->ax[k].l[m].num;
            l.v[l.n++] = k == last ? (int32_t)(col * inner) : 0;
        }
    if (l.n == 0)
        l.v[l.n++] = (int32_t)col;
    cps_vec_push(t->f->arena, &t->f->lists, l);
    cps_tinst_set(i, CPS_TA_PATTERN, (int32_t)t->f->lists.n - 1);
    return true;
}

// The operand of tensor_reduce: kept levels, then reduced ones, each merged on its own.
static bool
reduce_in(stmt *s, cps_tinst *i, const cps_xinst *x)
{
    cps_tracer *t = s->t;
    cps_span at;
    const cps_view *v = value_view(s, &x->in[0], &at);
    cps_tview w = {0}, part;
    cps_view_err e;
    int nfree = v->nd - (v->paxis >= 0), axes = 0;

    for (int pass = 0; pass < 2; pass++) {
        cps_view h = *v;
        int k = 0, f = 0;
        h.paxis = -1;
        for (int a = 0; a < v->nd; a++) {
            if (a == v->paxis) {
                h.paxis = k;
                h.ax[k++] = v->ax[a];
                continue;
            }
            bool reduced = f++ >= nfree - x->axes;
            if (reduced == (pass == 1))
                h.ax[k++] = v->ax[a];
        }
        h.nd = k;
        if (!cps_view_lower(&h, ((cps_trstore *)v->store)->buf, v->all ? rows_of(s) : 0, true,
                            &part, t->keep, &e))
            return cps_tr_fail(t, at, &e);
        bool unit = part.nd == 1 && part.d[0].num == 1;
        if (pass == 0) {
            w = part;
            if (unit)
                w.nd = 0;
            continue;
        }
        axes = part.nd;
        if (w.nd + part.nd > CPS_TILE_DIMS)
            return cps_eval_error(&t->ev, CPS_E3108, at,
                                  "the view needs more than %d access dimensions",
                                  CPS_TILE_DIMS);
        memcpy(&w.d[w.nd], part.d, (size_t)part.nd * sizeof(part.d[0]));
        w.nd += part.nd;
    }
    cps_tinst_set(i, CPS_TA_AXES, axes);
    return cps_tr_in_view(t, i, w, v->store, at);
}

static bool
emit_one(stmt *s, const cps_xinst *x)
{
    cps_tracer *t = s->t;
    cps_span at;
    const cps_view *out = value_view(s, &x->out, &at);
    int64_t free_[CPS_VIEW_AXES];
    int nfree = 0;
    cps_trmarks none = {.on = CPS_ENGINE_ANY};

    for (int i = 0; i < out->nd; i++)
        if (i != out->paxis)
            free_[nfree++] = out->ax[i].num;
    if (nfree == 0)
        free_[nfree++] = 1;
    cps_tinst *i = cps_tr_begin(t, x->op, s->m ? s->m : &none);
    i->engine = x->engine;
    i->pinned = x->pinned;
    if (x->op == CPS_T_TENSOR_REDUCE) {
        if (!reduce_in(s, i, x))
            return false;
    } else {
        for (int k = 0; k < 3; k++)
            if (x->in[k].kind &&
                !put_in(s, i, &x->in[k], cps_tr_scalar(x->op, k), nfree, free_))
                return false;
    }
    set_attrs(i, x);
    if (x->op == CPS_T_IOTA || x->op == CPS_T_AFFINE_SELECT) {
        cps_tview w;
        cps_view_err e;
        if (!cps_view_lower(out, ((cps_trstore *)out->store)->buf, out->all ? rows_of(s) : 0,
                            false, &w, t->keep, &e))
            return cps_tr_fail(t, at, &e);
        if (!pattern(t, i, out, x->col) || !cps_tr_out_view(t, i, w, out->store, at))
            return false;
    } else if (!cps_tr_out(t, i, out, out->all ? rows_of(s) : 0, at)) {
        return false;
    }
    if (x->acc.kind) {
        const cps_view *acc = value_view(s, &x->acc, &at);
        if (!cps_tr_out(t, i, acc, acc->all ? rows_of(s) : 0, at))
            return false;
    }
    return true;
}

static bool
emit_plan(stmt *s)
{
    cps_tracer *t = s->t;

    s->temp = cps_new_array(t->scratch, cps_trstore *, s->plan->temps.n + 1);
    for (uint32_t k = 0; k < s->plan->temps.n; k++) {
        const cps_xtemp *x = &s->plan->temps.data[k];
        cps_vdim d[CPS_VIEW_AXES + 1] = {{.num = x->rows ? x->rows : 1, .all = x->rows == 0}};
        int nd = 1;
        for (int j = 0; j < x->nfree && nd < CPS_VIEW_AXES - 1; j++)
            d[nd++].num = x->free[j];
        if (nd == 1)
            d[nd++].num = 1;
        s->temp[k] =
            cps_tr_tile(t, "tmp", CPS_SBUF, x->dtype, nd, d, s->site, 16 + k, -1, t->at);
        if (!s->temp[k])
            return false;
    }
    for (uint32_t k = 0; k < s->plan->insts.n; k++)
        if (!emit_one(s, &s->plan->insts.data[k]))
            return false;
    return true;
}

static bool
cover(cps_tracer *t, cps_xgraph *g, cps_xid root, cps_xid dst, cps_span dst_at, cps_xid red,
      const cps_trmarks *m, const void *site)
{
    cps_xdst d = {.node = dst, .red = red, .red_op = m->red_op, .pin = m->on};
    cps_xplan plan;
    cps_view_err e;

    if (!cps_x_cover(g, root, &d, t->t, &plan, &e)) {
        cps_span at = plan.at.file ? plan.at : t->at;
        return cps_tr_fail(t, at, &e);
    }
    if (plan.warn_int) {
        cps_error(t->d, CPS_W3301, t->at,
                  "a number above 2^24 meets 32-bit integers in fp32 arithmetic");
        cps_help(t->d, "make every operand and the result i32 or u32");
    }
    stmt s = {.t = t,
              .g = g,
              .plan = &plan,
              .m = m,
              .site = site,
              .dst = dst,
              .red = red,
              .dst_at = dst_at,
              .red_at = m->red_at};
    return emit_plan(&s);
}

// `reduce OP onto`: into a temporary, then combined with what the target holds.
static bool
onto(cps_tracer *t, const cps_view *dst, cps_span dst_at, cps_cv value, cps_span value_at,
     const cps_trmarks *m, const void *site)
{
    cps_vdim d[2] = {{.num = CPS_MAX(cps_view_parts(m->red), 1)}, {.num = 1}};
    cps_trstore *part = cps_tr_tile(t, "part", CPS_SBUF, CPS_DT_FP32, 2, d, site, 2, -1, t->at);
    cps_trmarks into = *m, plain = {.on = CPS_ENGINE_ANY};
    cps_view_err e;

    if (!part)
        return false;
    into.onto = false;
    into.red = &part->view;
    if (!cps_tr_assign(t, dst, dst_at, value, value_at, &into, site))
        return false;
    cps_xid a = cps_x_tile(t->graph, m->red, m->red_at, &e);
    cps_xid b = a ? cps_x_tile(t->graph, &part->view, m->red_at, &e) : 0;
    cps_xid r = b ? cps_x_alu(t->graph, m->red_op, a, b, m->red_at, &e) : 0;
    if (!r)
        return cps_tr_fail(t, m->red_at, &e);
    return cover(t, t->graph, r, a, m->red_at, 0, &plain, (const char *)site + 1);
}

bool
cps_tr_assign(cps_tracer *t, const cps_view *dst, cps_span dst_at, cps_cv value,
              cps_span value_at, const cps_trmarks *m, const void *site)
{
    const cps_view *src = cps_tr_view(value);
    cps_view_err e;
    cps_xid root, d, red = 0;

    if (dst->space == CPS_HBM) {
        cps_eval_error(&t->ev, CPS_E3205, dst_at,
                       "`%s` is an hbm tensor, and engines do not reach "
                       "HBM",
                       dst->name);
        cps_help(t->d, "write it with an arrow: %s[...] <- ...;", dst->name);
        return false;
    }
    if (value.kind == CPS_V_OPAQUE && value.tag == CPS_TR_PRODUCT)
        return cps_tr_matmul(t, dst, dst_at, value.u.p, false, m);
    if (src && src->space != CPS_HBM && src->paxis > 0)
        return cps_tr_pe_transpose(t, dst, dst_at, src, value_at, m);
    if (m->red && m->onto)
        return onto(t, dst, dst_at, value, value_at, m, site);
    if (!(root = cps_tr_node(t, value, value_at)))
        return false;
    if (!(d = cps_x_tile(t->graph, dst, dst_at, &e)) ||
        (m->red && !(red = cps_x_tile(t->graph, m->red, m->red_at, &e))))
        return cps_tr_fail(t, d ? m->red_at : dst_at, &e);
    if (red && cps_x_elems(cps_x_at(t->graph, red)) != 1)
        return cps_eval_error(&t->ev, CPS_E3202, m->red_at,
                              "the target of reduce is a [p, 1] tile, not %s",
                              cps_view_shape(t->keep, m->red));
    if (!cps_view_folded(dst)) {
        for (cps_xid i = 1; i < t->graph->n.n; i++) {
            const cps_xnode *x = cps_x_at(t->graph, i);
            if (x->kind != CPS_X_TILE || !cps_view_folded(x->view))
                continue;
            const cps_vaxis *rows = &x->view->ax[x->view->paxis];
            cps_eval_error(&t->ev, CPS_E3201, x->at, "rows in folds of %lld meet rows that are not folded", (long long)rows->fold);
            cps_help(t->d, "declare the target with the same folds: [%lld by %lld, ...]", (long long)rows->num, (long long)rows->fold);
            return false;
        }
        return cover(t, t->graph, root, d, dst_at, red, m, site);
    }

    int64_t rows = dst->ax[dst->paxis].num, fold = dst->ax[dst->paxis].fold;
    int64_t full = rows / fold * fold;
    cps_xid *map = cps_new_array(t->scratch, cps_xid, t->graph->n.n);
    for (int k = 0; k < 2; k++) {
        int64_t lo = k ? full : 0, n = k ? rows - full : full;
        cps_xgraph g;
        if (n == 0)
            continue;
        if (!cut_graph(t, t->graph, &g, lo, n, rows, map))
            return false;
        if (!cover(t, &g, map[root], map[d], dst_at, red ? map[red] : 0, m,
                   k ? (const char *)site + 2 : site))
            return false;
    }
    return true;
}

// `x += e`: x = x + e; on PSUM with a product it accumulates.
static bool
compound(cps_tracer *t, const cps_ast_assign *s, const cps_view *dst, cps_cv value,
         const cps_trmarks *m)
{
    cps_ast_bin op = cps_ast_sets[s->set].op;
    cps_cv sum;

    if (value.kind == CPS_V_OPAQUE && value.tag == CPS_TR_PRODUCT) {
        if (op != CPS_BIN_ADD)
            return cps_eval_error(&t->ev, CPS_E3203, s->set_span,
                                  "products are added (`+=`) or written (`=`)");
        return cps_tr_matmul(t, dst, s->dst->span, value.u.p, true, m);
    }
    cps_hook h = cps_tr_binary(&t->ev, NULL, op, s->set_span, cps_cv_opaque(CPS_TR_VIEW, dst),
                               value, &sum);
    if (h == CPS_HOOK_PASS)
        return cps_eval_error(&t->ev, CPS_E2302, s->set_span, "`%s` cannot combine these",
                              cps_ast_sets[s->set].text);
    return h == CPS_HOOK_DONE && cps_tr_assign(t, dst, s->dst->span, sum, s->value->span, m, s);
}

cps_flow
cps_tr_assign_stmt(cps_tracer *t, const cps_ast_assign *s)
{
    cps_cv dst, value;
    cps_trmarks m;
    bool ok;

    if (!cps_tr_marks(t, &s->marks, &m) || !cps_eval_expr(&t->ev, s->dst, &dst) ||
        !cps_eval_expr(&t->ev, s->value, &value))
        return CPS_FLOW_FAIL;
    if (dst.kind == CPS_V_OPAQUE && dst.tag == CPS_TR_REG) {
        if (s->set == CPS_SET_ARROW || s->set == CPS_SET_ARROW_ADD) {
            cps_eval_error(&t->ev, CPS_E2305, s->dst->span,
                           "a register is loaded where it is declared: reg n: i32 <- ...;");
            return CPS_FLOW_FAIL;
        }
        ok = cps_tr_reg_assign(t, dst.u.p, value, cps_ast_sets[s->set].op, s->head.span);
        return ok ? CPS_FLOW_NEXT : CPS_FLOW_FAIL;
    }
    const cps_view *v = cps_tr_view(dst);
    if (!v) {
        cps_eval_error(&t->ev, CPS_E2301, s->dst->span,
                       "the left side must be storage or a part of it, not %s",
                       cps_eval_describe(&t->ev, dst));
        return CPS_FLOW_FAIL;
    }
    switch (s->set) {
    case CPS_SET_SET:
        ok = cps_tr_assign(t, v, s->dst->span, value, s->value->span, &m, s);
        break;
    case CPS_SET_ARROW:
    case CPS_SET_ARROW_ADD:
        ok = cps_tr_arrow(t, v, s->dst->span, value, s->value->span,
                          s->set == CPS_SET_ARROW_ADD, &m, s);
        break;
    default:
        ok = compound(t, s, v, value, &m);
        break;
    }
    if (!ok && v->store)
        ((cps_trstore *)v->store)->written = true; // the fault was told: reading it is no second one
    return ok ? CPS_FLOW_NEXT : CPS_FLOW_FAIL;
}

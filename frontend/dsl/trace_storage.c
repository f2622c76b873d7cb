/* Declarations: each execution makes a fresh buffer of the ring that its declaration is.
 * Extents and dtype come from the text or from the first value. Also the constants that are
 * made once, before everything else: numbers as [128, 1] columns, identities for PE transposes.
 */
#include "frontend/dsl/trace_priv.h"

#include <math.h>
#include <string.h>

static cps_space
space_of(cps_ast_space s)
{
    switch (s) {
    case CPS_SPACE_HBM:
        return CPS_HBM;
    case CPS_SPACE_SBUF:
        return CPS_SBUF;
    case CPS_SPACE_PSUM:
        return CPS_PSUM;
    default:
        return CPS_REG;
    }
}

uint32_t
cps_tr_ring(cps_tracer *t, const void *site, uint32_t k, uint32_t *turn)
{
    cps_buf key = {0};
    cps_buf_printf(&key, "%p.%u", site, k);
    for (uint32_t i = 0; i < t->ev.trail.n; i++)
        if (t->ev.trail.data[i].call)
            cps_buf_printf(&key, ".%p", (const void *)t->ev.trail.data[i].call);
    uint64_t *at = cps_map_at_str(&t->rings, key.data, NULL);
    cps_buf_fini(&key);
    if (*at == 0) {
        uint32_t id = t->ring.n + 1;
        cps_vec_push(t->keep, &t->ring, ((cps_trring){.id = id}));
        *at = id;
    }
    cps_trring *r = &t->ring.data[*at - 1];
    *turn = r->turn++;
    return r->id;
}

static cps_trstore *
new_store(cps_tracer *t, const char *name, cps_space s, cps_span at)
{
    cps_trstore *x = cps_new(t->keep, cps_trstore);
    x->name = name;
    x->space = s;
    x->at = at;
    x->can_read = x->can_write = true;
    x->body = t->body;
    x->pipe = t->pipe.id;
    x->iter = t->pipe.iter;
    return x;
}

static void
keep_store(cps_tracer *t, cps_trstore *x, cps_tbuf b)
{
    x->buf = cps_tile_buf(t->f, b);
    while (t->stores.n < x->buf)
        cps_vec_push(t->keep, &t->stores, NULL);
    cps_vec_push(t->keep, &t->stores, x);
}

static bool
psum_takes(const cps_target *t, cps_dtype dt)
{
    if (dt == CPS_DT_FP32)
        return true;
    return t->pe_transpose && (dt == CPS_DT_BF16 || dt == CPS_DT_FP16);
}

static bool
fill_buffer(cps_tracer *t, cps_trstore *x, cps_dtype dt, int nd, const cps_vdim *dims,
            const cps_trmarks *m, const void *site, uint32_t k, cps_span at)
{
    cps_vdim d[CPS_VIEW_AXES] = {{0}};
    cps_view_err e;
    cps_tbuf b = {.name = x->name,
                  .space = x->space,
                  .dtype = dt,
                  .pin_byte = -1,
                  .pin_bank = -1,
                  .pin_part = -1,
                  .loc = at};
    bool ok;

    cps_assert(nd <= CPS_VIEW_AXES);
    memcpy(d, dims, (size_t)nd * sizeof(d[0]));
    if (m && m->align > 0)
        d[0].align = m->align;
    if (x->space == CPS_HBM) {
        ok = cps_view_hbm(&x->view, dt, nd, d, 0, &e);
        b.rank = nd;
        for (int i = 0; ok && i < nd; i++)
            b.dim[i] = d[i].num;
    } else {
        ok = cps_view_tile(&x->view, x->space, dt, nd, d, t->t->sbuf_partitions,
                           x->space == CPS_PSUM ? t->t->psum_bank_bytes : 0, b.dim, &b.rank,
                           t->keep, &e);
    }
    if (!ok)
        return cps_tr_fail(t, at, &e);
    if (x->space == CPS_PSUM && !psum_takes(t->t, dt))
        return cps_eval_error(&t->ev, CPS_E4104, at, "%s has no %s in PSUM", t->t->name,
                              cps_dtype_name(dt));
    b.ring = cps_tr_ring(t, site, k, &b.turn);
    b.slots = m && m->bufs > 0 ? (uint16_t)m->bufs : 0;
    b.depth = t->nest;
    if (m) {
        b.pin_byte = (int32_t)m->at;
        b.pin_bank = (int32_t)m->bank;
        b.pin_part = (int16_t)m->parts;
        x->slots_given = m->bufs > 0;
        x->slots_at = m->bufs_at;
    }
    x->view.store = x;
    x->view.name = x->name;
    keep_store(t, x, b);
    if (x->space == CPS_PSUM)
        cps_vec_push(t->keep, &t->psum, x);
    return true;
}

cps_trstore *
cps_tr_tile(cps_tracer *t, const char *name, cps_space s, cps_dtype dt, int nd,
            const cps_vdim *d, const void *site, uint32_t k, int64_t bufs, cps_span at)
{
    cps_trstore *x = new_store(t, name, s, at);
    cps_trmarks m = {.bufs = bufs, .at = -1, .bank = -1, .parts = -1, .align = -1};
    return fill_buffer(t, x, dt, nd, d, &m, site, k, at) ? x : NULL;
}

cps_trstore *
cps_tr_argument(cps_tracer *t, const char *name, cps_role role, const cps_type *type, int order,
                const char *const *extents, cps_span at)
{
    cps_trstore *x = new_store(t, name, CPS_HBM, at);
    cps_vdim d[CPS_MAX_RANK] = {{0}};
    cps_tbuf b = {.name = name,
                  .space = CPS_HBM,
                  .role = role,
                  .dtype = type->dtype,
                  .rank = type->rank,
                  .pin_byte = -1,
                  .pin_bank = -1,
                  .pin_part = -1,
                  .loc = at};
    cps_view_err e;

    if (type->rank == 0) { // a scalar is one element
        d[0].num = 1;
        b.rank = 1;
        b.dim[0] = 1;
    }
    for (int i = 0; i < type->rank; i++) {
        d[i].num = b.dim[i] = type->dim[i];
        d[i].name = extents ? extents[i] : NULL;
    }
    if (!cps_view_hbm(&x->view, type->dtype, b.rank, d, order, &e)) {
        cps_tr_fail(t, at, &e);
        return NULL;
    }
    if (order == 1 && b.rank >= 2) { // the buffer has the storage's shape
        b.dim[b.rank - 1] = type->dim[b.rank - 2];
        b.dim[b.rank - 2] = type->dim[b.rank - 1];
    }
    x->order = order;
    x->written = role != CPS_OUT;
    x->can_write = role != CPS_IN;
    x->view.store = x;
    x->view.name = name;
    keep_store(t, x, b);
    return x;
}

// One extent of a declaration.
static bool
read_dim(cps_tracer *t, const cps_ast_dim *d, cps_vdim *out)
{
    cps_cv v;
    cps_piece p;

    *out = (cps_vdim){0};
    if (!cps_eval_expr(&t->ev, d->extent, &v))
        return false;
    if (v.kind == CPS_V_WORD && cps_streq(v.u.s, "all")) {
        out->all = true;
        out->num = 1;
    } else if (cps_cv_bounds(v, &p)) {
        out->num = p.end - p.start;
        out->origin = p.start;
        out->name = p.name;
        if (!out->name && d->extent->kind == CPS_EX_NAME)
            out->name = CPS_AST_AS(ref, d->extent)->name.text;
        if (out->num < 1)
            return cps_eval_error(&t->ev, CPS_E3104, d->span, "an extent of %lld",
                                  (long long)out->num);
    } else {
        return cps_eval_error(&t->ev, CPS_E2301, d->extent->span,
                              "an extent must be a number, a range or a piece, not %s",
                              cps_eval_describe(&t->ev, v));
    }
    out->decl = cps_ast_expr_text(t->keep, d->extent);
    if (d->fold) {
        if (!cps_eval_int(&t->ev, d->fold, "a fold", &out->fold))
            return false;
        if (out->fold < 1)
            return cps_eval_error(&t->ev, CPS_E3103, d->fold->span, "a fold of %lld rows",
                                  (long long)out->fold);
        out->decl = cps_arena_printf(t->keep, "%s by %lld", out->decl, (long long)out->fold);
    }
    return true;
}

// Extents and dtype that the first value gives.
static bool
dims_of_value(cps_tracer *t, const cps_ast_store *s, cps_cv v, int *nd, cps_vdim *d)
{
    const cps_view *w = cps_tr_view(v);

    if (w) {
        for (int i = 0; i < w->nd; i++) {
            const cps_vaxis *x = &w->ax[i];
            d[i] = (cps_vdim){.num = x->num,
                              .origin = x->origin,
                              .name = x->name,
                              .fold = i == w->paxis ? x->fold : 0,
                              .all = w->all && i == w->paxis};
        }
        *nd = w->nd;
        return true;
    }
    if (v.kind == CPS_V_OPAQUE && v.tag == CPS_TR_EXPR) {
        const cps_xnode *n = cps_x_at(t->graph, ((const cps_trexpr *)v.u.p)->id);
        d[0] = (cps_vdim){.num = n->rows ? n->rows : 1, .all = n->rows == 0};
        for (int i = 0; i < n->nfree; i++)
            d[i + 1] = (cps_vdim){.num = n->free[i]};
        *nd = n->nfree + 1;
        return true;
    }
    return cps_eval_error(&t->ev, CPS_E4106, s->name.span, "`%s` has no extents", s->name.text);
}

static bool
dtype_of_value(cps_tracer *t, const cps_ast_store *s, cps_cv v, cps_dtype *out)
{
    const cps_view *w = cps_tr_view(v);

    if (w)
        *out = w->dtype;
    else if (v.kind == CPS_V_OPAQUE)
        *out = CPS_DT_FP32;
    else
        return cps_eval_error(&t->ev, CPS_E4106, s->name.span, "`%s` has no dtype",
                              s->name.text);
    return true;
}

static bool
declare(cps_tracer *t, const cps_ast_store *s, cps_trstore **out)
{
    cps_cv v = {0};
    cps_vdim d[CPS_VIEW_AXES] = {{0}};
    int nd = 0;
    cps_dtype dt = CPS_DT_NONE;
    cps_trmarks decl, marks;
    bool staging = s->init && s->set == CPS_SET_ARROW;

    if (!cps_tr_marks(t, &s->decl, &decl) || !cps_tr_marks(t, &s->marks, &marks))
        return false;
    if (s->init && !cps_eval_expr(&t->ev, s->value, &v))
        return false;
    if (s->shaped) {
        if (s->ndim > CPS_VIEW_AXES - 1)
            return cps_eval_error(&t->ev, CPS_E3104, s->name.span, "more than %d extents",
                                  CPS_VIEW_AXES - 1);
        for (uint32_t i = 0; i < s->ndim; i++)
            if (!read_dim(t, &s->dim[i], &d[i]))
                return false;
        nd = (int)s->ndim;
    } else if (!dims_of_value(t, s, v, &nd, d)) {
        return false;
    }
    if (s->dtype ? !cps_eval_dtype(&t->ev, s->dtype, &dt) : !dtype_of_value(t, s, v, &dt))
        return false;
    cps_trstore *x = new_store(t, s->name.text, space_of(s->space), s->name.span);
    if (!fill_buffer(t, x, dt, nd, d, &decl, s, 0, s->name.span))
        return false;
    cps_cv value = cps_cv_opaque(CPS_TR_VIEW, &x->view);
    if (!cps_eval_bind(&t->ev, &s->name, value, CPS_BIND_STORAGE))
        return false;
    *out = x;
    if (!s->init)
        return true;
    bool ok = staging ? cps_tr_arrow(t, &x->view, s->name.span, v, s->value->span, false, &marks, s)
                      : cps_tr_assign(t, &x->view, s->name.span, v, s->value->span, &marks, s);
    x->written |= !ok; // the fault was told: reading it is no second one
    return ok;
}

cps_flow
cps_tr_declare(cps_tracer *t, const cps_ast_store *s)
{
    cps_trstore *x = NULL;

    if (s->space == CPS_SPACE_RAM || s->space == CPS_SPACE_VREG) {
        cps_eval_error(&t->ev, CPS_E2309, s->head.span, "%s is storage of the host",
                       cps_ast_space_text[s->space]);
        return CPS_FLOW_FAIL;
    }
    if (s->space == CPS_SPACE_REG)
        return cps_tr_reg_declare(t, s);
    return declare(t, s, &x) ? CPS_FLOW_NEXT : CPS_FLOW_FAIL;
}

/* ---- constants before everything else ---- */

static uint32_t
pre_buffer(cps_tracer *t, const char *name, cps_dtype dt, int64_t n)
{
    cps_tbuf b = {.name = name,
                  .space = CPS_SBUF,
                  .dtype = dt,
                  .rank = 2,
                  .pin_byte = -1,
                  .pin_bank = -1,
                  .pin_part = -1,
                  .slots = 1};
    b.dim[0] = t->t->sbuf_partitions;
    b.dim[1] = n;
    // A ring of its own: the site is the table of hoisted constants, the number its place in
    // it.
    b.ring = cps_tr_ring(t, &t->hoisted, t->hoisted.n, &b.turn);
    return cps_tile_buf(t->f, b);
}

static cps_tinst *
pre_inst(cps_tracer *t, cps_top op, uint32_t buf, cps_dtype dt, int64_t n)
{
    cps_tinst *i = cps_vec_add(t->keep, &t->pre);
    cps_tview v = {.buf = buf, .dtype = dt, .parts = (uint16_t)t->t->sbuf_partitions, .nd = 1};
    v.d[0] = (cps_tdim){1, n};
    i->op = (uint16_t)op;
    i->engine = op == CPS_T_AFFINE_SELECT ? CPS_POOL : CPS_DVE;
    i->round = i->stage = -1;
    i->nout = 1;
    i->out[0] = cps_to_view(cps_tile_view(t->f, v));
    return i;
}

uint32_t
cps_tr_hoist(cps_tracer *t, double v, bool is_int, cps_dtype dt)
{
    const char *key = cps_arena_printf(t->keep, "%s %a", cps_dtype_name(dt), v);
    uint64_t *at = cps_map_at_str(&t->hoisted, key, NULL);
    if (*at == 0) {
        uint32_t b = pre_buffer(t, "const", dt, 1);
        cps_tinst *i = pre_inst(t, CPS_T_MEMSET, b, dt, 1);
        i->nin = 1;
        i->in[0] = cps_to_imm((float)v);
        if (is_int) {
            i->in[0].is_int = true;
            i->in[0].ival = (int64_t)v;
        }
        *at = b;
    }
    return (uint32_t)*at;
}

uint32_t
cps_tr_identity(cps_tracer *t, cps_dtype dt)
{
    const char *key = cps_arena_printf(t->keep, "%s identity", cps_dtype_name(dt));
    uint64_t *at = cps_map_at_str(&t->hoisted, key, NULL);
    if (*at == 0) {
        int64_t n = t->t->sbuf_partitions;
        uint32_t b = pre_buffer(t, "identity", dt, n);
        cps_tinst *i = pre_inst(t, CPS_T_MEMSET, b, dt, n);
        i->nin = 1;
        i->in[0] = cps_to_imm(0);
        i = pre_inst(t, CPS_T_AFFINE_SELECT, b, dt, n); // partition - column != 0 ? itself : 1
        i->nin = 2;
        i->in[0] = i->out[0];
        i->in[1] = cps_to_imm(1);
        cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_IS_NE);
        cps_tinst_set(i, CPS_TA_BASE, 0);
        cps_tinst_set(i, CPS_TA_CHANNEL, 1);
        cps_vec_push(t->f->arena, &t->f->lists, ((cps_tlist){.n = 1, .v = {-1}}));
        cps_tinst_set(i, CPS_TA_PATTERN, (int32_t)t->f->lists.n - 1);
        *at = b;
    }
    return (uint32_t)*at;
}

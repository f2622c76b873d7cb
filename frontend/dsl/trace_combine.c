/* The cover: from the root down, the best row at each node, temporaries for what it leaves
 * open. See trace_combine.h for the rule; the rows stand in trace_rows.c and trace_select.c. */
#include "frontend/dsl/trace_cover.h"

#include <float.h>
#include <math.h>
#include <string.h>

const cps_view *
cps_x_view(const cps_xcover *c, cps_xid i)
{
    const cps_xnode *n = cps_x_at(c->g, i);
    return n->kind == CPS_X_TILE ? n->view : NULL;
}

bool
cps_x_inner(const cps_xcover *c, cps_xid i)
{
    const cps_xnode *n = cps_x_at(c->g, i);
    return n->kind != CPS_X_TILE && n->kind != CPS_X_NUM && n->kind != CPS_X_INDEX &&
           c->uses[i] == 1 && c->done[i].kind == CPS_XV_NONE;
}

void
cps_x_offer(cps_xcover *c, cps_xcand k, int n, const cps_engine *engines, int64_t elems)
{
    int at = -1;
    for (int i = 0; i < n && at < 0; i++)
        if (c->pin == CPS_ENGINE_ANY || c->pin == engines[i])
            at = i;
    if (at < 0) {
        c->wrong_engine = true;
        return;
    }
    k.engine = engines[at];
    cps_xcost cost = {
        .op = k.op, .engine = k.engine, .n = elems, .out = c->out, .acc = k.red || k.scratch};
    if (k.scratch)
        cost.out = NULL;
    for (int i = 0; i < 3; i++)
        if ((k.in[i].need == CPS_XN_TILE || k.in[i].need == CPS_XN_SBUF ||
             k.in[i].need == CPS_XN_INT || k.in[i].need == CPS_XN_MASK ||
             k.in[i].need == CPS_XN_LIKE) &&
            cost.nin < 2)
            cost.in[cost.nin++] = k.in[i].node ? cps_x_view(c, k.in[i].node) : NULL;
    if (k.set >> CPS_TA_OP0 & 1)
        cost.op0 = (cps_alu)k.attr[CPS_TA_OP0];
    if (k.set >> CPS_TA_OP1 & 1)
        cost.op1 = (cps_alu)k.attr[CPS_TA_OP1];
    cost.zero = k.op == CPS_T_MEMSET && cps_x_at(c->g, k.in[0].node)->num == 0;
    k.cycles = cps_x_cycles(c->t, &cost);
    if (k.fill.need) // the copy or memset before it
        k.cycles += CPS_MAX(64, elems);
    for (int i = 0; i < 3; i++) { // a column that must be converted first
        const cps_view *v = k.in[i].node ? cps_x_view(c, k.in[i].node) : NULL;
        bool column = k.in[i].need == CPS_XN_SCALAR || k.in[i].need == CPS_XN_COLUMN;
        if (v && column && v->dtype != CPS_DT_FP32)
            k.cycles += 64;
    }
    cps_xcand *b = &c->best;
    if (!b->row || k.covered > b->covered ||
        (k.covered == b->covered &&
         (k.cycles < b->cycles || (k.cycles == b->cycles && k.row < b->row))))
        *b = k;
}

/* ---- temporaries ---- */
static bool emit(cps_xcover *c, cps_xid id, cps_xval out, const cps_view *ov, cps_engine pin,
                 bool root);

// Bit patterns keep their integer dtype, masks are bytes; all else is fp32.
static cps_dtype
temp_dtype(const cps_xcover *c, cps_xid i)
{
    const cps_xnode *n = cps_x_at(c->g, i);

    if (c->ints)
        return CPS_DT_I32;
    if (n->kind == CPS_X_ALU)
        switch (n->sub) {
        case CPS_ALU_BITWISE_AND:
        case CPS_ALU_BITWISE_OR:
        case CPS_ALU_BITWISE_XOR:
        case CPS_ALU_LOGICAL_SHIFT_LEFT:
        case CPS_ALU_LOGICAL_SHIFT_RIGHT:
        case CPS_ALU_ARITH_SHIFT_RIGHT: {
            cps_xid x = cps_x_at(c->g, n->a)->kind == CPS_X_NUM ? n->b : n->a;
            const cps_view *v = cps_x_view(c, x);
            return v ? v->dtype : temp_dtype(c, x);
        }
        default:
            break;
        }
    return CPS_DT_FP32;
}

static cps_xval
new_temp(cps_xcover *c, cps_dtype t, int64_t rows, int nfree, const int64_t *free_)
{
    cps_xtemp *x = cps_vec_add(c->g->arena, &c->plan->temps);
    x->dtype = t;
    x->rows = rows ? rows : cps_x_at(c->g, c->dst->node)->rows;
    x->nfree = nfree;
    memcpy(x->free, free_, sizeof(x->free));
    return (cps_xval){.kind = CPS_XV_TEMP, .id = c->plan->temps.n - 1};
}

static bool
temp_as(cps_xcover *c, cps_xid i, cps_dtype t, cps_xval *out)
{
    const cps_xnode n = *cps_x_at(c->g, i);
    cps_xval v = new_temp(c, t, n.rows, n.nfree, n.free);
    if (!emit(c, i, v, NULL, CPS_ENGINE_ANY, false))
        return false;
    *out = v;
    return true;
}

static bool
temp_of(cps_xcover *c, cps_xid i, cps_xval *out)
{
    if (c->done[i].kind == CPS_XV_NONE && !temp_as(c, i, temp_dtype(c, i), &c->done[i]))
        return false;
    *out = c->done[i];
    return true;
}

/* ---- operands ---- */
static bool
imm(cps_xcover *c, const cps_xnode *n, cps_xval *out)
{
    if (fabs(n->num) > 16777216.0 && n->is_int)
        c->plan->warn_int = true;
    *out = (cps_xval){.kind = CPS_XV_NUM, .num = n->num, .is_int = n->is_int};
    return true;
}

static bool
bad_mask(cps_xcover *c, const cps_view *v)
{
    *c->e = (cps_view_err){
        .code = CPS_E3203,
        .text = cps_arena_printf(c->g->arena,
                                 "a mask tile holds 8- or 16-bit integers, `%s` holds %s",
                                 v->name ? v->name : "this one", cps_dtype_name(v->dtype)),
        .help = "compare to make one: select(m != 0.0, ...)"};
    return false;
}

static bool
resolve(cps_xcover *c, const cps_xslot *s, cps_xval *out)
{
    cps_xval node = {.kind = CPS_XV_NODE, .id = s->node};

    if (!s->node) {
        *out = (cps_xval){.kind = s->need ? CPS_XV_NUM : CPS_XV_NONE, .num = s->num};
        return true;
    }
    const cps_xnode n = *cps_x_at(c->g, s->node);
    const cps_view *v = cps_x_view(c, s->node);
    switch (s->need) {
    case CPS_XN_TILE:
        if (!v)
            return temp_of(c, s->node, out);
        *out = node;
        return true;
    case CPS_XN_SBUF:
        if (!v || v->space == CPS_PSUM)
            return v ? temp_as(c, s->node, v->dtype, out) : temp_of(c, s->node, out);
        *out = node;
        return true;
    case CPS_XN_INT:
        if (n.kind == CPS_X_NUM) {
            *out = (cps_xval){
                .kind = CPS_XV_HOIST, .num = n.num, .is_int = true, .dtype = CPS_DT_I32};
            return true;
        }
        if (!v || v->space == CPS_PSUM)
            return v ? temp_as(c, s->node, v->dtype, out) : temp_of(c, s->node, out);
        *out = node;
        return true;
    case CPS_XN_SCALAR:
    case CPS_XN_COLUMN:
        if (n.kind == CPS_X_NUM && s->need == CPS_XN_SCALAR)
            return imm(c, &n, out);
        if (n.kind == CPS_X_NUM) {
            *out = (cps_xval){.kind = CPS_XV_HOIST, .num = n.num, .dtype = CPS_DT_FP32};
            return true;
        }
        if (!v || v->dtype != CPS_DT_FP32) // the instruction reads these as fp32 (NKI docs)
            return v ? temp_as(c, s->node, CPS_DT_FP32, out) : temp_of(c, s->node, out);
        *out = node;
        return true;
    case CPS_XN_BIAS:
        if (n.kind == CPS_X_NUM && c->t->act_imm_bias)
            return imm(c, &n, out);
        if (n.kind == CPS_X_NUM) {
            *out = (cps_xval){.kind = CPS_XV_HOIST, .num = n.num, .dtype = CPS_DT_FP32};
            return true;
        }
        if (!v ||
            (v->dtype != CPS_DT_FP32 && v->dtype != CPS_DT_FP16 && v->dtype != CPS_DT_BF16))
            return v ? temp_as(c, s->node, CPS_DT_FP32, out) : temp_of(c, s->node, out);
        *out = node;
        return true;
    case CPS_XN_IMM:
        return imm(c, &n, out);
    case CPS_XN_MASK:
        if (!v) {
            if (c->done[s->node].kind == CPS_XV_NONE &&
                !temp_as(c, s->node, CPS_DT_U8, &c->done[s->node]))
                return false;
            *out = c->done[s->node];
            return true;
        }
        if (!cps_dtype_is_int(v->dtype) || cps_dtype_bytes(v->dtype) > 2)
            return bad_mask(c, v);
        *out = node;
        return true;
    case CPS_XN_LIKE: {
        cps_dtype want = c->out ? c->out->dtype : CPS_DT_FP32;
        if (!v || v->dtype != want)
            return temp_as(c, s->node, want, out);
        *out = node;
        return true;
    }
    case CPS_XN_NONE:
        break;
    }
    *out = (cps_xval){0};
    return true;
}

/* ---- instructions ---- */
static cps_xinst *
push(cps_xcover *c, cps_top op, cps_engine e, uint8_t row)
{
    cps_xinst *i = cps_vec_add(c->g->arena, &c->plan->insts);
    i->op = op;
    i->engine = e;
    i->row = row;
    return i;
}

static const char *
operator_name(cps_xcover *c, const cps_xnode *n)
{
    const char *s;
    switch (n->kind) {
    case CPS_X_ALU:
        s = cps_alu_name(n->sub);
        break;
    case CPS_X_FUNC:
        s = cps_actfn_name(n->sub);
        break;
    case CPS_X_REDUCE:
        s = cps_arena_printf(c->g->arena, "%s over axes", cps_alu_name(n->sub));
        break;
    case CPS_X_SELECT:
        s = "select";
        break;
    case CPS_X_SCAN:
        s = "scan";
        break;
    case CPS_X_RECIP:
        s = "1 / x";
        break;
    case CPS_X_PREV:
        s = "prev";
        break;
    default:
        s = "the value";
        break;
    }
    return s ? s : "operator";
}

static bool
uncovered(cps_xcover *c, cps_xid id)
{
    const cps_xnode *n = cps_x_at(c->g, id);
    cps_arena *a = c->g->arena;

    c->plan->at = n->at;
    if (c->psum_clash == id) {
        const char *name = n->kind == CPS_X_SCAN ? "tensor_tensor_scan" : "tensor_tensor";
        const cps_view *v = cps_x_view(c, n->a);
        *c->e = (cps_view_err){
            .code = CPS_E5104,
            .text = cps_arena_printf(a, "both operands of %s are in PSUM", name),
            .note = cps_arena_printf(a,
                                     "the vector engine reads at most one PSUM operand "
                                     "(instruction table, %s: confirmed)",
                                     name),
            .help = v ? cps_arena_printf(
                            a, "copy one to sbuf first; copying %s costs %lld cycles",
                            cps_view_shape(a, v), (long long)CPS_MAX(64, cps_view_free(v)))
                      : NULL};
        return false;
    }
    if (c->wrong_engine) {
        *c->e = (cps_view_err){.code = CPS_E5102,
                               .text = cps_arena_printf(a, "no instruction for `%s` runs on %s",
                                                        operator_name(c, n),
                                                        cps_engine_name(c->pin))};
        return false;
    }
    *c->e = (cps_view_err){
        .code = CPS_E3203,
        .text = cps_arena_printf(a, "no instruction computes `%s` of these operands",
                                 operator_name(c, n)),
        .help = "the combining table has no row for it; write the intrinsic"};
    return false;
}

// A column or row of positions needs whole rows under it.
static bool
reads_dst(const cps_xcover *c, cps_xid i)
{
    const cps_xnode *n = cps_x_at(c->g, i);
    const cps_view *d = cps_x_view(c, c->dst->node);
    if (n->kind == CPS_X_TILE)
        return n->view->store == d->store;
    return (n->a && reads_dst(c, n->a)) || (n->b && reads_dst(c, n->b)) ||
           (n->c && reads_dst(c, n->c));
}

static bool
emit(cps_xcover *c, cps_xid id, cps_xval out, const cps_view *ov, cps_engine pin, bool root)
{
    const cps_xnode n = *cps_x_at(c->g, id);

    c->at = id;
    c->root = root;
    c->pin = pin;
    c->out = ov;
    c->best = (cps_xcand){0};
    c->psum_clash = 0;
    c->wrong_engine = false;
    if (!c->ints)
        cps_x_row_scalar(c);
    cps_x_row_activation(c);
    cps_x_row_reduce(c);
    cps_x_row_select(c);
    cps_x_row_rest(c);
    cps_xcand k = c->best;
    if (!k.row)
        return uncovered(c, id);

    cps_xval in[3] = {{0}}, target = out;
    // GpSimd has no path to PSUM; a filled destination must not be an operand of what follows.
    bool detour = (k.engine == CPS_POOL && ov && ov->space == CPS_PSUM) ||
                  (k.fill.need && root && (reads_dst(c, n.a) || reads_dst(c, n.b)));
    if (detour)
        target = new_temp(c, ov->dtype, n.rows, n.nfree, n.free);
    for (int i = 0; i < 3; i++) {
        c->out = ov;
        if (k.in_dst && i == 0)
            in[i] = target;
        else if (!resolve(c, &k.in[i], &in[i]))
            return false;
    }
    if (k.fill.need) {
        cps_xval f;
        if (!resolve(c, &k.fill, &f))
            return false;
        bool set = f.kind == CPS_XV_NUM;
        cps_xinst *p = push(c, set ? CPS_T_MEMSET : CPS_T_COPY, CPS_DVE, set ? 20 : 19);
        p->out = target;
        p->in[0] = f;
    }
    cps_xval scratch = {0};
    if (k.scratch) {
        const cps_xnode *x = cps_x_at(c->g, n.a);
        scratch = new_temp(c, CPS_DT_FP32, x->rows, x->nfree, x->free);
    }
    cps_xinst *i = push(c, k.op, k.engine, k.row);
    i->pinned = pin != CPS_ENGINE_ANY;
    i->out = k.scratch ? scratch : target;
    if (k.scratch)
        i->acc = target;
    else if (k.red)
        i->acc = (cps_xval){.kind = CPS_XV_RED};
    memcpy(i->in, in, sizeof(in));
    i->set = k.set;
    memcpy(i->attr, k.attr, sizeof(i->attr));
    i->col = k.col;
    i->axes = k.axes;
    i->cycles = k.cycles;
    if (detour) {
        cps_xinst *p = push(c, CPS_T_COPY, CPS_DVE, 19);
        p->out = out;
        p->in[0] = target;
    }
    return true;
}

static void
count_uses(cps_xcover *c, cps_xid i)
{
    const cps_xnode n = *cps_x_at(c->g, i);
    if (c->uses[i]++ > 0)
        return;
    if (n.a)
        count_uses(c, n.a);
    if (n.b)
        count_uses(c, n.b);
    if (n.c)
        count_uses(c, n.c);
}

// Row 22 holds for the whole statement: every tile and the destination 32-bit integers, + - *
// only.
static bool
all_ints(const cps_xgraph *g, cps_xid i, bool *any)
{
    const cps_xnode *n = cps_x_at(g, i);
    switch (n->kind) {
    case CPS_X_TILE:
        *any = true;
        return n->view->dtype == CPS_DT_I32 || n->view->dtype == CPS_DT_U32;
    case CPS_X_NUM:
        return n->num == floor(n->num) && fabs(n->num) <= 2147483648.0;
    case CPS_X_INDEX:
        return true;
    case CPS_X_ALU:
        return (n->sub == CPS_ALU_ADD || n->sub == CPS_ALU_SUBTRACT ||
                n->sub == CPS_ALU_MULT) &&
               all_ints(g, n->a, any) && all_ints(g, n->b, any);
    default:
        return false;
    }
}

static bool
has_int32(const cps_xgraph *g, cps_xid i)
{
    const cps_xnode *n = cps_x_at(g, i);
    if (n->kind == CPS_X_TILE)
        return n->view->dtype == CPS_DT_I32 || n->view->dtype == CPS_DT_U32;
    return (n->a && has_int32(g, n->a)) || (n->b && has_int32(g, n->b)) ||
           (n->c && has_int32(g, n->c));
}

static bool
same_shape(const cps_xnode *a, const cps_xnode *b)
{
    return cps_x_elems(a) == cps_x_elems(b);
}

// `reduce` by an instruction of its own: the elements once in fp32, then row 10.
static bool
reduce_apart(cps_xcover *c, cps_xid root, cps_xval dst, const cps_view *dv)
{
    const cps_xnode n = *cps_x_at(c->g, c->dst->node);
    cps_xval src = dst;

    if (dv->dtype != CPS_DT_FP32) {
        src = new_temp(c, CPS_DT_FP32, n.rows, n.nfree, n.free);
        if (!emit(c, root, src, NULL, c->dst->pin, false))
            return false;
        cps_xinst *p = push(c, CPS_T_COPY, CPS_DVE, 19);
        p->out = dst;
        p->in[0] = src;
    } else if (!emit(c, root, dst, dv, c->dst->pin, false)) {
        return false;
    }
    cps_xinst *r = push(c, CPS_T_TENSOR_REDUCE, CPS_DVE, 10);
    r->out = (cps_xval){.kind = CPS_XV_RED};
    r->in[0] = src;
    r->axes = n.nfree;
    r->set = 1u << CPS_TA_OP0;
    r->attr[CPS_TA_OP0] = (int32_t)c->dst->red_op;
    return true;
}

bool
cps_x_cover(cps_xgraph *g, cps_xid root, const cps_xdst *dst, const cps_target *t,
            cps_xplan *plan, cps_view_err *e)
{
    // Covering adds no nodes, so the tables fit.
    cps_xcover c = {.g = g,
                    .t = t,
                    .dst = dst,
                    .plan = plan,
                    .e = e,
                    .uses = cps_new_array(g->arena, uint32_t, g->n.n),
                    .done = cps_new_array(g->arena, cps_xval, g->n.n)};
    const cps_xnode *d = cps_x_at(g, dst->node), *r = cps_x_at(g, root);
    cps_xval out = {.kind = CPS_XV_DST};
    int64_t rows, free_[CPS_VIEW_AXES];
    int nfree;
    bool any = false;

    *plan = (cps_xplan){.at = r->at};
    if (!cps_x_meet(g, root, dst->node, &rows, &nfree, free_, e))
        return false;
    if ((r->rows && r->rows != d->rows) || cps_x_elems(r) > cps_x_elems(d)) {
        const char *have = "[", *want = cps_view_shape(g->arena, d->view);
        have = cps_arena_printf(g->arena, r->rows ? "[%lld" : "[all", (long long)r->rows);
        for (int i = 0; i < r->nfree; i++)
            have = cps_arena_printf(g->arena, "%s, %lld", have, (long long)r->free[i]);
        *e = (cps_view_err){.code = CPS_E3202,
                            .text =
                                cps_arena_printf(g->arena, "a %s] value does not fit `%s` %s",
                                                 have, d->view->name, want)};
        return false;
    }
    count_uses(&c, root);
    c.ints = (d->view->dtype == CPS_DT_I32 || d->view->dtype == CPS_DT_U32) &&
             r->kind == CPS_X_ALU && !dst->red && all_ints(g, root, &any) && any;
    if (r->kind != CPS_X_NUM && r->kind != CPS_X_INDEX && !same_shape(r, d)) {
        // Narrower than the destination: computed narrow, then spread by a copy (step 0).
        cps_xval v = {.kind = CPS_XV_NODE, .id = root};
        if (r->kind != CPS_X_TILE && !temp_of(&c, root, &v))
            return false;
        cps_engine en = dst->pin == CPS_ENGINE_ANY ? CPS_DVE : dst->pin;
        cps_xinst *p = push(&c, CPS_T_COPY, en, 19);
        p->pinned = dst->pin != CPS_ENGINE_ANY;
        p->out = out;
        p->in[0] = v;
        if (dst->red)
            return reduce_apart(&c, root, out, d->view);
        return true;
    }
    if (dst->red && !dst->onto) {
        uint32_t n0 = plan->insts.n, t0 = plan->temps.n;
        if (!emit(&c, root, out, d->view, dst->pin, true))
            return false;
        for (uint32_t i = n0; i < plan->insts.n; i++)
            if (plan->insts.data[i].acc.kind == CPS_XV_RED)
                return true;
        plan->insts.n = n0;
        plan->temps.n = t0;
        memset(c.done, 0, g->n.n * sizeof(c.done[0]));
        return reduce_apart(&c, root, out, d->view);
    }
    if (!emit(&c, root, out, d->view, dst->pin, true))
        return false;
    plan->warn_int = plan->warn_int && !c.ints && has_int32(g, root);
    return true;
}

/* ---- text ---- */
static const char *
val_text(cps_arena *a, const cps_xgraph *g, const cps_xval *v)
{
    switch (v->kind) {
    case CPS_XV_NODE:
        return cps_x_at(g, v->id)->view->name;
    case CPS_XV_TEMP:
        return cps_arena_printf(a, "t%u", v->id);
    case CPS_XV_NUM:
        return cps_arena_printf(a, "%.9g", v->num);
    case CPS_XV_HOIST:
        return cps_arena_printf(a, "{%.9g}", v->num);
    case CPS_XV_DST:
        return "dst";
    case CPS_XV_RED:
        return "red";
    default:
        return "-";
    }
}

const char *
cps_x_plan_text(cps_arena *a, const cps_xgraph *g, const cps_xplan *p)
{
    static const char *const keys[] = {
#define CPS_TATTR(id, name, kind, doc) name,
#include "ir/tattr.def"
    };
    static const char kinds[] = {
#define CPS_TATTR(id, name, kind, doc) #kind[0] == 'A' ? 'A' : #kind[1] == 'U' ? 'U' : 'I',
#include "ir/tattr.def"
    };
    const char *s = "";
    for (uint32_t k = 0; k < p->insts.n; k++) {
        const cps_xinst *i = &p->insts.data[k];
        s = cps_arena_printf(a, "%s%s%s = %s", s, k ? "; " : "", val_text(a, g, &i->out),
                             cps_tops[i->op].name);
        for (int j = 0; j < 3; j++)
            if (i->in[j].kind)
                s = cps_arena_printf(a, "%s %s", s, val_text(a, g, &i->in[j]));
        for (int j = 0; j < CPS_TATTRS; j++)
            if (i->set >> j & 1) {
                const char *n = kinds[j] == 'A'   ? cps_alu_name((unsigned)i->attr[j])
                                : kinds[j] == 'U' ? cps_actfn_name((unsigned)i->attr[j])
                                                  : NULL;
                s = n ? cps_arena_printf(a, "%s %s:%s", s, keys[j], n)
                      : cps_arena_printf(a, "%s %s:%d", s, keys[j], i->attr[j]);
            }
        if (i->col)
            s = cps_arena_printf(a, "%s col:%lld", s, (long long)i->col);
        if (i->axes)
            s = cps_arena_printf(a, "%s over:%d", s, i->axes);
        if (i->acc.kind)
            s = cps_arena_printf(a, "%s -> %s", s, val_text(a, g, &i->acc));
        s = cps_arena_printf(a, "%s @%s", s, cps_engine_name((cps_engine)i->engine));
    }
    return s;
}

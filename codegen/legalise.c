/* Legalisation: afterwards every operand fits the slots of its instruction.
 *
 * In: a verified tile program with engines. Out: the same values by instructions whose data
 * operands have at most the dims of their slots (3 or 4, some 2), steps in int16 and counts in
 * uint16; whose scalars are numbers or [p,1] columns in SBUF of the right type and first
 * partition; whose operators stand in a form the operator table allows. What is too deep
 * becomes several instructions over the outer axes, in row-major order, so that running sums
 * keep their order. Constants and the identity tile of PE transposes are made once at the
 * front.
 *
 * It does not choose addresses, and leaves DMA to dma.c. */
#include "codegen/legal.h"

#define COUNT_MAX 65535
#define STEP_MAX 32767
#define STEP_MIN (-32768)
#define PIECES_MAX 4096

const cps_lower_row cps_lower[CPS_TOPS] = {
#define CPS_LOWER(op, shape, dims, outs, ins, fn)                                              \
    [CPS_T_##op] = {CPS_SHAPE_##shape, dims, outs, ins},
#include "codegen/lower.def"
};

cps_tfunc *
cps_tile_copy(cps_arena *a, const cps_tfunc *f)
{
    cps_tfunc *n = cps_new(a, cps_tfunc);
    *n = *f;
    n->arena = a;
    // Room for as many again: what is not touched costs nothing, a vector that moves does.
#define COPY(v)                                                                                \
    do {                                                                                       \
        memset(&n->v, 0, sizeof n->v);                                                         \
        cps_vec_reserve(a, &n->v, 2 * f->v.n + 16);                                            \
        if (f->v.n)                                                                            \
            memcpy(n->v.data, f->v.data, f->v.n * sizeof f->v.data[0]);                        \
        n->v.n = f->v.n;                                                                       \
    } while (0)
    COPY(bufs);
    COPY(views);
    COPY(insts);
    COPY(lists);
#undef COPY
    return n;
}

uint32_t
cps_legal_buf(cps_legal *l, cps_tbuf b)
{
    cps_vec_push(l->f->arena, &l->f->bufs, b);
    cps_vec_push(l->g->arena, &l->version, 0);
    return l->f->bufs.n - 1;
}

static uint32_t
new_view(cps_legal *l, const cps_tview *v)
{
    cps_vec_push(l->f->arena, &l->f->views, *v);
    return l->f->views.n - 1;
}

cps_tview
cps_legal_temp(cps_legal *l, const char *name, cps_dtype t, unsigned start, unsigned parts,
               int64_t elems, cps_span loc)
{
    cps_tbuf b = {.name = name,
                  .space = CPS_SBUF,
                  .dtype = t,
                  .rank = 2,
                  .slots = 1,
                  .pin_byte = -1,
                  .pin_bank = -1,
                  .pin_part = -1,
                  .loc = loc};
    b.dim[0] = start + parts;
    b.dim[1] = elems;
    cps_tview v = {.dtype = t, .part = (uint16_t)start, .parts = (uint16_t)parts, .nd = 1};
    v.buf = cps_legal_buf(l, b);
    v.d[0] = (cps_tdim){1, elems};
    return v;
}

unsigned
cps_legal_start(const cps_tfunc *f, const cps_tview *v)
{
    return f->bufs.data[v->buf].part + v->part;
}

void
cps_legal_emit(cps_legal *l, const cps_tinst *x)
{
    cps_vec_push(l->g->arena, &l->out, *x);
    for (int i = 0; i < x->nout; i++)
        if (x->out[i].kind == CPS_TO_VIEW)
            l->version.data[l->f->views.data[x->out[i].id].buf]++;
}

static bool
too_deep(cps_legal *l, const cps_tinst *x, int dims)
{
    cps_error(l->g->d, CPS_E5301, x->loc, "'%s' takes patterns of %d axes, these need more",
              cps_tops[x->op].name, dims);
    cps_help(l->g->d, "copy the operand into a tile with evenly spaced axes first");
    return false;
}

// The walk can stand in a slot of `dims` axes.
static bool
fits(const cps_pat *p, int dims)
{
    if (p->nd > dims)
        return false;
    for (int i = 0; i < p->nd; i++)
        if (p->d[i].step > STEP_MAX || p->d[i].step < STEP_MIN || p->d[i].num > COUNT_MAX)
            return false;
    return true;
}

static cps_pat
tail(const cps_pat *p, int k)
{
    cps_pat r = {.nd = p->nd - k};
    for (int i = k; i < p->nd; i++)
        r.d[i - k] = p->d[i];
    cps_pat_merge(&r, COUNT_MAX);
    return r;
}

// What is left of a walk inside its outer `k` axes. The pattern of iota keeps the shape of its
// result axis by axis; elsewhere only the number of elements counts.
static cps_pat
rest(const cps_tinst *x, const cps_pat *p, int k)
{
    if (x->op != CPS_T_IOTA)
        return tail(p, k);
    cps_pat r = {.nd = p->nd - k};
    for (int i = k; i < p->nd; i++)
        r.d[i - k] = p->d[i];
    return r;
}

static bool
same_axes(const cps_tview *v, const cps_pat *p)
{
    if (v->nd != p->nd)
        return false;
    for (int i = 0; i < p->nd; i++)
        if (v->d[i].step != p->d[i].step || v->d[i].num != p->d[i].num)
            return false;
    return true;
}

// Points operand `o` at the part of its view that starts `off` further and walks `p`.
static void
narrow(cps_legal *l, cps_toper *o, int64_t off, const cps_pat *p)
{
    cps_tview v = l->f->views.data[o->id];
    if (off == 0 && same_axes(&v, p))
        return;
    v.off += off;
    if (!cps_pat_into(p, &v))
        cps_bug("a legal pattern of %d axes does not fit a view", p->nd);
    o->id = new_view(l, &v);
}

static void
narrow_pattern(cps_legal *l, cps_tinst *x, int64_t off, const cps_pat *p)
{
    // Steps, and behind them the counts, which need not be those of the data's axes.
    cps_tlist list = {.n = p->nd};
    for (int i = 0; i < p->nd; i++) {
        list.v[i] = (int32_t)p->d[i].step;
        list.v[p->nd + i] = (int32_t)p->d[i].num;
    }
    cps_vec_push(l->f->arena, &l->f->lists, list);
    cps_tinst_set(x, CPS_TA_PATTERN, (int32_t)l->f->lists.n - 1);
    cps_tinst_set(x, CPS_TA_BASE, cps_tinst_get(x, CPS_TA_BASE, 0) + (int32_t)off);
}

// What walks in step in one instruction: operands with role d, and the index pattern.
typedef struct walks {
    int n;
    cps_pat p[6];
    int dims[6];
    cps_toper *o[6]; // NULL: the index pattern
} walks;

static bool
collect(cps_legal *l, cps_tinst *x, const cps_lower_row *row, walks *w)
{
    w->n = 0;
    for (int i = 0; i < x->nout + x->nin; i++) {
        bool out = i < x->nout;
        const char *roles = out ? row->outs : row->ins;
        int k = out ? i : i - x->nout;
        cps_toper *o = out ? &x->out[k] : &x->in[k];
        if (o->kind != CPS_TO_VIEW || (size_t)k >= strlen(roles) || roles[k] != 'd')
            continue;
        cps_pat_of(&l->f->views.data[o->id], &w->p[w->n]);
        w->o[w->n] = o;
        w->dims[w->n++] = row->dims;
    }
    if ((x->op == CPS_T_IOTA || x->op == CPS_T_AFFINE_SELECT) &&
        !(x->set >> CPS_TA_PATTERN & 1)) {
        cps_tlist zero = {.n = l->f->views.data[x->out[0].id].nd};
        cps_vec_push(l->f->arena, &l->f->lists, zero);
        cps_tinst_set(x, CPS_TA_PATTERN, (int32_t)l->f->lists.n - 1);
    }
    if (x->set >> CPS_TA_PATTERN & 1) {
        const cps_tlist *list = &l->f->lists.data[x->attr[CPS_TA_PATTERN]];
        const cps_tview *v = &l->f->views.data[x->out[0].id];
        if (list->n != v->nd) {
            cps_error(l->g->d, CPS_E5301, x->loc,
                      "'%s' has %d index steps for %d axes of its result", cps_tops[x->op].name,
                      list->n, v->nd);
            return false;
        }
        cps_pat *p = &w->p[w->n];
        p->nd = 0;
        for (int i = 0; i < v->nd; i++)
            if (v->d[i].num != 1)
                p->d[p->nd++] = (cps_tdim){list->v[i], v->d[i].num};
        w->o[w->n] = NULL;
        w->dims[w->n++] = 4;
    }
    return true;
}

static bool
uneven(cps_legal *l, const cps_tinst *x)
{
    cps_error(l->g->d, CPS_E5301, x->loc, "the operands of '%s' do not pair element by element",
              cps_tops[x->op].name);
    return false;
}

// Runs through the outer `k` axes of the walks; `fn` gets one offset per walk.
static bool
pieces(cps_legal *l, const cps_tinst *x, walks *w, int k,
       bool (*fn)(cps_legal *, const cps_tinst *, walks *, const int64_t *off, bool first,
                  void *),
       void *ctx)
{
    int64_t total = 1, idx[CPS_PAT_DIMS] = {0};
    for (int i = 0; i < k; i++)
        total *= w->p[0].d[i].num;
    if (total > PIECES_MAX) {
        cps_error(l->g->d, CPS_E5301, x->loc,
                  "'%s' would need %lld instructions for its outer axes, at most %d are made",
                  cps_tops[x->op].name, (long long)total, PIECES_MAX);
        return false;
    }
    for (int64_t c = 0; c < total; c++) {
        int64_t off[6] = {0};
        for (int i = 0; i < w->n; i++)
            for (int j = 0; j < k; j++)
                off[i] += idx[j] * w->p[i].d[j].step;
        if (!fn(l, x, w, off, c == 0, ctx))
            return false;
        for (int j = k; j-- > 0;) {
            if (++idx[j] < w->p[0].d[j].num)
                break;
            idx[j] = 0;
        }
    }
    return true;
}

// After the first piece a running reduction goes on with what the register holds.
static void
keep_running(cps_tinst *x, bool first)
{
    if (!first && x->nout > 1)
        cps_tinst_set(x, CPS_TA_ACC, CPS_REDUCE_CMD_REDUCE);
    else if (!first && cps_tinst_get(x, CPS_TA_ACC, 0) == CPS_REDUCE_CMD_RESET_REDUCE)
        cps_tinst_set(x, CPS_TA_ACC, CPS_REDUCE_CMD_REDUCE);
}

static bool
each_piece(cps_legal *l, const cps_tinst *x, walks *w, const int64_t *off, bool first,
           void *ctx)
{
    int k = *(int *)ctx;
    cps_tinst y = *x;
    for (int i = 0; i < w->n; i++) {
        cps_pat r = rest(x, &w->p[i], k);
        if (!w->o[i]) {
            narrow_pattern(l, &y, off[i], &r);
            continue;
        }
        bool out = w->o[i] >= x->out && w->o[i] < x->out + 2;
        narrow(l, out ? &y.out[w->o[i] - x->out] : &y.in[w->o[i] - x->in], off[i], &r);
    }
    keep_running(&y, first);
    cps_legal_emit(l, &y);
    return true;
}

static bool
each(cps_legal *l, cps_tinst *x, const cps_lower_row *row)
{
    walks w;
    if (!collect(l, x, row, &w))
        return false;
    if (!cps_pat_refine(w.p, w.n, COUNT_MAX) || !cps_pat_cut(w.p, w.n, COUNT_MAX))
        return uneven(l, x);
    int k = 0;
    for (bool good = false; !good; k += !good) {
        good = true;
        for (int i = 0; i < w.n && good; i++) {
            cps_pat r = rest(x, &w.p[i], k);
            good = fits(&r, w.dims[i]);
        }
    }
    return pieces(l, x, &w, k, each_piece, &k);
}

typedef struct reducing {
    int k;
    cps_pat folded;
} reducing;

static bool
reduce_piece(cps_legal *l, const cps_tinst *x, walks *w, const int64_t *off, bool first,
             void *ctx)
{
    (void)first;
    const reducing *r = ctx;
    cps_tinst y = *x;
    cps_pat in = tail(&w->p[0], r->k), out = tail(&w->p[1], r->k);
    for (int i = 0; i < r->folded.nd; i++)
        in.d[in.nd++] = r->folded.d[i];
    narrow(l, &y.in[0], off[0], &in);
    narrow(l, &y.out[0], off[1], &out);
    cps_tinst_set(&y, CPS_TA_AXES, r->folded.nd);
    cps_legal_emit(l, &y);
    return true;
}

static bool
reduce(cps_legal *l, cps_tinst *x, const cps_lower_row *row)
{
    const cps_tview *src = &l->f->views.data[x->in[0].id];
    int axes = cps_tinst_get(x, CPS_TA_AXES, src->nd);
    if (axes < 1 || axes > src->nd) {
        cps_error(l->g->d, CPS_E5301, x->loc, "'%s' folds %d of %d axes", cps_tops[x->op].name,
                  axes, src->nd);
        return false;
    }
    reducing r = {0};
    walks w = {.n = 2};
    for (int i = 0; i < src->nd; i++) {
        if (src->d[i].num == 1)
            continue;
        cps_pat *to = i < src->nd - axes ? &w.p[0] : &r.folded;
        to->d[to->nd++] = src->d[i];
    }
    cps_pat_merge(&r.folded, COUNT_MAX);
    if (r.folded.nd == 0)
        r.folded.d[r.folded.nd++] = (cps_tdim){1, 1};
    cps_pat_of(&l->f->views.data[x->out[0].id], &w.p[1]);
    if (!cps_pat_refine(w.p, 2, COUNT_MAX) || !cps_pat_cut(w.p, 2, COUNT_MAX))
        return uneven(l, x);
    if (!fits(&r.folded, row->dims))
        return too_deep(l, x, row->dims);
    for (bool good = false; !good; r.k += !good) {
        cps_pat in = tail(&w.p[0], r.k), out = tail(&w.p[1], r.k);
        good = fits(&in, row->dims - r.folded.nd) && fits(&out, row->dims);
    }
    return pieces(l, x, &w, r.k, reduce_piece, &r);
}

static bool
whole(cps_legal *l, cps_tinst *x, const cps_lower_row *row)
{
    for (int i = 0; i < x->nout + x->nin; i++) {
        bool out = i < x->nout;
        const char *roles = out ? row->outs : row->ins;
        int k = out ? i : i - x->nout;
        cps_toper *o = out ? &x->out[k] : &x->in[k];
        if (o->kind != CPS_TO_VIEW || (size_t)k >= strlen(roles) || !strchr("wv1", roles[k]))
            continue;
        cps_pat p;
        cps_pat_of(&l->f->views.data[o->id], &p);
        cps_pat_merge(&p, COUNT_MAX);
        if (!cps_pat_cut(&p, 1, COUNT_MAX))
            return too_deep(l, x, row->dims);
        int dims = roles[k] == 'w' ? row->dims : CPS_MIN(2, row->dims);
        if (!fits(&p, dims))
            return too_deep(l, x, dims);
        narrow(l, o, 0, &p);
    }
    cps_legal_emit(l, x);
    return true;
}

// Engines see blocks of partitions that start at 0, 32, 64 or 96 (NKI architecture guides).
static bool
start_legal(unsigned start, unsigned parts)
{
    return start % 32 == 0 && start + parts <= (start == 0    ? 128u
                                                : start == 64 ? 128u
                                                              : start + 32u);
}

static bool
partitions(cps_legal *l, const cps_tinst *x)
{
    for (int i = 0; i < x->nout + x->nin; i++) {
        const cps_toper *o = i < x->nout ? &x->out[i] : &x->in[i - x->nout];
        if (o->kind != CPS_TO_VIEW)
            continue;
        const cps_tview *v = &l->f->views.data[o->id];
        const cps_tbuf *b = &l->f->bufs.data[v->buf];
        if (b->space != CPS_SBUF && b->space != CPS_PSUM)
            continue;
        unsigned start = cps_legal_start(l->f, v);
        if (!v->parts || !start_legal(start, v->parts)) {
            cps_error(l->g->d, CPS_E5302, x->loc,
                      "'%s' uses partitions %u..%u of '%s': engines start at 0, 32, 64 or 96, "
                      "take at most 32 from 32 or 96 and 64 from 64",
                      cps_tops[x->op].name, start, start + v->parts - 1, b->name);
            cps_help(l->g->d,
                     "move the rows with a DMA copy, or start the tile at partition 0");
            return false;
        }
    }
    return true;
}

// An operator without its first part: the second moves forward (bypass may only come last).
static void
close_up(cps_tinst *x)
{
    if (x->op != CPS_T_TENSOR_SCALAR || cps_tinst_get(x, CPS_TA_OP0, CPS_ALU_BYPASS) ||
        !cps_tinst_get(x, CPS_TA_OP1, CPS_ALU_BYPASS))
        return;
    cps_tinst_set(x, CPS_TA_OP0, x->attr[CPS_TA_OP1]);
    cps_tinst_set(x, CPS_TA_OP1, CPS_ALU_BYPASS);
    cps_tinst_set(x, CPS_TA_REVERSE, cps_tinst_get(x, CPS_TA_REVERSE, 0) >> 1);
    x->in[1] = x->in[2];
    x->in[2] = cps_to_imm(0);
}

// memset takes a number; a column spreads by a copy that stands still.
static void
spread(cps_legal *l, cps_tinst *x)
{
    if (x->op != CPS_T_MEMSET || x->in[0].kind != CPS_TO_VIEW)
        return;
    cps_tview v = l->f->views.data[x->in[0].id];
    const cps_tview *out = &l->f->views.data[x->out[0].id];
    v.nd = out->nd;
    for (int i = 0; i < out->nd; i++)
        v.d[i] = (cps_tdim){0, out->d[i].num};
    x->op = CPS_T_COPY;
    x->engine = CPS_DVE;
    x->in[0].id = new_view(l, &v);
}

// ScalarE of v2 copies by its function unit, through fp32. x + -0 is x, also where x is -0.
static void
copy_by_activate(const cps_legal *l, cps_tinst *x)
{
    if (x->op != CPS_T_COPY || x->engine != CPS_ACT || l->g->t->act_copies)
        return;
    x->op = CPS_T_ACTIVATION;
    x->nin = 3;
    x->in[1] = cps_to_imm(1);
    x->in[2] = cps_to_imm(-0.0f);
    cps_tinst_set(x, CPS_TA_FUNC, CPS_ACTFN_COPY);
}

// The predicated copy has no inverted form: the predicate is inverted into a tile of its own.
static void
invert_predicate(cps_legal *l, cps_tinst *x)
{
    if (x->op != CPS_T_COPY_PRED || !cps_tinst_get(x, CPS_TA_NEGATE, 0))
        return;
    const cps_tview p = l->f->views.data[x->in[0].id];
    cps_tview t = cps_legal_temp(l, "c_pred", p.dtype, cps_legal_start(l->f, &p), p.parts,
                                 cps_tview_elems(&p), x->loc);
    int64_t step = 1;
    t.nd = p.nd;
    for (int i = p.nd; i-- > 0;) {
        t.d[i] = (cps_tdim){step, p.d[i].num};
        step *= p.d[i].num;
    }
    uint32_t view = new_view(l, &t);
    cps_tinst y = *x;
    y.op = CPS_T_TENSOR_SCALAR;
    y.engine = CPS_DVE;
    y.set = 0;
    y.nin = 3;
    y.label = 0;
    cps_tinst_set(&y, CPS_TA_OP0, CPS_ALU_IS_EQ);
    y.out[0] = cps_to_view(view);
    y.in[0] = x->in[0];
    y.in[1] = y.in[2] = cps_to_imm(0);
    each(l, &y, &cps_lower[CPS_T_TENSOR_SCALAR]);
    x->in[0] = cps_to_view(view);
    x->set &= ~(1u << CPS_TA_NEGATE);
}

static bool
one(cps_legal *l, const cps_tinst *in)
{
    cps_tinst x = *in;
    const cps_lower_row *row = &cps_lower[x.op];
    if (row->shape == CPS_SHAPE_SEQ || row->shape == CPS_SHAPE_DMA) {
        l->depth += (x.op == CPS_T_LOOP || x.op == CPS_T_WHEN) - (x.op == CPS_T_END);
        l->columns.n = row->shape == CPS_SHAPE_SEQ ? 0 : l->columns.n;
        cps_legal_emit(l, &x);
        return true;
    }
    if (!partitions(l, &x))
        return false;
    close_up(&x);
    spread(l, &x);
    copy_by_activate(l, &x);
    invert_predicate(l, &x);
    row = &cps_lower[x.op];
    if (!cps_legal_scalars(l, &x))
        return false;
    switch (row->shape) {
    case CPS_SHAPE_EACH:
        return each(l, &x, row);
    case CPS_SHAPE_REDUCE:
        return reduce(l, &x, row);
    case CPS_SHAPE_WHOLE:
        return whole(l, &x, row);
    default:
        return x.op == CPS_T_MATMUL ? cps_legal_matmul(l, &x) : cps_legal_transpose(l, &x);
    }
}

bool
cps_pass_legalise(cps_cg *g)
{
    cps_legal l = {.g = g, .f = g->f};
    cps_vec_reserve(g->arena, &l.out, g->f->insts.n + 64);
    for (uint32_t i = 0; i < g->f->bufs.n; i++) {
        cps_tbuf *b = &g->f->bufs.data[i];
        b->part = b->pin_part > 0 ? (uint16_t)b->pin_part : 0;
        cps_vec_push(g->arena, &l.version, 0);
    }
    bool ok = true;
    for (uint32_t i = 0; i < g->f->insts.n; i++)
        ok &= one(&l, &g->f->insts.data[i]);
    if (!ok)
        return false;
    cps_vec_reserve(g->arena, &l.out, l.head.n + l.out.n);
    if (l.head.n) {
        memmove(l.out.data + l.head.n, l.out.data, l.out.n * sizeof *l.out.data);
        memcpy(l.out.data, l.head.data, l.head.n * sizeof *l.head.data);
        l.out.n += l.head.n;
    }
    cps_vec_drop(g->arena, &g->f->insts);
    g->f->insts.data = l.out.data;
    g->f->insts.n = l.out.n;
    g->f->insts.cap = l.out.cap;
    return true;
}

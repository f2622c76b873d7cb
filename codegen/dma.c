/* Selection for DMA: transfers become blocks of descriptors, started by one trigger each.
 *
 * Both sides are walks of bytes in the same element order: partition first on chip, then the
 * free axes; the axes of the tensor in HBM. Each side is joined as far as it goes by itself, so
 * that runs are as long as memory allows; what still needs more than four axes becomes several
 * descriptors of one block. One queue per engine and kind (into the core, out of it, other);
 * the queue is in order, every transfer has a semaphore of its own (sync.c).
 *
 * Views moved by an index tile or a register are dge.c's. */
#include "codegen/select.h"

typedef struct side {
    const cps_tview *v;
    uint32_t var;
    int64_t base, es;
    cps_pat p; // steps in bytes
} side;

static bool
refuse(cps_sel *s, const cps_tinst *x, const char *why)
{
    cps_error(s->g->d, CPS_E5305, x->loc, "'%s': %s", cps_tops[x->op].name, why);
    return false;
}

static bool
side_of(cps_sel *s, const cps_tinst *x, const cps_tview *v, side *o)
{
    const cps_tbuf *b = cps_sel_buf(s, v);
    *o = (side){.v = v, .es = cps_dtype_bytes(v->dtype)};
    if (b->space == CPS_PSUM)
        return refuse(s, x, "DMA does not reach PSUM; copy through SBUF");
    if (b->space == CPS_HBM) {
        o->var = s->var[v->buf];
        o->base = v->off * o->es;
    } else {
        unsigned part = b->part + v->part;
        o->base = (int64_t)part * CPS_SBUF_STRIDE + b->byte + v->off * o->es;
        if (v->parts > 1)
            o->p.d[o->p.nd++] = (cps_tdim){CPS_SBUF_STRIDE, v->parts};
    }
    for (int i = 0; i < v->nd; i++)
        if (v->d[i].num != 1)
            o->p.d[o->p.nd++] = (cps_tdim){v->d[i].step * o->es, v->d[i].num};
    return true;
}

uint8_t
cps_sel_queue(cps_sel *s, const char *name, uint32_t *id)
{
    for (uint32_t i = 0; i < s->queues.n; i++)
        if (cps_streq(s->queues.data[i].name, name)) {
            *id = s->queues.data[i].blocks++;
            return (uint8_t)i;
        }
    cps_assert(s->queues.n < CPS_QUEUES);
    cps_vec_push(s->g->arena, &s->queues, ((cps_queue){name, 1}));
    *id = 0;
    return (uint8_t)(s->queues.n - 1);
}

// One queue per engine and kind.
static uint8_t
queue_of(cps_sel *s, cps_engine e, const cps_tview *from, const cps_tview *to, uint32_t *id)
{
    bool in = cps_sel_buf(s, from)->space == CPS_HBM,
         out = cps_sel_buf(s, to)->space == CPS_HBM;
    const char *name = cps_arena_printf(s->g->arena, "q_%s_%s", cps_engine_name(e),
                                        in && !out   ? "in"
                                        : out && !in ? "out"
                                                     : "data");
    return cps_sel_queue(s, name, id);
}

// A walk as sizes and steps in bytes, innermost first, its first entry the contiguous run.
static bool
pattern(const cps_pat *in, int64_t es, int *n, int64_t *step, int64_t *size)
{
    cps_pat p = *in;
    cps_pat_merge(&p, INT64_MAX);
    step[0] = 1;
    size[0] = es;
    *n = 1;
    for (int i = p.nd; i-- > 0;) {
        if (*n == 1 && p.d[i].step == size[0] && size[0] == es) {
            size[0] *= p.d[i].num;
            continue;
        }
        if (*n == CPS_DESC_DIMS)
            return false;
        step[*n] = p.d[i].step;
        size[(*n)++] = p.d[i].num;
    }
    return true;
}

static cps_pat
inner(const cps_pat *p, int k)
{
    cps_pat r = {.nd = p->nd - k};
    for (int i = k; i < p->nd; i++)
        r.d[i - k] = p->d[i];
    return r;
}

// Describes the inner axes from `k` on, at the given offsets.
static bool
describe(const side *from, const side *to, int k, int64_t foff, int64_t toff, cps_kdesc *d)
{
    cps_pat a = inner(&from->p, k), b = inner(&to->p, k);
    d->from = from->var;
    d->to = to->var;
    d->from_off = from->base + foff;
    d->to_off = to->base + toff;
    return pattern(&a, from->es, &d->nfrom, d->from_step, d->from_size) &&
           pattern(&b, to->es, &d->nto, d->to_step, d->to_size);
}

// Swaps the last two axes of the source, in a transfer of its own kind.
static bool
transposing(cps_sel *s, const cps_tinst *x, side *from, side *to, cps_kdesc *d, int *outer)
{
    if (!s->g->t->dma_transpose)
        return refuse(s, x, "this target has no DMA transpose");
    if (from->es != to->es || from->es > 4)
        return refuse(s, x, "a transpose keeps the type, of 1, 2 or 4 bytes");
    int n = from->p.nd;
    if (n != to->p.nd || n < 1)
        return refuse(s, x, "the two sides differ in axes");
    if (n == 1) {
        // A row that becomes a column moves without change of order.
        *outer = 0;
        return from->p.d[0].num == to->p.d[0].num ||
               refuse(s, x, "the result is not the source with its last axes swapped");
    }
    bool swapped = from->p.d[n - 1].num == to->p.d[n - 2].num &&
                   from->p.d[n - 2].num == to->p.d[n - 1].num;
    for (int i = 0; i < n - 2; i++)
        swapped = swapped && from->p.d[i].num == to->p.d[i].num;
    if (!swapped)
        return refuse(s, x, "the result is not the source with its last axes swapped");
    d->op = CPS_DESC_TRANSPOSE;
    d->elem = (int)from->es;
    d->rows = from->p.d[n - 2].num;
    d->cols = from->p.d[n - 1].num;
    *outer = n - 2;
    return true;
}

static bool
descriptors(cps_sel *s, const cps_tinst *x, side *from, side *to)
{
    cps_kdesc d = {.op = CPS_DESC_COPY, .from_dtype = CPS_DT_U8, .to_dtype = CPS_DT_U8};
    int k = 0;
    if (x->op == CPS_T_DMA_TRANSPOSE) {
        if (!transposing(s, x, from, to, &d, &k))
            return false;
    } else {
        cps_pat p[2] = {from->p, to->p};
        if (!cps_pat_refine(p, 2, INT64_MAX / 2))
            return refuse(s, x, "the two sides do not pair element by element");
        from->p = p[0];
        to->p = p[1];
        bool add = cps_tinst_get(x, CPS_TA_ACCUMULATE, 0);
        if (add || from->v->dtype != to->v->dtype) {
            d.op = add ? CPS_DESC_ADD : CPS_DESC_CAST;
            d.from_dtype = from->v->dtype;
            d.to_dtype = to->v->dtype;
        }
        while (!describe(from, to, k, 0, 0, &d))
            k++;
    }
    int64_t total = 1, idx[CPS_PAT_DIMS] = {0};
    for (int i = 0; i < k; i++)
        total *= from->p.d[i].num;
    for (int64_t c = 0; c < total; c++) {
        int64_t foff = 0, toff = 0;
        for (int i = 0; i < k; i++) {
            foff += idx[i] * from->p.d[i].step;
            toff += idx[i] * to->p.d[i].step;
        }
        if (!describe(from, to, k, foff, toff, &d))
            return refuse(s, x, "the inner axes need more than 4 dimensions");
        cps_vec_push(s->g->arena, &s->p->k->descs, d);
        for (int i = k; i-- > 0;) {
            if (++idx[i] < from->p.d[i].num)
                break;
            idx[i] = 0;
        }
    }
    return true;
}

static void
put_name(cps_bundle *b, cps_field f, const char *name)
{
    memcpy(b->b + cps_fields[f].byte, name, CPS_MIN(strlen(name), cps_fields[f].bits / 8u));
}

bool
cps_sel_dma(cps_sel *s, const cps_tinst *x)
{
    const cps_tview *src = cps_sel_view(s, x->in[0]), *dst = cps_sel_view(s, x->out[0]);
    if (src->index || dst->index)
        return cps_sel_indirect(s, x);
    if (src->reg || dst->reg)
        return cps_sel_moving_dma(s, x);
    side from, to;
    if (!side_of(s, x, src, &from) || !side_of(s, x, dst, &to))
        return false;
    cps_kblock k = {.owner = (cps_engine)x->engine, .first = s->p->k->descs.n, .loc = x->loc};
    if (!descriptors(s, x, &from, &to))
        return false;
    k.ndesc = s->p->k->descs.n - k.first;
    uint8_t queue = queue_of(s, k.owner, src, dst, &k.id);
    k.queue = s->queues.data[queue].name;
    cps_vec_push(s->g->arena, &s->p->k->blocks, k);
    cps_bundle b = cps_cg_bundle(s->g, CPS_INSN_PSEUDO_DMA_TRIGGER);
    put_name(&b, CPS_F_PSEUDO_DMA_TRIGGER_queue, k.queue);
    cps_isa_set(&b, CPS_F_PSEUDO_DMA_TRIGGER_block_id, k.id);
    cps_mop *m = cps_sel_op(s, CPS_M_DMA, k.owner, &b, x->loc);
    m->block = s->p->k->blocks.n;
    m->queue = queue;
    cps_sel_touch(s, src, false);
    cps_sel_touch(s, dst, true);
    if (cps_tinst_get(x, CPS_TA_ACCUMULATE, 0))
        cps_sel_touch(s, dst, false);
    return true;
}

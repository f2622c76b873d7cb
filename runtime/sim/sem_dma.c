/* DMA: queues, the engines that serve them, and the bytes they move.
 *
 * A trigger enters its queue; the queue issues transfers one after another (a serial cost
 * each), the first byte moves a fixed latency later, engine after engine. Each DMA engine has
 * one FIFO per queue and goes round robin between them at packet granularity. All engines of a
 * core raise the semaphore, also those that had nothing to move (NKI DMA overview). The times
 * are constants of the target description. */
#include "runtime/sim/prove.h"

/* ---- bytes ---- */

static bool
defined_run(cps_sim *s, const insn *by, uint64_t addr, uint64_t len, const uint8_t *init)
{
    const uint8_t *hole = init ? memchr(init, 0, len) : NULL;
    if (!hole || by->reported & CPS_CHECK_UNINIT)
        return true;
    space sp;
    rect r = {.nd = 0, .run = (int64_t)len};
    addr_resolve(s, addr, len, &sp, &r.var, &r.base);
    r.space = (uint8_t)sp;
    rect_close(&r);
    check_read(s, by, &r);
    return false;
}

static void
compute(const item *it, const void *src, void *dst, size_t n)
{
    const uint8_t *a = src;
    uint8_t *b = dst;
    cps_dtype ft = (cps_dtype)it->from_dtype, tt = (cps_dtype)it->to_dtype;
    unsigned fs = cps_dtype_bytes(ft), ts = cps_dtype_bytes(tt);
    for (size_t k = 0; k < n; k++, a += fs, b += ts) {
        float x = cps_to_f32(ft, a);
        if (it->alu != CPS_DGE_COMPUTE_OP_NONE) {
            float y = cps_to_f32(tt, b);
            switch (it->alu) {
            case CPS_DGE_COMPUTE_OP_ADD:
                x = y + x;
                break;
            case CPS_DGE_COMPUTE_OP_MULTIPLY:
                x = y * x;
                break;
            case CPS_DGE_COMPUTE_OP_MAX:
                x = alu_f32_1(CPS_ALU_MAX, y, x);
                break;
            default:
                x = alu_f32_1(CPS_ALU_MIN, y, x);
                break;
            }
        }
        cps_from_f32(tt, b, x);
    }
}

/* Address of byte `n` of a side in its order. */
static uint64_t
byte_at(const side *x, int64_t n)
{
    uint64_t a = x->addr + (uint64_t)(n % x->size[0]);
    n /= x->size[0];
    for (int d = 1; d < x->nd; d++) {
        a += (uint64_t)(x->step[d] * (n % x->size[d]));
        n /= x->size[d];
    }
    return a;
}

/* Elements of a transposed destination that lie a constant step apart in the source. */
typedef struct column {
    const uint8_t *from, *init;
    ptrdiff_t step; /* bytes on the host */
    uint8_t *to;
    uint64_t addr;
    int64_t apart; /* in simulated addresses */
    uint32_t n;
} column;

/* The column that begins with element m of the destination's order, at most `most` long. */
static column
column_at(cps_sim *s, const item *it, int64_t m, uint32_t most)
{
    int64_t es = it->elem, r = m % it->rows, jump = it->cols * es, inner = 1;
    const side *x = &it->from;
    column c = {.addr = byte_at(x, (r * it->cols + m / it->rows) * es), .n = 1};
    uint8_t *init;
    c.from = addr_bytes(s, c.addr, (uint64_t)es, false, &init);
    c.init = init;
    for (int d = 0; d < x->nd && inner <= jump; inner *= x->size[d++]) {
        int64_t q = jump / inner; // steps of dimension d from row to row
        if (jump % inner || q >= x->size[d] || x->size[d] % q)
            continue;
        int64_t apart = (d ? x->step[d] : 1) * q, rows = x->size[d] / q;
        int64_t n = CPS_MIN(CPS_MIN(rows - r % rows, it->rows - r), (int64_t)most);
        bool chip = addr_is_chip(c.addr);
        if (n < 2 || (chip && apart % CPS_SBUF_STRIDE))
            break;
        c.apart = apart;
        c.step = chip ? apart / CPS_SBUF_STRIDE * (int64_t)s->sbuf_pitch : apart;
        c.n = (uint32_t)n;
        break;
    }
    return c;
}

enum { BESIDE = 32 };

/* Columns one element apart in the source and evenly apart in the destination: blocks are turned. */
static bool
gather_blocks(cps_sim *s, const column *c, unsigned n, size_t es)
{
    ptrdiff_t apart = n > 1 ? c[1].to - c[0].to : 0;
    if (es != 2 || n < 4 || c->n < 8 || c->step < 0 || apart < 0)
        return false;
    for (unsigned j = 1; j < n; j++) {
        if (c[j].from != c[0].from + j * es || c[j].step != c[0].step ||
            c[j].to != c[0].to + (ptrdiff_t)j * apart)
            return false;
    }
    s->wide->turn(c->from, (size_t)c->step, NULL, c->n, n, 2, c->to, (size_t)apart);
    return true;
}

/* Columns side by side: their elements share the source's cache lines. */
static void
gather(cps_sim *s, const column *c, unsigned n, size_t es)
{
    if (!n || gather_blocks(s, c, n, es))
        return;
    for (uint32_t k = 0; k < c->n; k++) {
        for (unsigned j = 0; j < n; j++) {
            const uint8_t *from = c[j].from + (ptrdiff_t)k * c[j].step;
            uint8_t *to = c[j].to + k * es;
            if (es == 2)
                memcpy(to, from, 2);
            else
                memcpy(to, from, es);
        }
    }
}

static void
move_transposed(cps_sim *s, const xfer *x, const ring *r, const packet *p)
{
    const item *it = &x->b->items.data[p->item];
    bool watch = s->opts.checks & CPS_CHECK_UNINIT;
    size_t es = (size_t)it->elem;
    if (s->nstale && addr_is_chip(it->from.addr))
        mem_settle(s); // a column reaches over partitions
    column c[BESIDE];
    unsigned have = 0;
    for (uint32_t k = p->first; k < p->first + p->n; k++) {
        uint32_t tl = cps_qdesc_bytes(&r->s2m.data[k]), n = tl / (uint32_t)es;
        uint8_t *ti, *to = addr_bytes(s, r->s2m.data[k].addr, tl, false, &ti);
        int64_t m = (int64_t)r->lin.data[k];
        for (uint32_t at = 0; at < n; at += c[have - 1].n) {
            column one = column_at(s, it, m + at, n - at);
            one.to = to + at * es;
            for (uint32_t e = 0; watch && one.init && e < one.n; e++)
                defined_run(s, x->by, one.addr + (uint64_t)(e * one.apart), es,
                            one.init + (ptrdiff_t)e * one.step);
            if (have == BESIDE || (have && one.n != c[0].n)) {
                gather(s, c, have, es);
                have = 0;
            }
            c[have++] = one;
        }
        if (ti && watch)
            memset(ti, 1, tl);
    }
    gather(s, c, have, es);
}

static void
move(cps_sim *s, const item *it, uint8_t *to, const uint8_t *from, uint32_t n)
{
    enum { LONG = 512 };
    if (it->alu != CPS_DGE_COMPUTE_OP_NONE || it->from_dtype != it->to_dtype)
        compute(it, from, to, n / cps_dtype_bytes((cps_dtype)it->from_dtype));
    else if (it->away && n >= LONG)
        s->wide->away(to, from, n);
    else
        memmove(to, from, n);
}

static void
move_packet(cps_sim *s, const xfer *x, unsigned ring_no, const packet *p)
{
    const ring *r = &x->b->ring[ring_no];
    const item *it = &x->b->items.data[p->item];
    bool watch = s->opts.checks & CPS_CHECK_UNINIT;
    bool turned = it->op == CPS_DESC_TRANSPOSE;
    uint32_t n = s->opts.no_data || turned ? 0 : p->n;
    if (turned && !s->opts.no_data)
        move_transposed(s, x, r, p);
    for (uint32_t k = p->first; k < p->first + n; k++) {
        const cps_qdesc *sd = &r->m2s.data[k], *dd = &r->s2m.data[k];
        uint32_t fl = cps_qdesc_bytes(sd), tl = cps_qdesc_bytes(dd);
        uint8_t *fi, *ti, *from = addr_bytes(s, sd->addr, fl, false, &fi);
        uint8_t *to = addr_bytes(s, dd->addr, tl, it->alu == CPS_DGE_COMPUTE_OP_NONE, &ti);
        if (watch)
            defined_run(s, x->by, sd->addr, fl, fi);
        if (it->alu != CPS_DGE_COMPUTE_OP_NONE && watch)
            defined_run(s, x->by, dd->addr, tl, ti);
        move(s, it, to, from, fl);
        if (ti && watch)
            memset(ti, 1, tl);
    }
    s->rep.dma_bytes += p->bytes;
    s->rep.dma_descriptors += p->n;
}

/* ---- engines ---- */

static cps_ps
service(cps_sim *s, const xfer *x, const packet *p)
{
    const item *it = &x->b->items.data[p->item];
    double rate = x->b->to_var ? s->t->dma_store_bytes_per_ns : s->t->dma_bytes_per_ns;
    if (x->b->to_var || x->b->from_var) { // the core's share of HBM, split over who is busy
        bool both = s->mate && s->mate->dma_busy;
        double share = both ? CPS_MIN(s->t->hbm_core_bytes_per_ns, s->t->hbm_pair_bytes_per_ns)
                            : s->t->hbm_core_bytes_per_ns;
        rate = CPS_MIN(rate, share / (s->dma_busy ? s->dma_busy : 1));
    }
    if (it->op == CPS_DESC_TRANSPOSE)
        rate *= x->b->to_var || x->b->from_var ? s->t->dma_transpose_rate
                                               : s->t->dma_onchip_transpose_rate;
    else if (it->alu != CPS_DGE_COMPUTE_OP_NONE)
        rate *= s->t->dma_accumulate_rate;
    return ns_ps(p->bytes / rate + (p->n - p->small) * s->t->dma_descriptor_ns +
                 p->small * s->t->dma_small_ns);
}

static void
finish_part(cps_sim *s, unsigned ring_no, xfer *x)
{
    queue *q = &s->queues.data[x->b->queue];
    q->fifo[ring_no].head = x->next[ring_no];
    if (!x->next[ring_no])
        q->fifo[ring_no].tail = NULL;
    unsigned parts = (unsigned)s->t->dma_engines;
    bool split = x->b->increment % parts == 0;
    x->left--;
    x->last = s->now;
    cps_ps seen = s->now + ns_ps(x->b->to_var ? s->t->dma_store_ack_ns : s->t->dma_receipt_ns);
    s->end = CPS_MAX(s->end, seen);
    if (s->rec)
        rec_part_done(s, ring_no, x, seen);
    int32_t amount =
        split ? (int32_t)(x->b->increment / parts) : (x->left == 0 ? x->b->increment : 0);
    if (amount)
        ev_push(s, (event){.t = seen,
                           .kind = EV_SEM,
                           .a = x->b->semaphore,
                           .b = NOT_QUEUE,
                           .mode = CPS_UPDATE_SEM_ADD_IMM_READ,
                           .amount = amount,
                           .by = x->by,
                           .rec = x->rec});
}

/* Lets a free DMA engine take its next packet. */
static void
serve(cps_sim *s, unsigned ring_no)
{
    dma_engine *d = &s->dma[ring_no];
    uint32_t nq = s->queues.n;
    while (!d->busy) {
        xfer *x = NULL;
        uint32_t q = d->turn;
        for (uint32_t k = 0; k < nq && !x; k++) {
            q = q + 1 < nq ? q + 1 : 0;
            xfer *h = s->queues.data[q].fifo[ring_no].head;
            if (h && h->at[ring_no].start <= s->now) {
                x = h;
                d->turn = (uint16_t)q;
            }
        }
        if (!x)
            return;
        const ring *r = &x->b->ring[ring_no];
        if (x->at[ring_no].packet >= r->packets.n) {
            finish_part(s, ring_no, x);
            continue;
        }
        if (s->dma_busy++ == 0)
            s->dma_since = s->now;
        if (x->first == 0 || s->now < x->first)
            x->first = s->now;
        d->busy = true;
        d->begin = s->now;
        cps_ps t = s->now + service(s, x, &r->packets.data[x->at[ring_no].packet]);
        if (s->rec)
            rec_serve(s, ring_no, x, t);
        ev_push(s, (event){.t = t, .kind = EV_DMA_DONE, .a = (uint8_t)ring_no, .x = x});
    }
}

void
dma_started(cps_sim *s, unsigned ring_no)
{
    serve(s, ring_no);
}

void
dma_done(cps_sim *s, unsigned ring_no, xfer *x)
{
    const ring *r = &x->b->ring[ring_no];
    move_packet(s, x, ring_no, &r->packets.data[x->at[ring_no].packet]);
    if (s->opts.probe)
        probe(s, CPS_PROBE_MOVED, x->by);
    s->dma[ring_no].busy = false;
    if (--s->dma_busy == 0)
        s->rep.dma_busy_ps += s->now - s->dma_since;
    if (++x->at[ring_no].packet == r->packets.n)
        finish_part(s, ring_no, x);
    serve(s, ring_no);
}

void
dma_submit(cps_sim *s, engine *e, const insn *i, block *b)
{
    if (s->prover) {
        prove_submit(s, e, i, b);
        return;
    }
    queue *q = &s->queues.data[b->queue];
    xfer *x = cps_new(s->run_arena, xfer);
    unsigned n = (unsigned)s->t->dma_engines;
    x->b = b;
    x->by = i;
    x->seq = ++q->seq;
    x->trigger = s->now;
    x->left = (uint8_t)n;
    x->vc = e->vc;
    bool races = s->opts.checks & CPS_CHECK_RACES;
    if (races)
        q->vc = vc_join(s, q->vc, e->vc);
    cps_ps issue = CPS_MAX(s->now, q->issue_free);
    q->issue_free = issue + ns_ps(s->t->dma_issue_ns);
    bool dge = i->block == NULL; // its descriptors are made now
    cps_ps first = issue + ns_ps(dge ? s->t->dma_dge_start_ns : s->t->dma_start_ns);
    s->rep.dma_transfers++;
    int32_t share = b->increment % n == 0 ? (int32_t)(b->increment / n) : b->increment;
    if (b->increment && races)
        sync_issue(s, b->semaphore, CPS_ENGINES + b->queue, b->increment, share, q->vc, 0,
                   x->seq, i);
    if (s->rec)
        rec_submit(s, e, x, issue, first);
    unsigned k = 0;
    for (unsigned r = 0; r < n; r++) {
        bool moves = b->ring[r].packets.n != 0;
        x->at[r].start = first + (moves ? k * ns_ps(s->t->dma_stagger_ns) : 0);
        k += moves;
        if (q->fifo[r].tail)
            q->fifo[r].tail->next[r] = x;
        else
            q->fifo[r].head = x;
        q->fifo[r].tail = x;
        if (races)
            race_transfer(s, x, r);
        ev_push(s, (event){.t = x->at[r].start, .kind = EV_DMA_START, .a = (uint8_t)r});
    }
}

/* ---- triggers of prepared blocks ---- */

bool
prep_trigger(cps_sim *s, insn *i)
{
    char name[33] = {0};
    memcpy(name, i->b.b + cps_fields[CPS_F_PSEUDO_DMA_TRIGGER_queue].byte, 32);
    uint32_t id = (uint32_t)cps_isa_get(&i->b, CPS_F_PSEUDO_DMA_TRIGGER_block_id);
    uint32_t q = 0;
    while (q < s->queues.n && strcmp(s->queues.data[q].name, name) != 0)
        q++;
    const uint64_t *at = cps_map_find(&s->block_of, (uint64_t)q << 32 | id);
    if (q == s->queues.n || !at)
        return load_fail(s, i, CPS_E8203, "there is no block %u of queue '%s'", id, name);
    if (s->queues.data[q].owner != i->engine)
        return load_fail(s, i, CPS_E8203, "queue '%s' belongs to %s", name,
                         cps_engine_name((cps_engine)s->queues.data[q].owner));
    i->block = s->blocks.data[*at];
    return true;
}

bool
exec_trigger(cps_sim *s, engine *e, insn *i)
{
    dma_submit(s, e, i, i->block);
    return true;
}

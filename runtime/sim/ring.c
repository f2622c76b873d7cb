/* Descriptor rings. A transfer's patterns are cut into contiguous runs of at most packet_bytes;
 * each is a pair of 16-byte descriptors (source ring, destination ring) in simulated physical
 * addresses. Which DMA engine a run goes to: partition k of 128 to engine k / 8 (NKI DMA
 * overview), so a tile of few partitions uses few engines; HBM to HBM goes by contiguous
 * shares.
 *
 * The bits of a descriptor are rows of desc.def. */
#include "runtime/sim/machine.h"

/* Simulated physical map: on-chip memory where the gen3 driver maps a core's window, variables
 * from 4 GiB on. */
#define SB_BASE 0x2000000000ull
#define HBM_BASE 0x100000000ull
enum {
    PAGE = 4096,
    PACKET_DESCS = 64, /* of one packet (driver: max descriptors per packet) */
    BLOCK_DESCS = 1 << 22,
    W0_ALONE = CPS_QBITS(M2S, ring, 1) | CPS_QBITS(M2S, first, 1) | CPS_QBITS(M2S, last, 1),
    W1_BLOCK = CPS_QBITS(M2S, first_block, 1) | CPS_QBITS(M2S, last_block, 1) |
               CPS_QBITS(M2S, copy, 1),
    W1_PLAIN = W1_BLOCK | CPS_QBITS(M2S, op, CPS_QDESC_OP_CME),
    W1_COMPUTE = W1_BLOCK | CPS_QBITS(M2S, op, CPS_QDESC_OP_CCE)
};
_Static_assert(W1_PLAIN == 0x01080003, "the driver's plain copy");

uint64_t
addr_of_sb(int64_t off)
{
    return SB_BASE + (uint64_t)off;
}

void
addr_layout(cps_sim *s)
{
    uint64_t at = HBM_BASE;
    for (uint32_t i = 0; i < s->vars.n; i++) {
        hbm_var *v = &s->vars.data[i];
        v->addr = i == 0 ? SB_BASE : at;
        if (i) // a page between variables: running over an end is never another variable
            at += (uint64_t)cps_round_up(v->v->bytes + PAGE, PAGE);
    }
}

bool
addr_resolve(const cps_sim *s, uint64_t addr, uint64_t len, space *sp, uint32_t *var,
             int64_t *off)
{
    if (addr >= SB_BASE) {
        uint64_t o = addr - SB_BASE, byte = o & (CPS_SBUF_STRIDE - 1);
        *sp = SP_SBUF;
        *off = (int64_t)o;
        return o < (uint64_t)LANES * CPS_SBUF_STRIDE && byte + len <= s->sbuf_bytes;
    }
    uint32_t lo = 1, hi = s->vars.n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (s->vars.data[mid].addr <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo <= 1)
        return false;
    *sp = SP_HBM;
    *var = lo - 1;
    *off = (int64_t)(addr - s->vars.data[*var].addr);
    return (uint64_t)*off + len <= (uint64_t)s->vars.data[*var].v->bytes;
}

bool
addr_is_chip(uint64_t addr)
{
    return addr >= SB_BASE;
}

uint8_t *
addr_bytes(cps_sim *s, uint64_t addr, uint64_t len, bool whole, uint8_t **init)
{
    space sp;
    uint32_t var = 0;
    int64_t off = 0;
    if (!addr_resolve(s, addr, len, &sp, &var, &off))
        cps_bug("descriptor address %llx was not checked", (unsigned long long)addr);
    if (sp == SP_SBUF) {
        size_t at = (size_t)(off >> 18) * s->sbuf_pitch + (size_t)(off & (CPS_SBUF_STRIDE - 1));
        *init = s->sbuf_init + at;
        int64_t byte = off & (CPS_SBUF_STRIDE - 1);
        if (s->nstale)
            mem_need(s, false, (unsigned)(off >> 18), 1, byte, byte + (int64_t)len, whole);
        return s->sbuf + at;
    }
    hbm_var *v = &s->vars.data[var];
    *init = v->init ? v->init + off : NULL;
    return v->data + off;
}

/* ---- runs of a side ---- */

typedef struct walker {
    const side *x;
    int nd;
    int64_t step[5], size[5], at[5];
    uint64_t addr; /* of the run */
    int64_t run, used;
    bool end;
} walker;

static void
walk_start(walker *w, const side *x)
{
    memset(w, 0, sizeof *w);
    w->x = x;
    w->run = x->size[0];
    bool chip = x->addr >= SB_BASE;
    for (int d = 1; d < x->nd; d++) {
        if (x->size[d] == 1)
            continue;
        // rows that touch are one run, but never across partitions
        if (w->nd == 0 && x->step[d] == w->run &&
            !(chip && x->step[d] % CPS_SBUF_STRIDE == 0)) {
            w->run *= x->size[d];
            continue;
        }
        w->step[w->nd] = x->step[d];
        w->size[w->nd++] = x->size[d];
    }
    w->addr = x->addr;
}

static void
walk_take(walker *w, int64_t n)
{
    w->used += n;
    if (w->used < w->run)
        return;
    w->used = 0;
    for (int d = 0; d < w->nd; d++) {
        w->addr += (uint64_t)w->step[d];
        if (++w->at[d] < w->size[d])
            return;
        w->addr -= (uint64_t)(w->step[d] * w->size[d]);
        w->at[d] = 0;
    }
    w->end = true;
}

/* Address of byte `n` of a side in its order. */
static uint64_t
side_at(const side *x, int64_t n)
{
    uint64_t a = x->addr + (uint64_t)(n % x->size[0]);
    n /= x->size[0];
    for (int d = 1; d < x->nd; d++) {
        a += (uint64_t)(x->step[d] * (n % x->size[d]));
        n /= x->size[d];
    }
    return a;
}

/* ---- building ---- */

typedef struct runlist {
    CPS_VEC(uint64_t) at;
    CPS_VEC(uint32_t) len;
} runlist;

struct builder {
    runlist rd[DMA_RINGS], wr[DMA_RINGS];
    rectvec rd_rows[DMA_RINGS], wr_rows[DMA_RINGS]; /* found without runs */
    rectvec all; /* footprints of the ring that is being closed */
};

block *
block_new(cps_sim *s, cps_arena *a)
{
    (void)s;
    block *b = cps_new(a, block);
    b->arena = a;
    b->scratch = cps_arena_create();
    b->build = cps_new(b->scratch, struct builder);
    return b;
}

static void
note_run(cps_sim *s, block *b, runlist *l, uint64_t addr, uint32_t len)
{
    uint32_t n = l->at.n;
    if (s->timer)
        return;
    if (n && l->at.data[n - 1] + l->len.data[n - 1] == addr) {
        l->len.data[n - 1] += len;
        return;
    }
    cps_vec_push(b->scratch, &l->at, addr);
    cps_vec_push(b->scratch, &l->len, len);
}

static bool
outside(cps_sim *s, const insn *by, const char *what, uint64_t addr, int64_t len)
{
    if (addr >= SB_BASE)
        load_fail(s, by, CPS_E8205,
                  "%s of %lld bytes at partition %llu byte %llu; a partition has %u bytes",
                  what, (long long)len, (unsigned long long)((addr - SB_BASE) >> 18),
                  (unsigned long long)((addr - SB_BASE) & (CPS_SBUF_STRIDE - 1)),
                  s->sbuf_bytes);
    else
        load_fail(s, by, CPS_E8205,
                  "%s of %lld bytes at address 0x%llx, outside every variable", what,
                  (long long)len, (unsigned long long)addr);
    return false;
}

static unsigned
engine_for(const cps_sim *s, uint64_t from, uint64_t to, int64_t pos, int64_t total)
{
    unsigned n = (unsigned)s->t->dma_engines, per = LANES / n;
    uint64_t chip = to >= SB_BASE ? to : from;
    unsigned e;
    if (chip >= SB_BASE)
        e = (unsigned)((chip - SB_BASE) >> 18) / (per ? per : 1);
    else
        e = (unsigned)(pos / CPS_MAX(cps_round_up(cps_ceil_div(total, n), 512), 1));
    return CPS_MIN(e, n - 1);
}

static void
emit(cps_sim *s, block *b, unsigned ring_no, uint32_t item_no, uint64_t from, uint32_t fbytes,
     uint64_t to, uint32_t tbytes, const uint64_t *lin)
{
    ring *r = &b->ring[ring_no];
    uint32_t bytes = CPS_MAX(fbytes, tbytes);
    packet *p = r->packets.n ? &r->packets.data[r->packets.n - 1] : NULL;
    if (!p || p->item != item_no || p->n >= PACKET_DESCS ||
        p->bytes + bytes > (uint32_t)s->t->dma_packet_bytes) {
        p = cps_vec_add(b->arena, &r->packets);
        p->first = r->m2s.n;
        p->item = item_no;
    }
    p->n++;
    p->small += bytes < (uint32_t)s->t->dma_small_bytes;
    p->bytes += bytes;
    b->ndesc++;
    if (s->timer || s->proof)
        return;
    bool plain = b->items.data[item_no].op == CPS_DESC_COPY;
    uint32_t w1 = plain ? W1_PLAIN : W1_COMPUTE;
    // 0 in the length bits is 65,536
    cps_qdesc src = {W0_ALONE | CPS_QBITS(M2S, length, fbytes & 0xFFFF), w1, from};
    cps_qdesc dst = {W0_ALONE | CPS_QBITS(S2M, length, tbytes & 0xFFFF), 0, to};
    cps_vec_push(b->arena, &r->m2s, src);
    cps_vec_push(b->arena, &r->s2m, dst);
    if (lin)
        cps_vec_push(b->arena, &r->lin, *lin);
    else if (r->lin.n)
        cps_vec_push(b->arena, &r->lin, 0);
}

static bool
add_transpose(cps_sim *s, block *b, uint32_t no, const item *it, const insn *by)
{
    walker t;
    int64_t m = 0, total = it->rows * it->cols;
    // every source element, for checks and for the rings that read them
    walker f;
    walk_start(&f, &it->from);
    runlist all = {0};
    while (!f.end) {
        space sp;
        uint32_t var;
        int64_t off;
        if (!addr_resolve(s, f.addr, (uint64_t)f.run, &sp, &var, &off))
            return outside(s, by, "read", f.addr, f.run);
        note_run(s, b, &all, f.addr, (uint32_t)f.run);
        walk_take(&f, f.run);
    }
    bool used[DMA_RINGS] = {false};
    walk_start(&t, &it->to);
    while (!t.end) {
        int64_t n = CPS_MIN(t.run - t.used, s->t->dma_packet_bytes / it->elem * it->elem);
        uint64_t to = t.addr + (uint64_t)t.used;
        space sp;
        uint32_t var;
        int64_t off;
        if (!addr_resolve(s, to, (uint64_t)n, &sp, &var, &off))
            return outside(s, by, "write", to, n);
        unsigned e = engine_for(s, 0, to, m * it->elem, total * it->elem);
        uint64_t lin = (uint64_t)m;
        int64_t first = m % it->rows * it->cols + m / it->rows;
        if (b->ring[e].lin.n !=
            b->ring[e].m2s.n) { // a mixed block: older entries have no use for it
            while (b->ring[e].lin.n < b->ring[e].m2s.n)
                cps_vec_push(b->arena, &b->ring[e].lin, 0);
        }
        emit(s, b, e, no, side_at(&it->from, first * it->elem), (uint32_t)n, to, (uint32_t)n,
             &lin);
        note_run(s, b, &b->build->wr[e], to, (uint32_t)n);
        used[e] = true;
        m += n / it->elem;
        walk_take(&t, n);
        if (b->ndesc > BLOCK_DESCS)
            return load_fail(s, by, CPS_E8206, "more than %d descriptors", BLOCK_DESCS);
    }
    for (unsigned e = 0; e < DMA_RINGS; e++) {
        for (uint32_t k = 0; used[e] && k < all.at.n; k++)
            note_run(s, b, &b->build->rd[e], all.at.data[k], all.len.data[k]);
    }
    return true;
}

/* For a proof: footprints are all it wants. */
static bool
add_rows(cps_sim *s, block *b, const item *it, int64_t fs, int64_t ts)
{
    dma_share x[DMA_RINGS];
    int64_t descs = 0;
    uint32_t used = s->proof ? ring_shares(s, it, fs, ts, x, &descs) : 0;
    if (!used || b->ndesc + descs > BLOCK_DESCS ||
        (it->to.addr < SB_BASE && s->vars.data[x[__builtin_ctz(used)].to.var].v->kind == CPS_VAR_DATA))
        return false;
    b->ndesc += (uint32_t)descs;
    for (unsigned e = 0; e < DMA_RINGS; e++) {
        if (!(used >> e & 1))
            continue;
        cps_vec_push(b->scratch, &b->build->rd_rows[e], x[e].from);
        if (it->alu != CPS_DGE_COMPUTE_OP_NONE)
            cps_vec_push(b->scratch, &b->build->rd_rows[e], x[e].to);
        cps_vec_push(b->scratch, &b->build->wr_rows[e], x[e].to);
    }
    return true;
}

/* Results that no cache holds until somebody reads them: their lines need not be fetched to be written. */
static bool
goes_away(const cps_sim *s, const item *it)
{
    enum { LARGE = 1 << 20 };
    space sp;
    uint32_t var = 0;
    int64_t off;
    if (it->from.addr < SB_BASE || !addr_resolve(s, it->to.addr, 1, &sp, &var, &off) || sp != SP_HBM)
        return false;
    return s->vars.data[var].v->kind == CPS_VAR_OUTPUT && s->vars.data[var].v->bytes >= LARGE;
}

static bool
add(cps_sim *s, block *b, const item *it, const insn *by)
{
    uint32_t no = b->items.n;
    cps_vec_push(b->arena, &b->items, *it);
    int64_t total = 1;
    for (int d = 0; d < it->to.nd; d++)
        total *= it->to.size[d];
    b->bytes += total;
    b->to_var |= it->to.addr < SB_BASE;
    b->from_var |= it->from.addr < SB_BASE;
    b->adds |= it->alu != CPS_DGE_COMPUTE_OP_NONE;
    if (it->op == CPS_DESC_TRANSPOSE)
        return add_transpose(s, b, no, it, by);
    b->items.data[no].away = goes_away(s, it);
    bool typed = it->op != CPS_DESC_COPY || it->from_dtype != it->to_dtype;
    int64_t fs = typed ? cps_dtype_bytes((cps_dtype)it->from_dtype) : 1;
    int64_t ts = typed ? cps_dtype_bytes((cps_dtype)it->to_dtype) : 1;
    int64_t most = s->t->dma_packet_bytes / CPS_MAX(fs, ts), pos = 0;
    if (add_rows(s, b, it, fs, ts))
        return true;
    walker f, t;
    walk_start(&f, &it->from);
    walk_start(&t, &it->to);
    while (!t.end && !f.end) {
        int64_t n = CPS_MIN((f.run - f.used) / fs, (t.run - t.used) / ts);
        n = CPS_MIN(n, most);
        if (n < 1)
            return load_fail(s, by, CPS_E8205, "a run is no whole number of elements");
        uint64_t from = f.addr + (uint64_t)f.used, to = t.addr + (uint64_t)t.used;
        space sp;
        uint32_t var;
        int64_t off;
        if (!addr_resolve(s, from, (uint64_t)(n * fs), &sp, &var, &off))
            return outside(s, by, "read", from, n * fs);
        if (!addr_resolve(s, to, (uint64_t)(n * ts), &sp, &var, &off))
            return outside(s, by, "write", to, n * ts);
        if (sp == SP_HBM && s->vars.data[var].v->kind == CPS_VAR_DATA)
            return load_fail(s, by, CPS_E8205, "write to the constant '%s'",
                             s->vars.data[var].v->name);
        unsigned e = engine_for(s, from, to, pos, total);
        emit(s, b, e, no, from, (uint32_t)(n * fs), to, (uint32_t)(n * ts), NULL);
        note_run(s, b, &b->build->rd[e], from, (uint32_t)(n * fs));
        if (it->alu != CPS_DGE_COMPUTE_OP_NONE)
            note_run(s, b, &b->build->rd[e], to, (uint32_t)(n * ts));
        note_run(s, b, &b->build->wr[e], to, (uint32_t)(n * ts));
        pos += n * ts;
        walk_take(&f, n * fs);
        walk_take(&t, n * ts);
        if (b->ndesc > BLOCK_DESCS)
            return load_fail(s, by, CPS_E8206, "more than %d descriptors", BLOCK_DESCS);
    }
    return true;
}

bool
block_add(cps_sim *s, block *b, const item *it, const insn *by)
{
    if (add(s, b, it, by))
        return true;
    cps_arena_destroy(b->scratch);
    b->scratch = NULL;
    b->build = NULL;
    return false;
}

/* ---- footprints: runs to strided sets ---- */

static void
push_rect(cps_sim *s, block *b, rectvec *list, uint64_t addr, int64_t len, int nd,
          const int64_t *step, const int64_t *num)
{
    space sp = SP_SBUF;
    uint32_t var = 0;
    int64_t off = 0;
    addr_resolve(s, addr, 1, &sp, &var, &off);
    rect r = {.space = (uint8_t)sp, .var = var, .base = off, .run = len, .nd = (uint8_t)nd};
    memcpy(r.step, step, sizeof *step * (size_t)nd);
    memcpy(r.num, num, sizeof *num * (size_t)nd);
    rect_close(&r);
    cps_vec_push(b->scratch, list, r);
}

/* Number of leading items, `stride` apart, whose addresses form an arithmetic sequence. */
static uint32_t
sequence(const uint64_t *at, uint32_t n, uint32_t stride)
{
    if (n <= stride)
        return 1;
    uint64_t step = at[stride] - at[0];
    uint32_t k = 2;
    while (k * stride < n && at[k * stride] - at[(k - 1) * stride] == step)
        k++;
    return k;
}

/* Greedy: the longest arithmetic sequence of runs, then of such groups, and so on. */
static void
compress(cps_sim *s, block *b, const runlist *l, rectvec *list)
{
    const uint64_t *at = l->at.data;
    uint32_t n = l->at.n;
    for (uint32_t i = 0; i < n;) {
        // A footprint lies in one variable or memory: an accumulating transfer reads source and
        // destination in turn, and those runs must not become one sequence.
        uint32_t same = 1, var;
        space sp;
        int64_t off;
        bool known = addr_resolve(s, at[i], l->len.data[i], &sp, &var, &off);
        while (i + same < n && l->len.data[i + same] == l->len.data[i]) {
            uint32_t v2;
            space sp2;
            if (!known || !addr_resolve(s, at[i + same], l->len.data[i], &sp2, &v2, &off) ||
                sp2 != sp || (sp == SP_HBM && v2 != var))
                break;
            same++;
        }
        int64_t step[4], num[4];
        int nd = 0;
        uint32_t group = 1;
        while (nd < 4) {
            uint32_t k = sequence(at + i, same / group * group, group);
            // all members of each further group must be shaped as the first
            uint32_t good = 1;
            for (; good < k; good++) {
                uint32_t m = 1;
                uint64_t shift = at[i + good * group] - at[i];
                while (m < group && at[i + good * group + m] - at[i + m] == shift)
                    m++;
                if (m < group)
                    break;
            }
            if (good < 2)
                break;
            step[nd] = (int64_t)(at[i + group] - at[i]);
            num[nd++] = good;
            group *= good;
        }
        push_rect(s, b, list, at[i], l->len.data[i], nd, step, num);
        i += group;
    }
}

/* What a ring reads or writes; most have one footprint, and a kernel many rings: no room to grow. */
static void
footprints(cps_sim *s, block *b, const runlist *l, const rectvec *rows, rectvec *out)
{
    rectvec *all = &b->build->all;
    all->n = 0;
    for (uint32_t k = 0; k < rows->n; k++)
        cps_vec_push(b->scratch, all, rows->data[k]);
    compress(s, b, l, all);
    if (!all->n)
        return;
    out->data = cps_arena_raw(b->arena, all->n * sizeof *out->data);
    out->n = out->cap = all->n;
    memcpy(out->data, all->data, all->n * sizeof *out->data);
}

void
block_close(cps_sim *s, block *b)
{
    for (unsigned e = 0; e < DMA_RINGS; e++) {
        ring *r = &b->ring[e];
        footprints(s, b, &b->build->rd[e], &b->build->rd_rows[e], &r->reads);
        footprints(s, b, &b->build->wr[e], &b->build->wr_rows[e], &r->writes);
        b->engines += r->packets.n != 0;
        for (uint32_t k = 0; k < r->writes.n; k++) {
            if (r->writes.data[k].space == SP_SBUF) {
                int64_t mask = CPS_SBUF_STRIDE - 1;
                int64_t hi = r->writes.data[k].dense ? ((r->writes.data[k].hi - 1) & mask) + 1
                                                     : s->sbuf_bytes;
                s->sbuf_hi = (uint32_t)CPS_MAX((int64_t)s->sbuf_hi, hi);
            }
        }
        for (uint32_t k = 0; k < r->reads.n; k++) {
            if (r->reads.data[k].space == SP_SBUF)
                s->sbuf_hi = CPS_MAX(
                    s->sbuf_hi,
                    (uint32_t)(r->reads.data[k].dense
                                   ? ((r->reads.data[k].hi - 1) & (CPS_SBUF_STRIDE - 1)) + 1
                                   : s->sbuf_bytes));
        }
    }
    cps_arena_destroy(b->scratch);
    b->scratch = NULL;
    b->build = NULL;
}

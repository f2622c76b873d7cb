/* The memories and rows of operands. A row is what one partition contributes: it is gathered
 * into contiguous elements (converted to fp32 where arithmetic wants that) and scattered back.
 *
 * Memory that nothing has written holds all ones (NaN in every float type), and a shadow byte
 * per byte says whether it was written since the run began. Both come block by block, when something
 * reads a block or writes a part of it (stale.c). */
#include "runtime/sim/machine.h"

#include <sys/mman.h>

/* ---- rows ---- */

uint8_t *
opnd_row(cps_sim *s, const opnd *o, unsigned p)
{
    size_t lane = (size_t)o->part + p;
    return o->psum ? s->psum + lane * PSUM_PITCH + o->byte
                   : s->sbuf + lane * s->sbuf_pitch + o->byte;
}

static uint8_t *
init_row(cps_sim *s, const opnd *o, unsigned p)
{
    size_t lane = (size_t)o->part + p;
    return o->psum ? s->psum_init + lane * PSUM_PITCH + o->byte
                   : s->sbuf_init + lane * s->sbuf_pitch + o->byte;
}

/* Elements of a pattern <-> contiguous elements of T. */
#define WALK(T, base, dst, take)                                                               \
    do {                                                                                       \
        const T *in_ = (const T *)(base);                                                      \
        T *out_ = (T *)(dst);                                                                  \
        (void)in_;                                                                             \
        (void)out_;                                                                            \
        size_t k_ = 0;                                                                         \
        uint32_t n0 = o->num[0], n1 = o->nd > 1 ? o->num[1] : 1,                               \
                 n2 = o->nd > 2 ? o->num[2] : 1, n3 = o->nd > 3 ? o->num[3] : 1;               \
        ptrdiff_t t0 = o->step[0], t1 = o->nd > 1 ? o->step[1] : 0,                            \
                  t2 = o->nd > 2 ? o->step[2] : 0, t3 = o->nd > 3 ? o->step[3] : 0;            \
        for (uint32_t i3 = 0; i3 < n3; i3++) {                                                 \
            for (uint32_t i2 = 0; i2 < n2; i2++) {                                             \
                for (uint32_t i1 = 0; i1 < n1; i1++) {                                         \
                    ptrdiff_t at_ =                                                            \
                        (ptrdiff_t)i3 * t3 + (ptrdiff_t)i2 * t2 + (ptrdiff_t)i1 * t1;          \
                    for (uint32_t i0 = 0; i0 < n0; i0++, at_ += t0, k_++)                      \
                        take;                                                                  \
                }                                                                              \
            }                                                                                  \
        }                                                                                      \
    } while (0)

void
load_raw(cps_sim *s, const opnd *o, unsigned p, void *out)
{
    const uint8_t *row = opnd_row(s, o, p);
    if (o->group) {
        const uint16_t *at = indirect_offsets(s, o, p);
        for (uint32_t k = 0; k < o->count; k++)
            memcpy((uint8_t *)out + (size_t)k * o->es, row + (size_t)at[k] * o->es, o->es);
        return;
    }
    if (o->flat) {
        memcpy(out, row, (size_t)o->count * o->es);
        return;
    }
    switch (o->es) {
    case 1:
        WALK(uint8_t, row, out, out_[k_] = in_[at_]);
        break;
    case 2:
        WALK(uint16_t, row, out, out_[k_] = in_[at_]);
        break;
    case 4:
        WALK(uint32_t, row, out, out_[k_] = in_[at_]);
        break;
    default:
        WALK(uint64_t, row, out, out_[k_] = in_[at_]);
        break;
    }
}

void
store_raw(cps_sim *s, const opnd *o, unsigned p, const void *in)
{
    uint8_t *row = opnd_row(s, o, p);
    if (o->group) {
        const uint16_t *at = indirect_offsets(s, o, p);
        for (uint32_t k = 0; k < o->count; k++)
            memcpy(row + (size_t)at[k] * o->es, (const uint8_t *)in + (size_t)k * o->es, o->es);
        return;
    }
    if (o->flat) {
        memcpy(row, in, (size_t)o->count * o->es);
        return;
    }
    switch (o->es) {
    case 1:
        WALK(uint8_t, in, row, out_[at_] = in_[k_]);
        break;
    case 2:
        WALK(uint16_t, in, row, out_[at_] = in_[k_]);
        break;
    case 4:
        WALK(uint32_t, in, row, out_[at_] = in_[k_]);
        break;
    default:
        WALK(uint64_t, in, row, out_[at_] = in_[k_]);
        break;
    }
}

void
load_f32(cps_sim *s, const opnd *o, unsigned p, float *out)
{
    const void *in = opnd_row(s, o, p);
    if (!o->flat) {
        if (o->dtype == CPS_DT_FP32) {
            load_raw(s, o, p, out);
            return;
        }
        load_raw(s, o, p, s->raw);
        in = s->raw;
    }
    if (o->dtype == CPS_DT_FP32)
        memcpy(out, in, (size_t)o->count * 4);
    else if (o->dtype == CPS_DT_BF16)
        s->wide->from_bf16(in, out, o->count);
    else
        cps_to_f32_n((cps_dtype)o->dtype, in, out, o->count);
}

void
narrow_f32(cps_sim *s, cps_dtype t, unsigned lane, const float *in, void *out, size_t n)
{
    if (s->opts.stochastic && cps_dtype_is_float(t)) {
        unsigned es = cps_dtype_bytes(t);
        for (size_t k = 0; k < n; k++)
            cps_from_f32_stochastic(t, (uint8_t *)out + k * es, in[k],
                                    rand_rounding(s->unit, lane));
    } else if (t == CPS_DT_BF16) {
        s->wide->to_bf16(in, out, n);
    } else {
        cps_from_f32_n(t, in, out, n);
    }
}

void
store_f32(cps_sim *s, const opnd *o, unsigned p, const float *in)
{
    if (o->dtype == CPS_DT_FP32) {
        store_raw(s, o, p, in);
        return;
    }
    void *out = o->flat ? (void *)opnd_row(s, o, p) : (void *)s->raw;
    narrow_f32(s, (cps_dtype)o->dtype, o->part + p, in, out, o->count);
    if (!o->flat)
        store_raw(s, o, p, s->raw);
}

/* The quadrant of row p, row after row, waits in the matmul scratch. */
static const uint8_t *
quadrant(cps_sim *s, const opnd *o, unsigned p)
{
    size_t bytes = (size_t)o->count * o->es;
    uint8_t *q = (uint8_t *)s->mm_x;
    for (unsigned l = 0; l < 32 && p % 32 == 0; l++)
        load_raw(s, o, p + l, q + l * bytes);
    return q;
}

void
seen_raw(cps_sim *s, const insn *i, const opnd *o, unsigned p, void *out)
{
    if (!i->xpose) {
        load_raw(s, o, p, out);
        return;
    }
    size_t es = o->es, bytes = (size_t)o->count * es;
    const uint8_t *q = quadrant(s, o, p);
    uint8_t *to = out;
    for (size_t c = 0; c < o->count; c += 32) {
        for (size_t b = 0; b < 32; b++, to += es)
            memcpy(to, q + b * bytes + (c + p % 32) * es, es);
    }
}

void
seen_f32(cps_sim *s, const insn *i, const opnd *o, unsigned p, float *out)
{
    if (!i->xpose) {
        load_f32(s, o, p, out);
        return;
    }
    seen_raw(s, i, o, p, s->raw);
    cps_to_f32_n((cps_dtype)o->dtype, s->raw, out, o->count);
}

void
load_i64(cps_sim *s, const opnd *o, unsigned p, int64_t *out)
{
    load_raw(s, o, p, s->raw);
    for (uint32_t i = 0; i < o->count; i++)
        out[i] = cps_to_i64((cps_dtype)o->dtype, s->raw + (size_t)i * o->es);
}

void
store_i64(cps_sim *s, const opnd *o, unsigned p, const int64_t *in)
{
    for (uint32_t i = 0; i < o->count; i++)
        cps_from_i64((cps_dtype)o->dtype, s->raw + (size_t)i * o->es, in[i]);
    store_raw(s, o, p, s->raw);
}

void
scalar_bits(cps_sim *s, const scalar *c, unsigned rows, uint32_t *out)
{
    for (unsigned p = 0; p < rows; p++) {
        out[p] = c->bits;
        if (c->mode != SC_IMM) {
            uint64_t v = 0;
            load_raw(s, &c->at, p, &v);
            out[p] = (uint32_t)v;
        }
    }
}

void
scalar_f32(cps_sim *s, const scalar *c, unsigned rows, float *out)
{
    const uint8_t *at = c->mode == SC_IMM ? NULL : opnd_row(s, &c->at, 0);
    size_t pitch = c->at.psum ? PSUM_PITCH : s->sbuf_pitch;
    for (unsigned p = 0; p < rows; p++, at += at ? pitch : 0) {
        if (!at)
            out[p] = cps_bits_f32(c->bits);
        else if (c->at.dtype == CPS_DT_FP32)
            memcpy(&out[p], at, 4);
        else
            load_f32(s, &c->at, p, &out[p]);
    }
}

/* ---- footprints and what was written ---- */

rect
opnd_rect(const opnd *o)
{
    int64_t lane = o->psum ? CPS_PSUM_STRIDE : CPS_SBUF_STRIDE;
    rect r = {
        .space = o->psum ? SP_PSUM : SP_SBUF, .base = o->part * lane + o->byte, .run = o->es};
    // What rect_close makes of it. Parts of an operand have their own num[0] and its count.
    if (o->flat && o->rows && (int64_t)o->num[0] * o->es < lane) {
        r.run = (int64_t)o->num[0] * o->es;
        r.nd = o->rows > 1;
        r.step[0] = r.nd ? lane : 0;
        r.num[0] = r.nd ? o->rows : 0;
        r.lo = r.base;
        r.hi = r.base + r.run + (o->rows - 1) * lane;
        r.dense = true;
        return r;
    }
    for (unsigned d = 0; d < o->nd; d++) {
        r.step[r.nd] = (int64_t)o->step[d] * o->es;
        r.num[r.nd++] = o->num[d];
    }
    r.step[r.nd] = lane;
    r.num[r.nd++] = o->rows;
    rect_close(&r);
    return r;
}

bool
opnd_in_memory(const cps_sim *s, const opnd *o)
{
    int64_t limit = o->psum ? PSUM_BYTES : s->sbuf_bytes;
    return o->part + o->rows <= LANES && o->byte + o->lo >= 0 && o->byte + o->hi <= limit;
}

void
mark_row(cps_sim *s, const opnd *o, unsigned p, const uint8_t *take)
{
    uint8_t *row = init_row(s, o, p);
    if (o->flat && !take) {
        memset(row, 1, (size_t)o->count * o->es);
        return;
    }
    if (o->group) {
        const uint16_t *at = indirect_offsets(s, o, p);
        for (uint32_t k = 0; k < o->count; k++) {
            if (!take || take[k])
                memset(row + (size_t)at[k] * o->es, 1, o->es);
        }
        return;
    }
    for (unsigned b = 0; b < o->es; b++)
        WALK(uint8_t, row, row, if (!take || take[k_]) out_[at_ * o->es + b] = 1);
}

void
mark_opnd(cps_sim *s, const opnd *o)
{
    if (!(s->opts.checks & CPS_CHECK_UNINIT))
        return;
    for (unsigned p = 0; p < o->rows; p++)
        mark_row(s, o, p, NULL);
}

/* Shadow of a linear address and how far it reaches without a gap. */
static uint8_t *
shadow_of(cps_sim *s, const rect *r, int64_t at)
{
    switch (r->space) {
    case SP_SBUF:
        return s->sbuf_init + (at >> 18) * s->sbuf_pitch + (at & 0x3FFFF);
    case SP_PSUM:
        return s->psum_init + (at >> 15) * PSUM_PITCH + (at & 0x7FFF);
    default:
        return s->vars.data[r->var].init ? s->vars.data[r->var].init + at : NULL;
    }
}

/* Calls go over runs: f(shadow, bytes) for each run of the set. */
static bool
runs(cps_sim *s, const rect *r, unsigned d, int64_t base, bool set, int64_t *at)
{
    if (d == r->nd) {
        uint8_t *x = shadow_of(s, r, base);
        if (!x)
            return true;
        if (set) {
            memset(x, 1, (size_t)r->run);
            return true;
        }
        const uint8_t *hole = memchr(x, 0, (size_t)r->run);
        if (hole)
            *at = base + (hole - x);
        return !hole;
    }
    for (int64_t i = 0; i < r->num[d]; i++, base += r->step[d]) {
        if (!runs(s, r, d + 1, base, set, at))
            return false;
    }
    return true;
}

void
mark_rect(cps_sim *s, const rect *r)
{
    int64_t at;
    if (s->opts.checks & CPS_CHECK_UNINIT)
        runs(s, r, 0, r->base, true, &at);
}

bool
rect_defined(cps_sim *s, const rect *r, int64_t *at)
{
    return runs(s, r, 0, r->base, false, at);
}

/* ---- life of the memories ---- */

// Larger private variables start as zero pages; the shadow tells what was written all the same.
#define POISON_MAX ((int64_t)256 << 20)

/* Zeroed memory that keeps its place between kernels when it is large enough, in large pages where the host
 * has them: the rows of an operand lie far apart, and each would want a page of its own. */
static uint8_t *
slab(cps_sim *s, unsigned k, size_t bytes)
{
    enum { LARGE = 2 << 20 };
    if (s->slab_bytes[k] < bytes) {
        free(s->slab[k]);
        s->slab_bytes[k] = 0;
        s->slab[k] = calloc(bytes + LARGE, 1);
        if (!s->slab[k])
            return NULL;
        s->slab_bytes[k] = bytes;
    }
    uint8_t *at = (uint8_t *)(((uintptr_t)s->slab[k] + LARGE - 1) / LARGE * LARGE);
#if defined(MADV_HUGEPAGE)
    if (bytes >= LARGE) // a wish: nothing depends on it
        (void)madvise(at, bytes / LARGE * LARGE, MADV_HUGEPAGE);
#endif
    return at;
}

bool
mem_fit(cps_sim *s)
{
    if (s->bare)
        return true;
    s->sbuf_pitch = (uint32_t)cps_round_up(s->sbuf_hi, 64) + PITCH_PAD;
    s->sbuf = slab(s, SLAB_SBUF, LANES * (size_t)s->sbuf_pitch);
    s->sbuf_init = slab(s, SLAB_SBUF_INIT, LANES * (size_t)s->sbuf_pitch);
    return s->sbuf && s->sbuf_init && stale_fit(s);
}

bool
mem_create(cps_sim *s)
{
    const cps_target *t = s->t;
    if (t->sbuf_partitions != LANES || t->psum_banks * t->psum_bank_bytes != PSUM_BYTES ||
        t->sbuf_bytes < 1024 || t->sbuf_bytes > CPS_SBUF_STRIDE || t->dma_engines < 1 ||
        t->dma_engines > DMA_RINGS)
        return false;
    s->sbuf_bytes = (uint32_t)t->sbuf_bytes;
    s->wide = wide_best();
    if (s->bare)
        return true;
    // calloc of large blocks maps zero pages: what a kernel never touches costs nothing
    s->psum_dirty = UINT32_MAX;
    s->psum = slab(s, SLAB_PSUM, LANES * PSUM_PITCH);
    s->psum_init = slab(s, SLAB_PSUM_INIT, LANES * PSUM_PITCH);
    s->psum_fresh = calloc(LANES, PSUM_FRESH);
    for (unsigned i = 0; i < cps_countof(s->row); i++)
        s->row[i] = malloc(ROW_MAX * sizeof(int64_t));
    s->raw = malloc(ROW_MAX * sizeof(int64_t));
    for (unsigned i = 0; i < MAX_OPNDS; i++) {
        s->offsets[i] = malloc(LANES / 16 * ROW_MAX * sizeof(uint16_t));
        if (!s->offsets[i])
            return false;
    }
    s->mm_x = malloc(4 * LANES * 8192 * sizeof(float));
    s->mm_acc = malloc(LANES * 8192 * sizeof(float));
    s->mm_pack = aligned_alloc(64, 4 * LANES * (LANES + 8192) * sizeof(float));
    s->mm_bits = malloc(LANES * 8192 * sizeof(uint32_t));
    s->pool.data = calloc(LANES, POOL_BUFFER * 8);
    engine *pe = &s->eng[CPS_PE];
    bool planes = true;
    for (unsigned q = 0; q < cps_countof(pe->w); q++) {
        pe->w[q] = calloc(LANES * LANES, sizeof(float));
        planes &= pe->w[q] != NULL;
    }
    pe->tag = calloc(LANES, sizeof *pe->tag);
    pe->seed = calloc(16, sizeof *pe->seed);
    pe->wcodes = calloc(LANES, WCODE_PITCH);
    pe->strips.at = aligned_alloc(64, LANES * LANES * sizeof(float));
    for (unsigned i = 0; i < cps_countof(s->row); i++) {
        if (!s->row[i])
            return false;
    }
    return s->psum && s->psum_init && s->psum_fresh && s->raw &&
           s->mm_x && s->mm_acc && s->mm_pack && s->pool.data && s->mm_bits && planes &&
           pe->tag && pe->seed && pe->wcodes && pe->strips.at;
}

void
mem_reset(cps_sim *s)
{
    bool watched = s->opts.checks & CPS_CHECK_UNINIT;
    stale_reset(s);
    s->pool.count = 0;
    if (s->psum_open)
        memset(s->psum_fresh, 0, LANES * PSUM_FRESH);
    s->psum_open = 0;
    for (uint32_t i = 0; i < s->vars.n; i++) {
        hbm_var *v = &s->vars.data[i];
        if ((v->v->kind == CPS_VAR_TMP || v->v->kind == CPS_VAR_SHARED) && v->v->bytes <= POISON_MAX && !v->home)
            memset(v->data, 0xFF, (size_t)v->v->bytes);
        if (!watched) // the shadow stays as it is
            continue;
        if (v->init && !v->clean && !v->home)
            memset(v->init, 0, (size_t)v->v->bytes);
        v->clean = false;
    }
}

void
mem_destroy(cps_sim *s)
{
    for (unsigned k = 0; k < SLABS; k++)
        free(s->slab[k]);
    free(s->stale[0].lanes);
    free(s->psum_fresh);
    for (unsigned i = 0; i < cps_countof(s->row); i++)
        free(s->row[i]);
    free(s->raw);
    for (unsigned i = 0; i < MAX_OPNDS; i++)
        free(s->offsets[i]);
    free(s->mm_x);
    free(s->mm_acc);
    free(s->mm_pack);
    free(s->mm_bits);
    free(s->pool.data);
    for (unsigned q = 0; q < cps_countof(s->eng[CPS_PE].w); q++)
        free(s->eng[CPS_PE].w[q]);
    free(s->eng[CPS_PE].tag);
    free(s->eng[CPS_PE].seed);
    free(s->eng[CPS_PE].wcodes);
    free(s->eng[CPS_PE].strips.at);
}

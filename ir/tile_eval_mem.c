/* Memory of the tile evaluator: views become byte offsets and walks, walks gather, scatter, and
 * keep the record of what was written. Structure was checked before (cps_tile_check); what a
 * register or an index tile adds is checked here. */
#include "ir/tile_eval.h"

#include <stdlib.h>

/* ---- walks ---- */

// Axes are added from the inside out.
void
cps_te_axis(cps_tewalk *w, int64_t step, int64_t num)
{
    if (num == 1)
        return;
    if (w->nd == 0 && step == w->run) {
        w->run *= num;
        return;
    }
    if (w->nd && step == w->step[0] * w->num[0]) {
        w->num[0] *= num;
        return;
    }
    cps_assert(w->nd <= CPS_TILE_DIMS);
    memmove(w->step + 1, w->step, (size_t)w->nd * sizeof *w->step);
    memmove(w->num + 1, w->num, (size_t)w->nd * sizeof *w->num);
    w->step[0] = step;
    w->num[0] = num;
    w->nd++;
}

// Runs `body` with `at`, the offset of each row of the innermost axis, and advances.
#define EACH_ROW(w, at, body)                                                                  \
    do {                                                                                       \
        int64_t idx_[CPS_TILE_DIMS + 1] = {0}, at = 0;                                         \
        int last_ = (w)->nd - 1, k_;                                                           \
        for (;;) {                                                                             \
            body;                                                                              \
            for (k_ = last_ - 1; k_ >= 0; k_--) {                                              \
                at += (w)->step[k_];                                                           \
                if (++idx_[k_] < (w)->num[k_])                                                 \
                    break;                                                                     \
                at -= (w)->step[k_] * (w)->num[k_];                                            \
                idx_[k_] = 0;                                                                  \
            }                                                                                  \
            if (k_ < 0)                                                                        \
                break;                                                                         \
        }                                                                                      \
    } while (0)

#define MOVE(T, to, from)                                                                      \
    for (int64_t i_ = 0; i_ < n; i_++) {                                                       \
        T t_;                                                                                  \
        memcpy(&t_, from, sizeof t_);                                                          \
        memcpy(to, &t_, sizeof t_);                                                            \
    }

void
cps_te_gather(const uint8_t *p, const cps_tewalk *w, uint8_t *out)
{
    if (w->nd == 0) {
        memcpy(out, p, (size_t)w->run);
        return;
    }
    int64_t s = w->step[w->nd - 1], n = w->num[w->nd - 1];
    EACH_ROW(w, at, {
        const uint8_t *q = p + at;
        if (w->run == 4)
            MOVE(uint32_t, out + i_ * 4, q + i_ * s)
        else if (w->run == 2)
            MOVE(uint16_t, out + i_ * 2, q + i_ * s)
        else
            for (int64_t i = 0; i < n; i++)
                memcpy(out + i * w->run, q + i * s, (size_t)w->run);
        out += n * w->run;
    });
}

void
cps_te_scatter(uint8_t *p, const cps_tewalk *w, const uint8_t *in)
{
    if (w->nd == 0) {
        memcpy(p, in, (size_t)w->run);
        return;
    }
    int64_t s = w->step[w->nd - 1], n = w->num[w->nd - 1];
    EACH_ROW(w, at, {
        uint8_t *q = p + at;
        if (w->run == 4)
            MOVE(uint32_t, q + i_ * s, in + i_ * 4)
        else if (w->run == 2)
            MOVE(uint16_t, q + i_ * s, in + i_ * 2)
        else
            for (int64_t i = 0; i < n; i++)
                memcpy(q + i * s, in + i * w->run, (size_t)w->run);
        in += n * w->run;
    });
}

void
cps_te_mark(uint8_t *def, const cps_tewalk *w)
{
    if (!def)
        return;
    if (w->nd == 0) {
        memset(def, 1, (size_t)w->run);
        return;
    }
    int64_t s = w->step[w->nd - 1], n = w->num[w->nd - 1];
    EACH_ROW(w, at, {
        for (int64_t i = 0; i < n; i++)
            memset(def + at + i * s, 1, (size_t)w->run);
    });
}

// Offset of the first byte never written, or -1.
static int64_t
first_hole(const uint8_t *def, const cps_tewalk *w)
{
    if (w->nd == 0) {
        const uint8_t *h = memchr(def, 0, (size_t)w->run);
        return h ? h - def : -1;
    }
    int64_t s = w->step[w->nd - 1], n = w->num[w->nd - 1];
    EACH_ROW(w, at, {
        for (int64_t i = 0; i < n; i++) {
            const uint8_t *h = memchr(def + at + i * s, 0, (size_t)w->run);
            if (h)
                return h - def;
        }
    });
    return -1;
}

bool
cps_te_defined(cps_te *e, const cps_teat *at, int64_t base, const cps_tewalk *w)
{
    if (!at->m->def)
        return true;
    int64_t hole = first_hole(at->m->def + base, w);
    if (hole < 0)
        return true;
    const cps_tbuf *b = cps_tc_buf(e->f, at->v);
    const char *name = b->name ? b->name : "";
    int64_t byte = base + hole;
    if (cps_on_chip(b))
        return cps_te_fail(e, CPS_E8101,
                           "reads byte %lld of partition %lld of '%s' (buffer %u), "
                           "which nothing has written",
                           (long long)(byte % at->m->row), (long long)(byte / at->m->row), name,
                           at->v->buf);
    return cps_te_fail(e, CPS_E8101,
                       "reads byte %lld of '%s' (buffer %u), which nothing has written",
                       (long long)byte, name, at->v->buf);
}

/* ---- buffers and views ---- */

static bool
bring_in(cps_te *e, uint32_t id)
{
    cps_temem *m = &e->mem[id];
    const cps_tbuf *b = &e->f->bufs.data[id];
    if (m->data)
        return true;
    bool chip = cps_on_chip(b);
    int64_t bytes = cps_tbuf_bytes(b), rows = chip ? b->dim[0] : 1;
    m->row = chip ? cps_round_up(CPS_MAX(bytes, 1), 64) : bytes;
    m->owned = true;
    if (bytes < (int64_t)1 << 36) {
        m->data = calloc((size_t)rows * (size_t)CPS_MAX(m->row, 1), 1);
        m->def = calloc((size_t)rows * (size_t)CPS_MAX(m->row, 1), 1);
    }
    if (!m->data || !m->def)
        return cps_te_fail(e, CPS_E5113, "buffer '%s' of %lld bytes is too large to execute",
                           b->name ? b->name : "", (long long)(bytes * rows));
    return true;
}

bool
cps_te_place(cps_te *e, const cps_tview *v, cps_teat *at)
{
    if (!bring_in(e, v->buf))
        return false;
    int64_t off = v->off, es = cps_dtype_bytes(v->dtype), lo, hi;
    *at = (cps_teat){.v = v, .m = &e->mem[v->buf], .n = cps_tview_elems(v), .es = (unsigned)es};
    if (v->reg) {
        const cps_tbuf *b = cps_tc_buf(e->f, v);
        if (!e->reg_set[v->reg])
            return cps_te_fail(e, CPS_E8101, "register %u moves a view before it was set",
                               v->reg);
        off += (int64_t)e->reg[v->reg] * v->reg_step;
        cps_tc_reach(v, v->index ? 1 : 0, &lo, &hi);
        lo += off - v->off;
        hi += off - v->off;
        if (lo < 0 || hi >= cps_tbuf_bytes(b) / es)
            return cps_te_fail(e, CPS_E8102,
                               "register %u, now %d, moves a view of '%s' to elements "
                               "%lld..%lld of %lld",
                               v->reg, e->reg[v->reg], b->name ? b->name : "", (long long)lo,
                               (long long)hi, (long long)(cps_tbuf_bytes(b) / es));
    }
    at->base = v->part * at->m->row + off * es;
    at->w.run = es;
    for (int i = v->nd - 1; i >= 0; i--)
        cps_te_axis(&at->w, v->d[i].step * es, v->d[i].num);
    return true;
}

bool
cps_te_at(cps_te *e, const cps_toper *o, cps_teat *at)
{
    return cps_te_place(e, &e->f->views.data[o->id], at) && cps_te_rows(e, at->n);
}

bool
cps_te_rows(cps_te *e, int64_t elems)
{
    if (elems <= e->room)
        return true;
    e->room = cps_round_up(elems, 1024);
    for (int i = 0; i < CPS_TE_ROWS; i++) {
        free(e->row[i]); // int64 rows use the same memory
        e->row[i] = malloc((size_t)e->room * 8);
    }
    free(e->raw);
    e->raw = malloc((size_t)e->room * 8);
    if (!e->raw || !e->row[CPS_TE_ROWS - 1])
        cps_bug("out of memory");
    return true;
}

/* ---- lanes ---- */

bool
cps_te_load_raw(cps_te *e, const cps_teat *at, unsigned p, uint8_t *out)
{
    int64_t base = at->base + p * at->m->row;
    if (!cps_te_defined(e, at, base, &at->w))
        return false;
    cps_te_gather(at->m->data + base, &at->w, out);
    return true;
}

bool
cps_te_load(cps_te *e, const cps_teat *at, unsigned p, float *out)
{
    int64_t base = at->base + p * at->m->row;
    if (at->w.nd == 0 || at->v->dtype == CPS_DT_FP32) {
        if (!cps_te_defined(e, at, base, &at->w))
            return false;
        if (at->v->dtype == CPS_DT_FP32)
            cps_te_gather(at->m->data + base, &at->w, (uint8_t *)out);
        else
            cps_to_f32_n(at->v->dtype, at->m->data + base, out, (size_t)at->n);
        return true;
    }
    if (!cps_te_load_raw(e, at, p, e->raw))
        return false;
    cps_to_f32_n(at->v->dtype, e->raw, out, (size_t)at->n);
    return true;
}

bool
cps_te_load_i64(cps_te *e, const cps_teat *at, unsigned p, int64_t *out)
{
    if (!cps_te_load_raw(e, at, p, e->raw))
        return false;
    for (int64_t i = 0; i < at->n; i++)
        out[i] = cps_to_i64(at->v->dtype, e->raw + i * at->es);
    return true;
}

void
cps_te_store_raw(cps_te *e, const cps_teat *at, unsigned p, const uint8_t *in)
{
    if (e->staged) {
        memcpy(e->stage + (size_t)p * (size_t)at->n * at->es, in, (size_t)at->n * at->es);
        return;
    }
    int64_t base = at->base + p * at->m->row;
    cps_te_scatter(at->m->data + base, &at->w, in);
    cps_te_mark(at->m->def ? at->m->def + base : NULL, &at->w);
}

void
cps_te_store(cps_te *e, const cps_teat *at, unsigned p, const float *in)
{
    if (at->v->dtype == CPS_DT_FP32) {
        cps_te_store_raw(e, at, p, (const uint8_t *)in);
        return;
    }
    cps_from_f32_n(at->v->dtype, in, e->raw, (size_t)at->n);
    cps_te_store_raw(e, at, p, e->raw);
}

void
cps_te_store_i64(cps_te *e, const cps_teat *at, unsigned p, const int64_t *in)
{
    for (int64_t i = 0; i < at->n; i++)
        cps_from_i64(at->v->dtype, e->raw + i * at->es, in[i]);
    cps_te_store_raw(e, at, p, e->raw);
}

/* ---- results of all lanes at once ---- */

bool
cps_te_stage(cps_te *e, const cps_teat *out, unsigned lanes)
{
    size_t want = (size_t)lanes * (size_t)out->n * out->es;
    if (want > e->stage_room) {
        free(e->stage);
        e->stage = malloc(want);
        if (!e->stage)
            cps_bug("out of memory");
        e->stage_room = want;
    }
    e->staged = true;
    return true;
}

void
cps_te_flush(cps_te *e, const cps_teat *out, unsigned lanes)
{
    if (!e->staged)
        return;
    e->staged = false;
    for (unsigned p = 0; p < lanes; p++)
        cps_te_store_raw(e, out, p, e->stage + (size_t)p * (size_t)out->n * out->es);
}

/* The nanopb stream over mapped bytes and the sinks of wire.h.
 *
 * nanopb reads through `read_mapped`, which moves one cursor shared by a stream and its
 * substreams; a sink therefore knows the address of a payload and steps over it in one move.
 * Unpacked scalars reach a callback in a small stream of nanopb's own, told apart by its read
 * function. */
#include "frontend/onnx/wire.h"

#include <string.h>

#define MAX_STRING 65536u
#define MAX_LIST (1u << 20)

static bool
read_mapped(pb_istream_t *s, pb_byte_t *buf, size_t count)
{
    cps_wire *w = s->state;
    if (count > (size_t)(w->end - w->p))
        return false;
    memcpy(buf, w->p, count);
    w->p += count;
    return true;
}

void
cps_wire_init(cps_wire *w, cps_arena *a, const uint8_t *data, size_t n)
{
    *w = (cps_wire){.arena = a, .base = data, .p = data, .end = data + n};
}

pb_istream_t
cps_wire_stream(cps_wire *w)
{
    pb_istream_t s = {
        .callback = read_mapped, .state = w, .bytes_left = (size_t)(w->end - w->p)};
    return s;
}

bool
cps_wire_fail(cps_wire *w, const char *why)
{
    if (!w->why) {
        w->why = why;
        w->at = (size_t)(w->p - w->base);
    }
    return false;
}

bool
cps_wire_limit(cps_wire *w, const char *why)
{
    if (!w->why)
        w->limit = true;
    return cps_wire_fail(w, why);
}

bool
cps_wire_message(cps_wire *w, pb_istream_t *s, const pb_msgdesc_t *fields, void *msg)
{
    if (pb_decode(s, fields, msg))
        return true;
    return cps_wire_fail(w, PB_GET_ERROR(s));
}

bool
cps_wire_delimited(cps_wire *w, const pb_istream_t *s)
{
    return s->callback == read_mapped || cps_wire_fail(w, "wrong wire type");
}

/* The rest of the stream as a range; the cursor moves behind it. */
static bool
take(cps_wire *w, pb_istream_t *s, const uint8_t **p, size_t *n)
{
    if (!cps_wire_delimited(w, s))
        return false;
    *p = w->p;
    *n = s->bytes_left;
    w->p += s->bytes_left;
    s->bytes_left = 0;
    return true;
}

static const char *
take_string(cps_sink *k, pb_istream_t *s)
{
    const uint8_t *p;
    size_t n;
    if (!take(k->w, s, &p, &n))
        return NULL;
    if (n > (k->max ? k->max : MAX_STRING)) {
        cps_wire_limit(k->w, cps_arena_printf(k->w->arena, "%s is longer than %u bytes",
                                              k->what, k->max ? k->max : MAX_STRING));
        return NULL;
    }
    if (n && memchr(p, 0, n)) {
        cps_wire_fail(k->w, cps_arena_printf(k->w->arena, "%s holds a zero byte", k->what));
        return NULL;
    }
    return cps_arena_strndup(k->w->arena, (const char *)p, n);
}

static bool
list_room(cps_sink *k, uint32_t n)
{
    uint32_t max = k->max ? k->max : MAX_LIST;
    if (n < max)
        return true;
    return cps_wire_limit(
        k->w, cps_arena_printf(k->w->arena, "%s has more than %u elements", k->what, max));
}

bool
cps_sink_string(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    const char *t = take_string(k, s);
    *(const char **)k->to = t;
    return t != NULL;
}

bool
cps_sink_strings(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_strvec *v = k->to;
    const char *t = take_string(k, s);
    if (!t || !list_room(k, v->n))
        return false;
    cps_vec_push(k->w->arena, v, t);
    return true;
}

bool
cps_sink_bytes(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_bytes *b = k->to;
    b->seen = true;
    return take(k->w, s, &b->p, &b->n);
}

/* Packed scalars: the payload has the same bytes whether it came in one piece, in several, or
 * element by element, so pieces are simply joined. */
bool
cps_sink_packed(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_packed *j = k->to;
    j->b.seen = true;
    if (s->callback == read_mapped && !j->b.n)
        return take(k->w, s, &j->b.p, &j->b.n);
    size_t n = s->bytes_left;
    if (j->b.n + n > UINT32_MAX / 2)
        return cps_wire_limit(k->w, "a list of numbers exceeds 2 GiB");
    if (j->b.n && !j->own.n) {
        cps_vec_reserve(k->w->arena, &j->own, j->b.n + n);
        memcpy(j->own.data, j->b.p, j->b.n);
        j->own.n = (uint32_t)j->b.n;
    }
    // Doubling keeps a list that came element by element linear.
    if (j->own.cap < j->own.n + n)
        cps_vec_reserve(k->w->arena, &j->own, 2 * (j->own.n + n));
    if (!pb_read(s, j->own.data + j->own.n, n))
        return cps_wire_fail(k->w, PB_GET_ERROR(s));
    j->own.n += (uint32_t)n;
    j->b.p = j->own.data;
    j->b.n = j->own.n;
    return true;
}

bool
cps_sink_i64s(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_i64vec *v = k->to;
    while (s->bytes_left) {
        uint64_t x;
        if (!list_room(k, v->n))
            return false;
        if (!pb_decode_varint(s, &x))
            return cps_wire_fail(k->w, PB_GET_ERROR(s));
        cps_vec_push(k->w->arena, v, (int64_t)x);
    }
    return true;
}

bool
cps_sink_f32s(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_f32vec *v = k->to;
    while (s->bytes_left) {
        float x;
        if (!list_room(k, v->n))
            return false;
        if (!pb_decode_fixed32(s, &x))
            return cps_wire_fail(k->w, PB_GET_ERROR(s));
        cps_vec_push(k->w->arena, v, x);
    }
    return true;
}

bool
cps_sink_flag(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    const uint8_t *p;
    size_t n;
    *(bool *)k->to = true;
    return take(k->w, s, &p, &n);
}

/* Decoding protocol buffers over a mapped file with nanopb, without copying payloads.
 *
 * A generated message whose fields are callbacks is filled by attaching a sink to each field of
 * interest. Sinks keep strings as copies in the arena (checked for NUL bytes and length), small
 * lists as vectors, and payloads as ranges of the mapped bytes. A range that the writer split
 * is joined in the arena. Wire types are checked; the first problem is kept in words with the
 * byte offset, for the caller to report. */
#ifndef CPS_ONNX_WIRE_H
#define CPS_ONNX_WIRE_H

#include "runtime/base/vec.h"

#include <pb_decode.h>

/* A range of bytes: inside the mapped file, or joined in the arena. */
typedef struct cps_bytes {
    const uint8_t *p;
    size_t n;
    bool seen; /* the field was there, perhaps empty */
} cps_bytes;

/* A list of numbers, still encoded; `own` is used when the writer did not send it in one piece.
 */
typedef struct cps_packed {
    cps_bytes b;
    CPS_VEC(uint8_t) own;
} cps_packed;

typedef CPS_VEC(const char *) cps_strvec;
typedef CPS_VEC(int64_t) cps_i64vec;
typedef CPS_VEC(float) cps_f32vec;

typedef struct cps_wire {
    cps_arena *arena;
    const uint8_t *base, *p, *end; /* p: the next byte nanopb will read */
    const char *why;               /* first problem, NULL while fine */
    size_t at;                     /* its byte offset */
    bool limit;                    /* the problem is a limit of ours, not a malformed file */
} cps_wire;

/* Where one field goes. Lives on the stack of the function that decodes the message. */
typedef struct cps_sink {
    cps_wire *w;
    void *to;
    uint32_t max;     /* most elements of a list, or bytes of a string; 0: the default */
    const char *what; /* for messages: "node name" */
} cps_sink;

void cps_wire_init(cps_wire *w, cps_arena *a, const uint8_t *data, size_t n);
pb_istream_t cps_wire_stream(cps_wire *w);

/* Records the first problem and yields false. `why` must live as long as the wire. */
bool cps_wire_fail(cps_wire *w, const char *why);
bool cps_wire_limit(cps_wire *w, const char *why);
/* pb_decode that records nanopb's own reason when there is none yet. */
bool cps_wire_message(cps_wire *w, pb_istream_t *s, const pb_msgdesc_t *fields, void *msg);
/* True when the field came length-delimited, as strings, bytes and messages must. */
bool cps_wire_delimited(cps_wire *w, const pb_istream_t *s);

typedef bool (*cps_sink_fn)(pb_istream_t *s, const pb_field_t *f, void **arg);
static inline pb_callback_t
cps_sink_on(cps_sink *k, cps_sink_fn fn)
{
    pb_callback_t c;
    c.funcs.decode = fn;
    c.arg = k;
    return c;
}

bool cps_sink_string(pb_istream_t *s, const pb_field_t *f, void **arg);  /* const char * */
bool cps_sink_strings(pb_istream_t *s, const pb_field_t *f, void **arg); /* cps_strvec */
bool cps_sink_bytes(pb_istream_t *s, const pb_field_t *f, void **arg); /* cps_bytes: last one */
bool cps_sink_packed(pb_istream_t *s, const pb_field_t *f, void **arg); /* cps_packed */
bool cps_sink_i64s(pb_istream_t *s, const pb_field_t *f, void **arg);   /* cps_i64vec */
bool cps_sink_f32s(pb_istream_t *s, const pb_field_t *f, void **arg);   /* cps_f32vec */
bool cps_sink_flag(pb_istream_t *s, const pb_field_t *f, void **arg);   /* bool: was there */

#endif

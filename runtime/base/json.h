/* JSON: a streaming writer with stable layout, and a reader that keeps the document as a flat
 * array of nodes in an arena. Integers stay exact (int64); doubles round-trip. */
#ifndef CPS_BASE_JSON_H
#define CPS_BASE_JSON_H

#include "runtime/base/arena.h"
#include "runtime/base/str.h"

/* Writer. Objects and arrays nest; keys are written in the order given (callers sort).
 * `flat` containers stay on one line. */
typedef struct cps_jsonw {
    cps_buf *out;
    int depth;
    uint64_t some;  /* bit per depth: an element was written */
    uint64_t flat;  /* bit per depth: single-line container */
    bool after_key;
} cps_jsonw;

void cps_jsonw_init(cps_jsonw *w, cps_buf *out);
void cps_jsonw_obj(cps_jsonw *w, bool flat);
void cps_jsonw_arr(cps_jsonw *w, bool flat);
void cps_jsonw_end_obj(cps_jsonw *w);
void cps_jsonw_end_arr(cps_jsonw *w);
void cps_jsonw_key(cps_jsonw *w, const char *key);
void cps_jsonw_str(cps_jsonw *w, const char *s);
void cps_jsonw_int(cps_jsonw *w, int64_t v);
/* A key with its value; a NULL string is an empty one. */
void cps_jsonw_put_str(cps_jsonw *w, const char *key, const char *s);
void cps_jsonw_put_int(cps_jsonw *w, const char *key, int64_t v);
void cps_jsonw_num(cps_jsonw *w, double v); /* NaN and infinities become strings */
void cps_jsonw_bool(cps_jsonw *w, bool v);
void cps_jsonw_null(cps_jsonw *w);
void cps_jsonw_raw(cps_jsonw *w, const char *token); /* a number as it was written */
void cps_jsonw_done(cps_jsonw *w); /* final newline */

/* Reader. */
typedef enum cps_json_kind {
    CPS_JSON_NULL,
    CPS_JSON_BOOL,
    CPS_JSON_INT,
    CPS_JSON_NUM,
    CPS_JSON_STR,
    CPS_JSON_ARR,
    CPS_JSON_OBJ
} cps_json_kind;

typedef struct cps_json {
    cps_json_kind kind;
    uint32_t at;       /* byte offset in the text (up to 4 GiB) */
    const char *key;   /* inside an object */
    int64_t i;         /* BOOL, INT */
    double num;        /* INT, NUM */
    const char *str;   /* STR: NUL-terminated, UTF-8; NUM: the number as it was written */
    uint32_t n;        /* ARR, OBJ: members */
    struct cps_json *first, *next; /* children in order; sibling */
} cps_json;

/* Depth is limited to 64. NULL with *why and *at (byte offset) on malformed text. */
const cps_json *cps_json_parse(cps_arena *a, const char *text, size_t n, const char **why,
                               size_t *at);
const cps_json *cps_json_get(const cps_json *obj, const char *key); /* NULL when absent */
/* Typed members with defaults; *ok is cleared (never set) when the member has another kind, or
 * when it is absent and `need` is true. */
int64_t cps_json_int(const cps_json *obj, const char *key, bool need, int64_t dflt, bool *ok);
double cps_json_num(const cps_json *obj, const char *key, bool need, double dflt, bool *ok);
const char *cps_json_str(const cps_json *obj, const char *key, bool need, const char *dflt, bool *ok);

#endif

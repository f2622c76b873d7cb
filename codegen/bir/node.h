/* Building JSON values: what the writer makes and the printer prints. */
#ifndef CPS_CODEGEN_BIR_NODE_H
#define CPS_CODEGEN_BIR_NODE_H

#include "runtime/base/json.h"

static inline cps_json *
cps_bn_new(cps_arena *a, cps_json_kind kind)
{
    cps_json *v = cps_new(a, cps_json);
    v->kind = kind;
    return v;
}

static inline cps_json *
cps_bn_int(cps_arena *a, int64_t i)
{
    cps_json *v = cps_bn_new(a, CPS_JSON_INT);
    v->i = i;
    v->num = (double)i;
    return v;
}

static inline cps_json *
cps_bn_bool(cps_arena *a, bool b)
{
    cps_json *v = cps_bn_new(a, CPS_JSON_BOOL);
    v->i = b;
    return v;
}

static inline cps_json *
cps_bn_str(cps_arena *a, const char *s)
{
    cps_json *v = cps_bn_new(a, CPS_JSON_STR);
    v->str = s;
    return v;
}

/* A float; infinities and NaN are strings, as cps_jsonw_num writes them. */
cps_json *cps_bn_float(cps_arena *a, double f);
/* The number of a node that cps_bn_float may have made, or any integer. */
bool cps_bn_number(const cps_json *v, double *out);

/* Appends a member to an object (key) or an element to an array (key NULL); returns it. */
cps_json *cps_bn_add(cps_json *to, const char *key, cps_json *v);

/* Bytes as lower-case hex, and back: exactly n bytes, or false. */
cps_json *cps_bn_hex(cps_arena *a, const uint8_t *bytes, size_t n);
bool cps_bn_bytes(const cps_json *v, uint8_t *out, size_t n);

#endif

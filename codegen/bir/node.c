/* Building JSON values (node.h). */
#include "codegen/bir/node.h"

#include <math.h>
#include <string.h>

cps_json *
cps_bn_float(cps_arena *a, double f)
{
    if (!isfinite(f))
        return cps_bn_str(a, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
    cps_json *v = cps_bn_new(a, CPS_JSON_NUM);
    v->num = f;
    return v;
}

bool
cps_bn_number(const cps_json *v, double *out)
{
    if (v && v->kind == CPS_JSON_STR)
        return cps_parse_double(v->str, strlen(v->str), out);
    *out = v ? v->num : 0;
    return v && (v->kind == CPS_JSON_INT || v->kind == CPS_JSON_NUM);
}

cps_json *
cps_bn_add(cps_json *to, const char *key, cps_json *v)
{
    cps_json **end = &to->first;
    while (*end)
        end = &(*end)->next;
    *end = v;
    v->key = key;
    to->n++;
    return v;
}

cps_json *
cps_bn_hex(cps_arena *a, const uint8_t *bytes, size_t n)
{
    static const char digit[] = "0123456789abcdef";
    char *s = cps_arena_raw(a, 2 * n + 1);
    for (size_t i = 0; i < n; i++) {
        s[2 * i] = digit[bytes[i] >> 4];
        s[2 * i + 1] = digit[bytes[i] & 15];
    }
    s[2 * n] = 0;
    return cps_bn_str(a, s);
}

bool
cps_bn_bytes(const cps_json *v, uint8_t *out, size_t n)
{
    if (!v || v->kind != CPS_JSON_STR || strlen(v->str) != 2 * n)
        return false;
    for (size_t i = 0; i < 2 * n; i++) {
        char c = v->str[i];
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (d < 0)
            return false;
        out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] << 4 | d : d);
    }
    return true;
}

/* Tensors of the evaluator: between storage bytes of a dtype and binary64 or int64 carriers.
 * Packed dtypes travel as their storage bits in the integer carrier: they can be moved, not
 * computed with. */
#include "ir/ir.h"

cps_tensor
cps_tensor_from(cps_arena *a, const cps_type *type, const void *data)
{
    cps_tensor t = {.type = *type};
    size_t n = (size_t)cps_type_count(type);
    unsigned bytes = cps_dtype_bytes(type->dtype);
    if (cps_dtype_is_float(type->dtype)) {
        t.f = cps_arena_raw(a, (n + 1) * sizeof *t.f);
        cps_to_f64_n(type->dtype, data, t.f, n);
        return t;
    }
    t.i = cps_arena_raw(a, (n + 1) * sizeof *t.i);
    bool packed = cps_dtypes[type->dtype].kind == 'P';
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = (const uint8_t *)data + i * bytes;
        if (packed) {
            t.i[i] = 0;
            memcpy(&t.i[i], p, bytes);
        } else {
            t.i[i] = cps_to_i64(type->dtype, p);
        }
    }
    return t;
}

void
cps_tensor_store(const cps_tensor *t, cps_dtype as, void *dst)
{
    size_t n = (size_t)cps_type_count(&t->type);
    unsigned bytes = cps_dtype_bytes(as);
    if (t->f) {
        cps_from_f64_n(as, t->f, dst, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint8_t *p = (uint8_t *)dst + i * bytes;
        if (cps_dtypes[as].kind == 'P')
            memcpy(p, &t->i[i], bytes);
        else if (cps_dtype_is_int(as))
            cps_from_i64(as, p, t->i[i]);
        else if (t->type.dtype == CPS_DT_U64)
            cps_from_f64(as, p, (double)(uint64_t)t->i[i]);
        else
            cps_from_f64(as, p, (double)t->i[i]);
    }
}

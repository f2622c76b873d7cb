/* TensorProto to constants of the module.
 *
 * Data in the file's bytes or in an external file is referred to in place when it already has
 * the storage form of the IR (little endian, dense); numbers sent as varints and binary64 are
 * converted into the arena. Sizes are checked against the shape before anything is touched.
 * External files are named relative to the model and may not leave its folder. */
#include "frontend/onnx/import.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

typedef struct dtype_row {
    int32_t onnx;
    cps_dtype dtype;
    unsigned bytes;
    const char *name;
} dtype_row;

static const dtype_row dtypes[] = {
    {CPS_ONNX_FLOAT, CPS_DT_FP32, 4, "float"},
    {CPS_ONNX_UINT8, CPS_DT_U8, 1, "uint8"},
    {CPS_ONNX_INT8, CPS_DT_I8, 1, "int8"},
    {CPS_ONNX_UINT16, CPS_DT_U16, 2, "uint16"},
    {CPS_ONNX_INT16, CPS_DT_I16, 2, "int16"},
    {CPS_ONNX_INT32, CPS_DT_I32, 4, "int32"},
    {CPS_ONNX_INT64, CPS_DT_I64, 8, "int64"},
    {CPS_ONNX_STRING, CPS_DT_NONE, 0, "string"},
    {CPS_ONNX_BOOL, CPS_DT_BOOL, 1, "bool"},
    {CPS_ONNX_FLOAT16, CPS_DT_FP16, 2, "float16"},
    {CPS_ONNX_DOUBLE, CPS_DT_FP32, 8, "double"},
    {CPS_ONNX_UINT32, CPS_DT_U32, 4, "uint32"},
    {CPS_ONNX_UINT64, CPS_DT_U64, 8, "uint64"},
    {14, CPS_DT_NONE, 0, "complex64"},
    {15, CPS_DT_NONE, 0, "complex128"},
    {CPS_ONNX_BFLOAT16, CPS_DT_BF16, 2, "bfloat16"},
    {17, CPS_DT_NONE, 0, "float8e4m3fn"},
    {18, CPS_DT_NONE, 0, "float8e4m3fnuz"},
    {19, CPS_DT_NONE, 0, "float8e5m2"},
    {20, CPS_DT_NONE, 0, "float8e5m2fnuz"},
    {21, CPS_DT_NONE, 0, "uint4"},
    {22, CPS_DT_NONE, 0, "int4"},
    {23, CPS_DT_NONE, 0, "float4e2m1"},
};

static const dtype_row *
row_of(int32_t onnx)
{
    for (size_t i = 0; i < cps_countof(dtypes); i++)
        if (dtypes[i].onnx == onnx)
            return &dtypes[i];
    return NULL;
}

cps_dtype
cps_ox_dtype(int32_t onnx)
{
    const dtype_row *r = row_of(onnx);
    return r ? r->dtype : CPS_DT_NONE;
}

const char *
cps_ox_dtype_name(int32_t onnx)
{
    const dtype_row *r = row_of(onnx);
    return r ? r->name : "an unknown type";
}

/* ---- external data ---- */

// Refuses anything that could leave the model's folder: absolute, drive-like, or with "..".
static bool
stays_inside(const char *p)
{
    if (!p[0] || p[0] == '/' || strchr(p, '\\') || strchr(p, ':'))
        return false;
    for (const char *s = p; s;) {
        size_t n = strcspn(s, "/");
        if (n == 2 && s[0] == '.' && s[1] == '.')
            return false;
        s = s[n] ? s + n + 1 : NULL;
    }
    return true;
}

static const cps_file *
open_external(cps_ox *m, const char *what, const char *location)
{
    bool fresh;
    uint64_t *at = cps_map_at_str(&m->external, location, &fresh);
    if (!fresh)
        return *at ? &m->o->files->file.data[*at - 1].map : NULL;
    if (!m->folder || !stays_inside(location)) {
        cps_ox_err(m, CPS_E7005, "%s lies in '%s', outside the model's folder", what, location);
        return NULL;
    }
    cps_file f;
    const char *path = cps_path_join(m->arena, m->folder, location);
    if (!cps_file_open(path, false, &f)) {
        cps_ox_err(m, CPS_E7005, "%s lies in '%s', which cannot be read: %s", what, location,
                   strerror(errno));
        return NULL;
    }
    cps_vec_push(m->arena, &m->o->files->file, ((cps_onnx_file){f, location}));
    *at = m->o->files->file.n;
    return &m->o->files->file.data[*at - 1].map;
}

static bool
external_bytes(cps_ox *m, const cps_onnx_tensor *t, const char *what, int64_t need,
               const uint8_t **p)
{
    const char *location = NULL;
    int64_t offset = 0, length = need;
    for (uint32_t i = 0; i < t->external.n; i++) {
        const cps_onnx_entry *e = &t->external.data[i];
        int64_t *to = strcmp(e->key, "offset") == 0   ? &offset
                      : strcmp(e->key, "length") == 0 ? &length
                                                      : NULL;
        if (strcmp(e->key, "location") == 0)
            location = e->value;
        if (to && (!cps_parse_int(e->value, strlen(e->value), to) || *to < 0))
            return cps_ox_err(m, CPS_E7005, "%s: the %s '%s' is not a count of bytes", what,
                              e->key, e->value);
    }
    if (!location)
        return cps_ox_err(m, CPS_E7005, "%s: external data without a location", what);
    const cps_file *f = open_external(m, what, location);
    if (!f)
        return false;
    if (length != need)
        return cps_ox_err(m, CPS_E7005, "%s needs %" PRId64 " bytes, its entry says %" PRId64,
                          what, need, length);
    if ((uint64_t)offset > f->n || (uint64_t)need > f->n - (uint64_t)offset)
        return cps_ox_err(m, CPS_E7005,
                          "%s: bytes %" PRId64 " to %" PRId64 " of '%s', which has %zu", what,
                          offset, offset + need, location, f->n);
    *p = f->data + offset;
    return true;
}

/* ---- numbers sent one by one ---- */

static bool
varints(cps_ox *m, const cps_packed *k, const char *what, int64_t count, cps_dtype dt,
        uint8_t *dst)
{
    pb_istream_t s = pb_istream_from_buffer(k->b.p, k->b.n);
    unsigned size = cps_dtype_bytes(dt);
    for (int64_t i = 0; i < count; i++) {
        uint64_t v;
        if (!pb_decode_varint(&s, &v))
            return cps_ox_err(m, CPS_E7004,
                              "%s: its data ends after %" PRId64 " of %" PRId64 " elements",
                              what, i, count);
        if (cps_dtype_is_float(dt)) { // 16-bit floats travel as their bits
            uint16_t bits = (uint16_t)v;
            memcpy(dst + (size_t)i * size, &bits, 2);
        } else {
            cps_from_i64(dt, dst + (size_t)i * size, (int64_t)v);
        }
    }
    if (s.bytes_left)
        return cps_ox_err(m, CPS_E7004, "%s: more data than its %" PRId64 " elements", what,
                          count);
    return true;
}

// binary64 rounded once to fp32, the type such constants have in the IR.
static const void *
narrow(cps_ox *m, const uint8_t *p, int64_t count)
{
    float *to = cps_arena_raw(m->arena, (size_t)count * sizeof *to);
    for (int64_t i = 0; i < count; i++) {
        double v;
        memcpy(&v, p + (size_t)i * 8, 8);
        to[i] = (float)v;
        m->narrowed += (double)to[i] != v && !isnan(v);
    }
    return to;
}

cps_val
cps_ox_tensor(cps_ox *m, const cps_onnx_tensor *t, const char *name)
{
    const char *what = cps_arena_printf(m->arena, "tensor '%s'",
                                        t->name[0] ? t->name
                                        : name     ? name
                                                   : "");
    const dtype_row *r = row_of(t->dtype);
    if (!r || r->dtype == CPS_DT_NONE || t->strings) {
        cps_ox_err(m, CPS_E7012, "%s has elements of %s", what,
                   t->strings ? "string" : cps_ox_dtype_name(t->dtype));
        return 0;
    }
    if (t->segment) {
        cps_ox_err(m, CPS_E7004, "%s is sent in segments", what);
        return 0;
    }
    if (!cps_ox_shape_ok(m, (int)t->dim.n, t->dim.data))
        return 0;
    cps_type type = cps_type_make(r->dtype, (int)t->dim.n, t->dim.data);
    int64_t count = cps_type_count(&type), need = count * r->bytes;
    const uint8_t *p = NULL;
    bool wide = r->onnx == CPS_ONNX_DOUBLE;
    const cps_packed *fixed = r->onnx == CPS_ONNX_FLOAT ? &t->f32 : wide ? &t->f64 : NULL;
    const cps_packed *var = r->onnx == CPS_ONNX_INT64 ? &t->i64
                            : r->onnx == CPS_ONNX_UINT32 || r->onnx == CPS_ONNX_UINT64
                                ? &t->u64
                                : &t->i32;
    if (t->location == 1) {
        if (!external_bytes(m, t, what, need, &p))
            return 0;
    } else if (t->raw.seen || (fixed && fixed->b.seen)) {
        const cps_bytes *b = t->raw.seen ? &t->raw : &fixed->b;
        if (b->n != (uint64_t)need) {
            cps_ox_err(m, CPS_E7004, "%s has %zu bytes of data, its shape needs %" PRId64, what,
                       b->n, need);
            return 0;
        }
        p = b->p;
    } else if (!fixed && var->b.seen) {
        // A varint has at least one byte: a wrong count is refused before memory is asked for.
        if ((uint64_t)count > var->b.n) {
            cps_ox_err(m, CPS_E7004, "%s: its data ends before %" PRId64 " elements", what,
                       count);
            return 0;
        }
        uint8_t *to = cps_arena_raw(m->arena, (size_t)need);
        if (!varints(m, var, what, count, r->dtype, to))
            return 0;
        p = to;
    } else if (count) {
        cps_ox_err(m, CPS_E7004, "%s has no data, its shape needs %" PRId64 " bytes", what,
                   need);
        return 0;
    }
    const void *data = wide ? narrow(m, p, count) : (const void *)p;
    if (!data)
        data = cps_arena_alloc(m->arena, 1); // no elements
    if (r->dtype == CPS_DT_BOOL) // any value but 0 is true in ONNX Runtime; ours are 0 and 1
        for (int64_t i = 0; i < count; i++)
            if (((const uint8_t *)data)[i] > 1) {
                cps_ox_err(m, CPS_E7004, "%s: element %" PRId64 " of a bool is %d", what, i,
                           ((const uint8_t *)data)[i]);
                return 0;
            }
    return cps_b_const(&m->b, type, data, name ? name : t->name[0] ? t->name : NULL);
}

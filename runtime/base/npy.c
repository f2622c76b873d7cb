/* .npy files: the header's Python literal in and out, and the data's conversions.
 *
 * In: a file in memory, or elements of a dtype. Out: a description that points into the file,
 * or the bytes of a file of format 1.0 with its data on a 64-byte boundary. Reads
 * formats 1.0, 2.0 and 3.0, little endian or byte-sized, C order. Structured types, big endian,
 * complex, text and object arrays are refused with the reason. Sizes are checked for overflow
 * before they are used. Format: NumPy documentation, numpy.lib.format. */
#include "runtime/base/npy.h"

#include <limits.h>
#include <math.h>
#include <string.h>

typedef struct npy_type {
    const char *descr; // without the byte order
    cps_dtype dtype;   // NONE: binary64
    unsigned bytes;
} npy_type;

static const npy_type types[] = {
    {"f2", CPS_DT_FP16, 2}, {"f4", CPS_DT_FP32, 4}, {"f8", CPS_DT_NONE, 8},
    {"i1", CPS_DT_I8, 1},   {"i2", CPS_DT_I16, 2},  {"i4", CPS_DT_I32, 4},
    {"i8", CPS_DT_I64, 8},  {"u1", CPS_DT_U8, 1},   {"u2", CPS_DT_U16, 2},
    {"u4", CPS_DT_U32, 4},  {"u8", CPS_DT_U64, 8},  {"b1", CPS_DT_BOOL, 1},
};

// ---- reading ----

typedef struct scan {
    const char *p, *end;
    const char *why;
} scan;

static bool
fail(scan *s, const char *why)
{
    if (!s->why)
        s->why = why;
    return false;
}

static void
skip_blanks(scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static bool
take(scan *s, char c)
{
    skip_blanks(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static bool
take_word(scan *s, const char *w)
{
    skip_blanks(s);
    size_t n = strlen(w);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, w, n) != 0)
        return false;
    s->p += n;
    return true;
}

// A Python string without escapes into buf.
static bool
take_string(scan *s, char *buf, size_t size)
{
    skip_blanks(s);
    if (s->p == s->end || (*s->p != '\'' && *s->p != '"'))
        return false;
    char quote = *s->p++;
    size_t n = 0;
    for (; s->p < s->end && *s->p != quote; s->p++) {
        if (n + 1 >= size || *s->p == '\\')
            return false;
        buf[n++] = *s->p;
    }
    buf[n] = 0;
    return s->p < s->end && *s->p++ == quote;
}

static bool
read_descr(scan *s, cps_npy *out, unsigned *bytes)
{
    char d[16];
    skip_blanks(s);
    if (s->p < s->end && *s->p == '[')
        return fail(s, "structured types have no tensor form");
    if (!take_string(s, d, sizeof(d)))
        return fail(s, "'descr' is not a type string");
    if (d[0] == '>')
        return fail(s, "the data is big endian; only little endian is read");
    const char *name = d + (d[0] == '<' || d[0] == '|' || d[0] == '=');
    for (size_t i = 0; i < cps_countof(types); i++)
        if (cps_streq(types[i].descr, name)) {
            out->dtype = types[i].dtype;
            out->f64 = out->dtype == CPS_DT_NONE;
            *bytes = types[i].bytes;
            return true;
        }
    return fail(s, "'descr' is not one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1");
}

static bool
read_shape(scan *s, cps_npy *out)
{
    if (!take(s, '('))
        return fail(s, "'shape' is not a tuple");
    bool comma = true; // also: something was read since, so another number needs one
    while (!take(s, ')')) {
        skip_blanks(s);
        const char *p = s->p;
        while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
            s->p++;
        if (s->p == p || !comma)
            return fail(s, "'shape' is not a tuple of sizes");
        if (out->rank == CPS_MAX_RANK)
            return fail(s, "more than 8 axes");
        if (!cps_parse_int(p, (size_t)(s->p - p), &out->dim[out->rank]))
            return fail(s, "an axis is too long");
        out->rank++;
        if (s->p < s->end && *s->p == 'L') // long integers of Python 2
            s->p++;
        comma = take(s, ',');
    }
    if (out->rank == 1 && !comma)
        return fail(s, "'shape' is not a tuple");
    return true;
}

static bool
read_member(scan *s, const char *key, cps_npy *out, unsigned *bytes)
{
    if (cps_streq(key, "descr"))
        return read_descr(s, out, bytes);
    if (cps_streq(key, "shape"))
        return read_shape(s, out);
    if (take_word(s, "False"))
        return true;
    return fail(s, take_word(s, "True") ? "the data is in Fortran order; only C order is read"
                                        : "'fortran_order' is neither True nor False");
}

static bool
read_dict(scan *s, cps_npy *out, unsigned *bytes)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned seen = 0;
    if (!take(s, '{'))
        return fail(s, "the header is not a dictionary");
    bool comma = true;
    while (!take(s, '}')) {
        char key[20];
        size_t k = 0;
        if (!comma || !take_string(s, key, sizeof(key)) || !take(s, ':'))
            return fail(s, "the header is not a dictionary");
        while (k < cps_countof(keys) && !cps_streq(keys[k], key))
            k++;
        if (k == cps_countof(keys))
            return fail(s, "the header has an unknown key");
        if (seen >> k & 1)
            return fail(s, "the header has a key twice");
        seen |= 1u << k;
        if (!read_member(s, key, out, bytes))
            return false;
        comma = take(s, ',');
    }
    if (seen != 7)
        return fail(s, "the header lacks 'descr', 'fortran_order' or 'shape'");
    skip_blanks(s);
    return s->p == s->end || fail(s, "text after the header's dictionary");
}

// Elements, and whether they fill the rest of the file exactly.
static bool
check_size(scan *s, cps_npy *out, unsigned bytes, size_t have)
{
    int64_t count = 1;
    bool over = false, zero = false;
    for (int i = 0; i < out->rank; i++) {
        zero = zero || out->dim[i] == 0;
        over = over || __builtin_mul_overflow(count, CPS_MAX(out->dim[i], (int64_t)1), &count);
    }
    size_t need;
    over = over || __builtin_mul_overflow((uint64_t)count, (uint64_t)bytes, &need) ||
           need > PTRDIFF_MAX;
    if (over)
        return fail(s, "the shape is too large");
    out->count = zero ? 0 : (size_t)count;
    need = out->count * bytes;
    if (have < need)
        return fail(s, "the file ends before the data does");
    return have == need || fail(s, "bytes follow the data");
}

static bool
read_head(const uint8_t *b, size_t n, size_t *begin, size_t *len, scan *s)
{
    if (n < 10 || memcmp(b, "\x93NUMPY", 6) != 0)
        return fail(s, "it does not begin as a .npy file");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return fail(s, "a format other than 1.0, 2.0 and 3.0");
    *begin = b[6] == 1 ? 10 : 12;
    if (n < *begin)
        return fail(s, "the file ends inside its header");
    *len = b[8] | (size_t)b[9] << 8;
    if (b[6] > 1)
        *len |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    return *len <= n - *begin || fail(s, "the file ends inside its header");
}

bool
cps_npy_parse(const void *bytes, size_t n, cps_npy *out, const char **why)
{
    const uint8_t *b = bytes;
    scan s = {0};
    size_t begin, len;
    unsigned elem = 0;
    *out = (cps_npy){0};
    bool ok = read_head(b, n, &begin, &len, &s);
    if (ok) {
        s.p = (const char *)b + begin;
        s.end = s.p + len;
        ok = read_dict(&s, out, &elem) && check_size(&s, out, elem, n - begin - len);
        out->data = b + begin + len;
    }
    if (!ok && why)
        *why = s.why;
    return ok;
}

// ---- writing ----

static size_t
count_of(int rank, const int64_t *dim)
{
    cps_assert(rank >= 0 && rank <= CPS_MAX_RANK);
    size_t n = 1;
    for (int i = 0; i < rank; i++) {
        cps_assert(dim[i] >= 0);
        cps_assert(!__builtin_mul_overflow(n, (size_t)dim[i], &n));
    }
    return n;
}

static void
put_header(cps_buf *out, const char *descr, int rank, const int64_t *dim)
{
    cps_buf h = {0};
    cps_buf_printf(&h, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                   descr[1] == '1' ? '|' : '<', descr);
    for (int i = 0; i < rank; i++)
        cps_buf_printf(&h, "%s%lld", i ? ", " : "", (long long)dim[i]);
    cps_buf_puts(&h, rank == 1 ? ",), }" : "), }");
    while ((10 + h.n + 1) % 64)
        cps_buf_putc(&h, ' ');
    cps_buf_putc(&h, '\n');
    const uint8_t head[10] = {0x93, 'N', 'U', 'M',          'P',
                              'Y',  1,   0,   (uint8_t)h.n, (uint8_t)(h.n >> 8)};
    cps_buf_put(out, head, sizeof(head));
    cps_buf_put(out, h.data, h.n);
    cps_buf_fini(&h);
}

// Packed containers are stored as their bits.
static cps_dtype
bits_type(cps_dtype t)
{
    if (cps_dtypes[t].kind != 'P')
        return t;
    return cps_dtypes[t].bits == 32 ? CPS_DT_U32 : CPS_DT_U16;
}

static void
put_widened(cps_buf *out, cps_dtype t, size_t n, const void *data)
{
    float part[1024];
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i += cps_countof(part)) {
        size_t k = CPS_MIN(n - i, cps_countof(part));
        cps_to_f32_n(t, p + i * cps_dtype_bytes(t), part, k);
        cps_buf_put(out, part, k * sizeof(float));
    }
}

void
cps_npy_format(cps_buf *out, cps_dtype dtype, int rank, const int64_t *dim, const void *data)
{
    cps_assert(dtype > CPS_DT_NONE && dtype < CPS_DT_COUNT);
    size_t n = count_of(rank, dim);
    dtype = bits_type(dtype);
    for (size_t i = 0; i < cps_countof(types); i++)
        if (types[i].dtype == dtype) {
            put_header(out, types[i].descr, rank, dim);
            cps_buf_put(out, data, n * types[i].bytes);
            return;
        }
    put_header(out, "f4", rank, dim);
    put_widened(out, dtype, n, data);
}

void
cps_npy_format_f64(cps_buf *out, int rank, const int64_t *dim, const double *data)
{
    put_header(out, "f8", rank, dim);
    cps_buf_put(out, data, count_of(rank, dim) * sizeof(double));
}

// ---- converting ----

// An integer as binary64, rounded to odd, so that the next rounding is the only one that
// counts.
static double
odd_f64(uint64_t mag, bool neg)
{
    double d = (double)mag;
    if (mag >> 53) {
        int drop = 11 - __builtin_clzll(mag);
        uint64_t low = mag & (((uint64_t)1 << drop) - 1);
        d = (double)((mag - low) | (low ? (uint64_t)1 << drop : 0));
    }
    return neg ? -d : d;
}

static bool
is_integral_in(double v, cps_dtype want)
{
    if (v != floor(v)) // NaN and fractions; infinities fail the range
        return false;
    int bits = cps_dtypes[want].bits;
    if (cps_dtypes[want].kind == 'B')
        return v == 0 || v == 1;
    if (cps_dtypes[want].kind == 'U')
        return v >= 0 && v < ldexp(1, bits);
    return v >= -ldexp(1, bits - 1) && v < ldexp(1, bits - 1);
}

static const char *
float_to_int(double v, cps_dtype want, void *dst)
{
    if (!is_integral_in(v, want))
        return cps_dtypes[want].kind == 'B' ? "a value other than 0 and 1 for a boolean"
               : v == floor(v)              ? "a value outside the range of the integer type"
                                            : "a value with a fraction for an integer type";
    cps_from_f64(want, dst, v);
    return NULL;
}

static const char *
int_to_any(const cps_npy *f, const void *src, cps_dtype want, void *dst)
{
    int64_t v = cps_to_i64(f->dtype, src);
    bool neg = v < 0 && f->dtype != CPS_DT_U64;
    if (!cps_dtype_is_int(want)) {
        cps_from_f64(want, dst, odd_f64(neg ? 0 - (uint64_t)v : (uint64_t)v, neg));
        return NULL;
    }
    char kind = cps_dtypes[want].kind;
    int bits = cps_dtypes[want].bits - (kind == 'S');
    if (kind == 'B' ? (uint64_t)v > 1
                    : (neg && kind == 'U') || (uint64_t)(neg ? ~v : v) >> (bits - 1) > 1)
        return kind == 'B' ? "a value other than 0 and 1 for a boolean"
                           : "a value outside the range of the integer type";
    cps_from_i64(want, dst, v);
    return NULL;
}

bool
cps_npy_convert(const cps_npy *f, cps_dtype want, void *dst, size_t *at, const char **why)
{
    const uint8_t *src = f->data;
    uint8_t *out = dst;
    cps_assert(want > CPS_DT_NONE && want < CPS_DT_COUNT);
    *at = 0;
    if (cps_dtypes[want].kind == 'P' && f->dtype != bits_type(want)) {
        *why = "a packed type is read from the unsigned integers of its bits";
        return false;
    }
    want = bits_type(want);
    if (f->dtype == want && want != CPS_DT_BOOL) {
        if (f->count)
            memcpy(out, src, f->count * cps_dtype_bytes(want));
        return true;
    }
    if (!cps_dtype_is_int(want) && f->dtype == CPS_DT_FP32) {
        // The common case, in bulk; the data of a mapped file need not be aligned for float.
        float part[1024];
        for (size_t i = 0; i < f->count; i += cps_countof(part)) {
            size_t k = CPS_MIN(f->count - i, cps_countof(part));
            memcpy(part, src + i * sizeof(float), k * sizeof(float));
            cps_from_f32_n(want, part, out + i * cps_dtype_bytes(want), k);
        }
        return true;
    }
    size_t step = f->f64 ? 8 : cps_dtype_bytes(f->dtype);
    for (size_t i = 0; i < f->count; i++) {
        const void *p = src + i * step;
        void *q = out + i * cps_dtype_bytes(want);
        const char *bad = NULL;
        if (f->f64 || cps_dtype_is_float(f->dtype)) {
            double v;
            if (f->f64)
                memcpy(&v, p, 8);
            else
                v = cps_to_f64(f->dtype, p);
            if (cps_dtype_is_int(want))
                bad = float_to_int(v, want, q);
            else
                cps_from_f64(want, q, v);
        } else {
            bad = int_to_any(f, p, want, q);
        }
        if (bad) {
            *at = i;
            *why = bad;
            return false;
        }
    }
    return true;
}

/* Numbers: the dtype table and every conversion between storage bits and binary32 / binary64.
 * One truth for folding, evaluators, simulator, .npy files and tests.
 *
 * Narrowing is round-to-nearest-even. Floats that overflow become infinity where the type has
 * one, NaN for fp8e4m3fn and fp8e8m0, the largest value for fp4e2m1 (isa-semantics 8.5, 8.8).
 * Float to integer rounds to nearest even, then saturates; NaN gives 0 (isa-semantics 8.3).
 * bool is 1 for anything but zero, NaN included (NumPy, ONNX Cast). e8m0 has neither zero nor sign:
 * those become NaN. A narrowed NaN keeps its sign and loses its payload. */
#ifndef CPS_BASE_NUM_H
#define CPS_BASE_NUM_H

#include "runtime/base/base.h"

typedef enum cps_dtype {
    CPS_DT_NONE = 0,
#define CPS_DTYPE(id, name, alias, bits, wire, kind) CPS_DT_##id,
#include "runtime/base/dtype.def"
    CPS_DT_COUNT
} cps_dtype;

typedef struct cps_dtype_row {
    const char *name;
    const char *alias; /* blank-separated */
    uint8_t bits;
    int16_t wire; /* ISA tag, -1 for none */
    char kind;    /* F S U B P */
} cps_dtype_row;

extern const cps_dtype_row cps_dtypes[CPS_DT_COUNT];

cps_dtype cps_dtype_parse(const char *name, size_t n); /* CPS_DT_NONE when unknown */
static inline const char *
cps_dtype_name(cps_dtype t)
{
    return cps_dtypes[t].name;
}
/* Bytes of one stored element; fp4e2m1 counts as one byte when stored alone. */
static inline unsigned
cps_dtype_bytes(cps_dtype t)
{
    return t == CPS_DT_FP4E2M1 ? 1u : cps_dtypes[t].bits / 8u;
}
static inline bool
cps_dtype_is_float(cps_dtype t)
{
    return cps_dtypes[t].kind == 'F';
}
static inline bool
cps_dtype_is_int(cps_dtype t)
{
    return cps_dtypes[t].kind == 'S' || cps_dtypes[t].kind == 'U' || cps_dtypes[t].kind == 'B';
}

uint32_t cps_f32_bits(float f);
float cps_bits_f32(uint32_t b);

/* One element: storage bits <-> binary32. Integers go through binary32 as the engines do
 * (32-bit integers above 2^24 round). 64-bit integers: use the _i64 and _f64 forms. */
float cps_to_f32(cps_dtype t, const void *p);
void cps_from_f32(cps_dtype t, void *p, float v);
/* Stochastic rounding: away from zero when `bits` / 2^32 is less than the distance from the nearer
 * value below in magnitude, so that uniform bits round up in proportion to it (NKI). Floats with a
 * sign only; other types, exact values, infinities and NaN go as in cps_from_f32. */
void cps_from_f32_stochastic(cps_dtype t, void *p, float v, uint32_t bits);
double cps_to_f64(cps_dtype t, const void *p);
void cps_from_f64(cps_dtype t, void *p, double v); /* one rounding, not via binary32 */
int64_t cps_to_i64(cps_dtype t, const void *p);    /* integer types only */
void cps_from_i64(cps_dtype t, void *p, int64_t v); /* integer types only; wraps */

/* n contiguous elements. */
void cps_to_f32_n(cps_dtype t, const void *src, float *dst, size_t n);
void cps_from_f32_n(cps_dtype t, const float *src, void *dst, size_t n);
void cps_to_f64_n(cps_dtype t, const void *src, double *dst, size_t n);
void cps_from_f64_n(cps_dtype t, const double *src, void *dst, size_t n);

/* binary32 rounded to `t` and widened again. */
float cps_round_f32(cps_dtype t, float v);
double cps_round_f64(cps_dtype t, double v);

#endif

/* .npy files (NumPy format 1.0, C order). Narrow floats travel widened to <f4 (contract). */
#ifndef CPS_BASE_NPY_H
#define CPS_BASE_NPY_H

#include "runtime/base/num.h"
#include "runtime/base/str.h"

#define CPS_MAX_RANK 8

typedef struct cps_npy {
    cps_dtype dtype; /* of the file: fp32, fp64 is given as CPS_DT_NONE with f64 set, ints, bool */
    bool f64;
    int rank;
    int64_t dim[CPS_MAX_RANK];
    size_t count;
    const void *data; /* inside the bytes given */
} cps_npy;

/* Reads a header out of memory. False with a reason in *why on anything malformed. */
bool cps_npy_parse(const void *bytes, size_t n, cps_npy *out, const char **why);
/* Appends a whole file: `data` holds elements of `dtype`; bf16, tf32, fp8, fp4 are widened. */
void cps_npy_format(cps_buf *out, cps_dtype dtype, int rank, const int64_t *dim, const void *data);
/* The same from doubles, written as <f8: unrounded references. */
void cps_npy_format_f64(cps_buf *out, int rank, const int64_t *dim, const double *data);
/* Converts the file's elements to `want` (round to nearest even); false when it cannot
 * (float data for an integer type that would not be exact, say); *why is the reason, *at the
 * row-major index of the element. Packed containers travel as their raw u32 / u16 bits. */
bool cps_npy_convert(const cps_npy *f, cps_dtype want, void *dst, size_t *at, const char **why);

#endif

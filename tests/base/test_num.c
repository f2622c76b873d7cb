/* Numbers: the table, corner values by hand, and properties over all codes. The comparison with
 * NumPy and ml_dtypes is oracle_num.py. */
#include "runtime/base/num.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

static cps_dtype
named(const char *s)
{
    return cps_dtype_parse(s, strlen(s));
}

static void
table(void)
{
    CHECK_INT(named("bf16"), CPS_DT_BF16);
    CHECK_INT(named("float8_e4m3fn"), CPS_DT_FP8E4M3FN);
    CHECK_INT(named("f16"), CPS_DT_FP16);
    CHECK_INT(named("half"), CPS_DT_FP16);
    CHECK_INT(named("pred"), CPS_DT_BOOL);
    CHECK_INT(named("fp8e4m3fn_x4"), CPS_DT_FP8E4M3FN_X4);
    static const char *const bad[] = {"",      " ",           "f",    "bf",
                                      "bf16 ", "f16 float16", "none", "float1"};
    for (size_t i = 0; i < cps_countof(bad); i++)
        CHECK_INT(named(bad[i]), CPS_DT_NONE);
    for (int t = 1; t < CPS_DT_COUNT; t++)
        CHECK_INT(named(cps_dtype_name((cps_dtype)t)), t);
    CHECK_INT(cps_dtype_bytes(CPS_DT_FP4E2M1), 1);
    CHECK_INT(cps_dtype_bytes(CPS_DT_FP4E2M1_X4), 2);
    CHECK_INT(cps_dtype_bytes(CPS_DT_I64), 8);
    CHECK(cps_dtype_is_float(CPS_DT_TF32) && !cps_dtype_is_float(CPS_DT_FP8E5M2_X4));
    CHECK(cps_dtype_is_int(CPS_DT_BOOL) && !cps_dtype_is_int(CPS_DT_BF16));
    CHECK_INT(cps_dtypes[CPS_DT_FP8E4M3].wire, 0x0E);
    CHECK(cps_f32_bits(1.0f) == 0x3f800000 && cps_bits_f32(0x40000000) == 2.0f);
}

static uint64_t
code_of(cps_dtype t, double v)
{
    uint64_t a = 0, b = 0;
    cps_from_f32(t, &a, (float)v);
    cps_from_f64(t, &b, v);
    if ((double)(float)v == v || isnan(v))
        CHECK(a == b);
    return b;
}

static void
corners(void)
{
    static const struct {
        cps_dtype t;
        double v;
        uint64_t code;
    } row[] = {
        {CPS_DT_FP8E4M3, 240, 0x77},
        {CPS_DT_FP8E4M3, 247.9, 0x77},
        {CPS_DT_FP8E4M3, 248, 0x78},
        {CPS_DT_FP8E4M3, -1e30, 0xf8},
        {CPS_DT_FP8E4M3, 0x1p-9, 0x01},
        {CPS_DT_FP8E4M3, 0x1p-10, 0x00},
        {CPS_DT_FP8E4M3, 0x1.8p-9, 0x02},
        {CPS_DT_FP8E4M3FN, 448, 0x7e},
        {CPS_DT_FP8E4M3FN, 464, 0x7e},
        {CPS_DT_FP8E4M3FN, 465, 0x7f},
        {CPS_DT_FP8E4M3FN, -1e9, 0xff},
        {CPS_DT_FP8E5M2, 57344, 0x7b},
        {CPS_DT_FP8E5M2, 61440, 0x7c},
        {CPS_DT_FP8E5M2, 0x1p-16, 0x01},
        {CPS_DT_FP8E3M4, 15.5, 0x6f},
        {CPS_DT_FP8E3M4, 15.75, 0x70},
        {CPS_DT_FP8E3M4, 0x1p-6, 0x01},
        {CPS_DT_FP8E8M0, 1, 0x7f},
        {CPS_DT_FP8E8M0, 0x1p-127, 0x00},
        {CPS_DT_FP8E8M0, 0, 0xff},
        {CPS_DT_FP8E8M0, -1, 0xff},
        {CPS_DT_FP8E8M0, 0x1p127, 0xfe},
        {CPS_DT_FP8E8M0, 0x1.8p127, 0xff},
        {CPS_DT_FP4E2M1, 6, 0x7},
        {CPS_DT_FP4E2M1, 1e30, 0x7},
        {CPS_DT_FP4E2M1, -5, 0xe},
        {CPS_DT_FP4E2M1, 0.25, 0x0},
        {CPS_DT_FP4E2M1, 0.75, 0x2},
        {CPS_DT_BF16, 3.4e38, 0x7f80},
        {CPS_DT_BF16, 1.00390625, 0x3f80},
        {CPS_DT_BF16, 1.01171875, 0x3f82},
        {CPS_DT_FP16, 65519.99, 0x7bff},
        {CPS_DT_FP16, 65520, 0x7c00},
        {CPS_DT_FP16, 0x1p-25, 0},
        {CPS_DT_TF32, 1.00048828125, 0x3f800000},
        {CPS_DT_TF32, 1.001, 0x3f802000},
        {CPS_DT_I8, 127.5, 127},
        {CPS_DT_I8, -128.5, 0x80},
        {CPS_DT_I8, 2.5, 2},
        {CPS_DT_I8, 3.5, 4},
        {CPS_DT_U8, -1, 0},
        {CPS_DT_U8, 1e9, 255},
        {CPS_DT_I32, 1e10, 0x7fffffff},
        {CPS_DT_U32, 4294967294.5, 0xfffffffe},
        {CPS_DT_I64, 1e300, INT64_MAX},
        {CPS_DT_U64, 1e300, UINT64_MAX},
        {CPS_DT_I16, (double)NAN, 0},
        {CPS_DT_BOOL, 0.25, 1},
        // One rounding: by way of binary32 this would be a tie and go down.
        {CPS_DT_BF16, 1.00390625 + 0x1p-40, 0x3f81},
        {CPS_DT_FP16, 1 + 0x1p-11 + 0x1p-50, 0x3c01},
    };
    for (size_t i = 0; i < cps_countof(row); i++) {
        uint64_t got = code_of(row[i].t, row[i].v);
        if (got != row[i].code)
            fprintf(stderr, "%s of %g\n", cps_dtype_name(row[i].t), row[i].v);
        CHECK_INT(got, row[i].code);
    }
}

// Every code of the small floats survives widening and narrowing; order is kept.
static void
all_codes(void)
{
    for (int t = 1; t < CPS_DT_COUNT; t++) {
        if (!cps_dtype_is_float((cps_dtype)t) || cps_dtypes[t].bits > 16)
            continue;
        unsigned n = 1u << cps_dtypes[t].bits;
        bool round = true, order = true;
        float before = -INFINITY;
        for (unsigned c = 0; c < n; c++) {
            float f = cps_to_f32((cps_dtype)t, &c);
            uint64_t back = 0;
            cps_from_f32((cps_dtype)t, &back, f);
            if (isnan(f)) {
                float again = cps_to_f32((cps_dtype)t, &back);
                round = round && isnan(again);
                continue;
            }
            round = round && back == c && cps_to_f64((cps_dtype)t, &c) == (double)f &&
                    cps_round_f32((cps_dtype)t, f) == f && cps_round_f64((cps_dtype)t, f) == f;
            if (c < n / 2) {
                order = order && f > before;
                before = f;
            }
        }
        CHECK(round);
        CHECK(order);
    }
}

static void
integers(void)
{
    int64_t v = -2;
    uint8_t cell[8];
    cps_from_i64(CPS_DT_U8, cell, 0x1ff);
    CHECK_INT(cps_to_i64(CPS_DT_U8, cell), 0xff);
    cps_from_i64(CPS_DT_I8, cell, 0x1ff);
    CHECK_INT(cps_to_i64(CPS_DT_I8, cell), -1);
    cps_from_i64(CPS_DT_U32, cell, v);
    CHECK_INT(cps_to_i64(CPS_DT_U32, cell), 0xfffffffe);
    cps_from_i64(CPS_DT_I16, cell, -32768);
    CHECK_INT(cps_to_i64(CPS_DT_I16, cell), -32768);
    cps_from_i64(CPS_DT_I64, cell, INT64_MIN);
    CHECK_INT(cps_to_i64(CPS_DT_I64, cell), INT64_MIN);
    cps_from_i64(CPS_DT_BOOL, cell, 256);
    CHECK_INT(cps_to_i64(CPS_DT_BOOL, cell), 1);
}

// Bulk forms at odd addresses and all short lengths, and nothing written behind the end.
static void
bulk(void)
{
    cps_rng r;
    cps_rng_init(&r, 5, 0);
    for (int i = 1; i < CPS_DT_COUNT; i++) {
        cps_dtype t = (cps_dtype)i;
        if (cps_dtypes[t].kind == 'P')
            continue;
        unsigned k = cps_dtype_bytes(t);
        for (size_t n = 0; n < 70; n++) {
            uint8_t *cells = malloc(n * k + 1);
            float *f = malloc((n + !n) * sizeof(float));
            double *d = malloc((n + !n) * sizeof(double));
            for (size_t j = 0; j < n; j++) {
                d[j] = cps_rng_normal(&r) * ldexp(1, (int)cps_rng_below(&r, 40) - 20);
                f[j] = (float)d[j];
            }
            bool same = true;
            uint64_t one = 0;
            cps_from_f32_n(t, f, cells + 1, n);
            for (size_t j = 0; j < n; j++) {
                cps_from_f32(t, &one, f[j]);
                same = same && memcmp(&one, cells + 1 + j * k, k) == 0;
            }
            cps_from_f64_n(t, d, cells + 1, n);
            for (size_t j = 0; j < n; j++) {
                cps_from_f64(t, &one, d[j]);
                same = same && memcmp(&one, cells + 1 + j * k, k) == 0;
            }
            cps_to_f32_n(t, cells + 1, f, n);
            cps_to_f64_n(t, cells + 1, d, n);
            for (size_t j = 0; j < n; j++) {
                float x = cps_to_f32(t, cells + 1 + j * k);
                double y = cps_to_f64(t, cells + 1 + j * k);
                same = same && memcmp(&x, &f[j], 4) == 0 && memcmp(&y, &d[j], 8) == 0;
            }
            CHECK(same);
            free(cells);
            free(f);
            free(d);
        }
    }
}

int
main(void)
{
    table();
    corners();
    all_codes();
    integers();
    bulk();
    return CHECK_DONE();
}

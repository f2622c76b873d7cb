/* .npy: round trips of every dtype, each reason for refusal, conversions, mutated files. */
#include "runtime/base/npy.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

// A file of format `major` around a header text and n bytes of data (exactly sized, for ASan).
static uint8_t *
file_of(int major, const char *head, size_t data, size_t *n)
{
    size_t h = strlen(head), at = major == 1 ? 10 : 12;
    *n = at + h + data;
    uint8_t *b = calloc(1, *n + !*n);
    memcpy(b, "\x93NUMPY", 6);
    b[6] = (uint8_t)major;
    b[8] = (uint8_t)h;
    b[9] = (uint8_t)(h >> 8);
    memcpy(b + at, head, h);
    return b;
}

#define DICT(descr, order, shape)                                                              \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

static void
accepted(void)
{
    static const struct {
        int major;
        const char *head;
        size_t data;
        cps_dtype t;
        int rank;
        size_t count;
    } row[] = {
        {1, DICT("'<f4'", "False", "(2, 3)"), 24, CPS_DT_FP32, 2, 6},
        {2, DICT("'<f2'", "False", "(5,)"), 10, CPS_DT_FP16, 1, 5},
        {3, DICT("'=i8'", "False", "()"), 8, CPS_DT_I64, 0, 1},
        {1, DICT("'|b1'", "False", "(0, 7)"), 0, CPS_DT_BOOL, 2, 0},
        {1, DICT("'|u1'", "False", "(1,1,1,1,1,1,1,3)"), 3, CPS_DT_U8, 8, 3},
        {1, "{\"shape\":(2L,),\"descr\":\"<i2\",\"fortran_order\":False}", 4, CPS_DT_I16, 1, 2},
        {1, DICT("'<f8'", "False", "(2,)"), 16, CPS_DT_NONE, 1, 2},
    };
    for (size_t i = 0; i < cps_countof(row); i++) {
        size_t n;
        uint8_t *b = file_of(row[i].major, row[i].head, row[i].data, &n);
        cps_npy f;
        const char *why = NULL;
        bool ok = cps_npy_parse(b, n, &f, &why);
        CHECK_STR(why ? why : "", "");
        CHECK(ok && f.dtype == row[i].t && f.rank == row[i].rank && f.count == row[i].count);
        CHECK(f.f64 == (row[i].t == CPS_DT_NONE));
        CHECK((const uint8_t *)f.data == b + n - row[i].data);
        free(b);
    }
}

static void
refused(void)
{
    static const struct {
        const char *head;
        size_t data;
        const char *why;
    } row[] = {
        {DICT("'>f4'", "False", "(2,)"), 8,
         "the data is big endian; only little endian is read"},
        {DICT("'<f4'", "True", "(2, 2)"), 16,
         "the data is in Fortran order; only C order is read"},
        {DICT("'<f4'", "Maybe", "(2, 2)"), 16, "'fortran_order' is neither True nor False"},
        {DICT("'<c8'", "False", "(2,)"), 16,
         "'descr' is not one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1"},
        {DICT("'|O'", "False", "(2,)"), 16,
         "'descr' is not one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1"},
        {DICT("[('a', '<f4')]", "False", "(2,)"), 8, "structured types have no tensor form"},
        {DICT("17", "False", "(2,)"), 8, "'descr' is not a type string"},
        {DICT("'<f4'", "False", "(3,)"), 8, "the file ends before the data does"},
        {DICT("'<f4'", "False", "(1,)"), 8, "bytes follow the data"},
        {DICT("'<f4'", "False", "(2)"), 8, "'shape' is not a tuple"},
        {DICT("'<f4'", "False", "(-2,)"), 8, "'shape' is not a tuple of sizes"},
        {DICT("'<f4'", "False", "(2 2)"), 16, "'shape' is not a tuple of sizes"},
        {DICT("'<f4'", "False", "(,)"), 4, "'shape' is not a tuple of sizes"},
        {DICT("'<f4'", "False", "2"), 8, "'shape' is not a tuple"},
        {DICT("'<f4'", "False", "(1,1,1,1,1,1,1,1,2)"), 8, "more than 8 axes"},
        {DICT("'<f4'", "False", "(99999999999999999999,)"), 8, "an axis is too long"},
        {DICT("'<f4'", "False", "(4294967296, 4294967296)"), 8, "the shape is too large"},
        {DICT("'<f8'", "False", "(4611686018427387904, 0)"), 0, "the shape is too large"},
        {"[1]", 0, "the header is not a dictionary"},
        {"", 0, "the header is not a dictionary"},
        {"{'descr': '<f4', 'shape': (1,)}", 4,
         "the header lacks 'descr', 'fortran_order' or 'shape'"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", 4, "the header has a key twice"},
        {"{'more': 1}", 4, "the header has an unknown key"},
        {"{'descr': '<f4' 'shape': (1,)}", 4, "the header is not a dictionary"},
        {DICT("'<f4'", "False", "(1,)") "x", 4, "text after the header's dictionary"},
        {"{'descr': '<f4', 'shape': (1", 4, "'shape' is not a tuple of sizes"},
    };
    cps_npy f;
    const char *why;
    for (size_t i = 0; i < cps_countof(row); i++) {
        size_t n;
        uint8_t *b = file_of(1, row[i].head, row[i].data, &n);
        why = NULL;
        CHECK(!cps_npy_parse(b, n, &f, &why));
        CHECK_STR(why, row[i].why);
        free(b);
    }
    CHECK(!cps_npy_parse("", 0, &f, &why));
    CHECK_STR(why, "it does not begin as a .npy file");
    CHECK(!cps_npy_parse("\x93NUMPY\x04\0..", 10, &f, &why));
    CHECK_STR(why, "a format other than 1.0, 2.0 and 3.0");
    CHECK(!cps_npy_parse("\x93NUMPY\x02\0..", 10, &f, &why));
    CHECK_STR(why, "the file ends inside its header");
    CHECK(!cps_npy_parse("\x93NUMPY\x01\0\xff\xff", 10, &f, &why));
    CHECK_STR(why, "the file ends inside its header");
}

// Random codes of every dtype: written, read, converted back: the same bits.
static void
round_trips(void)
{
    cps_rng r;
    cps_rng_init(&r, 6, 0);
    for (int i = 1; i < CPS_DT_COUNT; i++) {
        cps_dtype t = (cps_dtype)i;
        for (int rank = 0; rank <= 4; rank++) {
            int64_t dim[4];
            size_t count = 1, at;
            for (int k = 0; k < rank; k++) {
                dim[k] = (int64_t)cps_rng_below(&r, 12);
                count *= (size_t)dim[k];
            }
            unsigned bytes = cps_dtype_bytes(t);
            uint8_t *data = malloc(count * bytes + 1), *back = malloc(count * bytes + 1);
            for (size_t k = 0; k < count; k++) {
                uint64_t cell = cps_rng_next(&r);
                if (cps_dtype_is_float(t) && t != CPS_DT_FP32) // a canonical code of the type
                    cps_from_f32(t, &cell,
                                 (float)cps_rng_normal(&r) * 4 +
                                     (t == CPS_DT_FP8E8M0 ? 100 : 0));
                if (t == CPS_DT_BOOL)
                    cell &= 1;
                memcpy(data + k * bytes, &cell, bytes);
            }
            cps_buf b = {0};
            cps_npy f;
            const char *why = "";
            cps_npy_format(&b, t, rank, dim, data);
            CHECK(cps_npy_parse(b.data, b.n, &f, &why));
            CHECK(((const char *)f.data - b.data) % 64 == 0);
            CHECK(f.rank == rank && f.count == count);
            CHECK(rank == 0 || memcmp(f.dim, dim, sizeof(*dim) * (size_t)rank) == 0);
            CHECK(cps_npy_convert(&f, t, back, &at, &why));
            CHECK(memcmp(data, back, count * bytes) == 0);
            cps_buf_fini(&b);
            free(data);
            free(back);
        }
    }
}

static bool
convert_one(cps_npy f, const void *value, cps_dtype want, void *out, const char **why)
{
    size_t at = 77;
    f.rank = 0;
    f.count = 1;
    f.data = value;
    bool ok = cps_npy_convert(&f, want, out, &at, why);
    CHECK(at == 0);
    return ok;
}

static void
conversions(void)
{
    static const struct {
        double v;
        cps_dtype want;
        const char *why; // NULL: accepted
    } row[] = {
        {1.5, CPS_DT_I32, "a value with a fraction for an integer type"},
        {(double)NAN, CPS_DT_I32, "a value with a fraction for an integer type"},
        {(double)INFINITY, CPS_DT_I64, "a value outside the range of the integer type"},
        {-1, CPS_DT_U8, "a value outside the range of the integer type"},
        {256, CPS_DT_U8, "a value outside the range of the integer type"},
        {255, CPS_DT_U8, NULL},
        {-128, CPS_DT_I8, NULL},
        {128, CPS_DT_I8, "a value outside the range of the integer type"},
        {0x1p63, CPS_DT_I64, "a value outside the range of the integer type"},
        {-0x1p63, CPS_DT_I64, NULL},
        {0x1p63, CPS_DT_U64, NULL},
        {0x1p64, CPS_DT_U64, "a value outside the range of the integer type"},
        {2, CPS_DT_BOOL, "a value other than 0 and 1 for a boolean"},
        {1, CPS_DT_BOOL, NULL},
        {1e30, CPS_DT_BF16, NULL},
        {1, CPS_DT_FP4E2M1_X4, "a packed type is read from the unsigned integers of its bits"},
    };
    const char *why;
    uint64_t cell;
    cps_npy f64 = {.f64 = true}, f32 = {.dtype = CPS_DT_FP32}, f16 = {.dtype = CPS_DT_FP16};
    for (size_t i = 0; i < cps_countof(row); i++) {
        float single = (float)row[i].v;
        why = NULL;
        CHECK(convert_one(f64, &row[i].v, row[i].want, &cell, &why) == !row[i].why);
        CHECK_STR(why ? why : "", row[i].why ? row[i].why : "");
        if (row[i].v == single)
            CHECK(convert_one(f32, &single, row[i].want, &cell, &why) == !row[i].why);
    }
    uint16_t half = 0x3e00; // 1.5
    float f;
    CHECK(convert_one(f16, &half, CPS_DT_FP32, &f, &why) && f == 1.5f);

    cps_npy i64 = {.dtype = CPS_DT_I64}, u64 = {.dtype = CPS_DT_U64},
            b = {.dtype = CPS_DT_BOOL};
    int64_t v = INT64_MIN;
    CHECK(convert_one(i64, &v, CPS_DT_I64, &cell, &why) && (int64_t)cell == v);
    CHECK(convert_one(i64, &v, CPS_DT_FP32, &f, &why) && f == -0x1p63f);
    CHECK(!convert_one(i64, &v, CPS_DT_U64, &cell, &why));
    CHECK(!convert_one(i64, &v, CPS_DT_I32, &cell, &why));
    v = -1;
    CHECK(convert_one(i64, &v, CPS_DT_I8, &cell, &why) && (int8_t)cell == -1);
    CHECK(!convert_one(i64, &v, CPS_DT_BOOL, &cell, &why));
    CHECK(convert_one(u64, &v, CPS_DT_FP32, &f, &why) && f == 0x1p64f);
    CHECK(!convert_one(u64, &v, CPS_DT_I64, &cell, &why));
    // 2^60 + 2^36 + 1 is just over a tie of binary32; by way of binary64 it would be the tie.
    v = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1;
    CHECK(convert_one(i64, &v, CPS_DT_FP32, &f, &why) && f == 0x1p60f + 0x1p37f);
    v = -v;
    CHECK(convert_one(i64, &v, CPS_DT_FP32, &f, &why) && f == -0x1p60f - 0x1p37f);
    uint8_t yes = 7; // not 0: true
    CHECK(convert_one(b, &yes, CPS_DT_BOOL, &cell, &why) && (uint8_t)cell == 1);
    CHECK(convert_one(b, &yes, CPS_DT_FP32, &f, &why) && f == 1);

    float many[3] = {1, 2, 2.5f};
    int32_t out[3];
    size_t at;
    cps_npy three = {.dtype = CPS_DT_FP32, .rank = 1, .dim = {3}, .count = 3, .data = many};
    CHECK(!cps_npy_convert(&three, CPS_DT_I32, out, &at, &why) && at == 2);
}

// Changed bytes anywhere: refused or described within the file, never read beyond it.
static void
mutations(void)
{
    cps_rng r;
    cps_rng_init(&r, 8, 0);
    int64_t dim[] = {3, 4};
    double data[12] = {0};
    cps_buf b = {0};
    cps_npy_format_f64(&b, 2, dim, data);
    int accepted_files = 0;
    for (int i = 0; i < 20000; i++) {
        size_t n = cps_rng_below(&r, 4) ? b.n : cps_rng_below(&r, b.n + 1);
        uint8_t *copy = malloc(n + !n);
        memcpy(copy, b.data, n);
        for (uint64_t k = cps_rng_below(&r, 4); n && k--;)
            copy[cps_rng_below(&r, CPS_MIN(n, (size_t)80))] =
                (uint8_t)(cps_rng_below(&r, 2) ? cps_rng_next(&r)
                                               : (uint64_t) "0123456789,()'<|Lf"[k * 4 % 18]);
        cps_npy f;
        const char *why = NULL;
        size_t at;
        bool ok = cps_npy_parse(copy, n, &f, &why);
        CHECK(ok || why);
        if (ok) {
            accepted_files++;
            CHECK(f.count <= n);
            float *out = malloc(f.count * sizeof(float) + 1);
            CHECK(cps_npy_convert(&f, CPS_DT_FP32, out, &at, &why));
            free(out);
        }
        free(copy);
    }
    CHECK(accepted_files > 0);
    cps_buf_fini(&b);
}

int
main(void)
{
    accepted();
    refused();
    round_trips();
    conversions();
    mutations();
    return CHECK_DONE();
}

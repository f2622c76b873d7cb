/* The C side of the oracles: filters from standard input to standard output.
 *
 *   dump f32to DTYPE     binary32 -> storage        dump tof32 DTYPE     storage -> binary32
 *   dump f64to DTYPE     binary64 -> storage        dump tof64 DTYPE     storage -> binary64
 *   dump one-f32to DTYPE, one-f64to, one-tof32, one-tof64: the same element by element
 *   dump f32range DTYPE FIRST N   the cells of N successive binary32 codes
 *   dump f32runs DTYPE FIRST N    the same as runs of equal cells: 64 bits of the first code, 64 of
 *                        the cell. Both exit with 3 when the bulk form and, at every 16th code, the single form
 *                        differ
 *   dump f32sr DTYPE     pairs of binary32 and random bits -> storage, stochastically
 *   dump npy DTYPE       a .npy file -> the file after conversion to DTYPE and formatting
 *   dump rng SEED INDEX N   N normals as binary64, N uniforms, N draws below 1000 as u64
 * Exit 1 with a reason when the input is refused. */
#include "runtime/base/file.h"
#include "runtime/base/npy.h"
#include "runtime/base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum way { TO_F32, TO_F64, FROM_F32, FROM_F64 };

static const char *const ways[] = {"tof32", "tof64", "f32to", "f64to"};

static void
convert(int way, bool single, cps_dtype t, const void *src, void *dst, size_t n, size_t in,
        size_t out)
{
    const uint8_t *s = src;
    uint8_t *d = dst;
    for (size_t i = 0, step = single ? 1 : n; i < n; i += step, s += in * step, d += out * step)
        switch (way) {
        case TO_F32:
            if (single)
                *(float *)(void *)d = cps_to_f32(t, s);
            else
                cps_to_f32_n(t, s, (void *)d, n);
            break;
        case TO_F64:
            if (single)
                *(double *)(void *)d = cps_to_f64(t, s);
            else
                cps_to_f64_n(t, s, (void *)d, n);
            break;
        case FROM_F32:
            if (single)
                cps_from_f32(t, d, *(const float *)(const void *)s);
            else
                cps_from_f32_n(t, (const void *)s, d, n);
            break;
        default:
            if (single)
                cps_from_f64(t, d, *(const double *)(const void *)s);
            else
                cps_from_f64_n(t, (const void *)s, d, n);
        }
}

static int
run_convert(int way, bool single, cps_dtype t, const cps_file *f)
{
    size_t cell = cps_dtype_bytes(t), wide = way == TO_F32 || way == FROM_F32 ? 4 : 8;
    size_t in = way <= TO_F64 ? cell : wide, out = way <= TO_F64 ? wide : cell;
    size_t n = f->n / in;
    void *dst = malloc(n * out + 1);
    convert(way, single, t, f->data, dst, n, in, out);
    bool ok = cps_file_write("-", dst, n * out);
    free(dst);
    return !ok;
}

static bool
write_runs(const uint8_t *cell, size_t unit, uint64_t first, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        uint64_t run[2] = {first + i, 0};
        for (; i && i + 256 <= n && !memcmp(cell + i * unit, cell + (i - 1) * unit, 256 * unit);)
            i += 256; // as many equal ones
        if (i == n || (i && memcmp(cell + i * unit, cell + (i - 1) * unit, unit) == 0))
            continue;
        run[0] = first + i;
        memcpy(&run[1], cell + i * unit, unit);
        ok = fwrite(run, sizeof run, 1, stdout) == 1;
    }
    return ok && fflush(stdout) == 0;
}

static int
run_range(cps_dtype t, uint64_t first, size_t n, bool runs)
{
    size_t unit = cps_dtype_bytes(t);
    float *src = malloc(n * 4 + 1);
    uint8_t *bulk = malloc(n * unit + 1), one[8];
    for (size_t i = 0; i < n; i++)
        src[i] = cps_bits_f32((uint32_t)(first + i));
    convert(FROM_F32, false, t, src, bulk, n, 4, unit);
    bool same = true;
    for (size_t i = 0; i < n; i += 16) {
        cps_from_f32(t, one, src[i]);
        same &= memcmp(one, bulk + i * unit, unit) == 0;
    }
    int rc = !same  ? 3
             : runs ? !write_runs(bulk, unit, first, n)
                    : !cps_file_write("-", bulk, n * unit);
    free(src);
    free(bulk);
    return rc;
}

static int
run_stochastic(cps_dtype t, const cps_file *f)
{
    size_t unit = cps_dtype_bytes(t), n = f->n / 8;
    uint8_t *dst = malloc(n * unit + 1);
    for (size_t i = 0; i < n; i++) {
        float v;
        uint32_t bits;
        memcpy(&v, f->data + 8 * i, 4);
        memcpy(&bits, f->data + 8 * i + 4, 4);
        cps_from_f32_stochastic(t, dst + i * unit, v, bits);
    }
    bool ok = cps_file_write("-", dst, n * unit);
    free(dst);
    return !ok;
}

static int
run_npy(cps_dtype t, const cps_file *f)
{
    cps_npy npy;
    const char *why = NULL;
    size_t at = 0;
    if (!cps_npy_parse(f->data, f->n, &npy, &why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    void *dst = malloc(npy.count * cps_dtype_bytes(t) + 1);
    bool ok = cps_npy_convert(&npy, t, dst, &at, &why);
    if (ok) {
        cps_buf b = {0};
        cps_npy_format(&b, t, npy.rank, npy.dim, dst);
        ok = cps_file_write("-", b.data, b.n);
        cps_buf_fini(&b);
    } else {
        fprintf(stderr, "%s (element %zu)\n", why, at);
    }
    free(dst);
    return !ok;
}

static int
run_rng(uint64_t seed, uint64_t index, size_t n)
{
    cps_rng r;
    cps_rng_init(&r, seed, index);
    for (size_t i = 0; i < 3 * n; i++) {
        double d = i < n ? cps_rng_normal(&r) : i < 2 * n ? cps_rng_uniform(&r) : 0;
        uint64_t u = i < 2 * n ? 0 : cps_rng_below(&r, 1000);
        if (fwrite(i < 2 * n ? (void *)&d : (void *)&u, 8, 1, stdout) != 1)
            return 1;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc == 5 && cps_streq(argv[1], "rng"))
        return run_rng(strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0),
                       strtoul(argv[4], NULL, 0));
    if (argc == 5 && (cps_streq(argv[1], "f32range") || cps_streq(argv[1], "f32runs"))) {
        cps_dtype range = cps_dtype_parse(argv[2], strlen(argv[2]));
        return range == CPS_DT_NONE ? 2
                                    : run_range(range, strtoull(argv[3], NULL, 0),
                                                strtoul(argv[4], NULL, 0),
                                                cps_streq(argv[1], "f32runs"));
    }
    cps_dtype t = argc == 3 ? cps_dtype_parse(argv[2], strlen(argv[2])) : CPS_DT_NONE;
    cps_file f;
    if (t == CPS_DT_NONE || !cps_file_open("-", false, &f))
        return 2;
    int rc = 2;
    if (cps_streq(argv[1], "npy"))
        rc = run_npy(t, &f);
    if (cps_streq(argv[1], "f32sr"))
        rc = run_stochastic(t, &f);
    bool single = strncmp(argv[1], "one-", 4) == 0;
    for (int w = 0; w < 4; w++)
        if (cps_streq(ways[w], argv[1] + (single ? 4 : 0)))
            rc = run_convert(w, single, t, &f);
    cps_file_close(&f);
    return rc;
}

/* Robustness: seeded mutants of the small models must import and verify, or be diagnosed. Run
 * under the sanitizers this is the proof that no file can crash the reader. Mutations: bytes
 * flipped, replaced, cut, doubled, and lengths blown up. */
#include "frontend/onnx/onnx.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <stdlib.h>

#ifndef MUTANTS
#define MUTANTS 2000
#endif
#define DATA "tests/onnx/data/"

static const char *const files[] = {
    "mlp.onnx",           "encoder.onnx",      "forms.onnx",    "external.onnx",
    "bad-operators.onnx", "bad-declared.onnx", "bad-rank.onnx", "gpt.onnx"};

static size_t
mutate(cps_rng *r, uint8_t *p, size_t n, size_t cap)
{
    // One change in most: it reaches deeper than four.
    uint64_t many = cps_rng_below(r, 4) ? 1 : 4;
    for (uint64_t k = many; k && n > 4; k--) {
        size_t at = (size_t)cps_rng_below(r, n), len = 1 + (size_t)cps_rng_below(r, 16);
        len = CPS_MIN(len, n - at);
        switch (cps_rng_below(r, 8)) {
        case 0:
        case 6:
            p[at] ^= (uint8_t)(1u << cps_rng_below(r, 8));
            break;
        case 1:
        case 7:
            p[at] = (uint8_t)cps_rng_next(r);
            break;
        case 2: // cut the end
            n = at + 1;
            break;
        case 3: // take a piece out
            memmove(p + at, p + at + len, n - at - len);
            n -= len;
            break;
        case 4: // a piece twice
            if (n + len <= cap) {
                memmove(p + at + len, p + at, n - at);
                n += len;
            }
            break;
        default: // a length or number of many bits
            for (size_t i = 0; i < CPS_MIN(len, 9); i++)
                p[at + i] |= 0x80;
        }
    }
    return n;
}

int
main(void)
{
    unsigned good = 0, refused = 0;
    for (unsigned i = 0; i < MUTANTS; i++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_onnx_files open = {0};
        cps_file f;
        const char *name = files[i % cps_countof(files)];
        CHECK(cps_file_open(cps_arena_printf(a, DATA "%s", name), false, &f));
        size_t cap = f.n + 128;
        uint8_t *p = malloc(cap); // the heap, so that the sanitizer sees every overrun
        memcpy(p, f.data, f.n);
        cps_rng r;
        cps_rng_init(&r, 20240601, i);
        size_t n = mutate(&r, p, f.n, cap);
        p = realloc(p, n);
        const char *dims[] = {"B=2", "S=3"}, *batch[] = {"batch=3"};
        cps_onnx_opts o = {.files = &open, .dims = i % cps_countof(files) == 1 ? dims : batch};
        o.ndims = i % cps_countof(files) == 1 ? 2 : i % cps_countof(files) == 0 ? 1 : 0;
        cps_module *m = cps_onnx_import_bytes(a, name, "tests/onnx/data", p, n, &o, d);
        if (m) {
            good++;
            CHECK(cps_ir_verify(m, d));
            CHECK_INT(cps_diags_errors(d), 0);
        } else {
            refused++;
            CHECK(cps_diags_errors(d) > 0);
        }
        // What is said can be printed whatever the names hold.
        cps_buf b = {0};
        cps_diags_render(d, &b, true);
        cps_diags_render_json(d, &b);
        cps_buf_fini(&b);
        cps_onnx_close(&open);
        cps_file_close(&f);
        free(p);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    printf("%u mutants read, %u refused\n", good, refused);
    CHECK(good > 20 && refused > 200);
    return CHECK_DONE();
}

/* Spoilt leaves: tokens of the sources are deleted, doubled or exchanged, and what still loads
 * is traced. Nothing may crash, and a trace that gives no program has said why; one that gives
 * a program must pass the verifier or be told by it. `test_trace_mutants SEED COUNT` runs
 * others. */
#include "frontend/dsl/body.h"
#include "runtime/base/file.h"
#include "runtime/base/rng.h"
#include "tests/dsl/trace_run.h"

#include <ctype.h>

static const char *const files[] = {"attention",     "attention_decode", "conv2d",
                                    "cumsum",        "matmul",           "moe_blockwise",
                                    "rmsnorm_quant", "softmax",          "topk"};

typedef struct token {
    uint32_t at, n;
} token;

static uint32_t
tokens(const char *s, token *out, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; s[i] && n < most;) {
        if (isspace((unsigned char)s[i])) {
            i++;
            continue;
        }
        if (s[i] == '/' && s[i + 1] == '/') {
            while (s[i] && s[i] != '\n')
                i++;
            continue;
        }
        uint32_t b = i;
        if (isalnum((unsigned char)s[i]) || s[i] == '_')
            while (isalnum((unsigned char)s[i]) || s[i] == '_')
                i++;
        else
            i++;
        out[n++] = (token){b, i - b};
    }
    return n;
}

static int
sort(char c)
{
    return isdigit((unsigned char)c)               ? 0
           : isalpha((unsigned char)c) || c == '_' ? 1
           : strchr("+-*/<>=", c)                  ? 2
                                                   : 3;
}

// One or two spoilt places in the leaf's part of the text.
static const char *
spoil(cps_arena *a, const char *text, cps_rng *r)
{
    static token t[8192];
    const char *leaf = strstr(text, "\nleaf ");
    uint32_t n = tokens(text, t, (uint32_t)cps_countof(t)), first = 0;
    cps_buf b = {0};
    uint32_t at[2], with[2], kind[2];

    while (first < n && leaf && t[first].at < (uint32_t)(leaf - text))
        first++;
    for (int k = 0; k < 2; k++) {
        at[k] = first + (uint32_t)cps_rng_below(r, n - first);
        with[k] = first + (uint32_t)cps_rng_below(r, n - first);
        kind[k] = CPS_MIN((uint32_t)cps_rng_below(r, 8), 2);
    }
    if (cps_rng_below(r, 3))
        at[1] = at[0];
    uint32_t done = 0;
    for (uint32_t i = 0; i < n; i++) {
        cps_buf_put(&b, text + done, t[i].at - done);
        done = t[i].at + t[i].n;
        int hit = i == at[0] ? 0 : i == at[1] ? 1 : -1;
        if (hit < 0 || kind[hit] == 1)
            cps_buf_put(&b, text + t[i].at, t[i].n);
        if (hit >= 0 && kind[hit] == 1) {
            cps_buf_putc(&b, ' ');
            cps_buf_put(&b, text + t[i].at, t[i].n);
        } else if (hit >= 0 && kind[hit] > 1) {
            // another token of the same sort, so that much still parses
            uint32_t w = with[hit];
            for (uint32_t k = 0; k < 64; k++, w = first + (w - first + 1) % (n - first))
                if (sort(text[t[w].at]) == sort(text[t[i].at]) &&
                    (t[w].n != t[i].n || memcmp(text + t[w].at, text + t[i].at, t[i].n) != 0))
                    break;
            cps_buf_put(&b, text + t[w].at, t[w].n);
        }
    }
    cps_buf_puts(&b, text + done);
    const char *s = cps_arena_strdup(a, b.data);
    cps_buf_fini(&b);
    return s;
}

static const char *const calls[][2] = {
    {"attention_flash",
     "bf16[2,256,64] bf16[1,256,64] bf16[1,256,64] - ; scale=0.125 causal=true"},
    {"attention_decode_rows", "bf16[2,4,64] bf16[2,1,64] bf16[2,1,64] bf16[3,1,128,64] "
                              "bf16[3,1,128,64] i32[2] i32[2] ; scale=0.125"},
    {"conv2d_packed", "bf16[1,3,12,12] bf16[8,3,3,3] ; stride=1 pad=1"},
    {"cumsum_rows", "fp32[130,700]"},
    {"matmul_strip", "bf16[130,200] bf16[200,70] bf16[70] - ; act=gelu"},
    {"moe_blockwise_loop", "bf16[129,512] fp32[256,1] bf16[2,512,2,32] bf16[2,32,512] i32[256] "
                           "i32[2] i32[1] ; B=128"},
    {"rmsnorm_quant_rows", "bf16[130,64] bf16[64]"},
    {"softmax_stream", "bf16[3,2500]"},
    {"topk_rotational", "fp32[4,3168] ; k=64"},
};

int
main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 400;
    unsigned loaded = 0, traced = 0;
    cps_arena *a = cps_arena_create();

    for (unsigned i = 0; i < count; i++) {
        unsigned k = i % cps_countof(files);
        cps_mark mark = cps_arena_mark(a);
        cps_file f;
        cps_rng r;
        const char *path = cps_arena_printf(a, "tests/dsl/sources/%s.cps", files[k]);
        if (!cps_file_open(path, true, &f)) {
            CHECK(!"source");
            continue;
        }
        cps_rng_init(&r, seed, i);
        const char *text = cps_arena_strndup(a, (const char *)f.data, f.n);
        cps_file_close(&f);
        text = spoil(a, text, &r);
        trace_run run = trace_open("k.cps", text, NULL, NULL, NULL);
        if (cps_dsl_find_leaf(run.set, calls[k][0]) && !cps_diags_errors(run.d)) {
            loaded++;
            trace_leaf(&run, calls[k][0], i / 3 % 2 ? "trn2" : "trn3", calls[k][1], 1, 60000);
            traced += run.f != NULL;
        }
        bool said =
            run.f || cps_diags_errors(run.d) > 0 || !cps_dsl_find_leaf(run.set, calls[k][0]);
        CHECK(said);
        if (!said)
            fprintf(stderr, "mutant %u of %s says nothing:\n%s\n", i, files[k], text);
        trace_close(&run);
        cps_arena_release(a, mark);
    }
    printf("%u mutants, %u loaded, %u traced\n", count, loaded, traced);
    cps_arena_destroy(a);
    return CHECK_DONE();
}

/* What of compile time is not seen from outside a process: seconds of processor, the best of several
 * rounds.
 *
 *   bench_compile TARGET BUNDLES FOLDER
 *
 * prints  emit NANOSECONDS      a bundle through the last pass: rules, streams, places; of 64 bundles
 *                               24 differ, as in a matmul
 *         hit MICROSECONDS      an entry of 256 KiB out of the cache in FOLDER, its parts compared and
 *                               its sum verified
 *         shape NANOSECONDS     a compiled kernel asked for again by its shape (frontend/memo.h) */
#include "codegen/cache.h"
#include "codegen/isa/target.h"
#include "codegen/pass.h"
#include "frontend/dsl/registry.h"
#include "frontend/memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 7, HITS = 200, ASKS = 20000, DISTINCT = 24, ENTRY = 256 << 10 };

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static cps_bundle
product(cps_gen g, uint32_t i)
{
    cps_bundle b = cps_isa_new(CPS_INSN_MATMUL, g);
    const cps_ap src = {.addr = (i % DISTINCT) * 1024, .nd = 1, .step = {1}, .num = {512}};
    const cps_ap dst = {.addr = CPS_PSUM_BASE + (i % 8) * 2048, .nd = 1, .step = {1}, .num = {512}};
    cps_isa_set(&b, CPS_F_S3D3_MM_in_dtype, (uint64_t)cps_dtypes[CPS_DT_BF16].wire);
    cps_isa_set(&b, CPS_F_S3D3_MM_num_active_rows, 128);
    cps_isa_set(&b, CPS_F_S3D3_MM_num_active_cols, 128);
    cps_isa_set(&b, CPS_F_S3D3_MM_row_grp, cps_isa_pe_group(0, 128));
    cps_isa_set(&b, CPS_F_S3D3_MM_col_grp, cps_isa_pe_group(0, 128));
    cps_isa_set_ap(&b, CPS_F_S3D3_MM_src, &src);
    cps_isa_set_ap(&b, CPS_F_S3D3_MM_dst, &dst);
    return b;
}

static double
emit_once(const cps_target *t, uint32_t n)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_cg g = {.arena = a, .t = t, .d = d, .o = {.verify = true}};
    cps_mprog p = {.k = cps_kbin_new(a, "emit", t->name, t->gen)};
    cps_vec_reserve(a, &p.ops, n);
    for (uint32_t i = 0; i < n; i++) {
        cps_mop m = {.kind = CPS_M_UNIT, .engine = CPS_PE, .code = product(t->gen, i)};
        cps_vec_push(a, &p.ops, m);
    }
    double from = now();
    cps_pass_emit(&g, &p);
    double took = now() - from;
    bool whole = p.k->stream[CPS_PE].code.n == n && cps_diags_errors(d) == 0;
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    return whole ? took : -1;
}

static double
hit_once(cps_cache *c, const cps_digest *key, const char *parts, size_t nparts, cps_buf *out)
{
    double from = now();
    for (int i = 0; i < HITS; i++) {
        out->n = 0;
        if (!cps_cache_get(c, key, parts, nparts, out) || out->n != ENTRY)
            return -1;
    }
    return (now() - from) / HITS;
}

/* A matmul with bias and activation, asked for as lowering asks: all of the request is hashed and compared. */
static double
shape_hit(const cps_target *t)
{
    cps_cli c = {.arena = cps_arena_create(), .diags = cps_diags_create(), .command = "kernel"};
    cps_vec_push(c.arena, &c.opt[CPS_OPT_NOCACHE], "");
    static const char *const dim[] = {"M", "K", "N"}, *const with[] = {"bias"}, *const attr[] = {"tx", "act"},
                             *const text[] = {"1", "gelu"};
    static const int64_t size[] = {256, 256, 512};
    cps_registry *r = cps_cli_registry(&c);
    cps_instance i;
    cps_memo *m = cps_memo_create(NULL);
    const cps_ask ask = {.inst = &i};
    double best = -1;
    if (r && r->make(r->self, c.arena, "matmul", 3, dim, size, CPS_DT_BF16, 1, with, 2, attr, text, t, 1, &i, c.diags)) {
        const cps_kept *k = cps_memo_kernel(m, &c, &ask);
        for (int round = 0; k && round < ROUNDS; round++) {
            double from = now();
            for (int n = 0; k && n < ASKS; n++)
                k = cps_memo_kernel(m, &c, &ask);
            double took = (now() - from) / ASKS;
            best = k && (best < 0 || took < best) ? took : best;
        }
        best = k && cps_memo_count(m).misses == 1 ? best : -1;
    }
    cps_memo_destroy(m);
    cps_dsl_registry_destroy(c.registry);
    cps_diags_destroy(c.diags);
    cps_arena_destroy(c.arena);
    return best;
}

int
main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "bench_compile TARGET BUNDLES FOLDER\n");
        return 2;
    }
    const cps_target *t = cps_target_find(argv[1]);
    uint32_t n = (uint32_t)atoi(argv[2]);
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_cache *c = cps_cache_open(a, argv[3], d);
    static const char parts[] = "a benchmark's entry";
    cps_digest key = cps_digest_of(parts, sizeof parts);
    cps_buf out = {0};
    uint8_t *entry = cps_arena_alloc(a, ENTRY);
    for (int i = 0; i < ENTRY; i++)
        entry[i] = (uint8_t)(i * 7 >> 3);
    cps_cache_put(c, &key, parts, sizeof parts, entry, ENTRY);
    double emit = 1e9, hit = 1e9, x;
    for (int i = 0; t && n && i < ROUNDS; i++) {
        emit = CPS_MIN(emit, (x = emit_once(t, n), x));
        hit = CPS_MIN(hit, (x = hit_once(c, &key, parts, sizeof parts, &out), x));
    }
    double shape = t ? shape_hit(t) : -1;
    bool ok = t && n && emit > 0 && hit > 0 && shape > 0;
    if (ok)
        printf("emit %.2f\nhit %.2f\nshape %.2f\n", emit / n * 1e9, hit * 1e6, shape * 1e9);
    cps_buf_fini(&out);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    return ok ? 0 : 1;
}

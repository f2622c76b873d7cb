/* Kernels as folders and as byte strings: round trips, sound errors, and readers that survive
 * whatever a file holds. */
#include "tests/sim/kb.h"

#include "codegen/isa/text.h"
#include "runtime/base/file.h"
#include "runtime/base/rng.h"

#include <unistd.h>

static const float table[4] = {1, 2, 3, 4};

static void
rich_kernel(kb *b)
{
    uint32_t x = kb_var(b, "x", CPS_VAR_INPUT, CPS_DT_BF16, 128 * 64);
    uint32_t y = kb_var(b, "y \"odd\" name", CPS_VAR_OUTPUT, CPS_DT_FP32, 128 * 64);
    uint32_t t = kb_var(b, "tmp", CPS_VAR_TMP, CPS_DT_U8, 65536);
    uint32_t c = kb_var(b, "table", CPS_VAR_DATA, CPS_DT_FP32, 4);
    b->k->vars.data[c].data = table;
    kb_block(b, CPS_SP, "q_in", 0, 3, true, x, 0, 128, 0, 128, 0, 128);
    kb_block(b, CPS_ACT, "q_act", 7, 4, false, t, 16, 64, 32, 32, 256, 64);
    cps_kdesc *d = cps_vec_add(b->a, &b->k->descs);
    *d = (cps_kdesc){.op = CPS_DESC_CAST,
                     .from = x,
                     .to = y,
                     .nfrom = 1,
                     .nto = 1,
                     .from_step = {1},
                     .from_size = {128 * 64 * 2},
                     .to_step = {1},
                     .to_size = {128 * 64 * 4},
                     .from_dtype = CPS_DT_BF16,
                     .to_dtype = CPS_DT_FP32};
    b->k->blocks.data[1].ndesc = 2;
    cps_kdesc *e = cps_vec_add(b->a, &b->k->descs);
    *e = (cps_kdesc){.op = CPS_DESC_TRANSPOSE,
                     .from = x,
                     .to = 0,
                     .nfrom = 2,
                     .nto = 2,
                     .from_step = {1, 128},
                     .from_size = {128, 32},
                     .to_step = {1, 1 << 18},
                     .to_size = {64, 64},
                     .from_dtype = CPS_DT_U8,
                     .to_dtype = CPS_DT_U8,
                     .elem = 2,
                     .rows = 32,
                     .cols = 64};
    b->k->blocks.data[1].ndesc = 3;
    kb_put(b, CPS_SP, kb_trigger(b, "q_in", 0));
    kb_put(b, CPS_SP, kb_trigger(b, "q_in", 0));
    kb_put(b, CPS_ACT, kb_trigger(b, "q_act", 7));
    cps_bundle m = kb_insn(b, CPS_INSN_DMA_MEMCPY);
    cps_isa_set(&m, CPS_F_DMA_DIRECT2D_semaphore, 9);
    cps_isa_set(&m, CPS_F_DMA_DIRECT2D_sem_increment, 16);
    for (unsigned k = 0; k < 2; k++) {
        cps_isa_set_elem(&m, CPS_F_DMA_DIRECT2D_src_step_elem, k, k ? 64 : 1);
        cps_isa_set_elem(&m, CPS_F_DMA_DIRECT2D_dst_step_elem, k, k ? 131072 : 1);
        cps_isa_set_elem(&m, CPS_F_DMA_DIRECT2D_src_num_elem, k, 64);
        cps_isa_set_elem(&m, CPS_F_DMA_DIRECT2D_dst_num_elem, k, 64);
    }
    cps_isa_set(&m, CPS_F_DMA_DIRECT2D_src_elem_size, 2);
    cps_isa_set(&m, CPS_F_DMA_DIRECT2D_dst_elem_size, 2);
    cps_isa_set(&m, CPS_F_DMA_DIRECT2D_dst, 4096);
    cps_isa_set(&m, CPS_F_DMA_DIRECT2D_in_dtype, wire(CPS_DT_BF16));
    cps_isa_set(&m, CPS_F_DMA_DIRECT2D_out_dtype, wire(CPS_DT_BF16));
    kb_put(b, CPS_SP, m);
    cps_kreloc r = {CPS_SP, 2, CPS_F_DMA_DIRECT2D_src, x, 0};
    cps_vec_push(b->a, &b->k->relocs, r);
    b->k->stream[CPS_SP].locs.data[1] = (cps_kloc){NULL, 0, 0};
    b->k->stats = (cps_kstats){.races = CPS_PROOF_HOLDS, .deadlock = CPS_PROOF_FAILS, .flops = 123456789012,
                               .hbm_bytes = 77,
                               .pe_flops_ps = 5,
                               .engine_min_ps = {1, 2, 3, 4, 5},
                               .sbuf_peak = 9,
                               .psum_banks = 2,
                               .semaphores = 7};
}

static void
pack(const cps_kbin *k, cps_buf *out)
{
    out->n = 0;
    cps_kbin_pack(k, out);
}

static bool
same(const cps_buf *a, const cps_buf *b)
{
    return a->n == b->n && memcmp(a->data, b->data, a->n) == 0;
}

static void
test_round_trips(const char *dir)
{
    kb b = kb_new("trn2");
    rich_kernel(&b);
    cps_buf one = {0}, two = {0};
    pack(b.k, &one);
    const char *why = NULL;
    cps_kbin *k = cps_kbin_unpack(b.a, one.data, one.n, &why);
    CHECK(k != NULL);
    if (k) {
        pack(k, &two);
        CHECK(same(&one, &two));
    }
    for (size_t n = 0; n < one.n; n += 13) // every prefix is refused
        CHECK(cps_kbin_unpack(b.a, one.data, n, &why) == NULL && why);

    CHECK(cps_kbin_write(b.k, dir));
    k = cps_kbin_read(b.a, dir, b.d);
    CHECK(k != NULL);
    kb_show(&b);
    if (k) {
        // blocks come back by engine: a folder written again is the same to the byte
        pack(k, &one);
        CHECK(cps_kbin_write(k, dir));
        cps_kbin *again = cps_kbin_read(b.a, dir, b.d);
        CHECK(again != NULL);
        if (again)
            pack(again, &two);
        CHECK(same(&one, &two));
        CHECK_INT(k->blocks.n, 2);
        CHECK_INT(k->descs.n, 4);
        CHECK_INT(k->stats.flops, 123456789012);
        CHECK(k->stats.races == CPS_PROOF_HOLDS && k->stats.deadlock == CPS_PROOF_FAILS);
        CHECK_INT(k->stream[CPS_SP].locs.data[2].line, b.k->stream[CPS_SP].locs.data[2].line);
        CHECK(k->stream[CPS_SP].locs.data[1].file == NULL);
        CHECK(memcmp(k->vars.data[4].data, table, sizeof table) == 0);
    }
    cps_file f;
    CHECK(cps_file_open(cps_path_join(b.a, dir, "kernel.cas"), true, &f));
    CHECK(memmem(f.data, f.n, "k.cps:1", 7) != NULL);
    cps_diags *d = cps_diags_create();
    cps_buf code = {0};
    // the listing is assembly: streams follow one another
    CHECK(cps_isa_parse((const char *)f.data, f.n, 0, b.k->gen, d, &code));
    CHECK_INT(code.n, 4 * CPS_BUNDLE_BYTES);
    cps_buf_fini(&code);
    cps_diags_destroy(d);
    cps_file_close(&f);
    cps_buf_fini(&one);
    cps_buf_fini(&two);
    kb_free(&b);
}

/* One thing wrong at a time. */
static void
test_check(void)
{
    static const char *const says[] = {"named twice",      "no such bundle", "beyond",
                                       "unknown variable", "given twice",    "core 3 of 2",
                                       "holds no address", "bytes from"};
    for (unsigned n = 0; n < cps_countof(says); n++) {
        kb b = kb_new("trn2");
        rich_kernel(&b);
        cps_kbin *k = b.k;
        switch (n) {
        case 0:
            k->vars.data[2].name = "x";
            break;
        case 1:
            k->relocs.data[0].index = 3;
            break;
        case 2:
            k->relocs.data[0].addend = 1 << 20;
            break;
        case 3:
            k->descs.data[0].from = 17;
            break;
        case 4:
            k->blocks.data[1].queue = "q_in";
            k->blocks.data[1].id = 0;
            break;
        case 5:
            k->core = 3;
            k->cores = 2;
            break;
        case 6:
            k->relocs.data[0].field = CPS_F_DMA_DIRECT2D_semaphore;
            break;
        default:
            k->descs.data[0].from_size[0] = 64;
            break;
        }
        cps_buf why = {0};
        CHECK(!cps_kbin_check(k, &why));
        if (n != 2)
            CHECK(strstr(why.data, says[n]) != NULL);
        cps_buf_fini(&why);
        CHECK(!cps_sim_load(b.s, k, b.d));
        CHECK(kb_has(&b, CPS_E8012));
        kb_free(&b);
    }
}

/* Whatever unpacked: load it, bind what it wants, run a little. */
static void
try_run(cps_sim *s, const cps_kbin *k)
{
    cps_diags *d = cps_diags_create();
    int64_t total = 0;
    for (uint32_t i = 1; k && i < k->vars.n; i++)
        total += k->vars.data[i].bytes;
    if (k && total < 1 << 26 && cps_sim_load(s, k, d)) {
        static uint8_t room[1 << 20];
        bool ok = true;
        for (uint32_t i = 1; i < k->vars.n && ok; i++) {
            const cps_kvar *v = &k->vars.data[i];
            if (v->kind == CPS_VAR_TMP || v->kind == CPS_VAR_DATA)
                continue;
            ok = v->bytes <= (int64_t)sizeof room &&
                 cps_sim_bind(s, v->name, room, (size_t)v->bytes, true, d);
        }
        cps_sim_opts o = {.checks = CPS_CHECK_ALL, .max_steps = 200};
        cps_sim_report rep;
        if (ok)
            cps_sim_run(s, &o, &rep, d);
    }
    cps_diags_destroy(d);
}

static void
mutate(cps_rng *r, char *p, size_t n)
{
    unsigned edits = 1 + (unsigned)cps_rng_below(r, 3);
    for (unsigned k = 0; k < edits && n; k++) {
        size_t at = cps_rng_below(r, n);
        switch (cps_rng_below(r, 4)) {
        case 0:
            p[at] = (char)cps_rng_next(r);
            break;
        case 1:
            p[at] ^= (char)(1u << cps_rng_below(r, 8));
            break;
        case 2:
            p[at] = (char)('0' + cps_rng_below(r, 10));
            break;
        default:
            p[at] = p[cps_rng_below(r, n)];
            break;
        }
    }
}

static void
test_mutants(const char *dir)
{
    kb b = kb_new("trn2");
    rich_kernel(&b);
    cps_buf whole = {0}, mut = {0};
    pack(b.k, &whole);
    cps_rng r;
    cps_rng_init(&r, 7, 0);
    unsigned alive = 0, made = 0;
    for (unsigned i = 0; i < 1500; i++, made++) {
        mut.n = 0;
        cps_buf_put(&mut, whole.data, whole.n);
        mutate(&r, mut.data, mut.n);
        cps_arena *a = cps_arena_create();
        const char *why;
        cps_kbin *k = cps_kbin_unpack(a, mut.data, mut.n, &why);
        alive += k != NULL;
        try_run(b.s, k);
        cps_sim_load(b.s, b.k, b.d); // drop what points into the arena
        cps_arena_destroy(a);
    }
    static const char *const names[] = {"dma.json", "reloc.json", "kernel.json",
                                        "sp.bin",   "act.bin",    "data.bin"};
    for (unsigned f = 0; f < cps_countof(names); f++) {
        cps_file file;
        const char *path = cps_path_join(b.a, dir, names[f]);
        CHECK(cps_file_open(path, false, &file));
        cps_buf orig = {0};
        cps_buf_put(&orig, file.data, file.n);
        cps_file_close(&file);
        for (unsigned i = 0; i < 120; i++, made++) {
            mut.n = 0;
            cps_buf_put(&mut, orig.data, orig.n);
            mutate(&r, mut.data, mut.n);
            size_t n = i % 10 == 9 ? cps_rng_below(&r, mut.n) : mut.n;
            CHECK(cps_file_write(path, mut.data, n));
            cps_arena *a = cps_arena_create();
            cps_diags *d = cps_diags_create();
            cps_kbin *k = cps_kbin_read(a, dir, d);
            CHECK(k || cps_diags_errors(d) > 0);
            alive += k != NULL;
            try_run(b.s, k);
            cps_sim_load(b.s, b.k, b.d);
            cps_diags_destroy(d);
            cps_arena_destroy(a);
        }
        CHECK(cps_file_write(path, orig.data, orig.n));
        cps_buf_fini(&orig);
    }
    printf("%u mutants, %u of them still kernels\n", made, alive);
    CHECK(made >= 2000 && alive > 0 && alive < made);
    cps_buf_fini(&whole);
    cps_buf_fini(&mut);
    kb_free(&b);
}

static void
test_bad_folders(const char *dir)
{
    kb b = kb_new("trn2");
    CHECK(cps_kbin_read(b.a, "no/such/folder", b.d) == NULL);
    CHECK(kb_has(&b, CPS_E1001));
    const char *path = cps_path_join(b.a, dir, "pe.bin");
    CHECK(cps_file_write(path, "123", 3));
    CHECK(cps_kbin_read(b.a, dir, b.d) == NULL);
    CHECK(kb_has(&b, CPS_E8011));
    CHECK(cps_file_write(path, "", 0));
    // a block that names bytes outside its variable
    path = cps_path_join(b.a, dir, "reloc.json");
    const char *bad = "[{\"engine\":\"sp\",\"bundle\":2,\"field\":\"src\",\"var\":\"x\","
                      "\"addend\":99999999}]";
    CHECK(cps_file_write(path, bad, strlen(bad)));
    CHECK(cps_kbin_read(b.a, dir, b.d) == NULL);
    CHECK(kb_has(&b, CPS_E8012));
    kb_free(&b);
}

int
main(void)
{
    const char *base = getenv("TMPDIR");
    char dir[64];
    snprintf(dir, sizeof dir, "%.40s/cps-kbin-XXXXXX", base && *base ? base : P_tmpdir);
    CHECK(mkdtemp(dir) != NULL);
    test_round_trips(dir);
    test_check();
    test_mutants(dir);
    test_bad_folders(dir);
    static const char *const names[] = {"pe.bin",     "act.bin",  "pool.bin",   "dve.bin",
                                        "sp.bin",     "dma.json", "reloc.json", "kernel.json",
                                        "kernel.cas", "data.bin"};
    for (unsigned i = 0; i < cps_countof(names); i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    return CHECK_DONE();
}

/* Containers of programs: everything comes back, and no damage gets further than a diagnostic.
 */
#include "tests/pkg/pk.h"

#include "runtime/base/rng.h"
#include "runtime/pkg/neff_graph.h"
#include "runtime/pkg/neff_pack.h"

/* What a container keeps of a kernel, as bytes. */
static void
essence(kb *b, const cps_kbin *k, cps_buf *out)
{
    cps_kbin x = *k;
    x.arena = b->a;
    x.name = "k";
    x.stats = (cps_kstats){0};
    for (int e = 0; e < CPS_ENGINES; e++)
        x.stream[e].locs.n = 0;
    out->n = 0;
    cps_kbin_pack(&x, out);
}

static void
test_round_trip(void)
{
    kb b = kb_new("trn2");
    pk_kernel(&b);
    cps_package *p = pk_package(&b, b.k);
    cps_neff *f = cps_neff_pack(b.a, p, "kernel_0", b.d);
    CHECK(f && pk_said(b.d, CPS_W8408, "tables") && pk_said(b.d, CPS_W8409, "(1)"));
    CHECK_INT(f->head.feature_bits, CPS_NEFF_DYNAMIC_PWP | CPS_NEFF_HIGH_DIM |
                                        CPS_NEFF_DVE_PERF | CPS_NEFF_DGE | CPS_NEFF_HW_DGE);
    cps_buf one = {0}, two = {0}, raw = {0}, again = {0};
    CHECK(cps_neff_write(f, &raw, b.d) && cps_neff_write(f, &again, b.d));
    CHECK(raw.n == again.n && !memcmp(raw.data, again.data, raw.n));
    cps_neff *g = cps_neff_read(b.a, (const uint8_t *)raw.data, raw.n, 0, b.d);
    cps_package *q = g && g->hash_ok ? cps_neff_package(b.a, g, b.d) : NULL;
    CHECK(q != NULL);
    if (!q)
        kb_show(&b);
    if (q) {
        essence(&b, b.k, &one);
        essence(&b, q->kernels.data[0].kbin, &two);
        CHECK(one.n == two.n && !memcmp(one.data, two.data, one.n));
        CHECK_INT(q->inputs.n, 2);
        CHECK_INT(q->outputs.n, 1);
        CHECK_STR(q->inputs.data[1].name, "g");
    }
    // the same of the linked program, temporaries and constants with it
    cps_neff *all = cps_neff_pack(b.a, p, NULL, b.d);
    CHECK(all && cps_neff_find(all, "sg00/3-gamma.bin") &&
          cps_neff_find(all, "sg00/6-kernel_0.table.bin"));
    again.n = 0;
    CHECK(cps_neff_write(all, &again, b.d));
    g = cps_neff_read(b.a, (const uint8_t *)again.data, again.n, 0, b.d);
    q = g ? cps_neff_package(b.a, g, b.d) : NULL;
    CHECK(q && q->kernels.data[0].kbin->vars.n == 7 && q->vars.n == 4);
    CHECK(q && q->inputs.n == 1 && !strcmp(q->inputs.data[0].name, "in") && q->outputs.n == 1);
    CHECK(cps_neff_pack(b.a, p, "other", b.d) == NULL &&
          pk_said(b.d, CPS_E8405, "no kernel 'other'"));
    b.k->cores = 2;
    CHECK(cps_neff_pack(b.a, p, "kernel_0", b.d) == NULL && pk_said(b.d, CPS_E8405, "one core's of 2"));
    cps_buf_fini(&one);
    cps_buf_fini(&two);
    cps_buf_fini(&raw);
    cps_buf_fini(&again);
    kb_free(&b);
}

/* A pair: a graph for each core, core 1's own part of our member, the same kernel back. */
static void
test_pair(void)
{
    kb b = kb_new("trn2");
    pk_pair(&b);
    cps_package *p = pk_package(&b, b.k);
    for (int whole = 0; whole < 2; whole++) {
        cps_neff *f = cps_neff_pack(b.a, p, whole ? NULL : "kernel_0", b.d);
        cps_buf raw = {0}, one = {0}, two = {0};
        CHECK(f && cps_neff_write(f, &raw, b.d));
        CHECK(f->head.lnc_size == 2 && f->head.num_tpb == 2 && f->head.tpb_per_node[0] == 2 &&
              f->head.feature_bits & CPS_NEFF_VNC);
        cps_neff *g = cps_neff_read(b.a, (const uint8_t *)raw.data, raw.n, 0, b.d);
        cps_neff_info *i = g ? cps_neff_describe(b.a, g, b.d) : NULL;
        CHECK(i && i->graphs.n == 2 && i->notes.n == 0 && !strcmp(i->graphs.data[1].name, "sg01"));
        cps_package *q = g ? cps_neff_package(b.a, g, b.d) : NULL;
        CHECK(q && q->kernels.data[0].kbin->peer);
        if (q && !whole) {
            for (const cps_kbin *x = b.k, *y = q->kernels.data[0].kbin; x && y; x = x->peer, y = y->peer) {
                cps_kbin u = *x, v = *y; // each core by itself
                u.peer = v.peer = NULL;
                essence(&b, &u, &one);
                essence(&b, &v, &two);
                CHECK(x->core == y->core && one.n == two.n && !memcmp(one.data, two.data, one.n));
            }
        }
        // without core 1's part, or with one graph of the two, it is no program
        cps_neff *h = g ? cps_neff_new(b.a) : NULL;
        for (uint32_t k = 0; h && k < g->members.n; k++)
            if (strncmp(g->members.data[k].name, "sg01/sp", 7))
                cps_neff_add(h, g->members.data[k].name, g->members.data[k].data, g->members.data[k].n);
        CHECK(h && !cps_neff_package(b.a, h, b.d) && pk_said(b.d, CPS_E8404, "sg01 has no whole stream for sp"));
        cps_buf_fini(&raw);
        cps_buf_fini(&one);
        cps_buf_fini(&two);
    }
    cps_neff *plain = cps_neff_pack(b.a, p, NULL, b.d), *h = cps_neff_new(b.a);
    for (uint32_t k = 0; k < plain->members.n; k++) {
        const cps_neff_member *m = &plain->members.data[k];
        const char *cut = !strcmp(m->name, "copse.json") ? strstr(m->data ? (const char *)m->data : "", "\"peer\"") : NULL;
        char *text = cut ? cps_arena_strndup(b.a, (const char *)m->data, m->n) : NULL;
        if (cut)
            memcpy(text + (cut - (const char *)m->data), "\"pear\"", 6);
        cps_neff_add(h, m->name, text ? (const uint8_t *)text : m->data, m->n);
    }
    CHECK(!cps_neff_package(b.a, h, b.d) && pk_said(b.d, CPS_E8404, "'peer'"));
    kb_free(&b);
}

/* Feature bits and table sets follow from the records. */
static void
test_features(void)
{
    kb b = kb_new("trn3");
    pk_kernel(&b);
    kb_put(&b, CPS_ACT, kb_insn(&b, CPS_INSN_PSEUDO_FUNCTION_CALL));
    kb_put(&b, CPS_POOL, kb_insn(&b, CPS_INSN_PSEUDO_SWAP_QUEUE_SET));
    cps_bundle x = kb_insn(&b, CPS_INSN_DMA_INDIRECT),
               t = kb_insn(&b, CPS_INSN_PSEUDO_LOAD_ACT_FUNC_SET);
    cps_isa_set(&x, CPS_F_DMA_INDIRECT1D_in_dtype, wire(CPS_DT_BF16));
    cps_isa_set(&x, CPS_F_DMA_INDIRECT1D_out_dtype, wire(CPS_DT_FP32));
    kb_put(&b, CPS_POOL, x);
    memcpy(t.b + cps_fields[CPS_F_PSEUDO_LOAD_ACT_FUNC_SET_table].byte, cps_actset_name(2),
           strlen(cps_actset_name(2)));
    kb_put(&b, CPS_ACT, t);
    cps_neff *f = cps_neff_pack(b.a, pk_package(&b, b.k), "kernel_0", b.d);
    CHECK_INT(f ? f->head.feature_bits : 0, 0x10 | 0x20 | 0x40 | 0x200 | 0x800 | 0x1000 |
                                                0x8000 | 0x10000 | 0x200000 | 0x1000000);
    const cps_neff_member *m = f ? cps_neff_find(f, "sg00/act.json") : NULL;
    CHECK(m && strstr((const char *)m->data, cps_actset_name(1)) &&
          strstr((const char *)m->data, cps_actset_name(2)));
    kb_free(&b);
}

/* What is handed through and what changes in place is an alias, and the latter is not run. */
static void
test_aliases(void)
{
    kb b = kb_new("trn2");
    pk_kernel(&b);
    cps_package *p = pk_package(&b, b.k);
    cps_pio same = p->inputs.data[0];
    same.name = "same";
    cps_vec_push(b.a, &p->outputs, same);
    cps_neff *f = cps_neff_pack(b.a, p, NULL, b.d);
    const cps_neff_member *m = f ? cps_neff_find(f, "sg00/tensor_map.json") : NULL;
    CHECK(m &&
          strstr((const char *)m->data,
                 "{\"input_name\": \"in\", \"output_name\": \"same\", \"must_alias\": true}"));
    cps_package *q = f ? cps_neff_package(b.a, f, b.d) : NULL;
    CHECK(q && q->outputs.n == 2 && q->outputs.data[1].var == q->inputs.data[0].var);
    b.k->vars.data[3].kind = CPS_VAR_INOUT;
    f = cps_neff_pack(b.a, p, "kernel_0", b.d);
    m = f ? cps_neff_find(f, "sg00/tensor_map.json") : NULL;
    CHECK(m && strstr((const char *)m->data,
                      "{\"input_name\": \"y\", \"output_name\": \"y\", \"must_alias\": true}"));
    CHECK(f && !cps_neff_package(b.a, f, b.d) && pk_said(b.d, CPS_E8405, "changed in place"));
    kb_free(&b);
}

/* Reads whatever it is; describes it, prints it, takes the program out, writes it again. */
static bool
digest(const uint8_t *p, size_t n)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_neff *f = cps_neff_read(a, p, n, 0, d);
    CHECK(f || cps_diags_errors(d) > 0);
    if (f) {
        cps_buf out = {0};
        cps_neff_info *i = cps_neff_describe(a, f, d);
        cps_neff_print_json(i, CPS_V3, &out);
        const char *why = NULL;
        size_t at;
        CHECK(cps_json_parse(a, out.data, out.n, &why, &at) != NULL);
        cps_neff_print_text(i, CPS_V3, &out);
        unsigned before = cps_diags_errors(d);
        CHECK(cps_neff_package(a, f, d) || cps_diags_errors(d) > before);
        out.n = 0;
        CHECK(cps_neff_write(f, &out, d));
        cps_neff *g = cps_neff_read(a, (const uint8_t *)out.data, out.n, 0, d);
        CHECK(g && g->hash_ok && g->members.n == f->members.n);
        cps_buf_fini(&out);
    }
    cps_buf said = {0};
    cps_diags_render(d, &said, false);
    cps_buf_fini(&said);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    return f != NULL;
}

/* `size` bytes as the whole of a container whose header says so. */
static bool
cut(const cps_buf *whole, size_t size)
{
    uint8_t *p = malloc(size ? size : 1); // exactly so many: what is read behind them is found
    memcpy(p, whole->data, size);
    for (int i = 0; size >= CPS_NEFF_HEAD && i < 8; i++)
        p[0x10 + i] = (uint8_t)((uint64_t)(size - CPS_NEFF_HEAD) >> (8 * i));
    bool ok = digest(p, size);
    free(p);
    return ok;
}

static void
test_damage(unsigned count, bool pair)
{
    kb b = kb_new("trn2");
    pk_kernel(&b);
    if (pair)
        pk_pair(&b);
    cps_neff *f = cps_neff_pack(b.a, pk_package(&b, b.k), NULL, b.d);
    for (uint64_t pkg = 1; pkg <= 2; pkg++) {
        cps_buf raw = {0};
        f->head.pkg_version = pkg;
        CHECK(cps_neff_write(f, &raw, b.d));
        CHECK(cut(&raw, raw.n));
        // Every length of the header and the first records, then around every record's edge.
        size_t end =
            pkg == 1 ? raw.n - 1024 : raw.n; // zero records end a tar, and need not be there
        unsigned taken = 0;
        for (size_t n = 0; n < end; n++)
            if (n < 1100 || n % 512 <= 1 || n % 512 == 511 ||
                (pkg == 2 && (n % 16 == 0 || n + 40 > end)))
                taken += cut(&raw, n);
        if (pkg == 2)
            CHECK_INT(taken, 0); // a sum at the end
        // Damage. In a plain tar it gets through to the members.
        cps_rng rng;
        cps_rng_init(&rng, 1, pkg);
        unsigned accepted = 0;
        uint8_t *p = malloc(raw.n);
        for (unsigned i = 0; i < count; i++) {
            memcpy(p, raw.data, raw.n);
            for (uint64_t k = 0, times = 1 + cps_rng_below(&rng, 6); k < times; k++) {
                size_t at = (size_t)cps_rng_below(&rng, raw.n);
                p[at] = (uint8_t)(k % 2 ? cps_rng_below(&rng, 256)
                                        : p[at] ^ 1u << cps_rng_below(&rng, 8));
            }
            accepted += digest(p, raw.n);
        }
        CHECK(pkg == 1 ? accepted > count / 10 : accepted < count);
        free(p);
        cps_buf_fini(&raw);
    }
    kb_free(&b);
}

int
main(int argc, char **argv)
{
    test_round_trip();
    test_features();
    test_aliases();
    test_pair();
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1500;
    test_damage(count, false);
    test_damage(count / 3, true);
    return CHECK_DONE();
}

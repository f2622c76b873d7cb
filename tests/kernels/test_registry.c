/* The registry through its function table: lazy index, signatures, inference, candidates with
 * reasons, traces, files of the command line. */
#include "frontend/dsl/instance.h"
#include "frontend/dsl/registry.h"
#include "tests/check.h"

static cps_arena *A;
static cps_diags *D;
static cps_registry *R;

static cps_instance
matmul(const char *target, cps_dtype t, int64_t m, int64_t k, int64_t n)
{
    cps_instance i = {
        .op = "matmul", .target = cps_target_find(target), .cores = 1, .noperands = 4};
    i.operand[0] = (cps_operand){"x", true, cps_type_make(t, 2, (int64_t[]){m, k}), 0};
    i.operand[1] = (cps_operand){"w", true, cps_type_make(t, 2, (int64_t[]){k, n}), 0};
    return i;
}

// What went wrong unasked, for the log of the test.
static void
show(void)
{
    cps_buf b = {0};
    cps_diags_render(D, &b, false);
    if (b.n)
        fputs(b.data, stderr);
    cps_buf_fini(&b);
}

static const cps_candidate *
named(const cps_candidate *c, unsigned n, const char *leaf)
{
    for (unsigned i = 0; i < n; i++)
        if (cps_streq(c[i].leaf, leaf))
            return &c[i];
    return NULL;
}

static void
index_and_signatures(void)
{
    cps_opinfo o;
    cps_leafinfo l;
    bool strip = false;

    CHECK_INT(cps_dsl_registry_set(R, NULL)->modules.n, 0); // nothing is parsed at the start
    CHECK(R->ops(R->self) > 0 && R->leaves(R->self) > 0);
    for (unsigned i = 0; i < R->leaves(R->self); i++) {
        CHECK(R->leaf(R->self, i, &l));
        if (cps_streq(l.name, "matmul_banks")) {
            strip = true;
            CHECK_STR(l.op, "matmul");
            CHECK_STR(l.file, "leaves/matmul.cps");
            CHECK_STR(l.targets, "trn1 trn2 trn3");
        }
    }
    CHECK(strip);
    CHECK_INT(cps_dsl_registry_set(R, NULL)->modules.n, 0);
    CHECK(R->find_op(R->self, "matmul", &o));
    CHECK_STR(o.tree, "reference");
    CHECK_STR(o.operand[0], "x[M,K]");
    CHECK_STR(o.operand[2], "bias?[N]");
    CHECK_STR(o.result[0], "y[M,N]");
    CHECK_STR(o.attr[0], "act: Act = Act.none");
    CHECK_INT(o.ndims, 3);
    CHECK_STR(o.dim[2], "N");
    CHECK(!R->find_op(R->self, "matmull", &o));
    CHECK(!R->op(R->self, 100000, &o) && !R->leaf(R->self, 100000, &l));
    for (unsigned i = 0; i < R->ops(R->self); i++) // every embedded operator parses
        CHECK(R->op(R->self, i, &o));
    CHECK_INT(cps_diags_errors(D), 0);
}

// Whether statements of a leaf are still to be read.
static bool
waits(const char *leaf)
{
    const cps_dsl_leaf *l = cps_dsl_find_leaf(cps_dsl_registry_set(R, NULL), leaf);
    return l && l->ast->body->later;
}

static bool
is_digest_of(const char *leaf)
{
    cps_dsl_set *s = cps_dsl_registry_set(R, NULL);
    cps_digest zero = {{0}}, d = R->digest(R->self, leaf), again = R->digest(R->self, leaf);
    cps_digest want = cps_dsl_leaf_digest(s, cps_dsl_find_leaf(s, leaf));
    return cps_digest_eq(&d, &want) && cps_digest_eq(&again, &want) && !cps_digest_eq(&d, &zero);
}

static void
selection(void)
{
    cps_candidate *c;
    const char *why;
    cps_instance i = matmul("trn2", CPS_DT_BF16, 512, 512, 512);

    CHECK(R->infer(R->self, A, &i, D));
    CHECK_INT(i.nresults, 1);
    CHECK_INT(i.result[0].type.dim[1], 512);
    CHECK_INT(i.result[0].type.dtype, CPS_DT_BF16);
    unsigned n = R->candidates(R->self, A, &i, &c, D);
    const cps_candidate *s = named(c, n, "matmul_banks");
    CHECK(s && s->ok && s->cost_ns > 0);
    bool strip = false, loads = false; // parameters of the leaf, each with a value
    for (int k = 0; s && k < s->nconfig; k++) {
        strip |= cps_streq(s->config[k].key, "MB") && s->config[k].i >= 1;
        loads |= cps_streq(s->config[k].key, "WB") && s->config[k].i >= 2;
    }
    CHECK(strip && loads);
    CHECK(cps_registry_pick(c, n, NULL, &why) >= 0);
    // of an embedded leaf only what is traced is read
    CHECK(n > 1 && waits("matmul_banks") && waits(c[s == &c[0]].leaf));
    CHECK(is_digest_of("matmul_banks") && is_digest_of(c[s == &c[0]].leaf));
    cps_digest none = R->digest(R->self, "no_leaf"), zero = {{0}};
    CHECK(cps_digest_eq(&none, &zero));
    cps_tfunc *f = s ? R->trace(R->self, A, &i, s, 0, D) : NULL;
    CHECK(f && f->insts.n > 16 && cps_tile_verify(f, i.target, D));
    CHECK(!waits("matmul_banks") && waits(c[s == &c[0]].leaf));
    CHECK(f && f->bufs.data[1].role == CPS_IN && f->bufs.data[3].role == CPS_OUT);

    // the same key, the same program
    cps_tfunc *g = s ? R->trace(R->self, A, &i, s, 0, D) : NULL;
    CHECK(f && g);
    if (f && g) {
        cps_digest x = cps_tile_digest(f), y = cps_tile_digest(g);
        CHECK(cps_digest_eq(&x, &y));
    }

    // refused with a reason and its values
    i = matmul("trn2", CPS_DT_I32, 16, 16, 16);
    CHECK(R->infer(R->self, A, &i, D));
    n = R->candidates(R->self, A, &i, &c, D);
    s = named(c, n, "matmul_banks");
    CHECK(s && !s->ok && s->nreasons >= 1 && strstr(s->reason[0], "share bf16"));
    // no leaf of a NeuronCore is offered to the host
    i = matmul("trn2", CPS_DT_BF16, 16, 16, 16);
    i.target = NULL;
    CHECK(R->infer(R->self, A, &i, D));
    n = R->candidates(R->self, A, &i, &c, D);
    CHECK(!named(c, n, "matmul_banks"));
    CHECK_INT(cps_diags_errors(D), 0);

    i = matmul("trn2", CPS_DT_BF16, 16, 16, 16);
    i.op = "matmull";
    CHECK(!R->infer(R->self, A, &i, D));
    CHECK_INT(cps_diags_code(D, cps_diags_count(D) - 1), CPS_E1106);
    i = matmul("trn2", CPS_DT_BF16, 16, 16, 16);
    i.operand[1].type.dim[0] = 17;
    CHECK(!R->infer(R->self, A, &i, D));
    CHECK_INT(cps_diags_code(D, cps_diags_count(D) - 1), CPS_E2310);
    CHECK(!R->trace(R->self, A, &(cps_instance){.op = "matmul"},
                    &(cps_candidate){.leaf = "none"}, 0, D));
    cps_diags_clear(D);
}

static void
added(void)
{
    static const char extra[] = "op twice_of(x[T, N]) -> y[T, N] { y = x + x; }\n"
                                "leaf twice_of_rows for twice_of on trn1, trn2 {\n"
                                "    cases (T: 3, N: 5);\n"
                                "    for t in tiles(T, P) {\n"
                                "        sbuf a[t, N] <- x[t, :];\n"
                                "        y[t, :] <- a + a;\n    }\n}\n";
    static const char clash[] = "op matmul(x[A]) -> y[A] { y = x; }\n";
    cps_candidate *c;

    CHECK(cps_dsl_registry_add(R, "extra.cps", extra, sizeof(extra) - 1, D));
    CHECK(!waits("twice_of_rows")); // what has never been checked is read whole
    cps_instance i = {
        .op = "twice_of", .target = cps_target_find("trn1"), .cores = 1, .noperands = 1};
    i.operand[0] =
        (cps_operand){"x", true, cps_type_make(CPS_DT_FP32, 2, (int64_t[]){3, 5}), 0};
    CHECK(R->infer(R->self, A, &i, D));
    unsigned n = R->candidates(R->self, A, &i, &c, D);
    CHECK(n == 1 && c[0].ok);
    cps_tfunc *f = n ? R->trace(R->self, A, &i, &c[0], 0, D) : NULL;
    CHECK(f && f->insts.n == 3);
    CHECK_INT(cps_diags_errors(D), 0);
    i.target = cps_target_find("trn3");
    CHECK_INT(R->candidates(R->self, A, &i, &c, D), 0);
    CHECK(!cps_dsl_registry_add(R, "clash.cps", clash, sizeof(clash) - 1, D));
    CHECK_INT(cps_diags_code(D, 0), CPS_E2203);
    cps_diags_clear(D);
}

int
main(void)
{
    A = cps_arena_create();
    D = cps_diags_create();
    R = cps_dsl_registry_create(A, D);
    index_and_signatures();
    show();
    selection();
    added();
    show();
    cps_dsl_registry_destroy(R);
    cps_diags_destroy(D);
    cps_arena_destroy(A);
    return CHECK_DONE();
}

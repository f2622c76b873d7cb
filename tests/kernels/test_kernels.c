/* The kernels room without the language: key components, text of instances, the cost model,
 * selection, the scanner, and the embedded table against what the scanner finds. */
#include "kernels/index.h"
#include "kernels/registry.h"
#include "runtime/base/hash.h"
#include "tests/check.h"

#include <stdlib.h>

static cps_arena *A;

static cps_instance
sample(void)
{
    cps_instance i = {.op = "matmul",
                      .target = cps_target_find("trn2"),
                      .cores = 1,
                      .noperands = 3,
                      .nresults = 1};
    i.operand[0] =
        (cps_operand){"x", true, cps_type_make(CPS_DT_BF16, 2, (int64_t[]){512, 64}), 0};
    i.operand[1] =
        (cps_operand){"w", true, cps_type_make(CPS_DT_BF16, 2, (int64_t[]){64, 32}), 0};
    i.operand[2] = (cps_operand){.name = "bias"};
    i.result[0] =
        (cps_operand){"y", true, cps_type_make(CPS_DT_BF16, 2, (int64_t[]){512, 32}), 0};
    cps_attr_put(A, &i.attr, &i.nattr,
                 (cps_attr){.key = "act", .kind = CPS_A_STR, .s = "gelu"});
    return i;
}

static cps_digest
key_of(const cps_instance *i)
{
    cps_buf b = {0};
    cps_instance_key(i, &b);
    cps_digest d = cps_digest_of(b.data, b.n);
    cps_buf_fini(&b);
    return d;
}

static void
keys(void)
{
    cps_instance a = sample(), b = sample();
    cps_digest k = key_of(&a), l = key_of(&b);
    cps_buf t = {0};

    CHECK(cps_digest_eq(&k, &l));
#define DIFFERS(change)                                                                        \
    do {                                                                                       \
        b = sample();                                                                          \
        change;                                                                                \
        l = key_of(&b);                                                                        \
        CHECK(!cps_digest_eq(&k, &l));                                                         \
    } while (0)
    DIFFERS(b.op = "matmul2");
    DIFFERS(b.target = cps_target_find("trn1"));
    DIFFERS(b.target = NULL);
    DIFFERS(b.cores = 2);
    DIFFERS(b.operand[0].order = 1);
    DIFFERS(b.operand[0].type.dim[0] = 511);
    DIFFERS(b.operand[0].type.dtype = CPS_DT_FP16);
    DIFFERS(b.operand[2].present = true);
    DIFFERS(b.result[0].type.dtype = CPS_DT_FP32);
    DIFFERS(b.attr[0].s = "relu");
    DIFFERS(b.attr[0].key = "fn");
    DIFFERS(b.nattr = 0);

    cps_instance_print(&a, &t);
    CHECK_STR(t.data, "matmul(x bf16[512,64], w bf16[64,32]; act=gelu) on trn2");
    cps_buf_fini(&t);
    a.operand[0].order = 1;
    a.cores = 2;
    cps_attr_put(A, &a.attr, &a.nattr,
                 (cps_attr){.key = "eps", .kind = CPS_A_FLOAT, .f = 1e-6});
    cps_attr_put(A, &a.attr, &a.nattr, (cps_attr){.key = "deep", .kind = CPS_A_BOOL, .i = 1});
    t = (cps_buf){0};
    cps_instance_print(&a, &t);
    CHECK_STR(t.data,
              "matmul(x bf16[512,64] stored transposed, w bf16[64,32]; act=gelu, deep=true, "
              "eps=1e-6) on trn2, 2 cores");
    cps_buf_fini(&t);
}

static void
costs(void)
{
    const cps_target *t = cps_target_find("trn2");
    cps_costs c = {.hbm = 3.84e6};
    const char *b = NULL;
    int64_t empty = cps_cost_ns(t, &(cps_costs){0}, NULL);

    CHECK(empty > 0);
    int64_t ns = cps_cost_ns(t, &c, &b) - empty;
    CHECK_STR(b, "hbm");
    CHECK(llabs(ns - (int64_t)(3.84e6 / t->hbm_core_bytes_per_ns)) <= 1);
    c.cycles[CPS_ACT] = 1.2e6; // a millisecond at 1.2 GHz
    ns = cps_cost_ns(t, &c, &b) - empty;
    CHECK_STR(b, "act");
    CHECK_INT(ns, 1000000);
    c.cycles[CPS_DVE] = 2e6;
    CHECK(cps_cost_ns(t, &c, &b) - empty > 2000000);
    CHECK_STR(b, "dve");
    c.host_cycles = 3e9;
    CHECK_INT(cps_cost_ns(NULL, &c, &b), 1000000000);
    CHECK_STR(b, "cycles");
    c.cycles[CPS_PE] = 0.0 / 0.0; // whatever a clause computes, the model stays whole
    c.link = -1;
    CHECK(cps_cost_ns(t, &c, &b) > 0);
    c.hbm = 1e300;
    CHECK(cps_cost_ns(t, &c, &b) == INT64_MAX);
}

static void
picks(void)
{
    cps_candidate c[] = {{.leaf = "b", .ok = true, .cost_ns = 50},
                         {.leaf = "a", .ok = true, .cost_ns = 50},
                         {.leaf = "c", .ok = false, .cost_ns = 1},
                         {.leaf = "d", .ok = true, .cost_ns = 60, .priority = 9}};
    const char *why = NULL;

    CHECK_INT(cps_registry_pick(c, 4, NULL, &why), 1);
    CHECK_STR(why, "model");
    c[0].priority = 1;
    CHECK_INT(cps_registry_pick(c, 4, NULL, NULL), 0);
    CHECK_INT(cps_registry_pick(c, 4, "d", &why), 3);
    CHECK_STR(why, "forced");
    CHECK_INT(cps_registry_pick(c, 4, "c", NULL), -1);
    CHECK_INT(cps_registry_pick(c, 4, "nothing", NULL), -1);
    CHECK_INT(cps_registry_pick(c, 1, NULL, &why), 0);
    CHECK_STR(why, "only");
    CHECK_INT(cps_registry_pick(c, 0, NULL, NULL), -1);
}

static void
scanning(void)
{
    static const char text[] =
        "// op not(this)\n/* leaf nor for this on trn1 { */ const S = \"op quoted(x)\";\n"
        "op one(x[A]) -> y[A] { let op_like = 1; leafy = op; }\n"
        "fn op2(a) { op three(b); }\nleaf one_fast for one on trn1,\n   trn2 {\n  cases (A: "
        "1);\n}\n"
        "block two(x[A]) -> y[A] { y = one(x); } leaf broken for";
    cps_scan_item x;
    size_t at = 0;

    CHECK(cps_kernel_scan(text, sizeof(text) - 1, &at, &x));
    CHECK(x.kind == 'O' && x.nname == 3 && memcmp(x.name, "one", 3) == 0);
    CHECK(cps_kernel_scan(text, sizeof(text) - 1, &at, &x));
    CHECK(x.kind == 'L' && x.nname == 8 && memcmp(x.name, "one_fast", 8) == 0);
    CHECK(x.nop == 3 && memcmp(x.op, "one", 3) == 0 && memcmp(x.targets, "trn1,", 5) == 0);
    CHECK(cps_kernel_scan(text, sizeof(text) - 1, &at, &x));
    CHECK(x.kind == 'B' && x.nname == 3);
    CHECK(!cps_kernel_scan(text, sizeof(text) - 1, &at, &x));
    for (size_t n = 0; n < sizeof(text); n++) // every prefix ends
        for (at = 0; cps_kernel_scan(text, n, &at, &x);)
            CHECK(at <= n);
}

static void
embedded(void)
{
    unsigned k = 0;

    CHECK(cps_kernel_source_count > 0);
    for (unsigned i = 0; i < cps_kernel_source_count; i++) {
        const cps_source *s = &cps_kernel_sources[i];
        cps_scan_item x;
        CHECK(strlen(s->text) == s->n);
        if (i) // sorted: the table does not depend on the order of a folder
            CHECK(strcmp(cps_kernel_sources[i - 1].path, s->path) < 0);
        for (size_t at = 0; cps_kernel_scan(s->text, s->n, &at, &x); k++) {
            const cps_kernel_def *d = &cps_kernel_defs[k];
            CHECK(k < cps_kernel_def_count && d->kind == x.kind && d->source == i);
            CHECK(strlen(d->name) == x.nname && memcmp(d->name, x.name, x.nname) == 0);
            if (d->kind == 'L')
                CHECK(d->op && d->targets && !strchr(d->targets, ','));
        }
    }
    CHECK_INT(k, cps_kernel_def_count);
}

int
main(void)
{
    A = cps_arena_create();
    keys();
    costs();
    picks();
    scanning();
    embedded();
    cps_arena_destroy(A);
    return CHECK_DONE();
}

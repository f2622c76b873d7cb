/* The memo of compiled kernels: equal requests get the same kernel, every part of a request counts, a hash that is
 * always the same does not confuse it, and it stays within its limits. */
#include "frontend/dsl/registry.h"
#include "frontend/memo.h"

#include "tests/check.h"

static cps_cli
session(void)
{
    cps_cli c = {.arena = cps_arena_create(), .diags = cps_diags_create(), .command = "kernel"};
    cps_vec_push(c.arena, &c.opt[CPS_OPT_NOCACHE], "");
    return c;
}

static void
session_end(cps_cli *c)
{
    cps_dsl_registry_destroy(c->registry);
    cps_diags_destroy(c->diags);
    cps_arena_destroy(c->arena);
}

/* What a request is made of, as text. */
typedef struct request {
    const char *op, *target;
    int64_t m, k, n;
    cps_dtype dtype;
    bool bias;
    const char *act, *tx;
    int cores;
    const char *leaf;
    int64_t loads; /* a parameter of matmul_banks, 0: as it comes */
} request;

static const request plain = {"matmul", "trn2", 128, 128, 512, CPS_DT_BF16, false, "none", "0", 1, NULL, 0};

static cps_instance
made(cps_cli *c, const request *q)
{
    static const char *const dim[] = {"M", "K", "N"}, *const with[] = {"bias"}, *const attr[] = {"act", "tx"};
    const char *const text[] = {q->act, q->tx};
    const int64_t size[] = {q->m, q->k, q->n};
    cps_registry *r = cps_cli_registry(c);
    cps_instance i;
    CHECK(r->make(r->self, c->arena, q->op, 3, dim, size, q->dtype, q->bias, with, q->act ? 2 : 0, attr, text,
                  cps_target_find(q->target), q->cores, &i, c->diags));
    return i;
}

static const cps_kept *
asked(cps_memo *m, cps_cli *c, const request *q)
{
    cps_instance i = made(c, q);
    const cps_attr fixed = {.key = "WB", .kind = CPS_A_INT, .i = q->loads};
    return cps_memo_kernel(m, c, &(cps_ask){&i, q->leaf, &fixed, q->loads != 0});
}

static uint64_t
always_one(const cps_ask *q)
{
    (void)q;
    return 1;
}

static void
parts_count(uint64_t (*hash)(const cps_ask *))
{
    cps_cli c = session();
    cps_memo *m = cps_memo_create(&(cps_memo_limits){100, (size_t)1 << 30, hash});
    request q[12];
    for (size_t i = 0; i < cps_countof(q); i++)
        q[i] = plain;
    q[1].m = 256;
    q[2].k = 256;
    q[3].n = 1024;
    q[4].dtype = CPS_DT_FP32;
    q[5].bias = true;
    q[6].act = "gelu";
    q[7].tx = "1";
    q[8].target = "trn1";
    q[9].cores = 2;
    q[10].leaf = "matmul_banks";
    q[11].leaf = "matmul_banks";
    q[11].loads = 3;
    const cps_kept *first[cps_countof(q)];
    for (size_t i = 0; i < cps_countof(q); i++) {
        first[i] = asked(m, &c, &q[i]);
        CHECK(first[i] != NULL && cps_memo_count(m).misses == i + 1);
        for (size_t j = 0; j < i; j++)
            CHECK(first[i] != first[j]);
    }
    for (size_t i = 0; i < cps_countof(q); i++)
        CHECK(asked(m, &c, &q[i]) == first[i]);
    CHECK_INT(cps_memo_count(m).hits, cps_countof(q));
    CHECK_INT(cps_memo_count(m).entries, cps_countof(q));
    CHECK_STR(first[8]->bin.kbin->target, "trn1");
    CHECK(first[9]->bin.kbin->peer && !first[0]->bin.kbin->peer);
    CHECK_STR(first[10]->cand.leaf, "matmul_banks");
    CHECK_STR(first[11]->why, "forced");
    CHECK(cps_attr_find(first[11]->cand.config, first[11]->cand.nconfig, "WB")->i == 3);
    CHECK(cps_attr_find(first[10]->cand.config, first[10]->cand.nconfig, "WB")->i != 3);
    cps_memo_destroy(m);
    session_end(&c);
}

/* A kernel out of the memo is the one that is compiled without it. */
static void
same_kernel(void)
{
    cps_cli c = session();
    cps_memo *m = cps_memo_create(NULL);
    const cps_kept *k = asked(m, &c, &plain);
    k = asked(m, &c, &plain);
    cps_instance i = made(&c, &plain);
    cps_candidate *cand;
    unsigned n;
    const char *why;
    cps_compiled bin;
    int at = cps_choose(&c, &i, NULL, &cand, &n, &why);
    CHECK(at >= 0 && cps_compile_kernel(&c, c.arena, &i, &cand[at], &bin));
    cps_buf got = {0}, want = {0};
    cps_kbin_pack(k->bin.kbin, &got);
    cps_kbin_pack(bin.kbin, &want);
    CHECK(got.n == want.n && memcmp(got.data, want.data, got.n) == 0 && cps_digest_eq(&k->bin.key, &bin.key));
    CHECK_STR(k->cand.leaf, cand[at].leaf);
    CHECK_STR(k->why, why);
    cps_buf_fini(&got);
    cps_buf_fini(&want);
    cps_memo_destroy(m);
    session_end(&c);
}

/* The caller's request may go; attributes of every kind are compared by value. */
static void
requests_are_copied(void)
{
    cps_cli c = session();
    cps_memo *m = cps_memo_create(NULL);
    cps_arena *a = cps_arena_create();
    cps_instance i = made(&c, &plain);
    cps_instance mine = i;
    mine.op = cps_arena_strdup(a, i.op);
    mine.attr = NULL;
    mine.nattr = 0;
    for (uint16_t k = 0; k < i.nattr; k++)
        cps_attr_put(a, &mine.attr, &mine.nattr, cps_attr_copy(a, &i.attr[k]));
    const cps_kept *k = cps_memo_kernel(m, &c, &(cps_ask){.inst = &mine});
    memset(&mine, 0, sizeof mine);
    cps_arena_destroy(a);
    CHECK(k && cps_memo_kernel(m, &c, &(cps_ask){.inst = &i}) == k);
    // Asked for before `infer`: without results and defaults it is another request, for the same kernel.
    cps_instance bare = i;
    bare.nresults = 0;
    bare.nattr = 0;
    bare.attr = NULL;
    const cps_kept *again = cps_memo_kernel(m, &c, &(cps_ask){.inst = &bare});
    CHECK(again && again != k && cps_digest_eq(&again->bin.key, &k->bin.key));
    CHECK(cps_memo_kernel(m, &c, &(cps_ask){.inst = &bare}) == again);
    cps_memo_destroy(m);
    session_end(&c);
}

static void
limits(void)
{
    cps_cli c = session();
    cps_memo *m = cps_memo_create(&(cps_memo_limits){3, (size_t)1 << 30, cps_ask_hash});
    request q = plain;
    for (int k = 1; k <= 4; k++) {
        q.n = 512 * k;
        CHECK(asked(m, &c, &q) != NULL);
        if (k == 3) { // the first is used again: the second goes
            q.n = 512;
            CHECK(asked(m, &c, &q) != NULL && cps_memo_count(m).hits == 1);
        }
    }
    CHECK_INT(cps_memo_count(m).entries, 3);
    CHECK_INT(cps_memo_count(m).evicted, 1);
    q.n = 512;
    CHECK(asked(m, &c, &q) && cps_memo_count(m).hits == 2);
    q.n = 1024;
    CHECK(asked(m, &c, &q) && cps_memo_count(m).hits == 2 && cps_memo_count(m).evicted == 2);
    q.leaf = "matmul_banks";
    q.loads = 5; // not in the set
    CHECK(!asked(m, &c, &q) && cps_memo_count(m).entries == 3 && cps_diags_errors(c.diags) == 1);
    q = plain;
    q.n = 1536; // errors of others are not its own
    CHECK(asked(m, &c, &q) && cps_diags_errors(c.diags) == 1);
    cps_diags_clear(c.diags);
    q = plain;
    cps_memo_destroy(m);
    // A limit of bytes that nothing keeps: the newest stays all the same.
    m = cps_memo_create(&(cps_memo_limits){100, 1, cps_ask_hash});
    for (int k = 1; k <= 3; k++) {
        q.n = 512 * k;
        const cps_kept *got = asked(m, &c, &q);
        CHECK(got && asked(m, &c, &q) == got && cps_memo_count(m).entries == 1 && cps_memo_count(m).bytes > 1);
    }
    CHECK(cps_memo_count(m).evicted == 2 && cps_memo_count(m).hits == 3);
    cps_memo_destroy(m);
    session_end(&c);
}

/* What was said when it was compiled is said again; what failed is not kept. */
static void
said_again(void)
{
    cps_cli c = session();
    cps_memo *m = cps_memo_create(NULL);
    cps_vec_push(c.arena, &c.opt[CPS_OPT_KPATH], "tests/data/pressure.cps");
    request q = plain;
    q.leaf = "no_such_leaf";
    CHECK(!asked(m, &c, &q) && cps_diags_errors(c.diags) == 1);
    CHECK(!asked(m, &c, &q) && cps_memo_count(m).hits == 0 && cps_memo_count(m).entries == 0);
    cps_diags_clear(c.diags);
    // A weight that SBUF does not hold: it is streamed, and that is said.
    request large = {"pressed_matmul", "trn2", 128, 1024, 16384, CPS_DT_BF16, false, NULL, NULL, 1, "matmul_kept", 0};
    cps_instance i = made(&c, &large);
    const cps_ask ask = {.inst = &i, .leaf = large.leaf};
    const cps_kept *k = cps_memo_kernel(m, &c, &ask);
    unsigned said = cps_diags_count(c.diags);
    CHECK(k && said == 1 && cps_diags_code(c.diags, 0) == CPS_W4108); // it is streamed
    cps_diags_clear(c.diags);
    CHECK(cps_memo_kernel(m, &c, &ask) == k && cps_diags_count(c.diags) == said);
    CHECK(cps_diags_code(c.diags, 0) == CPS_W4108);
    cps_memo_destroy(m);
    session_end(&c);
}

int
main(void)
{
    parts_count(cps_ask_hash);
    parts_count(always_one);
    same_kernel();
    requests_are_copied();
    limits();
    said_again();
    return CHECK_DONE();
}

/* What is not numbers: refusals with their codes, equal bytes for equal input, threads that
 * share one object, the linker's complaint, the text of host.h, other processors, a missing
 * generator. */
#include "tests/check.h"
#include "runtime/base/file.h"
#include "tests/host/rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct model {
    cps_arena *a;
    cps_diags *d;
    cps_module *m;
    cps_builder b;
} model;

static model
fresh(void)
{
    model t = {.a = cps_arena_create(), .d = cps_diags_create()};
    t.m = cps_module_new(t.a, "tiny */ model");
    t.b = (cps_builder){.m = t.m, .f = cps_func_new(t.m, "main"), .d = t.d};
    return t;
}

static void
drop(model *t)
{
    cps_diags_destroy(t->d);
    cps_arena_destroy(t->a);
}

static bool
has_code(const cps_diags *d, cps_code code)
{
    for (unsigned i = 0; i < cps_diags_count(d); i++)
        if (cps_diags_code(d, i) == code)
            return true;
    return false;
}

static void
refusals(void)
{
    const int64_t n[1] = {4}, big[1] = {2000};
    model t = fresh();
    cps_type f8 = cps_type_make(CPS_DT_FP8E4M3, 1, n), f32 = cps_type_make(CPS_DT_FP32, 1, n);
    cps_val x = cps_b_input(&t.b, "x", f8), y;
    cps_val in[1] = {x};
    cps_b_call(&t.b, "rmsnorm", 1, in, 0, NULL, 1, &f32, &y);
    cps_b_output(&t.b, "y", y);
    cps_type large = cps_type_make(CPS_DT_FP32, 1, big);
    void *zeros = cps_arena_alloc(t.a, 8000);
    cps_b_output(&t.b, "z", cps_b_const(&t.b, large, zeros, "table"));
    cps_host_out out = {0};
    cps_host_opts o = {.olevel = 1};
    CHECK(!cps_host_compile(t.m, t.b.f, NULL, &o, false, &out, t.d));
    CHECK(has_code(t.d, CPS_E7201));
    CHECK(has_code(t.d, CPS_E7202));
    CHECK(has_code(t.d, CPS_E7203));
    CHECK(out.object.n == 0);
    drop(&t);

    t = fresh();
    cps_b_output(&t.b, "y", cps_b_input(&t.b, "x", f32));
    o.cpu = "pentium9";
    CHECK(!cps_host_compile(t.m, t.b.f, NULL, &o, false, &out, t.d));
    CHECK(has_code(t.d, CPS_E7204));
    cps_buf so = {0};
    CHECK(!cps_host_link("no object", 9, &so, t.d));
    CHECK(has_code(t.d, CPS_E1112));
    CHECK(so.n == 0);
    for (unsigned i = 0; i < cps_diags_count(t.d); i++) // no temporary path reaches the reader
        CHECK(!strstr(cps_diags_text(t.d, i), "copse-"));
    drop(&t);
}

// A layer of everything: a product, a norm, a softmax, a gather, a sort.
static model
layer(void)
{
    model t = fresh();
    const int64_t dim[2] = {40, 48}, ids[1] = {40}, axis = 1;
    cps_rng r;
    cps_rng_init(&r, 3, 0);
    cps_type wt = cps_type_make(CPS_DT_FP32, 2, (int64_t[]){48, 48});
    void *w = cps_arena_alloc(t.a, (size_t)cps_type_bytes(&wt));
    rig_fill(&r, &wt, RIG_SMALL, 0, w);
    cps_val x = cps_b_input(&t.b, "x", cps_type_make(CPS_DT_FP32, 2, dim));
    cps_val i = cps_b_input(&t.b, "i*/", cps_type_make(CPS_DT_I64, 1, ids));
    cps_val c = cps_b_const(&t.b, wt, w, "w"), out[2];
    for (int k = 0; k < 3; k++) {
        x = cps_b_matmul(&t.b, cps_b_gather(&t.b, x, i, 0), c);
        cps_val s =
            cps_b_reduce(&t.b, CPS_OP_SUM, cps_b_unary(&t.b, CPS_OP_EXP, x), 1, &axis, true);
        x = cps_b_binary(&t.b, CPS_OP_DIV, cps_b_unary(&t.b, CPS_OP_EXP, x), s);
        x = cps_b_unary(&t.b, CPS_OP_GELU, x);
    }
    cps_attr at[2] = {cps_a_int("axis", 1), cps_a_bool("descending", true)};
    cps_b_node(&t.b, CPS_OP_SORT, 1, &x, 2, at, out);
    cps_b_output(&t.b, "values", out[0]);
    cps_b_output(&t.b, "order", out[1]);
    return t;
}

static void
same_bytes(void)
{
    cps_host_out out[2];
    memset(out, 0, sizeof out);
    for (int k = 0; k < 2; k++) {
        model t = layer();
        void *shift = malloc(1000 * (size_t)(k + 1)); // other addresses the second time
        cps_host_opts o = {.olevel = 2};
        int64_t offset[1] = {128};
        CHECK(cps_host_compile(t.m, t.b.f, offset, &o, true, &out[k], t.d));
        free(shift);
        drop(&t);
    }
    CHECK(out[0].object.n == out[1].object.n &&
          memcmp(out[0].object.data, out[1].object.data, out[0].object.n) == 0);
    CHECK_STR(out[0].llvm.data, out[1].llvm.data);
    CHECK_STR(out[0].header.data, out[1].header.data);
    // layers share their functions: three products, one body
    int parts = 0;
    for (const char *p = out[0].llvm.data; (p = strstr(p, "\ndefine internal")); p++)
        parts++;
    CHECK(parts > 0 && parts < 14);
    CHECK(strstr(out[0].header.data, "in[1] i%2A/ i64[40], 320 bytes"));
    CHECK(strstr(out[0].header.data, "tiny%20%2A/%20model"));
    CHECK(strstr(out[0].header.data, "cps_model_run"));
    for (int k = 0; k < 2; k++) {
        cps_buf_fini(&out[k].object);
        cps_buf_fini(&out[k].llvm);
        cps_buf_fini(&out[k].header);
    }
}

static void
header_compiles(void)
{
    model t = layer();
    cps_host_out out = {0};
    cps_host_opts o = {.olevel = 1};
    int64_t offset[1] = {0};
    CHECK(cps_host_compile(t.m, t.b.f, offset, &o, false, &out, t.d));
    // one comment, opened and closed once: names cannot break out of it
    int opens = 0;
    for (const char *p = out.header.data; (p = strstr(p, "*/")); p++)
        opens++;
    CHECK_INT(opens, 3); // head, two sizes
    cps_buf_fini(&out.object);
    cps_buf_fini(&out.header);
    drop(&t);
}

typedef struct job {
    const rig *r;
    const cps_func *f;
    const void *const *in;
    float *values;
    int64_t *order;
} job;

static void *
work(void *p)
{
    job *j = p;
    void *out[2] = {j->values, j->order};
    for (int k = 0; k < 50; k++)
        if (!rig_run(j->r, j->f, j->in, out))
            return p;
    return NULL;
}

static void
threads(void)
{
    enum { N = 40 * 48 };
    model t = layer();
    rig r;
    CHECK(rig_open(&r, t.a, t.m, t.b.f, 2, NULL, 64, t.d));
    static float x[4][N], values[4][N];
    static int64_t order[4][N], ids[40];
    job j[4];
    pthread_t th[4];
    const void *in[4][2];
    for (int i = 0; i < 40; i++)
        ids[i] = (i * 7) % 40;
    for (int k = 0; k < 4; k++) {
        cps_rng rng;
        cps_rng_init(&rng, (uint64_t)(k % 2), 5); // two inputs, each in two threads
        for (int i = 0; i < N; i++)
            x[k][i] = (float)cps_rng_normal(&rng);
        in[k][0] = x[k];
        in[k][1] = ids;
        j[k] = (job){&r, t.b.f, in[k], values[k], order[k]};
        CHECK(pthread_create(&th[k], NULL, work, &j[k]) == 0);
    }
    for (int k = 0; k < 4; k++) {
        void *bad;
        pthread_join(th[k], &bad);
        CHECK(!bad);
    }
    for (int k = 0; k < 2; k++) {
        CHECK(memcmp(values[k], values[k + 2], sizeof values[k]) == 0);
        CHECK(memcmp(order[k], order[k + 2], sizeof order[k]) == 0);
    }
    CHECK(memcmp(values[0], values[1], sizeof values[0]) != 0);
    rig_close(&r);
    drop(&t);
}

// Indices outside their axis are the data's fault: other elements, never foreign memory.
static void
wild_indices(void)
{
    model t = fresh();
    const int64_t n[1] = {9}, k[1] = {20};
    cps_val x = cps_b_input(&t.b, "x", cps_type_make(CPS_DT_FP32, 1, n));
    cps_val i = cps_b_input(&t.b, "i", cps_type_make(CPS_DT_I64, 1, k));
    cps_val u = cps_b_input(&t.b, "u", cps_type_make(CPS_DT_FP32, 1, k)), y;
    cps_b_output(&t.b, "g", cps_b_gather(&t.b, x, i, 0));
    cps_attr at[2] = {cps_a_int("axis", 0), cps_a_bool("add", true)};
    cps_b_node(&t.b, CPS_OP_SCATTER, 3, (cps_val[]){x, i, u}, 2, at, &y);
    cps_b_output(&t.b, "s", y);
    rig r;
    CHECK(rig_open(&r, t.a, t.m, t.b.f, 2, NULL, 64, t.d));
    float xs[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, us[20] = {0}, g[20], s[9];
    int64_t is[20];
    for (int q = 0; q < 20; q++)
        is[q] = q % 4 == 0 ? INT64_MIN + q : q % 4 == 1 ? INT64_MAX - q : q % 4 == 2 ? 9 : 4;
    us[3] = 10;
    CHECK(rig_run(&r, t.b.f, (const void *[]){xs, is, us}, (void *[]){g, s}));
    CHECK(g[3] == 5.0f && g[0] == 1.0f && g[1] == 9.0f && g[2] == 9.0f);
    CHECK(s[4] == 15.0f && s[0] == 1.0f && s[8] == 9.0f);
    rig_close(&r);
    drop(&t);
}

// Code for older processors runs here too, with other vectors and register tiles.
static void
other_processors(void)
{
    static const char *const cpus[] = {"x86-64", "x86-64-v2"};
    enum { N = 40 * 48 };
    static float x[N], want[N], got[N];
    static int64_t order[2][N], ids[40];
    cps_rng rng;
    cps_rng_init(&rng, 1, 5);
    for (int i = 0; i < N; i++)
        x[i] = (float)cps_rng_normal(&rng);
    const void *in[2] = {x, ids};
    model t = layer();
    rig r;
    CHECK(rig_open(&r, t.a, t.m, t.b.f, 1, NULL, 64, t.d));
    CHECK(rig_run(&r, t.b.f, in, (void *[]){want, order[0]}));
    rig_close(&r);
    for (size_t k = 0; k < cps_countof(cpus); k++) {
        CHECK(rig_open(&r, t.a, t.m, t.b.f, 2, cpus[k], 64, t.d));
        CHECK(rig_run(&r, t.b.f, in, (void *[]){got, order[1]}));
        float worst = 0;
        for (int i = 0; i < N; i++)
            worst = CPS_MAX(worst, got[i] > want[i] ? got[i] - want[i] : want[i] - got[i]);
        CHECK(worst < 1e-5f);
        rig_close(&r);
    }
    drop(&t);
}

// A copy of this program in a folder of its own finds no generator.
static void
missing(const char *self)
{
    char dir[] = P_tmpdir "/copse-test-XXXXXX", path[128];
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/alone", dir);
    cps_file f;
    CHECK(cps_file_open(self, false, &f));
    CHECK(cps_file_write(path, f.data, f.n));
    cps_file_close(&f);
    CHECK(chmod(path, 0700) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        execl(path, path, "alone", (char *)NULL);
        _exit(99);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 11);
    unlink(path);
    rmdir(dir);
}

static int
alone(void)
{
    model t = fresh();
    cps_b_output(&t.b, "y", cps_b_input(&t.b, "x", cps_type_make(CPS_DT_FP32, 0, NULL)));
    cps_host_out out = {0};
    cps_host_opts o = {.olevel = 1};
    bool made = cps_host_compile(t.m, t.b.f, NULL, &o, false, &out, t.d);
    int code = !made && has_code(t.d, CPS_E1111) ? 11 : 12;
    drop(&t);
    return code;
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "alone") == 0)
        return alone();
    refusals();
    same_bytes();
    header_compiles();
    threads();
    wild_indices();
    other_processors();
    missing("/proc/self/exe");
    (void)argv;
    return CHECK_DONE();
}

/* Bodies against mathematics written out here: each operator's graph is evaluated on small seeded
 * inputs and compared with plain loops over binary64. */
#include "frontend/dsl/body.h"
#include "runtime/base/rng.h"
#include "tests/check.h"
#include "tests/dsl/dsl.h"

#include <math.h>

enum { MAX_IO = 8 };

typedef struct job {
    cps_arena *a;
    dsl_files files;
    cps_diags *d;
    cps_dsl_set *s;
    cps_instance i;
    cps_tensor in[MAX_IO], out[MAX_IO];
    int nin, nout;
    bool ok;
} job;

static void
show(cps_diags *d)
{
    cps_buf b = {0};
    cps_diags_render(d, &b, false);
    fprintf(stderr, "%s", b.n ? b.data : "");
    cps_buf_fini(&b);
}

// "M=2 K=3 act=gelu with=bias": names of one letter pair up with numbers, the rest is text.
static job
begin(const char *source, const char *op, const char *words)
{
    job j = {.a = cps_arena_create()};
    j.files.arena = j.a;
    j.d = cps_diags_create();
    j.s = cps_dsl_set_create(j.d, dsl_read, NULL);
    j.s->user = &j.files;
    if (strchr(source, '{'))
        cps_dsl_load_text(j.s, "t.cps", source, strlen(source));
    else
        cps_dsl_load(j.s, source);
    bool ok = cps_dsl_set_check(j.s);
    const cps_dsl_op *o = cps_dsl_find_op(j.s, op);
    const char *dim[12], *with[4], *attr[12], *text[12];
    int64_t size[12];
    cps_words w = {.dim = dim, .size = size, .with = with, .attr = attr, .text = text,
                   .dtype = CPS_DT_FP32};
    char *copy = cps_arena_strdup(j.a, words), *save = NULL;
    for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(p, '=');
        *eq = 0;
        bool is_attr = false;
        for (uint32_t k = 0; o && k < o->ast->nattr; k++)
            is_attr |= cps_streq(o->ast->attr[k].name.text, p);
        if (cps_streq(p, "with")) {
            with[w.nwith++] = eq + 1;
        } else if (is_attr) {
            attr[w.nattr] = p;
            text[w.nattr++] = eq + 1;
        } else {
            int64_t v = 0;
            cps_parse_int(eq + 1, strlen(eq + 1), &v);
            dim[w.ndim] = p;
            size[w.ndim++] = v;
        }
    }
    j.ok = ok && o && cps_dsl_make(j.s, j.a, o, &w, NULL, 1, &j.i, j.d);
    if (!j.ok)
        show(j.d);
    for (int k = 0; j.ok && k < j.i.noperands; k++) {
        if (!j.i.operand[k].present)
            continue;
        cps_rng r;
        cps_tensor *t = &j.in[j.nin];
        int64_t n = cps_type_count(&j.i.operand[k].type);
        cps_rng_init(&r, 7, (uint64_t)j.nin);
        t->type = j.i.operand[k].type;
        if (cps_dtype_is_float(t->type.dtype)) {
            t->f = cps_new_array(j.a, double, n);
            for (int64_t q = 0; q < n; q++)
                t->f[q] = (double)(float)cps_rng_normal(&r);
        } else {
            t->i = cps_new_array(j.a, int64_t, n);
        }
        j.nin++;
    }
    return j;
}

static void
run(job *j)
{
    cps_module *m = cps_module_new(j->a, "t");
    const cps_dsl_op *o = j->ok ? cps_dsl_find_op(j->s, j->i.op) : NULL;
    cps_func *f = o ? cps_dsl_body(j->s, m, o, &j->i, true, j->d) : NULL;
    j->ok = f && cps_ir_verify(m, j->d) && cps_ir_eval(j->a, m, f, j->in, j->out, NULL, j->d);
    if (!j->ok)
        show(j->d);
    CHECK(j->ok);
    j->nout = f ? (int)f->outputs.n : 0;
}

static void
end(job *j)
{
    cps_dsl_set_destroy(j->s);
    cps_diags_destroy(j->d);
    cps_arena_destroy(j->a);
}

static void
same(const job *j, int k, const double *want, int64_t n)
{
    if (!j->ok)
        return;
    CHECK_INT(cps_type_count(&j->out[k].type), n);
    double worst = 0, top = 1e-300;
    for (int64_t q = 0; q < n; q++) {
        double got = j->out[k].f ? j->out[k].f[q] : (double)j->out[k].i[q];
        top = fmax(top, fabs(want[q]));
        worst = fmax(worst, fabs(got - want[q]));
        if (isnan(got) != isnan(want[q]))
            worst = HUGE_VAL;
    }
    if (!(worst <= 1e-6 * top))
        fprintf(stderr, "%s: output %d differs by %g\n", j->i.op, k, worst);
    CHECK(worst <= 1e-6 * top);
}

static double
gelu(double x)
{
    return x * (1 + erf(x / sqrt(2))) / 2;
}

static void
test_matmul(void)
{
    enum { M = 5, K = 7, N = 3 };
    job j = begin("leaves/matmul.cps", "matmul", "M=5 K=7 N=3 act=gelu with=bias with=residual");
    run(&j);
    double y[M * N];
    for (int m = 0; m < M && j.ok; m++)
        for (int n = 0; n < N; n++) {
            double s = j.in[2].f[n];
            for (int k = 0; k < K; k++)
                s += j.in[0].f[m * K + k] * j.in[1].f[k * N + n];
            y[m * N + n] = gelu(s) + j.in[3].f[m * N + n];
        }
    same(&j, 0, y, M * N);
    end(&j);
}

static void
test_norms(void)
{
    enum { T = 3, H = 6 };
    job j = begin("leaves/rmsnorm.cps", "rmsnorm", "T=3 H=6 eps=0.5");
    run(&j);
    double y[T * H];
    for (int t = 0; t < T && j.ok; t++) {
        double s = 0;
        for (int h = 0; h < H; h++)
            s += j.in[0].f[t * H + h] * j.in[0].f[t * H + h];
        for (int h = 0; h < H; h++)
            y[t * H + h] = j.in[0].f[t * H + h] / sqrt(s / H + 0.5) * j.in[1].f[h];
    }
    same(&j, 0, y, T * H);
    end(&j);

    j = begin("leaves/softmax.cps", "softmax", "T=3 N=6");
    run(&j);
    for (int t = 0; t < T && j.ok; t++) {
        double s = 0;
        for (int h = 0; h < H; h++)
            s += exp(j.in[0].f[t * H + h]);
        for (int h = 0; h < H; h++)
            y[t * H + h] = exp(j.in[0].f[t * H + h]) / s;
    }
    same(&j, 0, y, T * H);
    end(&j);
}

static void
test_rope(void)
{
    enum { T = 3, D = 6 };
    job j = begin("leaves/rope.cps", "rope", "T=3 d=6");
    run(&j);
    double y[T * D];
    for (int t = 0; t < T && j.ok; t++)
        for (int i = 0; i < D / 2; i++) {
            double a = j.in[0].f[t * D + i], b = j.in[0].f[t * D + D / 2 + i];
            double c = j.in[1].f[t * D / 2 + i], s = j.in[2].f[t * D / 2 + i];
            y[t * D + i] = a * c - b * s;
            y[t * D + D / 2 + i] = b * c + a * s;
        }
    same(&j, 0, y, T * D);
    end(&j);
}

static void
attention(const char *words, bool causal, int window, bool sink)
{
    enum { B = 4, BKV = 2, SQ = 5, SKV = 5, D = 3 };
    job j = begin("leaves/attention.cps", "attention", words);
    run(&j);
    double y[B * SQ * D];
    for (int b = 0; b < B && j.ok; b++)
        for (int q = 0; q < SQ; q++) {
            double p[SKV], l = sink ? exp(j.in[3].f[b]) : 0;
            int kv = b / (B / BKV);
            for (int k = 0; k < SKV; k++) {
                double s = 0;
                for (int d = 0; d < D; d++)
                    s += j.in[0].f[(b * SQ + q) * D + d] * j.in[1].f[(kv * SKV + k) * D + d];
                bool seen = !causal || (k <= q && (!window || q - k <= window));
                l += p[k] = seen ? exp(0.25 * s) : 0;
            }
            for (int d = 0; d < D; d++) {
                double o = 0;
                for (int k = 0; k < SKV; k++)
                    o += p[k] / l * j.in[2].f[(kv * SKV + k) * D + d];
                y[(b * SQ + q) * D + d] = o;
            }
        }
    same(&j, 0, y, B * SQ * D);
    end(&j);
}

static void
test_conv(void)
{
    enum { N = 2, C = 3, H = 5, W = 6, O = 4, R = 3, S = 2, HO = 3, WO = 4 };
    job j = begin("leaves/conv2d.cps", "conv2d", "N=2 C=3 H=5 W=6 O=4 R=3 S=2 stride=2 pad=1");
    run(&j);
    double y[N * O * HO * WO];
    for (int q = 0; q < N * O * HO * WO && j.ok; q++) {
        int n = q / (O * HO * WO), o = q / (HO * WO) % O, h = q / WO % HO, w = q % WO;
        y[q] = 0;
        for (int c = 0; c < C; c++)
            for (int r = 0; r < R; r++)
                for (int s = 0; s < S; s++) {
                    int a = h * 2 + r - 1, b = w * 2 + s - 1;
                    if (a >= 0 && a < H && b >= 0 && b < W)
                        y[q] += j.in[0].f[((n * C + c) * H + a) * W + b] *
                                j.in[1].f[((o * C + c) * R + r) * S + s];
                }
    }
    same(&j, 0, y, N * O * HO * WO);
    end(&j);
}

static void
test_scan_and_sort(void)
{
    job j = begin("leaves/cumsum.cps", "cumsum", "B=2 N=5");
    run(&j);
    double y[10];
    for (int q = 0; q < 10 && j.ok; q++)
        y[q] = j.in[0].f[q] + (q % 5 ? y[q - 1] : 0);
    same(&j, 0, y, 10);
    end(&j);

    j = begin("leaves/topk.cps", "topk", "B=2 V=6 k=3");
    run(&j);
    double v[6], at[6];
    for (int b = 0; b < 2 && j.ok; b++)
        for (int k = 0; k < 3; k++) {
            int best = -1;
            for (int q = 0; q < 6; q++) {
                bool taken = false;
                for (int p = 0; p < k; p++)
                    taken |= at[b * 3 + p] == q;
                if (!taken && (best < 0 || j.in[0].f[b * 6 + q] > j.in[0].f[b * 6 + best]))
                    best = q;
            }
            at[b * 3 + k] = best;
            v[b * 3 + k] = j.in[0].f[b * 6 + best];
        }
    same(&j, 0, v, 6);
    same(&j, 1, at, 6);
    end(&j);
}

// Regions: strides, pieces, moving starts, updates in place.
static void
test_regions(void)
{
    static const char *const text =
        "op f(x[T, N], inout c[T, N], i[2]: i32) -> y[T, N], z[2, N], s[1] {\n"
        "    for t in tiles(T, 2) { y[t, 0:N:2] = x[t, 0:N:2] * 2; }\n"
        "    for k in 0..N / 2 { y[:, 2 * k + 1] = -x[:, 2 * k + 1]; }\n"
        "    z = x[ds(i[0], 2), :];\n"
        "    c[i[1], 1:3] = x[0, 0:2];\n"
        "    c[T - 1, :] += 1;\n"
        "    s = c[i[1], 1] + sum(x, axis: (0, 1))[0, 0];\n"
        "}\n";
    enum { T = 5, N = 4 };
    job j = begin(text, "f", "T=5 N=4");
    if (j.ok) {
        j.in[2].i[0] = 3;
        j.in[2].i[1] = 2;
    }
    run(&j);
    double y[T * N], z[2 * N], c[T * N], s = 0;
    for (int q = 0; q < T * N && j.ok; q++) {
        double x = j.in[0].f[q];
        y[q] = q % 2 ? -x : x * 2;
        c[q] = j.in[1].f[q] + (q / N == T - 1);
        s += x;
        if (q / N >= 3)
            z[q - 3 * N] = x;
    }
    if (j.ok) {
        c[2 * N + 1] = j.in[0].f[0];
        c[2 * N + 2] = j.in[0].f[1];
        s += c[2 * N + 1];
        CHECK_INT(j.nout, 4);
    }
    same(&j, 0, y, T * N);
    same(&j, 1, z, 2 * N);
    same(&j, 2, &s, 1);
    same(&j, 3, c, T * N);
    end(&j);
}

static void
test_gather(void)
{
    static const char *const text =
        "op f(x[V, H], ids[T]: i32) -> y[T, H], z[T, H], w[V, H] {\n"
        "    y = gather(x, maximum(ids, 0));\n"
        "    z = gather(x, ids, fill: 7);\n"
        "    w = scatter_add(x, ids, y);\n"
        "}\n";
    enum { V = 4, H = 2, T = 3 };
    const int64_t ids[T] = {2, -1, 0};
    job j = begin(text, "f", "V=4 H=2 T=3");
    for (int t = 0; t < T && j.ok; t++)
        j.in[1].i[t] = ids[t];
    run(&j);
    double y[T * H], z[T * H], w[V * H];
    for (int q = 0; q < V * H && j.ok; q++)
        w[q] = j.in[0].f[q];
    for (int q = 0; q < T * H && j.ok; q++) {
        int64_t r = ids[q / H];
        y[q] = j.in[0].f[(r < 0 ? 0 : r) * H + q % H];
        z[q] = r < 0 ? 7 : y[q];
        if (r >= 0)
            w[r * H + q % H] += y[q];
    }
    same(&j, 0, y, T * H);
    same(&j, 1, z, T * H);
    same(&j, 2, w, V * H);
    end(&j);
}

int
main(void)
{
    test_matmul();
    test_norms();
    test_rope();
    attention("B=4 Bkv=2 Sq=5 Skv=5 d=3 scale=0.25", false, 0, false);
    attention("B=4 Bkv=2 Sq=5 Skv=5 d=3 scale=0.25 causal=true with=sink", true, 0, true);
    attention("B=4 Bkv=2 Sq=5 Skv=5 d=3 scale=0.25 causal=true window=2", true, 2, false);
    test_conv();
    test_scan_and_sort();
    test_regions();
    test_gather();
    return CHECK_DONE();
}

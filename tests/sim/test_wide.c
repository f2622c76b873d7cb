/* The loops that exist once for each instruction set of the host: every one that this processor has gives
 * the bits of a plain one, also at odd lengths, at extremes of the range and on NaN. */
#include "runtime/base/exp.h"
#include "runtime/base/num.h"
#include "runtime/base/hash.h"
#include "runtime/sim/mm.h"
#include "runtime/sim/wide.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 37, N = 469, K = 128, M = 125, COLS = 109 };

static uint64_t state = 1;

static uint32_t
word(void)
{
    return (uint32_t)cps_mix64(state++);
}

/* Every kind of number: any bits, small integers, zeros. */
static float
any(void)
{
    uint32_t b = word();
    switch (word() % 4) {
    case 0:
        return cps_bits_f32(b);
    case 1:
        return (float)(b % 17) - 8;
    default:
        return cps_bits_f32((b & 0x807FFFFF) | (100 + b % 50) << 23);
    }
}

static bool
same(float a, float b)
{
    return cps_f32_bits(a) == cps_f32_bits(b) || (a != a && b != b);
}

/* ---- products ---- */

static float x32[K * COLS], w32[K * M];
static uint16_t x16[K * COLS];

/* What the instruction means, step by step. */
static float
plain(const mm_job *j, unsigned m, unsigned c, float old)
{
    float acc = 0;
    for (unsigned k = 0; k < j->rows; k++) {
        float w = mm_part_of(j->part, j->w[k * j->wpitch + m]);
        float x = j->bf16 ? cps_bits_f32((uint32_t)x16[k * COLS + c] << 16) : x32[k * COLS + c];
        if (j->exact) {
            acc = fmaf(w, x, acc);
        } else {
            float p = w * x;
            acc = acc + p;
        }
    }
    return j->add ? old + acc : acc;
}

/* How large the operands are: ordinary, products that overflow, products below the normal range. */
static void
fill(unsigned how)
{
    static const uint32_t from[] = {110, 186, 55}, span[] = {30, 12, 20};
    for (int i = 0; i < K * COLS; i++) {
        uint32_t b = word();
        b = (b & 0x807FFFFF) | (from[how] + b % span[how]) << 23;
        x16[i] = (uint16_t)(i % 31 ? b >> 16 : 0);
        x32[i] = cps_bits_f32(b);
    }
    for (int i = 0; i < K * M; i++) {
        uint32_t b = word();
        b = (b & 0x807F0000) | (from[how] + b % span[how]) << 23;
        w32[i] = cps_bits_f32(i % 29 ? b : 0);
    }
}

static void
products(void)
{
    float *room = malloc(K * (M + MM_PANEL) * sizeof *room);
    float *got = malloc(M * COLS * sizeof *got);
    unsigned bad = 0, ran = 0;
    for (unsigned how = 0; how < 3; how++) {
        fill(how);
        for (unsigned form = 0; form < 3; form++) {
            mm_job j = {.w = w32, .wpitch = M, .rows = K, .cols = M, .n = COLS, .opitch = COLS,
                        .out = got, .room = room, .bf16 = form == 0, .exact = form == 1,
                        .add = form != 2};
            j.part = j.exact ? (mm_part)how : MM_WHOLE;
            j.x = j.bf16 ? (const void *)x16 : (const void *)x32;
            j.xpitch = COLS * (j.bf16 ? sizeof *x16 : sizeof *x32);
            if (form == 2) { // 12 bits, as every type but fp32 has
                for (int i = 0; i < K * COLS; i++)
                    x32[i] = cps_bits_f32(cps_f32_bits(x32[i]) & 0xFFFFF000);
            }
            for (int level = 0; level < 3; level++) {
                for (int i = 0; i < M * COLS; i++)
                    got[i] = (float)(i % 5);
                if (!mm_run_on(level, &j))
                    continue;
                ran++;
                for (unsigned m = 0; m < M; m++)
                    for (unsigned c = 0; c < COLS; c++)
                        bad += !same(got[m * COLS + c],
                                     plain(&j, m, c, (float)((int)(m * COLS + c) % 5)));
            }
        }
    }
    CHECK_INT(bad, 0);
    CHECK(ran >= 9);
    free(room);
    free(got);
}

/* A weight is the sum of its parts; what is not finite is whole in the upper one. */
static void
parts(void)
{
    unsigned bad = 0;
    for (unsigned k = 0; k < 10000; k++) {
        float v = any(), high = mm_part_of(MM_HIGH, v), low = mm_part_of(MM_LOW, v);
        bool far = !isfinite(v);
        bad += !same(high, far ? v : cps_bits_f32(cps_f32_bits(v) & 0xFFFFF000));
        bad += !same(far ? low : high + low, far ? 0 : v) || !same(mm_part_of(MM_WHOLE, v), v);
    }
    CHECK_INT(bad, 0);
    CHECK(mm_part_of(MM_HIGH, -INFINITY) == -INFINITY && mm_part_of(MM_LOW, -INFINITY) == 0);
}

/* A small product twice, the second time added, into a field of zeros with a margin: how much of it is wrong.
 * `kept` holds the packed weights from the first to the second. */
enum { SMALL = 7, WIDEST = 34, MOST = 67 };

static unsigned
wrong(int level, unsigned form, unsigned cols, unsigned n, float *kept)
{
    static float room[SMALL * (WIDEST + MM_PANEL)], got[WIDEST + 1][MOST + 1];
    mm_strips strips = {.at = kept};
    mm_job j = {.w = w32, .wpitch = M, .rows = SMALL, .cols = cols, .n = n, .out = got[0],
                .opitch = MOST + 1, .room = room, .strips = kept ? &strips : NULL,
                .bf16 = form == 0, .exact = form == 1};
    j.x = j.bf16 ? (const void *)x16 : (const void *)x32;
    j.xpitch = COLS * (j.bf16 ? sizeof *x16 : sizeof *x32);
    memset(got, 0, sizeof got);
    if (!mm_run_on(level, &j))
        return 0;
    j.add = true;
    mm_run_on(level, &j);
    unsigned bad = 0;
    for (unsigned m = 0; m <= WIDEST; m++) {
        for (unsigned c = 0; c <= MOST; c++) {
            j.add = false;
            float once = m < cols && c < n ? plain(&j, m, c, 0) : 0;
            bad += !same(got[m][c], once + once);
        }
    }
    return bad;
}

/* Each number of the weights' columns, which fall into strips differently, and of x. */
static void
widths(void)
{
    static const unsigned n[] = {1, 7, 8, 9, 16, 17, 32, 48, MOST};
    static float kept[SMALL * WIDEST];
    unsigned bad = 0;
    fill(0);
    for (int i = 0; i < K * COLS; i++)
        x32[i] = cps_bits_f32(cps_f32_bits(x32[i]) & 0xFFFFF000); // 12 bits
    for (unsigned cols = 1; cols <= WIDEST; cols++) {
        for (unsigned q = 0; q < 3 * cps_countof(n); q++)
            bad += wrong((int)q % 3, (cols + q / 6) % 3, cols, n[q / 3], q % 2 ? kept : NULL);
    }
    CHECK_INT(bad, 0);
}

/* ---- rows ---- */

static float fa[ROWS * N], fb[ROWS * N];
static uint16_t ha[ROWS * N], hb[ROWS * N];

static float
at(const wide_side *s, unsigned r, size_t k)
{
    if (!s->bf16)
        return ((const float *)(void *)(s->at + r * s->pitch))[k];
    return cps_bits_f32((uint32_t)((const uint16_t *)(void *)(s->at + r * s->pitch))[k] << 16);
}

static float
rounded(float x, bool bf16)
{
    uint16_t h;
    if (!bf16)
        return x;
    cps_from_f32(CPS_DT_BF16, &h, x);
    return cps_bits_f32((uint32_t)h << 16);
}

static float
op(wide_op o, float x, float y)
{
    switch (o) {
    case WIDE_ADD:
        return x + y;
    case WIDE_SUB:
        return x - y;
    case WIDE_MUL:
        return x * y;
    case WIDE_MAX:
        return x > y || x != x ? x : y;
    default:
        return x < y || x != x ? x : y;
    }
}

static wide_side
side(bool bf16, float *f, uint16_t *h)
{
    return bf16 ? (wide_side){(uint8_t *)h, N * sizeof *h, true}
                : (wide_side){(uint8_t *)f, N * sizeof *f, false};
}

static void
elements(const wide_loops *w)
{
    static float fo[ROWS * N];
    static uint16_t ho[ROWS * N];
    static wide_step st[ROWS][2];
    unsigned bad = 0;
    for (int t = 0; t < 4; t++) {
        wide_side a = side(t & 1, fa, ha), b = side(t & 1, fb, hb), o = side(t & 2, fo, ho);
        for (wide_op q = 0; q < WIDE_OPS; q++) {
            w->pair[q][wide_kind(&o, &a)](&o, &a, &b, st, 0, ROWS, N);
            for (unsigned r = 0; r < ROWS; r++)
                for (size_t k = 0; k < N; k++)
                    bad += !same(at(&o, r, k),
                                 rounded(op(q, at(&a, r, k), at(&b, r, k)), o.bf16));
        }
        for (unsigned r = 0; r < ROWS; r++)
            for (int k = 0; k < 2; k++)
                st[r][k] = (wide_step){any(), any()};
        for (unsigned two = 0; two < 4; two++) {
            unsigned each = two >> 1; // steps of each row, or of the first for all
            w->steps[two & 1][wide_kind(&o, &a)](&o, &a, &a, st, each, ROWS, N);
            for (unsigned r = 0; r < ROWS; r++) {
                for (size_t k = 0; k < N; k++) {
                    float v = at(&a, r, k) * st[r * each][0].mul;
                    v = v + st[r * each][0].add;
                    if (two & 1) {
                        v = v * st[r * each][1].mul;
                        v = v + st[r * each][1].add;
                    }
                    bad += !same(at(&o, r, k), rounded(v, o.bf16));
                }
            }
        }
        wide_cast(w, &o, &a, ROWS, N);
        for (unsigned r = 0; r < ROWS; r++)
            for (size_t k = 0; k < N; k++)
                bad += !same(at(&o, r, k), rounded(at(&a, r, k), o.bf16));
        float acc[ROWS];
        for (unsigned r = 0; r < ROWS; r++)
            acc[r] = (float)r;
        w->sum(&a, acc, ROWS, N);
        for (unsigned r = 0; r < ROWS; r++) {
            float s = (float)r;
            for (size_t k = 0; k < N; k++)
                s += at(&a, r, k);
            bad += !same(acc[r], s);
        }
    }
    CHECK_INT(bad, 0);
}

/* The eight largest one after another, and keys of which some are equal, absent or NaN. */
static bool
eights(const wide_loops *w, const float *v, size_t n)
{
    float want[8], got[8], key[8];
    uint32_t first[8], found[8];
    for (int k = 0; k < 8; k++) {
        want[k] = -INFINITY;
        key[k] = word() % 5 ? v[word() % n] : any();
        first[k] = UINT32_MAX;
    }
    for (size_t k = 0; k < n; k++) {
        int at = 8;
        for (; at > 0 && v[k] > want[at - 1]; at--)
            if (at < 8)
                want[at] = want[at - 1];
        if (at < 8)
            want[at] = v[k];
    }
    for (int k = 0; k < 8; k++) {
        for (uint32_t at = 0; at < n && first[k] == UINT32_MAX; at++) {
            bool taken = false;
            for (int j = 0; j < k; j++)
                taken |= first[j] == at;
            if (!taken && v[at] == key[k])
                first[k] = at;
        }
    }
    w->max8(v, n, got);
    w->match8(v, n, key, found);
    return memcmp(got, want, sizeof got) == 0 && memcmp(found, first, sizeof found) == 0;
}

static void
rows(const wide_loops *w)
{
    static float v[N], out[N];
    unsigned bad = 0;
    for (unsigned t = 0; t < 400; t++) {
        size_t n = 1 + word() % N;
        bool nan = false;
        for (size_t k = 0; k < n; k++) {
            v[k] = t % 2 ? (float)(int)(word() % 9) - 4 : any();
            nan |= v[k] != v[k];
        }
        for (int least = 0; least < 2; least++) {
            float want = least ? INFINITY : -INFINITY, got;
            for (size_t k = 0; k < n; k++)
                want = op(least ? WIDE_MIN : WIDE_MAX, want, v[k]);
            wide_side a = {(uint8_t *)v, 0, false};
            bool sure = w->top(&a, least, &got, n);
            bad += sure ? !same(got, want) : !(nan || want == 0);
        }
        bad += !eights(w, v, n);
        size_t k = 0;
        bool finite = true;
        for (k = 0; k < n; k++)
            finite &= isfinite(v[k]) != 0;
        bad += w->finite(v, n) != finite;
        uint16_t codes[N];
        for (k = 0; k < n; k++)
            codes[k] = (uint16_t)(cps_f32_bits(v[k]) >> 16);
        for (finite = true, k = 0; k < n; k++)
            finite &= (codes[k] & 0x7F80) != 0x7F80;
        bad += w->finite_codes(codes, n) != finite;
        for (k = 0; k < n; k++) // exp: all magnitudes, and around the ends of its range
            v[k] = t % 4 == 3 ? (float)(word() % 2000) * 0.1f - 120 : any();
        w->exp(v, out, n);
        for (k = 0; k < n; k++)
            bad += !same(out[k], cps_exp_f32(v[k]));
    }
    CHECK_INT(bad, 0);
}

/* ---- activations, transposes ---- */

static float
value_of(wide_act f, float x)
{
    return f == WIDE_EXP ? cps_exp_f32(x) : f == WIDE_SQUARE ? x * x : x;
}

/* From a to o, which may be a itself; with or without sums. */
static unsigned
activation(const wide_loops *w, wide_act f, const wide_side *o, const wide_side *a, bool sums)
{
    static float in[ROWS * N];
    float scale[ROWS], bias[ROWS], acc[ROWS];
    unsigned bad = 0;
    for (unsigned r = 0; r < ROWS; r++) {
        scale[r] = r % 5 ? (float)r * 0.25f : any();
        bias[r] = r % 7 ? -(float)r : any();
        acc[r] = (float)r;
        for (size_t k = 0; k < N; k++)
            in[r * N + k] = at(a, r, k);
    }
    w->act(f, o, a, scale, bias, sums ? acc : NULL, ROWS, N);
    for (unsigned r = 0; r < ROWS; r++) {
        float s = (float)r;
        for (size_t k = 0; k < N; k++) {
            float x = in[r * N + k] * scale[r];
            x = x + bias[r];
            float y = value_of(f, x);
            s += sums ? y : 0;
            bad += !same(at(o, r, k), rounded(y, o->bf16));
        }
        bad += !same(acc[r], s);
    }
    return bad;
}

static void
activations(const wide_loops *w)
{
    static float fo[ROWS * N];
    static uint16_t ho[ROWS * N];
    unsigned bad = 0;
    for (int t = 0; t < 24; t++) {
        wide_side a = side(t & 1, fa, ha), o = side(t & 2, fo, ho);
        bad += activation(w, (wide_act)(t / 8), &o, &a, t & 4);
    }
    for (int t = 0; t < 6; t++) {
        wide_side o = side(t & 1, fo, ho);
        memcpy(fo, fa, sizeof fo);
        memcpy(ho, ha, sizeof ho);
        bad += activation(w, (wide_act)(t / 2), &o, &o, true);
    }
    CHECK_INT(bad, 0);
}

static void
picks(const wide_loops *w)
{
    enum { R = 20, C = 33 };
    static uint16_t x[R * N];
    static float out[C * N], old[C * N];
    uint8_t sel[C];
    unsigned bad = 0;
    for (int t = 0; t < 12; t++) {
        size_t n = t % 3 == 0 ? N : word() % N + 1;
        bool more = t & 1, fine = true;
        for (int k = 0; k < R * N; k++)
            x[k] = (uint16_t)(word() % 8 ? word() % 0x7F80 | (word() & 0x8000) : word() & 0x8000);
        for (int k = 0; k < C * N; k++)
            out[k] = old[k] = any();
        for (int m = 0; m < C; m++)
            sel[m] = (uint8_t)(word() % R);
        if (t >= 6) // one that is not finite, in a row that is taken or not, or beyond the end
            x[(unsigned)sel[0] * N + word() % N] = word() & 1 ? 0x7F80 : 0xFFC1;
        wide_side side = {.at = (uint8_t *)x, .pitch = N * sizeof *x, .bf16 = true};
        bool said = w->pick(&side, sel, out, N, C, n, more);
        for (size_t m = 0; m < C; m++) {
            for (size_t k = 0; k < N; k++) {
                float v = cps_bits_f32((uint32_t)x[sel[m] * N + k] << 16), z = 0.0f + v;
                fine &= k >= n || fabsf(v) < INFINITY;
                bad += !same(out[m * N + k], k >= n ? old[m * N + k] : more ? old[m * N + k] + z : z);
            }
        }
        bad += said != fine;
    }
    CHECK_INT(bad, 0);
}

/* Copies from anywhere to anywhere, of any length, and nothing beside them. */
static void
copies(const wide_loops *w)
{
    enum { LONG = 1500 };
    static uint8_t in[LONG + 64], out[LONG + 192], want[LONG + 192];
    unsigned bad = 0;
    for (unsigned k = 0; k < sizeof in; k++)
        in[k] = (uint8_t)word();
    for (int t = 0; t < 2000; t++) {
        unsigned from = word() % 64, to = word() % 128, n = word() % (t % 2 ? LONG : 300);
        memset(out, 0xA5, sizeof out);
        memset(want, 0xA5, sizeof want);
        memcpy(want + to, in + from, n);
        w->away(out + to, in + from, n);
        w->fence();
        bad += memcmp(out, want, sizeof out) != 0;
    }
    CHECK_INT(bad, 0);
}

static void
transposes(const wide_loops *w)
{
    enum { R = 90, C = 77 };
    static uint32_t in[R * C], out[C * R], words[R * C];
    static uint8_t sel[R], from[R];
    unsigned bad = 0;
    for (unsigned es = 2; es <= 4; es += 2) {
        for (int i = 0; i < R * C; i++)
            in[i] = word();
        for (int i = 0; i < R; i++)
            sel[i] = (uint8_t)(word() % R);
        for (int given = 0; given < 2; given++) {
            w->turn((const uint8_t *)in, C * es, given ? sel : NULL, R, C, es, (uint8_t *)out, R * es);
            for (unsigned c = 0; c < R; c++)
                for (unsigned m = 0; m < C; m++)
                    bad += memcmp((uint8_t *)out + (m * R + c) * es,
                                  (uint8_t *)in + ((given ? sel[c] : c) * C + m) * es, es) != 0;
        }
        // ones where sel says, and what spoils a column: a second 1, another number, none
        wide_side x = {.at = (uint8_t *)words, .pitch = R * es, .bf16 = es == 2};
        for (int spoilt = 0; spoilt < 4; spoilt++) {
            uint32_t one = es == 2 ? 0x3F80 : 0x3F800000, zero = es == 2 ? 0x8000 : 0x80000000;
            uint32_t odd = spoilt == 1 ? one : spoilt == 2 ? 1 : zero;
            memset(words, 0, sizeof words);
            for (unsigned c = 0; c < R; c++)
                memcpy((uint8_t *)words + (sel[c] % C * R + c) * es, &one, es);
            unsigned c = word() % R, k = spoilt == 3 ? sel[c] % C : (sel[c] + 1u) % C % C;
            if (k == sel[c] % C && spoilt != 3)
                k = (k + 1) % C;
            memcpy((uint8_t *)words + (k * R + c) * es, &odd, es);
            bool ok = w->selector(&x, C, R, from);
            bad += ok != (spoilt == 0);
            for (unsigned j = 0; j < R && ok; j++)
                bad += from[j] != sel[j] % C;
        }
    }
    CHECK_INT(bad, 0);
}

/* exp of every fp32 code from `first` on in steps. */
static void
every_exp(const wide_loops *w, uint64_t first, uint64_t step)
{
    enum { MANY = 4096 };
    static float in[MANY], out[MANY], scale[1] = {1}, bias[1] = {-0.0f};
    uint64_t bad = 0;
    for (uint64_t c = first; c < (uint64_t)1 << 32;) {
        unsigned n = 0;
        for (; n < MANY && c < (uint64_t)1 << 32; n++, c += step)
            in[n] = cps_bits_f32((uint32_t)c);
        wide_side a = {(uint8_t *)in, 0, false}, o = {(uint8_t *)out, 0, false};
        w->act(WIDE_EXP, &o, &a, scale, bias, NULL, 1, n);
        for (unsigned k = 0; k < n; k++)
            bad += !same(out[k], cps_exp_f32(in[k]));
    }
    CHECK_INT(bad, 0);
}

/* The functions of wide.smooth as act_fn.c has them for finite numbers. */
static float
smooth_value(wide_smooth f, double x)
{
    double z = f == WIDE_GELU_TANH      ? 2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)
               : f == WIDE_GELU_SIGMOID ? 1.702 * x
                                        : x;
    double s = 1.0 / (1.0 + exp(-z));
    if (f == WIDE_GELU)
        return (float)(x * (0.5 * erfc(-x * M_SQRT1_2)));
    return (float)(f == WIDE_TANH ? tanh(x) : f == WIDE_SIGMOID ? s : x * s);
}

/* Every `step`-th number: what is not called unsure is right, and of ordinary size little is unsure. */
static void
every_smooth(const wide_loops *w, wide_smooth f, uint64_t first, uint64_t step)
{
    float in[WIDE_SMOOTH_MOST], out[WIDE_SMOOTH_MOST];
    uint32_t unsure[WIDE_SMOOTH_MOST];
    uint64_t bad = 0, ordinary = 0, left = 0;
    for (uint64_t c = first; c < (uint64_t)1 << 32;) {
        unsigned n = 0, want = c % 9 ? WIDE_SMOOTH_MOST : 1 + (unsigned)(c % WIDE_SMOOTH_MOST);
        for (; n < want && c < (uint64_t)1 << 32; n++, c += step)
            in[n] = cps_bits_f32((uint32_t)c);
        bool any = w->smooth(f, in, out, unsure, n), found = false;
        for (unsigned k = 0; k < n; k++) {
            bool common = fabsf(in[k]) > 0.01f && fabsf(in[k]) < 13;
            found |= unsure[k] != 0;
            ordinary += common;
            left += common && unsure[k];
            bad += !unsure[k] && cps_f32_bits(out[k]) != cps_f32_bits(smooth_value(f, in[k]));
        }
        bad += any != found;
    }
    CHECK_INT(bad, 0);
    CHECK(left <= ordinary / 1000);
}

/* What exp.h says of its accuracy, of every `step`-th x of either sign; `fell` counts results below that of the
 * x before, of neighbours the only ones. */
static void
exp_accuracy(uint32_t step)
{
    uint64_t all = 0, nearest = 0, fell = 0;
    double worst = 0;
    for (uint32_t sign = 0; sign < 2; sign++) {
        float last = 1;
        for (uint32_t c = 0; c <= cps_f32_bits(CPS_EXP_EDGE); c += step) {
            float x = cps_bits_f32(c | sign << 31), y = cps_exp_f32(x);
            double want = exp((double)x);
            int e;
            frexp(want, &e);
            worst = fmax(worst, fabs((double)y - want) * ldexp(1, 24 - e));
            nearest += y == (float)want;
            fell += sign ? y > last : y < last;
            last = y;
            all++;
        }
    }
    CHECK(worst <= 0.892);
    CHECK(nearest >= all / 1000 * 995);
    CHECK(fell <= (step == 1 ? 2909 : 0));
    CHECK(cps_exp_f32(0) == 1 && cps_exp_f32(-0.0f) == 1 && cps_exp_f32(-INFINITY) == 0);
    CHECK(isinf(cps_exp_f32(INFINITY)) && isnan(cps_exp_f32(NAN)));
    for (float x = CPS_EXP_EDGE; x < 110; x += 0.37f) { // denormal and infinite ones are the library's
        CHECK(cps_exp_f32(x + 0.01f) == (float)exp((double)(x + 0.01f)));
        CHECK(cps_exp_f32(-x - 0.01f) == (float)exp((double)(-x - 0.01f)));
    }
}

/* With `exp` only exp is looked at, of all 2^32 numbers: minutes. With `smooth` the functions of wide.smooth. */
int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "exp") == 0) {
        exp_accuracy(1);
        for (int level = 0; level < 3; level++)
            if (wide_at(level))
                every_exp(wide_at(level), 0, 1);
        return CHECK_DONE();
    }
    if (argc > 1 && strcmp(argv[1], "smooth") == 0) {
        for (int level = 0; level < 3; level++)
            for (wide_smooth f = 0; f < WIDE_SMOOTHS && wide_at(level); f++)
                every_smooth(wide_at(level), f, 0, 1);
        return CHECK_DONE();
    }
    for (int i = 0; i < ROWS * N; i++) {
        fa[i] = any();
        fb[i] = any();
        ha[i] = (uint16_t)(word() >> 16);
        hb[i] = (uint16_t)word();
    }
    products();
    parts();
    widths();
    exp_accuracy(4099);
    for (int level = 0; level < 3; level++) {
        const wide_loops *w = wide_at(level);
        if (!w)
            continue;
        elements(w);
        rows(w);
        activations(w);
        transposes(w);
        copies(w);
        picks(w);
        every_exp(w, (unsigned)level, 65521);
        for (wide_smooth f = 0; f < WIDE_SMOOTHS; f++)
            every_smooth(w, f, (unsigned)level, 65521);
    }
    CHECK(wide_best() != NULL);
    return CHECK_DONE();
}

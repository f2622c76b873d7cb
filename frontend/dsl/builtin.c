/* Functions on numbers, ranges and dtypes, and the facts of the target (language 2.3, 2.7).
 *
 * Each function is a row: name and body. How many arguments it takes stands in function.def; what
 * is not a known value never comes here. */
#include "frontend/dsl/builtin.h"
#include "frontend/dsl/check.h"

#include <math.h>
#include <stddef.h>

typedef struct site { // one call
    cps_eval *ev;
    const cps_ast_call *e;
    const char *name;
    const cps_arg *arg;
    uint32_t n;
} site;

static bool
wants(const site *s, uint32_t i, const char *what)
{
    return cps_eval_error(s->ev, CPS_E2301, s->arg[i].src->span, "`%s` wants %s, not %s", s->name,
                          what, cps_eval_describe(s->ev, s->arg[i].v));
}

static bool
whole(const site *s, uint32_t i, int64_t *out)
{
    if (s->arg[i].v.kind != CPS_V_INT)
        return wants(s, i, "an integer");
    *out = s->arg[i].v.u.i;
    return true;
}

static bool
positive(const site *s, uint32_t i, int64_t *out)
{
    if (!whole(s, i, out))
        return false;
    if (*out <= 0)
        return cps_eval_error(s->ev, CPS_E2303, s->arg[i].src->span,
                              "`%s` wants a positive number, not %lld", s->name, (long long)*out);
    return true;
}

static bool
too_large(const site *s)
{
    return cps_eval_error(s->ev, CPS_E2303, s->e->head.span, "`%s` does not fit 64 bits", s->name);
}

/* ---- numbers ---- */

static bool
extreme(const site *s, bool greatest, cps_cv *out)
{
    const cps_cv *v = NULL;
    cps_cv list[16];
    uint32_t n = s->n;
    if (n == 1 && s->arg[0].v.kind == CPS_V_LIST) {
        v = s->arg[0].v.u.seq->item;
        n = s->arg[0].v.u.seq->n;
    } else {
        for (uint32_t i = 0; i < n; i++)
            list[i] = s->arg[i].v;
        v = list;
    }
    bool ints = true;
    double best = 0, x;
    int64_t besti = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (v[i].kind == CPS_V_BOOL || !cps_cv_num(v[i], &x))
            return wants(s, n == s->n ? i : 0, "numbers");
        bool take = i == 0 || (greatest ? x > best : x < best);
        if (v[i].kind == CPS_V_INT && ints && i)
            take = greatest ? v[i].u.i > besti : v[i].u.i < besti;
        ints &= v[i].kind == CPS_V_INT;
        if (take) {
            best = x;
            besti = v[i].kind == CPS_V_INT ? v[i].u.i : 0;
        }
    }
    *out = ints ? cps_cv_int(besti) : cps_cv_float(best);
    return true;
}

static bool
fn_min(const site *s, cps_cv *out)
{
    return extreme(s, false, out);
}

static bool
fn_max(const site *s, cps_cv *out)
{
    return extreme(s, true, out);
}

static bool
fn_abs(const site *s, cps_cv *out)
{
    cps_cv v = s->arg[0].v;
    if (v.kind == CPS_V_FLOAT) {
        *out = cps_cv_float(fabs(v.u.f));
        return true;
    }
    if (v.kind != CPS_V_INT)
        return wants(s, 0, "a number");
    if (v.u.i == INT64_MIN)
        return too_large(s);
    *out = cps_cv_int(v.u.i < 0 ? -v.u.i : v.u.i);
    return true;
}

static bool
fn_clamp(const site *s, cps_cv *out)
{
    double x, lo, hi;
    if (!cps_cv_num(s->arg[0].v, &x))
        return wants(s, 0, "a number");
    if (!cps_cv_num(s->arg[1].v, &lo))
        return wants(s, 1, "a number");
    if (!cps_cv_num(s->arg[2].v, &hi))
        return wants(s, 2, "a number");
    // min(max(x, lo), hi): the upper bound wins when they cross, as in NumPy.
    bool low = x < lo;
    *out = (low ? lo : x) > hi ? s->arg[2].v : low ? s->arg[1].v : s->arg[0].v;
    return true;
}

static bool
fn_ceil_div(const site *s, cps_cv *out)
{
    int64_t a = 0, b = 1;
    if (!whole(s, 0, &a) || !positive(s, 1, &b))
        return false;
    if (a < 0)
        return cps_eval_error(s->ev, CPS_E2303, s->arg[0].src->span,
                              "`ceil_div` of %lld: it must not be negative", (long long)a);
    *out = cps_cv_int(a / b + (a % b != 0));
    return true;
}

static bool
fn_round_up(const site *s, cps_cv *out)
{
    int64_t b, r;
    if (!fn_ceil_div(s, out) || !positive(s, 1, &b))
        return false;
    if (__builtin_mul_overflow(out->u.i, b, &r))
        return too_large(s);
    *out = cps_cv_int(r);
    return true;
}

static bool
fn_log2(const site *s, cps_cv *out)
{
    double x;
    if (s->arg[0].v.kind == CPS_V_BOOL || !cps_cv_num(s->arg[0].v, &x))
        return wants(s, 0, "a number");
    if (x <= 0)
        return cps_eval_error(s->ev, CPS_E2303, s->arg[0].src->span,
                              "`log2` of a number that is not positive");
    if (s->arg[0].v.kind == CPS_V_INT)
        *out = cps_cv_int(63 - __builtin_clzll((unsigned long long)s->arg[0].v.u.i));
    else
        *out = cps_cv_float(log2(x));
    return true;
}

/* ---- dtypes, lengths ---- */

static bool
fn_bytes(const site *s, cps_cv *out)
{
    if (s->arg[0].v.kind != CPS_V_DTYPE)
        return wants(s, 0, "a dtype or a tensor");
    *out = cps_cv_int(cps_dtype_bytes(s->arg[0].v.u.dt));
    return true;
}

// What a PE transpose of this dtype leaves in PSUM: 16-bit types stay where the target can.
static bool
fn_transposed(const site *s, cps_cv *out)
{
    if (s->arg[0].v.kind != CPS_V_DTYPE)
        return wants(s, 0, "a dtype");
    const cps_target *t = s->ev->c.target;
    cps_dtype dt = s->arg[0].v.u.dt;
    bool kept = !t || (t->pe_transpose && cps_dtypes[dt].bits == 16);
    *out = cps_cv_dtype(kept ? dt : CPS_DT_FP32);
    return true;
}

static bool
fn_len(const site *s, cps_cv *out)
{
    cps_cv v = s->arg[0].v;
    int64_t n = v.kind == CPS_V_STR ? (int64_t)strlen(v.u.s) : cps_cv_count(v);
    if (n < 0)
        return wants(s, 0, "a list, a range or a string");
    *out = cps_cv_int(n);
    return true;
}

/* ---- ranges and pieces ---- */

// The name of an extent as written, for messages: `M` of tiles(M, 128).
static const char *
extent_name(const site *s)
{
    cps_expr_p e = s->e->arg[0].value;
    return e->kind == CPS_EX_NAME ? CPS_AST_AS(ref, e)->name.text : NULL;
}

static bool
bounds(const site *s, cps_piece *out)
{
    if (!cps_cv_bounds(s->arg[0].v, out))
        return wants(s, 0, "an extent, a range or a piece");
    if (!out->name)
        out->name = extent_name(s);
    return true;
}

static bool
fn_range(const site *s, cps_cv *out)
{
    cps_piece p;
    if (!bounds(s, &p))
        return false;
    *out = cps_cv_range(s->ev->c.arena, p.start, p.end, p.name);
    return true;
}

static bool
pieces(const site *s, cps_piece p, int64_t count, int64_t step, cps_cv *out)
{
    cps_pieces *v = cps_new(s->ev->c.arena, cps_pieces);
    *v = (cps_pieces){.start = p.start, .end = p.end, .count = count, .step = step,
                      .shown = count, .name = p.name};
    *out = (cps_cv){.kind = CPS_V_PIECES, .u.pieces = v};
    return true;
}

static bool
fn_tiles(const site *s, cps_cv *out)
{
    cps_piece p;
    int64_t n;
    if (!bounds(s, &p) || !positive(s, 1, &n))
        return false;
    int64_t size = p.end - p.start;
    return pieces(s, p, size / n + (size % n != 0), n, out);
}

static bool
fn_split(const site *s, cps_cv *out)
{
    cps_piece p;
    int64_t n;
    if (!bounds(s, &p) || !positive(s, 1, &n))
        return false;
    return pieces(s, p, CPS_MIN(n, p.end - p.start), 0, out);
}

static bool
same_kind(const site *s, cps_piece p, int64_t start, int64_t end, cps_cv *out)
{
    cps_piece q = {.start = start, .end = end, .count = 1, .name = p.name};
    *out = s->arg[0].v.kind == CPS_V_PIECE ? cps_cv_piece(s->ev->c.arena, q)
                                           : cps_cv_range(s->ev->c.arena, start, end, p.name);
    return true;
}

static bool
fn_share(const site *s, cps_cv *out)
{
    cps_piece p;
    int64_t i = 0, of = 0;
    if (!bounds(s, &p) || !whole(s, 1, &i) || !positive(s, 2, &of))
        return false;
    if (i < 0 || i >= of)
        return cps_eval_error(s->ev, CPS_E2307, s->arg[1].src->span, "share %lld of %lld",
                              (long long)i, (long long)of);
    int64_t size = p.end - p.start, each = size / of, more = size % of;
    int64_t lo = each * i + CPS_MIN(more, i), hi = each * (i + 1) + CPS_MIN(more, i + 1);
    return same_kind(s, p, p.start + lo, p.start + hi, out);
}

// The part between lo and hi; empty, and inside the range, when they miss it.
static bool
fn_clip(const site *s, cps_cv *out)
{
    cps_piece p;
    int64_t lo = 0, hi = 0;
    if (!bounds(s, &p) || !whole(s, 1, &lo) || !whole(s, 2, &hi))
        return false;
    int64_t start = CPS_MIN(CPS_MAX(p.start, lo), p.end);
    int64_t end = CPS_MAX(CPS_MIN(p.end, hi), start);
    return same_kind(s, p, start, end, out);
}

static bool
fn_ds(const site *s, cps_cv *out)
{
    int64_t start = 0, size = 0, end;
    if (!whole(s, 0, &start) || !whole(s, 1, &size))
        return false;
    if (start < 0 || size < 0 || __builtin_add_overflow(start, size, &end))
        return cps_eval_error(s->ev, CPS_E2307, s->e->head.span, "ds(%lld, %lld)",
                              (long long)start, (long long)size);
    *out = cps_cv_slice(s->ev->c.arena, start, size);
    return true;
}

static const struct {
    const char *name;
    bool (*run)(const site *s, cps_cv *out);
} rows[] = {
    {"min", fn_min},
    {"max", fn_max},
    {"abs", fn_abs},
    {"clamp", fn_clamp},
    {"ceil_div", fn_ceil_div},
    {"round_up", fn_round_up},
    {"log2", fn_log2},
    {"bytes", fn_bytes},
    {"transposed", fn_transposed},
    {"len", fn_len},
    {"range", fn_range},
    {"tiles", fn_tiles},
    {"split", fn_split},
    {"share", fn_share},
    {"clip", fn_clip},
    {"ds", fn_ds},
};

static const struct {
    const char *name;
    uint32_t lo, hi;
} arity[] = {
#define CPS_DSL_FUNCTION(name, who, lo, hi) {name, lo, hi},
#include "frontend/dsl/function.def"
};

static bool
takes(const site *s)
{
    for (size_t i = 0; i < cps_countof(arity); i++)
        if (cps_streq(arity[i].name, s->name) && (s->n < arity[i].lo || s->n > arity[i].hi))
            return false;
    return true;
}

cps_hook
cps_builtin_call(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name,
                 const cps_arg *arg, cps_cv *out)
{
    site s = {ev, e, name->text, arg, e->n};
    for (size_t i = 0; i < cps_countof(rows); i++)
        if (cps_streq(rows[i].name, s.name))
            return !takes(&s) ? CPS_HOOK_PASS : rows[i].run(&s, out) ? CPS_HOOK_DONE : CPS_HOOK_FAIL;
    return CPS_HOOK_PASS;
}

/* ---- the target ---- */

static const struct {
    const char *section, *key, *unit;
    bool whole;
    size_t at;
} facts[] = {
#define CPS_FACT_INT(section, key, unit, doc)                                                    \
    {#section, #key, unit, true, offsetof(cps_target, section##_##key)},
#define CPS_FACT_NUM(section, key, unit, doc)                                                    \
    {#section, #key, unit, false, offsetof(cps_target, section##_##key)},
#include "codegen/isa/target.def"
};

static cps_cv
fact_value(const cps_target *t, size_t i)
{
    const char *at = (const char *)t + facts[i].at;
    if (!facts[i].whole) {
        double v;
        memcpy(&v, at, sizeof v);
        return cps_cv_float(v);
    }
    int64_t v;
    memcpy(&v, at, sizeof v);
    return cps_streq(facts[i].unit, "bool") ? cps_cv_bool(v != 0) : cps_cv_int(v);
}

// `target.dma_transpose` is the fact transpose of section dma; sbuf.KEY and psum.KEY are facts of
// their sections. On the host there are vector facts only.
bool
cps_eval_fact(const cps_eval *ev, const char *section, const char *key, cps_cv *out)
{
    const cps_target *t = ev->c.target;
    bool target = cps_streq(section, "target");
    if (target && cps_streq(key, "gen"))
        *out = cps_cv_int(t ? (int64_t)t->gen + 2 : 0);
    else if (target && cps_streq(key, "name"))
        *out = cps_cv_str(t ? t->name : "host");
    else if (target && !t && cps_streq(key, "vregs"))
        *out = cps_cv_int(ev->c.host.vregs);
    else if (target && !t && cps_streq(key, "fma_per_cycle"))
        *out = cps_cv_int(ev->c.host.fma_per_cycle);
    else if (t && cps_streq(section, "sbuf") && cps_streq(key, "partition"))
        *out = cps_cv_int(t->sbuf_bytes - t->sbuf_reserve);
    else {
        for (size_t i = 0; t && i < cps_countof(facts); i++) {
            size_t n = strlen(facts[i].section);
            bool hit = target ? strncmp(key, facts[i].section, n) == 0 && key[n] == '_' &&
                                    cps_streq(key + n + 1, facts[i].key)
                              : cps_streq(section, facts[i].section) &&
                                    cps_streq(key, facts[i].key);
            if (hit) {
                *out = fact_value(t, i);
                return true;
            }
        }
        return false;
    }
    return true;
}

// Passes of the PE for one product: fp32 takes four (isa-semantics, nc_matmul).
static int64_t
pe_passes(cps_dtype t)
{
    return t == CPS_DT_FP32 ? 4 : 1;
}

bool
cps_builtin_target(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name,
                   const cps_arg *arg, cps_cv *out)
{
    bool lanes = !ev->c.target && cps_streq(name->text, "lanes");
    bool passes = ev->c.target && cps_streq(name->text, "pe_passes");
    if (!lanes && !passes)
        return cps_eval_error(ev, CPS_E2210, name->span, "the target has no function `%s`",
                              name->text);
    if (e->n != 1 || arg[0].v.kind != CPS_V_DTYPE)
        return cps_eval_error(ev, CPS_E2211, e->head.span, "`target.%s` takes a dtype",
                              name->text);
    cps_dtype t = arg[0].v.u.dt;
    *out = cps_cv_int(passes ? pe_passes(t)
                             : CPS_MAX(1, ev->c.host.vector_bytes / cps_dtype_bytes(t)));
    return true;
}

/* ---- instructions ---- */

static const char *const instructions[] = {
#define CPS_TOP(id, name, ...) name,
#include "ir/top.def"
    "nc_matmul_mx", "quantize_mx", "nc_n_gather", "sendrecv", "collective_permute", "barrier",
};

bool
cps_builtin_supports(cps_eval *ev, const cps_ast_name *name, cps_cv *out)
{
    const cps_target *t = ev->c.target;
    bool known = false;
    for (size_t i = 0; i < cps_countof(instructions); i++)
        known |= cps_streq(instructions[i], name->text);
    if (!known)
        return cps_eval_error(ev, CPS_E2202, name->span, "there is no instruction `%s`",
                              name->text);
    bool has = t != NULL;
    if (t && cps_streq(name->text, "range_select"))
        has = t->dve_range_select;
    else if (t && (cps_streq(name->text, "nc_matmul_mx") || cps_streq(name->text, "quantize_mx")))
        has = t->pe_mx;
    else if (t && cps_streq(name->text, "dma_transpose"))
        has = t->dma_transpose;
    *out = cps_cv_bool(has);
    return true;
}

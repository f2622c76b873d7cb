/* Parts of tensors in op bodies: subscripts, what they read, what writing to them makes, and
 * `.view` strings.
 *
 * Numbers and pieces are static slices; a rank-0 integer tensor picks one position, a rank-1 one a
 * list of them. Writing is a scatter along one axis at a time. */
#include "frontend/dsl/body_priv.h"

#include <ctype.h>

cps_region
cps_body_all(const cps_type *t)
{
    cps_region r = {.rank = t->rank, .whole = true};
    for (int i = 0; i < t->rank; i++) {
        r.axis[i].step = 1;
        r.axis[i].count = t->dim[i];
    }
    return r;
}

static bool
outside(cps_body *y, cps_span at, const char *what, int axis, int64_t n)
{
    return cps_eval_error(&y->ev, CPS_E2307, at, "%s reaches outside axis %d of %lld", what, axis,
                          (long long)n);
}

// Positions lo, lo + step, ... below hi.
static bool
stretch(cps_body *y, cps_span at, cps_region *r, int axis, int64_t n, int64_t lo, int64_t hi,
        int64_t step)
{
    if (lo < 0 || lo > hi || hi > n || step < 1)
        return outside(y, at, cps_arena_printf(y->scratch, "%lld:%lld", (long long)lo,
                                               (long long)hi),
                       axis, n);
    r->axis[axis].start = lo;
    r->axis[axis].step = step;
    r->axis[axis].count = (hi - lo) / step + ((hi - lo) % step != 0);
    return true;
}

static bool
by_slice(cps_body *y, const cps_ast_sub *s, cps_region *r, int axis, int64_t n)
{
    int64_t lo = 0, hi = n, step = 1;
    if ((s->lo && !cps_eval_int(&y->ev, s->lo, "a bound", &lo)) ||
        (s->hi && !cps_eval_int(&y->ev, s->hi, "a bound", &hi)) ||
        (s->step && !cps_eval_int(&y->ev, s->step, "a step", &step)))
        return false;
    return stretch(y, s->span, r, axis, n, lo, hi, step);
}

// ds(start, n) with a start that is computed: an index list start + 0..n.
static cps_hook
by_moving_start(cps_body *y, const cps_ast_sub *s, cps_region *r, int axis)
{
    if (s->lo->kind != CPS_EX_CALL)
        return CPS_HOOK_PASS;
    const cps_ast_call *e = CPS_AST_AS(call, s->lo);
    if (e->fn->kind != CPS_EX_NAME || e->n != 2 ||
        !cps_streq(CPS_AST_AS(ref, e->fn)->name.text, "ds"))
        return CPS_HOOK_PASS;
    cps_cv start;
    int64_t n;
    if (!cps_eval_expr(&y->ev, e->arg[0].value, &start) ||
        !cps_eval_int(&y->ev, e->arg[1].value, "a size", &n))
        return CPS_HOOK_FAIL;
    if (start.kind != CPS_V_OPAQUE)
        return CPS_HOOK_PASS;
    cps_val x = cps_body_tensor(y, start, CPS_DT_I32, s->span), i = 0;
    if (x && cps_b_type(&y->b, x)->rank == 0 && n > 0)
        cps_b_node(&y->b, CPS_OP_INDEX, 0, NULL, 3,
                   (cps_attr[]){cps_a_ints("shape", 1, &n), cps_a_int("axis", 0),
                                cps_a_dtype("dtype", cps_b_type(&y->b, x)->dtype)},
                   &i);
    else if (x)
        cps_eval_error(&y->ev, CPS_E2301, s->span, "a moving start is one integer, and the size is "
                                                   "positive");
    r->axis[axis].index = i ? cps_b_binary(&y->b, CPS_OP_ADD, i, x) : 0;
    r->axis[axis].count = n;
    r->dynamic = true;
    return r->axis[axis].index ? CPS_HOOK_DONE : CPS_HOOK_FAIL;
}

static bool
by_value(cps_body *y, const cps_ast_sub *s, cps_region *r, int axis, int64_t n)
{
    cps_cv v;
    cps_hook h = by_moving_start(y, s, r, axis);
    if (h != CPS_HOOK_PASS)
        return h == CPS_HOOK_DONE;
    if (!cps_eval_expr(&y->ev, s->lo, &v))
        return false;
    if (v.kind == CPS_V_INT) {
        r->axis[axis].drop = true;
        if (v.u.i < 0 || v.u.i >= n)
            return outside(y, s->span, cps_cv_text(y->scratch, v), axis, n);
        return stretch(y, s->span, r, axis, n, v.u.i, v.u.i + 1, 1);
    }
    if (v.kind == CPS_V_RANGE || v.kind == CPS_V_PIECE || v.kind == CPS_V_SLICE)
        return stretch(y, s->span, r, axis, n, v.u.piece->start, v.u.piece->end, 1);
    if (v.kind != CPS_V_OPAQUE)
        return cps_eval_error(&y->ev, CPS_E2301, s->span, "%s is no subscript",
                              cps_eval_describe(&y->ev, v));
    cps_val x = cps_body_tensor(y, v, CPS_DT_I32, s->span);
    if (!x)
        return false;
    const cps_type *t = cps_b_type(&y->b, x);
    if (t->rank > 1 || !strchr("SU", cps_dtypes[t->dtype].kind))
        return cps_eval_error(&y->ev, CPS_E2301, s->span,
                              "a computed subscript is one integer or a list of them");
    r->axis[axis].index = x;
    r->axis[axis].count = t->rank ? t->dim[0] : 1;
    r->axis[axis].drop = t->rank == 0;
    r->dynamic = true;
    return true;
}

bool
cps_body_region(cps_body *y, const cps_ast_index *e, const cps_type *t, cps_region *out)
{
    *out = cps_body_all(t);
    out->whole = false;
    if ((int)e->n > t->rank)
        return cps_eval_error(&y->ev, CPS_E2307, e->head.span, "%u subscripts on %d axes", e->n,
                              t->rank);
    for (uint32_t i = 0; i < e->n; i++)
        if (!(e->sub[i].slice ? by_slice(y, &e->sub[i], out, (int)i, t->dim[i])
                              : by_value(y, &e->sub[i], out, (int)i, t->dim[i])))
            return false;
    bool all = !out->dynamic;
    for (int i = 0; i < t->rank; i++)
        all &= out->axis[i].count == t->dim[i] && out->axis[i].step == 1;
    out->whole = all;
    return true;
}

cps_type
cps_body_region_type(cps_body *y, const cps_region *r, cps_dtype t, bool keep)
{
    cps_type out = {.dtype = t};
    (void)y;
    for (int i = 0; i < r->rank; i++)
        if (keep || !r->axis[i].drop)
            out.dim[out.rank++] = r->axis[i].count;
    return out;
}

// Static axes in one slice.
static cps_val
slice_static(cps_body *y, cps_val x, const cps_region *r)
{
    int64_t lo[CPS_MAX_RANK], hi[CPS_MAX_RANK], step[CPS_MAX_RANK];
    const cps_type *t = cps_b_type(&y->b, x);
    bool all = true;
    for (int i = 0; i < r->rank; i++) {
        bool fixed = !r->axis[i].index;
        lo[i] = fixed ? r->axis[i].start : 0;
        step[i] = fixed ? r->axis[i].step : 1;
        hi[i] = fixed ? lo[i] + (r->axis[i].count ? (r->axis[i].count - 1) * step[i] + 1 : 0)
                      : t->dim[i];
        all &= lo[i] == 0 && hi[i] == t->dim[i] && step[i] == 1;
    }
    return all ? x : cps_b_slice(&y->b, x, lo, hi, step);
}

// An index as a rank-1 list: gathering with it keeps the axis.
static cps_val
as_list(cps_body *y, cps_val index)
{
    return cps_b_type(&y->b, index)->rank ? index
                                          : cps_b_reshape(&y->b, index, 1, (int64_t[]){1});
}

cps_val
cps_body_slice(cps_body *y, cps_val x, const cps_region *r)
{
    if (r->whole && !r->dynamic) {
        bool dropped = false;
        for (int i = 0; i < r->rank; i++)
            dropped |= r->axis[i].drop;
        if (!dropped)
            return x;
    }
    cps_dtype dt = cps_b_type(&y->b, x)->dtype;
    x = slice_static(y, x, r);
    for (int i = 0; i < r->rank && x; i++)
        if (r->axis[i].index)
            x = cps_b_gather(&y->b, x, as_list(y, r->axis[i].index), i);
    cps_type t = cps_body_region_type(y, r, dt, false);
    return t.rank == r->rank ? x : cps_b_reshape(&y->b, x, t.rank, t.dim);
}

// The positions of an axis as an integer tensor of rank 1.
static cps_val
positions(cps_body *y, const cps_region *r, int axis)
{
    int64_t n = r->axis[axis].count;
    if (r->axis[axis].index)
        return as_list(y, r->axis[axis].index);
    int64_t *v = cps_new_array(y->scratch, int64_t, n);
    for (int64_t i = 0; i < n; i++)
        v[i] = r->axis[axis].start + i * r->axis[axis].step;
    return cps_b_ints(&y->b, CPS_DT_I64, (int)n, v);
}

// One axis at a time: the slab at its positions, updated in the axes after it, put back.
cps_val
cps_body_update(cps_body *y, cps_val x, const cps_region *r, cps_val v)
{
    int axis = 0;
    while (axis < r->rank && !r->axis[axis].index && r->axis[axis].step == 1 && x &&
           r->axis[axis].count == cps_b_type(&y->b, x)->dim[axis])
        axis++;
    if (axis == r->rank || !x || !v)
        return v;
    cps_region rest = *r, one = cps_body_all(cps_b_type(&y->b, x));
    one.axis[axis] = r->axis[axis];
    one.axis[axis].drop = false;
    one.whole = false;
    one.dynamic = r->axis[axis].index != 0;
    rest.axis[axis].start = 0;
    rest.axis[axis].step = 1;
    rest.axis[axis].index = 0;
    bool more = false; // does a later axis need work?
    for (int i = axis + 1; i < r->rank; i++)
        more |= r->axis[i].index || r->axis[i].count != cps_b_type(&y->b, x)->dim[i];
    cps_val inner = more ? cps_body_update(y, cps_body_slice(y, x, &one), &rest, v) : v;
    cps_val out = 0, in[3] = {x, positions(y, r, axis), inner};
    if (inner)
        cps_b_node(&y->b, CPS_OP_SCATTER, 3, in, 2,
                   (cps_attr[]){cps_a_int("axis", axis), cps_a_bool("add", false)}, &out);
    return out;
}

/* ---- view strings: "a (b c) -> b a c" ---- */

enum { MAX_NAMES = 16 };

typedef struct side {
    int naxes;
    int first[CPS_MAX_RANK], n[CPS_MAX_RANK]; // names of each axis, in `name`
    int nname;
    char name[MAX_NAMES][24]; // "" stands for the unit axis `1`
} side;

// Reads one side up to `end`; false when it is no list of names and groups.
static bool
read_side(const char *p, const char *end, side *s)
{
    bool open = false;
    memset(s, 0, sizeof *s);
    for (; p < end; p++) {
        if (*p == ' ')
            continue;
        if (*p == '(' || *p == ')') {
            if (open == (*p == '('))
                return false;
            open = *p == '(';
            if (open) {
                if (s->naxes == CPS_MAX_RANK)
                    return false;
                s->first[s->naxes++] = s->nname;
            }
            continue;
        }
        const char *from = p;
        while (p < end && (isalnum((unsigned char)*p) || *p == '_'))
            p++;
        size_t n = (size_t)(p - from);
        if (n == 0 || n > 23 || s->nname == MAX_NAMES)
            return false;
        if (!open) {
            if (s->naxes == CPS_MAX_RANK)
                return false;
            s->first[s->naxes++] = s->nname;
        }
        bool unit = n == 1 && *from == '1';
        if (!unit && isdigit((unsigned char)*from))
            return false;
        memcpy(s->name[s->nname], from, unit ? 0 : n);
        s->nname++;
        s->n[s->naxes - 1]++;
        p--;
    }
    return !open;
}

static int
find_name(const side *s, const char *name)
{
    for (int i = 0; i < s->nname && name[0]; i++)
        if (cps_streq(s->name[i], name))
            return i;
    return -1;
}

static bool
same_names(const side *a, const side *b)
{
    for (int i = 0; i < a->nname; i++)
        if (a->name[i][0] && find_name(b, a->name[i]) < 0)
            return false;
    for (int i = 0; i < a->nname; i++)
        if (find_name(a, a->name[i]) >= 0 && find_name(a, a->name[i]) != i)
            return false; // twice
    return true;
}

// Sizes of the names of the left side, out of the extents and the sizes given.
static bool
solve(cps_body *y, const cps_ast_call *e, const cps_type *t, const side *l, const cps_arg *arg,
      uint32_t n, int64_t *size)
{
    for (int i = 0; i < l->nname; i++)
        size[i] = l->name[i][0] ? -1 : 1;
    for (uint32_t k = 1; k < n; k++) {
        int i = arg[k].src->name.sym ? find_name(l, arg[k].src->name.text) : -1;
        if (i < 0 || arg[k].v.kind != CPS_V_INT || arg[k].v.u.i < 1)
            return cps_eval_error(&y->ev, CPS_E2211, arg[k].src->span,
                                  "sizes are given by the names of the left side, as in `b: 4`");
        size[i] = arg[k].v.u.i;
    }
    for (int a = 0; a < l->naxes; a++) {
        int64_t known = 1;
        int hole = -1, holes = 0;
        for (int i = l->first[a]; i < l->first[a] + l->n[a]; i++) {
            if (size[i] < 0) {
                hole = i;
                holes++;
            } else if (__builtin_mul_overflow(known, size[i], &known)) {
                holes = 2;
            }
        }
        bool exact = known > 0 && t->dim[a] % known == 0 && (holes || known == t->dim[a]);
        if (holes > 1 || !exact)
            return cps_eval_error(&y->ev, CPS_E2307, e->head.span,
                                  "axis %d of %lld cannot be split so", a, (long long)t->dim[a]);
        if (holes)
            size[hole] = t->dim[a] / known;
    }
    return true;
}

static cps_val
shaped(cps_body *y, cps_val x, int rank, const int64_t *dim)
{
    const cps_type *t = x ? cps_b_type(&y->b, x) : NULL;
    bool same = t && t->rank == rank && memcmp(t->dim, dim, (size_t)rank * sizeof *dim) == 0;
    return same ? x : cps_b_reshape(&y->b, x, rank, dim);
}

cps_hook
cps_body_view(cps_body *y, const cps_ast_call *e, cps_val x, const cps_arg *arg, uint32_t n,
              cps_cv *out)
{
    const cps_type *t = cps_b_type(&y->b, x);
    const char *s = n && arg[0].v.kind == CPS_V_STR && !arg[0].src->name.sym ? arg[0].v.u.s : "";
    const char *arrow = strstr(s, "->");
    side l, r;
    if (!arrow || !read_side(s, arrow, &l) || !read_side(arrow + 2, s + strlen(s), &r) ||
        !same_names(&l, &r) || !same_names(&r, &l) || l.naxes != t->rank) {
        cps_eval_error(&y->ev, CPS_E2211, e->head.span,
                       "`view` wants a string such as \"a (b c) -> b a c\", with %d axes on its "
                       "left and the same names on both sides",
                       t->rank);
        return CPS_HOOK_FAIL;
    }
    int64_t size[MAX_NAMES], atom[MAX_NAMES], perm[MAX_NAMES], dim[CPS_MAX_RANK];
    if (!solve(y, e, t, &l, arg, n, size))
        return CPS_HOOK_FAIL;
    int atoms = 0, place[MAX_NAMES], k = 0;
    bool moved = false;
    for (int i = 0; i < l.nname; i++) {
        place[i] = atoms;
        if (l.name[i][0])
            atom[atoms++] = size[i];
    }
    for (int i = 0; i < r.nname; i++)
        if (r.name[i][0]) {
            perm[k] = place[find_name(&l, r.name[i])];
            moved |= perm[k] != k;
            k++;
        }
    if (atoms > CPS_MAX_RANK) {
        cps_eval_error(&y->ev, CPS_E2307, e->head.span, "a view has at most %d names",
                       CPS_MAX_RANK);
        return CPS_HOOK_FAIL;
    }
    for (int a = 0; a < r.naxes; a++) {
        dim[a] = 1;
        for (int i = r.first[a]; i < r.first[a] + r.n[a]; i++)
            dim[a] *= r.name[i][0] ? size[find_name(&l, r.name[i])] : 1;
    }
    cps_val v = x;
    if (moved)
        v = cps_b_transpose(&y->b, shaped(y, x, atoms, atom), perm);
    v = shaped(y, v, r.naxes, dim);
    return cps_body_give(y, v, out) ? CPS_HOOK_DONE : CPS_HOOK_FAIL;
}

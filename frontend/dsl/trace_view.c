/* Views: slicing, pieces and folds, transposition, splitting and joining by name,
 * reinterpretation. See trace_view.h for the model. Every bound is checked here, at both ends,
 * so that whatever reaches the tile program lies inside its buffer. */
#include "frontend/dsl/trace_view.h"

static bool
fail(cps_view_err *e, cps_code code, const char *text)
{
    *e = (cps_view_err){.code = code, .text = text};
    return false;
}

void
cps_vaxis_tidy(cps_vaxis *x)
{
    int n = 0;
    for (int i = 0; i < x->nl; i++) {
        cps_tdim d = x->l[i];
        if (d.num == 1)
            continue;
        if (n > 0 && x->l[n - 1].step == d.step * d.num)
            x->l[n - 1] = (cps_tdim){d.step, x->l[n - 1].num * d.num};
        else
            x->l[n++] = d;
    }
    if (n == 0 && x->nl > 0)
        x->l[n++] = (cps_tdim){1, 1};
    x->nl = n;
}

static cps_vaxis
plain_axis(int64_t num, int64_t step, const cps_vdim *d, int at)
{
    cps_vaxis x = {.num = num, .nl = 1, .origin = d ? d->origin : 0};
    x.l[0] = (cps_tdim){step, num};
    x.name = d ? d->name : NULL;
    x.decl = d ? d->decl : NULL;
    x.decl_axis = at;
    return x;
}

bool
cps_view_hbm(cps_view *v, cps_dtype t, int nd, const cps_vdim *d, int order, cps_view_err *e)
{
    int64_t step = 1;
    int place[CPS_VIEW_AXES];

    *v = (cps_view){.space = CPS_HBM, .dtype = t, .nd = nd, .paxis = -1};
    if (nd < 1 || nd > CPS_VIEW_AXES || nd > CPS_MAX_RANK)
        return fail(e, CPS_E3104, "a tensor has 1 to 8 axes");
    for (int i = 0; i < nd; i++)
        place[i] = i;
    if (order == 1 && nd >= 2) {
        place[nd - 1] = nd - 2;
        place[nd - 2] = nd - 1;
    }
    for (int i = nd - 1; i >= 0; i--) {
        int k = place[i];
        v->ax[k] = plain_axis(d[k].num, step, &d[k], k);
        if (__builtin_mul_overflow(step, CPS_MAX(d[k].num, 1), &step) || step > INT64_MAX / 16)
            return fail(e, CPS_E3104, "the tensor has too many elements");
    }
    return true;
}

// Elements between two folds in PSUM: as many folds as fit share a bank, none straddles two.
static int64_t
psum_fold_step(int64_t elems, int64_t bank_elems)
{
    int64_t step = bank_elems;
    if (elems > bank_elems)
        return cps_round_up(elems, bank_elems);
    while (step % 2 == 0 && step / 2 >= elems)
        step /= 2;
    return step;
}

bool
cps_view_tile(cps_view *v, cps_space s, cps_dtype t, int nd, const cps_vdim *d,
              int64_t partitions, int64_t bank, int64_t *dim, int *rank, cps_arena *a,
              cps_view_err *e)
{
    int64_t step = 1, rows, folds = 1;

    *v = (cps_view){.space = s, .dtype = t, .nd = nd, .paxis = 0};
    if (nd < 1 || nd > CPS_VIEW_AXES - 1)
        return fail(e, CPS_E3104, "a tile has 1 to 7 axes, the first on the partitions");
    for (int i = nd - 1; i >= 1; i--) {
        if (d[i].fold || d[i].all)
            return fail(e, CPS_E3104, "only the first axis of a tile may be folded or `all`");
        v->ax[i] = plain_axis(d[i].num, step, &d[i], i);
        if (d[i].num < 1)
            return fail(e, CPS_E3104,
                        cps_arena_printf(a, "axis %d of a tile has %lld elements", i,
                                         (long long)d[i].num));
        if (__builtin_mul_overflow(step, d[i].num, &step) || step > (int64_t)1 << 32)
            return fail(e, CPS_E3104, "the tile has too many elements");
    }
    rows = d[0].num;
    if (rows < 1)
        return fail(e, CPS_E3104,
                    cps_arena_printf(a, "axis 0 of a tile has %lld elements", (long long)rows));
    if (d[0].fold) {
        if (d[0].fold < 1 || d[0].fold > partitions)
            return fail(e, CPS_E3103,
                        cps_arena_printf(a, "a fold has 1 to %lld rows, not %lld",
                                         (long long)partitions, (long long)d[0].fold));
        folds = cps_ceil_div(rows, d[0].fold);
        rows = CPS_MIN(rows, d[0].fold);
    } else if (rows > partitions) {
        fail(e, CPS_E4105,
             cps_arena_printf(a, "%lld rows do not fit the %lld partitions", (long long)rows,
                              (long long)partitions));
        e->help = cps_arena_printf(a, "fold the axis: `%s by %lld`",
                                   d[0].decl ? d[0].decl : "n", (long long)partitions);
        return false;
    }
    v->ax[0] = (cps_vaxis){
        .num = d[0].num, .origin = d[0].origin, .name = d[0].name, .decl = d[0].decl};
    v->all = d[0].all;
    *rank = 0;
    dim[(*rank)++] = d[0].all ? partitions : rows;
    if (folds > 1) {
        int64_t fs = bank ? psum_fold_step(step, bank / (int64_t)cps_dtype_bytes(t)) : step;
        if (d[0].align > 0)
            fs = cps_round_up(fs, cps_ceil_div(d[0].align, (int64_t)cps_dtype_bytes(t)));
        v->ax[0].fold = d[0].fold;
        v->ax[0].fold_step = fs;
        if (folds * fs > (int64_t)1 << 32)
            return fail(e, CPS_E3104, "the tile has too many elements");
        dim[(*rank)++] = folds;
        if (fs != step) { // padded to the bank: the free axes lose their shape in the buffer
            dim[(*rank)++] = fs;
            return true;
        }
    }
    for (int i = 1; i < nd && *rank < CPS_MAX_RANK; i++)
        dim[(*rank)++] = d[i].num;
    return true;
}

// Keeps elements [lo, lo + n*st) of the levels l[from..]; *off is in elements of storage.
static bool
slice_levels(cps_vaxis *x, int64_t lo, int64_t n, int64_t st, int64_t *off)
{
    int at = 0;
    while (at < x->nl) {
        int64_t inner = 1;
        cps_tdim *d = &x->l[at];
        for (int i = at + 1; i < x->nl; i++)
            inner *= x->l[i].num;
        if (inner == 1) {
            *off += lo * d->step;
            *d = (cps_tdim){d->step * st, n};
            return true;
        }
        if (st == 1 && lo % inner == 0 && n % inner == 0) {
            *off += lo / inner * d->step;
            d->num = n / inner;
            return true;
        }
        if (lo / inner != (lo + (n - 1) * st) / inner)
            return false;
        *off += lo / inner * d->step;
        d->num = 1;
        lo %= inner;
        at++;
    }
    return true;
}

// Elements lo, lo + st, ... (n of them) of axis k. A partition axis takes st 1 only.
static bool
slice_axis(cps_view *v, int k, int64_t lo, int64_t n, int64_t st, cps_arena *a, cps_view_err *e)
{
    cps_vaxis *x = &v->ax[k];

    if (k == v->paxis && v->space != CPS_HBM) {
        if (v->all) { // only the whole row
            return lo == 0 && n == 1 ? true : fail(e, CPS_E3101, "an `all` axis has one row");
        }
        if (st != 1 && n > 1)
            return fail(e, CPS_E3101, "a slice over partitions has step 1");
        if (x->fold) {
            int64_t f0 = lo / x->fold, o = lo % x->fold;
            if (n <= x->fold - o) {
                v->part += (int)o;
                v->off += f0 * x->fold_step;
                x->fold = 0;
            } else if (o == 0 && (n % x->fold == 0 || lo + n == x->num)) {
                v->off += f0 * x->fold_step;
            } else {
                fail(e, CPS_E3103,
                     cps_arena_printf(a,
                                      "rows %lld..%lld are neither inside one fold of %lld nor "
                                      "whole folds",
                                      (long long)lo, (long long)(lo + n), (long long)x->fold));
                if (x->decl)
                    e->note = cps_arena_printf(a, "axis %d of `%s` was declared `%s`",
                                               x->decl_axis, v->name, x->decl);
                return false;
            }
        } else {
            v->part += (int)lo;
        }
        x->num = n;
        return true;
    }
    if (!slice_levels(x, lo, n, st, &v->off))
        return fail(e, CPS_E3101,
                    "a slice of a joined axis must keep whole rows of it or stay "
                    "inside one");
    x->num = n;
    return true;
}

static void
drop_axis(cps_view *v, int k)
{
    for (int i = k; i + 1 < v->nd; i++)
        v->ax[i] = v->ax[i + 1];
    v->nd--;
    if (v->paxis == k)
        v->paxis = -1;
    else if (v->paxis > k)
        v->paxis--;
}

static bool
bad_bounds(const cps_view *v, const cps_vaxis *x, int k, const char *what, cps_arena *a,
           cps_view_err *e)
{
    fail(e, CPS_E3101,
         cps_arena_printf(a, "%s is outside axis %d of `%s`, which has %lld elements", what, k,
                          v->name ? v->name : "the view", (long long)x->num));
    return false;
}

// Elements between neighbours of an axis that a register may move along; 0 when it may not.
static int64_t
dynamic_step(const cps_view *v, int k)
{
    const cps_vaxis *x = &v->ax[k];
    if (v->space != CPS_HBM && k == v->paxis)
        return 0;
    return x->nl == 1 ? x->l[0].step : 0;
}

static bool
apply_sub(cps_view *v, int *k, int place, const cps_vsub *s, cps_arena *a, cps_view_err *e)
{
    cps_vaxis *x = &v->ax[*k];
    int64_t lo = s->lo, hi = s->hi, st = s->step > 0 ? s->step : 1, n;

    switch (s->kind) {
    case CPS_VS_ALL:
        (*k)++;
        return true;
    case CPS_VS_AT:
        if (lo < 0 || lo >= x->num)
            return bad_bounds(v, x, place, cps_arena_printf(a, "index %lld", (long long)lo), a,
                              e);
        if (!slice_axis(v, *k, lo, 1, 1, a, e))
            return false;
        if (v->all && *k == v->paxis) // `g[0, :]` keeps its row: it has no one partition
            (*k)++;
        else
            drop_axis(v, *k);
        return true;
    case CPS_VS_SLICE:
        if (!s->has_hi)
            hi = x->num;
        if (lo < 0 || hi < lo || hi > x->num)
            return bad_bounds(
                v, x, place,
                cps_arena_printf(a, "slice %lld:%lld", (long long)lo, (long long)hi), a, e);
        n = cps_ceil_div(hi - lo, st);
        if (n == 0)
            return fail(
                e, CPS_E3101,
                cps_arena_printf(a, "slice %lld:%lld is empty", (long long)lo, (long long)hi));
        if (!slice_axis(v, *k, lo, n, st, a, e))
            return false;
        x->origin = st == 1 ? x->origin + lo : 0;
        (*k)++;
        return true;
    case CPS_VS_PIECE: {
        int64_t b = s->piece.start, z = s->piece.end;
        if (b < x->origin || z > x->origin + x->num) {
            fail(e, CPS_E3102,
                 cps_arena_printf(
                     a, "piece %s covers %s%s%lld..%lld, the axis covers %s%s%lld..%lld",
                     s->text ? s->text : "", s->piece.name ? s->piece.name : "",
                     s->piece.name ? " = " : "", (long long)b, (long long)z,
                     x->name ? x->name : "", x->name ? " = " : "", (long long)x->origin,
                     (long long)(x->origin + x->num)));
            if (x->decl)
                e->note = cps_arena_printf(a, "axis %d of %s was declared `%s`", x->decl_axis,
                                           v->name ? v->name : "the view", x->decl);
            return false;
        }
        if (z == b)
            return fail(e, CPS_E3101,
                        cps_arena_printf(a, "piece %s is empty", s->text ? s->text : ""));
        if (!(v->all && *k == v->paxis) && !slice_axis(v, *k, b - x->origin, z - b, 1, a, e))
            return false;
        x->origin = b;
        (*k)++;
        return true;
    }
    case CPS_VS_REG: {
        int64_t step = dynamic_step(v, *k);
        if (v->reg)
            return fail(e, CPS_E3104, "a view takes one register offset");
        if (!step)
            return fail(e, CPS_E3104,
                        "a register cannot move over partitions or a joined axis");
        if (s->size > x->num)
            return bad_bounds(v, x, place,
                              cps_arena_printf(a, "a part of %lld", (long long)s->size), a, e);
        v->reg = s->reg;
        v->reg_step = s->mul * step;
        v->off += lo * step;
        if (s->size) {
            x->num = s->size;
            x->l[0].num = s->size;
            x->origin = 0;
            (*k)++;
        } else {
            drop_axis(v, *k);
        }
        return true;
    }
    case CPS_VS_INDEX: {
        int64_t rows = cps_view_parts(s->index);
        if (v->space != CPS_HBM || place != 0)
            return fail(e, CPS_E5202,
                        "an index tile stands on the first axis of an hbm tensor");
        if (v->index)
            return fail(e, CPS_E5202, "a view takes one index tile");
        if (x->nl != 1)
            return fail(e, CPS_E5202, "an index tile cannot stand on a joined axis");
        v->index = s->index;
        x->num = rows;
        x->l[0].num = rows;
        x->origin = 0;
        (*k)++;
        return true;
    }
    }
    return fail(e, CPS_E3104, "unknown subscript");
}

bool
cps_view_index(cps_view *out, const cps_view *v, int n, const cps_vsub *s, cps_arena *a,
               int *bad, cps_view_err *e)
{
    int k = 0;

    cps_view_copy(out, v);
    *bad = 0;
    if (n > v->nd) {
        *bad = v->nd;
        return fail(e, CPS_E3104,
                    cps_arena_printf(a, "%d subscripts, but `%s` has %d ax%s", n,
                                     v->name ? v->name : "the view", v->nd,
                                     v->nd == 1 ? "is" : "es"));
    }
    for (int i = 0; i < n; i++) {
        *bad = i;
        if (!apply_sub(out, &k, i, &s[i], a, e))
            return false;
    }
    return true;
}

bool
cps_view_transpose(cps_view *out, const cps_view *v, cps_arena *a, cps_view_err *e)
{
    *out = *v;
    if (v->nd < 2)
        return fail(e, CPS_E3104,
                    cps_arena_printf(a, "' swaps the last two axes; %s has %d",
                                     v->name ? v->name : "the view", v->nd));
    out->ax[v->nd - 1] = v->ax[v->nd - 2];
    out->ax[v->nd - 2] = v->ax[v->nd - 1];
    if (v->paxis == v->nd - 1)
        out->paxis = v->nd - 2;
    else if (v->paxis == v->nd - 2)
        out->paxis = v->nd - 1;
    return true;
}

bool
cps_view_bits(cps_view *out, const cps_view *v, cps_dtype t, cps_arena *a, cps_view_err *e)
{
    int64_t from = cps_dtype_bytes(v->dtype), to = cps_dtype_bytes(t);
    int inner = -1;

    *out = *v;
    out->dtype = t;
    if (from == to)
        return true;
    if (v->index)
        return fail(e, CPS_E3107, "`.bits` goes before the index tile");
    for (int i = v->nd - 1; i >= 0 && inner < 0; i--)
        if (v->ax[i].nl > 0 && v->ax[i].l[v->ax[i].nl - 1].step == 1 &&
            (v->ax[i].num > 1 || i == v->nd - 1))
            inner = i;
    if (inner < 0)
        return fail(e, CPS_E3107, "`.bits` of another size needs a contiguous axis");
    if (v->off * from % to || v->reg_step * from % to)
        return fail(e, CPS_E3107,
                    cps_arena_printf(a, "byte %lld is not aligned for %s",
                                     (long long)(v->off * from), cps_dtype_name(t)));
    out->off = v->off * from / to;
    out->reg_step = v->reg_step * from / to;
    for (int i = 0; i < v->nd; i++) {
        cps_vaxis *x = &out->ax[i];
        for (int j = 0; j < x->nl; j++) {
            if (i == inner && j == x->nl - 1) {
                if (x->l[j].num * from % to)
                    return fail(e, CPS_E3107,
                                cps_arena_printf(a, "%lld bytes are not whole %s elements",
                                                 (long long)(x->l[j].num * from),
                                                 cps_dtype_name(t)));
                x->num = x->num / x->l[j].num * (x->l[j].num * from / to);
                x->l[j].num = x->l[j].num * from / to;
                x->l[j].step = 1;
                x->origin = 0;
            } else if (x->l[j].num > 1) {
                if (x->l[j].step * from % to)
                    return fail(e, CPS_E3107, "a stride is not a whole number of elements");
                x->l[j].step = x->l[j].step * from / to;
            }
        }
        if (x->fold) {
            if (x->fold_step * from % to)
                return fail(e, CPS_E3107, "a fold is not a whole number of elements");
            x->fold_step = x->fold_step * from / to;
        }
    }
    return true;
}

bool
cps_view_repeat(cps_view *out, const cps_view *v, int64_t n, int axis, cps_arena *a,
                cps_view_err *e)
{
    cps_vaxis *x;

    *out = *v;
    if (axis < 0 || axis >= v->nd)
        return fail(e, CPS_E3104, cps_arena_printf(a, "there is no axis %d", axis));
    if (n < 1 || n > (int64_t)1 << 31)
        return fail(e, CPS_E3104, cps_arena_printf(a, "%lld repetitions", (long long)n));
    x = &out->ax[axis];
    if (v->space != CPS_HBM && axis == v->paxis) {
        fail(e, CPS_E3105, "rows are repeated over partitions by a DMA from hbm only");
        return false;
    }
    cps_vaxis_tidy(x);
    if (x->nl == CPS_VIEW_LEVELS)
        return fail(e, CPS_E3108, "the axis is nested too deeply");
    if (x->num == 1) {
        x->l[0] = (cps_tdim){0, n};
    } else {
        x->l[x->nl++] = (cps_tdim){0, n};
    }
    x->num *= n;
    x->origin = 0;
    x->name = NULL;
    return true;
}

bool
cps_view_windows(cps_view *out, const cps_view *v, int64_t n, cps_arena *a, cps_view_err *e)
{
    int k = v->nd - 1;

    *out = *v;
    if (k < 0 || (v->space != CPS_HBM && k == v->paxis))
        return fail(e, CPS_E3105, "windows slide along a free axis, the last one");
    if (k + 1 == CPS_VIEW_AXES)
        return fail(e, CPS_E3108, "the view has too many axes");
    cps_vaxis *x = &out->ax[k];
    cps_vaxis_tidy(x);
    if (x->nl != 1)
        return fail(e, CPS_E3108, "windows need an axis of one step");
    if (n < 1 || n > x->num)
        return fail(e, CPS_E3104,
                    cps_arena_printf(a, "no window of %lld fits %lld elements", (long long)n,
                                     (long long)x->num));
    int64_t step = x->l[0].step, many = x->num - n + 1;
    x[0] = (cps_vaxis){.num = many, .nl = 1, .l = {{step, many}}};
    x[1] = (cps_vaxis){.num = n, .nl = 1, .l = {{step, n}}};
    out->nd++;
    return true;
}

bool
cps_view_unfold(cps_view *out, const cps_view *v, int64_t lo, int64_t n, cps_view_err *e)
{
    int k = v->paxis;
    cps_vaxis *x;
    int64_t fold, folds;

    *out = *v;
    if (k < 0 || v->all)
        return true;
    x = &out->ax[k];
    if (!x->fold) {
        out->part += (int)lo;
        x->num = n;
        x->origin += lo;
        return true;
    }
    fold = x->fold;
    if (lo % fold || (n % fold && n > fold)) // cut as another operand is folded
        return fail(e, CPS_E3103,
                    "operands of one statement are folded after different numbers of rows");
    out->off += lo / fold * x->fold_step;
    folds = cps_ceil_div(n, fold);
    x->num = CPS_MIN(n, fold);
    x->origin += lo;
    x->fold = 0;
    if (folds <= 1)
        return true;
    if (v->nd == CPS_VIEW_AXES)
        return fail(e, CPS_E3108, "the view has too many axes");
    for (int i = v->nd; i > k + 1; i--)
        out->ax[i] = out->ax[i - 1];
    out->ax[k + 1] = (cps_vaxis){.num = folds, .nl = 1, .l = {{x->fold_step, folds}}};
    out->nd++;
    return true;
}

int
cps_view_inner(const cps_view *v)
{
    for (int i = v->nd - 1; i >= 0; i--) {
        const cps_vaxis *x = &v->ax[i];
        if (x->num > 1 && x->nl > 0 && x->l[x->nl - 1].step == 1)
            return i;
    }
    for (int i = v->nd - 1; i >= 0; i--)
        if (v->ax[i].nl > 0)
            return i;
    return -1;
}

int64_t
cps_view_parts(const cps_view *v)
{
    if (v->space == CPS_HBM)
        return 0;
    if (v->paxis < 0 || v->all)
        return 1;
    return v->ax[v->paxis].fold ? CPS_MIN(v->ax[v->paxis].num, v->ax[v->paxis].fold)
                                : v->ax[v->paxis].num;
}

bool
cps_view_folded(const cps_view *v)
{
    return v->space != CPS_HBM && v->paxis >= 0 && !v->all && v->ax[v->paxis].fold &&
           v->ax[v->paxis].num > v->ax[v->paxis].fold;
}

int64_t
cps_view_free(const cps_view *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->nd; i++) {
        if (v->space != CPS_HBM && i == v->paxis)
            n *= cps_view_folded(v) ? cps_ceil_div(v->ax[i].num, v->ax[i].fold) : 1;
        else
            n *= v->ax[i].num;
    }
    return n;
}

const char *
cps_view_shape(cps_arena *a, const cps_view *v)
{
    const char *s = "[";
    for (int i = 0; i < v->nd; i++) {
        if (v->all && i == v->paxis)
            s = cps_arena_printf(a, "%s%sall", s, i ? ", " : "");
        else
            s = cps_arena_printf(a, "%s%s%lld", s, i ? ", " : "", (long long)v->ax[i].num);
    }
    return cps_arena_printf(a, "%s]", s);
}

const char *
cps_view_text(cps_arena *a, const cps_view *v)
{
    static const char *const space[] = {"hbm", "sbuf", "psum", "reg"};
    const char *s = cps_arena_printf(a, "%s %s", space[v->space], cps_dtype_name(v->dtype));

    if (v->space != CPS_HBM)
        s = cps_arena_printf(a, "%s p%d", s, v->part);
    s = cps_arena_printf(a, "%s +%lld", s, (long long)v->off);
    if (v->reg)
        s = cps_arena_printf(a, "%s +r%u*%lld", s, v->reg, (long long)v->reg_step);
    s = cps_arena_printf(a, "%s%s [", s, v->index ? " index" : "");
    for (int i = 0; i < v->nd; i++) {
        const cps_vaxis *x = &v->ax[i];
        if (i)
            s = cps_arena_printf(a, "%s, ", s);
        if (i == v->paxis)
            s = cps_arena_printf(a, "%s#", s);
        if (i == v->paxis && v->all)
            s = cps_arena_printf(a, "%sall", s);
        else if (i == v->paxis && x->fold)
            s = cps_arena_printf(a, "%s%lld by %lld:%lld", s, (long long)x->num,
                                 (long long)x->fold, (long long)x->fold_step);
        else if (i == v->paxis)
            s = cps_arena_printf(a, "%s%lld", s, (long long)x->num);
        for (int j = 0; j < x->nl; j++)
            s = cps_arena_printf(a, "%s%s%lld:%lld", s, j ? "*" : "", (long long)x->l[j].num,
                                 (long long)x->l[j].step);
        if (x->origin)
            s = cps_arena_printf(a, "%s@%lld", s, (long long)x->origin);
    }
    return cps_arena_printf(a, "%s]", s);
}

bool
cps_view_lower(const cps_view *v, uint32_t buf, int64_t parts, bool merge, cps_tview *out,
               cps_arena *a, cps_view_err *e)
{
    cps_tview t = {
        .buf = buf, .dtype = v->dtype, .off = v->off, .reg = v->reg, .reg_step = v->reg_step};

    cps_assert(!cps_view_folded(v));
    if (v->space != CPS_HBM) {
        t.part = (uint16_t)v->part;
        t.parts = (uint16_t)(parts ? parts : cps_view_parts(v));
    }
    for (int i = 0; i < v->nd; i++) {
        const cps_vaxis *x = &v->ax[i];
        if (v->space != CPS_HBM && i == v->paxis)
            continue;
        for (int j = 0; j < x->nl; j++) {
            cps_tdim d = x->l[j];
            if (d.num == 1 && !(v->index && i == 0))
                continue;
            if (merge && t.nd > 0 && t.d[t.nd - 1].step == d.step * d.num &&
                !(v->index && t.nd == 1)) {
                t.d[t.nd - 1] = (cps_tdim){d.step, t.d[t.nd - 1].num * d.num};
                continue;
            }
            if (t.nd == CPS_TILE_DIMS)
                return fail(e, CPS_E3108,
                            cps_arena_printf(a, "the view needs more than %d access dimensions",
                                             CPS_TILE_DIMS));
            t.d[t.nd++] = d;
        }
    }
    if (t.nd == 0)
        t.d[t.nd++] = (cps_tdim){1, 1};
    *out = t;
    return true;
}

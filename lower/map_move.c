/* Moves: transposes, slices, broadcasts, repetitions and gathers as calls of swap_axes,
 * transpose, slice and gather_rows.
 *
 * Axes of one element are dropped and axes that stay together are merged; what is left of a
 * transpose is a sequence of exchanges of two neighbouring blocks. Everything else that repeats
 * or picks whole rows is a gather with constant rows. */
#include "lower/map.h"

cps_val
cps_map_rows(cps_rw *w, cps_val x, int64_t count, const int32_t *ids)
{
    cps_call c = {.callee = "gather_rows", .nin = 2, .in = {x}};
    c.in[1] = cps_b_const(&w->b, cps_type_make(CPS_DT_I32, 1, &count), ids, NULL);
    return cps_map_call(w, &c);
}

/* ---- transposes ---- */

// [A, B, C, D] -> [A, C, B, D]
static cps_val
exchange(cps_rw *w, cps_val x, int64_t a, int64_t b, int64_t c, int64_t d)
{
    cps_call k = {.callee = d == 1 ? "transpose" : "swap_axes", .nin = 1};
    k.in[0] = d == 1 ? cps_rw_reshape(w, x, 3, (int64_t[]){a, b, c})
                     : cps_rw_reshape(w, x, 4, (int64_t[]){a, b, c, d});
    return cps_map_call(w, &k);
}

static int64_t
extent(const int64_t *size, const int *order, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= size[order[i]];
    return n;
}

// x as axes of `size`, brought to the order `want`.
static cps_val
permute(cps_rw *w, cps_val x, int n, const int64_t *size, const int *want)
{
    int now[CPS_MAX_RANK];
    for (int i = 0; i < n; i++)
        now[i] = i;
    for (int i = 0; i < n && x; i++) {
        if (now[i] == want[i])
            continue;
        int j = i, len = 1;
        while (now[j] != want[i])
            j++;
        while (j + len < n && i + len < n && now[j + len] == want[i + len])
            len++;
        x = exchange(w, x, extent(size, now, 0, i), extent(size, now, i, j),
                     extent(size, now, j, j + len), extent(size, now, j + len, n));
        int block[CPS_MAX_RANK];
        memcpy(block, now + j, (size_t)len * sizeof *block);
        memmove(now + i + len, now + i, (size_t)(j - i) * sizeof *now);
        memcpy(now + i, block, (size_t)len * sizeof *now);
    }
    return x;
}

bool
cps_map_transpose(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->in[0]);
    const int64_t *perm = cps_node_attr(n, "perm")->ints;
    int64_t size[CPS_MAX_RANK];
    int group[CPS_MAX_RANK], want[CPS_MAX_RANK], n_out = 0, n_in = 0;
    // Position of each axis in the result, axes of one element left out.
    int at[CPS_MAX_RANK];
    for (int i = 0, k = 0; i < t->rank; i++)
        if (t->dim[perm[i]] != 1)
            at[perm[i]] = k++;
    for (int i = 0, last = -2; i < t->rank; i++) {
        if (t->dim[i] == 1)
            continue;
        if (n_in && at[i] == last + 1)
            size[n_in - 1] *= t->dim[i];
        else
            size[n_in++] = t->dim[i];
        group[i] = n_in - 1;
        last = at[i];
    }
    for (int i = 0; i < t->rank; i++)
        if (t->dim[perm[i]] != 1 && (!n_out || want[n_out - 1] != group[perm[i]]))
            want[n_out++] = group[perm[i]];
    return cps_map_done(w, n, permute(w, cps_rw_new(w, n->in[0]), n_in, size, want));
}

/* ---- rows ---- */

// x [A, N, B] at positions pos[count] of the middle axis: [A, count, B].
static cps_val
pick(cps_rw *w, cps_val x, const int64_t d[3], int64_t count, const int64_t *pos)
{
    if (count < 1 || d[0] * d[1] > INT32_MAX)
        return 0;
    int32_t *ids = cps_arena_alloc(w->m->arena, (size_t)(d[0] * count) * sizeof *ids);
    for (int64_t a = 0; a < d[0]; a++)
        for (int64_t i = 0; i < count; i++)
            ids[a * count + i] = (int32_t)(a * d[1] + pos[i]);
    return cps_map_rows(w, cps_rw_reshape(w, x, 2, (int64_t[]){d[0] * d[1], d[2]}),
                        d[0] * count, ids);
}

// Extents before, of and after an axis.
static void
around(int rank, const int64_t *dim, int axis, int64_t d[3])
{
    d[0] = d[1] = d[2] = 1;
    for (int i = 0; i < rank; i++)
        d[i < axis ? 0 : i == axis ? 1 : 2] *= dim[i];
}

bool
cps_map_slice(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->in[0]), *y = cps_rw_type(w, n->out[0]);
    const int64_t *start = cps_node_attr(n, "start")->ints;
    const int64_t *step = cps_node_attr(n, "step")->ints;
    int64_t dim[CPS_MAX_RANK];
    cps_val x = cps_rw_new(w, n->in[0]);
    memcpy(dim, t->dim, sizeof dim);
    for (int i = 0; i < t->rank && x; i++) {
        int64_t d[3], count = y->dim[i];
        if (count == dim[i] && step[i] == 1)
            continue;
        around(t->rank, dim, i, d);
        if (step[i] == 1) {
            cps_call c = {.callee = "slice", .nin = 1, .nattr = 2};
            c.in[0] = cps_rw_reshape(w, x, 3, d);
            c.attr[0] = cps_a_int("count", count);
            c.attr[1] = cps_a_int("start", start[i]);
            x = cps_map_call(w, &c);
        } else {
            int64_t *pos = cps_new_array(w->tmp, int64_t, count + 1);
            for (int64_t k = 0; k < count; k++)
                pos[k] = start[i] + k * step[i];
            x = pick(w, x, d, count, pos);
        }
        dim[i] = count;
    }
    return cps_map_done(w, n, x);
}

// Joined in pairs from the front.
bool
cps_map_concat(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->in[0]);
    int axis = (int)cps_attr_int(n->attr, n->nattr, "axis", 0);
    int64_t d[3], e[3];
    around(t->rank, t->dim, axis, d);
    cps_val x = cps_rw_reshape(w, cps_rw_new(w, n->in[0]), 3, d);
    for (int i = 1; i < n->nin && x; i++) {
        const cps_type *y = cps_rw_type(w, n->in[i]);
        around(y->rank, y->dim, axis, e);
        cps_call c = {.callee = "concat", .nin = 2, .in = {x}};
        c.in[1] = cps_rw_reshape(w, cps_rw_new(w, n->in[i]), 3, e);
        x = cps_map_call(w, &c);
    }
    return cps_map_done(w, n, x);
}

bool
cps_map_repeat(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->in[0]);
    int axis = (int)cps_attr_int(n->attr, n->nattr, "axis", 0);
    int64_t times = cps_attr_int(n->attr, n->nattr, "n", 1), d[3];
    around(t->rank, t->dim, axis, d);
    int64_t *pos = cps_new_array(w->tmp, int64_t, d[1] * times + 1);
    for (int64_t i = 0; i < d[1] * times; i++)
        pos[i] = i / times;
    return cps_map_done(w, n, pick(w, cps_rw_new(w, n->in[0]), d, d[1] * times, pos));
}

// Written out: axes in front or in between repeat rows; a last axis adds a column to zeros.
bool
cps_map_broadcast(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->in[0]), *y = cps_rw_type(w, n->out[0]);
    int64_t dim[CPS_MAX_RANK];
    cps_val x = cps_rw_new(w, n->in[0]);
    for (int i = 0; i < y->rank; i++)
        dim[i] = i < y->rank - t->rank ? 1 : t->dim[i - (y->rank - t->rank)];
    for (int i = y->rank - 1; i >= 0 && x; i--) {
        int64_t d[3], times = y->dim[i];
        if (dim[i] == times)
            continue;
        around(y->rank, dim, i, d);
        if (d[2] == 1) { // nothing behind it
            int64_t full[2] = {d[0], times};
            size_t bytes = (size_t)(d[0] * times) * cps_dtype_bytes(t->dtype);
            cps_call c = {.callee = "binary", .nin = 2, .nattr = 1};
            c.in[0] = cps_b_const(&w->b, cps_type_make(t->dtype, 2, full),
                                  cps_arena_alloc(w->m->arena, bytes + 1), NULL);
            c.in[1] = cps_rw_reshape(w, x, 2, (int64_t[]){d[0], 1});
            c.attr[0] = cps_a_str("f", "add");
            x = cps_map_call(w, &c);
        } else {
            int64_t *pos = cps_new_array(w->tmp, int64_t, times + 1);
            x = pick(w, x, d, times, pos); // all zero
        }
        dim[i] = times;
    }
    return cps_map_done(w, n, x);
}

/* ---- gathers ---- */

// Constant indices, negative ones counted from the end.
static int64_t *
positions(cps_rw *w, const cps_const *c, int64_t extent_of_axis)
{
    int64_t count = cps_type_count(&c->type);
    int64_t *pos = cps_new_array(w->tmp, int64_t, count + 1);
    for (int64_t i = 0; i < count; i++) {
        pos[i] = cps_to_i64(c->type.dtype, (const uint8_t *)c->data +
                                               (size_t)i * cps_dtype_bytes(c->type.dtype));
        pos[i] += pos[i] < 0 ? extent_of_axis : 0;
        if (pos[i] < 0 || pos[i] >= extent_of_axis)
            return NULL;
    }
    return pos;
}

bool
cps_map_gather(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->in[0]), *ti = cps_rw_type(w, n->in[1]);
    int axis = (int)cps_attr_int(n->attr, n->nattr, "axis", 0);
    int64_t d[3], count = cps_type_count(ti);
    cps_val x = cps_rw_new(w, n->in[0]);
    around(t->rank, t->dim, axis, d);
    const cps_const *c = cps_rw_const(w, n->in[1]);
    if (c) {
        const int64_t *pos = positions(w, c, d[1]);
        return pos && cps_map_done(w, n, pick(w, x, d, count, pos));
    }
    // Indices known at run time: the axis comes to the front, rows are gathered, and it goes
    // back.
    if (d[0] > 1)
        x = exchange(w, x, 1, d[0], d[1], d[2]);
    cps_call k = {.callee = "gather_rows", .nin = 2};
    k.in[0] = cps_rw_reshape(w, x, 2, (int64_t[]){d[1], d[0] * d[2]});
    k.in[1] = cps_rw_new(w, n->in[1]);
    if (ti->dtype != CPS_DT_I32)
        k.in[1] = cps_b_cast(&w->b, k.in[1], CPS_DT_I32);
    k.in[1] = cps_rw_reshape(w, k.in[1], 1, &count);
    x = cps_map_call(w, &k);
    if (d[0] > 1)
        x = x ? exchange(w, x, 1, count, d[0], d[2]) : 0;
    return cps_map_done(w, n, x);
}

/* The leaf of a region: loops, loads and stores around the statements of its ops.
 *
 * In: a region and a target. Out: the leaf's text. Holds:
 *   - every operand comes from memory once and every result goes there once, but where rows with
 *     reductions are longer than a partition: then each reduction is a pass over the row, and a
 *     pass computes again what it needs;
 *   - the tiles alive at one time fit SBUF (the `where` clause says so in bytes), in slots that
 *     let loads and stores run ahead;
 *   - values that are the same for all rows lie on every partition and are made once; values that
 *     are one number for each row take 4 bytes;
 *   - a tile has the graph's dtype, so that 16-bit data keep the engines' faster modes, but fp32
 *     where something behind it tells neighbouring numbers apart (a comparison, a rounding, an
 *     exponential): nothing is decided on a rounded value.
 *
 * Ops that several engines do go, in order, to the one with the least work so far. */
#include "lower/region_leaf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PARTITIONS 128
#define SHARE_FOR_ROWS 3 /* rows for all may take one third of a partition */
#define MARGIN 4096      /* bytes of a partition for constants and columns */

// Slots of loads and of what is stored, in order of preference.
static const struct {
    int loads, stores;
} depths[] = {{6, 4}, {4, 3}, {3, 2}, {2, 2}, {2, 1}};

#define DEPTHS_OF_TILES 4 // of rows in tiles; whole rows have one more, which spares a pass for each reduction

static const int widths[] = {2048, 1024, 512, 256, 128, 64, 32};

/* ---- text ---- */

static int64_t
declared_bytes(const char *line)
{
    const char *type = strstr(line, "]: ") + 3, *bufs = strstr(type, " bufs "), *expr = strstr(type, " = ");
    int64_t bytes = (int64_t)cps_dtype_bytes(cps_dtype_parse(type, strcspn(type, " ;"))), hidden = 0;
    bytes *= bufs && (!expr || bufs < expr) ? strtol(bufs + 6, NULL, 10) : 1;
    if (!expr)
        return bytes;
    // What one instruction does not hold has tiles without a name: operands in parentheses, 1 / x.
    expr += 3;
    for (const char *p = expr; *p; p++)
        hidden += *p == '(' || (p[0] == '/' && p[1] == ' ');
    if (expr[strspn(expr, "abcdefghijklmnopqrstuvwxyz_")] == '(' && *expr != '(')
        hidden--;
    return bytes + 4 * hidden;
}

// What the leaf declares is counted as it is written, so that no step of an op is forgotten.
static void
count_declared(cps_rgen *g, const char *line)
{
    const char *ext = strchr(line, '[');
    if (strncmp(line, "sbuf ", 5) || !ext || !strstr(line, "]: "))
        return;
    size_t n = strcspn(++ext, "]");
    const char *full = cps_rg_extents(g, CPS_RG_FULL), *row = cps_rg_extents(g, CPS_RG_ROW);
    if (n == strlen(full) && strncmp(ext, full, n) == 0)
        g->column += declared_bytes(line);
    else if (n == strlen(row) && strncmp(ext, row, n) == 0)
        *(g->rows_first ? &g->row : &g->column) += declared_bytes(line);
}

void
cps_rg_line(cps_rgen *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = cps_arena_vprintf(g->a, fmt, ap);
    va_end(ap);
    count_declared(g, s);
    cps_buf_printf(g->out, "%*s%s\n", g->indent, "", s);
}

static const char *
columns(const cps_rgen *g)
{
    return g->whole ? cps_arena_printf(g->a, "%" PRId64, g->N) : "c";
}

const char *
cps_rg_extents(const cps_rgen *g, cps_rgclass c)
{
    switch (c) {
    case CPS_RG_FULL:
        return cps_arena_printf(g->a, "t, %s", columns(g));
    case CPS_RG_COL:
        return "t, 1";
    case CPS_RG_ROW:
        return g->rows_first ? cps_arena_printf(g->a, "%" PRId64 ", %" PRId64, g->R, g->N)
                             : cps_arena_printf(g->a, "%" PRId64 ", %s", g->R, columns(g));
    default:
        return cps_arena_printf(g->a, "%" PRId64 ", 1", g->R);
    }
}

const char *
cps_rg_name(const cps_rgen *g, int k)
{
    int root = g->v[k].root;
    return cps_arena_printf(g->a, g->r->v[root].kind == CPS_RV_INPUT ? "a%d" : "v%d",
                            g->r->v[root].kind == CPS_RV_INPUT ? g->r->v[root].slot : root);
}

/* ---- what lies where ---- */

static unsigned
bit_t(const cps_rgen *g)
{
    return 1u << (g->r->naxes - 2);
}

static unsigned
bit_n(const cps_rgen *g)
{
    return 1u << (g->r->naxes - 1);
}

static cps_rgclass
class_of(const cps_rgen *g, unsigned mask)
{
    bool t = mask & bit_t(g), n = mask & bit_n(g);
    return t && n ? CPS_RG_FULL : t ? CPS_RG_COL : n ? CPS_RG_ROW : CPS_RG_ONE;
}

static bool
is_wide(cps_rgclass c)
{
    return c == CPS_RG_FULL || c == CPS_RG_ROW;
}

// A cast that loses nothing and a broadcast are read where they come from.
static bool
is_free(const cps_region *r, const cps_rvalue *v)
{
    if (v->kind != CPS_RV_NODE)
        return false;
    if (v->op == CPS_OP_BROADCAST)
        return true;
    cps_dtype from = r->v[v->in[0]].dtype;
    return v->op == CPS_OP_CAST && cps_dtype_is_float(v->dtype) &&
           (from == v->dtype || (v->dtype == CPS_DT_FP32 && from != CPS_DT_I32) ||
            from == CPS_DT_BOOL);
}

// Axes each value's tile varies along; whether the rows under reductions had to be widened.
static bool
spread_masks(cps_rgen *g, unsigned *mask, bool *wide)
{
    const cps_region *r = g->r;
    bool again = false;
    for (int k = 0; k < r->n; k++) {
        const cps_rvalue *v = &r->v[k];
        mask[k] = v->kind == CPS_RV_INPUT ? v->mask : 0;
        for (int i = 0; i < v->nin; i++)
            mask[k] |= mask[v->in[i]];
        if (wide[k])
            mask[k] |= bit_t(g);
        if (v->kind == CPS_RV_NODE && v->op == CPS_OP_CUMSUM)
            mask[k] |= bit_t(g) | bit_n(g);
        if (v->kind != CPS_RV_NODE || !cps_rg_reduces(v->op))
            continue;
        // A reduction reads a whole tile: a row under it is loaded as one.
        int in = g->v[v->in[0]].root;
        again = again || (class_of(g, mask[in]) == CPS_RG_ROW && !wide[in]);
        wide[in] = wide[in] || class_of(g, mask[in]) == CPS_RG_ROW;
        mask[k] = (mask[k] | bit_t(g)) & ~bit_n(g);
    }
    return again;
}

static void
trace_roots(cps_rgen *g)
{
    const cps_region *r = g->r;
    unsigned mask[CPS_RG_NODES * 4];
    bool wide[CPS_RG_NODES * 4] = {false};
    for (int k = 0; k < r->n; k++) {
        const cps_rvalue *v = &r->v[k];
        cps_rgtile *x = &g->v[k];
        x->root = k;
        x->sum = -1;
        for (int i = 0; i < v->nin; i++)
            x->level = CPS_MAX(x->level, g->v[v->in[i]].level);
        x->level += v->kind == CPS_RV_NODE && cps_rg_reduces(v->op);
        if (is_free(r, v) && r->v[g->v[v->in[0]].root].kind != CPS_RV_NUMBER)
            x->root = g->v[v->in[0]].root;
    }
    while (spread_masks(g, mask, wide))
        ;
    for (int k = 0; k < r->n; k++) {
        g->v[k].cls = class_of(g, mask[g->v[k].root]);
        g->v[k].loops = mask[g->v[k].root] & (bit_t(g) - 1);
    }
}

static bool
is_stored(const cps_region *r, int k)
{
    return r->v[k].kind == CPS_RV_NODE && r->v[k].slot >= 0;
}

static void
count_uses(cps_rgen *g)
{
    const cps_region *r = g->r;
    for (int k = r->n - 1; k >= 0; k--) {
        const cps_rvalue *v = &r->v[k];
        cps_rgtile *x = &g->v[k];
        if (is_stored(r, k))
            g->v[x->root].uses++;
        if (x->root != k) { // free: its sharpness is its origin's
            g->v[v->in[0]].sharp |= x->sharp;
            g->v[v->in[0]].decides |= x->decides;
            continue;
        }
        for (int i = 0; i < v->nin; i++) {
            if (i == 0 || v->in[i] != v->in[0])
                g->v[g->v[v->in[i]].root].uses++;
            g->v[v->in[i]].sharp |= x->sharp || cps_rg_is_sharp(r, v);
            bool plain = v->op == CPS_OP_ADD || v->op == CPS_OP_SUB || v->op == CPS_OP_MAX || v->op == CPS_OP_MIN;
            g->v[v->in[i]].decides |= v->kind == CPS_RV_NODE && (cps_rg_decides(v) || (plain && x->decides));
        }
    }
}

// Its statement may write integers: one instruction of DVE or ACT, which rounds and holds at the ends as it writes.
static bool
is_direct(cps_op op)
{
    return op == CPS_OP_ADD || op == CPS_OP_SUB || op == CPS_OP_MUL || op == CPS_OP_MAX || op == CPS_OP_MIN;
}

static void
choose_dtypes(cps_rgen *g)
{
    const cps_region *r = g->r;
    for (int k = 0; k < r->n; k++) {
        const cps_rvalue *v = &r->v[k];
        cps_rgtile *x = &g->v[k];
        bool narrow = v->op == CPS_OP_CAST || (!x->sharp && is_wide(x->cls));
        narrow = narrow && v->op != CPS_OP_CUMSUM;
        x->dtype = v->dtype;
        if (v->dtype == CPS_DT_BOOL)
            x->dtype = v->kind == CPS_RV_INPUT ? CPS_DT_U8 : CPS_DT_BF16;
        else if (v->kind == CPS_RV_NODE && cps_dtype_is_float(v->dtype) && !narrow)
            x->dtype = CPS_DT_FP32;
    }
    // A cast that narrows what nothing else reads is done by the write of that.
    for (int k = 0; k < r->n; k++) {
        const cps_rvalue *v = &r->v[k];
        if (v->kind != CPS_RV_NODE || v->op != CPS_OP_CAST || g->v[k].root != k ||
            !(cps_dtype_is_float(v->dtype) || (cps_dtype_is_int(v->dtype) && g->range[v->in[0]].whole)))
            continue;
        int from = g->v[v->in[0]].root;
        const cps_rvalue *p = &r->v[from];
        if (p->kind != CPS_RV_NODE || p->dtype != CPS_DT_FP32 || g->v[from].uses != 1 ||
            cps_rg_reduces(p->op) || (cps_dtype_is_int(v->dtype) && !is_direct(p->op)))
            continue;
        g->v[from].dtype = v->dtype;
        g->v[from].uses += g->v[k].uses - 1;
        for (int q = 0; q < r->n; q++)
            if (g->v[q].root == k)
                g->v[q].root = from;
    }
}

// A tile that a store reads, or that becomes one by a selection in place.
static bool
is_sent(const cps_rgen *g, int k)
{
    const cps_region *r = g->r;
    for (int q = 0; q < r->n; q++) {
        if (is_stored(r, q) && g->v[q].root == k && g->v[k].dtype == (r->v[q].dtype == CPS_DT_BOOL ? CPS_DT_U8 : r->v[q].dtype))
            return true;
        if (q > k && r->v[q].op == CPS_OP_SELECT && r->v[q].kind == CPS_RV_NODE && is_stored(r, q) && g->v[k].uses == 1 &&
            (g->v[r->v[q].in[1]].root == k || g->v[r->v[q].in[2]].root == k))
            return true;
    }
    return false;
}

const char *
cps_rg_slots(const cps_rgen *g, int k)
{
    return g->v[k].cls == CPS_RG_FULL && is_sent(g, k) ? cps_arena_printf(g->a, " bufs %d", g->store_slots) : "";
}

int
cps_rg_user(const cps_rgen *g, int k)
{
    for (int u = k + 1; u < g->r->n; u++)
        for (int i = 0; g->v[u].root == u && i < g->r->v[u].nin; i++)
            if (g->v[g->r->v[u].in[i]].root == k)
                return u;
    return -1;
}

static void
choose_inlined(cps_rgen *g)
{
    for (int k = 0; k < g->r->n; k++) {
        if (g->v[k].root != k || g->v[k].uses != 1 || g->r->v[k].kind != CPS_RV_NODE)
            continue;
        int u = cps_rg_user(g, k);
        bool stored = is_stored(g->r, k);
        for (int q = k; q < g->r->n; q++) // read through a cast or broadcast: left alone
            stored = stored || (q != k && g->v[q].root == k);
        if (u >= 0 && !stored && g->r->v[u].nin <= 2 && (g->r->v[u].nin < 2 || g->r->v[u].in[0] != g->r->v[u].in[1]))
            g->v[k].inlined = cps_rg_may_inline(g, k, u);
    }
}

static int
size_of(const cps_rgen *g, int k)
{
    return (int)cps_dtype_bytes(g->v[k].dtype);
}

/* ---- loads and stores ---- */

static void
put_place(const cps_rgen *g, const cps_rvalue *v, cps_rgclass c, cps_buf *b)
{
    unsigned mask = v->mask;
    int n = g->r->naxes;
    for (int i = 0; i + 2 < n; i++) {
        cps_buf_printf(b, mask >> i & 1 ? "i%d" : "0", i);
        cps_buf_printf(b, v->cut == i + 1 ? " + %" PRId64 ", " : ", ", v->start);
    }
    bool cut = c == CPS_RG_FULL || (c == CPS_RG_ROW && !g->rows_first);
    bool part = cut && !g->whole;
    if (v->cut == n - 1)
        cps_buf_printf(b, "ds(t.start + %" PRId64 ", t.size), ", v->start);
    else
        cps_buf_puts(b, mask & bit_t(g) ? "t, " : "0:1, ");
    if (v->cut == n && part)
        cps_buf_printf(b, "ds(c.start + %" PRId64 ", c.size)", v->start);
    else if (v->cut == n)
        cps_buf_printf(b, "%" PRId64 ":%" PRId64, v->start, v->start + g->N);
    else
        cps_buf_puts(b, !(mask & bit_n(g)) ? "0:1" : part ? "c" : ":");
}

static void
load(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    cps_buf b = {0};
    cps_buf_printf(&b, "x%d%s[", v->slot, v->dtype == CPS_DT_BOOL ? ".bits(u8)" : "");
    put_place(g, v, x->cls, &b);
    cps_buf_putc(&b, ']');
    const char *name = cps_rg_name(g, k), *ext = cps_rg_extents(g, x->cls), *t = cps_dtype_name(x->dtype);
    bool all = !(v->mask & bit_t(g)) && g->T > 1;
    const char *bufs = x->cls == CPS_RG_FULL ? cps_arena_printf(g->a, " bufs %d", g->slots) : "";
    if (all && x->cls == CPS_RG_FULL)
        cps_rg_line(g, "sbuf %s[%s]: %s%s <- repeat(%s, t.size, axis: 0);", name, ext, t, bufs, b.data);
    else if (all && g->R > 1)
        cps_rg_line(g, "sbuf %s[%s]: %s <- repeat(%s, %" PRId64 ", axis: 0);", name, ext, t, b.data, g->R);
    else
        cps_rg_line(g, "sbuf %s[%s]: %s%s <- %s;", name, ext, t, bufs, b.data);
    cps_buf_fini(&b);
}

static void
store(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[g->v[k].root];
    cps_rgclass c = class_of(g, v->mask | bit_t(g));
    cps_dtype t = v->dtype == CPS_DT_BOOL ? CPS_DT_U8 : v->dtype;
    bool input = g->r->v[g->v[k].root].kind != CPS_RV_NODE;
    const char *src = cps_rg_read(g, k, c);
    if (x->cls != c || x->dtype != t || input || g->r->v[g->v[k].root].kind == CPS_RV_NUMBER) {
        cps_rgclass from = x->cls;
        if (from == c || (c == CPS_RG_FULL && from == CPS_RG_ROW) || (c == CPS_RG_COL && from == CPS_RG_ONE)) {
            cps_rg_line(g, "sbuf y%ds[%s]: %s bufs %d = %s;", v->slot, cps_rg_extents(g, c), cps_dtype_name(t), c == CPS_RG_FULL ? g->store_slots : 2, src);
            src = cps_arena_printf(g->a, "y%ds", v->slot);
        } else {
            src = cps_rg_shaped(g, k, c, t, cps_arena_printf(g->a, "_y%d", v->slot));
        }
    }
    cps_buf b = {0}, once = {0};
    for (int i = 0; i + 2 < g->r->naxes; i++)
        if (!(v->mask >> i & 1) && g->r->axis[i] > 1)
            cps_buf_printf(&once, "%si%d == 0", once.n ? " && " : "", i);
    if (!(v->mask & bit_t(g)) && g->T > 1)
        cps_buf_printf(&once, "%st.start == 0", once.n ? " && " : "");
    cps_buf_printf(&b, "y%d%s[", v->slot, v->dtype == CPS_DT_BOOL ? ".bits(u8)" : "");
    put_place(g, v, c, &b);
    bool cut = !(v->mask & bit_t(g)) && g->T > 1;
    cps_buf_printf(&b, "] <- %s%s;", src, cut ? "[0:1, :]" : "");
    if (once.n)
        cps_rg_line(g, "if (%s) { %s }", once.data, b.data);
    else
        cps_rg_line(g, "%s", b.data);
    cps_buf_fini(&b);
    cps_buf_fini(&once);
}

/* ---- reductions ---- */

static void
reduce(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    bool bound = v->op == CPS_OP_RMAX || v->op == CPS_OP_RMIN;
    const char *f = v->op == CPS_OP_RMAX ? "max" : v->op == CPS_OP_RMIN ? "min" : "sum", *n = cps_rg_name(g, k);
    int in = g->v[v->in[0]].root;
    bool beside = g->v[in].sum == k; // its statement has summed already
    cps_dtype t = g->v[in].dtype;
    const char *a = g->v[in].cls == CPS_RG_FULL ? cps_rg_read(g, v->in[0], CPS_RG_FULL)
                                                : cps_rg_shaped(g, v->in[0], CPS_RG_FULL, t, cps_arena_printf(g->a, "_%dw", k));
    if (!beside) {
        g->load[CPS_DVE] += 1e3 / g->t->dve_mhz;
        g->count[CPS_DVE] += 1;
    }
    if (g->whole && !beside) {
        cps_rg_line(g, "sbuf %ss[t, 1]: fp32 = %s(%s, axis: free);", n, f, a);
        return;
    }
    if (g->whole)
        return;
    if (!beside) {
        cps_rg_line(g, "sbuf %ss[t, 1]: fp32 = %s(%s, axis: free);", n, f, a);
    }
    if (bound)
        cps_rg_line(g, "if (c.first) { %sa = %ss; } else { %sa = %simum(%sa, %ss); }", n, n, n, f, n, n);
    else
        cps_rg_line(g, "if (c.first) { %sa = %ss; } else { %sa = %sa + %ss; }", n, n, n, n, n);
}

static void
finish_reduction(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const char *n = cps_rg_name(g, k), *part = g->whole ? "s" : "a";
    cps_buf b = {0};
    if (v->op == CPS_OP_MEAN) {
        cps_buf_printf(&b, "sbuf %s[t, 1]: fp32 = %s%s * ", n, n, part);
        cps_region_number(1.0 / (double)g->N, &b);
        cps_rg_line(g, "%s;", b.data);
    } else {
        cps_rg_line(g, "let %s = %s%s;", n, n, part);
    }
    cps_buf_fini(&b);
}

/* ---- passes ---- */

static bool
in_loop(const cps_rgen *g, int k)
{
    const cps_rgtile *x = &g->v[k];
    return x->cls == CPS_RG_FULL || (x->cls == CPS_RG_ROW && !g->rows_first);
}

static void
need(cps_rgen *g, int k, bool *needed)
{
    k = g->v[k].root;
    if (needed[k] || !in_loop(g, k) || g->r->v[k].kind == CPS_RV_NUMBER)
        return;
    needed[k] = true;
    for (int i = 0; i < g->r->v[k].nin; i++)
        need(g, g->r->v[k].in[i], needed);
}

// What the pass reduces and stores, and all that this takes.
static bool
needs_of(cps_rgen *g, int pass, bool *needed)
{
    bool any = false;
    memset(needed, 0, sizeof(bool) * CPS_RG_NODES * 4);
    for (int k = 0; k < g->r->n; k++) {
        const cps_rvalue *v = &g->r->v[k];
        if (v->kind != CPS_RV_NODE)
            continue;
        bool reduced = cps_rg_reduces(v->op) && g->v[k].level == pass + 1;
        bool stored = is_stored(g->r, k) && (v->mask & bit_n(g)) && g->v[k].level == pass;
        if (reduced)
            need(g, v->in[0], needed);
        if (stored)
            need(g, k, needed);
        any = any || reduced || stored;
    }
    return any;
}

// A sum on the side of an activation that is computed in this pass anyway.
static void
sums_beside(cps_rgen *g, int pass, const bool *needed)
{
    for (int k = 0; k < g->r->n; k++)
        g->v[k].sum = -1;
    for (int k = 0; k < g->r->n; k++) {
        const cps_rvalue *v = &g->r->v[k];
        if (v->kind != CPS_RV_NODE || (v->op != CPS_OP_SUM && v->op != CPS_OP_MEAN) || g->v[k].level != pass + 1)
            continue;
        int in = g->v[v->in[0]].root;
        if (g->r->v[in].kind == CPS_RV_NODE && needed[in] && !g->v[in].done && g->v[in].cls == CPS_RG_FULL &&
            cps_rg_function(g->r->v[in].op) && g->r->v[in].dtype != CPS_DT_I32 && g->v[in].sum < 0)
            g->v[in].sum = k;
    }
}

static void
columns_of(cps_rgen *g, int level)
{
    for (int k = 0; k < g->r->n; k++) {
        const cps_rvalue *v = &g->r->v[k];
        const cps_rgtile *x = &g->v[k];
        bool col = x->cls == CPS_RG_COL;
        if (x->root != k || (!col && x->cls != CPS_RG_ONE) || x->level != level || v->kind == CPS_RV_NUMBER)
            continue;
        if (!col)
            ; // made before; its stores wait for the loop
        else if (v->kind == CPS_RV_INPUT)
            load(g, k);
        else if (cps_rg_reduces(v->op))
            finish_reduction(g, k);
        else if (!x->inlined)
            cps_rg_statement(g, k);
        for (int q = 0; q < g->r->n; q++)
            if (is_stored(g->r, q) && g->v[q].root == k && !(g->r->v[q].mask & bit_n(g)))
                store(g, q);
    }
}

static void
one_pass(cps_rgen *g, int pass)
{
    bool needed[CPS_RG_NODES * 4];
    columns_of(g, pass);
    if (!needs_of(g, pass, needed))
        return;
    sums_beside(g, pass, needed);
    for (int k = 0; k < g->r->n; k++)
        if (g->r->v[k].kind == CPS_RV_NODE && cps_rg_reduces(g->r->v[k].op) && g->v[k].level == pass + 1) {
            if (!g->whole)
                cps_rg_line(g, "sbuf %sa[t, 1]: fp32;", cps_rg_name(g, k));
        }
    g->pass = pass;
    for (int k = 0; k < g->r->n; k++)
        if (g->r->v[k].kind == CPS_RV_NODE && g->r->v[k].op == CPS_OP_CUMSUM && needed[k] && !g->v[k].done)
            cps_rg_scan_start(g, k);
    if (!g->whole) {
        cps_rg_line(g, "for c in tiles(%" PRId64 ", C) {", g->N);
        g->indent += 4;
    }
    for (int k = 0; k < g->r->n; k++) {
        const cps_rvalue *v = &g->r->v[k];
        cps_rgtile *x = &g->v[k];
        if (v->kind == CPS_RV_NODE && cps_rg_reduces(v->op) && x->level == pass + 1)
            reduce(g, k);
        if (x->root == k && needed[k] && !x->done && !x->inlined) {
            if (x->sum >= 0)
                cps_rg_line(g, "sbuf %ss[t, 1]: fp32;", cps_rg_name(g, x->sum));
            int64_t before = g->column;
            if (v->kind == CPS_RV_INPUT)
                load(g, k);
            else
                cps_rg_statement(g, k);
            x->made = g->column - before;
            x->done = g->whole;
        }
    }
    for (int k = 0; k < g->r->n; k++)
        if (is_stored(g->r, k) && (g->r->v[k].mask & bit_n(g)) && g->v[k].level == pass)
            store(g, k);
    if (!g->whole) {
        g->indent -= 4;
        cps_rg_line(g, "}");
    }
}

// Rows and numbers for all, before the loop over the partitions' axis, or before all loops.
static void
shared(cps_rgen *g, bool loops)
{
    for (int k = 0; k < g->r->n; k++) {
        const cps_rgtile *x = &g->v[k];
        bool here = x->cls == CPS_RG_ONE || (x->cls == CPS_RG_ROW && g->rows_first);
        if (x->root != k || !here || x->loops != loops || g->r->v[k].kind == CPS_RV_NUMBER || x->inlined)
            continue;
        if (g->r->v[k].kind == CPS_RV_INPUT)
            load(g, k);
        else
            cps_rg_statement(g, k);
    }
}

// What running sums multiply the state by.
static void
ones(cps_rgen *g)
{
    bool any = false;
    for (int k = 0; k < g->r->n; k++)
        any = any || (g->r->v[k].kind == CPS_RV_NODE && g->r->v[k].op == CPS_OP_CUMSUM);
    if (!any)
        return;
    g->column += 4;
    cps_rg_line(g, "sbuf ones[%" PRId64 ", %s]: fp32 = 1.0;", g->R, g->whole ? cps_arena_printf(g->a, "%" PRId64, g->N) : "C");
}

static void
body(cps_rgen *g)
{
    int passes = 0;
    for (int k = 0; k < g->r->n; k++)
        passes = CPS_MAX(passes, g->v[k].level);
    ones(g);
    shared(g, false);
    for (int i = 0; i + 2 < g->r->naxes; i++) {
        cps_rg_line(g, "for i%d in 0..%" PRId64 " {", i, g->r->axis[i]);
        g->indent += 4;
    }
    shared(g, true);
    cps_rg_line(g, "for t in tiles(%" PRId64 ", P) across cores {", g->T);
    g->indent += 4;
    for (int p = 0; p <= passes; p++)
        one_pass(g, p);
    for (int i = 0; i + 1 < g->r->naxes; i++) {
        g->indent -= 4;
        cps_rg_line(g, "}");
    }
}

/* ---- how much fits ---- */

// Bytes that one column keeps alive while the loops run once: loads and stores in their slots, twice
// the most that lives between them, steps inside an op included, so that engines may run ahead; with the fewest slots only
// as much as must be.
static int64_t
bytes_alive(const cps_rgen *g, const cps_rgtile *made, bool once)
{
    const cps_region *r = g->r;
    int64_t loads = 0, stores = 0, live = 0, peak = 0;
    int last[CPS_RG_NODES * 4] = {0};
    for (int k = r->n - 1; k >= 0; k--) {
        int to = g->v[k].inlined ? last[k] : k; // read where its user is
        for (int i = 0; i < r->v[k].nin; i++) {
            int *at = &last[g->v[r->v[k].in[i]].root];
            *at = CPS_MAX(*at, to);
        }
        if (is_stored(r, k) && !is_sent(g, g->v[k].root))
            last[g->v[k].root] = r->n; // stores stand at the end
    }
    for (int k = 0; k < r->n; k++) {
        const cps_rgtile *x = &g->v[k];
        const cps_rvalue *v = &r->v[k];
        if (is_stored(r, k))
            stores += g->store_slots * CPS_MAX((int64_t)cps_dtype_bytes(v->dtype), (int64_t)size_of(g, k));
        if (v->kind == CPS_RV_NUMBER || x->root != k || x->inlined || x->cls != CPS_RG_FULL)
            continue;
        if (v->kind == CPS_RV_INPUT) {
            loads += size_of(g, k) * g->slots;
            continue;
        }
        peak = CPS_MAX(peak, live + CPS_MAX(made[k].made, size_of(g, k) + 4));
        live += size_of(g, k);
        for (int q = 0; q <= k; q++)
            if (last[q] == k && g->v[q].root == q && g->v[q].cls == CPS_RG_FULL && r->v[q].kind == CPS_RV_NODE)
                live -= size_of(g, q);
    }
    return loads + stores + (g->store_slots > 1 || once ? 2 : 1) * peak;
}

// Bytes of a column with the slots as they are. Where loops run more than once, a tile's place is
// kept through all of them (codegen/alloc.c), so that all that is declared lives at one time.
static int64_t
bytes_per_column(const cps_rgen *g, int64_t *rows)
{
    cps_rgen *try = cps_new(g->a, cps_rgen);
    cps_buf text = {0};
    *try = *g;
    try->out = &text;
    body(try);
    cps_buf_fini(&text);
    *rows = try->row;
    bool once = g->whole && g->T <= PARTITIONS && g->r->naxes == 2;
    int64_t alive = bytes_alive(g, try->v, once);
    return once ? alive : CPS_MAX(alive, try->column);
}

// Slots that fit, the deepest first; the shallowest when none does.
static bool
choose_slots(cps_rgen *g, int64_t columns, int64_t room, int64_t *column, int64_t *fixed)
{
    for (size_t i = 0; i < (g->whole ? cps_countof(depths) : DEPTHS_OF_TILES); i++) {
        int64_t rows;
        g->slots = depths[i].loads;
        g->store_slots = depths[i].stores;
        *column = bytes_per_column(g, &rows);
        *fixed = rows * g->N;
        if (*column * columns + *fixed <= room)
            return true;
    }
    return false;
}

static void
choose_layout(cps_rgen *g, int *width, int64_t *column, int64_t *fixed)
{
    int64_t room = g->t->sbuf_bytes - g->t->sbuf_reserve - MARGIN;
    // The last op of a chain may read what was loaded first, and a store is slow: while the engines
    // hand a tile on, loads and stores go on.
    g->rows_first = true;
    choose_slots(g, widths[0], room, column, fixed);
    g->rows_first = *fixed <= room / SHARE_FOR_ROWS;
    if (!g->rows_first)
        choose_slots(g, widths[0], room, column, fixed);
    if (g->r->reduces) {
        g->whole = true;
        g->whole = choose_slots(g, g->N, room, column, fixed);
        if (!g->whole) // of the shallowest
            choose_slots(g, INT32_MAX, room, column, fixed);
    }
    *width = 32;
    for (size_t i = 0; i < cps_countof(widths); i++)
        if (*column * widths[i] + *fixed <= room) {
            *width = widths[i];
            break;
        }
}

/* ---- clauses ---- */

static cps_costs
costs(const cps_rgen *g)
{
    static const cps_engine who[] = {CPS_ACT, CPS_DVE, CPS_POOL};
    const cps_region *r = g->r;
    double tiles = (double)cps_ceil_div(g->T, PARTITIONS) * (double)g->N;
    cps_costs c = {0};
    for (int i = 0; i + 2 < r->naxes; i++)
        tiles *= (double)r->axis[i];
    int levels = 0;
    for (int k = 0; k < r->n; k++)
        levels = CPS_MAX(levels, g->v[k].level);
    for (int k = 0; k < r->n; k++) {
        const cps_rvalue *v = &r->v[k];
        double b = (double)cps_region_count(r, v->mask) * (double)cps_dtype_bytes(v->dtype);
        if (v->kind == CPS_RV_INPUT) // once a pass where rows do not stay
            c.hbm += b * (r->reduces && !g->whole ? levels + 1 : 1);
        else if (is_stored(r, k))
            c.hbm += b;
    }
    for (size_t i = 0; i < cps_countof(who); i++)
        c.cycles[who[i]] = g->count[who[i]] * tiles;
    return c;
}

static void
put_cost(const cps_rgen *g, cps_buf *out)
{
    static const cps_engine who[] = {CPS_ACT, CPS_DVE, CPS_POOL};
    cps_costs c = costs(g);
    cps_buf_puts(out, "    cost ");
    for (size_t i = 0; i < cps_countof(who); i++)
        if (c.cycles[who[i]] > 0)
            cps_buf_printf(out, "%s: %.0f, ", cps_engine_name(who[i]), c.cycles[who[i]]);
    cps_buf_printf(out, "hbm: %.0f;\n", c.hbm);
}

static const char *
tolerance(const cps_region *r)
{
    bool narrow = false, real = false;
    for (int k = 0; k < r->n; k++) {
        narrow = narrow || r->v[k].dtype == CPS_DT_BF16 || r->v[k].dtype == CPS_DT_FP16;
        real = real || (is_stored(r, k) && cps_dtype_is_float(r->v[k].dtype));
    }
    return !real ? "0.0, 0.0" : narrow ? "2e-2, 1e-5" : "1e-3, 1e-5";
}

static const char *
shipped_name(const cps_target *t)
{
    static const struct {
        cps_gen gen;
        const char *name;
    } names[] = {{CPS_V2, "trn1"}, {CPS_V3, "trn2"}, {CPS_V4, "trn3"}};
    for (size_t i = 0; i < cps_countof(names); i++)
        if (names[i].gen == t->gen)
            return names[i].name;
    return "trn2";
}

// Everything that is chosen before a line is written.
static cps_rgen *
planned(const cps_region *r, const cps_target *t, cps_arena *a, cps_buf *out, int *width, int64_t *column, int64_t *fixed)
{
    cps_rgen *g = cps_new(a, cps_rgen);
    *g = (cps_rgen){.r = r, .t = t, .out = out, .a = a, .indent = 4};
    g->T = r->axis[r->naxes - 2];
    g->N = r->axis[r->naxes - 1];
    g->R = CPS_MIN(g->T, PARTITIONS);
    trace_roots(g);
    count_uses(g);
    cps_rg_ranges(g);
    choose_dtypes(g);
    choose_inlined(g);
    choose_layout(g, width, column, fixed);
    return g;
}

cps_costs
cps_region_costs(const cps_region *r, const cps_target *t, bool *whole, bool *tight)
{
    cps_buf text = {0};
    cps_arena *a = cps_arena_create();
    int width;
    int64_t column, fixed;
    cps_rgen *g = planned(r, t, a, &text, &width, &column, &fixed);
    body(g);
    cps_costs c = costs(g);
    *whole = g->whole;
    *tight = g->store_slots == 1;
    cps_buf_fini(&text);
    cps_arena_destroy(a);
    return c;
}

void
cps_region_leaf(const cps_region *r, const char *name, const cps_target *t, cps_buf *out)
{
    cps_buf text = {0};
    cps_arena *a = cps_arena_create();
    int width;
    int64_t column, fixed;
    cps_rgen *g = planned(r, t, a, &text, &width, &column, &fixed);
    body(g);
    cps_buf_printf(out, "leaf %s_tiles for %s on %s {\n", name, name, shipped_name(t));
    if (g->whole) {
        cps_buf_printf(out, "    where %" PRId64 " <= sbuf.partition : \"rows must fit one partition\";\n",
                       column * g->N + fixed);
    } else {
        cps_buf_puts(out, "    param C in {");
        for (size_t i = cps_countof(widths); i-- > 0;)
            cps_buf_printf(out, "%d%s", widths[i], i ? ", " : "");
        cps_buf_printf(out, "} = %d;\n    where C * %" PRId64 " + %" PRId64 " <= sbuf.partition : "
                            "\"the tiles alive at one time must fit one partition\";\n",
                       width, column, fixed);
    }
    put_cost(g, out);
    cps_buf_printf(out, "    tolerance %s;\n    cases (cores: 1);\n\n%s}\n", tolerance(r), text.data);
    cps_buf_fini(&text);
    cps_arena_destroy(a);
}

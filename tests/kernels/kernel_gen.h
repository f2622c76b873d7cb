/* Random small kernels in the language: an op, and a leaf that computes the same in tiles. Both texts are written by
 * one walk, so that what the op says is what the leaf should do. Every program is legal: a diagnostic is a failure.
 *
 * The shape of all: rows of x (perhaps gathered) meet v, h and s in an expression, perhaps a norm, perhaps a product
 * with w by tiles of 128 along K, then an expression with u, g and r, whole or in column tiles. How tiles are cut,
 * loaded, kept, turned, copied, on which engine, in which loop, through which scratch and in which type is drawn. */
#ifndef CPS_TESTS_KERNELS_KERNEL_GEN_H
#define CPS_TESTS_KERNELS_KERNEL_GEN_H

#include "runtime/base/rng.h"
#include "runtime/base/str.h"

#include <stdio.h>
#include <string.h>

enum { KG_TERMS = 8 };

/* A value as the op and as the leaf name it. */
typedef struct kg_term {
    char op[32], leaf[32];
} kg_term;

typedef struct kg_scope {
    kg_term tile[KG_TERMS], column[KG_TERMS];
    unsigned tiles, columns;
} kg_scope;

typedef struct kernel_gen {
    cps_rng r;
    cps_buf op, top, body; /* the op's lines, the leaf's declarations, the work on one piece of rows */
    cps_buf src;           /* the whole file */
    char operands[256];    /* types and shapes, as trace_run.h takes them */
    const char *target;
    bool v2;         /* trn1: ScalarE copies nothing, DMA turns nothing */
    int M, K, N, R;  /* R: rows of x when they are gathered, else 0 */
    int mt;          /* rows of a piece */
    const char *yt;  /* type of y */
    bool fp32;       /* no value is rounded below fp32 on the way */
    bool second;     /* a second result: the largest of each row */
    bool staged;     /* a pipeline, which chooses its slots itself */
} kernel_gen;

static inline unsigned
kg_pick(kernel_gen *g, unsigned n)
{
    return (unsigned)cps_rng_below(&g->r, n);
}

static inline const char *
kg_type(kernel_gen *g, bool narrow)
{
    static const char *const all[] = {"fp32", "bf16", "fp16"};
    return all[narrow ? 1 + kg_pick(g, 2) : kg_pick(g, 3)];
}

static inline bool
kg_narrow(const char *type)
{
    return strcmp(type, "fp32") != 0;
}

/* A mark for the engine of a copy, or none. */
static inline const char *
kg_engine(kernel_gen *g)
{
    switch (kg_pick(g, 5)) {
    case 0:
        return g->v2 ? "" : " on act";
    case 1:
        return " on dve";
    case 2:
        return " on pool";
    default:
        return "";
    }
}

static inline const char *
kg_bufs(kernel_gen *g)
{
    static const char *const some[] = {" bufs 1", " bufs 2", " bufs 3"};
    return kg_pick(g, 2) || g->staged ? "" : some[kg_pick(g, 3)];
}

/* ---- expressions, in both dialects ---- */

typedef struct kg_pair {
    cps_buf op, leaf;
} kg_pair;

static inline void
kg_both(kg_pair *p, const char *s)
{
    cps_buf_puts(&p->op, s);
    cps_buf_puts(&p->leaf, s);
}

static inline void
kg_value(kg_pair *p, const kg_term *t)
{
    cps_buf_puts(&p->op, t->op);
    cps_buf_puts(&p->leaf, t->leaf);
}

static inline void
kg_leaf_of_tree(kernel_gen *g, const kg_scope *s, kg_pair *p)
{
    static const char *const numbers[] = {"0.5", "2.0", "-1.5", "3", "0.125", "1.0"};
    unsigned k = kg_pick(g, 6);
    if (k < 3 || s->columns == 0)
        kg_value(p, &s->tile[kg_pick(g, s->tiles)]);
    else if (k < 5)
        kg_value(p, &s->column[kg_pick(g, s->columns)]);
    else
        kg_both(p, numbers[kg_pick(g, cps_countof(numbers))]);
}

static inline void
kg_expr(kernel_gen *g, const kg_scope *s, kg_pair *p, int depth)
{
    static const char *const fns[] = {"square", "relu", "tanh", "sigmoid", "abs"};
    static const char *const infix[] = {" + ", " - ", " * "};
    if (depth == 0) {
        kg_leaf_of_tree(g, s, p);
        return;
    }
    switch (kg_pick(g, 8)) {
    case 0:
    case 1:
    case 2:
        kg_both(p, "(");
        kg_expr(g, s, p, depth - 1);
        kg_both(p, infix[kg_pick(g, cps_countof(infix))]);
        kg_expr(g, s, p, depth - 1);
        kg_both(p, ")");
        break;
    case 3:
        kg_both(p, kg_pick(g, 2) ? "maximum(" : "minimum(");
        kg_expr(g, s, p, depth - 1);
        kg_both(p, ", ");
        kg_expr(g, s, p, depth - 1);
        kg_both(p, ")");
        break;
    case 4:
        kg_both(p, "exp(minimum(");
        kg_expr(g, s, p, depth - 1);
        kg_both(p, g->fp32 ? ", 2.0))" : ", 0.0))"); // what a narrow operand lost is not to grow
        break;
    case 5:
        kg_both(p, "(");
        kg_expr(g, s, p, depth - 1);
        kg_both(p, " / (1.0 + square(");
        kg_expr(g, s, p, depth - 1);
        kg_both(p, ")))");
        break;
    default:
        kg_both(p, fns[kg_pick(g, cps_countof(fns))]);
        kg_both(p, "(");
        kg_expr(g, s, p, depth - 1);
        kg_both(p, ")");
        break;
    }
}

/* Values are fp32 in both texts: a cast of what has the type already rounds nothing in an op.
 * An expression over a tile, which holds at least one tile; held to [-4, 4] so that nothing overflows on. */
static inline kg_pair
kg_tree(kernel_gen *g, const kg_scope *s, int depth)
{
    kg_pair p = {0};
    kg_both(&p, "minimum(maximum(");
    kg_value(&p, &s->tile[0]);
    kg_both(&p, " * 0.25 + ");
    kg_expr(g, s, &p, depth);
    kg_both(&p, ", -4.0), 4.0)");
    return p;
}

static inline void
kg_pair_fini(kg_pair *p)
{
    cps_buf_fini(&p->op);
    cps_buf_fini(&p->leaf);
}

static inline kg_term *
kg_add(kg_term *list, unsigned *n, const char *op, const char *leaf)
{
    kg_term *t = &list[(*n)++];
    snprintf(t->op, sizeof t->op, "%s", op);
    snprintf(t->leaf, sizeof t->leaf, "%s", leaf);
    return t;
}

/* ---- the leaf's lines ---- */

/* Rows `rows` of an operand of `cols` columns into tile `to`, in one of several ways. */
static inline void
kg_load(kernel_gen *g, const char *to, const char *from, const char *rows, const char *dim, const char *cols, int ncols)
{
    cps_buf *b = &g->body;
    switch (kg_pick(g, 5)) {
    case 0: // by a procedure, whose names are its own
        cps_buf_printf(b, "        sbuf %s[%s, %s]: %s.dtype%s;\n        fetch(%s, %s[%s, :]);\n", to, dim, cols, from, kg_bufs(g), to, from, rows);
        break;
    case 1: // in column pieces
        cps_buf_printf(b, "        sbuf %s[%s, %s]: %s.dtype%s;\n", to, dim, cols, from, kg_bufs(g));
        cps_buf_printf(b, "        for c in tiles(%s, %d) { %s[:, c] <- %s[%s, c]; }\n", cols, 1 + (int)kg_pick(g, (unsigned)ncols),
                       to, from, rows);
        break;
    case 2: // converted on the way
        cps_buf_printf(b, "        sbuf %s[%s, %s]: fp32%s <- %s[%s, :];\n", to, dim, cols, kg_bufs(g), from, rows);
        break;
    case 3: // through a copy
        cps_buf_printf(b, "        sbuf %s_in[%s, %s]%s <- %s[%s, :];\n", to, dim, cols, kg_bufs(g), from, rows);
        cps_buf_printf(b, "        sbuf %s[%s, %s]: %s.dtype%s = %s_in%s;\n", to, dim, cols, from, kg_bufs(g), to, kg_engine(g));
        break;
    default:
        cps_buf_printf(b, "        sbuf %s[%s, %s]%s <- %s[%s, :];\n", to, dim, cols, kg_bufs(g), from, rows);
        break;
    }
}

/* a: what the rows are before the product, [rows, K], type `t`. */
static inline void
kg_first(kernel_gen *g, const char *rows, const char *dim, const char *t, bool norm, bool scratch)
{
    kg_scope s = {0};
    cps_buf *b = &g->body;
    if (g->R) {
        cps_buf_printf(b, "        sbuf ix[%s, 1]%s <- ids[%s];\n", dim, kg_bufs(g), rows);
        cps_buf_printf(b, "        sbuf xt[%s, K]%s <- x[ix, :];\n", dim, kg_bufs(g));
    } else {
        kg_load(g, "xt", "x", rows, dim, "K", g->K);
    }
    kg_add(s.tile, &s.tiles, g->R ? "cast(x[ids, :], fp32)" : "cast(x, fp32)", "xt");
    if (kg_pick(g, 2)) {
        kg_load(g, "vt", "v", rows, dim, "K", g->K);
        kg_add(s.tile, &s.tiles, "cast(v, fp32)", "vt");
    }
    if (kg_pick(g, 2)) {
        cps_buf_puts(&g->top, kg_pick(g, 2) ? "    sbuf ht[all, K] <- h;\n" : "    sbuf ht[all, K]: fp32 <- h;\n");
        kg_add(s.tile, &s.tiles, "cast(h, fp32)", "ht");
    }
    if (kg_pick(g, 2)) {
        cps_buf_printf(b, "        sbuf st[%s, 1]%s <- s[%s, :];\n", dim, kg_bufs(g), rows);
        kg_add(s.column, &s.columns, "cast(s, fp32)", "st");
    }
    kg_pair p = kg_tree(g, &s, (int)kg_pick(g, 3));
    bool late = norm && kg_pick(g, 2); // rounded before the norm, or after it
    cps_buf_printf(&g->op, "    let a0 = %s(%s%s%s);\n", late || !norm ? "cast" : "", p.op.data, late || !norm ? ", " : "",
                   late || !norm ? t : "");
    cps_buf_printf(b, "        sbuf a0[%s, K]: %s%s = %s;\n", dim, late || !norm ? t : "fp32", kg_bufs(g), p.leaf.data);
    kg_pair_fini(&p);
    if (norm) {
        cps_buf_printf(&g->op, "    let a = cast(a0 * rsqrt(mean(a0 * a0, axis: 1) + 0.5), %s);\n", t);
        cps_buf_printf(b, "        sbuf q[%s, 1]: fp32%s = sum(square(a0), axis: free);\n", dim, kg_bufs(g));
        cps_buf_printf(b, "        sbuf n[%s, 1]: fp32%s = rsqrt(q * (1.0 / K) + 0.5);\n", dim, kg_bufs(g));
        cps_buf_printf(b, "        sbuf a1[%s, K]: %s%s = a0 * n;\n", dim, t, kg_bufs(g));
    } else {
        cps_buf_puts(&g->op, "    let a = a0;\n");
        cps_buf_puts(b, "        let a1 = a0;\n");
    }
    if (scratch) { // to HBM and back
        cps_buf_printf(&g->top, "    hbm kept[M, K]: %s;\n", t);
        cps_buf_printf(b, "        kept[%s, :] <- a1;\n        sbuf a2[%s, K]%s <- kept[%s, :];\n", rows, dim, kg_bufs(g), rows);
    } else {
        cps_buf_puts(b, "        let a2 = a1;\n");
    }
}

/* at: the transposed rows, K folded on the partitions, by the tensor engine or from HBM by DMA. */
static inline void
kg_turn(kernel_gen *g, const char *rows, const char *dim, const char *t, bool scratch)
{
    cps_buf *b = &g->body;
    // Both ways draw as often: a loop and the rows behind it compute the same.
    bool dma = kg_pick(g, 2) && scratch && kg_narrow(t) && !g->v2;
    const char *bufs[2] = {kg_bufs(g), kg_bufs(g)}, *copy = kg_pick(g, 2) ? " on dve" : "";
    if (dma && *dim == 'm') { // a place in a register goes with plain copies only
        cps_buf_printf(b, "        sbuf at[K by P, %s]: %s%s <- kept[%s, :]';\n", dim, t, bufs[0], rows);
        return;
    }
    cps_buf_printf(b, "        sbuf at[K by P, %s]: %s%s;\n", dim, t, bufs[0]);
    cps_buf_printf(b,
                   "        for k in tiles(K, P) {\n            psum turned[k, %s]: transposed(a2.dtype)%s = a2[:, k]';\n"
                   "            at[k, :] = turned%s;\n        }\n",
                   dim, bufs[1], copy);
}

/* Columns `n` of the result, from sums in PSUM or from a2. */
static inline void
kg_last(kernel_gen *g, const char *rows, const char *dim, bool product, bool kept, const char *t)
{
    kg_scope s = {0};
    cps_buf *b = &g->body;
    static const char *const how[] = {"", " on dve"};
    const char *scale = g->K > 64 ? "0.0625" : "0.25"; // sums near 1: what follows does not magnify their rounding
    if (product) {
        cps_buf_printf(&g->op, "    let p = cast(a, fp32) @ cast(cast(w, %s), fp32);\n", t);
        if (!kept)
            cps_buf_printf(b, "        sbuf wt[K by P, n]: %s%s <- w[:, n];\n", t, kg_bufs(g));
        cps_buf_printf(b, "        psum acc[%s, n]: fp32%s;\n", dim, kg_bufs(g));
        cps_buf_puts(b, "        for k in tiles(K, P) { acc += at[k, :]' @ wt[k, n]; }\n");
        cps_buf_printf(b, "        sbuf pt[%s, n]: fp32%s = acc * %s%s;\n", dim, kg_bufs(g), scale, how[kg_pick(g, 2)]);
        snprintf(kg_add(s.tile, &s.tiles, "", "pt")->op, 32, "(p * %s)", scale);
    } else {
        cps_buf_puts(&g->op, "    let p = a;\n");
        kg_add(s.tile, &s.tiles, "cast(p, fp32)", "a2[:, n]");
    }
    if (kg_pick(g, 2)) {
        cps_buf_printf(b, "        sbuf ut[%s, n]%s <- u[%s, n];\n", dim, kg_bufs(g), rows);
        kg_add(s.tile, &s.tiles, "cast(u, fp32)", "ut");
    }
    if (kg_pick(g, 2)) {
        cps_buf_puts(&g->top, "    sbuf gt[all, N] <- g;\n");
        kg_add(s.tile, &s.tiles, "cast(g, fp32)", "gt[:, n]");
    }
    if (kg_pick(g, 3) == 0) {
        cps_buf_printf(b, "        sbuf rt[%s, 1]%s <- r[%s, :];\n", dim, kg_bufs(g), rows);
        kg_add(s.column, &s.columns, "cast(r, fp32)", "rt");
    }
    kg_pair p = kg_tree(g, &s, (int)kg_pick(g, 3));
    cps_buf_printf(&g->op, "    let z = %s;\n    y = cast(z, %s);\n", p.op.data, g->yt);
    if (g->second || kg_pick(g, 2)) {
        cps_buf_printf(b, "        sbuf o[%s, n]: fp32%s = %s;\n", dim, kg_bufs(g), p.leaf.data);
        if (g->second)
            cps_buf_printf(b,
                           "        sbuf part[%s, 1]: fp32%s = max(o, axis: free);\n"
                           "        if (n.first) { most = part; } else { most = maximum(most, part); }\n",
                           dim, kg_bufs(g));
        if (kg_pick(g, 2))
            cps_buf_printf(b, "        y[%s, n] <- o%s;\n", rows, kg_bufs(g));
        else
            cps_buf_printf(b, "        sbuf yt[%s, n]: y.dtype%s = o%s;\n        y[%s, n] <- yt;\n", dim, kg_bufs(g), kg_engine(g), rows);
    } else {
        cps_buf_printf(b, "        y[%s, n] <- %s%s;\n", rows, p.leaf.data, kg_bufs(g));
    }
    kg_pair_fini(&p);
    if (g->second)
        cps_buf_puts(&g->op, "    top = max(z, axis: 1);\n");
}

/* All the work on one piece of rows, by the draws that follow from `from`. */
static inline void
kg_piece(kernel_gen *g, cps_rng from, const char *rows, const char *dim)
{
    g->r = from;
    g->op.n = g->top.n = g->body.n = 0;
    bool product = kg_pick(g, 3) > 0, norm = kg_pick(g, 3) == 0, scratch = kg_pick(g, 4) == 0, kept = kg_pick(g, 2);
    const char *t = kg_type(g, false);
    g->yt = kg_pick(g, 2) ? "fp32" : kg_type(g, true);
    g->fp32 = !kg_narrow(t) && !kg_narrow(g->yt);
    g->second = kg_pick(g, 3) == 0;
    int nt = kg_pick(g, 2) ? 1 + (int)kg_pick(g, 64) : 128 + (int)kg_pick(g, 385);
    if (g->staged)
        cps_buf_puts(&g->body, "    stage first {\n");
    kg_first(g, rows, dim, t, norm, scratch);
    if (product) {
        kg_turn(g, rows, dim, t, scratch);
        if (kept)
            cps_buf_printf(&g->top, "    sbuf wt[K by P, N]: %s <- w;\n", t);
    }
    if (g->staged)
        cps_buf_puts(&g->body, "    }\n    stage last {\n");
    if (g->second)
        cps_buf_printf(&g->body, "        sbuf most[%s, 1]: fp32%s;\n", dim, kg_bufs(g));
    cps_buf_printf(&g->body, "        for n in tiles(N, %d) {\n", nt);
    kg_last(g, rows, dim, product, kept, t);
    cps_buf_puts(&g->body, "        }\n");
    if (g->second)
        cps_buf_printf(&g->body, "        top[%s, :] <- most;\n", rows);
    if (g->staged)
        cps_buf_puts(&g->body, "    }\n");
    if (!product)
        g->N = g->K;
}

/* Program `index` of `seed`, for `target`. */
static inline void
kernel_gen_make(kernel_gen *g, const char *target, uint64_t seed, uint64_t index)
{
    static const int rows[] = {128, 128, 64, 96, 32, 17};
    const char *dt[7];
    char dim[16], at[32];
    *g = (kernel_gen){.target = target, .v2 = !strcmp(target, "trn1")};
    cps_rng_init(&g->r, seed, index);
    g->M = 1 + (int)kg_pick(g, kg_pick(g, 2) ? 40 : 300);
    g->K = 1 + (int)kg_pick(g, kg_pick(g, 2) ? 40 : 260);
    g->N = 1 + (int)kg_pick(g, kg_pick(g, 2) ? 40 : 200);
    // A gather writes odd rows of 2-byte elements by a record for each, of which there are 256 at most.
    g->R = kg_pick(g, 4) == 0 && g->K <= 256 ? 2 + (int)kg_pick(g, 100) : 0;
    g->mt = rows[kg_pick(g, cps_countof(rows))];
    for (size_t i = 0; i < cps_countof(dt); i++)
        dt[i] = kg_type(g, false);
    bool loop = kg_pick(g, 4) == 0 && g->M >= g->mt;
    g->staged = !loop && kg_pick(g, 4) == 0;
    snprintf(dim, sizeof dim, "%d", g->mt);
    snprintf(at, sizeof at, "ds(i * %d, %d)", g->mt, g->mt);
    cps_rng from = g->r;
    cps_buf whole = {0};
    if (loop) {
        kg_piece(g, from, at, dim);
        cps_buf_printf(&whole, "    loop i in 0..%d {\n%s    }\n", g->M / g->mt, g->body.data);
    }
    kg_piece(g, from, "m", "m");
    if (!loop)
        cps_buf_printf(&whole, "    for m in tiles(M, %d)%s {\n%s    }\n", g->mt, g->staged ? " pipelined" : "", g->body.data);
    else if (g->M % g->mt)
        cps_buf_printf(&whole, "    for m in tiles(%d..M, %d) {\n%s    }\n", g->M / g->mt * g->mt, g->mt, g->body.data);
    cps_buf_puts(&g->top, ""); // never NULL
    cps_buf_printf(&g->src,
                   "op k(x[%s, K], w[K, N], u[M, N], v[M, K], g[N], h[K], s[M, 1], r[M, 1], ids[M]: i32) -> y[M, N]: %s%s {\n%s}\n"
                   "fn fetch(xt, from) { xt <- from; }\nleaf k_leaf for k on trn1, trn2, trn3 {\n    cases (M: 1);\n%s%s}\n",
                   g->R ? "R" : "M", g->yt, g->second ? ", top[M, 1]: fp32" : "", g->op.data, g->top.data, whole.data);
    snprintf(g->operands, sizeof g->operands, "%s[%d,%d] %s[%d,%d] %s[%d,%d] %s[%d,%d] %s[%d] %s[%d] %s[%d,1] fp32[%d,1] i32[%d]",
             dt[0], g->R ? g->R : g->M, g->K, dt[1], g->K, g->N, dt[2], g->M, g->N, dt[3], g->M, g->K, dt[4], g->N, dt[5],
             g->K, dt[6], g->M, g->M, g->M);
    cps_buf_fini(&whole);
}

static inline void
kernel_gen_fini(kernel_gen *g)
{
    cps_buf_fini(&g->op);
    cps_buf_fini(&g->top);
    cps_buf_fini(&g->body);
    cps_buf_fini(&g->src);
}

#endif

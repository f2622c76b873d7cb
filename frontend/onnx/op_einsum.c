/* Einsum of one or two operands as transposes, reshapes, sums and one batched matrix product.
 *
 * A letter is, by where it stands: in both operands and the result a batch letter, in both but
 * not in the result a contracted one, in one operand and the result a free one; a letter of one
 * operand only is summed away first. Each operand is brought to [batch, free, contracted]
 * order, multiplied, split again and permuted to the result's order. */
#include "frontend/onnx/import.h"

#include <inttypes.h>
#include <stdio.h>

#define LETTERS 52

typedef struct term {
    int n;
    char s[CPS_MAX_RANK + 1];
} term;

static int
letter(char c)
{
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
}

static bool
has(const term *t, char c)
{
    return memchr(t->s, c, (size_t)t->n) != NULL;
}

// Letters up to a comma, an arrow or the end; false on anything else, and on a repeated letter.
static bool
read_term(const char **p, term *t)
{
    t->n = 0;
    for (; **p && **p != ',' && **p != '-'; ++*p) {
        if (**p == ' ')
            continue;
        if (letter(**p) < 0 || t->n == CPS_MAX_RANK || has(t, **p))
            return false;
        t->s[t->n++] = **p;
    }
    t->s[t->n] = 0;
    return true;
}

// Without an arrow the result holds the letters that occur once, in alphabetical order.
static void
implicit(const term *in, int nin, term *out)
{
    out->n = 0;
    for (int l = 0; l < LETTERS; l++) {
        // ASCII order: capitals come first.
        char c = (char)(l < 26 ? 'A' + l : 'a' + l - 26);
        int seen = 0;
        for (int i = 0; i < nin; i++)
            seen += has(&in[i], c);
        if (seen == 1 && out->n < CPS_MAX_RANK)
            out->s[out->n++] = c;
    }
    out->s[out->n] = 0;
}

static bool
parse(cps_ox *m, term *in, int nin, term *out)
{
    const char *text;
    if (!cps_ox_str(m, "equation", "", &text))
        return false;
    const char *p = text;
    bool ok = true;
    for (int i = 0; ok && i < nin; i++)
        ok = read_term(&p, &in[i]) && (i + 1 == nin || *p++ == ',');
    if (ok && p[0] == '-' && p[1] == '>') {
        p += 2;
        ok = read_term(&p, out);
    } else if (ok) {
        implicit(in, nin, out);
    }
    for (int i = 0; ok && i < out->n; i++)
        ok = has(&in[0], out->s[i]) || (nin > 1 && has(&in[1], out->s[i]));
    if (!ok || *p) {
        cps_ox_err(m, CPS_E7009, "the equation '%s' is not taken", text);
        cps_note(m->d, CPS_NOSPAN,
                 "one term of distinct letters for each operand, no ellipsis");
        return false;
    }
    return true;
}

// x with the axes of `t` put into the order of `want` (a permutation of t).
static cps_val
order(cps_ox *m, cps_val x, const term *t, const char *want)
{
    int64_t perm[CPS_MAX_RANK];
    bool same = true;
    for (int i = 0; i < t->n; i++) {
        perm[i] = strchr(t->s, want[i]) - t->s;
        same = same && perm[i] == i;
    }
    return same || !x ? x : cps_b_transpose(&m->b, x, perm);
}

// Sums away the letters of t that neither `other` nor `out` has.
static cps_val
drop(cps_ox *m, cps_val x, term *t, const term *other, const term *out)
{
    int64_t axes[CPS_MAX_RANK];
    int n = 0;
    term left = {0};
    for (int i = 0; i < t->n; i++)
        if (has(out, t->s[i]) || (other && has(other, t->s[i])))
            left.s[left.n++] = t->s[i];
        else
            axes[n++] = i;
    *t = left;
    return n ? cps_b_reduce(&m->b, CPS_OP_SUM, x, n, axes, false) : x;
}

static bool
sizes(cps_ox *m, cps_val x, const term *t, int64_t *size)
{
    const cps_type *type = cps_ox_type(m, x);
    if (type->rank != t->n)
        return cps_ox_err(m, CPS_E7009, "the term '%s' names %d axes of an operand of rank %d",
                          t->s, t->n, type->rank);
    for (int i = 0; i < t->n; i++) {
        int64_t *s = &size[letter(t->s[i])];
        if (*s >= 0 && *s != type->dim[i])
            return cps_ox_err(m, CPS_E7009, "'%c' is %" PRId64 " and %" PRId64, t->s[i], *s,
                              type->dim[i]);
        *s = type->dim[i];
    }
    return true;
}

static void
put(char *to, int *n, char c)
{
    to[(*n)++] = c;
    to[*n] = 0;
}

static int64_t
extent(const char *s, const int64_t *size)
{
    int64_t n = 1;
    for (; *s; s++)
        n *= size[letter(*s)];
    return n;
}

static cps_val
contract(cps_ox *m, cps_val x, cps_val y, const term *tx, const term *ty, const term *out,
         const int64_t *size)
{
    // Room for two operands' worth of letters each.
    char batch[20] = "", rows[20] = "", cols[20] = "", inner[20] = "";
    int nb = 0, nr = 0, nc = 0, ni = 0;
    for (int i = 0; i < tx->n; i++) {
        char c = tx->s[i];
        if (!has(ty, c))
            put(rows, &nr, c);
        else if (has(out, c))
            put(batch, &nb, c);
        else
            put(inner, &ni, c);
    }
    for (int i = 0; i < ty->n; i++)
        if (!has(tx, ty->s[i]))
            put(cols, &nc, ty->s[i]);
    char ox[64], oy[64];
    snprintf(ox, sizeof ox, "%s%s%s", batch, rows, inner);
    snprintf(oy, sizeof oy, "%s%s%s", batch, inner, cols);
    int64_t b = extent(batch, size), r = extent(rows, size), c = extent(cols, size),
            k = extent(inner, size);
    x = cps_ox_reshape(m, order(m, x, tx, ox), 3, (int64_t[]){b, r, k});
    y = cps_ox_reshape(m, order(m, y, ty, oy), 3, (int64_t[]){b, k, c});
    cps_val z = x && y ? cps_b_matmul(&m->b, x, y) : 0;
    term got = {0};
    int64_t dim[CPS_MAX_RANK];
    char all[64];
    snprintf(all, sizeof all, "%s%s%s", batch, rows, cols);
    for (const char *s = all; *s; s++) {
        dim[got.n] = size[letter(*s)];
        got.s[got.n++] = *s;
    }
    return order(m, cps_ox_reshape(m, z, got.n, dim), &got, out->s);
}

bool
cps_ox_op_einsum(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    int nin = (int)m->n->in.n;
    term in[2], out;
    int64_t size[LETTERS];
    cps_val v[2];
    for (int i = 0; i < LETTERS; i++)
        size[i] = -1;
    if (!parse(m, in, nin, &out))
        return false;
    for (int i = 0; i < nin; i++) {
        if (!(v[i] = cps_ox_in(m, (unsigned)i)))
            return cps_ox_err(m, CPS_E7009, "operand %d is missing", i);
        if (!sizes(m, v[i], &in[i], size))
            return false;
    }
    v[0] = drop(m, v[0], &in[0], nin > 1 ? &in[1] : NULL, &out);
    if (nin == 1)
        return cps_ox_give(m, 0, order(m, v[0], &in[0], out.s));
    v[1] = drop(m, v[1], &in[1], &in[0], &out);
    if (!v[0] || !v[1])
        return false;
    return cps_ox_give(m, 0, contract(m, v[0], v[1], &in[0], &in[1], &out, size));
}

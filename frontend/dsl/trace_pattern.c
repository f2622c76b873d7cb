/* `.view("a (b c) -> b a c", c: 4)`: axes split, joined and permuted by name. The left side
 * names the axes there are, the right side those there shall be; both use every name once. A
 * `1` on the left drops a unit axis, on the right it adds one. On chip the partition axis may
 * move in the order of axes, but is neither split nor joined: that would move data between
 * partitions. */
#include "frontend/dsl/trace_view.h"

#include <ctype.h>
#include <string.h>

#define NAMES 16

typedef struct part {
    char name[32];
    int64_t size; /* -1: not known yet */
    cps_vaxis ax;
    bool partition, used;
} part;

typedef struct group { /* one axis of either side */
    int n;
    int part[NAMES];
} group;

typedef struct pattern {
    const char *text;
    cps_arena *a;
    cps_view_err *e;
    int nparts;
    part parts[NAMES];
    int nleft, nright;
    group left[CPS_VIEW_AXES + 1], right[CPS_VIEW_AXES + 1];
} pattern;

static bool
bad(pattern *p, const char *what)
{
    *p->e = (cps_view_err){
        .code = CPS_E3106,
        .text = cps_arena_printf(p->a, "bad view pattern \"%s\": %s", p->text, what)};
    return false;
}

static int
find(const pattern *p, const char *s, size_t n)
{
    for (int i = 0; i < p->nparts; i++)
        if (strlen(p->parts[i].name) == n && memcmp(p->parts[i].name, s, n) == 0)
            return i;
    return -1;
}

// One side, up to `end`; `make` names the parts, else they are looked up.
static bool
read_side(pattern *p, const char *s, const char *end, bool make, group *g, int *ng)
{
    bool open = false;

    *ng = 0;
    while (s < end) {
        if (*s == ' ') {
            s++;
            continue;
        }
        if (*s == '(' || *s == ')') {
            if ((*s == '(') == open)
                return bad(p, "parentheses do not match");
            open = !open;
            if (open) {
                if (*ng == CPS_VIEW_AXES)
                    return bad(p, "more than 8 axes");
                g[(*ng)++] = (group){0};
            }
            s++;
            continue;
        }
        const char *b = s;
        while (s < end && (isalnum((unsigned char)*s) || *s == '_'))
            s++;
        size_t n = (size_t)(s - b);
        if (n == 0)
            return bad(p, "expected a name, `(`, `)` or 1");
        if (!open) {
            if (*ng == CPS_VIEW_AXES)
                return bad(p, "more than 8 axes");
            g[(*ng)++] = (group){0};
        }
        if (n == 1 && *b == '1')
            continue;
        if (isdigit((unsigned char)*b))
            return bad(p, "the only number is 1; sizes are given by name");
        int i = find(p, b, n);
        if (make) {
            if (i >= 0)
                return bad(p, cps_arena_printf(p->a, "`%s` stands twice on the left",
                                               p->parts[i].name));
            if (p->nparts == NAMES || n >= sizeof(p->parts[0].name))
                return bad(p, "too many or too long names");
            i = p->nparts++;
            memset(&p->parts[i], 0, sizeof(p->parts[i]));
            memcpy(p->parts[i].name, b, n);
            p->parts[i].size = -1;
        } else {
            if (i < 0)
                return bad(p, cps_arena_printf(p->a, "`%.*s` is not on the left", (int)n, b));
            if (p->parts[i].used)
                return bad(p, cps_arena_printf(p->a, "`%s` stands twice on the right",
                                               p->parts[i].name));
            p->parts[i].used = true;
        }
        group *last = &g[*ng - 1];
        if (last->n == NAMES)
            return bad(p, "too many names in one axis");
        last->part[last->n++] = i;
    }
    return open ? bad(p, "parentheses do not match") : true;
}

// Takes the `want` innermost elements of x into out; the rest stays in x.
static bool
take_inner(cps_vaxis *x, int64_t want, cps_vaxis *out)
{
    cps_tdim got[CPS_VIEW_LEVELS + 1];
    int n = 0;
    int64_t need = want;

    while (need > 1) {
        if (x->nl == 0)
            return false;
        cps_tdim *d = &x->l[x->nl - 1];
        if (n == CPS_VIEW_LEVELS)
            return false;
        if (need % d->num == 0) {
            got[n++] = *d;
            need /= d->num;
            x->nl--;
        } else if (d->num % need == 0) {
            got[n++] = (cps_tdim){d->step, need};
            *d = (cps_tdim){d->step * need, d->num / need};
            need = 1;
        } else {
            return false;
        }
    }
    if (n == 0)
        got[n++] = (cps_tdim){1, 1};
    *out = (cps_vaxis){.num = want, .nl = n};
    for (int i = 0; i < n; i++)
        out->l[i] = got[n - 1 - i];
    return true;
}

static bool
split_axis(pattern *p, const cps_view *v, int k)
{
    group *g = &p->left[k];
    const cps_vaxis *x = &v->ax[k];
    bool on_part = v->space != CPS_HBM && k == v->paxis;
    int64_t known = 1;
    int open = -1;

    for (int i = 0; i < g->n; i++) {
        part *q = &p->parts[g->part[i]];
        if (q->size < 0) {
            if (open >= 0)
                return bad(p, cps_arena_printf(p->a, "the sizes of `%s` and `%s` are both open",
                                               p->parts[open].name, q->name));
            open = g->part[i];
        } else {
            known *= CPS_MAX(q->size, 1);
        }
    }
    if (open >= 0 && x->num % known == 0)
        p->parts[open].size = x->num / known;
    else if (open >= 0 || known != x->num)
        return bad(p, cps_arena_printf(p->a, "axis %d has %lld elements, the sizes give %lld",
                                       k, (long long)x->num, (long long)known));
    if (g->n == 1) {
        p->parts[g->part[0]].ax = *x;
        p->parts[g->part[0]].partition = on_part;
        return true;
    }
    if (g->n == 0 && !on_part)
        return true; // a `1`
    if (on_part) {
        *p->e = (cps_view_err){
            .code = CPS_E3105,
            .text = cps_arena_printf(p->a, "the partition axis of `%s` cannot be split",
                                     v->name ? v->name : "the view"),
            .help = "moving data between partitions is a DMA: copy through an hbm tensor"};
        return false;
    }
    cps_vaxis rest = *x;
    for (int i = g->n - 1; i > 0; i--)
        if (!take_inner(&rest, p->parts[g->part[i]].size, &p->parts[g->part[i]].ax))
            return bad(p, "an axis of several strides cannot be split there");
    rest.num = p->parts[g->part[0]].size;
    rest.origin = 0;
    rest.name = NULL;
    if (rest.nl == 0)
        rest.l[rest.nl++] = (cps_tdim){1, 1};
    p->parts[g->part[0]].ax = rest;
    return true;
}

static bool
join_axis(pattern *p, const cps_view *v, int k, cps_view *out)
{
    group *g = &p->right[k];
    cps_vaxis x = {.num = 1};

    if (g->n == 1) {
        out->ax[k] = p->parts[g->part[0]].ax;
        if (p->parts[g->part[0]].partition)
            out->paxis = k;
        return true;
    }
    for (int i = 0; i < g->n; i++) {
        part *q = &p->parts[g->part[i]];
        if (q->partition) {
            *p->e = (cps_view_err){
                .code = CPS_E3105,
                .text = cps_arena_printf(p->a, "the partition axis of `%s` cannot be joined",
                                         v->name ? v->name : "the view"),
                .help = "moving data between partitions is a DMA: copy through an hbm tensor"};
            return false;
        }
        for (int j = 0; j < q->ax.nl; j++) {
            if (x.nl == CPS_VIEW_LEVELS)
                cps_vaxis_tidy(&x);
            if (x.nl == CPS_VIEW_LEVELS)
                return bad(p, "the joined axis would need too many strides");
            x.l[x.nl++] = q->ax.l[j];
        }
        x.num *= q->ax.num;
    }
    if (x.nl == 0)
        x.l[x.nl++] = (cps_tdim){1, 1};
    cps_vaxis_tidy(&x);
    out->ax[k] = x;
    return true;
}

bool
cps_view_reshape(cps_view *out, const cps_view *v, const char *text, int nsize,
                 const char *const *sname, const int64_t *size, cps_arena *a, cps_view_err *e)
{
    pattern p = {.text = text, .a = a, .e = e};
    const char *arrow = strstr(text, "->");

    *out = *v;
    if (!arrow)
        return bad(&p, "no `->`");
    if (v->index)
        return bad(&p, "the index tile goes last");
    if (!read_side(&p, text, arrow, true, p.left, &p.nleft) ||
        !read_side(&p, arrow + 2, text + strlen(text), false, p.right, &p.nright))
        return false;
    if (p.nleft != v->nd)
        return bad(
            &p, cps_arena_printf(a, "the left names %d axes, the view has %d", p.nleft, v->nd));
    for (int i = 0; i < nsize; i++) {
        int k = find(&p, sname[i], strlen(sname[i]));
        if (k < 0)
            return bad(&p, cps_arena_printf(a, "`%s` is not on the left", sname[i]));
        if (size[i] < 1)
            return bad(&p, cps_arena_printf(a, "`%s` has %lld elements", sname[i],
                                            (long long)size[i]));
        p.parts[k].size = size[i];
    }
    for (int i = 0; i < v->nd; i++)
        if (!split_axis(&p, v, i))
            return false;
    for (int i = 0; i < p.nparts; i++)
        if (!p.parts[i].used && p.parts[i].size != 1)
            return bad(&p,
                       cps_arena_printf(a, "`%s` is missing on the right", p.parts[i].name));
    out->nd = p.nright;
    out->paxis = -1;
    for (int i = 0; i < p.nright; i++)
        if (!join_axis(&p, v, i, out))
            return false;
    return out->nd > 0 ? true : bad(&p, "no axis is left");
}

/* Walks over memory: joining, cutting and pairing of dims. A walk never changes which element
 * comes n-th; every function here keeps that. */
#include "codegen/view.h"

void
cps_pat_of(const cps_tview *v, cps_pat *p)
{
    p->nd = 0;
    for (int i = 0; i < v->nd; i++)
        if (v->d[i].num != 1)
            p->d[p->nd++] = v->d[i];
}

int64_t
cps_pat_elems(const cps_pat *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->nd; i++)
        n *= p->d[i].num;
    return n;
}

void
cps_pat_merge(cps_pat *p, int64_t cap)
{
    int n = 0;
    for (int i = 0; i < p->nd; i++) {
        cps_tdim x = p->d[i];
        if (x.num == 1)
            continue;
        if (n > 0) {
            cps_tdim *last = &p->d[n - 1];
            if (last->step == x.step * x.num && last->num <= cap / x.num) {
                *last = (cps_tdim){x.step, last->num * x.num};
                continue;
            }
        }
        p->d[n++] = x;
    }
    p->nd = n;
}

// One dim of length `outer * inner` becomes two.
static bool
cut_dim(cps_pat *p, int i, int64_t inner)
{
    if (p->nd == CPS_PAT_DIMS)
        return false;
    for (int j = p->nd; j > i + 1; j--)
        p->d[j] = p->d[j - 1];
    p->nd++;
    cps_tdim x = p->d[i];
    p->d[i] = (cps_tdim){x.step * inner, x.num / inner};
    p->d[i + 1] = (cps_tdim){x.step, inner};
    return true;
}

static void
drop_units(cps_pat *p)
{
    int n = 0;
    for (int i = 0; i < p->nd; i++)
        if (p->d[i].num != 1)
            p->d[n++] = p->d[i];
    p->nd = n;
}

bool
cps_pat_refine(cps_pat *p, int n, int64_t cap)
{
    int at[CPS_PAT_DIMS]; // dims from here on are already alike
    cps_assert(n <= CPS_PAT_DIMS);
    for (int i = 0; i < n; i++) {
        drop_units(&p[i]);
        at[i] = p[i].nd;
    }
    // From the inside out: the shortest innermost dim cuts the others.
    for (;;) {
        int64_t least = 0;
        bool done = true, open = true;
        for (int i = 0; i < n; i++) {
            if (at[i] == 0) {
                open = false;
                continue;
            }
            done = false;
            int64_t len = p[i].d[at[i] - 1].num;
            if (!least || len < least)
                least = len;
        }
        if (done)
            break;
        if (!open)
            return false;
        for (int i = 0; i < n; i++) {
            int64_t len = p[i].d[at[i] - 1].num;
            if (len % least)
                return false;
            if (len != least) {
                if (!cut_dim(&p[i], at[i] - 1, least))
                    return false;
            } else {
                at[i]--;
            }
        }
    }
    // Join where every walk allows it.
    for (int k = 0; k + 1 < p[0].nd;) {
        bool even = p[0].d[k].num <= cap / p[0].d[k + 1].num;
        for (int i = 0; i < n && even; i++)
            even = p[i].d[k].step == p[i].d[k + 1].step * p[i].d[k + 1].num;
        if (!even) {
            k++;
            continue;
        }
        for (int i = 0; i < n; i++) {
            p[i].d[k] = (cps_tdim){p[i].d[k + 1].step, p[i].d[k].num * p[i].d[k + 1].num};
            for (int j = k + 1; j + 1 < p[i].nd; j++)
                p[i].d[j] = p[i].d[j + 1];
            p[i].nd--;
        }
        if (k > 0)
            k--;
    }
    return true;
}

bool
cps_pat_cut(cps_pat *p, int n, int64_t cap)
{
    for (int k = 0; k < p[0].nd; k++) {
        int64_t len = p[0].d[k].num;
        if (len <= cap)
            continue;
        int64_t inner = 0;
        for (int64_t q = cps_ceil_div(len, cap); q <= cap && !inner; q++)
            if (len % q == 0)
                inner = len / q;
        if (inner < 2)
            return false;
        for (int i = 0; i < n; i++)
            if (!cut_dim(&p[i], k, inner))
                return false;
    }
    return true;
}

bool
cps_pat_into(const cps_pat *p, cps_tview *v)
{
    if (p->nd > CPS_TILE_DIMS)
        return false;
    v->nd = p->nd;
    for (int i = 0; i < p->nd; i++)
        v->d[i] = p->d[i];
    return true;
}

void
cps_pat_span(const cps_pat *p, int64_t *lo, int64_t *hi)
{
    *lo = *hi = 0;
    for (int i = 0; i < p->nd; i++) {
        int64_t far = p->d[i].step * (p->d[i].num - 1);
        if (far < 0)
            *lo += far;
        else
            *hi += far;
    }
}

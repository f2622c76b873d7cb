/* Times of single instructions and transfers in a traced run: what published traces show.
 *
 * A measure is a word and perhaps an instruction's name:
 *   occupy I    its engine is free again (median over all I)
 *   latency I   its result is visible (median)
 *   period I    from one I to the next (median); `pair I`: to the next but one
 *   move in, out        first byte to last byte of the first load, or store
 *   start in, out       its trigger to its first byte
 *   use in              last byte of the first load to the first instruction after it
 *   span                first trigger of a load to the acknowledge of a store */
#include "frontend/validate.h"

#include "codegen/isa/isa.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct gauge {
    const cps_sim *s;
    cps_insn insn;
    bool store;
} gauge;

static bool
next(const gauge *g, unsigned *at, cps_sim_event *e)
{
    for (; *at < cps_sim_events(g->s); ++*at) {
        *e = cps_sim_event_at(g->s, *at);
        if (g->insn ? !e->transfer && cps_isa_find_any(e->insn->b[0]) == g->insn
                    : e->transfer && e->store == g->store) {
            ++*at;
            return true;
        }
    }
    return false;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double
middle(double *v, unsigned n)
{
    if (!n)
        return NAN;
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

static double
length(const gauge *g, bool whole)
{
    cps_sim_event e;
    unsigned n = 0, at = 0;
    double *v = calloc(cps_sim_events(g->s) + 1u, sizeof *v), mid = NAN;
    while (v && next(g, &at, &e))
        v[n++] = (double)((whole ? e.seen : e.end) - e.start);
    if (v)
        mid = middle(v, n);
    free(v);
    return mid;
}

static double
occupy(const gauge *g)
{
    return length(g, false);
}

static double
latency(const gauge *g)
{
    return length(g, true);
}

static double
gap_of(const gauge *g, unsigned apart)
{
    cps_sim_event e;
    unsigned at = 0, n = 0, cap = cps_sim_events(g->s);
    double *gap = calloc(cap + 1, sizeof *gap), mid = NAN;
    while (gap && next(g, &at, &e))
        gap[n++] = (double)e.start;
    for (unsigned k = 0; k + apart < n; k++)
        gap[k] = gap[k + apart] - gap[k];
    if (gap)
        mid = middle(gap, n > apart ? n - apart : 0);
    free(gap);
    return mid;
}

static double
period(const gauge *g)
{
    return gap_of(g, 1);
}

static double
pair(const gauge *g)
{
    return gap_of(g, 2);
}

static double
move(const gauge *g)
{
    cps_sim_event e;
    unsigned at = 0;
    return next(g, &at, &e) ? (double)(e.end - e.start) : NAN;
}

static double
start(const gauge *g)
{
    cps_sim_event e;
    unsigned at = 0;
    return next(g, &at, &e) ? (double)(e.start - e.trigger) : NAN;
}

static double
use(const gauge *g)
{
    cps_sim_event load, e;
    unsigned at = 0;
    if (!next(g, &at, &load))
        return NAN;
    for (unsigned i = 0; i < cps_sim_events(g->s); i++)
        if (e = cps_sim_event_at(g->s, i), !e.transfer && !e.control && e.start >= load.end)
            return (double)(e.start - load.end);
    return NAN;
}

static double
span(const gauge *g)
{
    cps_sim_event e;
    gauge in = {.s = g->s}, out = {.s = g->s, .store = true};
    unsigned at = 0;
    if (!next(&in, &at, &e))
        return NAN;
    double from = (double)e.trigger, to = NAN;
    for (at = 0; next(&out, &at, &e);)
        to = (double)e.seen;
    return to - from;
}

static const struct {
    const char *word;
    double (*of)(const gauge *g);
} measures[] = {{"pair", pair}, {"occupy", occupy}, {"latency", latency}, {"period", period},
                {"move", move}, {"start", start},   {"use", use},         {"span", span}};

double
cps_validate_measure(const cps_sim *s, const char *measure)
{
    size_t n = strcspn(measure, " ");
    const char *what = measure[n] ? measure + n + 1 : "";
    gauge g = {.s = s, .store = !strcmp(what, "out")};
    if (*what && strcmp(what, "in") && strcmp(what, "out")) {
        g.insn = cps_isa_find_name(what);
        if (g.insn == CPS_INSN_NONE)
            return NAN;
    }
    for (unsigned i = 0; i < cps_countof(measures); i++)
        if (strlen(measures[i].word) == n && !strncmp(measures[i].word, measure, n))
            return measures[i].of(&g) / 1e3;
    return NAN;
}

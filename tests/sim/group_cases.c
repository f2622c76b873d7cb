/* The C side of the oracle of exchanges (rows/group.py): runs a kernel on each of several logical cores.
 *
 * Standard input, a line each:
 *   case NAME TARGET RANKS            begins a case
 *   group TABLE RANK...               a replica group of table TABLE, in every kernel
 *   pair TABLE FROM TO                a pair of permutation TABLE
 *   var RANK NAME KIND BYTES [HEX]    an HBM variable: input, output, inout
 *   insn RANK ENGINE TEXT             assembly text
 *   end                               runs it
 * Standard output: "case NAME ok PICOSECONDS", then one line of hex digits per output and inout variable
 * in order; or "case NAME fail CODE text". Exit 2 when the input makes no sense. */
#include "codegen/isa/text.h"
#include "runtime/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, VARS = 64 };

typedef struct var {
    unsigned rank;
    const char *name;
    uint8_t *data;
    size_t bytes;
    bool defined, shown;
} var;

static cps_arena *a;
static cps_diags *d;
static const cps_target *t;
static const char *name;
static cps_kbin *k[RANKS];
static unsigned n, nvars;
static var vars[VARS];
static bool broken;

_Noreturn static void
bad(const char *what)
{
    fprintf(stderr, "group_cases: %s\n", what);
    exit(2);
}

static char *
word(char **at)
{
    char *w = *at + strspn(*at, " "), *end = w + strcspn(w, " ");
    *at = *end ? end + 1 : end;
    *end = 0;
    if (!*w)
        bad("a word is missing");
    return w;
}

static uint32_t
number(char **at)
{
    return (uint32_t)strtoul(word(at), NULL, 0);
}

static unsigned
rank(char **at)
{
    unsigned r = number(at);
    if (r >= n)
        bad("no such rank");
    return r;
}

static void
begin(char *at)
{
    a = cps_arena_create();
    d = cps_diags_create();
    name = cps_arena_strdup(a, word(&at));
    t = cps_target_find(word(&at));
    n = number(&at);
    nvars = 0;
    broken = false;
    if (!t || n < 1 || n > RANKS)
        bad("no such target, or too many ranks");
    for (unsigned r = 0; r < n; r++)
        k[r] = cps_kbin_new(a, "case", t->name, t->gen);
}

static void
add_group(char *at)
{
    uint32_t table = number(&at), first = k[0]->ranks.n, count = 0;
    for (; *at; count++) {
        uint32_t r = number(&at);
        for (unsigned q = 0; q < n; q++)
            cps_vec_push(a, &k[q]->ranks, r);
    }
    for (unsigned q = 0; q < n; q++)
        cps_vec_push(a, &k[q]->groups, ((cps_kgroup){table, first, count}));
}

static void
add_pair(char *at)
{
    uint32_t table = number(&at), from = number(&at), to = number(&at);
    for (unsigned q = 0; q < n; q++)
        cps_vec_push(a, &k[q]->pairs, ((cps_kpair){table, from, to}));
}

static void
add_var(char *at)
{
    static const char *const kinds[] = {
        [CPS_VAR_INPUT] = "input", [CPS_VAR_OUTPUT] = "output", [CPS_VAR_INOUT] = "inout"};
    if (nvars == VARS)
        bad("too many variables");
    var *v = &vars[nvars++];
    *v = (var){.rank = rank(&at)};
    v->name = cps_arena_strdup(a, word(&at));
    const char *kind = word(&at);
    v->bytes = number(&at);
    unsigned c = CPS_VAR_INPUT;
    while (c <= CPS_VAR_INOUT && strcmp(kinds[c], kind))
        c++;
    if (c > CPS_VAR_INOUT)
        bad("no such kind of variable");
    v->defined = c != CPS_VAR_OUTPUT;
    v->shown = c != CPS_VAR_INPUT;
    v->data = cps_arena_alloc(a, v->bytes + 1);
    for (size_t i = 0; i < v->bytes && at[0] && at[1]; i++, at += 2) {
        char two[3] = {at[0], at[1], 0};
        v->data[i] = (uint8_t)strtoul(two, NULL, 16);
    }
    cps_kvar x = {.name = v->name, .kind = (cps_varkind)c, .dtype = CPS_DT_U8, .rank = 1,
                  .dim = {(int64_t)v->bytes}, .bytes = (int64_t)v->bytes};
    cps_vec_push(a, &k[v->rank]->vars, x);
}

static void
add_insn(char *at)
{
    unsigned r = rank(&at);
    cps_engine e = cps_engine_parse(word(&at));
    cps_buf b = {0};
    if ((unsigned)e >= CPS_ENGINES)
        bad("no such engine");
    if (!cps_isa_parse(at, strlen(at), 0, t->gen, d, &b))
        broken = true;
    for (size_t i = 0; i + CPS_BUNDLE_BYTES <= b.n; i += CPS_BUNDLE_BYTES) {
        cps_bundle x;
        memcpy(x.b, b.data + i, CPS_BUNDLE_BYTES);
        cps_vec_push(a, &k[r]->stream[e].code, x);
    }
    cps_buf_fini(&b);
}

static void
run(void)
{
    cps_sim_group *g = cps_sim_group_create(t, n);
    cps_sim_opts o = {.checks = CPS_CHECK_ALL, .max_steps = 1000000};
    bool ok = !broken && cps_sim_group_load(g, (const cps_kbin *const *)k, d);
    for (unsigned i = 0; ok && i < nvars; i++)
        ok = cps_sim_group_bind(g, vars[i].rank, vars[i].name, vars[i].data, vars[i].bytes,
                                vars[i].defined, d);
    if (ok && cps_sim_group_run(g, &o, NULL, d)) {
        printf("case %s ok %lld\n", name, (long long)cps_sim_group_time_ps(g));
        for (unsigned i = 0; i < nvars; i++) {
            for (size_t q = 0; vars[i].shown && q < vars[i].bytes; q++)
                printf("%02x", vars[i].data[q]);
            if (vars[i].shown)
                printf("\n");
        }
    } else {
        cps_buf b = {0};
        cps_diags_render(d, &b, false);
        for (size_t i = 0; i < b.n; i++)
            if (b.data[i] == '\n')
                b.data[i] = ' ';
        printf("case %s fail %s %.*s\n", name,
               cps_diags_count(d) ? cps_diag_rows[cps_diags_code(d, 0)].name : "-", (int)b.n,
               b.data ? b.data : "");
        cps_buf_fini(&b);
    }
    cps_sim_group_destroy(g);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    a = NULL;
}

int
main(void)
{
    static const struct {
        const char *word;
        void (*act)(char *at);
    } acts[] = {{"group", add_group}, {"pair", add_pair}, {"var", add_var}, {"insn", add_insn}};
    char *line = NULL;
    size_t cap = 0;
    ssize_t got;
    while ((got = getline(&line, &cap, stdin)) > 0) {
        line[got - (line[got - 1] == '\n')] = 0;
        char *at = line, *w = word(&at);
        if (!strcmp(w, "case") && !a) {
            begin(at);
            continue;
        }
        if (!a)
            bad("no case");
        if (!strcmp(w, "end")) {
            run();
            continue;
        }
        unsigned i = 0;
        while (i < cps_countof(acts) && strcmp(acts[i].word, w))
            i++;
        if (i == cps_countof(acts))
            bad("no such line");
        acts[i].act(at);
    }
    free(line);
    return 0;
}

/* The runner: passes of a stage in the order of pass.def, each followed by the verifier when
 * asked and by the caller's hook. A module that a pass leaves broken is our bug, and is said to
 * be. */
#include "lower/lower.h"
#include "lower/pass.h"

typedef enum stage { PREPARE, SELECT } stage;

typedef struct pass_row {
    stage stage;
    const char *name;
    bool (*run)(cps_lower *l, cps_module *m);
} pass_row;

static const pass_row passes[] = {
#define CPS_LOWER_PASS(stage, name, fn, doc) {stage, name, fn},
#include "lower/pass.def"
};

unsigned
cps_lower_rows(const cps_lower_row **rows)
{
    static const cps_lower_row pub[] = {
#define CPS_LOWER_PASS(stage, name, fn, doc) {#stage, name, doc},
#include "lower/pass.def"
    };
    *rows = pub;
    return cps_countof(pub);
}

bool
cps_lower_rewrite(cps_lower *l, cps_module *m, cps_rw_rule rule, unsigned *changes)
{
    unsigned all = 0;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        unsigned n;
        if (!cps_rewrite(m, m->funcs.data[i], rule, l, l->d, &n))
            return false;
        all += n;
    }
    if (changes)
        *changes = all;
    return true;
}

static bool
run_one(cps_lower *l, cps_module *m, const pass_row *p)
{
    if (!p->run(l, m))
        return false;
    if (l->o->verify_each) {
        cps_diags *d = cps_diags_create();
        if (!cps_ir_verify(m, d))
            cps_bug("pass '%s' left a broken graph: %s", p->name, cps_diags_text(d, 0));
        cps_diags_destroy(d);
    }
    return !l->o->after || l->o->after(l->o->ctx, p->name, m, l->d);
}

static const pass_row *
find(stage s, const char *name, size_t n, bool *known)
{
    const pass_row *hit = NULL;
    for (size_t i = 0; i < cps_countof(passes); i++)
        if (strlen(passes[i].name) == n && memcmp(passes[i].name, name, n) == 0) {
            *known = true;
            if (passes[i].stage == s)
                hit = &passes[i];
        }
    return hit;
}

// The names of the option's list that belong to the stage, in the list's order. A pass of both
// stages (canon) runs in the one whose passes stand around it.
static bool
run_list(cps_lower *l, cps_module *m, stage s, const char *list)
{
    stage now = PREPARE;
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        bool in[2] = {false, false}, known = false;
        const pass_row *row[2];
        for (int k = 0; k < 2; k++)
            in[k] = (row[k] = find((stage)k, p, n, &known)) != NULL;
        if (!known) {
            cps_error(l->d, CPS_E7401, CPS_NOSPAN, "no pass is called '%.*s'", (int)n, p);
            cps_buf b = {0};
            for (size_t i = 0; i < cps_countof(passes); i++)
                if (!b.n || !strstr(b.data, passes[i].name))
                    cps_buf_printf(&b, "%s%s", b.n ? ", " : "", passes[i].name);
            cps_help(l->d, "the passes are %s", b.data);
            cps_buf_fini(&b);
            return false;
        }
        if (in[PREPARE] != in[SELECT])
            now = in[SELECT] ? SELECT : PREPARE;
        if (now == s && row[s] && !run_one(l, m, row[s]))
            return false;
        p += n + (p[n] == ',');
    }
    return true;
}

static bool
run_stage(cps_module *m, const cps_lower_opts *o, cps_diags *d, stage s)
{
    cps_lower l = {.o = o, .d = d, .quiet = cps_diags_create(), .arena = cps_arena_create()};
    cps_map_init(&l.banned, l.arena);
    cps_map_init(&l.missing, l.arena);
    cps_map_init(&l.inexact, l.arena);
    bool ok = true;
    if (o->passes)
        ok = run_list(&l, m, s, o->passes);
    else
        for (size_t i = 0; ok && i < cps_countof(passes); i++)
            if (passes[i].stage == s)
                ok = run_one(&l, m, &passes[i]);
    if (ok && s == PREPARE)
        cps_lower_drop_constants(m);
    cps_diags_destroy(l.quiet);
    cps_arena_destroy(l.arena);
    return ok;
}

bool
cps_lower_prepare(cps_module *m, const cps_lower_opts *o, cps_diags *d)
{
    return run_stage(m, o, d, PREPARE);
}

bool
cps_lower_select(cps_module *m, const cps_lower_opts *o, cps_diags *d)
{
    cps_assert(o->registry && o->target);
    return run_stage(m, o, d, SELECT);
}

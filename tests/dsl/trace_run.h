/* Tracing from a text: a file with one op and one leaf, dims given by the operands' types. */
#ifndef CPS_TESTS_TRACE_RUN_H
#define CPS_TESTS_TRACE_RUN_H

#include "frontend/dsl/instance.h"
#include "frontend/dsl/trace.h"
#include "tests/check.h"

#include <stdlib.h>

typedef struct trace_run {
    cps_arena *arena;
    cps_diags *d;
    cps_dsl_set *set;
    cps_instance inst;
    cps_candidate cand;
    cps_tfunc *f; /* NULL after errors */
} trace_run;

static inline bool
trace_no_files(void *user, const char *path, const char **text, size_t *n)
{
    (void)user, (void)path, (void)text, (void)n;
    return false;
}

/* "x bf16[129,257] w bf16[257,513]'": operands in order, `-` for an absent one, `'` for storage
 * with the last two axes swapped; after `;` attributes as name=value. */
static inline bool
trace_operands(trace_run *r, const char *s)
{
    char word[128];
    bool attrs = false;
    while (*s) {
        size_t n = 0;
        while (*s == ' ')
            s++;
        while (*s && *s != ' ' && n + 1 < sizeof(word))
            word[n++] = *s++;
        word[n] = 0;
        if (!n)
            break;
        if (!strcmp(word, ";")) {
            attrs = true;
            continue;
        }
        if (attrs) {
            char *eq = strchr(word, '=');
            cps_attr x = {.key = cps_arena_strndup(r->arena, word, (size_t)(eq - word))};
            int64_t i;
            if (cps_parse_int(eq + 1, strlen(eq + 1), &i)) {
                x.kind = CPS_A_INT;
                x.i = i;
            } else if (cps_parse_double(eq + 1, strlen(eq + 1), &x.f)) {
                x.kind = CPS_A_FLOAT;
            } else if (!strcmp(eq + 1, "true") || !strcmp(eq + 1, "false")) {
                x.kind = CPS_A_BOOL;
                x.i = eq[1] == 't';
            } else {
                x.kind = CPS_A_STR;
                x.s = cps_arena_strdup(r->arena, eq + 1);
            }
            cps_attr_put(r->arena, &r->inst.attr, &r->inst.nattr, x);
            continue;
        }
        cps_operand *o = &r->inst.operand[r->inst.noperands++];
        if (!strcmp(word, "-"))
            continue;
        char *b = strchr(word, '[');
        o->present = true;
        o->type.dtype = cps_dtype_parse(word, (size_t)(b - word));
        o->order = word[n - 1] == '\'';
        for (char *p = b; *p == '[' || *p == ',';)
            o->type.dim[o->type.rank++] = strtoll(p + 1, &p, 10);
    }
    return true;
}

static inline trace_run
trace_open(const char *name, const char *text, cps_dsl_reader read, cps_dsl_finder find,
           void *user)
{
    trace_run r = {.arena = cps_arena_create(), .d = cps_diags_create()};
    r.set = cps_dsl_set_create(r.d, read ? read : trace_no_files, user);
    r.set->find = find;
    if (text)
        cps_dsl_load_text(r.set, name, text, strlen(text));
    else
        cps_dsl_load(r.set, name);
    cps_dsl_set_check(r.set);
    return r;
}

/* Traces the only (or named) leaf; core 0 of `cores`. */
static inline void
trace_leaf(trace_run *r, const char *leaf, const char *target, const char *operands, int cores,
           int64_t steps)
{
    const cps_dsl_leaf *l = leaf               ? cps_dsl_find_leaf(r->set, leaf)
                            : r->set->leaves.n ? r->set->leaves.data[0]
                                               : NULL;
    if (!l || cps_diags_errors(r->d))
        return;
    const cps_dsl_op *op = cps_dsl_find_op(r->set, l->ast->op.text);
    r->inst = (cps_instance){
        .op = op->ast->name.text, .target = cps_target_find(target), .cores = cores};
    trace_operands(r, operands);
    if (!cps_dsl_infer(r->set, r->arena, op, &r->inst, r->d) ||
        !cps_dsl_candidate(r->set, r->arena, l, &r->inst, NULL, 0, &r->cand, r->d))
        return;
    cps_trace_opts o = {.set = r->set,
                        .leaf = l,
                        .op = op,
                        .inst = &r->inst,
                        .nconfig = r->cand.nconfig,
                        .config = r->cand.config,
                        .step_limit = steps};
    r->f = cps_dsl_trace(r->arena, &o, r->d);
    if (r->f && !cps_tile_verify(r->f, r->inst.target, r->d))
        r->f = NULL;
}

static inline void
trace_close(trace_run *r)
{
    cps_dsl_set_destroy(r->set);
    cps_diags_destroy(r->d);
    cps_arena_destroy(r->arena);
}

#endif

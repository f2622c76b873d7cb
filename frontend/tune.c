/* See tune.h. First every admitted combination of leaf and parameters is compiled and timed,
 * without data; then the fastest of each call, if it is not what would be taken anyway, is
 * proved, run with data and every check, and compared with the reference. Both are jobs for
 * workers; what is decided is decided here, in the order of the combinations, from times that
 * are the same on every machine. */
#include "frontend/tune.h"

#include "frontend/compile.h"
#include "frontend/execute.h"
#include "frontend/timed.h"
#include "frontend/workers.h"
#include "kernels/tuned.h"

#include <stdio.h>
#include <string.h>

enum { WHY = 240, WORTH = 200 }; // a line in the file: one part in so many

// A combination to be timed.
typedef struct trial {
    unsigned call;
    cps_candidate cand;
} trial;

// What a worker finds out.
typedef struct found {
    int64_t ps; // 0: does not compile, or does not run
} found;

typedef struct checked {
    bool pass;
    double max_rel;
    char why[WHY];
} checked;

typedef struct tune {
    cps_cli *c;
    const cps_tune_opts *o;
    cps_tune_call *call;
    unsigned n;
    CPS_VEC(trial) trials;
    found *found;             // shared; as many as trials
    unsigned *winner;         // per call: index into trials
    CPS_VEC(unsigned) verify; // calls whose winner is new
    checked *checked;         // shared; as many as `verify`
} tune;

/* ---- what there is to try ---- */

static bool
same_config(const cps_candidate *a, const cps_candidate *b)
{
    cps_buf x = {0}, y = {0};
    cps_config_print(a, &x);
    cps_config_print(b, &y);
    bool same =
        !strcmp(a->leaf, b->leaf) && x.n == y.n && (!x.n || !memcmp(x.data, y.data, x.n));
    cps_buf_fini(&x);
    cps_buf_fini(&y);
    return same;
}

/* The admitted combinations of one leaf, in the order of its sets, the last parameter fastest.
 */
static void
add_leaf(tune *t, unsigned at, const char *leaf)
{
    cps_registry *r = cps_cli_registry(t->c);
    cps_tune_call *call = &t->call[at];
    cps_arena *a = t->c->arena;
    cps_param *p;
    uint32_t np;
    if (!r->params(r->self, a, call->inst, leaf, &p, &np))
        return;
    uint32_t *choice = cps_new_array(a, uint32_t, np + 1);
    for (bool more = true; more;) {
        cps_attr *fixed = NULL;
        uint16_t nfixed = 0;
        trial x = {.call = at};
        for (uint32_t k = 0; k < np; k++)
            cps_attr_put(a, &fixed, &nfixed, p[k].value[choice[k]]);
        if (r->candidate(r->self, a, call->inst, leaf, fixed, nfixed, &x.cand, t->c->diags) &&
            x.cand.ok && !same_config(&x.cand, &call->before)) {
            if (call->tried < t->o->tries) {
                cps_vec_push(a, &t->trials, x);
                call->tried++;
            } else {
                call->cut++;
            }
        }
        more = false;
        for (uint32_t k = np; k > 0 && !more; k--) {
            more = ++choice[k - 1] < p[k - 1].n;
            if (!more)
                choice[k - 1] = 0;
        }
    }
}

static bool
add_call(tune *t, unsigned at)
{
    cps_tune_call *call = &t->call[at];
    cps_candidate *cand;
    unsigned n;
    const char *why;
    int k = cps_choose(t->c, call->inst, t->o->leaf, &cand, &n, &why);
    if (k < 0)
        return false;
    call->before = call->best = cand[k];
    call->tried = 1;
    cps_vec_push(t->c->arena, &t->trials, ((trial){.call = at, .cand = cand[k]}));
    // A leaf that refuses its defaults may take other values, so all of them are walked.
    for (unsigned q = 0; q < n; q++)
        if (!t->o->leaf || !strcmp(cand[q].leaf, t->o->leaf))
            add_leaf(t, at, cand[q].leaf);
    return true;
}

/* ---- times ---- */

static void
time_trial(void *ctx, unsigned i)
{
    tune *t = ctx;
    const trial *x = &t->trials.data[i];
    const cps_instance *inst = t->call[x->call].inst;
    cps_arena *a = cps_arena_create();
    const cps_kbin *bin = cps_compile_trial(t->c, a, inst, &x->cand, NULL);
    cps_timed run = {0};
    if (bin && cps_timed_run(inst->target, bin, false, &run, t->c->diags))
        t->found[i].ps = run.time_ps;
    cps_timed_close(&run);
    cps_arena_destroy(a);
    cps_diags_clear(t->c->diags);
}

static bool
decide(tune *t)
{
    t->winner = cps_new_array(t->c->arena, unsigned, t->n);
    for (unsigned k = 0; k < t->n; k++)
        t->winner[k] = UINT32_MAX;
    for (unsigned i = 0; i < t->trials.n; i++) {
        const trial *x = &t->trials.data[i];
        cps_tune_call *call = &t->call[x->call];
        unsigned *w = &t->winner[x->call];
        if (t->found[i].ps <= 0) {
            if (*w != UINT32_MAX)
                continue;
            // The first one is what would be taken: its own messages say what is wrong with it.
            cps_timed run = {0};
            const cps_kbin *bin =
                cps_compile_trial(t->c, t->c->arena, call->inst, &x->cand, NULL);
            if (bin)
                cps_timed_run(call->inst->target, bin, false, &run, t->c->diags);
            cps_timed_close(&run);
            return false;
        }
        call->fits++;
        if (*w == UINT32_MAX)
            call->ns_before = (t->found[i].ps + 500) / 1000;
        if (*w == UINT32_MAX || t->found[i].ps < t->found[*w].ps)
            *w = i;
    }
    for (unsigned k = 0; k < t->n; k++) {
        const trial *x = &t->trials.data[t->winner[k]];
        t->call[k].best = x->cand;
        t->call[k].ns_best = (t->found[t->winner[k]].ps + 500) / 1000;
        if ((t->call[k].ns_before - t->call[k].ns_best) * WORTH >= t->call[k].ns_before)
            cps_vec_push(t->c->arena, &t->verify, k);
        else
            t->call[k].best = t->call[k].before;
    }
    return true;
}

/* ---- checks ---- */

static bool
run_checked(cps_cli *c, const cps_tune_call *call, checked *out)
{
    cps_registry *r = cps_cli_registry(c);
    const cps_instance *inst = call->inst;
    cps_module *m = cps_module_new(c->arena, inst->op);
    cps_func *body = r->body(r->self, m, inst, c->diags);
    cps_io in[CPS_MAX_OPERANDS] = {0}, got[CPS_MAX_OPERANDS] = {0}, ref[CPS_MAX_OPERANDS] = {0};
    int64_t bound[CPS_MAX_OPERANDS];
    unsigned nin = 0, nout = (unsigned)inst->nresults;
    cps_report rep = {.launches = 1};
    cps_errs err = CPS_ERRS_START;
    cps_compiled bin;
    if (!body)
        return false;
    for (int k = 0; k < inst->noperands; k++)
        if (inst->operand[k].present) {
            in[nin] = (cps_io){.name = inst->operand[k].name, .type = inst->operand[k].type};
            bound[nin] = cps_index_bound(body, body->inputs.data[nin]);
            nin++;
        }
    for (unsigned k = 0; k < nout; k++)
        got[k] = ref[k] = (cps_io){.name = inst->result[k].name, .type = inst->result[k].type};
    if (!cps_io_inputs(c, in, nin, bound) ||
        !cps_compile_kernel(c, c->arena, inst, &call->best, &bin) ||
        !cps_execute_kernel(c, inst, bin.kbin, in, nin, got, nout, CPS_CHECK_ALL, &rep) ||
        !cps_execute_ref(c, m, body, in, nin, ref, nout, false))
        return false;
    for (unsigned k = 0; k < nout; k++)
        cps_compare(got[k].name, cps_io_values(c->arena, &got[k]), ref[k].exact,
                    cps_type_count(&got[k].type), call->best.rtol, call->best.atol, &err);
    out->max_rel = err.max_rel;
    if (!err.pass)
        snprintf(out->why, WHY, "output '%s' differs from the reference: max rel %.3g",
                 err.worst, err.max_rel);
    return err.pass;
}

/* A worker has its own copy of the command's memory, which a check may fill: it goes with the
 * worker. */
static void
check_winner(void *ctx, unsigned i)
{
    tune *t = ctx;
    checked *out = &t->checked[i];
    cps_vec_push(t->c->arena, &t->c->opt[CPS_OPT_THREADS], "1"); // -j is for workers
    out->pass = run_checked(t->c, &t->call[t->verify.data[i]], out);
    if (!out->pass && !out->why[0])
        for (unsigned k = 0; k < cps_diags_count(t->c->diags) && !out->why[0]; k++)
            if (cps_diag_rows[cps_diags_code(t->c->diags, k)].name[0] == 'E')
                snprintf(out->why, WHY, "%s [%s]", cps_diags_text(t->c->diags, k),
                         cps_diag_rows[cps_diags_code(t->c->diags, k)].name);
    cps_diags_clear(t->c->diags);
}

static void
verdicts(tune *t)
{
    for (unsigned i = 0; i < t->verify.n; i++) {
        cps_tune_call *call = &t->call[t->verify.data[i]];
        const checked *x = &t->checked[i];
        call->max_rel = x->max_rel;
        call->faster = x->pass;
        call->failed = !x->pass;
        call->why = cps_arena_strdup(t->c->arena, x->why);
    }
}

static bool
shared_out(tune *t, const char *what, unsigned n, void (*job)(void *ctx, unsigned i))
{
    cps_work w = {.workers = t->o->workers, .n = n, .job = job, .ctx = t, .what = what};
    if (cps_work_run(&w))
        return true;
    cps_error(t->c->diags, CPS_E1117, CPS_NOSPAN,
              "a worker ended before its work was done (%s, %u in all)", what, n);
    return false;
}

bool
cps_tune(cps_cli *c, const cps_tune_opts *o, cps_tune_call *call, unsigned n)
{
    tune t = {.c = c, .o = o, .call = call, .n = n};
    bool ok = true;
    for (unsigned k = 0; ok && k < n; k++)
        ok = add_call(&t, k);
    if (!ok)
        return false;
    cps_cli_flush(c); // workers begin with none of it
    size_t bytes = t.trials.n * sizeof *t.found;
    t.found = cps_shared(bytes);
    ok = shared_out(&t, "timing", t.trials.n, time_trial) && decide(&t);
    cps_shared_free(t.found, bytes);
    if (!ok)
        return false;
    bytes = t.verify.n * sizeof *t.checked;
    t.checked = cps_shared(bytes);
    ok = shared_out(&t, "checking", t.verify.n, check_winner);
    if (ok)
        verdicts(&t);
    cps_shared_free(t.checked, bytes);
    return ok;
}

/* copse explain: why each leaf was chosen, of a model or of one operator; and with --cycles
 * where the simulated time of each kernel goes and what would help. */
#include "frontend/account.h"
#include "frontend/block.h"
#include "frontend/call.h"
#include "frontend/compile.h"
#include "frontend/execute.h"
#include "frontend/model.h"
#include "frontend/neff.h"
#include "frontend/report.h"
#include "frontend/slots.h"
#include "frontend/variants.h"
#include "kernels/tuned.h"
#include "runtime/pkg/package_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Accounts of kernels on their way out. */
typedef struct pages {
    cps_cli *c;
    bool json;
    cps_buf out;
    cps_jsonw w;
    const char *only; /* --kernel, or NULL */
    bool found;
} pages;

static void
begin(cps_cli *c, pages *p)
{
    *p = (pages){.c = c,
                 .json = cps_cli_has(c, CPS_OPT_JSON),
                 .only = cps_cli_str(c, CPS_OPT_KERNEL, NULL)};
    cps_jsonw_init(&p->w, &p->out);
    if (!p->json)
        return;
    cps_jsonw_obj(&p->w, false);
    cps_jsonw_key(&p->w, "kernels");
    cps_jsonw_arr(&p->w, false);
}

/* Prints what was gathered when ok, and frees. */
static bool
end(pages *p, bool ok)
{
    if (ok && p->only && !p->found) {
        cps_error(p->c->diags, CPS_E1105, CPS_NOSPAN, "there is no kernel '%s'", p->only);
        ok = false;
    }
    if (p->json) {
        cps_jsonw_end_arr(&p->w);
        cps_jsonw_end_obj(&p->w);
        cps_jsonw_done(&p->w);
    }
    if (ok && p->out.n)
        fwrite(p->out.data, 1, p->out.n, stdout);
    cps_buf_fini(&p->out);
    return ok;
}

/* Whether the kernel of that name is asked for. */
static bool
wanted(pages *p, const char *kernel)
{
    bool yes = !p->only || !strcmp(p->only, kernel);
    p->found |= yes;
    return yes;
}

/* A kernel that was made here: what it was chosen from. */
typedef struct origin {
    const cps_instance *inst;
    const cps_candidate *cand;
    unsigned n, at;
} origin;

/* What compiling the kernel otherwise would gain: one more buffer, another leaf or parameter.
 */
static void
add_trials(cps_cli *c, cps_account *a, const origin *o)
{
    const int64_t base = a->timed.time_ps;
    cps_slots s;
    cps_variant v;
    if (cps_slots_try(c, o->inst, &o->cand[o->at], base, &s)) {
        cps_change x = {.run = "compiled so and simulated",
                        .saves_ps = s.saves_ps,
                        .file = s.file,
                        .line = s.line,
                        .share = 1};
        x.action =
            s.others ? cps_arena_printf(c->arena, "one more buffer for each of %s", s.all)
                     : cps_arena_printf(c->arena, "one more buffer for '%s': `bufs %u`, not %u",
                                        s.name, s.has + 1, s.has);
        cps_account_add(a, &x);
    }
    if (cps_variant_try(c, o->inst, o->cand, o->n, o->at, base, &v)) {
        cps_change x = {.run = "compiled so and simulated", .saves_ps = v.saves_ps};
        x.action =
            *v.step ? cps_arena_printf(
                          c->arena, "parameter %s of the leaf; `copse tune` tries all", v.step)
                    : cps_arena_printf(c->arena, "leaf %s instead; `copse tune` tries all",
                                       v.cand.leaf);
        cps_account_add(a, &x);
    }
}

/* The account of a binary; `o` is NULL when only that is known. */
static bool
add(pages *p, cps_account *a, const cps_kbin *bin, const origin *o)
{
    bool ok = cps_timed_run(a->target, bin, true, &a->timed, p->c->diags);
    a->has_leaf = o != NULL;
    if (ok) {
        cps_account_hints(a);
        if (o)
            add_trials(p->c, a, o);
        if (p->json) {
            cps_account_json(a, &p->w);
        } else {
            cps_buf_puts(&p->out, p->out.n ? "\n" : "");
            cps_account_text(a, &p->out);
        }
    }
    cps_timed_close(&a->timed);
    return ok;
}

/* The account of a call of a model as decided there (`pick`), or of an operator (`leaf`: that
 * one; NULL: the one chosen). */
static bool
add_call(pages *p, const char *name, const cps_instance *inst, const char *leaf,
         const cps_decision *pick)
{
    cps_cli *c = p->c;
    cps_candidate *cand;
    const char *why;
    unsigned n;
    cps_compiled bin;
    cps_account a = {.kernel = name, .target = inst->target, .has_roof = true};
    int k = cps_choose(c, inst, pick ? pick->leaf : leaf, &cand, &n, &why);
    if (k >= 0)
        cps_take_decision(c->arena, &cand[k], pick);
    if (k < 0 || (!pick && !cps_cli_pin(c, inst, &cand[k])) ||
        !cps_roof_of(cps_cli_registry(c), c->arena, inst, &a.roof, c->diags) ||
        !cps_compile_kernel(c, c->arena, inst, &cand[k], &bin))
        return false;
    cps_buf b = {0};
    cps_instance_print(inst, &b);
    a.call = cps_arena_strdup(c->arena, b.data);
    b.n = 0;
    cps_config_print(&cand[k], &b);
    a.config = cps_arena_strndup(c->arena, b.data, b.n);
    cps_buf_fini(&b);
    a.leaf = cand[k].leaf;
    a.why = pick && pick->why ? pick->why : why;
    if (!name)
        a.kernel = a.leaf;
    return add(p, &a, bin.kbin, &(origin){inst, cand, n, (unsigned)k});
}

/* ---- compiled packages ---- */

static bool
add_package(pages *p, const cps_package *pk)
{
    const cps_target *t = cps_package_target(p->c, pk);
    bool ok = t != NULL;
    for (uint32_t i = 0; ok && i < pk->kernels.n; i++) {
        const cps_pkernel *k = &pk->kernels.data[i];
        cps_account a = {.kernel = k->name,
                         .leaf = k->leaf,
                         .why = k->why,
                         .call = k->instance,
                         .config = k->config,
                         .target = t,
                         .has_roof = true};
        a.roof = (cps_roof){.flops = k->flops,
                            .bytes = k->bytes,
                            .roofline_ns = (double)k->roofline_ns,
                            .engines_ns = (double)k->engines_ns,
                            .bound = k->bound};
        if (wanted(p, k->name))
            ok = add(p, &a, k->kbin, NULL);
    }
    return ok;
}

/* A kernel's folder alone: its mathematics is not known. */
static bool
add_folder(pages *p, const char *path)
{
    const cps_kbin *k = cps_kbin_read(p->c->arena, path, p->c->diags);
    bool ok = k != NULL;
    const cps_target *t = k ? cps_target_find(k->target) : NULL;
    if (k && !t)
        t = cps_cli_target(p->c, &ok);
    if (ok && (!t || strcmp(t->name, k->target))) {
        cps_error(p->c->diags, CPS_E8003, CPS_NOSPAN, "the kernel was compiled for '%s'",
                  k->target);
        cps_help(p->c->diags, "give its description with --target");
        ok = false;
    }
    cps_account a = {.kernel = ok ? k->name : "",
                     .leaf = "",
                     .why = "",
                     .call = "",
                     .config = "",
                     .target = t};
    return ok && wanted(p, a.kernel) && add(p, &a, k, NULL);
}

static cps_exit
explain_binary(cps_cli *c, const char *path, bool folder)
{
    bool ok = cps_cli_has(c, CPS_OPT_CYCLES);
    if (!ok) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                  "in a package all is decided; '--cycles' says where its time goes");
        return CPS_USAGE;
    }
    pages p;
    begin(c, &p);
    if (folder && !cps_path_exists(cps_path_join(c->arena, path, "manifest.json"))) {
        ok = add_folder(&p, path);
    } else {
        const cps_package *pk = folder ? cps_package_read(c->arena, path, cps_cli_has(c, CPS_OPT_CHANGED), c->diags)
                                       : cps_neff_open_package(c, path);
        ok = pk && add_package(&p, pk);
    }
    return end(&p, ok) ? CPS_OK : cps_cli_failed(c);
}

/* ---- one operator ---- */

static void
print_candidates(const cps_instance *inst, const cps_candidate *cand, unsigned n, int taken,
                 const char *why)
{
    cps_buf b = {0};
    cps_instance_print(inst, &b);
    cps_buf_putc(&b, '\n');
    for (unsigned k = 0; k < n; k++) {
        const cps_candidate *x = &cand[k];
        for (int r = 0; !x->ok && r < x->nreasons; r++)
            cps_buf_printf(&b, "  x %s: %s\n", x->leaf, x->reason[r]);
        if (!x->ok)
            continue;
        cps_buf_printf(&b, "  %c %s: %" PRId64 " ns, bound by %s", (int)k == taken ? '*' : '-',
                       x->leaf, x->cost_ns, x->bound);
        cps_buf_puts(&b, x->nconfig ? " with " : "");
        cps_config_print(x, &b);
        cps_buf_printf(&b, (int)k == taken ? " (%s)\n" : "\n", why);
    }
    fwrite(b.data, 1, b.n, stdout);
    cps_buf_fini(&b);
}

static cps_exit
explain_op(cps_cli *c, const char *op, const cps_target *t)
{
    cps_instance inst;
    const char *leaf = cps_cli_str(c, CPS_OPT_LEAF, NULL);
    if (!cps_cli_call(c, op, t, &inst))
        return cps_cli_failed(c);
    if (!cps_cli_has(c, CPS_OPT_CYCLES)) {
        cps_candidate *cand;
        const char *why;
        unsigned n;
        if (cps_is_block(c, op) || cps_cli_has(c, CPS_OPT_JSON)) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                      "without '--cycles' one operator with leaves is explained as text");
            return CPS_USAGE;
        }
        int k = cps_choose(c, &inst, leaf, &cand, &n, &why);
        if (k < 0 || !cps_cli_pin(c, &inst, &cand[k]))
            return cps_cli_failed(c);
        print_candidates(&inst, cand, n, k, why);
        return CPS_OK;
    }
    pages p;
    bool ok;
    begin(c, &p);
    if (cps_is_block(c, op)) {
        cps_module *ref;
        unsigned hits = 0, misses = 0;
        const cps_package *pk = cps_block_package(c, &inst, &ref, &hits, &misses);
        ok = pk && add_package(&p, pk);
    } else {
        ok = add_call(&p, NULL, &inst, leaf, NULL);
        p.found = true;
    }
    return end(&p, ok) ? CPS_OK : cps_cli_failed(c);
}

/* ---- models ---- */

/* The simulated cycles of each step, from the same choice of leaves. */
static bool
print_steps(cps_cli *c, cps_model *m, const cps_target *t)
{
    unsigned hits = 0, misses = 0;
    cps_package *p = cps_model_compile(c, m, t, &hits, &misses);
    if (!p)
        return false;
    cps_package_plan(p);
    cps_io *in, *out;
    cps_package_io(c, p, &in, &out);
    cps_report rep = {.on = "sim"};
    cps_report *each = cps_new_array(c->arena, cps_report, p->steps.n + 1);
    if (!cps_io_inputs(c, in, p->inputs.n, cps_package_bounds(c, p)) ||
        !cps_execute_package(c, p, "sim", in, out, 0, &rep, each))
        return false;
    printf("\n%-32s%10s%10s%10s%10s%10s%12s%8s\n", "cycles by step", "pe", "act", "pool", "dve",
           "sp", "time us", "roof");
    for (uint32_t i = 0; i < p->steps.n; i++) {
        if (!each[i].launches)
            continue;
        printf("%-32s", each[i].kernel);
        for (int e = 0; e < CPS_ENGINES; e++)
            printf("%10lld", (long long)each[i].sim.cycles[e]);
        double ns = (double)each[i].sim.time_ps / 1e3;
        printf("%12.3f%7.1f%%\n", ns / 1e3, ns > 0 ? 100 * each[i].roof.roofline_ns / ns : 0);
    }
    return true;
}

static cps_exit
explain_model(cps_cli *c, const char *path, const cps_target *t)
{
    cps_model m;
    cps_buf b = {0};
    bool json = cps_cli_has(c, CPS_OPT_JSON), cycles = cps_cli_has(c, CPS_OPT_CYCLES);
    bool account = cycles && (json || cps_cli_has(c, CPS_OPT_KERNEL));
    bool ok = cps_model_read(c, path, &m);
    if (ok && account) {
        cps_call *call;
        unsigned n;
        pages p;
        begin(c, &p);
        ok = cps_model_calls(c, &m, t, &call, &n);
        for (unsigned k = 0; ok && k < n; k++)
            if (wanted(&p, call[k].name))
                ok = add_call(&p, call[k].name, &call[k].inst, NULL, call[k].pick);
        ok = end(&p, ok);
    } else if (ok) {
        ok = cps_model_explain(c, &m, t, json, &b);
        if (ok)
            fwrite(b.data ? b.data : "", 1, b.n, stdout);
        if (ok && cycles) {
            ok = print_steps(c, &m, t);
            printf("\n`--kernel NAME` says where the time of one of them goes and what would "
                   "help\n");
        }
    }
    cps_buf_fini(&b);
    cps_exit code = ok ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_model_close(&m);
    return code;
}

cps_exit
cps_cmd_explain(cps_cli *c)
{
    struct stat st;
    if (c->args.n != 1) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN,
                  "'explain' takes one model, package, kernel folder or operator");
        return CPS_USAGE;
    }
    const char *what = c->args.data[0];
    bool exists = stat(what, &st) == 0, folder = exists && S_ISDIR(st.st_mode), ok = true;
    if (folder || cps_has_suffix(what, ".neff"))
        return explain_binary(c, what, folder);
    const cps_target *t = cps_cli_target(c, &ok);
    if (!ok)
        return cps_cli_failed(c);
    if (!t) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                  "on the host every operator has one leaf, generated from its body");
        return CPS_USAGE;
    }
    bool file = exists || strpbrk(what, "./") || !strcmp(what, "-");
    return file ? explain_model(c, what, t) : explain_op(c, what, t);
}

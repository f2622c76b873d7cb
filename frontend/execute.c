/* Running on the simulator and by the reference evaluator. The host's part is execute_host.c. */
#include "frontend/execute.h"
#include "frontend/debug.h"
#include "frontend/views.h"
#include "lower/lower.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const double *
cps_io_values(cps_arena *a, const cps_io *io)
{
    if (io->exact)
        return io->exact;
    int64_t n = cps_type_count(&io->type);
    double *v = cps_arena_raw(a, (size_t)n * sizeof *v + 1);
    cps_to_f64_n(io->type.dtype, io->data, v, (size_t)n);
    return v;
}

typedef struct caller {
    cps_cli *c;
    const cps_func *f;
    bool fp32;
} caller;

// The calls of a lowered graph: what the registry's operator computes.
static bool
evaluate_call(void *user, cps_arena *a, const cps_node *n, const cps_tensor *in, cps_tensor *out, cps_diags *d)
{
    const caller *w = user;
    cps_registry *r = cps_cli_registry(w->c);
    cps_lower_opts o = {.registry = r};
    cps_instance i;
    cps_tensor given[CPS_MAX_OPERANDS];
    int k = 0;
    if (!r || !cps_lower_instance(&o, a, w->f, n, &i, d))
        return false;
    for (int q = 0; q < n->nin; q++)
        if (n->in[q])
            given[k++] = in[q];
    cps_module *m = cps_module_new(a, n->callee);
    cps_func *body = r->body(r->self, m, &i, d);
    return body && cps_ir_eval(a, m, body, given, out, &(cps_eval_opts){.fp32 = w->fp32, .threads = 1}, d);
}

bool
cps_execute_ref(cps_cli *c, const cps_module *m, const cps_func *f, const cps_io *in, unsigned nin,
                cps_io *out, unsigned nout, bool fp32)
{
    cps_tensor *ti = cps_new_array(c->arena, cps_tensor, nin + 1);
    cps_tensor *to = cps_new_array(c->arena, cps_tensor, nout + 1);
    for (unsigned k = 0; k < nin; k++) {
        ti[k] = cps_tensor_from(c->arena, &in[k].type, in[k].data);
        // Lowering narrows 64-bit indices; integers are carried as int64 either way.
        const cps_type *want = &f->vals.data[f->inputs.data[k]].type;
        if (cps_dtype_is_int(want->dtype) && cps_dtype_is_int(in[k].type.dtype))
            ti[k].type.dtype = want->dtype;
    }
    // Outputs are compared unrounded: a last cast to the storage type is left out.
    cps_func g = *f;
    g.outputs.data = cps_new_array(c->arena, cps_val, nout + 1);
    g.outputs.n = nout; // what inout operands are left as stands behind the results
    for (unsigned k = 0; k < nout; k++) {
        cps_val v = f->outputs.data[k];
        uint32_t def = f->vals.data[v].def;
        const cps_node *n = def ? &f->nodes.data[def - 1] : NULL;
        if (n && n->op == CPS_OP_CAST && cps_dtype_is_float(out[k].type.dtype) &&
            cps_dtype_is_float(f->vals.data[n->in[0]].type.dtype))
            v = n->in[0];
        g.outputs.data[k] = v;
    }
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    bool ok = true;
    caller w = {.c = c, .f = f, .fp32 = fp32};
    cps_eval_opts o = {.fp32 = fp32, .call = evaluate_call, .user = &w};
    o.threads = (int)cps_cli_int(c, CPS_OPT_THREADS, cpus > 0 ? cpus : 1, 1, 256, &ok);
    if (!ok || !cps_ir_eval(c->arena, m, &g, ti, to, &o, c->diags))
        return false;
    for (unsigned k = 0; k < nout; k++) {
        int64_t n = cps_type_count(&out[k].type);
        out[k].data = cps_arena_raw(c->arena, (size_t)cps_type_bytes(&out[k].type) + 1);
        cps_tensor_store(&to[k], out[k].type.dtype, out[k].data);
        if (to[k].f) {
            out[k].exact = to[k].f;
        } else {
            out[k].exact = cps_arena_raw(c->arena, (size_t)n * sizeof(double) + 1);
            for (int64_t q = 0; q < n; q++)
                out[k].exact[q] = (double)to[k].i[q];
        }
    }
    return true;
}

/* Swaps the last two axes of a stored tensor: the layout of an operand with order 1. */
static void *
swapped(cps_arena *a, const cps_type *t, const void *data)
{
    unsigned size = cps_dtype_bytes(t->dtype);
    int64_t rows = t->dim[t->rank - 2], cols = t->dim[t->rank - 1];
    int64_t outer = cps_type_count(t) / CPS_MAX(1, rows * cols);
    uint8_t *to = cps_arena_raw(a, (size_t)cps_type_bytes(t) + 1);
    const uint8_t *from = data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++)
                memcpy(to + ((o * cols + j) * rows + i) * size,
                       from + ((o * rows + i) * cols + j) * size, size);
    return to;
}

/* The machine for a kernel, or for both of a pair. */
static bool
load(cps_cli *c, cps_sim_group *g, const cps_kbin *k)
{
    const cps_kbin *all[2] = {k, k->peer};
    return cps_sim_group_load(g, all, c->diags);
}

/* The proof goes with the race check: a run sees one order of events, the proof all of them. Under
 * the debugger a kernel runs into what is wrong with it. */
static bool
prove(cps_cli *c, cps_sim_group *s, cps_debug *g, unsigned checks, cps_report *rep)
{
    cps_proof p;
    if (!(checks & CPS_CHECK_RACES) || g)
        return true;
    bool ok = cps_sim_group_prove(s, 0, &p, c->diags);
    rep->proofs++;
    rep->race_free += p.races == CPS_PROOF_HOLDS;
    rep->deadlock_free += p.deadlock == CPS_PROOF_HOLDS;
    if (p.why && !rep->open)
        rep->open = p.why;
    return ok;
}

/* One run, under the debugger when there is one; `note` is said after a failure. */
static bool
run_once(cps_cli *c, cps_sim_group *s, unsigned cores, cps_debug *g, const char *kernel, cps_sim_opts *o,
         cps_sim_report *sr, cps_report *rep, const char *note)
{
    if (!cps_debug_attach(g, s, cores, kernel, o))
        return false;
    bool ok = cps_sim_group_run(s, o, sr, c->diags);
    rep->stopped = cps_debug_quit(g);
    if (!ok && !rep->stopped && note)
        cps_note(c->diags, CPS_NOSPAN, "%s", note);
    return cps_debug_detach(g, ok);
}

bool
cps_sim_options(cps_cli *c, unsigned checks, bool trace, cps_sim_opts *out)
{
    bool ok = true;
    int64_t seed = cps_cli_int(c, CPS_OPT_STOCHASTIC, 0, 0, INT64_MAX, &ok);
    *out = (cps_sim_opts){.checks = checks,
                          .trace = trace,
                          .stochastic = cps_cli_has(c, CPS_OPT_STOCHASTIC),
                          .seed = (uint64_t)seed};
    return ok;
}

bool
cps_execute_kernel(cps_cli *c, const cps_instance *i, const cps_kbin *k, const cps_io *in,
                   unsigned nin, cps_io *out, unsigned nout, unsigned checks, cps_report *rep)
{
    unsigned cores = k->peer ? 2 : 1;
    cps_sim_group *s = cps_sim_group_create(i->target, cores);
    bool ok = true;
    cps_debug *debug = cps_debug_open(c, &ok);
    ok = ok && load(c, s, k) && prove(c, s, debug, checks, rep);
    unsigned q = 0;
    for (int o = 0; ok && o < i->noperands; o++) {
        if (!i->operand[o].present)
            continue;
        cps_assert(q < nin);
        void *data = in[q].data;
        if (i->operand[o].order)
            data = swapped(c->arena, &in[q].type, data);
        ok = cps_sim_group_bind(s, 0, in[q].name, data, (size_t)cps_type_bytes(&in[q].type), true,
                                c->diags);
        q++;
    }
    for (unsigned o = 0; ok && o < nout; o++) {
        out[o].data = cps_arena_alloc(c->arena, (size_t)cps_type_bytes(&out[o].type) + 1);
        ok = cps_sim_group_bind(s, 0, out[o].name, out[o].data, (size_t)cps_type_bytes(&out[o].type),
                                false, c->diags);
    }
    cps_views views;
    cps_views_open(c, &views);
    cps_sim_opts opts;
    cps_sim_report sr[2];
    double t0 = cps_now_ms();
    ok = ok && cps_sim_options(c, checks, cps_views_any(&views), &opts) &&
         run_once(c, s, cores, debug, k->name, &opts, sr, rep, NULL);
    rep->wall_ms = cps_now_ms() - t0;
    for (unsigned o = 0; ok && o < nout; o++)
        if (i->result[o].order) { // as stored, back to the logical order
            cps_type stored = out[o].type;
            stored.dim[stored.rank - 2] = out[o].type.dim[stored.rank - 1];
            stored.dim[stored.rank - 1] = out[o].type.dim[stored.rank - 2];
            out[o].data = swapped(c->arena, &stored, out[o].data);
        }
    if (ok) {
        rep->checks = checks;
        cps_report_add(c->arena, rep, sr, cores, cps_sim_group_time_ps(s), k);
        cps_views_add(c, &views, s, (const cps_kbin *[]){k, k->peer}, cores, k->name, &rep->roof, 0);
    }
    ok = cps_views_close(c, &views, ok) && cps_debug_close(debug);
    cps_sim_group_destroy(s);
    return ok;
}

/* Storage of every variable of a package: inputs and outputs the caller's, constants the mapped
 * file's, temporaries inside one arena. */
static void **
place_vars(cps_cli *c, const cps_package *p, const cps_io *in, cps_io *out)
{
    void **at = cps_new_array(c->arena, void *, p->vars.n + 1);
    uint8_t *arena = cps_arena_raw(c->arena, (size_t)p->arena_bytes + 64);
    arena += (64 - (uintptr_t)arena % 64) % 64;
    for (uint32_t i = 0; i < p->vars.n; i++) {
        const cps_pvar *v = &p->vars.data[i];
        if (v->kind == CPS_PV_CONST)
            at[i] = (void *)(uintptr_t)v->data;
        else if (v->kind == CPS_PV_TMP)
            at[i] = arena + v->offset;
    }
    for (uint32_t i = 0; i < p->inputs.n; i++)
        at[p->inputs.data[i].var] = in[i].data;
    for (uint32_t i = 0; i < p->outputs.n; i++) {
        // an output may be an input handed through
        uint32_t v = p->outputs.data[i].var;
        if (!at[v])
            at[v] = cps_arena_alloc(c->arena, (size_t)cps_type_bytes(&out[i].type) + 1);
        out[i].data = at[v];
    }
    return at;
}

static bool
run_steps(cps_cli *c, const cps_package *p, const cps_target *t, void **at, unsigned checks,
          cps_report *rep, cps_report *each)
{
    cps_sim_group *one = cps_sim_group_create(t, 1), *two = NULL; // pairs are the exception
    unsigned most = 1;
    for (uint32_t i = 0; i < p->kernels.n; i++)
        most = p->kernels.data[i].kbin->peer ? 2 : most;
    if (most > 1)
        two = cps_sim_group_create(t, most);
    cps_views views;
    cps_views_open(c, &views);
    cps_sim_opts opts;
    bool ok = cps_sim_options(c, checks, cps_views_any(&views), &opts);
    cps_debug *debug = cps_debug_open(c, &ok);
    const char *only = cps_cli_str(c, CPS_OPT_KERNEL, NULL);
    int64_t by_compute = 0;
    bool found = !only;
    for (uint32_t i = 0; i < p->kernels.n; i++)
        found = found || !strcmp(p->kernels.data[i].name, only);
    if (!found) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "the package has no kernel '%s'", only);
        cps_note(c->diags, CPS_NOSPAN, "its kernels are the folders under kernels/");
        ok = false;
    }
    for (uint32_t i = 0; ok && i < p->steps.n; i++) {
        const cps_pstep *st = &p->steps.data[i];
        if (st->kernel < 0)
            continue;
        const cps_pkernel *k = &p->kernels.data[st->kernel];
        bool shown = !only || !strcmp(only, k->name);
        unsigned cores = k->kbin->peer ? 2 : 1;
        cps_sim_group *s = cores > 1 ? two : one;
        ok = load(c, s, k->kbin) && prove(c, s, shown ? debug : NULL, checks, rep);
        for (uint32_t q = 0; ok && q < st->nargs; q++) {
            const cps_parg *arg = &p->args.data[st->first + q];
            const cps_kbin *has = k->kbin; // the first core that has it
            uint32_t kv = cps_kbin_var(has, arg->formal);
            if (kv == UINT32_MAX && has->peer)
                kv = cps_kbin_var(has = has->peer, arg->formal);
            if (kv == UINT32_MAX)
                continue; // an operand the kernel does not touch
            bool defined = has->vars.data[kv].kind != CPS_VAR_OUTPUT;
            ok = cps_sim_group_bind(s, 0, arg->formal, at[arg->var],
                                    (size_t)p->vars.data[arg->var].bytes, defined, c->diags);
        }
        cps_sim_report sr[2];
        const char *note = cps_arena_printf(c->arena, "in step %u, kernel '%s' (%s)", i, k->name, k->instance);
        opts.probe = NULL; // a kernel that is not asked for runs unwatched
        if (!ok)
            cps_note(c->diags, CPS_NOSPAN, "%s", note);
        ok = ok && run_once(c, s, cores, shown ? debug : NULL, k->name, &opts, sr, rep, note);
        if (!ok)
            break;
        int64_t time_ps = cps_sim_group_time_ps(s) + (int64_t)(t->run_launch_ns * 1e3);
        if (!shown)
            continue;
        cps_roof roof = {.flops = k->flops,
                         .bytes = k->bytes,
                         .roofline_ns = (double)k->roofline_ns,
                         .engines_ns = (double)k->engines_ns,
                         .bound = k->bound};
        cps_views_add(c, &views, s, (const cps_kbin *[]){k->kbin, k->kbin->peer}, cores, k->name, &roof,
                      rep->sim.time_ps);
        cps_report_add(c->arena, rep, sr, cores, time_ps, k->kbin);
        rep->roof.flops += k->flops;
        rep->roof.bytes += k->bytes;
        rep->roof.roofline_ns += (double)k->roofline_ns;
        rep->roof.engines_ns += (double)k->engines_ns;
        rep->launches++;
        // a model is bound by what bounds the larger part of its roofs
        by_compute += strcmp(k->bound, "compute") ? -k->roofline_ns : k->roofline_ns;
        rep->roof.bound = by_compute > 0 ? "compute" : "memory";
        if (each) {
            each[i] = (cps_report){.kernel = k->name, .leaf = k->leaf, .target = t->name,
                                   .on = "sim", .facts = t, .launches = 1, .checks = checks};
            each[i].roof.flops = k->flops;
            each[i].roof.bytes = k->bytes;
            each[i].roof.bound = k->bound;
            each[i].roof.roofline_ns = (double)k->roofline_ns;
            each[i].roof.engines_ns = (double)k->engines_ns;
            cps_report_add(c->arena, &each[i], sr, cores, time_ps, k->kbin);
        }
    }
    ok = cps_views_close(c, &views, ok) && cps_debug_close(debug);
    cps_sim_group_destroy(one);
    cps_sim_group_destroy(two);
    return ok;
}

const cps_target *
cps_package_target(cps_cli *c, const cps_package *p)
{
    const cps_target *t = cps_target_find(p->target);
    if (t && cps_digest_eq(&t->digest, &p->target_digest))
        return t;
    // Made for a description of one's own: it must be given again.
    t = cps_cli_has(c, CPS_OPT_TARGET)
            ? cps_target_load(cps_cli_str(c, CPS_OPT_TARGET, ""), c->arena, c->diags)
            : NULL;
    if (t && cps_digest_eq(&t->digest, &p->target_digest))
        return t;
    cps_error(c->diags, CPS_E8003, CPS_NOSPAN, "the package was compiled for another description of target '%s'",
              p->target);
    return NULL;
}

bool
cps_execute_package(cps_cli *c, const cps_package *p, const char *on, const cps_io *in, cps_io *out,
                    unsigned checks, cps_report *rep, cps_report *each)
{
    void **at = place_vars(c, p, in, out);
    double t0 = cps_now_ms();
    bool ok;
    if (!strcmp(on, "host")) {
        ok = cps_execute_host_so(c, p, in, out);
    } else if (!strcmp(p->target, "host")) {
        cps_error(c->diags, CPS_E8003, CPS_NOSPAN, "the package was compiled for the host");
        cps_help(c->diags, "run it with --on host, or compile for a NeuronCore: --target trn2");
        ok = false;
    } else {
        const cps_target *t = cps_package_target(c, p);
        if (!t)
            return false;
        rep->facts = t;
        rep->checks = checks;
        // The engines have 32-bit integers: 64-bit inputs must fit them.
        for (uint32_t i = 0; i < p->inputs.n; i++) {
            if (in[i].type.dtype != CPS_DT_I64 && in[i].type.dtype != CPS_DT_U64)
                continue;
            const int64_t *v = in[i].data;
            for (int64_t k = 0; k < cps_type_count(&in[i].type); k++)
                if (v[k] < INT32_MIN || v[k] > INT32_MAX) {
                    cps_error(c->diags, CPS_E1006, CPS_NOSPAN,
                              "input '%s': element %lld is %lld, and a NeuronCore has 32-bit integers",
                              in[i].name, (long long)k, (long long)v[k]);
                    return false;
                }
        }
        ok = run_steps(c, p, t, at, checks, rep, each);
    }
    rep->wall_ms = cps_now_ms() - t0;
    return ok;
}

cps_exit
cps_report_emit(cps_cli *c, const cps_report *rep)
{
    cps_buf b = {0};
    const char *path = cps_cli_str(c, CPS_OPT_REPORT, NULL);
    bool ok = true;
    if (path) {
        cps_jsonw w;
        cps_jsonw_init(&w, &b);
        cps_jsonw_obj(&w, false);
        cps_report_members(&w, rep);
        cps_jsonw_end_obj(&w);
        cps_jsonw_done(&w);
        ok = cps_cli_write(c, path, b.data, b.n);
        b.n = 0;
    }
    if (!path || strcmp(path, "-")) {
        cps_report_text(rep, &b);
        fwrite(b.data, 1, b.n, stderr);
    }
    cps_buf_fini(&b);
    if (!ok)
        return CPS_IO;
    if (rep->compared && !rep->err.pass) {
        cps_error(c->diags, CPS_E1109, CPS_NOSPAN, "output '%s' differs from the reference: max rel %.3g",
                  rep->err.worst, rep->err.max_rel);
        return CPS_DIFFERS;
    }
    return CPS_OK;
}

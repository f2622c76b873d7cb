/* copse sim --validate: every row through the ordinary path, for its time alone. */
#include "frontend/validate.h"

#include "frontend/dsl/registry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PAIRS = 32 };

typedef struct pairs {
    int n;
    const char *name[MAX_PAIRS], *text[MAX_PAIRS];
    int64_t value[MAX_PAIRS];
} pairs;

// "A=1,B=2"; "-" is none. Values are numbers when `numbers`.
static bool
split(cps_arena *a, const char *s, bool numbers, pairs *p)
{
    p->n = 0;
    while (strcmp(s, "-") && *s) {
        size_t n = strcspn(s, ","), eq = strcspn(s, "=");
        if (eq >= n || p->n == MAX_PAIRS)
            return false;
        p->name[p->n] = cps_arena_strndup(a, s, eq);
        p->text[p->n] = cps_arena_strndup(a, s + eq + 1, n - eq - 1);
        if (numbers && (!cps_parse_int(s + eq + 1, n - eq - 1, &p->value[p->n]) ||
                        p->value[p->n] < 1 || p->value[p->n] > (int64_t)1 << 40))
            return false;
        p->n++;
        s += n + (s[n] == ',');
    }
    return true;
}

static bool
instance(cps_cli *c, cps_arena *a, cps_registry *reg, const cps_vrow *r, cps_instance *out)
{
    pairs dims, attrs;
    cps_dtype t = cps_dtype_parse(r->dtype, strlen(r->dtype));
    if (!split(a, r->dims, true, &dims) || !split(a, r->attrs, false, &attrs) || !t) {
        cps_error(c->diags, CPS_E1113, CPS_NOSPAN, "rows.tsv:%u: dims, attrs or dtype of '%s'",
                  r->line, r->name);
        return false;
    }
    const cps_target *target = cps_target_find(r->target);
    if (!target) {
        cps_error(c->diags, CPS_E1003, CPS_NOSPAN, "rows.tsv:%u: '%s' is no target", r->line,
                  r->target);
        return false;
    }
    return reg->make(reg->self, a, r->op, dims.n, dims.name, dims.value, t, 0, NULL, attrs.n,
                     attrs.name, attrs.text, target, 1, out, c->diags);
}

static double
error_of(const cps_vrow *r)
{
    double p = r->predicted, lo = r->published, hi = r->published;
    if (r->bound)
        return p > hi ? p / hi - 1 : 0;
    if (r->low > 0) {
        lo = fmin(lo, r->low);
        hi = fmax(hi, r->low);
    }
    return p < lo ? p / lo - 1 : p > hi ? p / hi - 1 : 0;
}

static bool
simulate(cps_cli *c, const cps_kbin *k, const cps_target *t, cps_vrow *r)
{
    bool whole = !strcmp(r->measure, "time");
    cps_sim *s = cps_sim_create_timer(t);
    const char *path = cps_cli_str(c, CPS_OPT_TRACE, NULL);
    cps_sim_opts o = {.trace = !whole || path};
    bool ok = cps_sim_load(s, k, c->diags) && cps_sim_run(s, &o, &r->sim, c->diags);
    if (ok && path) { // of several rows the last one's stays
        cps_trace *tr = cps_trace_create();
        cps_trace_add(tr, s, r->name, 0);
        const cps_buf *b = cps_trace_text(tr);
        ok = cps_cli_write(c, path, b->data, b->n);
        cps_trace_destroy(tr);
    }
    if (ok) {
        r->predicted =
            whole ? (double)r->sim.time_ps / 1e3 : cps_validate_measure(s, r->measure);
        r->predicted += r->fixed ? t->run_fixed_ns : 0;
        r->error = error_of(r);
        r->ran = !isnan(r->predicted);
        if (!r->ran)
            cps_error(c->diags, CPS_E1113, CPS_NOSPAN,
                      "rows.tsv:%u: nothing to measure '%s' on", r->line, r->measure);
    }
    cps_sim_destroy(s);
    return ok && r->ran;
}

static bool
replay(cps_cli *c, const cps_vtable *t, cps_vrow *r)
{
    size_t n;
    const char *text = cps_validate_text(c, t, r->file, &n);
    if (!text)
        return false;
    cps_arena *a = cps_arena_create();
    cps_registry *reg = cps_dsl_registry_create(a, c->diags);
    cps_instance inst;
    cps_candidate *cand;
    unsigned count = 0;
    double t0 = cps_now_ms();
    bool ok = reg && cps_dsl_registry_add(reg, r->file, text, n, c->diags) &&
              instance(c, a, reg, r, &inst);
    int pick = -1;
    if (ok) {
        count = reg->candidates(reg->self, a, &inst, &cand, c->diags);
        for (unsigned k = 0; k < count; k++)
            if (!strcmp(cand[k].leaf, r->leaf))
                pick = (int)k;
        ok = !cps_diags_errors(c->diags) && pick >= 0 && cand[pick].ok;
        if (!ok && !cps_diags_errors(c->diags)) {
            cps_error(c->diags, CPS_E1108, CPS_NOSPAN, "row '%s': leaf '%s' does not take it",
                      r->name, r->leaf);
            for (int q = 0; pick >= 0 && q < cand[pick].nreasons; q++)
                cps_note(c->diags, CPS_NOSPAN, "%s", cand[pick].reason[q]);
        }
    }
    if (ok) {
        cps_codegen_opts o = {.keep_order = r->lookahead<0, .lookahead = r->lookahead> 0
                                                ? (unsigned)r->lookahead
                                                : 0};
        const cps_kbin *k = cps_compile_replay(c, a, reg, &inst, &cand[pick], &o);
        r->compile_ms = cps_now_ms() - t0;
        t0 = cps_now_ms();
        r->counted = k && cps_validate_count(k, &r->counts);
        ok = k && (cps_cli_has(c, CPS_OPT_COUNTS) || simulate(c, k, inst.target, r));
        r->wall_ms = cps_now_ms() - t0;
    }
    if (!ok)
        cps_note(c->diags, CPS_NOSPAN, "in the replay of '%s'", r->name);
    cps_cli_flush(c); // while the sources are there
    cps_dsl_registry_destroy(reg);
    cps_arena_destroy(a);
    return ok;
}

// `fast`, or names and beginnings of names with commas.
static bool
wanted(const char *list, const cps_vrow *r)
{
    if (!list)
        return true;
    for (const char *s = list; *s;) {
        size_t n = strcspn(s, ",");
        if ((n == 4 && !strncmp(s, "fast", 4) && !r->slow) || (n && !strncmp(r->name, s, n)))
            return true;
        s += n + (s[n] == ',');
    }
    return false;
}

cps_exit
cps_validate(cps_cli *c)
{
    cps_vtable all, t;
    const char *list = cps_cli_str(c, CPS_OPT_ROWS, NULL);
    if (c->args.n > 1) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'sim --validate' takes at most one folder");
        return CPS_USAGE;
    }
    if (!cps_validate_read(c, c->args.n ? c->args.data[0] : NULL, &all))
        return cps_cli_failed(c);
    t = (cps_vtable){.dir = all.dir};
    for (uint32_t i = 0; i < all.rows.n; i++)
        if (wanted(list, &all.rows.data[i]))
            cps_vec_push(c->arena, &t.rows, all.rows.data[i]);
    if (!t.rows.n) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "no row is called '%s'", list ? list : "");
        return CPS_USAGE;
    }
    bool ok = true, live = isatty(STDERR_FILENO);
    for (uint32_t i = 0; i < t.rows.n; i++) {
        cps_vrow *r = &t.rows.data[i];
        if (live)
            fprintf(stderr, "\r%u of %u  %-48s", i + 1, t.rows.n, r->name);
        ok = (!r->file || replay(c, &t, r)) && ok;
    }
    if (live)
        fprintf(stderr, "\r%64s\r", "");
    cps_buf b = {0};
    const char *out = cps_cli_str(c, CPS_OPT_OUTPUT, NULL);
    const char *report = cps_cli_str(c, CPS_OPT_REPORT, NULL);
    bool wrote = true;
    if (out) {
        cps_validate_page(c, &t, &b);
        wrote = cps_cli_write(c, out, b.data, b.n);
    }
    bool json = cps_cli_has(c, CPS_OPT_JSON);
    b.n = 0;
    cps_validate_json(c, &t, &b);
    if (report)
        wrote = cps_cli_write(c, report, b.data, b.n) && wrote;
    if (json) {
        fwrite(b.data, 1, b.n, stdout);
    } else {
        b.n = 0;
        cps_validate_text_report(c, &t, &b);
        fwrite(b.data, 1, b.n, stderr);
    }
    cps_buf_fini(&b);
    return !wrote ? CPS_IO : ok ? CPS_OK : CPS_BAD_INPUT;
}

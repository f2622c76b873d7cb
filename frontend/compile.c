/* One kernel, from a selected leaf to its binary:
 *
 *   (leaf, resolved configuration, target)
 *      | key, cache: hit -> binary
 *      | miss: trace -> verify -> [codegen: legalise, engines, DMA, allocate, order,
 * synchronise, |       encode] -> binary -> cache
 *
 * Neither the tracer nor the back end knows that a cache exists. A key's components are every
 * input of the result: the build, the leaf's text, the instance, its configuration, the
 * target's facts. Paths, names in a model, time and verbosity are not among them. */
#include "frontend/compile.h"

#include "build_id.h"
#include "codegen/bir/bir.h"
#include "codegen/codegen.h"
#include "runtime/sim/sim.h"

#include <string.h>

enum { F_SCHEMA = 64, F_BUILD, F_LEAF, F_LEAF_DIGEST, F_TARGET_DIGEST, F_CONFIG };

static void
put_attr(cps_buf *b, const cps_attr *x)
{
    cps_buf_printf(b, "%s=", x->key);
    switch (x->kind) {
    case CPS_A_INT:
    case CPS_A_BOOL:
        cps_buf_printf(b, "%lld", (long long)x->i);
        break;
    case CPS_A_DTYPE:
        cps_buf_puts(b, cps_dtype_name((cps_dtype)x->i));
        break;
    case CPS_A_FLOAT:
        cps_buf_put_double(b, x->f);
        break;
    case CPS_A_STR:
        cps_buf_puts(b, x->s);
        break;
    case CPS_A_INTS:
        for (uint32_t k = 0; k < x->n; k++)
            cps_buf_printf(b, "%s%lld", k ? "," : "", (long long)x->ints[k]);
        break;
    }
    cps_buf_putc(b, ';');
}

static void
key_of(cps_registry *r, const cps_instance *i, const cps_candidate *k, cps_buf *parts)
{
    cps_digest text = r->digest(r->self, k->leaf);
    cps_instance_key(i, parts);
    cps_key_field(parts, F_SCHEMA, "kernel 1", 8);
    cps_key_field(parts, F_BUILD, CPS_BUILD_ID, (uint32_t)strlen(CPS_BUILD_ID));
    cps_key_field(parts, F_LEAF, k->leaf, (uint32_t)strlen(k->leaf));
    cps_key_field(parts, F_LEAF_DIGEST, text.b, sizeof text.b);
    cps_key_field(parts, F_TARGET_DIGEST, i->target->digest.b, sizeof i->target->digest.b);
    cps_buf config = {0};
    for (unsigned n = 0; n < k->nconfig; n++)
        put_attr(&config, &k->config[n]);
    cps_key_field(parts, F_CONFIG, config.data ? config.data : "", (uint32_t)config.n);
    cps_buf_fini(&config);
}

/* A leaf that says nothing about cores runs on the first one, and the other has nothing to do. */
static cps_tfunc *
trace(cps_cli *c, cps_registry *r, cps_arena *a, const cps_instance *i, const cps_candidate *k,
      int core)
{
    cps_tfunc *f = r->trace(r->self, a, i, k, core, c->diags);
    if (f && core > 0 && !f->split)
        f->insts.n = 0;
    if (!f || !cps_tile_verify(f, i->target, c->diags))
        return NULL;
    return f;
}

static bool
check_after(void *ctx, const char *pass, const cps_tfunc *f, cps_diags *d)
{
    (void)pass;
    return cps_tile_verify(f, ctx, d);
}

bool
cps_compile_tile(cps_cli *c, cps_arena *a, const cps_instance *i, const cps_candidate *k,
                 cps_buf *text)
{
    bool ok = true;
    for (int core = 0; ok && core < CPS_MAX(1, i->cores); core++) {
        cps_tfunc *f = trace(c, cps_cli_registry(c), a, i, k, core);
        ok = f != NULL;
        if (ok)
            cps_tile_print(f, false, text);
    }
    return ok;
}

/* The independent check of a fresh binary: no order of events may race or get stuck. It goes into
 * the kernel's folder and the manifest. */
bool
cps_compile_prove(cps_cli *c, const cps_target *t, cps_kbin *k, bool verified, bool *leaves)
{
    const cps_kbin *all[2] = {k, k->peer};
    cps_sim_group *g = cps_sim_group_create_proof(t, k->peer ? 2 : 1, verified);
    cps_proof p = {.leaves = false};
    bool ok = cps_sim_group_load(g, all, c->diags) && cps_sim_group_prove(g, 0, &p, c->diags);
    *leaves = p.leaves;
    for (cps_kbin *x = k; ok && x; x = x->peer) {
        x->stats.races = (uint8_t)p.races;
        x->stats.deadlock = (uint8_t)p.deadlock;
    }
    cps_sim_group_destroy(g);
    return ok;
}

static bool
proved(cps_cli *c, const cps_instance *i, cps_kbin *k, bool verified)
{
    bool leaves, ok = cps_compile_prove(c, i->target, k, verified, &leaves);
    if (leaves)
        cps_help(c->diags, "an offset in a register is taken as '%s' gives it: end the `loop` earlier, or keep the "
                           "offset in bounds with `min`, `max` or `when`", k->name);
    else if (!ok)
        cps_note(c->diags, CPS_NOSPAN,
                 k->peer ? "the binaries of '%s' are wrong: two cores write or use the same of what both "
                           "see, outside its loops across cores"
                         : "the binary of '%s' is wrong: a mistake of the back end, not of the leaf",
                 k->name);
    return ok;
}

/* The binaries of all cores of the instance, the further ones hanging on the first. */
static cps_kbin *
make(cps_cli *c, cps_arena *a, const cps_instance *i, const cps_candidate *k,
     const cps_codegen_opts *o, const cps_trial *t)
{
    cps_kbin *made[2] = {NULL, NULL};
    bool ok = true;
    for (int core = 0; ok && core < CPS_MAX(1, i->cores); core++) {
        cps_arena *tile = o->notes ? a : cps_arena_create(); // notes speak of it
        cps_tfunc *f = trace(c, cps_cli_registry(c), tile, i, k, core);
        if (f && t && t->before)
            t->before(t->ctx, f);
        cps_codegen_opts mine = *o;
        mine.notes = o->notes ? &o->notes[core] : NULL; // one for each core
        mine.spent = tile == a ? NULL : f;
        ok = f && cps_codegen(a, f, i->target, &mine, &made[core], c->diags);
        if (tile == a)
            continue;
        for (uint32_t v = 0; ok && v < made[core]->vars.n; v++) {
            cps_kvar *x = &made[core]->vars.data[v];
            if (x->data)
                x->data = memcpy(cps_arena_raw(a, (size_t)x->bytes), x->data, (size_t)x->bytes);
        }
        cps_arena_destroy(tile);
    }
    if (!ok)
        return NULL;
    made[0]->peer = made[1];
    return made[0];
}

/* A fresh kernel into the cache, with what was said when it was made and how long that is. */
static void
keep(cps_cli *c, const cps_compiled *k, const cps_buf *parts, const cps_diags_mark *before, cps_buf *bytes)
{
    cps_kbin_pack(k->kbin, bytes);
    size_t packed = bytes->n;
    bool whole = cps_diags_keep(c->diags, before, bytes);
    uint32_t n = (uint32_t)(bytes->n - packed);
    cps_buf_put(bytes, &n, sizeof n);
    if (whole)
        cps_cache_put(cps_cli_cache(c), &k->key, parts->data, parts->n, bytes->data, bytes->n);
}

bool
cps_compile_kernel(cps_cli *c, cps_arena *a, const cps_instance *i, const cps_candidate *k,
                   cps_compiled *out)
{
    cps_cache *cache = cps_cli_cache(c);
    cps_buf parts = {0}, bytes = {0};
    key_of(cps_cli_registry(c), i, k, &parts);
    out->key = cps_digest_of(parts.data, parts.n);
    out->kbin = NULL;
    out->hit = false;
    out->bir[0] = out->bir[1] = NULL;
    // BIR says more than a cached kernel knows: buffers, dependences, program order.
    bool bir = !strcmp(cps_cli_str(c, CPS_OPT_EMIT, ""), "bir");
    cps_notes notes[2] = {0};
    if (!bir && cps_cache_get(cache, &out->key, parts.data, parts.n, &bytes)) {
        const char *why = NULL;
        // The unpacked kernel refers into the bytes: they move to the arena first.
        void *copy = cps_arena_raw(a, bytes.n + 1);
        memcpy(copy, bytes.data, bytes.n);
        // Behind it what was said when it was made, and how long that is: a hit says it again.
        uint32_t said = 0;
        size_t n = bytes.n < sizeof said ? 0 : bytes.n - sizeof said;
        if (n)
            memcpy(&said, bytes.data + n, sizeof said);
        bool ok = said <= n && cps_diags_say(c->diags, bytes.data + n - said, said);
        out->kbin = ok ? cps_kbin_unpack(a, copy, n - said, &why) : NULL;
        out->hit = out->kbin != NULL;
    }
    if (!out->kbin) {
        bool each = cps_cli_has(c, CPS_OPT_VERIFYEACH);
#ifdef CPS_TEST_BUILD
        each = true;
#endif
        cps_codegen_opts o = {.verify = true, .checked = true, .notes = bir ? notes : NULL};
        if (each) {
            o.after = check_after;
            o.ctx = (void *)(uintptr_t)i->target;
        }
        unsigned said = cps_diags_count(c->diags);
        cps_diags_mark before = cps_diags_mark_of(c->diags, a);
        cps_kbin *fresh = make(c, a, i, k, &o, NULL);
        if (fresh && proved(c, i, fresh, cps_diags_count(c->diags) == said)) {
            out->kbin = fresh;
            bytes.n = 0;
            if (cache->dir)
                keep(c, out, &parts, &before, &bytes);
        }
        for (const cps_kbin *x = bir ? out->kbin : NULL; x; x = x->peer) {
            bytes.n = 0;
            cps_bir_write(x, &notes[x->core], &bytes);
            out->bir[x->core] = cps_arena_strndup(a, bytes.data, bytes.n);
            out->bir_bytes[x->core] = bytes.n;
        }
    }
    cps_buf_fini(&parts);
    cps_buf_fini(&bytes);
    return out->kbin != NULL;
}

const cps_kbin *
cps_compile_replay(cps_cli *c, cps_arena *a, cps_registry *r, const cps_instance *i,
                   const cps_candidate *k, const cps_codegen_opts *o)
{
    cps_kbin *out = NULL;
    cps_arena *scratch = cps_arena_create();
    cps_tfunc *f = trace(c, r, scratch, i, k, 0);
    if (f && !cps_codegen(a, f, i->target, o, &out, c->diags))
        out = NULL;
    cps_arena_destroy(scratch);
    return out;
}

const cps_kbin *
cps_compile_trial(cps_cli *c, cps_arena *a, const cps_instance *i, const cps_candidate *k,
                  const cps_trial *t)
{
    cps_codegen_opts o = {0};
    if (t && t->after) {
        o.after = t->after;
        o.ctx = t->ctx;
    }
    return make(c, a, i, k, &o, t);
}

int
cps_choose(cps_cli *c, const cps_instance *i, const char *force, cps_candidate **cand,
           unsigned *n, const char **why)
{
    return cps_choose_in(c, c->arena, i, force, cand, n, why);
}

int
cps_choose_in(cps_cli *c, cps_arena *a, const cps_instance *i, const char *force, cps_candidate **cand, unsigned *n,
              const char **why)
{
    cps_registry *r = cps_cli_registry(c);
    unsigned before = cps_diags_errors(c->diags);
    *n = r->candidates(r->self, a, i, cand, c->diags);
    if (cps_diags_errors(c->diags) != before)
        return -1;
    int k = cps_registry_pick(*cand, *n, force, why);
    if (k >= 0)
        return k;
    bool known = !force;
    for (unsigned m = 0; m < *n; m++)
        known = known || !strcmp((*cand)[m].leaf, force);
    const char *on = i->target ? i->target->name : "host";
    if (!known) {
        cps_error(c->diags, CPS_E1107, CPS_NOSPAN, "'%s' has no leaf '%s' on %s", i->op, force,
                  on);
        for (unsigned m = 0; m < *n; m++)
            cps_note(c->diags, CPS_NOSPAN, "there is '%s'", (*cand)[m].leaf);
        return -1;
    }
    cps_buf what = {0};
    cps_instance_print(i, &what);
    cps_error(c->diags, CPS_E1108, CPS_NOSPAN, "no leaf takes %s", what.data);
    cps_buf_fini(&what);
    for (unsigned m = 0; m < *n; m++)
        for (int q = 0; q < (*cand)[m].nreasons; q++)
            if (!force || !strcmp((*cand)[m].leaf, force))
                cps_note(c->diags, CPS_NOSPAN, "%s: %s", (*cand)[m].leaf, (*cand)[m].reason[q]);
    if (!*n)
        cps_note(c->diags, CPS_NOSPAN, "'%s' has no leaf for %s at all", i->op, on);
    return -1;
}

/* The back end: one function lists the passes in order. */
#include "codegen/pass.h"
#include "runtime/base/map.h"

static const struct {
    const char *name;
    bool (*run)(cps_cg *g);
} tile_passes[] = {
    {"check", cps_pass_check},       // ids and axes in range
    {"spill", cps_pass_spill},       // what did not fit is streamed
    {"engine", cps_pass_engine},     // every instruction has an engine
    {"legalise", cps_pass_legalise}, // every operand fits its instruction
    {"alloc", cps_pass_alloc},       // every buffer has a place
    {"order", cps_pass_order},       // the list is in issue order
};

static const struct {
    const char *name;
    bool (*run)(cps_cg *g, cps_mprog *p);
} machine_passes[] = {
    {"select", cps_pass_select}, // bundles, descriptors, accesses
    {"sync", cps_pass_sync},     // waits and signals
    {"emit", cps_pass_emit},     // streams
};

// A copy of a string, made once.
static const char *
own(cps_arena *a, cps_map *names, const char *s)
{
    if (!s)
        return NULL;
    bool fresh;
    uint64_t *v = cps_map_at_str(names, s, &fresh);
    if (fresh)
        *v = (uintptr_t)cps_arena_strdup(a, s);
    return (const char *)(uintptr_t)*v;
}

// The kernel alone, in the caller's arena; everything else of the compilation goes.
static cps_kbin *
keep(cps_arena *a, const cps_kbin *k)
{
    cps_kbin *o = cps_kbin_new(a, k->name, k->target, k->gen);
    cps_map names;
    cps_map_init(&names, a);
    o->core = k->core;
    o->cores = k->cores;
    o->stats = k->stats;
    for (int e = 0; e < CPS_ENGINES; e++) {
        const cps_kstream *s = &k->stream[e];
        cps_vec_reserve(a, &o->stream[e].code, s->code.n);
        cps_vec_reserve(a, &o->stream[e].locs, s->locs.n);
        for (uint32_t i = 0; i < s->code.n; i++)
            cps_vec_push(a, &o->stream[e].code, s->code.data[i]);
        for (uint32_t i = 0; i < s->locs.n; i++) {
            cps_kloc l = s->locs.data[i];
            l.file = own(a, &names, l.file);
            cps_vec_push(a, &o->stream[e].locs, l);
        }
    }
    for (uint32_t i = 1; i < k->vars.n; i++) {
        cps_kvar v = k->vars.data[i];
        v.name = cps_arena_strdup(a, v.name);
        cps_vec_push(a, &o->vars, v);
    }
    cps_vec_reserve(a, &o->descs, k->descs.n);
    for (uint32_t i = 0; i < k->descs.n; i++)
        cps_vec_push(a, &o->descs, k->descs.data[i]);
    cps_vec_reserve(a, &o->blocks, k->blocks.n);
    for (uint32_t i = 0; i < k->blocks.n; i++) {
        cps_kblock b = k->blocks.data[i];
        b.queue = own(a, &names, b.queue);
        cps_vec_push(a, &o->blocks, b);
    }
    for (uint32_t i = 0; i < k->relocs.n; i++)
        cps_vec_push(a, &o->relocs, k->relocs.data[i]);
    for (uint32_t i = 0; i < k->extents.n; i++) {
        cps_kextent x = k->extents.data[i];
        x.name = own(a, &names, x.name);
        cps_vec_push(a, &o->extents, x);
    }
    return o;
}

static bool
tile(cps_cg *g, const cps_tfunc *f)
{
    g->full = false;
    g->f = cps_tile_copy(g->arena, f);
    for (size_t i = 0; i < cps_countof(tile_passes); i++) {
        if (tile_passes[i].run == cps_pass_check && g->o.checked)
            continue;
        if (!tile_passes[i].run(g))
            return false;
        if (g->o.after && !g->o.after(g->o.ctx, tile_passes[i].name, g->f, g->d))
            return false;
    }
    return true;
}

static bool
run(cps_cg *g, const cps_tfunc *f, cps_mprog *p)
{
    g->may_spill = true;
    while (!tile(g, f)) {
        if (!g->full)
            return false;
        g->tries++; // from the start, with more of it in HBM
    }
    for (uint32_t i = 0; i < g->spilled.n; i++) {
        const cps_spilled *s = &g->spilled.data[i];
        cps_error(g->d, CPS_W4108, s->loc,
                    "SBUF has no room for '%s': it is streamed from HBM, by %u transfers of %lld bytes", s->name,
                    s->transfers, (long long)s->bytes);
        cps_help(g->d, "smaller pieces, or fewer slots (`bufs`), may keep it on chip");
    }
    if (g->o.spent) {
        cps_vec_drop(g->o.spent->arena, &g->o.spent->views);
        cps_vec_drop(g->o.spent->arena, &g->o.spent->insts);
    }
    for (size_t i = 0; i < cps_countof(machine_passes); i++) {
        if (!machine_passes[i].run(g, p))
            return false;
        if (!g->o.notes && machine_passes[i].run == cps_pass_select) {
            cps_vec_drop(g->arena, &g->f->views);
            cps_vec_drop(g->arena, &g->f->insts);
        }
    }
    if (g->o.notes)
        cps_notes_fill(g, p, g->o.notes);
    return true;
}

bool
cps_codegen(cps_arena *a, const cps_tfunc *f, const cps_target *t, const cps_codegen_opts *o,
            cps_kbin **out, cps_diags *d)
{
    cps_arena *scratch = cps_arena_create();
    cps_cg g = {.arena = scratch, .keep = a, .t = t, .d = d};
    cps_mprog p = {0};
    g.costs = cps_new_array(scratch, cps_cost_seen, CPS_TOPS);
    g.blank = cps_new_array(scratch, cps_bundle, CPS_INSNS);
    if (o)
        g.o = *o;
    bool ok = run(&g, f, &p);
    if (ok)
        *out = keep(a, p.k);
    cps_arena_destroy(scratch);
    return ok;
}

/* The back end: one function lists the passes in order. */
#include "codegen/pass.h"

static const struct {
    const char *name;
    bool (*run)(cps_cg *g);
} tile_passes[] = {
    {"check", cps_pass_check},       // ids and axes in range
    {"engine", cps_pass_engine},     // every instruction has an engine
    {"legalise", cps_pass_legalise}, // every operand fits its instruction
    {"order", cps_pass_order},       // the list is in issue order
    {"alloc", cps_pass_alloc},       // every buffer has a place
};

static const struct {
    const char *name;
    bool (*run)(cps_cg *g, cps_mprog *p);
} machine_passes[] = {
    {"select", cps_pass_select}, // bundles, descriptors, accesses
    {"sync", cps_pass_sync},     // waits and signals
    {"emit", cps_pass_emit},     // streams
};

bool
cps_codegen(cps_arena *a, const cps_tfunc *f, const cps_target *t, const cps_codegen_opts *o,
            cps_kbin **out, cps_diags *d)
{
    cps_cg g = {.arena = a, .t = t, .d = d};
    cps_mprog p = {0};
    if (o)
        g.o = *o;
    g.f = cps_tile_copy(a, f);
    for (size_t i = 0; i < cps_countof(tile_passes); i++) {
        if (!tile_passes[i].run(&g))
            return false;
        if (g.o.after && !g.o.after(g.o.ctx, tile_passes[i].name, g.f, d))
            return false;
    }
    for (size_t i = 0; i < cps_countof(machine_passes); i++)
        if (!machine_passes[i].run(&g, &p))
            return false;
    *out = p.k;
    return true;
}

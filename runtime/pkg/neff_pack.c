/* A package or one of its kernels to a container: which program, what it needs of a runtime,
 * and what is missing for a device. */
#include "runtime/pkg/neff_members.h"

#include "runtime/pkg/package_link.h"

/* ---- what the streams use ---- */

static const struct {
    cps_insn insn;
    uint64_t features;
} by_insn[] = {
    {CPS_INSN_ACTIVATION_TABLE_LOAD, CPS_NEFF_DYNAMIC_PWP},
    {CPS_INSN_PSEUDO_LOAD_ACT_FUNC_SET, CPS_NEFF_DYNAMIC_PWP},
    {CPS_INSN_PSEUDO_FUNCTION_CALL, CPS_NEFF_FUNCTIONS},
    {CPS_INSN_PSEUDO_SWAP_QUEUE_SET, CPS_NEFF_QUEUE_SETS},
};

/* Formats whose descriptors the device makes, and the types that tell whether they cast. */
static const struct {
    cps_format format;
    uint64_t features;
    cps_field in, out;
} by_format[] = {
    {CPS_FMT_DMA_DIRECT2D, CPS_NEFF_DGE, CPS_F_DMA_DIRECT2D_in_dtype,
     CPS_F_DMA_DIRECT2D_out_dtype},
    {CPS_FMT_DMA_INDIRECT1D, CPS_NEFF_DGE | CPS_NEFF_VECTOR_DGE, CPS_F_DMA_INDIRECT1D_in_dtype,
     CPS_F_DMA_INDIRECT1D_out_dtype},
    {CPS_FMT_DMA_DIRECT2D_XPOSE, CPS_NEFF_DGE, CPS_F_NONE, CPS_F_NONE},
    {CPS_FMT_DMA_GATHER_XPOSE, CPS_NEFF_DGE | CPS_NEFF_VECTOR_DGE, CPS_F_NONE, CPS_F_NONE},
};

static void
scan_record(cps_packer *c, cps_engine e, const cps_bundle *b)
{
    cps_insn x = cps_isa_find(b->b[0], c->k->gen);
    if (x == CPS_INSN_NONE)
        return;
    for (unsigned i = 0; i < cps_countof(by_insn); i++)
        if (by_insn[i].insn == x)
            c->features |= by_insn[i].features;
    for (unsigned i = 0; i < cps_countof(by_format); i++) {
        if (by_format[i].format != (cps_format)cps_insns[x].format)
            continue;
        c->features |= by_format[i].features | (e == CPS_POOL ? 0 : CPS_NEFF_HW_DGE);
        if (by_format[i].in &&
            cps_isa_get(b, by_format[i].in) != cps_isa_get(b, by_format[i].out))
            c->features |= CPS_NEFF_DGE_CAST;
    }
    if (x == CPS_INSN_ACTIVATION_TABLE_LOAD)
        c->sets[c->k->core] |= 1u << (cps_isa_get(b, CPS_F_CTRL_TL_set) & 31);
    if (x == CPS_INSN_PSEUDO_LOAD_ACT_FUNC_SET) {
        char name[33] = {0};
        memcpy(name, b->b + cps_fields[CPS_F_PSEUDO_LOAD_ACT_FUNC_SET_table].byte, 32);
        int set = cps_actset_parse(name);
        if (set >= 0)
            c->sets[c->k->core] |= 1u << (set & 31);
    }
}

static void
scan(cps_packer *c)
{
    const cps_kbin *k = c->k;
    if (k->gen > CPS_V2)
        c->features |= CPS_NEFF_DVE_PERF;
    if (k->gen > CPS_V3)
        c->features |= CPS_NEFF_V4;
    if (k->cores > 1)
        c->features |= CPS_NEFF_VNC;
    for (uint32_t i = 0; i < k->descs.n; i++)
        if (CPS_MAX(k->descs.data[i].nfrom, k->descs.data[i].nto) > 2)
            c->features |= CPS_NEFF_HIGH_DIM;
    for (int e = 0; e < CPS_ENGINES; e++)
        for (uint32_t i = 0; i < k->stream[e].code.n; i++)
            scan_record(c, (cps_engine)e, &k->stream[e].code.data[i]);
}

/* ---- which program, which borders ---- */

static void
package_borders(cps_packer *c)
{
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < (pass ? c->p->outputs.n : c->p->inputs.n); i++) {
            const cps_pio *io = pass ? &c->p->outputs.data[i] : &c->p->inputs.data[i];
            const cps_pvar *v = &c->p->vars.data[io->var];
            cps_neff_border x = {io->name, io->name, v->dtype, io->rank, {0}};
            memcpy(x.dim, io->dim, sizeof x.dim);
            for (uint32_t n = 0; pass && n < c->p->inputs.n; n++) // handed through
                if (c->p->inputs.data[n].var == io->var)
                    x.var = c->p->inputs.data[n].name;
            if (pass)
                cps_vec_push(c->a, &c->out, x);
            else
                cps_vec_push(c->a, &c->in, x);
        }
    }
}

/* Those of one core that the core before it does not have. */
static void
kernel_borders(cps_packer *c, const cps_kbin *k, const cps_kbin *before)
{
    for (uint32_t i = 1; i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        if (before && cps_kbin_var(before, v->name) != UINT32_MAX)
            continue;
        cps_neff_border x = {v->name, v->name, v->dtype, v->rank, {0}};
        memcpy(x.dim, v->dim, sizeof x.dim);
        if (v->kind == CPS_VAR_INPUT || v->kind == CPS_VAR_INOUT)
            cps_vec_push(c->a, &c->in, x);
        if (v->kind == CPS_VAR_OUTPUT || v->kind == CPS_VAR_INOUT)
            cps_vec_push(c->a, &c->out, x);
    }
}

static bool
choose(cps_packer *c, const char *kernel)
{
    cps_link link;
    if (!kernel) {
        if (!cps_package_link(c->a, c->p, &link, c->d))
            return false;
        c->first = link.kbin;
        memcpy(c->backings, link.backing, sizeof c->backings);
        package_borders(c);
        return true;
    }
    for (uint32_t i = 0; i < c->p->kernels.n; i++)
        if (!strcmp(c->p->kernels.data[i].name, kernel))
            c->first = c->p->kernels.data[i].kbin;
    if (!c->first) {
        cps_error(c->d, CPS_E8405, CPS_NOSPAN, "the package has no kernel '%s'", kernel);
        cps_help(c->d, "its kernels are the folders under kernels/");
        return false;
    }
    if (c->first->cores != (c->first->peer ? 2 : 1)) {
        cps_error(c->d, CPS_E8405, CPS_NOSPAN, "kernel '%s' is one core's of %d, and the other's is not there",
                  kernel, c->first->cores);
        return false;
    }
    kernel_borders(c, c->first, NULL);
    if (c->first->peer)
        kernel_borders(c, c->first->peer, c->first);
    return true;
}

static void
warn(cps_packer *c)
{
    uint32_t sets = c->sets[0] | c->sets[1], relocs = c->first->relocs.n + (c->first->peer ? c->first->peer->relocs.n : 0);
    if (sets) {
        cps_buf b = {0};
        for (unsigned s = 0; s < 32; s++)
            if (sets >> s & 1)
                cps_buf_printf(&b, "%s%s", b.n ? ", " : "", cps_neff_set_name(c, s));
        cps_error(c->d, CPS_W8408, CPS_NOSPAN,
                  "the container names activation tables and does not hold them: %s", b.data);
        cps_help(c->d,
                 "a device needs the vendor's files for these sets; the simulator does not");
        cps_buf_fini(&b);
    }
    if (relocs) {
        cps_error(c->d, CPS_W8409, CPS_NOSPAN,
                  "addresses inside instructions (%u) stand in copse.json, which the vendor's "
                  "loader does not read",
                  relocs);
        cps_help(
            c->d,
            "they come from transfers whose descriptors the device makes, such as gathers");
    }
}

cps_neff *
cps_neff_pack(cps_arena *a, const cps_package *p, const char *kernel, cps_diags *d)
{
    cps_packer c = {.a = a, .d = d, .p = p, .f = cps_neff_new(a)};
    if (!choose(&c, kernel))
        return NULL;
    for (c.k = c.first; c.k; c.k = c.k->peer)
        scan(&c);
    cps_neff_members(&c);
    if (!kernel && p->graph)
        cps_neff_add(c.f, "graph.cir", p->graph, p->graph_bytes);
    cps_neff_new_head(c.f, kernel ? kernel : *p->model ? p->model : c.first->name, (unsigned)c.first->cores, c.features);
    warn(&c);
    return c.f;
}

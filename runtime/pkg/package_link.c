/* Linking the steps of a package.
 *
 * Streams only grow: branches are relative, and registers and tables are set by each kernel for
 * itself. What is rewritten: block ids (unique per queue), and the variables of descriptors and
 * relocations. Between two steps all engines meet: every engine drains, SP (which has waited
 * for all transfers at the end of its kernel) clears the semaphores, and nobody goes on before
 * that. The barrier is the one around hardware loops (codegen), on three semaphores no kernel
 * uses.
 *
 * Steps of pairs become a pair. Each core has its own program; what the package names is one piece
 * of memory for both, so a core's part of a step reads what the other one's wrote in the step
 * before, and between two steps the cores meet as well (SP, once its engines have arrived). A step
 * of one core is core 0's. */
#include "runtime/pkg/package_link.h"

#include "runtime/base/map.h"

enum { RESERVED = 3, SEMS = 256 }; /* semaphores 0 to 2 are the runtime's (contract) */

typedef struct linker {
    cps_arena *a;
    const cps_package *p;
    int core, cores;
    const struct linker *other; /* core 0's, when this is core 1's */
    cps_kbin *k;
    cps_diags *d;
    uint32_t *var_of; /* kernel variable of each package variable, 0: none yet */
    uint32_t **own;   /* per kernel: its private variables here, NULL: not met yet */
    CPS_VEC(int64_t) backing;
    cps_map names;   /* given out */
    cps_map next_id; /* first free block id, by queue */
    cps_map owner;   /* engine, by queue */
    unsigned first, arrive, go, ack, meet;
    bool ok;
} linker;

static void fail(linker *l, const char *fmt, ...) CPS_PRINTF(2, 3);
static void
fail(linker *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (l->ok)
        cps_verror(l->d, CPS_E8405, CPS_NOSPAN, fmt, ap);
    va_end(ap);
    l->ok = false;
}

/* ---- variables ---- */

/* Names of inputs and outputs come first and stay; private ones give way. `given`: the name is that of
 * the same variable on the other core. */
static uint32_t
add_var(linker *l, cps_kvar *v, int64_t backing, bool given)
{
    const char *want = v->name;
    bool fresh;
    for (unsigned i = 1; *cps_map_at_str(&l->names, v->name, &fresh) = 1, !fresh && !given; i++)
        v->name = cps_arena_printf(l->a, "%s.%u", want, i);
    cps_vec_push(l->a, &l->k->vars, *v);
    cps_vec_push(l->a, &l->backing, backing);
    return l->k->vars.n - 1;
}

/* `name`: of an input or output, else NULL. */
static uint32_t
package_var(linker *l, uint32_t i, const char *name)
{
    const cps_varkind kind[CPS_PKINDS] = {CPS_VAR_INPUT, CPS_VAR_OUTPUT, CPS_VAR_DATA,
                                          l->cores > 1 ? CPS_VAR_SHARED : CPS_VAR_TMP};
    const cps_pvar *p = &l->p->vars.data[i];
    if (l->var_of[i])
        return l->var_of[i];
    bool given = l->other && l->other->var_of[i];
    if (given) // the name by which the cores share it
        name = l->other->k->vars.data[l->other->var_of[i]].name;
    cps_kvar v = {name ? name : p->name,
                  kind[p->kind],
                  p->dtype,
                  p->rank,
                  {0},
                  p->bytes,
                  p->kind == CPS_PV_CONST ? p->data : NULL};
    memcpy(v.dim, p->dim, sizeof v.dim);
    return l->var_of[i] = add_var(
               l, &v, p->kind == CPS_PV_TMP || p->kind == CPS_PV_CONST ? p->offset : -1, given);
}

/* What this core runs of a step's kernel; NULL: nothing. */
static const cps_kbin *
part(const linker *l, const cps_pkernel *pk)
{
    return l->core ? pk->kbin->peer : pk->kbin;
}

/* The kernel's own variable `v`: memory that its cores share has one name on both. */
static uint32_t
own_var(linker *l, const cps_pstep *s, const cps_kvar *v)
{
    const cps_pkernel *pk = &l->p->kernels.data[s->kernel];
    cps_kvar own = *v;
    own.name = cps_arena_printf(l->a, "%s.%s", pk->name, v->name);
    const uint32_t *theirs = l->other ? l->other->own[s->kernel] : NULL;
    uint32_t at = theirs && v->kind == CPS_VAR_SHARED ? cps_kbin_var(pk->kbin, v->name) : UINT32_MAX;
    bool given = at != UINT32_MAX && theirs[at];
    if (given)
        own.name = l->other->k->vars.data[theirs[at]].name;
    return add_var(l, &own, -1, given);
}

/* Where the variables of a step's kernel are: its operands by the arguments, its own beside
 * them. */
static uint32_t *
map_vars(linker *l, const cps_pstep *s)
{
    const cps_pkernel *pk = &l->p->kernels.data[s->kernel];
    const cps_kbin *k = part(l, pk);
    uint32_t *map = cps_new_array(l->a, uint32_t, k->vars.n);
    bool met = l->own[s->kernel] != NULL;
    if (!met)
        l->own[s->kernel] = cps_new_array(l->a, uint32_t, k->vars.n);
    for (uint32_t i = 1; i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        if (v->kind == CPS_VAR_TMP || v->kind == CPS_VAR_DATA || v->kind == CPS_VAR_SHARED) {
            if (!met)
                l->own[s->kernel][i] = own_var(l, s, v);
            map[i] = l->own[s->kernel][i];
            continue;
        }
        const cps_parg *arg = NULL;
        for (uint32_t n = 0; n < s->nargs; n++)
            if (!strcmp(l->p->args.data[s->first + n].formal, v->name))
                arg = &l->p->args.data[s->first + n];
        if (!arg)
            fail(l, "kernel '%s': nothing is given for its operand '%s'", pk->name, v->name);
        else if (l->p->vars.data[arg->var].bytes != v->bytes)
            fail(l, "kernel '%s': operand '%s' has %lld bytes, and '%s' has %lld", pk->name,
                 v->name, (long long)v->bytes, l->p->vars.data[arg->var].name,
                 (long long)l->p->vars.data[arg->var].bytes);
        else
            map[i] = package_var(l, arg->var, NULL);
    }
    return map;
}

/* ---- semaphores ---- */

static void
mark(uint8_t used[SEMS], const cps_bundle *b, cps_field mode, cps_field index)
{
    if (mode == CPS_F_NONE || cps_isa_get(b, mode))
        used[cps_isa_get(b, index) % SEMS] = 1;
}

/* Which semaphores a kernel touches. */
static void
used_semaphores(const cps_kbin *k, uint8_t used[SEMS])
{
    static const struct {
        cps_format format;
        cps_field mode, index;
    } place[] = {
        {CPS_FMT_CTRL_ES, CPS_F_CTRL_ES_wait_mode, CPS_F_CTRL_ES_wait_idx},
        {CPS_FMT_CTRL_ES, CPS_F_CTRL_ES_update_mode, CPS_F_CTRL_ES_update_idx},
        {CPS_FMT_CTRL_ER, CPS_F_NONE, CPS_F_CTRL_ER_first},
        {CPS_FMT_CTRL_ER, CPS_F_NONE, CPS_F_CTRL_ER_last},
        {CPS_FMT_DMA_DIRECT2D, CPS_F_NONE, CPS_F_DMA_DIRECT2D_semaphore},
        {CPS_FMT_DMA_INDIRECT1D, CPS_F_NONE, CPS_F_DMA_INDIRECT1D_semaphore},
        {CPS_FMT_DMA_DIRECT2D_XPOSE, CPS_F_NONE, CPS_F_DMA_DIRECT2D_XPOSE_semaphore},
        {CPS_FMT_DMA_GATHER_XPOSE, CPS_F_NONE, CPS_F_DMA_GATHER_XPOSE_semaphore},
        {CPS_FMT_PSEUDO_DMA_DIRECT2D, CPS_F_NONE, CPS_F_PSEUDO_DMA_DIRECT2D_semaphore},
        {CPS_FMT_PSEUDO_CORE_BARRIER, CPS_F_NONE, CPS_F_PSEUDO_CORE_BARRIER_semaphore},
    };
    for (uint32_t i = 0; i < k->blocks.n; i++)
        used[k->blocks.data[i].semaphore] = 1;
    for (int e = 0; e < CPS_ENGINES; e++) {
        for (uint32_t i = 0; i < k->stream[e].code.n; i++) {
            const cps_bundle *b = &k->stream[e].code.data[i];
            cps_insn x = cps_isa_find(b->b[0], k->gen);
            mark(used, b, CPS_F_EVENTS_wait_mode, CPS_F_EVENTS_wait_idx);
            mark(used, b, CPS_F_EVENTS_update_mode, CPS_F_EVENTS_update_idx);
            for (unsigned r = 0; x != CPS_INSN_NONE && r < cps_countof(place); r++)
                if (cps_insns[x].format == place[r].format)
                    mark(used, b, place[r].mode, place[r].index);
        }
    }
}

static void
choose_semaphores(linker *l)
{
    uint8_t used[SEMS] = {0};
    unsigned more = l->cores > 1 ? 4 : 3;
    for (uint32_t n = 0; n < l->p->kernels.n; n++)
        for (const cps_kbin *k = l->p->kernels.data[n].kbin; k; k = k->peer)
            used_semaphores(k, used);
    unsigned top = RESERVED - 1;
    l->first = 0;
    for (unsigned i = RESERVED; i < SEMS; i++) {
        if (!used[i])
            continue;
        top = i;
        l->first = l->first ? l->first : i;
    }
    if (top + more >= SEMS)
        fail(l,
             "the kernels use semaphores up to %u; the barriers between them need %s more, and there are 256",
             top, more == 4 ? "four" : "three");
    l->arrive = top + 1;
    l->first = l->first ? l->first : l->arrive;
    l->go = top + 2;
    l->ack = top + 3;
    l->meet = top + 4;
}

/* ---- the barrier ---- */

static cps_bundle *
put(linker *l, int e, cps_insn i)
{
    cps_kstream *s = &l->k->stream[e];
    cps_vec_push(l->a, &s->code, cps_isa_new(i, l->k->gen));
    cps_vec_push(l->a, &s->locs, (cps_kloc){0});
    return &s->code.data[s->code.n - 1];
}

/* Waits, or raises semaphore `raise` by one (0: none), or both. */
static void
event(linker *l, int e, unsigned mode, unsigned sem, unsigned value, unsigned raise)
{
    cps_isa_set_event(put(l, e, CPS_INSN_EVENT_SEMAPHORE), mode, sem, value, raise);
}

static void
clear(linker *l, unsigned first, unsigned last)
{
    cps_isa_set_clear(put(l, CPS_SP, CPS_INSN_EVENT_SEMAPHORE_RANGE_CLEAR), first, last);
}

static void
barrier(linker *l, uint32_t number)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        put(l, e, CPS_INSN_DRAIN);
        if (e == CPS_SP)
            continue;
        event(l, e, CPS_WAIT_NONE, 0, 0, l->arrive);
        event(l, e, CPS_WAIT_SEM_GE_IMM, l->go, 1, l->ack);
        event(l, e, CPS_WAIT_SEM_EQ_IMM, l->go, 0, 0);
    }
    event(l, CPS_SP, CPS_WAIT_SEM_GE_IMM, l->arrive, CPS_ENGINES - 1, 0);
    if (l->cores > 1) {
        cps_bundle *b = put(l, CPS_SP, CPS_INSN_PSEUDO_CORE_BARRIER);
        cps_isa_set(b, CPS_F_PSEUDO_CORE_BARRIER_barrier, number % 256);
        cps_isa_set(b, CPS_F_PSEUDO_CORE_BARRIER_semaphore, l->meet);
    }
    clear(l, l->first, l->arrive);
    event(l, CPS_SP, CPS_WAIT_NONE, 0, 0, l->go);
    event(l, CPS_SP, CPS_WAIT_SEM_GE_IMM, l->ack, CPS_ENGINES - 1, 0);
    clear(l, l->go, l->ack);
}

/* ---- steps ---- */

/* Why a stream cannot have another one behind it, or NULL. */
static const char *
ends_itself(const cps_bundle *b, cps_insn i)
{
    switch (i) {
    case CPS_INSN_HALT:
    case CPS_INSN_PSEUDO_INST:
        return "ends its stream itself";
    case CPS_INSN_PSEUDO_FUNCTION_BEGIN:
    case CPS_INSN_PSEUDO_FUNCTION_CALL:
    case CPS_INSN_PSEUDO_FUNCTION_RETURN:
        return "has functions";
    case CPS_INSN_COMPARE_BRANCH:
        return cps_isa_get(b, CPS_F_CTRL_BR_target_mode) == CPS_BR_TARGET_MODE_REGISTER
                   ? "branches to an address in a register"
                   : NULL;
    default:
        return NULL;
    }
}

static void
add_streams(linker *l, const cps_pkernel *pk, const uint32_t *map)
{
    const cps_kbin *k = part(l, pk);
    const cps_field_row *queue = &cps_fields[CPS_F_PSEUDO_DMA_TRIGGER_queue];
    for (uint32_t i = 0; i < k->relocs.n; i++) {
        cps_kreloc r = k->relocs.data[i];
        r.index += l->k->stream[r.engine].code.n;
        r.var = map[r.var];
        cps_vec_push(l->a, &l->k->relocs, r);
    }
    for (uint32_t i = 0; i < k->extents.n; i++) {
        cps_kextent x = k->extents.data[i];
        x.index += l->k->stream[x.engine].code.n;
        x.var = x.var ? map[x.var] : 0;
        cps_vec_push(l->a, &l->k->extents, x);
    }
    for (int e = 0; e < CPS_ENGINES; e++) {
        const cps_kstream *from = &k->stream[e];
        cps_kstream *to = &l->k->stream[e];
        for (uint32_t i = 0; i < from->code.n; i++) {
            cps_bundle b = from->code.data[i];
            cps_insn x = cps_isa_find(b.b[0], k->gen);
            const char *why = l->p->steps.n > 1 ? ends_itself(&b, x) : NULL;
            if (why)
                fail(l, "kernel '%s' %s, so no step can follow it in one program", pk->name,
                     why);
            if (x == CPS_INSN_PSEUDO_DMA_TRIGGER) {
                char name[33] = {0};
                memcpy(name, b.b + queue->byte, 32);
                uint64_t *base = cps_map_find_str(&l->next_id, name);
                uint64_t id = cps_isa_get(&b, CPS_F_PSEUDO_DMA_TRIGGER_block_id);
                cps_isa_set(&b, CPS_F_PSEUDO_DMA_TRIGGER_block_id, id + (base ? *base : 0));
            }
            cps_vec_push(l->a, &to->code, b);
            cps_vec_push(l->a, &to->locs, from->locs.n ? from->locs.data[i] : (cps_kloc){0});
        }
    }
}

static void
add_blocks(linker *l, const cps_pkernel *pk, const uint32_t *map)
{
    const cps_kbin *k = part(l, pk);
    cps_map most;
    cps_map_init(&most, l->a);
    for (uint32_t i = 0; i < k->blocks.n; i++) {
        cps_kblock b = k->blocks.data[i];
        bool fresh;
        uint64_t *owner = cps_map_at_str(&l->owner, b.queue, &fresh);
        if (fresh)
            *owner = (uint64_t)b.owner;
        else if (*owner != (uint64_t)b.owner)
            fail(l, "queue '%s' belongs to different engines in different kernels", b.queue);
        uint64_t *id = cps_map_at_str(&most, b.queue, NULL),
                 *base = cps_map_find_str(&l->next_id, b.queue);
        *id = CPS_MAX(*id, (uint64_t)b.id + 1);
        uint64_t now = b.id + (base ? *base : 0);
        if (now >= UINT32_MAX)
            fail(l, "queue '%s' has too many blocks", b.queue);
        b.id = (uint32_t)now;
        uint32_t first = l->k->descs.n;
        for (uint32_t n = 0; n < b.ndesc; n++) {
            cps_kdesc c = k->descs.data[b.first + n];
            c.from = map[c.from];
            c.to = map[c.to];
            cps_vec_push(l->a, &l->k->descs, c);
        }
        b.first = first;
        cps_vec_push(l->a, &l->k->blocks, b);
    }
    for (uint32_t i = 0; i < most.n; i++)
        *cps_map_at_str(&l->next_id, most.entry[i].str, NULL) += most.entry[i].value;
}

static void
add_stats(cps_kstats *to, const cps_kstats *s)
{
    to->flops += s->flops;
    to->hbm_bytes += s->hbm_bytes;
    to->pe_flops_ps += s->pe_flops_ps;
    for (int e = 0; e < CPS_ENGINES; e++)
        to->engine_min_ps[e] += s->engine_min_ps[e];
    to->sbuf_peak = CPS_MAX(to->sbuf_peak, s->sbuf_peak);
    to->psum_banks = CPS_MAX(to->psum_banks, s->psum_banks);
    to->semaphores = CPS_MAX(to->semaphores, s->semaphores);
}

/* An input or output, under the name by which the runtime binds it. */
static void
border(linker *l, const cps_pio *io)
{
    if (l->var_of[io->var])
        fail(
            l,
            "'%s' and '%s' are one variable, and a container binds each name to one of its own",
            io->name, l->k->vars.data[l->var_of[io->var]].name);
    else if (cps_map_find_str(&l->names, io->name))
        fail(l,
             "two inputs or outputs are called '%s', or one has the name of the state buffer",
             io->name);
    else
        package_var(l, io->var, io->name);
}

/* Inputs, outputs and constants, whether a step touches them or not: the reference graph may. */
static void
add_borders(linker *l)
{
    const cps_package *p = l->p;
    for (uint32_t i = 0; i < p->inputs.n; i++)
        border(l, &p->inputs.data[i]);
    for (uint32_t i = 0; i < p->outputs.n; i++)
        if (p->vars.data[p->outputs.data[i].var].kind != CPS_PV_INPUT) // else it is handed through
            border(l, &p->outputs.data[i]);
    for (uint32_t i = 0; i < p->vars.n; i++)
        if (p->vars.data[i].kind == CPS_PV_CONST)
            package_var(l, i, NULL);
}

/* The same for core 1: its inputs and outputs; constants only as its steps need them, for it has a
 * copy of each. No name of what the cores share is given to anything else. */
static void
follow_borders(linker *l)
{
    for (uint32_t i = 1; i < l->other->k->vars.n; i++) {
        const cps_kvar *v = &l->other->k->vars.data[i];
        if (v->kind != CPS_VAR_TMP && v->kind != CPS_VAR_DATA)
            *cps_map_at_str(&l->names, v->name, NULL) = 1;
    }
    for (uint32_t i = 0; i < l->p->vars.n; i++)
        if (l->other->var_of[i] &&
            (l->p->vars.data[i].kind == CPS_PV_INPUT || l->p->vars.data[i].kind == CPS_PV_OUTPUT))
            package_var(l, i, NULL);
}

/* The program of one core. */
static bool
link_core(linker *l, const cps_kbin *one, uint32_t *barriers)
{
    const cps_package *p = l->p;
    l->ok = true;
    l->k = cps_kbin_new(l->a,
                        p->steps.n == 1 ? one->name
                        : *p->model     ? p->model
                                        : "model",
                        p->target, one->gen);
    l->k->core = l->core;
    l->k->cores = l->cores;
    cps_vec_push(l->a, &l->backing, -1);
    l->var_of = cps_new_array(l->a, uint32_t, p->vars.n + 1);
    l->own = cps_new_array(l->a, uint32_t *, p->kernels.n);
    cps_map_init(&l->next_id, l->a);
    cps_map_init(&l->owner, l->a);
    cps_map_init(&l->names, l->a);
    *cps_map_at_str(&l->names, l->k->vars.data[0].name, NULL) = 1;
    if (l->other)
        follow_borders(l);
    else
        add_borders(l);
    if (p->steps.n > 1)
        choose_semaphores(l);
    for (uint32_t i = 0; i < p->steps.n && l->ok; i++) {
        const cps_pstep *s = &p->steps.data[i];
        if (s->kernel < 0) {
            fail(l, "step %u runs on the host, and a container holds NeuronCore code only", i);
            break;
        }
        const cps_pkernel *pk = &p->kernels.data[s->kernel];
        if (pk->kbin->gen != one->gen)
            fail(l, "kernel '%s' is for another generation", pk->name);
        if (pk->kbin->cores != (pk->kbin->peer ? 2 : 1))
            fail(l, "kernel '%s' is one core's of %d, and the other's is not there", pk->name, pk->kbin->cores);
        const uint32_t *map = part(l, pk) && l->ok ? map_vars(l, s) : NULL;
        if (!l->ok)
            break;
        if (i) {
            barrier(l, i - 1);
            ++*barriers;
        }
        if (!map)
            continue;
        add_streams(l, pk, map);
        add_blocks(l, pk, map);
        add_stats(&l->k->stats, &part(l, pk)->stats);
    }
    l->k->stats.semaphores += *barriers ? (l->cores > 1 ? 4 : 3) : 0;
    return l->ok;
}

bool
cps_package_link(cps_arena *a, const cps_package *p, cps_link *out, cps_diags *d)
{
    linker l[2] = {{.a = a, .p = p, .d = d, .cores = 1, .ok = true}};
    const cps_kbin *one = p->kernels.n ? p->kernels.data[0].kbin : NULL;
    *out = (cps_link){.kbin = NULL};
    if (!one || !p->steps.n) {
        fail(l, "'%s' has no NeuronCore step, and a container is for one", p->model);
        return false;
    }
    for (uint32_t i = 0; i < p->kernels.n; i++)
        l[0].cores = p->kernels.data[i].kbin->peer ? 2 : l[0].cores;
    bool ok = true;
    for (int c = 0; ok && c < l[0].cores; c++) {
        if (c)
            l[1] = (linker){.a = a, .p = p, .d = d, .core = 1, .cores = 2, .other = &l[0]};
        out->barriers = 0;
        ok = link_core(&l[c], one, &out->barriers);
        out->backing[c] = l[c].backing.data;
    }
    out->kbin = l[0].k;
    out->kbin->peer = ok && l[0].cores > 1 ? l[1].k : NULL;
    cps_buf why = {0};
    if (ok && !cps_kbin_check(out->kbin, &why)) {
        fail(&l[0], "the linked program is not sound: %s", why.data);
        ok = false;
    }
    cps_buf_fini(&why);
    return ok;
}

/* Loading a kernel: checks, addresses of HBM variables, relocations, rings, prepared streams;
 * and the life of a machine and its bindings. */
#include "runtime/sim/machine.h"

static cps_sim *
create(const cps_target *t, bool timer, bool proof)
{
    cps_sim *s = calloc(1, sizeof *s);
    if (!s)
        cps_bug("no memory for a machine");
    s->t = t;
    s->timer = timer;
    s->proof = proof;
    s->bare = timer || proof;
    s->race = &s->own_racer;
    s->horizon = INT64_MAX;
    s->load_arena = cps_arena_create();
    s->run_arena = cps_arena_create();
    for (int e = 0; e < CPS_ENGINES; e++)
        s->eng[e].id = (uint8_t)e;
    if (!mem_create(s))
        cps_bug("the target '%s' describes no machine that can be built", t->name);
    return s;
}

cps_sim *
cps_sim_create(const cps_target *t)
{
    return create(t, false, false);
}

cps_sim *
cps_sim_create_timer(const cps_target *t)
{
    return create(t, true, false);
}

cps_sim *
load_for_proof(const cps_target *t)
{
    return create(t, false, true);
}

void
load_drop(cps_sim *s)
{
    for (uint32_t i = 0; i < s->vars.n; i++) {
        hbm_var *v = &s->vars.data[i];
        if (v->home)
            continue; // the other core's
        if (v->v->kind == CPS_VAR_TMP || v->v->kind == CPS_VAR_SHARED)
            free(v->data);
        free(v->init);
    }
    memset(&s->vars, 0, sizeof s->vars);
    memset(&s->queues, 0, sizeof s->queues);
    memset(&s->blocks, 0, sizeof s->blocks);
    memset(&s->heap, 0, sizeof s->heap);
    memset(&s->events, 0, sizeof s->events);
    memset(&s->free_events, 0, sizeof s->free_events);
    s->alike = (cps_isa_seen){0};
    s->rec = NULL;
    s->sbuf_cells = s->psum_cells = NULL;
    for (int e = 0; e < CPS_ENGINES; e++) {
        s->eng[e].code = NULL;
        s->eng[e].n = 0;
    }
    for (int i = 0; i < SEMS; i++)
        s->sem[i].chain = NULL;
    cps_arena_destroy(s->load_arena);
    cps_arena_destroy(s->run_arena);
    s->load_arena = cps_arena_create();
    s->run_arena = cps_arena_create();
    s->k = NULL;
}

void
cps_sim_destroy(cps_sim *s)
{
    if (!s)
        return;
    load_drop(s);
    cps_arena_destroy(s->load_arena);
    cps_arena_destroy(s->run_arena);
    mem_destroy(s);
    free(s);
}

static bool
load_vars(cps_sim *s)
{
    const cps_kbin *k = s->k;
    int64_t total = 0;
    for (uint32_t i = 1; i < k->vars.n; i++) { // sizes are below 2^46 each (cps_kbin_check)
        total += k->vars.data[i].bytes;
        if (total > s->t->hbm_bytes)
            return load_fail(s, NULL, CPS_E8204,
                             "the variables up to '%s' take more than the "
                             "%lld bytes of HBM a core may use",
                             k->vars.data[i].name, (long long)s->t->hbm_bytes);
    }
    for (uint32_t i = 0; i < k->vars.n; i++) {
        hbm_var *v = cps_vec_add(s->load_arena, &s->vars);
        v->v = &k->vars.data[i];
        size_t n = (size_t)v->v->bytes;
        if (v->v->kind == CPS_VAR_DATA) {
            v->data = (uint8_t *)(uintptr_t)v->v->data; // never written: checked per descriptor
            v->bound = v->defined = true;
        } else if ((v->v->kind == CPS_VAR_TMP || v->v->kind == CPS_VAR_SHARED) && !s->bare) {
            v->data = calloc(n ? n : 1, 1);
            v->init = calloc(n ? n : 1, 1);
            v->bound = v->clean = true;
            if (!v->data || !v->init)
                return load_fail(s, NULL, CPS_E8204, "no memory for the %zu bytes of '%s'", n,
                                 v->v->name);
        }
    }
    // Constants, and inputs that no descriptor writes and no instruction addresses as destination.
    for (uint32_t i = 1; i < k->vars.n; i++)
        s->vars.data[i].quiet = k->vars.data[i].kind == CPS_VAR_DATA ||
                                k->vars.data[i].kind == CPS_VAR_INPUT;
    for (uint32_t i = 0; i < k->descs.n; i++)
        s->vars.data[k->descs.data[i].to].quiet = false;
    for (uint32_t i = 0; i < k->relocs.n; i++)
        if (strncmp(cps_fields[k->relocs.data[i].field].name, "src", 3)) // a gather's table stays so
            s->vars.data[k->relocs.data[i].var].quiet = false;
    addr_layout(s);
    return true;
}

/* The SBUF bytes that static operands can reach; everything when an address is in a register.
 */
static void
note_reach(cps_sim *s, const insn *i)
{
    for (unsigned k = 0; k < i->nop; k++) {
        const opnd *o = &i->op[k];
        if (o->reg != 0xFF || o->group)
            s->psum_reach = UINT32_MAX;
        else if (o->psum)
            s->psum_reach |= psum_blocks(o->byte + o->lo, o->byte + o->hi);
        if (o->reg != 0xFF || o->group)
            s->sbuf_hi = s->sbuf_bytes;
        else if (!o->psum && o->byte + o->hi > s->sbuf_hi)
            s->sbuf_hi = (uint32_t)CPS_MIN(o->byte + o->hi, (int64_t)s->sbuf_bytes);
    }
    for (unsigned k = 0; k < i->nsc; k++) {
        if (i->sc[k].mode == SC_REG)
            s->sbuf_hi = s->sbuf_bytes;
        else if (i->sc[k].mode == SC_PTR)
            s->sbuf_hi = (uint32_t)CPS_MIN(CPS_MAX((int64_t)s->sbuf_hi, i->sc[k].at.byte + 4),
                                           (int64_t)s->sbuf_bytes);
    }
    if (i->sem->kind == SEM_SEQ && cps_insns[i->id].timing == CPS_TC_DMA && !i->block)
        s->sbuf_hi = s->sbuf_bytes;
    if (cps_insns[i->id].format == CPS_FMT_MEM_2D)
        s->sbuf_hi = s->sbuf_bytes;
}

static void
relocate(cps_sim *s, int e, uint32_t n, cps_bundle *code)
{
    const cps_kbin *k = s->k;
    for (uint32_t i = 0; i < k->relocs.n; i++) {
        const cps_kreloc *r = &k->relocs.data[i];
        if ((int)r->engine == e && r->index < n)
            cps_isa_set(&code[r->index], (cps_field)r->field,
                        s->vars.data[r->var].addr + (uint64_t)r->addend);
    }
}

static bool
load_stream(cps_sim *s, int e)
{
    const cps_kstream *st = &s->k->stream[e];
    engine *en = &s->eng[e];
    uint32_t n = st->code.n;
    if (n == 0)
        return true;
    cps_bundle *code = cps_arena_raw(s->load_arena, (size_t)n * sizeof *code);
    memcpy(code, st->code.data, (size_t)n * sizeof *code);
    relocate(s, e, n, code);
    // where a line of the host's cache begins
    uint8_t *room = cps_arena_raw(s->load_arena, (size_t)n * sizeof(insn) + _Alignof(insn));
    en->code = (insn *)(void *)(room + (0 - (uintptr_t)room) % _Alignof(insn));
    en->n = n;
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        insn *x = &en->code[i];
        *x = (insn){.index = i, .core = (uint16_t)s->core};
        if (!s->verified && !cps_isa_verify(&st->code.data[i], s->k->gen, (cps_engine)e, s->d, CPS_NOSPAN)) {
            const cps_kloc *at = st->locs.n ? &st->locs.data[i] : NULL;
            cps_note(s->d, CPS_NOSPAN, "this is %s[%u]%s%s", cps_engine_name((cps_engine)e), i,
                     at && at->file ? " of " : "", at && at->file ? at->file : "");
            ok = false;
            continue;
        }
        if (!prep_insn(s, en, x, &code[i])) {
            ok = false;
            continue;
        }
        note_reach(s, x);
    }
    return ok;
}

static queue *
queue_of(cps_sim *s, const char *name, unsigned owner)
{
    for (uint32_t i = 0; i < s->queues.n; i++) {
        if (strcmp(s->queues.data[i].name, name) == 0)
            return &s->queues.data[i];
    }
    queue *q = cps_vec_add(s->load_arena, &s->queues);
    q->name = name;
    q->owner = (uint8_t)owner;
    return q;
}

uint16_t
load_queue(cps_sim *s, const char *name)
{
    return (uint16_t)(queue_of(s, name, CPS_ENGINES) - s->queues.data);
}

static bool
side_of(cps_sim *s, side *x, uint32_t var, int64_t off, int n, const int64_t *step,
        const int64_t *size)
{
    x->var = var;
    x->addr = var == 0 ? addr_of_sb(off) : s->vars.data[var].addr + (uint64_t)off;
    x->nd = n;
    for (int d = 0; d < n; d++) {
        x->step[d] = step[d];
        x->size[d] = size[d];
    }
    return true;
}

static bool
load_blocks(cps_sim *s)
{
    const cps_kbin *k = s->k;
    cps_map_init(&s->block_of, s->load_arena);
    // One implicit queue per engine for descriptors made by DGE instructions.
    for (int e = 0; e < CPS_ENGINES; e++)
        queue_of(s, cps_arena_printf(s->load_arena, "dge_%s", cps_engine_name((cps_engine)e)),
                 (unsigned)e);
    for (uint32_t i = 0; i < k->blocks.n; i++) {
        const cps_kblock *kb = &k->blocks.data[i];
        queue *q = queue_of(s, kb->queue, kb->owner);
        if (q->owner != kb->owner)
            return load_fail(s, NULL, CPS_E8203, "queue '%s' belongs to %s and to %s", q->name,
                             cps_engine_name((cps_engine)q->owner), cps_engine_name(kb->owner));
        if (s->queues.n > CPS_ENGINES + (uint32_t)s->t->dma_queues)
            return load_fail(s, NULL, CPS_E8203,
                             "'%s' is queue %u; a DMA engine has %lld rings "
                             "for a kernel",
                             q->name, s->queues.n - CPS_ENGINES, (long long)s->t->dma_queues);
        block *b = block_new(s, s->load_arena);
        b->queue = (uint16_t)(q - s->queues.data);
        b->id = kb->id;
        b->semaphore = kb->semaphore;
        b->increment = (uint8_t)s->t->dma_engines;
        for (uint32_t d = 0; d < kb->ndesc; d++) {
            const cps_kdesc *c = &k->descs.data[kb->first + d];
            item it = {.op = c->op,
                       .from_dtype = (uint8_t)c->from_dtype,
                       .to_dtype = (uint8_t)c->to_dtype,
                       .elem = c->elem,
                       .rows = c->rows,
                       .cols = c->cols};
            if (c->op == CPS_DESC_ADD)
                it.alu = CPS_DGE_COMPUTE_OP_ADD;
            side_of(s, &it.from, c->from, c->from_off, c->nfrom, c->from_step, c->from_size);
            side_of(s, &it.to, c->to, c->to_off, c->nto, c->to_step, c->to_size);
            if (!block_add(s, b, &it, NULL)) {
                cps_note(s->d, CPS_NOSPAN, "this is block %u of queue '%s', descriptor %u",
                         kb->id, kb->queue, d);
                return false;
            }
        }
        block_close(s, b);
        *cps_map_at(&s->block_of, (uint64_t)b->queue << 32 | b->id, NULL) = s->blocks.n;
        cps_vec_push(s->load_arena, &s->blocks, b);
    }
    return true;
}

bool
cps_sim_load(cps_sim *s, const cps_kbin *k, cps_diags *d)
{
    s->d = d;
    load_drop(s);
    s->k = k;
    s->sbuf_hi = 0;
    s->psum_reach = 0;
    cps_buf why = {0};
    bool ok = cps_kbin_check(k, &why);
    if (!ok)
        cps_error(d, CPS_E8012, CPS_NOSPAN, "kernel '%s': %s", k->name, why.data);
    cps_buf_fini(&why);
    if (ok && k->gen != s->t->gen)
        ok = load_fail(s, NULL, CPS_E8201, "kernel '%s' is for %s (%s), the machine is %s",
                       k->name, k->target, cps_gen_name(k->gen), s->t->name);
    cps_isa_seen_init(&s->alike, s->load_arena);
    ok = ok && load_vars(s) && load_blocks(s);
    for (int e = 0; ok && e < CPS_ENGINES; e++)
        ok = load_stream(s, e);
    if (ok)
        extent_load(s);
    if (ok && !mem_fit(s))
        ok = load_fail(s, NULL, CPS_E8204, "no memory for SBUF");
    if (!ok)
        load_drop(s);
    s->d = NULL;
    return ok;
}

bool
cps_sim_bind(cps_sim *s, const char *name, void *data, size_t bytes, bool defined, cps_diags *d)
{
    for (uint32_t i = 1; i < s->vars.n; i++) {
        hbm_var *v = &s->vars.data[i];
        if (strcmp(v->v->name, name) != 0)
            continue;
        if (v->v->kind == CPS_VAR_DATA || v->v->kind == CPS_VAR_TMP || v->v->kind == CPS_VAR_SHARED) {
            cps_error(d, CPS_E8204, CPS_NOSPAN, "'%s' is the kernel's own", name);
            return false;
        }
        if (bytes != (size_t)v->v->bytes) {
            cps_error(d, CPS_E8204, CPS_NOSPAN, "'%s' has %lld bytes, not %zu", name,
                      (long long)v->v->bytes, bytes);
            return false;
        }
        v->data = data;
        v->bound = true;
        v->defined = defined;
        v->clean = true;
        free(v->init);
        v->init = defined ? NULL : calloc(bytes ? bytes : 1, 1);
        if (!defined && !v->init) {
            cps_error(d, CPS_E8204, CPS_NOSPAN, "no memory to watch the %zu bytes of '%s'",
                      bytes, name);
            return false;
        }
        return true;
    }
    cps_error(d, CPS_E8204, CPS_NOSPAN, "kernel '%s' has no variable '%s'",
              s->k ? s->k->name : "(none)", name);
    return false;
}

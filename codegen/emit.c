/* Emission: the machine program becomes streams, relocations and source places.
 *
 * The first wait of an operation is in its bundle already; further ones become EVENT_SEMAPHORE
 * records before it. Branch distances are counted in records from the branch itself (the unit
 * is not documented; runtime builders write such small numbers). */
#include "codegen/isa/seen.h"
#include "codegen/pass.h"
#include "runtime/base/map.h"

typedef struct emit {
    cps_cg *g;
    cps_mprog *p;
    cps_map places; // (file, begin) -> place + 1
    CPS_VEC(cps_kloc) locs;
    cps_isa_seen seen; // bundles that keep to the rules
} emit;

static cps_kloc
place(emit *e, cps_span at)
{
    if (!at.file)
        return (cps_kloc){0};
    bool fresh;
    uint64_t *v = cps_map_at(&e->places, (uint64_t)at.file << 32 | at.begin, &fresh);
    if (fresh) {
        cps_kloc l = {.file = cps_diags_source_name(e->g->d, at.file)};
        if (l.file) {
            l.file = cps_arena_strdup(e->g->arena, l.file);
            cps_diags_locate(e->g->d, at, &l.line, &l.col);
        }
        cps_vec_push(e->g->arena, &e->locs, l);
        *v = e->locs.n;
    }
    return e->locs.data[*v - 1];
}

static bool
verify(emit *e, const cps_mop *m, const cps_bundle *b)
{
    return !e->g->o.verify ||
           cps_isa_verify_again(&e->seen, b, e->g->t->gen, (cps_engine)m->engine, e->g->d, m->loc);
}

static bool
put(emit *e, const cps_mop *m, const cps_bundle *b)
{
    cps_kstream *s = &e->p->k->stream[m->engine];
    cps_vec_push(e->g->arena, &s->code, *b);
    cps_vec_push(e->g->arena, &s->locs, place(e, m->loc));
    return (m->target && b == &m->code) || verify(e, m, b); // a branch has no distance yet
}

// What the address in a register of the next bundle may reach.
static void
extent(emit *e, const cps_mop *m, const cps_mextent *x)
{
    const cps_tbuf *b = &e->g->f->bufs.data[x->buf];
    cps_kextent o = {.engine = (cps_engine)m->engine,
                     .index = e->p->k->stream[m->engine].code.n,
                     .field = x->field};
    if (b->space == CPS_HBM) {
        o.var = e->p->var[x->buf];
    } else {
        o.name = b->name;
        o.psum = b->space == CPS_PSUM;
        o.part = b->part;
        o.parts = (uint16_t)b->dim[0];
        o.byte = b->byte;
        o.bytes = (uint32_t)cps_tbuf_bytes(b);
    }
    cps_vec_push(e->g->arena, &e->p->k->extents, o);
}

bool
cps_pass_emit(cps_cg *g, cps_mprog *p)
{
    emit e = {.g = g, .p = p};
    cps_map_init(&e.places, g->arena);
    cps_isa_seen_init(&e.seen, g->arena);
    bool ok = true;
    uint32_t records[CPS_ENGINES] = {0};
    for (uint32_t i = 0; i < p->ops.n; i++)
        records[p->ops.data[i].engine] += CPS_MAX(p->ops.data[i].nwait, 1);
    for (int i = 0; i < CPS_ENGINES; i++) {
        cps_vec_reserve(g->arena, &p->k->stream[i].code, records[i]);
        cps_vec_reserve(g->arena, &p->k->stream[i].locs, records[i]);
    }
    uint32_t *at[CPS_ENGINES]; // record of each label, per engine
    for (int i = 0; i < CPS_ENGINES; i++)
        at[i] = cps_new_array(g->arena, uint32_t, p->labels + 1);
    for (uint32_t i = 0; i < p->ops.n; i++) {
        const cps_mop *m = &p->ops.data[i];
        cps_kstream *s = &p->k->stream[m->engine];
        if (m->label)
            at[m->engine][m->label] = s->code.n;
        for (uint32_t k = 1; k < m->nwait; k++) {
            cps_mwait w = p->waits.data[m->wait + k];
            cps_bundle b = cps_isa_new(CPS_INSN_EVENT_SEMAPHORE, g->t->gen);
            cps_isa_set(&b, CPS_F_CTRL_ES_wait_mode, CPS_WAIT_SEM_GE_IMM);
            cps_isa_set(&b, CPS_F_CTRL_ES_wait_idx, w.sem);
            cps_isa_set(&b, CPS_F_CTRL_ES_sem_wait_value, w.value);
            ok &= put(&e, m, &b);
        }
        for (uint32_t k = 0; k < m->nreloc; k++) {
            const cps_mreloc *r = &p->relocs.data[m->reloc + k];
            cps_kreloc o = {.engine = (cps_engine)m->engine,
                            .index = s->code.n,
                            .field = r->field,
                            .var = r->var,
                            .addend = r->addend};
            cps_vec_push(g->arena, &p->k->relocs, o);
        }
        for (uint32_t k = 0; k < m->nextent; k++)
            extent(&e, m, &p->extents.data[m->extent + k]);
        ok &= put(&e, m, &m->code);
    }
    // Branches know their distance once all labels stand.
    uint32_t next[CPS_ENGINES] = {0};
    for (uint32_t i = 0; i < p->ops.n; i++) {
        const cps_mop *m = &p->ops.data[i];
        next[m->engine] += m->nwait > 1 ? m->nwait : 1;
        if (m->target) {
            uint32_t here = next[m->engine] - 1;
            int64_t d = (int64_t)at[m->engine][m->target] - (int64_t)here;
            cps_bundle *b = &p->k->stream[m->engine].code.data[here];
            cps_isa_set(b, CPS_F_CTRL_BR_branch, (uint64_t)d);
            ok &= verify(&e, m, b);
        }
    }
    p->k->stats.semaphores = p->semaphores;
    return ok;
}

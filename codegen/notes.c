/* The notes of a kernel (notes.h), from the machine program after emission. Records are counted
 * as emit.c writes them: the waits of an operation beyond its first, then the operation. */
#include "codegen/pass.h"

#include "codegen/notes.h"

static void
note_places(cps_cg *g, cps_notes *n, uint32_t *place)
{
    for (uint32_t i = 1; i < g->f->bufs.n; i++) {
        const cps_tbuf *b = &g->f->bufs.data[i];
        if (!b->placed || (b->space != CPS_SBUF && b->space != CPS_PSUM))
            continue;
        cps_nplace p = {.psum = b->space == CPS_PSUM,
                        .dtype = b->dtype,
                        .rank = b->rank,
                        .part = b->part,
                        .byte = b->byte,
                        .bytes = cps_tbuf_bytes(b)};
        p.name = cps_arena_printf(g->keep, "%s.%u", b->name, i);
        for (int k = 0; k < b->rank; k++)
            p.dim[k] = b->dim[k];
        place[i] = n->places.n + 1;
        cps_vec_push(g->keep, &n->places, p);
    }
}

void
cps_notes_fill(cps_cg *g, const cps_mprog *p, cps_notes *n)
{
    uint32_t *place = cps_new_array(g->arena, uint32_t, g->f->bufs.n);
    cps_ndep *at = cps_new_array(g->arena, cps_ndep, p->op_ids + 1); // record of each operation
    note_places(g, n, place);
    for (uint32_t i = 0; i < p->ops.n; i++) {
        const cps_mop *m = &p->ops.data[i];
        cps_nrecord r = {.order = i, .ref = n->refs.n, .dep = n->deps.n};
        for (uint32_t k = 1; k < m->nwait; k++)
            cps_vec_push(g->keep, &n->record[m->engine], r);
        for (uint32_t k = 0; k < m->nacc; k++) {
            const cps_macc *a = &p->accs.data[m->acc + k];
            if (a->space != CPS_HBM && place[a->buf])
                cps_vec_push(g->keep, &n->refs, place[a->buf] - 1);
        }
        for (uint32_t k = 0; k < m->ndep; k++) {
            cps_ndep d = at[p->deps.data[m->dep + k].op];
            d.kind = p->deps.data[m->dep + k].kind;
            cps_vec_push(g->keep, &n->deps, d);
        }
        r.nref = n->refs.n - r.ref;
        r.ndep = n->deps.n - r.dep;
        if (m->id)
            at[m->id - 1] = (cps_ndep){.engine = m->engine, .index = n->record[m->engine].n};
        cps_vec_push(g->keep, &n->record[m->engine], r);
    }
}

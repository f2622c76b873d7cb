/* Check: afterwards ids, counts, operand kinds and bounds are in range, which is what the
 * passes rely on without looking again. It is not the verifier of the tile level (that states
 * rules and reasons for people); it only keeps a program that skipped the verifier from doing
 * harm. */
#include "codegen/legal.h"

static bool
bad(cps_cg *g, uint32_t inst, const char *what)
{
    const cps_tinst *x = &g->f->insts.data[inst];
    const char *name = x->op < CPS_TOPS && x->op > CPS_T_NONE ? cps_tops[x->op].name : "?";
    cps_error(g->d, CPS_E5301, x->loc, "instruction %u ('%s') is malformed: %s", inst, name,
              what);
    return false;
}

// The walk of a view stays inside its buffer; what a register or an index moves is the run's
// business.
static const char *
view_fault(const cps_tfunc *f, uint32_t id)
{
    if (id >= f->views.n)
        return "no such view";
    const cps_tview *v = &f->views.data[id];
    if (!v->buf || v->buf >= f->bufs.n)
        return "a view of no buffer";
    const cps_tbuf *b = &f->bufs.data[v->buf];
    if (v->dtype <= CPS_DT_NONE || v->dtype >= CPS_DT_COUNT || b->dtype >= CPS_DT_COUNT)
        return "a view without a type";
    if (b->space == CPS_REG)
        return "a view of a register";
    if (b->rank < (b->space == CPS_HBM ? 0 : 1) || b->rank > CPS_MAX_RANK)
        return "a buffer of bad rank";
    if (v->nd < 0 || v->nd > CPS_TILE_DIMS)
        return "a view of too many axes";
    if (v->reg && (v->reg >= f->bufs.n || f->bufs.data[v->reg].space != CPS_REG))
        return "a view moved by no register";
    if (v->index && v->index > f->views.n)
        return "a view with no index tile";
    if (b->space != CPS_HBM && (!v->parts || v->part + v->parts > b->dim[0] || b->dim[0] > 128))
        return "partitions outside the tile";
    int64_t lo = v->off, hi = v->off, bytes = cps_tbuf_bytes(b), es = cps_dtype_bytes(v->dtype);
    for (int k = 0; k < v->nd; k++) {
        int64_t far;
        if (v->d[k].num < 1 || __builtin_mul_overflow(v->d[k].step, v->d[k].num - 1, &far) ||
            __builtin_add_overflow(far < 0 ? lo : hi, far, far < 0 ? &lo : &hi))
            return "an empty or endless axis";
    }
    if (!v->reg && !v->index && (lo < 0 || hi >= bytes / es))
        return "a view outside its buffer";
    return NULL;
}

static const char *
operand_fault(const cps_tfunc *f, cps_toper o, char role)
{
    if (o.kind == CPS_TO_VIEW) {
        const char *why = view_fault(f, o.id);
        if (why)
            return why;
        const cps_tview *v = &f->views.data[o.id];
        return v->index ? view_fault(f, v->index - 1) : NULL;
    }
    if (o.kind == CPS_TO_REG)
        return o.id && o.id < f->bufs.n && f->bufs.data[o.id].space == CPS_REG
                   ? NULL
                   : "no such register";
    return strchr("dwv1", role) ? "a number where a tile must be" : NULL;
}

static const char *
inst_fault(const cps_tfunc *f, const cps_tinst *x)
{
    if (x->op <= CPS_T_NONE || x->op >= CPS_TOPS)
        return "no such instruction";
    const cps_toprow *row = &cps_tops[x->op];
    const cps_lower_row *low = &cps_lower[x->op];
    if (x->nout < row->nout_min || x->nout > row->nout_max || x->nin < row->nin_min ||
        x->nin > row->nin_max || x->nout > 2 || x->nin > 3)
        return "wrong number of operands";
    for (int k = 0; k < x->nout; k++) {
        char role = low->shape == CPS_SHAPE_SEQ ? 'r' : 'd';
        if (role == 'r' && x->out[k].kind != CPS_TO_REG)
            return "the result must be a register";
        const char *why = operand_fault(f, x->out[k], role);
        if (why)
            return why;
    }
    for (int k = 0; k < x->nin; k++) {
        char role = (size_t)k < strlen(low->ins) ? low->ins[k] : 'd';
        if (low->shape == CPS_SHAPE_SEQ && role == 'i' && x->in[k].kind == CPS_TO_VIEW)
            return "a tile where a number or register must be";
        const char *why = operand_fault(f, x->in[k], role);
        if (why)
            return why;
    }
    static const cps_tattr_key lists[] = {CPS_TA_PATTERN, CPS_TA_MASK};
    for (size_t k = 0; k < cps_countof(lists); k++)
        if (x->set >> lists[k] & 1) {
            uint32_t id = (uint32_t)x->attr[lists[k]];
            if (id >= f->lists.n || f->lists.data[id].n < 0 || f->lists.data[id].n > 32)
                return "no such list";
        }
    return NULL;
}

bool
cps_pass_check(cps_cg *g)
{
    int depth = 0;
    for (uint32_t i = 0; i < g->f->insts.n; i++) {
        const cps_tinst *x = &g->f->insts.data[i];
        const char *why = inst_fault(g->f, x);
        if (why)
            return bad(g, i, why);
        depth += (x->op == CPS_T_LOOP || x->op == CPS_T_WHEN) - (x->op == CPS_T_END);
        if (depth < 0 || (x->op == CPS_T_ELSE && depth == 0))
            return bad(g, i, "nothing is open here");
    }
    if (depth)
        return bad(g, g->f->insts.n - 1, "a loop or branch is not closed");
    return true;
}

/* Scalars of instructions: a number in the bundle, or a column that the engine reads by a
 * pointer.
 *
 * A pointer holds the byte offset in the partition and starts where the data starts, so the
 * column must lie in SBUF, in the first partition of the data and in the type the instruction
 * takes: fp32 for arithmetic, the data's own for bitwise operators. Other columns are converted
 * into a private one, once for as long as neither changes. Activation on v2 has no bias number:
 * a constant column stands in for it, made once at the front of the kernel. */
#include "codegen/legal.h"

static uint32_t
new_view(cps_legal *l, const cps_tview *v)
{
    cps_vec_push(l->f->arena, &l->f->views, *v);
    return l->f->views.n - 1;
}

cps_tview
cps_legal_constcol(cps_legal *l, float value, unsigned start, unsigned parts, cps_span loc)
{
    uint32_t bits = cps_f32_bits(value), buf = 0;
    for (uint32_t i = 0; i < l->consts.n; i++)
        if (l->consts.data[i].bits == bits)
            buf = l->consts.data[i].buf;
    if (!buf) {
        cps_tview v = cps_legal_temp(l, "c_const", CPS_DT_FP32, 0, 128, 1, loc);
        buf = v.buf;
        cps_tinst x = {.op = CPS_T_MEMSET,
                       .engine = CPS_POOL,
                       .nout = 1,
                       .nin = 1,
                       .round = -1,
                       .stage = -1,
                       .loc = loc};
        x.out[0] = cps_to_view(new_view(l, &v));
        x.in[0] = cps_to_imm(value);
        cps_vec_push(l->g->arena, &l->head, x);
        cps_vec_push(l->g->arena, &l->consts, ((cps_constcol){bits, buf}));
    }
    cps_tview v = {.buf = buf,
                   .dtype = CPS_DT_FP32,
                   .part = (uint16_t)start,
                   .parts = (uint16_t)parts,
                   .nd = 1};
    v.d[0] = (cps_tdim){1, 1};
    return v;
}

static bool
same_view(const cps_tview *a, const cps_tview *b)
{
    return a->buf == b->buf && a->dtype == b->dtype && a->part == b->part &&
           a->parts == b->parts && a->off == b->off && a->reg == b->reg &&
           a->reg_step == b->reg_step;
}

// The column `v` as `want` in SBUF from partition `start`.
static uint32_t
convert(cps_legal *l, const cps_tinst *x, uint32_t view, cps_dtype want, unsigned start)
{
    cps_tview v = l->f->views.data[view];
    uint32_t version = l->version.data[v.buf];
    for (uint32_t i = 0; i < l->columns.n; i++) {
        cps_column *c = &l->columns.data[i];
        if (c->version == version && c->want == want && c->start == start &&
            same_view(&c->src, &v))
            return c->view;
    }
    cps_tview t = cps_legal_temp(l, "c_col", want, start, v.parts, 1, x->loc);
    uint32_t to = new_view(l, &t);
    cps_tinst y = {.op = CPS_T_COPY,
                   .engine = CPS_DVE,
                   .nout = 1,
                   .nin = 1,
                   .round = x->round,
                   .stage = x->stage,
                   .priority = x->priority,
                   .loc = x->loc};
    y.out[0] = cps_to_view(to);
    y.in[0] = cps_to_view(view);
    cps_legal_emit(l, &y);
    cps_column c = {
        .src = v, .start = (uint16_t)start, .want = want, .version = version, .view = to};
    cps_vec_push(l->g->arena, &l->columns, c);
    return to;
}

static bool
scalar(cps_legal *l, cps_tinst *x, int i, const cps_tview *main)
{
    cps_toper *o = &x->in[i];
    bool bias = x->op == CPS_T_ACTIVATION && i == 2;
    unsigned start = cps_legal_start(l->f, main);
    if (o->kind == CPS_TO_NONE)
        *o = cps_to_imm(x->op == CPS_T_ACTIVATION && i == 1 ? 1.0f : 0.0f);
    if (o->kind == CPS_TO_IMM) {
        if (bias && !l->g->t->act_imm_bias) {
            float v = o->is_int ? (float)o->ival : o->imm;
            cps_tview c = cps_legal_constcol(l, v, start, main->parts, x->loc);
            *o = cps_to_view(new_view(l, &c));
        }
        return true;
    }
    if (o->kind == CPS_TO_REG) {
        cps_error(l->g->d, CPS_E5303, x->loc, "operand %d of '%s' cannot be a register", i,
                  cps_tops[x->op].name);
        cps_help(l->g->d, "keep the value in a [p,1] tile");
        return false;
    }
    const cps_tview *v = &l->f->views.data[o->id];
    if (cps_tview_elems(v) != 1 || v->parts != main->parts) {
        cps_error(l->g->d, CPS_E5303, x->loc,
                  "operand %d of '%s' must be one value in each of %u partitions", i,
                  cps_tops[x->op].name, main->parts);
        return false;
    }
    cps_dtype want = CPS_DT_FP32;
    if (x->op == CPS_T_TENSOR_SCALAR || x->op == CPS_T_STT)
        if (cps_alu_class_of((unsigned)cps_tinst_get(x, CPS_TA_OP0, 0), l->g->t->gen) ==
            CPS_ALUC_BITVEC)
            want = main->dtype;
    bool good = l->f->bufs.data[v->buf].space == CPS_SBUF && v->dtype == want && !v->reg &&
                cps_legal_start(l->f, v) == start;
    if (!good)
        o->id = convert(l, x, o->id, want, start);
    return true;
}

bool
cps_legal_scalars(cps_legal *l, cps_tinst *x)
{
    const char *roles = cps_lower[x->op].ins;
    const cps_tview *main = NULL;
    for (int i = 0; i < x->nin && roles[i]; i++)
        if (strchr("dw", roles[i]) && x->in[i].kind == CPS_TO_VIEW) {
            main = &l->f->views.data[x->in[i].id];
            break;
        }
    for (int i = 0; i < x->nin && roles[i]; i++) {
        if (roles[i] == 'i' && x->in[i].kind == CPS_TO_VIEW) {
            cps_error(l->g->d, CPS_E5303, x->loc, "operand %d of '%s' must be a number", i,
                      cps_tops[x->op].name);
            return false;
        }
        if (roles[i] != 's' || !main)
            continue;
        cps_tview m = *main; // views move when they grow
        if (!scalar(l, x, i, &m))
            return false;
        for (int k = 0; k < x->nin; k++)
            if (strchr("dw", roles[k]) && x->in[k].kind == CPS_TO_VIEW) {
                main = &l->f->views.data[x->in[k].id];
                break;
            }
    }
    return true;
}

/* The tile evaluator's driver: one program on one core, in order, on host memory. On-chip
 * buffers come into being at first use and go after their last, so unrolled programs of many
 * tiles stay small. A program is checked for structure first; a mistake found while running
 * (something read before it was written, an index outside) ends the run. Engines' arithmetic is
 * in tile_alu.c. */
#include "ir/tile_eval.h"

#include "codegen/isa/target.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_STEPS (UINT64_C(1) << 26)

bool
cps_te_fail(cps_te *e, cps_code code, const char *fmt, ...)
{
    char text[384];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cps_error(e->d, code, e->x->loc, "'%s' (instruction %u): %s", cps_tops[e->x->op].name,
              (unsigned)(e->x - e->f->insts.data), text);
    return false;
}

/* ---- plan: where blocks end, when buffers go ---- */

typedef struct plan {
    uint32_t *match;  // LOOP, WHEN: their END; ELSE: its END; END: what it closes
    uint32_t *branch; // WHEN: its ELSE or END
    uint32_t *first;  // per instruction: first buffer whose last use it is
    uint32_t *next;   // per buffer: next of the same instruction
} plan;

static void
pair_blocks(const cps_tfunc *f, plan *p)
{
    uint32_t open[64], n = 0; // depth was checked
    for (uint32_t i = 0; i < f->insts.n; i++) {
        uint16_t op = f->insts.data[i].op;
        if (op == CPS_T_LOOP || op == CPS_T_WHEN) {
            open[n++] = i;
            p->branch[i] = 0;
        } else if (op == CPS_T_ELSE) {
            p->branch[open[n - 1]] = i;
        } else if (op == CPS_T_END) {
            uint32_t o = open[--n];
            p->match[o] = i;
            p->match[i] = o;
            if (p->branch[o])
                p->match[p->branch[o]] = i;
            else
                p->branch[o] = i;
        }
    }
}

static void
use(const cps_tfunc *f, const cps_toper *o, uint32_t when, uint32_t *last)
{
    if (o->kind != CPS_TO_VIEW)
        return;
    const cps_tview *v = &f->views.data[o->id];
    last[v->buf] = when;
    if (v->index)
        last[f->views.data[v->index - 1].buf] = when;
}

// A use inside a loop lasts to the end of the outermost one.
static void
plan_lives(const cps_tfunc *f, plan *p, uint32_t *last)
{
    uint32_t until = 0;
    for (uint32_t i = 0; i < f->insts.n; i++) {
        const cps_tinst *x = &f->insts.data[i];
        if (x->op == CPS_T_LOOP && p->match[i] > until)
            until = p->match[i];
        uint32_t when = CPS_MAX(i, until);
        for (int k = 0; k < x->nout; k++)
            use(f, &x->out[k], when + 1, last);
        for (int k = 0; k < x->nin; k++)
            use(f, &x->in[k], when + 1, last);
    }
    for (uint32_t b = 1; b < f->bufs.n; b++)
        if (last[b]) {
            p->next[b] = p->first[last[b] - 1];
            p->first[last[b] - 1] = b;
        }
}

/* ---- control ---- */

bool
cps_te_int(cps_te *e, const cps_toper *o, int32_t *out)
{
    if (o->kind == CPS_TO_REG) {
        if (!e->reg_set[o->id])
            return cps_te_fail(e, CPS_E8101, "reads register %u before it was set", o->id);
        *out = e->reg[o->id];
    } else {
        *out = o->is_int ? (int32_t)o->ival : (int32_t)o->imm;
    }
    return true;
}

static void
set_reg(cps_te *e, const cps_toper *o, int32_t v)
{
    e->reg[o->id] = v;
    e->reg_set[o->id] = true;
}

static bool
reg_load(cps_te *e)
{
    cps_teat at;
    int64_t v;
    if (!cps_te_at(e, &e->x->in[0], &at) || !cps_te_load_i64(e, &at, 0, &v))
        return false;
    set_reg(e, &e->x->out[0], (int32_t)(uint32_t)v);
    return true;
}

static bool
reg_alu(cps_te *e)
{
    int32_t a, b;
    if (!cps_te_int(e, &e->x->in[0], &a) || !cps_te_int(e, &e->x->in[1], &b))
        return false;
    unsigned op = (unsigned)cps_tinst_get(e->x, CPS_TA_OP0, CPS_ALU_ADD);
    set_reg(e, &e->x->out[0], (int32_t)(uint32_t)cps_alu_int(op, a, b));
    return true;
}

typedef struct loop {
    uint32_t at;
    int32_t i, end;
} loop;

// Sequencer instructions; *pc moves on. `freed` says whether buffers may go at this
// instruction.
static bool
control(cps_te *e, const plan *p, loop *loops, int *depth, uint32_t *pc, bool *freed)
{
    const cps_tinst *x = e->x;
    int32_t a = 0, b = 0;
    uint32_t at = *pc;
    *pc = at + 1;
    switch (x->op) {
    case CPS_T_REG_LOAD:
        return reg_load(e);
    case CPS_T_REG_MOVE:
        if (!cps_te_int(e, &x->in[0], &a))
            return false;
        set_reg(e, &x->out[0], a);
        return true;
    case CPS_T_REG_ALU:
        return reg_alu(e);
    case CPS_T_LOOP:
    case CPS_T_WHEN:
        if (!cps_te_int(e, &x->in[0], &a) || !cps_te_int(e, &x->in[1], &b))
            return false;
        if (x->op == CPS_T_WHEN) {
            if (!cps_alu_compare((unsigned)cps_tinst_get(x, CPS_TA_OP0, 0), a, b))
                *pc = p->branch[at] + 1;
            return true;
        }
        if (a >= b) {
            *pc = p->match[at] + 1;
            return true;
        }
        loops[(*depth)++] = (loop){at, a, b};
        set_reg(e, &x->out[0], a);
        return true;
    case CPS_T_ELSE: // reached from the branch taken
        *pc = p->match[at] + 1;
        return true;
    case CPS_T_END: {
        uint32_t o = p->match[at];
        if (e->f->insts.data[o].op != CPS_T_LOOP)
            return true;
        loop *l = &loops[*depth - 1];
        if (++l->i < l->end) {
            set_reg(e, &e->f->insts.data[o].out[0], l->i);
            *pc = o + 1;
            *freed = false;
        } else {
            --*depth;
        }
        return true;
    }
    default: // FENCE: execution is in order already
        return true;
    }
}

/* ---- the run ---- */

static bool
execute(cps_te *e)
{
    switch (e->x->op) {
    case CPS_T_MATMUL:
    case CPS_T_TRANSPOSE:
        return cps_te_pe(e);
    case CPS_T_DMA:
    case CPS_T_DMA_TRANSPOSE:
        return cps_te_dma(e);
    case CPS_T_TENSOR_REDUCE:
    case CPS_T_BN_STATS:
    case CPS_T_BN_AGGR:
    case CPS_T_MAX8:
    case CPS_T_FIND_INDEX8:
    case CPS_T_MATCH_REPLACE8:
    case CPS_T_SHUFFLE:
    case CPS_T_PART_REDUCE:
        return cps_te_rowwise(e);
    default:
        return cps_te_vector(e);
    }
}

static void
let_go(cps_te *e, const plan *p, uint32_t at)
{
    for (uint32_t b = p->first[at]; b; b = p->next[b]) {
        cps_temem *m = &e->mem[b];
        // HBM buffers keep what they hold: a register may have moved a view of them.
        if (!m->owned || !cps_on_chip(&e->f->bufs.data[b]))
            continue;
        free(m->data);
        free(m->def);
        *m = (cps_temem){0};
    }
}

static bool
run(cps_te *e, const plan *p)
{
    const cps_tfunc *f = e->f;
    loop loops[64];
    int depth = 0;
    uint64_t steps = 0;
    for (uint32_t pc = 0; pc < f->insts.n;) {
        uint32_t at = pc;
        bool freed = true;
        e->x = &f->insts.data[at];
        if (++steps > MAX_STEPS)
            return cps_te_fail(e, CPS_E8103, "the program has executed 2^26 instructions");
        if (e->x->op >= CPS_T_REG_LOAD) {
            if (!control(e, p, loops, &depth, &pc, &freed))
                return false;
        } else {
            if (!execute(e))
                return false;
            pc++;
        }
        if (freed)
            let_go(e, p, at);
    }
    return true;
}

// Arguments and package data, where they are. A role tells what counts as written.
static bool
bind(cps_te *e, void *const *args)
{
    unsigned n = 0;
    for (uint32_t i = 1; i < e->f->bufs.n; i++) {
        const cps_tbuf *b = &e->f->bufs.data[i];
        cps_temem *m = &e->mem[i];
        if (b->space != CPS_HBM || b->role == CPS_LOCAL)
            continue;
        m->row = cps_tbuf_bytes(b);
        m->data = b->role == CPS_DATA ? (uint8_t *)b->data : args[n++];
        if (b->role == CPS_OUT) {
            m->def = calloc((size_t)CPS_MAX(m->row, 1), 1);
            if (!m->def)
                cps_bug("out of memory");
        }
    }
    return true;
}

bool
cps_tile_eval(const cps_tfunc *f, void *const *args, cps_diags *d)
{
    if (!cps_tile_check(f, d))
        return false;
    const cps_target *t = cps_target_find(f->target);
    cps_arena *a = cps_arena_create();
    cps_te *e = cps_new(a, cps_te);
    plan p;
    e->f = f;
    e->d = d;
    e->gen = t ? t->gen : CPS_V3; // of a described target: as the documents' main generation
    e->mem = cps_new_array(a, cps_temem, f->bufs.n);
    e->reg = cps_new_array(a, int32_t, f->bufs.n);
    e->reg_set = cps_new_array(a, bool, f->bufs.n);
    p.match = cps_new_array(a, uint32_t, f->insts.n + 1);
    p.branch = cps_new_array(a, uint32_t, f->insts.n + 1);
    p.first = cps_new_array(a, uint32_t, f->insts.n + 1);
    p.next = cps_new_array(a, uint32_t, f->bufs.n);
    pair_blocks(f, &p);
    plan_lives(f, &p, cps_new_array(a, uint32_t, f->bufs.n));
    bool ok = bind(e, args) && run(e, &p);
    for (uint32_t i = 0; i < f->bufs.n; i++) {
        if (e->mem[i].owned)
            free(e->mem[i].data);
        free(e->mem[i].def);
    }
    for (int i = 0; i < CPS_TE_ROWS; i++)
        free(e->row[i]);
    free(e->raw);
    free(e->stage);
    cps_arena_destroy(a);
    return ok;
}

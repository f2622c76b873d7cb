/* Inside selection: the machine program under construction. */
#ifndef CPS_CODEGEN_SELECT_H
#define CPS_CODEGEN_SELECT_H

#include "codegen/legal.h"

/* Weights that stand in the PE. */
typedef struct cps_weights {
    bool valid;
    cps_tview view;
    uint32_t version;
    uint8_t fp32_mode, transpose, perf, row_grp, col_grp;
} cps_weights;

/* An open loop or branch. */
typedef struct cps_open {
    const cps_tinst *x;
    uint32_t again, past, end; /* labels: loop body; else part; behind everything */
} cps_open;

typedef struct cps_queue {
    const char *name;
    uint32_t blocks;
} cps_queue;

/* Registers: those of REG buffers from 0, then scratch, then the fill values POOL keeps. */
#define CPS_SEL_SCRATCH 8
#define CPS_SEL_FILLS 8

typedef struct cps_sel {
    cps_cg *g;
    cps_mprog *p;
    uint32_t *var;     /* variable of each HBM buffer */
    uint32_t *version; /* per buffer: writes so far */
    uint8_t *reg;      /* register of each REG buffer */
    cps_weights w;
    uint32_t acts[256]; /* table sets that hold a function, one bit each; 0: resident */
    uint32_t act_set;   /* loaded set + 1 */
    bool act_stays;     /* it serves every activation */
    uint32_t inst;      /* under selection */
    bool fill_known[CPS_SEL_FILLS];
    uint32_t fill[CPS_SEL_FILLS];
    unsigned fill_next;
    CPS_VEC(cps_queue) queues;
    cps_map labels;         /* tile label -> operation + 1 */
    uint32_t first_op;      /* of the instruction under selection */
    CPS_VEC(cps_open) open; /* control.c: open loops and branches */
    CPS_VEC(cps_mextent) moved; /* slots that a register moves, of bundles that are not yet there */
    unsigned scratch;       /* first of the scratch registers */
    unsigned scratch_next;
    bool ok;
} cps_sel;

static inline cps_tview *
cps_sel_view(const cps_sel *s, cps_toper o)
{
    cps_assert(o.kind == CPS_TO_VIEW);
    return &s->g->f->views.data[o.id];
}
static inline cps_tbuf *
cps_sel_buf(const cps_sel *s, const cps_tview *v)
{
    return &s->g->f->bufs.data[v->buf];
}
/* Appends an operation on `e`; the address is valid until the next one. */
cps_mop *cps_sel_op(cps_sel *s, cps_mkind kind, cps_engine e, const cps_bundle *b,
                    cps_span loc);
/* Notes that an address in a register stands in slot `f` of a bundle that will be appended. */
void cps_sel_moved(cps_sel *s, cps_field f, const cps_tview *v);
/* Notes that the last operation touches a view. */
void cps_sel_touch(cps_sel *s, const cps_tview *v, bool write);
/* The bytes a view walks. */
void cps_sel_access(const cps_sel *s, const cps_tview *v, bool write, cps_macc *out);
/* Wire value of a dtype as an input; tf32 is read as fp32. */
unsigned cps_sel_in(cps_dtype t);
unsigned cps_sel_out(cps_dtype t);
/* Puts a view into a tensor slot. */
void cps_sel_slot(cps_sel *s, cps_bundle *b, cps_field f, cps_engine e, const cps_tview *v,
                  cps_span loc);

bool cps_sel_matmul(cps_sel *s, const cps_tinst *x);
bool cps_sel_dma(cps_sel *s, const cps_tinst *x);
/* Transfers that follow an index tile, or whose address a register moves. */
bool cps_sel_indirect(cps_sel *s, const cps_tinst *x);
bool cps_sel_moving_dma(cps_sel *s, const cps_tinst *x);
bool cps_sel_control(cps_sel *s, const cps_tinst *x);
/* Registers: one for each REG buffer, the same on every engine. */
bool cps_sel_registers(cps_sel *s);
/* Forgets what engines hold: another way may lead here. */
void cps_sel_forget(cps_sel *s);
/* Index of an in-order queue by name; `id` gets the number of its next block. */
uint8_t cps_sel_queue(cps_sel *s, const char *name, uint32_t *id);
/* Register arithmetic on engine `e`: reg `to` = `from` op `imm`, in 32 bits. */
void cps_sel_alu(cps_sel *s, cps_engine e, unsigned op, unsigned to, unsigned from,
                 uint32_t imm, cps_span loc);
void cps_sel_move(cps_sel *s, cps_engine e, unsigned to, uint32_t value, cps_span loc);
unsigned cps_sel_scratch(cps_sel *s); /* two registers: the one given and the next */
/* Emits what computes the address of a moving view into a scratch register of engine `e`;
 * `base` is the address at register value 0. Returns the register. */
uint8_t cps_sel_address(cps_sel *s, cps_engine e, const cps_tview *v, uint32_t base,
                        cps_span loc);

#endif

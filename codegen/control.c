/* Selection of control flow: registers, loops, branches, and views moved by registers. */
#include "codegen/select.h"

static bool
refuse(cps_sel *s, const cps_tinst *x)
{
    cps_error(s->g->d, CPS_E5306, x->loc, "'%s' cannot be compiled to hardware control flow",
              cps_tops[x->op].name);
    return false;
}

bool
cps_sel_control(cps_sel *s, const cps_tinst *x)
{
    if (x->op == CPS_T_FENCE) {
        cps_bundle none = {{0}};
        cps_sel_op(s, CPS_M_BARRIER, CPS_SP, &none, x->loc);
        return true;
    }
    return refuse(s, x);
}

bool
cps_sel_registers(cps_sel *s)
{
    (void)s;
    return true;
}

uint8_t
cps_sel_address(cps_sel *s, cps_engine e, const cps_tview *v, uint32_t base, cps_span loc)
{
    (void)e;
    (void)base;
    cps_error(s->g->d, CPS_E5306, loc, "'%s' cannot be moved by a register here",
              cps_sel_buf(s, v)->name);
    s->ok = false;
    return 0;
}

bool
cps_sel_indirect(cps_sel *s, const cps_tinst *x)
{
    return refuse(s, x);
}

bool
cps_sel_moving_dma(cps_sel *s, const cps_tinst *x)
{
    return refuse(s, x);
}

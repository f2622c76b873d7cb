/* Which moving views are marked as alone between barriers. */
#include "codegen/pass.h"
#include "tests/check.h"
#include "tests/codegen/tp.h"

#define ROWS 64
#define COLS 32

typedef struct rig {
    tp p;
    uint32_t y, t, r, s;
} rig;

static rig
rig_new(void)
{
    rig g = {.p = tp_new("trn2")};
    g.y = tp_hbm(&g.p, "y", CPS_OUT, CPS_DT_FP32, 4 * ROWS, COLS);
    g.t = tp_tile(&g.p, "t", CPS_SBUF, CPS_DT_FP32, 32, COLS, 0, 0, 0);
    g.r = tp_reg(&g.p, "r");
    g.s = tp_reg(&g.p, "s");
    return g;
}

// A store of 32 rows from `row` on, moved by `by` (0: not); returns the view.
static uint32_t
store(rig *g, int64_t row, uint32_t by, int64_t step)
{
    cps_toper to = tp_block(&g->p, g->y, row, 32, 0, COLS);
    g->p.f->views.data[to.id].reg = by;
    g->p.f->views.data[to.id].reg_step = step;
    tp_1(&g->p, CPS_T_DMA, to, tp_view(&g->p, g->t, 0, 32, 0, COLS));
    return to.id;
}

static void
set(rig *g, uint32_t to)
{
    cps_tinst *x = tp_inst(&g->p, CPS_T_REG_MOVE, 1, 1);
    x->out[0] = (cps_toper){.kind = CPS_TO_REG, .id = to};
    x->in[0] = (cps_toper){.kind = CPS_TO_IMM, .is_int = true, .ival = 1};
}

static bool
alone(const rig *g, uint32_t view)
{
    return g->p.f->views.data[view].alone;
}

static void
done(rig *g)
{
    tp_free(&g->p);
}

static void
one_register(void)
{
    rig g = rig_new();
    uint32_t a = store(&g, 0, g.r, COLS), b = store(&g, 32, g.r, COLS);
    tp_inst(&g.p, CPS_T_FENCE, 0, 0);
    uint32_t c = store(&g, 0, g.s, COLS); // behind a barrier another one may move it
    tp_inst(&g.p, CPS_T_FENCE, 0, 0);
    uint32_t d = store(&g, 0, 0, 0);
    cps_moves_alone(g.p.f, g.p.a);
    CHECK(alone(&g, a) && alone(&g, b) && alone(&g, c) && !alone(&g, d));
    done(&g);
}

// Two places that meet or not, whatever their offsets say.
static void
mixed(int how)
{
    rig g = rig_new();
    uint32_t a = store(&g, 0, g.r, COLS), b = 0;
    switch (how) {
    case 0: // another register
        b = store(&g, 32, g.s, COLS);
        break;
    case 1: // another step
        b = store(&g, 32, g.r, 2 * COLS);
        break;
    case 2: // a place that does not move
        b = store(&g, 32, 0, 0);
        break;
    case 3: // the register changes in between
        set(&g, g.r);
        b = store(&g, 32, g.r, COLS);
        break;
    default: // an offset outside of the tensor: nothing to compare
        b = store(&g, -32, g.r, COLS);
        break;
    }
    cps_moves_alone(g.p.f, g.p.a);
    CHECK(!alone(&g, b) && alone(&g, a) == (how == 4));
    done(&g);
}

// A view that two places share is alone where both are.
static void
shared(void)
{
    rig g = rig_new();
    uint32_t a = store(&g, 0, g.r, COLS);
    tp_inst(&g.p, CPS_T_FENCE, 0, 0);
    tp_1(&g.p, CPS_T_DMA, cps_to_view(a), tp_view(&g.p, g.t, 0, 32, 0, COLS));
    store(&g, 32, 0, 0);
    cps_moves_alone(g.p.f, g.p.a);
    CHECK(!alone(&g, a));
    done(&g);
}

int
main(void)
{
    one_register();
    for (int how = 0; how < 5; how++)
        mixed(how);
    shared();
    return CHECK_DONE();
}

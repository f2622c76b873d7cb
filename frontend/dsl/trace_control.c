/* The hardware's own control: registers, `loop`, `when`, labels. Register arithmetic stays
 * affine (reg * mul + add) as long as it can, so that an offset like `ds(r * M + 5, n)` costs
 * nothing. */
#include "frontend/dsl/trace_priv.h"

#include <string.h>

static const cps_trreg *
as_reg(cps_cv v)
{
    return v.kind == CPS_V_OPAQUE && v.tag == CPS_TR_REG ? v.u.p : NULL;
}

cps_cv
cps_tr_reg_value(cps_tracer *t, uint32_t reg, int64_t mul, int64_t add)
{
    cps_trreg *r = cps_new(t->keep, cps_trreg);
    *r = (cps_trreg){reg, mul, add};
    return cps_cv_opaque(CPS_TR_REG, r);
}

static uint32_t
new_reg(cps_tracer *t, const char *name, const void *site, uint32_t k, cps_span at)
{
    cps_tbuf b = {.name = name,
                  .space = CPS_REG,
                  .dtype = CPS_DT_I32,
                  .pin_byte = -1,
                  .pin_bank = -1,
                  .pin_part = -1,
                  .loc = at};
    b.depth = t->nest;
    b.ring = cps_tr_ring(t, site, k, &b.turn);
    return cps_tile_buf(t->f, b);
}

static bool
fits(int64_t v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

static cps_toper
int_oper(int64_t v)
{
    return (cps_toper){.kind = CPS_TO_IMM, .is_int = true, .ival = v, .imm = (float)v};
}

static cps_toper
reg_oper(uint32_t r)
{
    return (cps_toper){.kind = CPS_TO_REG, .id = r};
}

// dst = a op b
static void
alu(cps_tracer *t, uint32_t dst, cps_alu op, cps_toper a, cps_toper b)
{
    cps_tinst *i = cps_tr_begin(t, CPS_T_REG_ALU, NULL);
    cps_tinst_set(i, CPS_TA_OP0, (int32_t)op);
    i->nout = 1;
    i->out[0] = reg_oper(dst);
    i->nin = 2;
    i->in[0] = a;
    i->in[1] = b;
}

// Computes reg * mul + add into `dst`, one or two instructions.
static void
affine_to(cps_tracer *t, uint32_t dst, cps_trreg r)
{
    cps_toper x = reg_oper(r.reg);
    if (r.mul == 1 && r.add == 0) {
        cps_tinst *i = cps_tr_begin(t, CPS_T_REG_MOVE, NULL);
        i->nout = i->nin = 1;
        i->out[0] = reg_oper(dst);
        i->in[0] = x;
        return;
    }
    if (r.mul != 1) {
        alu(t, dst, CPS_ALU_MULT, x, int_oper(r.mul));
        x = reg_oper(dst);
    }
    if (r.add != 0)
        alu(t, dst, CPS_ALU_ADD, x, int_oper(r.add));
}

bool
cps_tr_reg_operand(cps_tracer *t, cps_cv v, cps_span at, cps_toper *out)
{
    const cps_trreg *r = as_reg(v);

    if (v.kind == CPS_V_INT && fits(v.u.i)) {
        *out = int_oper(v.u.i);
        return true;
    }
    if (!r)
        return cps_eval_error(&t->ev, CPS_E2305, at,
                              "a register operand is a register or a 32-bit number, not %s",
                              cps_eval_describe(&t->ev, v));
    if (r->mul == 1 && r->add == 0) {
        *out = reg_oper(r->reg);
        return true;
    }
    uint32_t d = new_reg(t, "r", &t->body, 1, at);
    affine_to(t, d, *r);
    *out = reg_oper(d);
    return true;
}

static bool
comparison(cps_ast_bin op, cps_alu *out)
{
    switch (op) {
    case CPS_BIN_LT:
        *out = CPS_ALU_IS_LT;
        return true;
    case CPS_BIN_GT:
        *out = CPS_ALU_IS_GT;
        return true;
    case CPS_BIN_LE:
        *out = CPS_ALU_IS_LE;
        return true;
    case CPS_BIN_GE:
        *out = CPS_ALU_IS_GE;
        return true;
    case CPS_BIN_EQ:
        *out = CPS_ALU_IS_EQ;
        return true;
    case CPS_BIN_NE:
        *out = CPS_ALU_IS_NE;
        return true;
    default:
        return false;
    }
}

static cps_trreg
side(cps_cv v)
{
    const cps_trreg *r = as_reg(v);
    return r ? *r : (cps_trreg){0, 0, v.u.i};
}

// Both sides are registers or whole numbers.
static bool
may_combine(cps_tracer *t, cps_cv a, cps_cv b, cps_span at)
{
    bool x = as_reg(a), y = as_reg(b);

    if ((!x && a.kind != CPS_V_INT) || (!y && b.kind != CPS_V_INT))
        return cps_eval_error(&t->ev, CPS_E2305, at,
                              "registers combine with registers and whole numbers, not with %s",
                              cps_eval_describe(&t->ev, x ? b : a));
    if ((!x && !fits(a.u.i)) || (!y && !fits(b.u.i)))
        return cps_eval_error(&t->ev, CPS_E2305, at, "a register has 32 bits");
    return true;
}

// One instruction into a register of its own.
static bool
combine(cps_tracer *t, cps_alu op, cps_cv a, cps_cv b, cps_span at, cps_cv *out)
{
    cps_toper p, q;
    if (!cps_tr_reg_operand(t, a, at, &p) || !cps_tr_reg_operand(t, b, at, &q))
        return false;
    uint32_t d = new_reg(t, "r", &t->body, 2, at);
    alu(t, d, op, p, q);
    *out = cps_tr_reg_value(t, d, 1, 0);
    return true;
}

bool
cps_tr_reg_extreme(cps_tracer *t, cps_alu op, cps_cv a, cps_cv b, cps_span at, cps_cv *out)
{
    return may_combine(t, a, b, at) && combine(t, op, a, b, at, out);
}

bool
cps_tr_reg_binary(cps_tracer *t, cps_ast_bin op, cps_cv a, cps_cv b, cps_span at, cps_cv *out)
{
    const cps_trreg *x = as_reg(a), *y = as_reg(b);
    cps_alu cmp, op0;

    if (!may_combine(t, a, b, at))
        return false;
    if (comparison(op, &cmp)) {
        cps_trcond *c = cps_new(t->keep, cps_trcond);
        *c = (cps_trcond){cmp, side(a), side(b)};
        *out = cps_cv_opaque(CPS_TR_COND, c);
        return true;
    }
    // Affine as long as one register is in it.
    const cps_trreg *r = x ? x : y;
    int64_t n = x ? (y ? 0 : b.u.i) : a.u.i;
    if (!(x && y) && (op == CPS_BIN_ADD || op == CPS_BIN_SUB || op == CPS_BIN_MUL)) {
        int64_t mul = r->mul, add = r->add;
        if (op == CPS_BIN_MUL) {
            mul *= n;
            add *= n;
        } else if (op == CPS_BIN_ADD) {
            add += n;
        } else if (x) {
            add -= n;
        } else {
            mul = -mul;
            add = n - add;
        }
        if (!fits(mul) || !fits(add))
            return cps_eval_error(&t->ev, CPS_E2305, at, "a register has 32 bits");
        *out = cps_tr_reg_value(t, r->reg, mul, add);
        return true;
    }
    switch (op) {
    case CPS_BIN_ADD:
        op0 = CPS_ALU_ADD;
        break;
    case CPS_BIN_SUB:
        op0 = CPS_ALU_SUBTRACT;
        break;
    case CPS_BIN_MUL:
        op0 = CPS_ALU_MULT;
        break;
    default:
        return cps_eval_error(&t->ev, CPS_E2305, at,
                              "registers know + - *, min and max, and comparisons in `when`");
    }
    return combine(t, op0, a, b, at, out);
}

// One element of a tensor or tile into a register.
static bool
load(cps_tracer *t, uint32_t reg, const cps_view *v, cps_span at)
{
    if (v->space == CPS_PSUM)
        return cps_eval_error(&t->ev, CPS_E2305, at, "a register is loaded from hbm or sbuf");
    if (cps_view_free(v) != 1 || (v->space != CPS_HBM && cps_view_parts(v) != 1))
        return cps_eval_error(&t->ev, CPS_E2305, at, "a register takes one element, not %s",
                              cps_view_shape(t->keep, v));
    if (v->dtype != CPS_DT_I32 && v->dtype != CPS_DT_U32)
        return cps_eval_error(&t->ev, CPS_E2305, at, "a register holds i32, not %s",
                              cps_dtype_name(v->dtype));
    cps_tinst *i = cps_tr_begin(t, CPS_T_REG_LOAD, NULL);
    i->nout = 1;
    i->out[0] = reg_oper(reg);
    return cps_tr_in(t, i, v, v->all ? 1 : 0, at);
}

bool
cps_tr_reg_assign(cps_tracer *t, const cps_trreg *dst, cps_cv value, cps_ast_bin op,
                  cps_span at)
{
    if (dst->mul != 1 || dst->add != 0)
        return cps_eval_error(&t->ev, CPS_E2305, at, "the left side is a register, not a sum");
    if (op != CPS_BIN_NONE &&
        !cps_tr_reg_binary(t, op, cps_cv_opaque(CPS_TR_REG, dst), value, at, &value))
        return false;
    const cps_trreg *r = as_reg(value);
    if (r) {
        affine_to(t, dst->reg, *r);
        return true;
    }
    if (cps_tr_view(value))
        return load(t, dst->reg, cps_tr_view(value), at);
    cps_toper o;
    if (!cps_tr_reg_operand(t, value, at, &o))
        return false;
    cps_tinst *i = cps_tr_begin(t, CPS_T_REG_MOVE, NULL);
    i->nout = i->nin = 1;
    i->out[0] = reg_oper(dst->reg);
    i->in[0] = o;
    return true;
}

cps_flow
cps_tr_reg_declare(cps_tracer *t, const cps_ast_store *s)
{
    cps_dtype dt = CPS_DT_I32;
    cps_cv v;

    if (s->shaped || s->decl.n || (s->dtype && !cps_eval_dtype(&t->ev, s->dtype, &dt))) {
        cps_eval_error(&t->ev, CPS_E2305, s->name.span,
                       "a register is one i32: reg n: i32 <- x[0];");
        return CPS_FLOW_FAIL;
    }
    if (dt != CPS_DT_I32 && dt != CPS_DT_U32) {
        cps_eval_error(&t->ev, CPS_E2305, s->dtype->span, "a register holds i32, not %s",
                       cps_dtype_name(dt));
        return CPS_FLOW_FAIL;
    }
    if (!s->init) {
        cps_eval_error(&t->ev, CPS_E2305, s->name.span, "a register needs a first value");
        return CPS_FLOW_FAIL;
    }
    if (!cps_eval_expr(&t->ev, s->value, &v))
        return CPS_FLOW_FAIL;
    const cps_view *w = cps_tr_view(v);
    bool arrow = s->set == CPS_SET_ARROW;
    if (arrow != (w != NULL)) {
        cps_eval_error(&t->ev, CPS_E2305, s->value->span,
                       arrow
                           ? "`<-` loads an element of a tensor or tile; numbers and registers "
                             "are set by `=`"
                           : "an element of a tensor or tile is loaded by `<-`");
        return CPS_FLOW_FAIL;
    }
    uint32_t reg = new_reg(t, s->name.text, s, 0, s->name.span);
    cps_trreg r = {reg, 1, 0};
    if (!cps_tr_reg_assign(t, &r, v, CPS_BIN_NONE, s->value->span))
        return CPS_FLOW_FAIL;
    return cps_eval_bind(&t->ev, &s->name, cps_tr_reg_value(t, reg, 1, 0), CPS_BIND_STORAGE)
               ? CPS_FLOW_NEXT
               : CPS_FLOW_FAIL;
}

static bool
body(cps_tracer *t, const cps_ast_body *b, cps_span at, cps_flow *flow)
{
    uint32_t outer = t->body;
    int depth = t->depth;

    t->body = ++t->bodies;
    t->depth = 0; // what a body declares lives on
    t->nest++;
    *flow = cps_eval_body(&t->ev, b, true);
    t->nest--;
    t->depth = depth;
    t->body = outer;
    if (*flow == CPS_FLOW_BREAK || *flow == CPS_FLOW_CONTINUE || *flow == CPS_FLOW_RETURN) {
        *flow = CPS_FLOW_FAIL;
        return cps_eval_error(&t->ev, CPS_E2309, at,
                              "break, continue and return are compile-time and cannot leave "
                              "hardware control");
    }
    return *flow == CPS_FLOW_NEXT;
}

static void
end(cps_tracer *t)
{
    (void)cps_tr_begin(t, CPS_T_END, NULL);
}

cps_flow
cps_tr_loop(cps_tracer *t, const cps_ast_loop *s)
{
    cps_cv v[2];
    cps_toper bound[2];
    cps_flow flow;

    if (s->range->kind == CPS_EX_BINARY && CPS_AST_AS(binary, s->range)->op == CPS_BIN_RANGE) {
        const cps_ast_binary *b = CPS_AST_AS(binary, s->range);
        if (!cps_eval_expr(&t->ev, b->a, &v[0]) || !cps_eval_expr(&t->ev, b->b, &v[1]))
            return CPS_FLOW_FAIL;
    } else {
        cps_cv r;
        cps_piece p;
        if (!cps_eval_expr(&t->ev, s->range, &r))
            return CPS_FLOW_FAIL;
        if (!cps_cv_bounds(r, &p)) {
            cps_eval_error(&t->ev, CPS_E2301, s->range->span,
                           "`loop` runs over a..b of numbers and registers, not over %s",
                           cps_eval_describe(&t->ev, r));
            return CPS_FLOW_FAIL;
        }
        v[0] = cps_cv_int(p.start);
        v[1] = cps_cv_int(p.end);
    }
    for (int i = 0; i < 2; i++)
        if (!cps_tr_reg_operand(t, v[i], s->range->span, &bound[i]))
            return CPS_FLOW_FAIL;
    uint32_t reg = new_reg(t, s->name.text, s, 0, s->name.span);
    cps_tinst *i = cps_tr_begin(t, CPS_T_LOOP, NULL);
    i->nout = 1;
    i->out[0] = reg_oper(reg);
    i->nin = 2;
    i->in[0] = bound[0];
    i->in[1] = bound[1];
    uint32_t scope = cps_eval_push(&t->ev);
    bool ok = cps_eval_bind(&t->ev, &s->name, cps_tr_reg_value(t, reg, 1, 0), 0);
    ok = ok && body(t, s->body, s->head.span, &flow);
    cps_eval_pop(&t->ev, scope);
    end(t);
    return ok ? CPS_FLOW_NEXT : CPS_FLOW_FAIL;
}

cps_flow
cps_tr_when(cps_tracer *t, const cps_ast_if *s)
{
    cps_cv v;
    cps_toper o[2];
    cps_flow flow;

    if (!cps_eval_expr(&t->ev, s->cond, &v))
        return CPS_FLOW_FAIL;
    if (v.kind == CPS_V_BOOL) { // both sides were numbers: nothing is left for the device
        const cps_ast_body *b = v.u.b ? s->yes : s->no;
        return b ? cps_eval_body(&t->ev, b, true) : CPS_FLOW_NEXT;
    }
    if (v.kind != CPS_V_OPAQUE || v.tag != CPS_TR_COND) {
        cps_eval_error(&t->ev, CPS_E2301, s->cond->span,
                       "`when` takes one comparison of registers and numbers, not %s",
                       cps_eval_describe(&t->ev, v));
        return CPS_FLOW_FAIL;
    }
    const cps_trcond *c = v.u.p;
    for (int i = 0; i < 2; i++) {
        cps_trreg r = i ? c->b : c->a;
        cps_cv x = r.reg ? cps_cv_opaque(CPS_TR_REG, &r) : cps_cv_int(r.add);
        if (!cps_tr_reg_operand(t, x, s->cond->span, &o[i]))
            return CPS_FLOW_FAIL;
    }
    cps_tinst *i = cps_tr_begin(t, CPS_T_WHEN, NULL);
    cps_tinst_set(i, CPS_TA_OP0, (int32_t)c->op);
    i->nin = 2;
    i->in[0] = o[0];
    i->in[1] = o[1];
    bool ok = body(t, s->yes, s->head.span, &flow);
    if (ok && s->no) {
        (void)cps_tr_begin(t, CPS_T_ELSE, NULL);
        ok = body(t, s->no, s->head.span, &flow);
    }
    end(t);
    return ok ? CPS_FLOW_NEXT : CPS_FLOW_FAIL;
}

// The label goes to the last instruction that the statement leaves.
cps_flow
cps_tr_label(cps_tracer *t, const cps_ast_label *s)
{
    uint32_t before = t->f->insts.n;
    cps_flow f = cps_eval_stmt(&t->ev, s->stmt);

    if (f != CPS_FLOW_NEXT)
        return f;
    if (t->f->insts.n == before) {
        cps_eval_error(&t->ev, CPS_E6104, s->name.span,
                       "the statement labelled `%s` leaves no instruction", s->name.text);
        return CPS_FLOW_FAIL;
    }
    *cps_map_at_str(&t->labels, s->name.text, NULL) = ++t->nlabel;
    t->f->insts.data[t->f->insts.n - 1].label = t->nlabel;
    return CPS_FLOW_NEXT;
}

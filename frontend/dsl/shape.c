/* Operands as predicates see them: a dtype, extents, a storage order. Indexing and transposing
 * make smaller shapes; `bytes` counts them. No element exists here. */
#include "frontend/dsl/instance.h"

typedef struct shape {
    const char *name;
    cps_type type;
    bool swapped; // last two axes, in storage
} shape;

static cps_cv
make(cps_eval *ev, shape s)
{
    shape *n = cps_new(ev->c.arena, shape);
    *n = s;
    return cps_cv_opaque(1, n);
}

void
cps_dsl_define_shapes(cps_eval *ev, const cps_dsl_op *op, const cps_instance *i)
{
    for (int k = 0; k < i->noperands + i->nresults; k++) {
        bool in = k < i->noperands;
        const cps_operand *x = in ? &i->operand[k] : &i->result[k - i->noperands];
        const cps_ast_operand *decl =
            in ? &op->ast->operand[k] : &op->ast->result[k - i->noperands];
        if (!in || x->present)
            cps_eval_define(ev, decl->name.text,
                            make(ev, (shape){decl->name.text, x->type, x->order != 0}),
                            decl->span);
    }
}

static const char *
describe(cps_eval *ev, cps_cv v)
{
    return cps_arena_printf(ev->c.arena, "the tensor `%s`", ((const shape *)v.u.p)->name);
}

static cps_hook
transpose(cps_eval *ev, const cps_ast_transpose *e, cps_cv base, cps_cv *out)
{
    shape s = *(const shape *)base.u.p;
    int r = s.type.rank;
    if (r < 2) {
        cps_eval_error(ev, CPS_E2302, e->head.span, "`'` swaps two axes, and this has %d", r);
        return CPS_HOOK_FAIL;
    }
    int64_t t = s.type.dim[r - 1];
    s.type.dim[r - 1] = s.type.dim[r - 2];
    s.type.dim[r - 2] = t;
    s.swapped = !s.swapped;
    *out = make(ev, s);
    return CPS_HOOK_DONE;
}

// The extent a subscript leaves, or -1 when it drops the axis. False after an error.
static bool
extent(cps_eval *ev, const cps_ast_sub *sub, int64_t n, int64_t *out)
{
    int64_t lo = 0, hi = n, step = 1;
    if (sub->slice) {
        if ((sub->lo && !cps_eval_int(ev, sub->lo, "a bound", &lo)) ||
            (sub->hi && !cps_eval_int(ev, sub->hi, "a bound", &hi)) ||
            (sub->step && !cps_eval_int(ev, sub->step, "a step", &step)))
            return false;
        if (lo < 0 || hi > n || lo > hi || step < 1)
            return cps_eval_error(ev, CPS_E2307, sub->span, "%lld:%lld of an axis of %lld",
                                  (long long)lo, (long long)hi, (long long)n);
        *out = (hi - lo) / step + ((hi - lo) % step != 0);
        return true;
    }
    cps_cv v;
    if (!cps_eval_expr(ev, sub->lo, &v))
        return false;
    if (v.kind == CPS_V_INT) {
        *out = -1;
        if (v.u.i >= 0 && v.u.i < n)
            return true;
        return cps_eval_error(ev, CPS_E2307, sub->span, "%lld of an axis of %lld",
                              (long long)v.u.i, (long long)n);
    }
    if (v.kind != CPS_V_RANGE && v.kind != CPS_V_PIECE && v.kind != CPS_V_SLICE)
        return cps_eval_error(ev, CPS_E2301, sub->span, "%s is no subscript",
                              cps_eval_describe(ev, v));
    *out = cps_piece_size(v.u.piece);
    if (v.u.piece->end > n)
        return cps_eval_error(ev, CPS_E2307, sub->span, "%s of an axis of %lld",
                              cps_cv_text(ev->c.arena, v), (long long)n);
    return true;
}

static cps_hook
subscript(cps_eval *ev, const cps_ast_index *e, cps_cv base, cps_cv *out)
{
    shape s = *(const shape *)base.u.p, r = s;
    if ((int)e->n > s.type.rank) {
        cps_eval_error(ev, CPS_E2307, e->head.span, "%u subscripts, and `%s` has %d axes", e->n,
                       s.name, s.type.rank);
        return CPS_HOOK_FAIL;
    }
    r.type.rank = 0;
    for (int i = 0; i < s.type.rank; i++) {
        int64_t n = s.type.dim[i];
        if (i < (int)e->n && !extent(ev, &e->sub[i], s.type.dim[i], &n))
            return CPS_HOOK_FAIL;
        if (n >= 0)
            r.type.dim[r.type.rank++] = n;
    }
    *out = make(ev, r);
    return CPS_HOOK_DONE;
}

static cps_hook
member(cps_eval *ev, const cps_ast_member *e, cps_cv base, cps_cv *out)
{
    if (base.kind != CPS_V_OPAQUE)
        return CPS_HOOK_PASS;
    const shape *s = base.u.p;
    if (cps_streq(e->name.text, "dtype")) {
        *out = cps_cv_dtype(s->type.dtype);
    } else if (cps_streq(e->name.text, "shape")) {
        cps_cv dim[CPS_MAX_RANK];
        for (int i = 0; i < s->type.rank; i++)
            dim[i] = cps_cv_int(s->type.dim[i]);
        *out = cps_cv_seq(ev->c.arena, CPS_V_LIST, dim, (uint32_t)s->type.rank);
    } else if (cps_streq(e->name.text, "inner")) {
        *out = cps_cv_int(s->type.rank - 1 - (s->swapped && s->type.rank > 1));
    } else {
        return CPS_HOOK_PASS;
    }
    return CPS_HOOK_DONE;
}

static cps_hook
method(cps_eval *ev, const cps_ast_call *e, cps_cv base, const cps_ast_name *name,
       const cps_arg *arg, uint32_t n, cps_cv *out)
{
    const shape *s = base.u.p;
    (void)e;
    if (!cps_streq(name->text, "axis") || n != 1 || arg[0].v.kind != CPS_V_INT ||
        arg[0].v.u.i < 0 || arg[0].v.u.i >= s->type.rank)
        return CPS_HOOK_PASS;
    *out = cps_cv_range(ev->c.arena, 0, s->type.dim[arg[0].v.u.i], NULL);
    return CPS_HOOK_DONE;
}

static cps_hook
call(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name, const cps_arg *arg, uint32_t n,
     cps_cv *out)
{
    (void)ev;
    (void)e;
    if (!cps_streq(name->text, "bytes") || n != 1 || arg[0].v.kind != CPS_V_OPAQUE ||
        arg[0].src->name.sym)
        return CPS_HOOK_PASS;
    const shape *s = arg[0].v.u.p;
    *out = cps_cv_int(cps_type_bytes(&s->type));
    return CPS_HOOK_DONE;
}

const cps_eval_hooks cps_dsl_shape_hooks = {
    .describe = describe,
    .transpose = transpose,
    .index = subscript,
    .member = member,
    .method = method,
    .call = call,
};

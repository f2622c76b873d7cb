/* Inside the tracer: one state, split over files by what a statement does. Every function that
 * returns bool (or a hook's verdict) has reported its failure when it says no. */
#ifndef CPS_DSL_TRACE_PRIV_H
#define CPS_DSL_TRACE_PRIV_H

#include "frontend/dsl/trace.h"
#include "frontend/dsl/trace_combine.h"

/* Tags of OPAQUE values. */
enum {
    CPS_TR_VIEW = 1, /* const cps_view * */
    CPS_TR_EXPR,     /* const cps_trexpr * */
    CPS_TR_REG,      /* const cps_trreg * */
    CPS_TR_COND,     /* const cps_trcond *: one comparison of registers */
    CPS_TR_PRODUCT   /* const cps_trproduct * */
};

typedef struct cps_trexpr {
    const cps_xgraph *graph; /* of the statement that may use it */
    cps_xid id;
} cps_trexpr;

typedef struct cps_trreg { /* reg * mul + add; reg 0: the number alone */
    uint32_t reg;
    int64_t mul, add;
} cps_trreg;

typedef struct cps_trcond {
    cps_alu op;
    cps_trreg a, b;
} cps_trcond;

typedef struct cps_trproduct {
    const cps_view *a, *b; /* a: transposed view, b: moving */
    cps_span at, at_a, at_b;
    bool double_row; /* a and b are [p, 2, n] as they lie: two rows of K to a partition */
} cps_trproduct;

/* A region of a PSUM tile that products went to. */
typedef struct cps_trgroup {
    cps_tview region;
    uint32_t first, last; /* instructions that started it and touched it last */
    bool closed;          /* read since, or written by something else than a product */
    bool foreign;         /* written by something else */
} cps_trgroup;

/* One execution of a declaration, or an argument. */
typedef struct cps_trstore {
    const char *name;
    cps_space space;
    uint32_t buf;
    cps_view view; /* the whole of it */
    cps_span at;
    bool written;
    bool can_read, can_write;
    int order;
    uint32_t body; /* hardware body (loop, when) it was declared in; 0 the leaf's */
    CPS_VEC(cps_trgroup) groups;
    /* Pipelines: where it was declared and used. */
    uint32_t pipe;
    int64_t iter;
    bool slots_given;
    cps_span slots_at;
} cps_trstore;

typedef struct cps_trring { /* one declaration, wherever it is executed from */
    uint32_t id, turn;
} cps_trring;

typedef struct cps_traccess { /* of an instruction inside a pipeline */
    uint32_t inst, buf;
    bool write;
    uint16_t part, parts;
    int64_t lo, hi;
    cps_span at;
} cps_traccess;

typedef struct cps_trpipe {
    uint32_t id; /* 0: no pipeline runs */
    const cps_ast_for *loop;
    uint32_t bind;
    uint32_t first; /* instruction it begins with */
    int64_t iter;   /* of iterations that were not dropped */
    bool entered;   /* this iteration has entered a stage */
    int nstage, stage;
    cps_sym name[16];
    cps_ast_name names[16];
    CPS_VEC(cps_traccess) access;
} cps_trpipe;

typedef struct cps_trmarks { /* what the marks of a statement say */
    cps_engine on;
    cps_span on_at;
    int64_t bufs; /* -1: not given */
    cps_span bufs_at;
    int64_t at, bank, parts, align; /* -1: not given */
    int via;                        /* -1 none, else 0 static, 1 swdge, 2 hwdge, 3 elements */
    cps_span via_at;
    bool oob_skip, oob_given;
    int64_t priority;
    uint32_t after;
    const cps_view *red;
    cps_span red_at;
    cps_alu red_op;
    bool onto;
} cps_trmarks;

typedef struct cps_tracer {
    cps_eval ev;
    cps_arena *out;     /* the tile program */
    cps_arena *keep;    /* values: as long as the trace */
    cps_arena *scratch; /* views and graphs of the statement at hand */
    cps_diags *d;
    const cps_target *t;
    const cps_trace_opts *o;
    cps_tfunc *f;
    CPS_VEC(cps_tinst) pre; /* hoisted constants, put before everything else */
    cps_map rings;          /* declaration and call path -> index + 1 into ring */
    CPS_VEC(cps_trring) ring;
    cps_map hoisted;               /* text of a constant -> buffer */
    CPS_VEC(cps_trstore *) stores; /* by buffer id; NULL for what has none */
    CPS_VEC(cps_trstore *) psum;   /* tiles whose groups may be open */
    int depth;                     /* statements that are being executed by the tracer */
    cps_xgraph *graph;             /* of the innermost */
    cps_span at;                   /* of the innermost */
    uint32_t body, bodies;         /* hardware body, and how many there were */
    uint8_t nest;                  /* hardware bodies open, this one included */
    cps_trpipe pipe;
    uint32_t pipes;
    cps_map labels;         /* name -> label id */
    uint32_t nlabel, after; /* after: for the instruction to come */
} cps_tracer;

static inline cps_tracer *
cps_tr(cps_eval *ev)
{
    return ev->c.user;
}
static inline cps_arena *
cps_tr_arena(cps_tracer *t) /* for what a statement makes */
{
    return t->depth ? t->scratch : t->keep;
}
/* Operand k is one element per row, a register or a number (roles of top.def). */
static inline bool
cps_tr_scalar(cps_top op, int k)
{
    return cps_tops[op].ins[k] == 's' || cps_tops[op].ins[k] == 'i';
}
static inline const cps_view *
cps_tr_view(cps_cv v)
{
    return v.kind == CPS_V_OPAQUE && v.tag == CPS_TR_VIEW ? v.u.p : NULL;
}

/* ---- trace.c ---- */
bool cps_tr_fail(cps_tracer *t, cps_span at, const cps_view_err *e);
bool cps_tr_marks(cps_tracer *t, const cps_ast_marks *m, cps_trmarks *out);
cps_cv cps_tr_view_value(cps_tracer *t, const cps_view *v); /* copies */

/* ---- trace_storage.c ---- */
/* Executes a declaration; *out is the new storage (NULL for `reg`). */
cps_flow cps_tr_declare(cps_tracer *t, const cps_ast_store *s);
/* A tile the tracer makes for itself: temporaries and staging. `site` and `k` name the ring. */
cps_trstore *cps_tr_tile(cps_tracer *t, const char *name, cps_space s, cps_dtype dt, int nd,
                         const cps_vdim *d, const void *site, uint32_t k, int64_t bufs,
                         cps_span at);
uint32_t cps_tr_ring(cps_tracer *t, const void *site, uint32_t k, uint32_t *turn);
/* An argument of the leaf. */
cps_trstore *cps_tr_argument(cps_tracer *t, const char *name, cps_role role,
                             const cps_type *type, int order, const char *const *extents,
                             cps_span at);
/* [128, 1] or [128, 128] constants before everything else; ids of buffers. */
uint32_t cps_tr_hoist(cps_tracer *t, double v, bool is_int, cps_dtype dt);
uint32_t cps_tr_identity(cps_tracer *t, cps_dtype dt);

/* ---- trace_emit.c ---- */
/* Starts an instruction; operands follow; `end` checks accesses and keeps it. */
cps_tinst *cps_tr_begin(cps_tracer *t, cps_top op, const cps_trmarks *m);
bool cps_tr_in(cps_tracer *t, cps_tinst *i, const cps_view *v, int64_t parts, cps_span at);
bool cps_tr_out(cps_tracer *t, cps_tinst *i, const cps_view *v, int64_t parts, cps_span at);
/* The lowered view goes in as it is; accesses are recorded from it. */
bool cps_tr_in_view(cps_tracer *t, cps_tinst *i, cps_tview v, cps_trstore *s, cps_span at);
bool cps_tr_out_view(cps_tracer *t, cps_tinst *i, cps_tview v, cps_trstore *s, cps_span at);
/* Compute engines reach rows from certain partitions only (E5121). */
bool cps_tr_start(cps_tracer *t, const cps_tview *v, cps_span at);
/* Start flag and group of a product that goes to `v`; called before the view is put in. */
bool cps_tr_group(cps_tracer *t, cps_tinst *i, const cps_tview *v, cps_trstore *s, bool add,
                  cps_span at);
/* Sets the stop flags of every open group, at the end. */
void cps_tr_close_all(cps_tracer *t);

/* ---- trace_expr.c: hooks that build expressions ---- */
cps_hook cps_tr_unary(cps_eval *ev, const cps_ast_unary *e, cps_cv a, cps_cv *out);
cps_hook cps_tr_binary(cps_eval *ev, const cps_ast_binary *e, cps_ast_bin op, cps_span at,
                       cps_cv a, cps_cv b, cps_cv *out);
cps_hook cps_tr_call(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name,
                     const cps_arg *arg, uint32_t n, cps_cv *out);
/* A value as a node of the running statement's graph; 0 after an error. */
cps_xid cps_tr_node(cps_tracer *t, cps_cv v, cps_span at);

/* ---- trace_index.c: hooks on views ---- */
cps_hook cps_tr_index(cps_eval *ev, const cps_ast_index *e, cps_cv base, cps_cv *out);
cps_hook cps_tr_transpose(cps_eval *ev, const cps_ast_transpose *e, cps_cv base, cps_cv *out);
cps_hook cps_tr_member(cps_eval *ev, const cps_ast_member *e, cps_cv base, cps_cv *out);
cps_hook cps_tr_method(cps_eval *ev, const cps_ast_call *e, cps_cv base,
                       const cps_ast_name *name, const cps_arg *arg, uint32_t n, cps_cv *out);

/* ---- trace_assign.c ---- */
/* dst = value by the combining table, products and transposes. */
bool cps_tr_assign(cps_tracer *t, const cps_view *dst, cps_span dst_at, cps_cv value,
                   cps_span value_at, const cps_trmarks *m, const void *site);
cps_flow cps_tr_assign_stmt(cps_tracer *t, const cps_ast_assign *s);

/* ---- trace_matmul.c ---- */
bool cps_tr_matmul(cps_tracer *t, const cps_view *dst, cps_span dst_at, const cps_trproduct *p,
                   bool add, const cps_trmarks *m);
bool cps_tr_pe_transpose(cps_tracer *t, const cps_view *dst, cps_span dst_at,
                         const cps_view *src, cps_span src_at, const cps_trmarks *m);

/* ---- trace_arrow.c ---- */
bool cps_tr_arrow(cps_tracer *t, const cps_view *dst, cps_span dst_at, cps_cv value,
                  cps_span value_at, bool add, const cps_trmarks *m, const void *site);

/* ---- trace_control.c ---- */
cps_flow cps_tr_reg_declare(cps_tracer *t, const cps_ast_store *s);
cps_flow cps_tr_loop(cps_tracer *t, const cps_ast_loop *s);
cps_flow cps_tr_when(cps_tracer *t, const cps_ast_if *s);
cps_flow cps_tr_label(cps_tracer *t, const cps_ast_label *s);
bool cps_tr_reg_assign(cps_tracer *t, const cps_trreg *dst, cps_cv value, cps_ast_bin op,
                       cps_span at);
bool cps_tr_reg_binary(cps_tracer *t, cps_ast_bin op, cps_cv a, cps_cv b, cps_span at,
                       cps_cv *out);
/* min or max of two, one of which is a register. */
bool cps_tr_reg_extreme(cps_tracer *t, cps_alu op, cps_cv a, cps_cv b, cps_span at,
                        cps_cv *out);
cps_cv cps_tr_reg_value(cps_tracer *t, uint32_t reg, int64_t mul, int64_t add);
/* An operand for register instructions; materialises what is affine. */
bool cps_tr_reg_operand(cps_tracer *t, cps_cv v, cps_span at, cps_toper *out);

/* ---- trace_pipeline.c ---- */
cps_flow cps_tr_for_begin(cps_eval *ev, const cps_ast_for *f, uint32_t bind, int64_t count);
cps_flow cps_tr_for_iter(cps_eval *ev, const cps_ast_for *f, uint32_t bind, int64_t i,
                         cps_cv v);
void cps_tr_for_end(cps_eval *ev, const cps_ast_for *f, uint32_t bind);
cps_flow cps_tr_stage(cps_tracer *t, const cps_ast_stage *s);

/* ---- trace_call.c: intrinsics ---- */
cps_flow cps_tr_call_stmt(cps_tracer *t, const cps_ast_callst *s);

#endif

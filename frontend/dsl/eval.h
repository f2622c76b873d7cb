/* Compile-time evaluation: values, scopes, expressions and statements of the kernel language.
 *
 * The evaluator knows numbers, strings, dtypes, enumerations, sequences, ranges and pieces. What
 * it does not know (views, tiles, registers, tensors of an op body) are OPAQUE values: whoever
 * drives the evaluator gives hooks that make them, index them and combine them. The leaf tracer,
 * the op-body builder and the instance predicates are three such drivers.
 *
 * Errors: a function that fails has reported it, once, and returns false (or CPS_FLOW_FAIL). The
 * executor then goes on with the next statement, with the names the failed one would have bound
 * POISONed; using a poisoned name fails without a word. So one trace shows several errors, and
 * the caller looks at `failed` at the end. Nothing here depends on anything but the inputs. */
#ifndef CPS_DSL_EVAL_H
#define CPS_DSL_EVAL_H

#include "codegen/isa/target.h"
#include "frontend/dsl/load.h"
#include "runtime/base/num.h"
#include "runtime/base/vec.h"

typedef struct cps_eval cps_eval;

/* ---- values ---- */
typedef enum cps_vkind {
    CPS_V_NONE,   /* nothing: a fn without a value */
    CPS_V_POISON, /* made by something that was reported */
    CPS_V_ABSENT, /* an optional operand that was not given */
    CPS_V_INT,
    CPS_V_FLOAT,
    CPS_V_BOOL,
    CPS_V_STR,
    CPS_V_DTYPE,
    CPS_V_ENUM,     /* Act.relu */
    CPS_V_ENUMTYPE, /* Act */
    CPS_V_TUPLE,
    CPS_V_LIST,
    CPS_V_SET,    /* {a, b}: the right of `in`, the set of a param */
    CPS_V_RANGE,  /* a..b: iterating gives numbers */
    CPS_V_PIECE,  /* a part of a range: iterating gives pieces of size one */
    CPS_V_SLICE,  /* ds(start, size) of numbers: a part counted from the axis's own start */
    CPS_V_PIECES, /* tiles(r, n), split(r, n): iterating gives pieces */
    CPS_V_FN,
    CPS_V_TARGET,
    CPS_V_WORD,  /* a predefined word with no value here: free, all, prev, skip */
    CPS_V_OPAQUE /* the driver's own */
} cps_vkind;

/* RANGE and PIECE: positions are absolute, of the extent that was cut first. SLICE: start and end
 * only, relative to the axis that is indexed. */
typedef struct cps_piece {
    int64_t start, end; /* start <= end */
    int64_t index, count; /* place among its siblings; 0 and 1 for a range */
    int64_t before, after; /* siblings that other cores have, in a loop across cores */
    const char *name;   /* the extent it was cut from as written ("M"), or NULL: for messages */
} cps_piece;

typedef struct cps_pieces {
    int64_t start, end, count;
    int64_t step;     /* tiles: size of a piece; 0: split in `count` nearly equal parts */
    int64_t first;    /* only pieces first .. first + shown are iterated (across cores) */
    int64_t shown;
    const char *name;
} cps_pieces;

typedef struct cps_enum_value {
    const cps_ast_enum *type;
    const char *name;
    int64_t value;
} cps_enum_value;

typedef struct cps_cv cps_cv;
typedef struct cps_seq { /* TUPLE, LIST, SET */
    uint32_t n;
    const cps_cv *item;
} cps_seq;

struct cps_cv {
    cps_vkind kind;
    uint32_t tag; /* OPAQUE: the driver's kind; 0 otherwise */
    union {
        int64_t i;
        double f;
        bool b;
        const char *s; /* STR; WORD */
        cps_dtype dt;
        const cps_enum_value *ev;
        const cps_ast_enum *et;
        const cps_seq *seq;
        const cps_piece *piece; /* RANGE, PIECE, SLICE */
        const cps_pieces *pieces;
        const cps_dsl_def *fn;
        const void *p; /* OPAQUE */
    } u;
};

static inline cps_cv
cps_cv_int(int64_t i)
{
    return (cps_cv){.kind = CPS_V_INT, .u.i = i};
}
static inline cps_cv
cps_cv_float(double f)
{
    return (cps_cv){.kind = CPS_V_FLOAT, .u.f = f};
}
static inline cps_cv
cps_cv_bool(bool b)
{
    return (cps_cv){.kind = CPS_V_BOOL, .u.b = b};
}
static inline cps_cv
cps_cv_str(const char *s)
{
    return (cps_cv){.kind = CPS_V_STR, .u.s = s};
}
static inline cps_cv
cps_cv_dtype(cps_dtype t)
{
    return (cps_cv){.kind = CPS_V_DTYPE, .u.dt = t};
}
static inline cps_cv
cps_cv_opaque(uint32_t tag, const void *p)
{
    return (cps_cv){.kind = CPS_V_OPAQUE, .tag = tag, .u.p = p};
}
static inline int64_t
cps_piece_size(const cps_piece *p)
{
    return p->end - p->start;
}

cps_cv cps_cv_range(cps_arena *a, int64_t start, int64_t end, const char *name);
cps_cv cps_cv_piece(cps_arena *a, cps_piece p);
cps_cv cps_cv_slice(cps_arena *a, int64_t start, int64_t size);
cps_cv cps_cv_seq(cps_arena *a, cps_vkind kind, const cps_cv *item, uint32_t n); /* copies */

/* Equal kinds and contents; 1 equals 1.0. OPAQUE: same tag and pointer. */
bool cps_cv_eq(cps_cv a, cps_cv b);
/* Number of things a `for` over `v` runs through, or -1 when `v` cannot be iterated. */
int64_t cps_cv_count(cps_cv v);
/* The i-th of them, 0 <= i < count. */
cps_cv cps_cv_at(cps_arena *a, cps_cv v, int64_t i);
/* INT, FLOAT and BOOL as a double / INT as int64. */
bool cps_cv_num(cps_cv v, double *out);
/* INT n -> 0..n, RANGE, PIECE -> bounds; false for anything else. */
bool cps_cv_bounds(cps_cv v, cps_piece *out);
/* As it would be written: `4096`, `bf16`, `Act.gelu`, `0..128`, "piece 3 of 33 (384..512)". */
const char *cps_cv_text(cps_arena *a, cps_cv v);
const char *cps_vkind_name(cps_vkind k); /* "a number", "a dtype", ... */

/* ---- hooks ---- */
typedef enum cps_hook {
    CPS_HOOK_FAIL, /* reported */
    CPS_HOOK_DONE, /* *out is set */
    CPS_HOOK_PASS  /* not mine: the evaluator reports what it would without a hook */
} cps_hook;

typedef enum cps_flow {
    CPS_FLOW_NEXT,
    CPS_FLOW_BREAK,
    CPS_FLOW_CONTINUE,
    CPS_FLOW_RETURN, /* value in ev->ret */
    CPS_FLOW_FAIL,   /* reported */
    CPS_FLOW_PASS    /* from a hook: not mine */
} cps_flow;

typedef struct cps_arg { /* an evaluated argument */
    const cps_ast_arg *src;
    cps_cv v;
} cps_arg;

/* Any hook may be NULL (as if it passed). The expression hooks are called when an operand is
 * OPAQUE or a WORD; built-in functions are tried first and only with values they know. */
typedef struct cps_eval_hooks {
    /* "a register", "a [128, 512] tile": for messages. */
    const char *(*describe)(cps_eval *ev, cps_cv v);
    cps_hook (*unary)(cps_eval *ev, const cps_ast_unary *e, cps_cv a, cps_cv *out);
    /* Also `a .. b`, `&&` and `||` (both sides are evaluated when the left one is opaque), and the
     * operator of a compound assignment to a var (`at` is its place then, `e` is NULL). */
    cps_hook (*binary)(cps_eval *ev, const cps_ast_binary *e, cps_ast_bin op, cps_span at,
                       cps_cv a, cps_cv b, cps_cv *out);
    cps_hook (*transpose)(cps_eval *ev, const cps_ast_transpose *e, cps_cv base, cps_cv *out);
    /* Subscripts are not evaluated yet: use cps_eval_expr on their parts. */
    cps_hook (*index)(cps_eval *ev, const cps_ast_index *e, cps_cv base, cps_cv *out);
    cps_hook (*member)(cps_eval *ev, const cps_ast_member *e, cps_cv base, cps_cv *out);
    /* base.name(args) */
    cps_hook (*method)(cps_eval *ev, const cps_ast_call *e, cps_cv base,
                       const cps_ast_name *name, const cps_arg *arg, uint32_t n, cps_cv *out);
    /* name(args) where `name` is no fn and no built-in that knows these arguments. */
    cps_hook (*call)(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name,
                     const cps_arg *arg, uint32_t n, cps_cv *out);
    /* `supports(NAME)`: an instruction the target may have. */
    cps_hook (*supports)(cps_eval *ev, const cps_ast_name *name, cps_cv *out);

    /* Statements. STORE, ASSIGN (unless it rebinds a var), CALL (unless it calls a fn), LABEL,
     * LOOP, WHILE, WHEN and STAGE always go to `stmt`. Kinds whose bit (1u << CPS_ST_x) is in
     * `takes` go there as well instead of to the executor. PASS from `stmt` on a kind in `takes`
     * lets the executor do it; on the others it is the error "has no meaning here". */
    uint32_t takes;
    cps_flow (*stmt)(cps_eval *ev, const cps_ast_stmt *s);

    /* A `for` that the executor runs: before the first iteration of a bind, before and after each
     * iteration, and after the last. `count` and `i` are of the iterations this core runs. */
    cps_flow (*for_begin)(cps_eval *ev, const cps_ast_for *f, uint32_t bind, int64_t count);
    cps_flow (*for_iter)(cps_eval *ev, const cps_ast_for *f, uint32_t bind, int64_t i, cps_cv v);
    void (*for_next)(cps_eval *ev, const cps_ast_for *f, uint32_t bind, int64_t i);
    void (*for_end)(cps_eval *ev, const cps_ast_for *f, uint32_t bind);
} cps_eval_hooks;

/* ---- the evaluator ---- */

/* What `target.KEY` means when the target is the host. All 0: 32-byte vectors, 16 registers, two
 * multiply-adds per cycle. */
typedef struct cps_eval_host {
    int64_t vector_bytes, vregs, fma_per_cycle;
} cps_eval_host;

typedef struct cps_eval_config {
    cps_arena *arena; /* values; must outlive what is made of them */
    cps_diags *diags;
    const cps_dsl_set *set;
    const cps_dsl_module *module; /* the file whose names are in scope at first */
    const cps_target *target;     /* NULL: the host */
    cps_eval_host host;
    int64_t core, cores, ranks; /* cores 0 means 1 */
    int64_t step_limit;         /* 0: 4,000,000 */
    const cps_eval_hooks *hooks;
    void *user;
} cps_eval_config;

enum {
    CPS_BIND_VAR = 1,    /* `=` rebinds it */
    CPS_BIND_STORAGE = 2 /* a declared storage: `=` writes to it */
};

typedef struct cps_binding {
    cps_sym sym;
    uint32_t flags;
    cps_span span; /* where it was declared */
    cps_cv v;
} cps_binding;

/* One step of the way to the statement at hand: a fn call, or an iteration of a for. */
typedef struct cps_trail {
    const cps_ast_call *call; /* fn call, or NULL */
    const char *fn;
    const cps_ast_bind *bind; /* iteration */
    cps_cv v;
    int64_t i, count;
} cps_trail;

struct cps_eval {
    cps_eval_config c;
    int64_t steps;
    uint32_t failed;  /* errors reported through cps_eval_error */
    bool stopped;     /* a limit was reached: everything fails from now on */
    bool split;       /* what was evaluated depends on the core */
    cps_cv ret;      /* of CPS_FLOW_RETURN */
    CPS_VEC(cps_trail) trail;
    /* private */
    CPS_VEC(cps_binding) names;
    CPS_VEC(uint32_t) scopes; /* first binding of each open scope */
    uint32_t frame;           /* first binding of the running fn */
    const cps_dsl_module *module;
    uint32_t fn_depth, depth;
    bool trail_due;
    cps_map consts; /* item -> index + 1 into const_val; 0 while it is being evaluated */
    CPS_VEC(cps_cv) const_val;
    cps_map enums; /* item -> its cps_enum_value array */
};

/* `ev` is plain storage of the caller; nothing to free but the arena. */
void cps_eval_init(cps_eval *ev, const cps_eval_config *c);

/* Scopes nest strictly. pop takes what push gave. */
uint32_t cps_eval_push(cps_eval *ev);
void cps_eval_pop(cps_eval *ev, uint32_t mark);
/* Binds in the innermost scope. False after E2203 when that scope has the name already. */
bool cps_eval_bind(cps_eval *ev, const cps_ast_name *name, cps_cv v, uint32_t flags);
/* The same for names that come from no source (dims, operands, params); never fails. */
void cps_eval_define(cps_eval *ev, const char *name, cps_cv v, cps_span where);
/* Innermost binding visible from here, or NULL. Valid until the next bind. */
cps_binding *cps_eval_find(cps_eval *ev, cps_sym sym);

bool cps_eval_expr(cps_eval *ev, cps_expr_p e, cps_cv *out);
/* With a demanded kind; E2301 names what was found. `what` completes "... must be": "a fold". */
bool cps_eval_int(cps_eval *ev, cps_expr_p e, const char *what, int64_t *out);
bool cps_eval_num(cps_eval *ev, cps_expr_p e, const char *what, double *out);
bool cps_eval_bool(cps_eval *ev, cps_expr_p e, const char *what, bool *out);
bool cps_eval_dtype(cps_eval *ev, cps_expr_p e, cps_dtype *out);
/* Operators on known values, as constant folding would do: for drivers that fold too. */
bool cps_eval_binop(cps_eval *ev, const cps_ast_binary *e, cps_ast_bin op, cps_span at, cps_cv a,
                    cps_cv b, cps_cv *out);

/* A body in a scope of its own (`scope`), or in the running one. */
cps_flow cps_eval_body(cps_eval *ev, const cps_ast_body *b, bool scope);
cps_flow cps_eval_stmt(cps_eval *ev, const cps_ast_stmt *s);
/* Evaluates the arguments of a call, in order, into `out` (room for e->n). */
bool cps_eval_args(cps_eval *ev, const cps_ast_call *e, cps_arg *out);
/* The fn a callee names, or NULL. */
const cps_dsl_def *cps_eval_callee(cps_eval *ev, const cps_ast_call *e);
/* Calls a fn with evaluated arguments. */
bool cps_eval_fn(cps_eval *ev, const cps_dsl_def *fn, const cps_ast_call *at, const cps_arg *arg,
                 uint32_t n, cps_cv *out);

/* Reports, with the trail ("in m = tiles(M, 128), piece 3 of 33, last, size 1", "called from
 * here") as notes after those the caller adds. Always returns false. Notes and helps of the
 * caller follow as cps_note and cps_help on ev->c.diags. */
bool cps_eval_error(cps_eval *ev, cps_code code, cps_span at, const char *fmt, ...)
    CPS_PRINTF(4, 5);
/* "a number", "a register": what `v` is, by the describe hook when opaque. */
const char *cps_eval_describe(cps_eval *ev, cps_cv v);

/* Reads a fact: `target.KEY` by "section_key", `sbuf.KEY`; false when there is none. */
bool cps_eval_fact(const cps_eval *ev, const char *section, const char *key, cps_cv *out);

#endif

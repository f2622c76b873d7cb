/* The syntax tree of a `.cps` file, as the parser leaves it: everything that was written, nothing
 * that was worked out. Every node lives in the arena of its module set, is never changed after
 * load (but for a body whose statements are read when they are first needed), and carries the span
 * of bytes it came from.
 *
 * An expression or statement pointer points at a header (kind, span) that begins a struct of its
 * own class; CPS_AST_AS(class, node) is the cast from header to class, for who has looked at kind.
 * Lists are arrays with a count. Absent children are NULL. */
#ifndef CPS_DSL_AST_H
#define CPS_DSL_AST_H

#include "runtime/base/diag.h"
#include "runtime/base/str.h"

/* ---- small enumerations, all from op.def ---- */
typedef enum cps_ast_bin {
    CPS_BIN_NONE,
#define CPS_DSL_BINARY(id, text, level, group) CPS_BIN_##id,
#include "frontend/dsl/op.def"
    CPS_BIN_COUNT
} cps_ast_bin;

typedef enum cps_ast_un {
#define CPS_DSL_UNARY(id, text) CPS_UN_##id,
#include "frontend/dsl/op.def"
    CPS_UN_COUNT
} cps_ast_un;

typedef enum cps_ast_set {
#define CPS_DSL_ASSIGN(id, text, op) CPS_SET_##id,
#include "frontend/dsl/op.def"
    CPS_SET_COUNT
} cps_ast_set;

typedef enum cps_ast_space {
    CPS_SPACE_NONE,
#define CPS_DSL_SPACE(id, text, where) CPS_SPACE_##id,
#include "frontend/dsl/op.def"
    CPS_SPACE_COUNT
} cps_ast_space;

/* Rows of op.def at run time. */
typedef struct cps_ast_bin_row {
    const char *text;
    uint8_t level; /* 0 binds loosest */
    char group;    /* A C L B R */
} cps_ast_bin_row;
extern const cps_ast_bin_row cps_ast_bins[CPS_BIN_COUNT];
extern const char *const cps_ast_un_text[CPS_UN_COUNT];
typedef struct cps_ast_set_row {
    const char *text;
    cps_ast_bin op; /* `+=` -> CPS_BIN_ADD; CPS_BIN_NONE for plain assignment and arrows */
} cps_ast_set_row;
extern const cps_ast_set_row cps_ast_sets[CPS_SET_COUNT];
extern const char *const cps_ast_space_text[CPS_SPACE_COUNT];

/* A name where it stands. `sym` is an id of the module set's symbol table (equal names, equal
 * ids); sym 0 and text NULL mean that there is none. */
typedef struct cps_ast_name {
    cps_sym sym;
    const char *text;
    cps_span span;
} cps_ast_name;

/* ---- expressions ---- */
typedef enum cps_ast_ekind {
    CPS_EX_NAME,      /* x */
    CPS_EX_SPACE,     /* sbuf.partition */
    CPS_EX_INT,       /* 128 */
    CPS_EX_FLOAT,     /* 1e-6 */
    CPS_EX_STR,       /* "a b -> b a" */
    CPS_EX_TUPLE,     /* (a, b): two or more */
    CPS_EX_LIST,      /* [a, b] */
    CPS_EX_SET,       /* {a, b} */
    CPS_EX_EACH,      /* [e for n in r] */
    CPS_EX_COND,      /* c ? a : b */
    CPS_EX_BINARY,    /* a + b, a .. b */
    CPS_EX_UNARY,     /* -a */
    CPS_EX_INDEX,     /* a[subs] */
    CPS_EX_CALL,      /* f(args); the callee is any postfix expression: name or member */
    CPS_EX_MEMBER,    /* a.name */
    CPS_EX_TRANSPOSE, /* a' */
    CPS_EX_COUNT
} cps_ast_ekind;

typedef struct cps_ast_expr {
    cps_ast_ekind kind;
    uint32_t depth; /* 1 for a leaf; bounded by the parser, so that readers may recurse */
    cps_span span;
} cps_ast_expr;

typedef const cps_ast_expr *cps_expr_p;

#define CPS_EXPR_HEAD cps_ast_expr head

typedef struct cps_ast_ref { /* NAME */
    CPS_EXPR_HEAD;
    cps_ast_name name;
} cps_ast_ref;
typedef struct cps_ast_spaceref { /* SPACE */
    CPS_EXPR_HEAD;
    cps_ast_space space;
    cps_ast_name name;
} cps_ast_spaceref;
typedef struct cps_ast_int { /* INT; written in hexadecimal or not */
    CPS_EXPR_HEAD;
    int64_t value;
    bool hex;
} cps_ast_int;
typedef struct cps_ast_float { /* FLOAT */
    CPS_EXPR_HEAD;
    double value;
} cps_ast_float;
typedef struct cps_ast_str { /* STR; escapes resolved */
    CPS_EXPR_HEAD;
    const char *text;
} cps_ast_str;
typedef struct cps_ast_seq { /* TUPLE, LIST, SET */
    CPS_EXPR_HEAD;
    uint32_t n;
    cps_expr_p *item;
} cps_ast_seq;
typedef struct cps_ast_each { /* EACH */
    CPS_EXPR_HEAD;
    cps_expr_p value;
    cps_ast_name name;
    cps_expr_p range;
} cps_ast_each;
typedef struct cps_ast_cond { /* COND */
    CPS_EXPR_HEAD;
    cps_expr_p cond, yes, no;
} cps_ast_cond;
typedef struct cps_ast_binary { /* BINARY */
    CPS_EXPR_HEAD;
    cps_ast_bin op;
    cps_span op_span;
    cps_expr_p a, b;
} cps_ast_binary;
typedef struct cps_ast_unary { /* UNARY */
    CPS_EXPR_HEAD;
    cps_ast_un op;
    cps_expr_p a;
} cps_ast_unary;
typedef struct cps_ast_sub { /* one subscript: `e`, or a slice with each part optional */
    cps_span span;
    bool slice;
    cps_expr_p lo; /* the expression itself when not a slice */
    cps_expr_p hi, step;
} cps_ast_sub;
typedef struct cps_ast_index { /* INDEX */
    CPS_EXPR_HEAD;
    cps_expr_p base;
    uint32_t n;
    cps_ast_sub *sub;
} cps_ast_index;
typedef struct cps_ast_arg { /* `e` or `name: e` */
    cps_ast_name name; /* sym 0 when positional */
    cps_expr_p value;
    cps_span span;
} cps_ast_arg;
typedef struct cps_ast_call { /* CALL */
    CPS_EXPR_HEAD;
    cps_expr_p fn;
    uint32_t n;
    cps_ast_arg *arg;
} cps_ast_call;
typedef struct cps_ast_member { /* MEMBER */
    CPS_EXPR_HEAD;
    cps_expr_p base;
    cps_ast_name name;
} cps_ast_member;
typedef struct cps_ast_transpose { /* TRANSPOSE */
    CPS_EXPR_HEAD;
    cps_expr_p base;
} cps_ast_transpose;

/* ---- parts of declarations ---- */
typedef struct cps_ast_dim { /* `e` or `e by fold` */
    cps_expr_p extent;
    cps_expr_p fold; /* NULL: not folded */
    cps_span span;
} cps_ast_dim;

typedef enum cps_ast_mkind {
    CPS_MARK_WORD, /* bufs 3, at 0, bank 2, via static, oob skip, after LABEL, priority 1, ... */
    CPS_MARK_ON,   /* on act */
    CPS_MARK_INTO, /* reduce add into t */
    CPS_MARK_ONTO  /* reduce add onto t */
} cps_ast_mkind;

typedef struct cps_ast_mark {
    cps_ast_mkind kind;
    cps_ast_name name; /* WORD: the mark's name; ON: the engine; INTO, ONTO: the operator */
    cps_expr_p value;  /* WORD: its operand; INTO, ONTO: the target; ON: NULL */
    cps_span span;
} cps_ast_mark;

typedef struct cps_ast_marks {
    uint32_t n;
    cps_ast_mark *mark;
} cps_ast_marks;

typedef struct cps_ast_stmt cps_ast_stmt;
typedef struct cps_ast_later { /* statements that are still to be read, and what reads them */
    cps_arena *arena;
    cps_symtab *syms;
    cps_diags *diags;
    cps_span span;
} cps_ast_later;
typedef struct cps_ast_body { /* { ... } */
    cps_span span;
    uint32_t n;
    const cps_ast_stmt **stmt;
    cps_ast_later *later; /* of a leaf, fn or op: `stmt` ends with the last clause; else NULL */
} cps_ast_body;

/* ---- statements ---- */
typedef enum cps_ast_skind {
    CPS_ST_LET,      /* let a = e;  let (a, b) = e; */
    CPS_ST_VAR,      /* var a = e; */
    CPS_ST_STORE,    /* sbuf x[t, H]: bf16 bufs 3 <- e; */
    CPS_ST_ASSIGN,   /* x[..] += e marks; */
    CPS_ST_CALL,     /* f(..) marks; */
    CPS_ST_LABEL,    /* name: statement */
    CPS_ST_IF,       /* if (c) {} else {}; an `else if` is an else body of one if, `chain` set */
    CPS_ST_FOR,      /* for a in r across cores, b in s pipelined {} */
    CPS_ST_LOOP,     /* loop i in a..b {} */
    CPS_ST_WHILE,    /* while (c) {} */
    CPS_ST_WHEN,     /* when (c) {} else {} */
    CPS_ST_STAGE,    /* stage name {} */
    CPS_ST_BREAK,
    CPS_ST_CONTINUE,
    CPS_ST_RETURN,
    CPS_ST_ASSERT,
    CPS_ST_CLAUSE,   /* where, param, cost, ...; the executor passes over them */
    CPS_ST_COUNT
} cps_ast_skind;

struct cps_ast_stmt {
    cps_ast_skind kind;
    cps_span span;
};

#define CPS_STMT_HEAD cps_ast_stmt head

typedef struct cps_ast_let { /* LET, VAR */
    CPS_STMT_HEAD;
    uint32_t n; /* names; 1 unless a tuple is taken apart */
    bool tuple; /* written with parentheses */
    cps_ast_name *name;
    cps_expr_p value;
} cps_ast_let;
typedef struct cps_ast_store { /* STORE */
    CPS_STMT_HEAD;
    cps_ast_space space;
    cps_ast_name name;
    bool shaped; /* `[...]` was written */
    uint32_t ndim;
    cps_ast_dim *dim;
    cps_expr_p dtype; /* NULL when left out */
    cps_ast_marks decl;  /* marks before the value: of the storage */
    bool init;
    cps_ast_set set;     /* CPS_SET_SET or CPS_SET_ARROW when init */
    cps_expr_p value;
    cps_ast_marks marks; /* marks after the value: of the statement that fills it */
} cps_ast_store;
typedef struct cps_ast_assign { /* ASSIGN */
    CPS_STMT_HEAD;
    cps_ast_set set;
    cps_span set_span;
    cps_expr_p dst, value;
    cps_ast_marks marks;
} cps_ast_assign;
typedef struct cps_ast_callst { /* CALL */
    CPS_STMT_HEAD;
    const cps_ast_call *call;
    cps_ast_marks marks;
} cps_ast_callst;
typedef struct cps_ast_label { /* LABEL */
    CPS_STMT_HEAD;
    cps_ast_name name;
    const cps_ast_stmt *stmt;
} cps_ast_label;
typedef struct cps_ast_if { /* IF, WHEN */
    CPS_STMT_HEAD;
    cps_expr_p cond;
    cps_ast_body *yes;
    cps_ast_body *no; /* or NULL */
    bool chain;       /* written `else if` */
} cps_ast_if;
typedef struct cps_ast_bind { /* one `name in range hows` of a for */
    cps_ast_name name;
    cps_expr_p range;
    cps_ast_name across; /* `across cores`; sym 0 when absent */
    bool pipelined, rolled, unrolled;
    cps_span span;
} cps_ast_bind;
typedef struct cps_ast_for { /* FOR */
    CPS_STMT_HEAD;
    uint32_t n;
    cps_ast_bind *bind;
    cps_ast_body *body;
} cps_ast_for;
typedef struct cps_ast_loop { /* LOOP */
    CPS_STMT_HEAD;
    cps_ast_name name;
    cps_expr_p range;
    cps_ast_body *body;
} cps_ast_loop;
typedef struct cps_ast_while { /* WHILE */
    CPS_STMT_HEAD;
    cps_expr_p cond;
    cps_ast_body *body;
} cps_ast_while;
typedef struct cps_ast_stage { /* STAGE */
    CPS_STMT_HEAD;
    cps_ast_name name;
    cps_ast_body *body;
} cps_ast_stage;
typedef struct cps_ast_jump { /* BREAK, CONTINUE (value NULL), RETURN (value or NULL) */
    CPS_STMT_HEAD;
    cps_expr_p value;
} cps_ast_jump;
typedef struct cps_ast_assert { /* ASSERT */
    CPS_STMT_HEAD;
    cps_expr_p cond;
    const char *why;
} cps_ast_assert;

/* ---- clauses ---- */
typedef enum cps_ast_ckind {
    CPS_CL_WHERE,     /* where e : "reason"; */
    CPS_CL_PARAM,     /* param n in set = default; */
    CPS_CL_COST,      /* cost pe: e, hbm: e; */
    CPS_CL_RESOURCES, /* resources sbuf: e; */
    CPS_CL_TOLERANCE, /* tolerance rtol, atol; */
    CPS_CL_CASES,     /* cases (T: 1), (T: 2); */
    CPS_CL_PRIORITY,  /* priority n; */
    CPS_CL_LAYOUT,    /* layout x: [M, K] or [K, M]; */
    CPS_CL_COUNT
} cps_ast_ckind;

typedef struct cps_ast_pair { /* `key: e`; the key may be a space word (`hbm: e`) */
    cps_ast_name key;
    cps_expr_p value;
    cps_span span;
} cps_ast_pair;
typedef struct cps_ast_case { /* one (a: 1, b: 2) */
    uint32_t n;
    cps_ast_pair *pair;
    cps_span span;
} cps_ast_case;
typedef struct cps_ast_order { /* one storage order of a layout clause */
    cps_ast_space space; /* CPS_SPACE_NONE: in HBM */
    uint32_t n;
    cps_ast_dim *dim;
    cps_span span;
} cps_ast_order;

typedef struct cps_ast_clause { /* CLAUSE; ckind says which of the fields hold */
    CPS_STMT_HEAD;
    cps_ast_ckind ckind;
    cps_ast_name name; /* PARAM: the parameter; LAYOUT: the operand or result */
    cps_expr_p a, b;   /* WHERE e; PARAM set, default; TOLERANCE rtol, atol; PRIORITY n */
    const char *why;   /* WHERE: the reason, or NULL */
    uint32_t n;        /* COST, RESOURCES pairs; CASES cases; LAYOUT orders */
    cps_ast_pair *pair;
    cps_ast_case *cases;
    cps_ast_order *order;
} cps_ast_clause;

typedef struct cps_ast_clauses {
    uint32_t n;
    const cps_ast_clause **clause;
} cps_ast_clauses;

/* ---- file-level items ---- */
typedef enum cps_ast_ikind {
    CPS_IT_USE,
    CPS_IT_CONST,
    CPS_IT_ENUM,
    CPS_IT_OP, /* op and block */
    CPS_IT_LEAF,
    CPS_IT_FN,
    CPS_IT_COUNT
} cps_ast_ikind;

typedef struct cps_ast_item {
    cps_ast_ikind kind;
    cps_span span;
} cps_ast_item;

#define CPS_ITEM_HEAD cps_ast_item head

typedef struct cps_ast_use { /* USE */
    CPS_ITEM_HEAD;
    const char *path;
    cps_span path_span;
} cps_ast_use;
typedef struct cps_ast_const { /* CONST */
    CPS_ITEM_HEAD;
    cps_ast_name name;
    cps_expr_p value;
} cps_ast_const;
typedef struct cps_ast_enumerator {
    cps_ast_name name;
    cps_expr_p value; /* NULL: the one before + 1 */
} cps_ast_enumerator;
typedef struct cps_ast_enum { /* ENUM */
    CPS_ITEM_HEAD;
    cps_ast_name name;
    uint32_t n;
    cps_ast_enumerator *member;
} cps_ast_enum;

typedef struct cps_ast_operand { /* an operand, or a result (then inout and optional are false) */
    cps_ast_name name;
    bool inout, optional;
    uint32_t n;
    cps_expr_p *extent;
    cps_expr_p dtype; /* NULL: any (operand), the first operand's (result) */
    cps_span span;
} cps_ast_operand;
typedef struct cps_ast_attr {
    cps_ast_name name;
    cps_expr_p type; /* a name: int fp32 bool str dtype, or an enum */
    cps_expr_p dflt; /* NULL: must be given */
    cps_span span;
} cps_ast_attr;
typedef struct cps_ast_dimdef { /* where Ho = ... */
    cps_ast_name name;
    cps_expr_p value;
} cps_ast_dimdef;

typedef struct cps_ast_op { /* OP */
    CPS_ITEM_HEAD;
    bool block;
    cps_ast_name name;
    uint32_t noperand;
    cps_ast_operand *operand;
    uint32_t nattr;
    cps_ast_attr *attr;
    uint32_t nresult;
    cps_ast_operand *result;
    uint32_t ndimdef;
    cps_ast_dimdef *dimdef;
    cps_ast_body *body;
    cps_ast_clauses clauses; /* those at the top of the body, in source order */
} cps_ast_op;

typedef struct cps_ast_leaf { /* LEAF */
    CPS_ITEM_HEAD;
    cps_ast_name name, op;
    uint32_t ntarget;
    cps_ast_name *target;
    cps_ast_body *body;      /* every statement in source order, clauses among them; see cps_ast_whole */
    cps_ast_clauses clauses; /* the clauses at the top of the body, in source order */
} cps_ast_leaf;

typedef struct cps_ast_fnparam {
    cps_ast_name name;
    cps_expr_p dflt; /* or NULL */
} cps_ast_fnparam;
typedef struct cps_ast_fn { /* FN */
    CPS_ITEM_HEAD;
    cps_ast_name name;
    uint32_t n;
    cps_ast_fnparam *param;
    cps_ast_body *body;
} cps_ast_fn;

typedef struct cps_ast_file {
    uint32_t source; /* id of the diagnostics' source table (cps_span.file) */
    const char *path;
    uint32_t n;
    const cps_ast_item **item;
} cps_ast_file;

#define CPS_AST_AS(cls, node) ((const cps_ast_##cls *)(const void *)(node))

/* ---- parsing and printing ---- */

/* Parses the registered source `source` of `d`. Nodes live in `a`, names in `syms`. Syntax errors
 * go to `d` (several per run); the tree is returned even then, without the statements in error,
 * so that later checks can still run. *ok is false when anything was reported as an error.
 * `later`: of bodies of leaves, fns and ops only the statements up to the last clause are read, the
 * others by cps_ast_whole: for a text that has been checked before, whose errors nobody waits for.
 * Arena, symbols, sink and source must then live as long as the tree. */
cps_ast_file *cps_dsl_parse(cps_arena *a, cps_symtab *syms, cps_diags *d, uint32_t source,
                            bool later, bool *ok);
/* `b` with every statement. Who looks at more than clauses goes through here. */
const cps_ast_body *cps_ast_whole(cps_ast_body *b);

/* Canonical source text: four spaces, one statement a line, no comments. Parsing what is printed
 * gives the same tree, and printing that gives the same text. */
void cps_ast_print_file(cps_buf *out, const cps_ast_file *f);
void cps_ast_print_item(cps_buf *out, const cps_ast_item *i);
void cps_ast_print_stmt(cps_buf *out, const cps_ast_stmt *s, int indent);
void cps_ast_print_expr(cps_buf *out, cps_expr_p e);
/* The expression's text as a string in `a`, for messages. */
const char *cps_ast_expr_text(cps_arena *a, cps_expr_p e);

#endif

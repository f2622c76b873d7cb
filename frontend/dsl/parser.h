/* Private to lexer, grammar and node constructors: the state of one parse. */
#ifndef CPS_DSL_PARSER_H
#define CPS_DSL_PARSER_H

#include "frontend/dsl/ast.h"
#include "runtime/base/vec.h"

enum {
    CPS_DSL_MAX_DEPTH = 1000 /* of an expression tree: readers recurse */
};

enum {
    CPS_DSL_WORDS = 0
#define CPS_DSL_KEYWORD(text, token) +1
#include "frontend/dsl/keyword.def"
};

typedef struct cps_dsl_parser {
    cps_arena *arena;
    cps_symtab *syms;
    cps_diags *diags;
    uint32_t file;
    cps_ast_file *out;
    void *scanner;
    uint32_t pos;    /* byte after the last token */
    uint32_t opened; /* where the running comment or string began */
    cps_buf text;    /* of the running string */
    bool too_deep;   /* reported once */
    bool unknown_mark; /* reported; the syntax error it causes is not */
    bool skipping;   /* between a syntax error and its `;` or `}` */
    bool skip_paren; /* the token in error was a `(` */
    bool later;      /* bodies of declarations are stepped over */
    bool header;     /* between the word of a declaration and its body */
    unsigned open;   /* brackets around the next token; kept when `later` */
    int before;      /* the last token; kept when `later` */
    cps_span rest;   /* what is stepped over next, when it does not end at 0 */
    cps_ast_body *part; /* only the rest of this body is read */
    uint8_t word[128]; /* reserved words by first letter: row of keyword.def + 1, and the next such row */
    uint8_t next_word[CPS_DSL_WORDS];
} cps_dsl_parser;

/* Grammar values: growable lists in the arena. */
typedef struct cps_lit {
    int64_t i;
    bool hex;
} cps_lit;
typedef struct cps_word { /* a reserved word used as a key or operator, with its place */
    int id;
    cps_span span;
} cps_word;
typedef CPS_VEC(cps_expr_p) cps_vexpr;
typedef CPS_VEC(const cps_ast_stmt *) cps_vstmt;
typedef CPS_VEC(cps_ast_name) cps_vname;
typedef CPS_VEC(cps_ast_dim) cps_vdim;
typedef CPS_VEC(cps_ast_mark) cps_vmark;
typedef CPS_VEC(cps_ast_sub) cps_vsub;
typedef CPS_VEC(cps_ast_arg) cps_varg;
typedef CPS_VEC(cps_ast_bind) cps_vbind;
typedef CPS_VEC(cps_ast_pair) cps_vpair;
typedef CPS_VEC(cps_ast_case) cps_vcase;
typedef CPS_VEC(cps_ast_order) cps_vorder;
typedef CPS_VEC(cps_ast_operand) cps_voperand;
typedef CPS_VEC(cps_ast_attr) cps_vattr;
typedef CPS_VEC(cps_ast_dimdef) cps_vdimdef;
typedef CPS_VEC(cps_ast_fnparam) cps_vfnparam;
typedef CPS_VEC(cps_ast_enumerator) cps_venumerator;

/* Node constructors (make.c). Each returns a node of the arena. */
cps_expr_p cps_make_ref(cps_dsl_parser *p, cps_span at, cps_ast_name name);
cps_expr_p cps_make_spaceref(cps_dsl_parser *p, cps_span at, cps_ast_space s, cps_ast_name name);
cps_expr_p cps_make_int(cps_dsl_parser *p, cps_span at, cps_lit v);
cps_expr_p cps_make_float(cps_dsl_parser *p, cps_span at, double v);
cps_expr_p cps_make_str(cps_dsl_parser *p, cps_span at, const char *s);
cps_expr_p cps_make_seq(cps_dsl_parser *p, cps_span at, cps_ast_ekind kind, cps_vexpr v);
cps_expr_p cps_make_each(cps_dsl_parser *p, cps_span at, cps_expr_p value, cps_ast_name name,
                         cps_expr_p range);
cps_expr_p cps_make_cond(cps_dsl_parser *p, cps_span at, cps_expr_p c, cps_expr_p yes,
                         cps_expr_p no);
cps_expr_p cps_make_binary(cps_dsl_parser *p, cps_span at, cps_ast_bin op, cps_span op_at,
                           cps_expr_p a, cps_expr_p b);
cps_expr_p cps_make_unary(cps_dsl_parser *p, cps_span at, cps_ast_un op, cps_expr_p a);
cps_expr_p cps_make_index(cps_dsl_parser *p, cps_span at, cps_expr_p base, cps_vsub subs);
cps_expr_p cps_make_call(cps_dsl_parser *p, cps_span at, cps_expr_p fn, cps_varg args);
cps_expr_p cps_make_member(cps_dsl_parser *p, cps_span at, cps_expr_p base, cps_ast_name name);
cps_expr_p cps_make_transpose(cps_dsl_parser *p, cps_span at, cps_expr_p base);

const cps_ast_stmt *cps_make_let(cps_dsl_parser *p, cps_span at, cps_ast_skind kind,
                                 cps_vname names, bool tuple, cps_expr_p value);
const cps_ast_stmt *cps_make_assign(cps_dsl_parser *p, cps_span at, cps_expr_p dst,
                                    cps_ast_set set, cps_span set_at, cps_expr_p value,
                                    cps_vmark marks);
/* An expression statement must be a call: NULL after E2107 when it is none. */
const cps_ast_stmt *cps_make_callst(cps_dsl_parser *p, cps_span at, cps_expr_p e,
                                    cps_vmark marks);
const cps_ast_stmt *cps_make_if(cps_dsl_parser *p, cps_span at, cps_ast_skind kind,
                                cps_expr_p cond, cps_ast_body *yes, cps_ast_body *no, bool chain);
const cps_ast_stmt *cps_make_jump(cps_dsl_parser *p, cps_span at, cps_ast_skind kind,
                                  cps_expr_p value);
cps_ast_body *cps_make_body(cps_dsl_parser *p, cps_span at, cps_vstmt stmts);
/* The same, its statements in `rest` still to be read. */
cps_ast_body *cps_make_part(cps_dsl_parser *p, cps_span at, cps_vstmt stmts, cps_span rest);
/* Appends what was missing of it. */
void cps_make_whole(cps_dsl_parser *p, cps_ast_body *b, cps_vstmt rest);
cps_ast_clause *cps_make_clause(cps_dsl_parser *p, cps_span at, cps_ast_ckind kind);
/* Collects the clauses among the statements of `b`. */
cps_ast_clauses cps_make_clauses(cps_dsl_parser *p, const cps_ast_body *b);
/* Reports E2205 when the word is not a mark (mark.def). */
void cps_check_mark(cps_dsl_parser *p, cps_ast_name name);

/* The scanner (lex.l). */
int cps_dsl_scan_begin(cps_dsl_parser *p, const char *text, size_t n);
void cps_dsl_scan_end(cps_dsl_parser *p);
/* Goes on `n` bytes behind the last token. */
void cps_dsl_scan_skip(cps_dsl_parser *p, uint32_t n);
/* The part of a body that begins at `at` which need not be read yet (later.c). False: read it all. */
bool cps_dsl_find_rest(const char *text, size_t n, size_t at, uint32_t *begin, uint32_t *end);
/* Told of every token, sets `rest` where the body of a declaration opens. */
void cps_dsl_note_body(cps_dsl_parser *p, int token);

#endif

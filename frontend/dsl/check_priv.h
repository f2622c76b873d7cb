/* Private to check.c and check_clause.c: the state of one item's checks. */
#ifndef CPS_DSL_CHECK_PRIV_H
#define CPS_DSL_CHECK_PRIV_H

#include "frontend/dsl/check.h"

typedef struct cps_decl {
    cps_ast_name name;
    bool storage;
    uint32_t uses;
} cps_decl;

// What the body belongs to; decides which statements and functions have a meaning.
typedef enum cps_inside { CPS_IN_FN, CPS_IN_OP, CPS_IN_BLOCK, CPS_IN_LEAF } cps_inside;

typedef struct cps_checker {
    cps_dsl_set *s;
    cps_diags *d;
    const cps_dsl_module *m;
    cps_inside where;
    const cps_ast_op *op; // header in scope, or NULL
    CPS_VEC(cps_decl) decls;
    cps_map by_sym; // sym -> index + 1
    uint32_t loops; // `for` loops around the statement
} cps_checker;

/* Every name and call of an expression (NULL is fine). */
void cps_check_expr(cps_checker *c, cps_expr_p e);
/* A name that is read or, when `written`, stands left of `=`. */
void cps_check_name(cps_checker *c, cps_ast_name name, bool written);
/* Marks on a declaration (where 'D') or a statement ('S'). */
void cps_check_marks(cps_checker *c, const cps_ast_marks *m, char where);
void cps_check_clause(cps_checker *c, const cps_ast_clause *k);
/* Which clauses a body may hold, and how often. */
void cps_check_clauses(cps_checker *c, const cps_ast_clauses *all);
extern const char *const cps_clause_names[CPS_CL_COUNT];
/* Is the word one of the blank-separated list? */
bool cps_check_word(const char *word, const char *list);

#endif

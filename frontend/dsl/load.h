/* Module sets: every `.cps` file that takes part, their names, and the checks of load time.
 *
 * Names of op, block and leaf are global to the set; const, enum and fn are seen in their own file
 * and, unless they begin with `_`, in files that `use` it directly. */
#ifndef CPS_DSL_LOAD_H
#define CPS_DSL_LOAD_H

#include "frontend/dsl/ast.h"
#include "runtime/base/map.h"
#include "runtime/base/vec.h"

/* What a name at file level stands for. */
typedef struct cps_dsl_def {
    const cps_ast_item *item;
    const struct cps_dsl_module *owner; /* the file that declares it */
} cps_dsl_def;

typedef struct cps_dsl_module {
    const char *path; /* as given to `use` */
    cps_ast_file *ast;
    CPS_VEC(struct cps_dsl_module *) uses;
    cps_map names; /* sym -> index into `defs` + 1: own and used const, enum, fn */
    CPS_VEC(cps_dsl_def) defs;
    bool parsed;  /* free of syntax errors: bodies are checked only then */
    bool ok;      /* parsed and checked without errors */
    bool checked; /* cps_dsl_set_check has been here */
} cps_dsl_module;

/* One leaf of an op, in the order of loading. */
typedef struct cps_dsl_leaf {
    const cps_ast_leaf *ast;
    const cps_dsl_module *module;
} cps_dsl_leaf;

typedef struct cps_dsl_op {
    const cps_ast_op *ast;
    const cps_dsl_module *module;
    CPS_VEC(cps_dsl_leaf *) leaves;
} cps_dsl_op;

/* Finds the text of a path. `path` is as written after `use` (relative to the kernels folder, then
 * to the include folders): the callback does the looking. The text must outlive the set. False
 * when there is no such file. */
typedef bool (*cps_dsl_reader)(void *user, const char *path, const char **text, size_t *n);

/* Optional: called when an operator is named that no loaded file declares. May call cps_dsl_load;
 * afterwards the operator is looked up again. */
typedef struct cps_dsl_set cps_dsl_set;
typedef void (*cps_dsl_finder)(void *user, cps_dsl_set *s, const char *op);

/* Optional: whether what the reader gives for `path` has passed the checks before. Its bodies are
 * then read when they are first needed, and its names not held against the predefined ones. */
typedef bool (*cps_dsl_trust)(void *user, const char *path);

struct cps_dsl_set {
    cps_arena *arena;
    cps_symtab *syms;
    cps_diags *diags;
    cps_dsl_reader read;
    cps_dsl_finder find; /* may be set after create; NULL: none */
    cps_dsl_trust trusted; /* the same; NULL: no text is */
    void *user;
    CPS_VEC(cps_dsl_module *) modules; /* in order of loading */
    cps_map by_path;                   /* path -> index + 1 */
    cps_map op_by_sym, leaf_by_sym;    /* sym -> index + 1 */
    CPS_VEC(cps_dsl_op *) ops;
    CPS_VEC(cps_dsl_leaf *) leaves;
};

/* A set over a sink; both `d` and `read` are borrowed. Destroy gives everything back. */
cps_dsl_set *cps_dsl_set_create(cps_diags *d, cps_dsl_reader read, void *user);
void cps_dsl_set_destroy(cps_dsl_set *s);

/* Loads a file and all it uses (each once), then checks. NULL after E2204 when there is no such
 * file; otherwise the module, `ok` telling whether it is free of errors. Leaves are checked against
 * the ops known when cps_dsl_set_check is called, so load order does not matter. */
cps_dsl_module *cps_dsl_load(cps_dsl_set *s, const char *path);
/* The same with the text at hand (`copse compile x.cps`, tests). */
cps_dsl_module *cps_dsl_load_text(cps_dsl_set *s, const char *path, const char *text, size_t n);
/* Checks that need the whole set: ops and operands that leaves name. True when free of errors. */
bool cps_dsl_set_check(cps_dsl_set *s);

/* Looks up, asking `find` when the operator is not there yet. */
const cps_dsl_op *cps_dsl_need_op(cps_dsl_set *s, const char *name);
const cps_dsl_op *cps_dsl_find_op(const cps_dsl_set *s, const char *name);
const cps_dsl_leaf *cps_dsl_find_leaf(const cps_dsl_set *s, const char *name);
/* A const, enum or fn as seen from `m`; NULL when there is none. */
const cps_dsl_def *cps_dsl_lookup(const cps_dsl_module *m, cps_sym sym);
/* True for names that no declaration may take (functions, dtypes, free, all, prev, P, ...). */
bool cps_dsl_predefined(const char *name);

#endif

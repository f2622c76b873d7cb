/* A text read by the grammar alone, with what it needs; for tests of the parser. */
#ifndef CPS_TESTS_DSL_PARSED_H
#define CPS_TESTS_DSL_PARSED_H

#include "frontend/dsl/parser.h"

typedef struct parsed {
    cps_arena *arena;
    cps_symtab *syms;
    cps_diags *diags;
    cps_ast_file *file;
    bool ok;
} parsed;

/* `later`: bodies are read when they are needed. */
static inline parsed
parse(const char *name, const char *text, size_t n, bool later)
{
    parsed p = {cps_arena_create(), cps_symtab_create(), cps_diags_create(), NULL, false};
    uint32_t source = cps_diags_source(p.diags, name, text, n);
    p.file = cps_dsl_parse(p.arena, p.syms, p.diags, source, later, &p.ok);
    return p;
}

static inline void
drop(parsed *p)
{
    cps_diags_destroy(p->diags);
    cps_symtab_destroy(p->syms);
    cps_arena_destroy(p->arena);
}

#endif

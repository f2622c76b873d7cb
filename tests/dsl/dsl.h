/* Shared by the language tests: the folder of sources as a module set. */
#ifndef CPS_TESTS_DSL_H
#define CPS_TESTS_DSL_H

#include "frontend/dsl/load.h"
#include "runtime/base/file.h"

typedef struct dsl_files {
    cps_arena *arena;
} dsl_files;

/* "leaves/x.cps" -> tests/dsl/sources/x.cps */
static inline bool
dsl_read(void *user, const char *path, const char **text, size_t *n)
{
    dsl_files *f = user;
    cps_file file;
    if (!cps_file_open(cps_path_join(f->arena, "tests/dsl/sources", cps_path_base(path)), true,
                       &file))
        return false;
    *text = cps_arena_strndup(f->arena, (const char *)file.data, file.n);
    *n = file.n;
    cps_file_close(&file);
    return true;
}

/* An operator is looked for in the file of its name. */
static inline void
dsl_find(void *user, cps_dsl_set *s, const char *op)
{
    dsl_files *f = user;
    const char *name = cps_arena_printf(f->arena, "leaves/%s.cps", op);
    if (cps_path_exists(cps_arena_printf(f->arena, "tests/dsl/sources/%s.cps", op)))
        cps_dsl_load(s, name);
}

/* Names in tests/dsl/sources, without ".cps". */
static const char *const dsl_sources[] = {
    "attention", "attention_decode", "collective_matmul", "conv2d",       "cumsum",
    "grammar",   "matmul",           "matmul_host",       "matmul_mx",    "moe_blockwise",
    "norm_qkv_rope", "rmsnorm",      "rmsnorm_host",      "rmsnorm_quant", "rope",
    "softmax",   "topk",             NULL,
};

#endif

/* From a tile program to a compiled kernel. The passes run in the order of codegen.c, one file
 * each; every one states in its header what it needs and what holds afterwards, and can be run
 * alone (codegen/pass.h). */
#ifndef CPS_CODEGEN_CODEGEN_H
#define CPS_CODEGEN_CODEGEN_H

#include "codegen/isa/target.h"
#include "ir/tile.h"
#include "runtime/pkg/kbin.h"

typedef struct cps_codegen_opts {
    bool verify;         /* check every bundle with cps_isa_verify; findings are diagnostics */
    bool checked;        /* the program has passed cps_tile_verify as it is */
    bool keep_order;     /* issue in the order written: no scheduling */
    unsigned lookahead;  /* replays: order as a list scheduler that looks so many instructions
                            ahead and leaves stalls on an engine's own results; 0: ours */
    unsigned semaphores; /* at most so many semaphores; 0: all the target has */
    /* Called after each pass that leaves a tile program, for dumps and verifiers. May be NULL.
     * False stops the compilation. */
    bool (*after)(void *ctx, const char *pass, const cps_tfunc *f, cps_diags *d);
    void *ctx;
    cps_tfunc *spent;        /* the program itself, when it is not wanted afterwards: its views and
                                instructions go as soon as they are compiled; or NULL */
    struct cps_notes *notes; /* filled when not NULL (codegen/notes.h), in the result's arena */
} cps_codegen_opts;

/* Compiles `f`, which is not changed (but see `spent`), for `t`. `*out` and all it refers to live in `a`, except
 * constant data (cps_tbuf.data), which must outlive it. False after diagnostics: E41xx storage
 * does not fit, E53xx an instruction cannot be encoded, E62xx order. `o` may be NULL. */
bool cps_codegen(cps_arena *a, const cps_tfunc *f, const cps_target *t,
                 const cps_codegen_opts *o, cps_kbin **out, cps_diags *d);

#endif

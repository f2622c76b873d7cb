/* The path of data (design, section 4). Two entries: one kernel, and a whole model. The trace
 * cache is consulted here and nowhere else. */
#ifndef CPS_FRONTEND_COMPILE_H
#define CPS_FRONTEND_COMPILE_H

#include "codegen/codegen.h"
#include "frontend/cli.h"
#include "runtime/pkg/package.h"

typedef struct cps_compiled {
    const cps_kbin *kbin;
    cps_digest key;
    bool hit;
    const char *bir[2]; /* with --emit bir: the program of each core as BIR JSON, else NULL */
    size_t bir_bytes[2];
} cps_compiled;

/* Compiles the admitted candidate for the instance, or takes the result from the cache. The
 * result lives in `a`. False after a diagnostic. */
bool cps_compile_kernel(cps_cli *c, cps_arena *a, const cps_instance *i, const cps_candidate *k,
                        cps_compiled *out);

/* The same past the cache, with the back end's options as given: for replays. */
const cps_kbin *cps_compile_replay(cps_cli *c, cps_arena *a, cps_registry *r, const cps_instance *i,
                                   const cps_candidate *k, const cps_codegen_opts *o);

/* The binaries of all cores past the cache and unproved, for runs that only ask for the time. `before`
 * may change the tile program of each core, `after` is the back end's; both may be NULL, and so may
 * `t`. NULL after a diagnostic. */
typedef struct cps_trial {
    void (*before)(void *ctx, cps_tfunc *f);
    bool (*after)(void *ctx, const char *pass, const cps_tfunc *f, cps_diags *d);
    void *ctx;
} cps_trial;
const cps_kbin *cps_compile_trial(cps_cli *c, cps_arena *a, const cps_instance *i,
                                  const cps_candidate *k, const cps_trial *t);

/* Stopping early: the traced tile program as text. */
bool cps_compile_tile(cps_cli *c, cps_arena *a, const cps_instance *i, const cps_candidate *k,
                      cps_buf *text);

/* The independent check of a binary that nobody vouches for: the verdicts go into its figures. False
 * after a diagnostic when it races, gets stuck or cannot be loaded. `verified`: its bundles have
 * passed cps_isa_verify without a finding. `leaves`: an address in a register leaves what it is of. */
bool cps_compile_prove(cps_cli *c, const cps_target *t, cps_kbin *k, bool verified, bool *leaves);

/* Candidates of an instance and the one to take (`force` may be NULL). -1 after E1107 or E1108
 * with every reason as a note. */
int cps_choose(cps_cli *c, const cps_instance *i, const char *force, cps_candidate **cand,
               unsigned *n, const char **why);
/* The same with the candidates in `a` instead of the session's memory. */
int cps_choose_in(cps_cli *c, cps_arena *a, const cps_instance *i, const char *force, cps_candidate **cand,
                  unsigned *n, const char **why);

#endif

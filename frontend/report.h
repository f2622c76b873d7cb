/* What a run has to say: the stable keys of the design's section 7, as JSON and as a page. */
#ifndef CPS_FRONTEND_REPORT_H
#define CPS_FRONTEND_REPORT_H

#include "frontend/roof.h"
#include "runtime/base/json.h"
#include "runtime/sim/sim.h"

typedef struct cps_errs {
    double max_abs, max_rel; /* rel: against max |ref| of the whole tensor */
    double cosine;
    bool pass;
    const char *worst;       /* output that failed, or NULL */
} cps_errs;

typedef struct cps_report {
    const char *kernel, *leaf, *target, *on;
    cps_sim_report sim;      /* summed over steps for a model */
    cps_sim_report *core;    /* the same of each core, where there are several */
    unsigned cores;
    bool simulated;
    const cps_target *facts; /* NULL on the host */
    cps_roof roof;
    int64_t sbuf_peak;
    int psum_banks;
    cps_errs err;
    bool compared;
    double compile_ms, wall_ms;
    unsigned hits, misses;
    unsigned checks;         /* mask that ran */
    unsigned launches;
    unsigned proofs, race_free, deadlock_free; /* launches looked at, launches proved */
    const char *open;        /* why the first one is not, or NULL */
    bool stopped;            /* the debugger's user ended the run */
} cps_report;

/* A run of `n` cores that took `time_ps` in all; `k` (and what hangs on it) is what they ran. */
void cps_report_add(cps_arena *a, cps_report *rep, const cps_sim_report *s, unsigned n, int64_t time_ps,
                    const cps_kbin *k);

/* Members of one report inside an open object. */
void cps_report_members(cps_jsonw *w, const cps_report *r);
void cps_report_text(const cps_report *r, cps_buf *out);

/* |a-b| <= atol + rtol * max|ref|; equal infinities and NaNs match. Accumulates into *e, which
 * starts as CPS_ERRS_START. */
#define CPS_ERRS_START ((cps_errs){.cosine = 1, .pass = true})
void cps_compare(const char *name, const double *got, const double *ref, int64_t n, double rtol,
                 double atol, cps_errs *e);

#endif

/* Replays of published device times: `copse sim --validate`.
 *
 * A replay is a kernel in the language, written as the published schedule says, compiled by the
 * ordinary path and run on the simulator for its time alone. Table and kernels are embedded
 * (tests/validate/ of the source tree); a folder of the same form may be given instead. */
#ifndef CPS_FRONTEND_VALIDATE_H
#define CPS_FRONTEND_VALIDATE_H

#include "codegen/isa/isa.h"
#include "frontend/compile.h"
#include "runtime/base/json.h"
#include "runtime/sim/sim.h"

/* What a kernel executes: bytes of HBM, and bytes of one partition that instructions with one tensor
 * input read and wrote. */
typedef struct cps_vcounts {
    unsigned times[CPS_INSNS];
    double hbm_read, hbm_written, sbuf_read, sbuf_written, psum_read, psum_written;
} cps_vcounts;

/* False: the kernel goes back in its code, so that a count needs a run. */
bool cps_validate_count(const cps_kbin *k, cps_vcounts *out);

/* One line of rows.tsv; README.md beside it explains the columns. Texts live in the arena. */
typedef struct cps_vrow {
    const char *name;
    double published;                   /* ns */
    bool bound;                         /* one-sided */
    double low;                         /* other end of the published interval, 0: none */
    const char *group;                  /* matmul, dma, point ... */
    bool soft;                          /* left out of the stricter of the two summaries */
    const char *device, *dtype, *shape; /* as published */
    const char *file;                   /* NULL: not replayed, `note` says why */
    const char *op, *leaf, *target;
    const char *dims, *attrs; /* "M=1,N=2" */
    const char *measure;      /* "time" or a measure of single instructions */
    bool fixed;               /* the target's start and stop time is part of the figure */
    int lookahead;            /* -1: order as written; 0: this compiler's; else the vendor's */
    bool slow;                /* not part of the fast subset */
    const char *source, *note;
    uint32_t line;
    /* filled by the run */
    bool ran;
    double predicted; /* ns */
    double error;     /* signed fraction; bounds: how far above the limit, 0 when respected */
    cps_sim_report sim;
    bool counted;
    cps_vcounts counts;
    double compile_ms, wall_ms;
} cps_vrow;

typedef struct cps_vtable {
    CPS_VEC(cps_vrow) rows;
    const char *dir; /* NULL: the embedded one */
} cps_vtable;

/* Reads the table. False after E1113 (a line that is no row) or E1001. */
bool cps_validate_read(cps_cli *c, const char *dir, cps_vtable *t);
/* The text of a kernel file beside the table, in the session's arena; NULL after E1001. */
const char *cps_validate_text(cps_cli *c, const cps_vtable *t, const char *file, size_t *n);

/* The measure of a traced run in ns; NaN when nothing of that name happened, or no such
 * measure. */
double cps_validate_measure(const cps_sim *s, const char *measure);

cps_exit cps_validate(cps_cli *c); /* the command */

/* Medians and 90th percentiles of absolute errors. */
typedef struct cps_vstats {
    unsigned n;
    double median, p90, worst, mean; /* mean: signed */
} cps_vstats;
cps_vstats cps_validate_stats(cps_cli *c, const cps_vtable *t, const char *group, bool hard);

void cps_validate_text_report(cps_cli *c, const cps_vtable *t, cps_buf *out);
void cps_validate_json(cps_cli *c, const cps_vtable *t, cps_buf *out);
void cps_validate_page(cps_cli *c, const cps_vtable *t, cps_buf *out);

#endif

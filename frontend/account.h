/* Where the modelled time of one kernel goes, and the three changes that would help it most. */
#ifndef CPS_FRONTEND_ACCOUNT_H
#define CPS_FRONTEND_ACCOUNT_H

#include "frontend/roof.h"
#include "frontend/timed.h"
#include "runtime/base/json.h"

enum { CPS_CHANGES = 3 };

/* Something an author can do, with what a simulated run says it is worth. */
typedef struct cps_change {
    const char *action; /* in the author's terms */
    const char *run;    /* what was simulated to find out */
    int64_t saves_ps;
    const char *file; /* the source line it concerns, or NULL */
    uint32_t line;
    double share; /* that line's part of the time concerned, 0 to 1; 1 for a declaration */
} cps_change;

typedef struct cps_account {
    const char *kernel, *leaf, *why, *call;
    const char *config; /* "MB=4,WB=2" */
    const cps_target *target;
    bool has_leaf; /* it was made here: buffers, leaves and parameters were tried */
    bool has_roof; /* a kernel's folder alone does not know its mathematics */
    cps_roof roof;
    cps_timed timed; /* a run with records */
    unsigned nchanges;
    cps_change change[CPS_CHANGES]; /* most worth first */
} cps_account;

/* Adds a change to the list when it is among the best. */
void cps_account_add(cps_account *a, const cps_change *x);
/* The changes of the machine that would help (cps_sim_hints), of the core that ends last. */
void cps_account_hints(cps_account *a);

void cps_account_text(const cps_account *a, cps_buf *out);
void cps_account_json(const cps_account *a, cps_jsonw *w); /* one object */

#endif

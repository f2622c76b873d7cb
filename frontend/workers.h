/* Work shared among processes: each is a copy of this one, so nothing needs locks, and what a
 * job leaves is exactly what it would leave if it ran alone. */
#ifndef CPS_FRONTEND_WORKERS_H
#define CPS_FRONTEND_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory that the processes have in common; give it back with its size. */
void *cps_shared(size_t bytes);
void cps_shared_free(void *p, size_t bytes);

typedef struct cps_work {
    unsigned workers, n;
    void (*job)(void *ctx, unsigned i); /* job i; its results go to shared memory */
    void *ctx;
    const char *what; /* for the progress bar: "trying" */
} cps_work;

/* Runs jobs 0 to n - 1, each once, in any order, and waits. Shows a progress bar when standard
 * error is a terminal and the work takes more than a second. False when a worker did not come
 * to its end. */
bool cps_work_run(const cps_work *w);

#endif

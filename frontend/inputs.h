/* Inputs of a run: seeded, the same on every machine, or from .npy files; and outputs to files. */
#ifndef CPS_FRONTEND_INPUTS_H
#define CPS_FRONTEND_INPUTS_H

#include "frontend/cli.h"
#include "ir/ir.h"

/* One tensor at the border of a run, in its storage dtype. */
typedef struct cps_io {
    const char *name;
    cps_type type;
    void *data;     /* type bytes */
    double *exact;  /* unrounded values, when an evaluator made them; else NULL */
} cps_io;

/* The exclusive upper bound for the integer input `v` of `f`: the extent it indexes when it
 * reaches a gather through casts and reshapes, else 2 (masks and flags). */
int64_t cps_index_bound(const cps_func *f, cps_val v);

/* Fills io->data: floats normal(0,1) rounded to the type, integers uniform below `bound`, bool 0
 * or 1. Input number `index` of the run. */
void cps_io_random(cps_arena *a, cps_io *io, uint64_t seed, uint64_t index, int64_t bound);

/* Every `--input NAME=F.npy` must name one of the inputs and fit it; the others are random. */
bool cps_io_inputs(cps_cli *c, cps_io *io, unsigned n, const int64_t *bound);

/* dir/prefix + quoted name + .npy, unrounded values as <f8 when there are some. */
bool cps_io_save(cps_cli *c, const char *dir, const char *prefix, const cps_io *io);

#endif

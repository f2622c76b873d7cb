/* A registry for tests: the operators of kernels/reference by signature and a body built in C,
 * one leaf each that can be told to refuse. It lets lowering be tested without the language. */
#ifndef CPS_TESTS_LOWER_FAKE_H
#define CPS_TESTS_LOWER_FAKE_H

#include "kernels/registry.h"

typedef struct cps_fake {
    cps_registry reg;    /* self points back here */
    const char *refused; /* blank-separated operators whose leaf refuses everything */
    const char *absent;  /* blank-separated operators that do not exist */
    /* The leaf of matmul refuses operands beyond x and w, and activations. */
    bool plain_matmul;
    unsigned asked; /* candidates() calls */
} cps_fake;

void cps_fake_init(cps_fake *f);

#endif

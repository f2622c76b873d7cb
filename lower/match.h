/* What several raising rules look for: softmax, trailing axes, vectors along the last axes. */
#ifndef CPS_LOWER_MATCH_H
#define CPS_LOWER_MATCH_H

#include "lower/pass.h"

/* The nodes a pattern was made of, for provenance. */
typedef struct cps_trail {
    int n;
    const cps_node *node[24];
} cps_trail;

static inline void
cps_trail_add(cps_trail *t, const cps_node *n)
{
    if (n && t->n < (int)cps_countof(t->node))
        t->node[t->n++] = n;
}

/* The reduction `n` runs over the last axes of its operand and keeps them as ones: how many. 0
 * when it does not. */
int cps_match_trailing(const cps_rw *w, const cps_node *n);
/* v = softmax(x) over its last `axes` axes. */
bool cps_match_softmax(const cps_rw *w, cps_val v, cps_val *x, int *axes, cps_trail *t);
/* v has the extents of the last `axes` axes of `of` and ones before them. */
bool cps_match_vector(const cps_rw *w, cps_val v, const cps_type *of, int axes);
/* "Minus infinity" of exporters: exp() of a sane difference is zero. */
#define CPS_MASKED -1e4
/* What an element of a mask says of its key: a number that is added to the score, that the key
 * stays, or that it is hidden. */
typedef enum cps_mask_form { CPS_MASK_ADDS, CPS_MASK_KEEPS, CPS_MASK_HIDES } cps_mask_form;
/* The last two axes of v, queries i and keys j of one extent, keep j <= i, and of these i - j <
 * *window unless it is 0, whatever leading axes v broadcasts along (mask.c). */
bool cps_match_band(const cps_rw *w, cps_val v, cps_mask_form form, int64_t *window);
/* The operator's name for an activation op ("gelu"), or NULL. */
const char *cps_match_act(cps_op op);

#endif

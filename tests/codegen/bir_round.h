/* A kernel through BIR JSON and back: the text prints again as it was, the kernel is the same
 * byte for byte. */
#ifndef CPS_TESTS_CODEGEN_BIR_ROUND_H
#define CPS_TESTS_CODEGEN_BIR_ROUND_H

#include "codegen/bir/bir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void
bir_report(const cps_diags *d)
{
    cps_buf b = {0};
    cps_diags_render(d, &b, false);
    if (b.n)
        fputs(b.data, stderr);
    cps_buf_fini(&b);
}

static inline bool
bir_same_kernel(const cps_kbin *k, const cps_kbin *l)
{
    cps_buf a = {0}, b = {0};
    cps_kbin_pack(k, &a);
    cps_kbin_pack(l, &b);
    bool same = a.n == b.n && !memcmp(a.data, b.data, a.n);
    cps_buf_fini(&a);
    cps_buf_fini(&b);
    return same;
}

static inline int
bir_by_record(const void *a, const void *b)
{
    const cps_kreloc *x = a, *y = b;
    return x->engine != y->engine ? (int)x->engine - (int)y->engine
           : x->index != y->index ? (x->index < y->index ? -1 : 1)
                                  : (int)x->field - (int)y->field;
}

/* Without notes the program order of all engines is not known, and relocations come by engine.
 */
static inline void
bir_sort_relocs(cps_kbin *k)
{
    if (k->relocs.n)
        qsort(k->relocs.data, k->relocs.n, sizeof(cps_kreloc), bir_by_record);
}

static inline bool
bir_round_trip(cps_kbin *k, const cps_notes *n)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_buf one = {0}, two = {0};
    cps_bir_write(k, n, &one);
    uint32_t source = cps_diags_source(d, "kernel.bir.json", one.data, one.n);
    cps_bir *b = cps_bir_read(a, one.data, one.n, source, d);
    bool ok = b && cps_diags_count(d) == 0;
    if (b)
        cps_bir_print(b, &two);
    ok = ok && two.n == one.n && !memcmp(one.data, two.data, one.n);
    cps_kbin *back = b ? cps_bir_kernel(a, b, d) : NULL;
    if (back && !n) {
        bir_sort_relocs(k);
        bir_sort_relocs(back);
    }
    ok = ok && back && bir_same_kernel(k, back);
    bir_report(d);
    cps_diags_destroy(d);
    cps_buf_fini(&one);
    cps_buf_fini(&two);
    cps_arena_destroy(a);
    return ok;
}

#endif

/* A growable typed array inside an arena. Growth leaves the old storage to the arena, or happens in
 * place: at the arena's end, or in the block of its own that a large one has. */
#ifndef CPS_BASE_VEC_H
#define CPS_BASE_VEC_H

#include "runtime/base/arena.h"

#include <string.h>

#define CPS_VEC(T)                                                                               \
    struct {                                                                                     \
        T *data;                                                                                 \
        uint32_t n, cap;                                                                         \
    }

void *cps_vec_grow(cps_arena *a, void *data, uint32_t n, uint32_t *cap, uint32_t want, size_t elem);

#define cps_vec_reserve(a, v, want)                                                              \
    ((v)->cap >= (uint32_t)(want)                                                                \
         ? (void)0                                                                               \
         : (void)((v)->data = cps_vec_grow((a), (v)->data, (v)->n, &(v)->cap,                    \
                                           (uint32_t)(want), sizeof(*(v)->data))))

/* Empties a vector that nobody looks at any more; a large one's memory serves again at once. Not between
 * a mark and its release. */
void cps_vec_give_back(cps_arena *a, void *data);
#define cps_vec_drop(a, v)                                                                       \
    (cps_vec_give_back((a), (v)->data), (v)->data = NULL, (void)((v)->n = (v)->cap = 0))

#define cps_vec_push(a, v, x) (cps_vec_reserve((a), (v), (v)->n + 1), (v)->data[(v)->n++] = (x))

/* Appends one zeroed element and yields its address (valid until the next push). */
#define cps_vec_add(a, v)                                                                        \
    (cps_vec_reserve((a), (v), (v)->n + 1),                                                      \
     memset(&(v)->data[(v)->n], 0, sizeof(*(v)->data)), &(v)->data[(v)->n++])

#endif

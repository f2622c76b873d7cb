/* Which instruction set's loops run on this processor. */
#include "runtime/sim/wide.h"

const wide_loops *
wide_at(int level)
{
#if defined(__x86_64__)
    if (level == 2)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
                   ? &wide_avx512
                   : NULL;
    if (level == 1)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &wide_avx2 : NULL;
#endif
    return level == 0 ? &wide_base : NULL;
}

const wide_loops *
wide_best(void)
{
    for (int level = 2;; level--) {
        const wide_loops *w = wide_at(level);
        if (w)
            return w;
    }
}

/* What tests/bench/sim.py calls of machine.c; its ctypes declarations follow this file. */
#ifndef CPS_TESTS_BENCH_MACHINE_H
#define CPS_TESTS_BENCH_MACHINE_H

#include "codegen/isa/target.h"
#include "runtime/sim/sim.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct bench bench;

/* What a run took: seconds of processor, and what the simulator counted. */
typedef struct bench_result {
    double seconds;
    uint64_t instructions;
    int64_t time_ps;
} bench_result;

EXPORT const char *bench_error(void);
EXPORT void bench_close(bench *b);
EXPORT bench *bench_open(const char *dir);
EXPORT bench *bench_new(const char *target, const char *engine);
EXPORT void bench_load(bench *b, const char *name, int rows, int byte, int64_t row);
EXPORT bool bench_code(bench *b, const char *before, const char *body, int times, const char *last, const char *after);
EXPORT void bench_store(bench *b, const char *name, int rows, int byte, int64_t row);
EXPORT bool bench_ready(bench *b);
EXPORT bool bench_bind(bench *b, const char *name, void *data, size_t bytes, int defined);
EXPORT bool bench_run(bench *b, int checks, bench_result *out);

#endif

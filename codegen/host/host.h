/* Host code: a graph function of base ops becomes one object for the build machine's processor.
 *
 * This header knows no LLVM. The generator is the shared object libcopse-llvm.so, opened when
 * host code is made for the first time (from the program's own folder or ../lib); absent,
 * making host code is the diagnostic E1111. A NeuronCore compile and a cache hit never load it.
 *
 * The object exports (see the header text that comes with it):
 *   int cps_model_run(const void *weights, const void *const *in, void *const *out, void
 * *scratch); 0 on success; reentrant, no global state. `in` and `out` point to the storage of
 * inputs and outputs in the graph's order; `scratch` to cps_model_scratch_bytes bytes, aligned
 * to 64; `weights` to the contents of weights.bin (constants at the offsets given below).
 *   extern const uint64_t cps_model_scratch_bytes, cps_model_weights_bytes; */
#ifndef CPS_CODEGEN_HOST_HOST_H
#define CPS_CODEGEN_HOST_HOST_H

#include "ir/ir.h"

typedef struct cps_host_opts {
    int olevel;      /* 0..3 */
    const char *cpu; /* LLVM name; NULL: this machine's */
} cps_host_opts;

typedef struct cps_host_out {
    cps_buf object; /* ELF relocatable */
    cps_buf llvm;   /* the module as LLVM text, when asked for */
    cps_buf header; /* host.h: names, dtypes, shapes of inputs and outputs, prototypes */
    int64_t scratch_bytes;
} cps_host_out;

/* `offset[i]` is where constant i of the module lies in weights.bin, or -1 for constants that
 * may be embedded in the code (up to 4 KiB each). `want_llvm` fills out->llvm. False after
 * E72xx (an op or dtype the host does not do, each named) or E1111. */
bool cps_host_compile(const cps_module *m, const cps_func *f, const int64_t *offset,
                      const cps_host_opts *o, bool want_llvm, cps_host_out *out, cps_diags *d);

/* A text that differs between processors for which different code would be made (vendor,
 * family, model, features by cpuid): part of the cache key, so that a hit needs no LLVM. */
void cps_host_cpu(char *out, size_t n);

/* Links an object to a shared object with the system's `ld`, by way of two temporary files that
 * are removed. False after E1112. */
bool cps_host_link(const void *object, size_t n, cps_buf *so, cps_diags *d);

#endif

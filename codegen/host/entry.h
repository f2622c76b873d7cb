/* What libcopse-llvm.so exports, as the program looks it up by name. */
#ifndef CPS_CODEGEN_HOST_ENTRY_H
#define CPS_CODEGEN_HOST_ENTRY_H

#include "codegen/host/host.h"

#define CPS_LLVM_LIBRARY "libcopse-llvm.so"

typedef bool cps_llvm_host_compile_fn(const cps_module *m, const cps_func *f,
                                      const int64_t *offset, const cps_host_opts *o,
                                      bool want_llvm, cps_host_out *out, cps_diags *d);

cps_llvm_host_compile_fn cps_llvm_host_compile;
/* The version both sides were built as. */
extern const char cps_llvm_version[];

#endif

/* The front without LLVM: opens the generator from beside the program when host code is asked
 * for the first time, and passes the call on. The library stays loaded; opening it again only
 * counts. */
#include "codegen/host/entry.h"

#include "runtime/base/module.h"

#include <dlfcn.h>
#include <string.h>

static void *
open_library(cps_diags *d)
{
    const char *why;
    void *lib = cps_module_open(CPS_LLVM_LIBRARY, &why);
    if (!lib && why)
        cps_error(d, CPS_E1111, CPS_NOSPAN, "the host code generator cannot be opened: %s",
                  why);
    else if (!lib)
        cps_error(d, CPS_E1111, CPS_NOSPAN,
                  "there is no %s beside the program, in lib/ or in ../lib/", CPS_LLVM_LIBRARY);
    return lib;
}

bool
cps_host_compile(const cps_module *m, const cps_func *f, const int64_t *offset,
                 const cps_host_opts *o, bool want_llvm, cps_host_out *out, cps_diags *d)
{
    void *lib = open_library(d);
    if (!lib)
        return false;
    const char *version = dlsym(lib, "cps_llvm_version");
    cps_llvm_host_compile_fn *fn;
    *(void **)&fn = dlsym(lib, "cps_llvm_host_compile");
    bool ok = false;
    if (!version || !fn || strcmp(version, CPS_VERSION) != 0)
        cps_error(d, CPS_E1111, CPS_NOSPAN, "%s is of version %s, this program of %s",
                  CPS_LLVM_LIBRARY, version ? version : "unknown", CPS_VERSION);
    else
        ok = fn(m, f, offset, o, want_llvm, out, d);
    dlclose(lib);
    return ok;
}

/* The front without LLVM: opens the generator from beside the program when host code is asked
 * for the first time, and passes the call on. The library stays loaded; opening it again only
 * counts. */
#include "codegen/host/entry.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Folders looked in, relative to the program's. */
static const char *const folders[] = {"", "lib/", "../lib/"};

// The program's folder with its final slash; false when the system does not tell.
static bool
own_folder(char *dir, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", dir, size - 1);
    if (n <= 0 || (size_t)n >= size - 1)
        return false;
    dir[n] = 0;
    char *slash = strrchr(dir, '/');
    if (!slash)
        return false;
    slash[1] = 0;
    return true;
}

static void *
open_library(cps_diags *d)
{
    char dir[4096], path[4096 + 64];
    if (!own_folder(dir, sizeof dir)) {
        cps_error(d, CPS_E1111, CPS_NOSPAN, "the program's own folder is not known");
        return NULL;
    }
    const char *why = NULL;
    for (size_t i = 0; i < cps_countof(folders); i++) {
        snprintf(path, sizeof path, "%s%s%s", dir, folders[i], CPS_LLVM_LIBRARY);
        if (access(path, F_OK) != 0)
            continue;
        void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (lib)
            return lib;
        why = dlerror();
        break;
    }
    if (why)
        cps_error(d, CPS_E1111, CPS_NOSPAN, "the host code generator cannot be opened: %s",
                  why);
    else
        cps_error(d, CPS_E1111, CPS_NOSPAN,
                  "there is no %s beside the program, in lib/ or in ../lib/", CPS_LLVM_LIBRARY);
    return NULL;
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

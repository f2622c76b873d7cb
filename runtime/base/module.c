/* Where shared objects of our own are found. In: a file name. Out: a handle for dlsym. Only the
 * program's own folder counts, never the library path: what is opened belongs to the program.
 */
#include "runtime/base/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *
cps_module_open(const char *name, const char **why)
{
    static const char *const place[] = {"", "lib/", "../lib/"};
    char dir[4096], path[4096 + 256];
    *why = NULL;
    ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
    if (n <= 0 || (size_t)n >= sizeof dir - 1) {
        *why = "the program's own folder is not known";
        return NULL;
    }
    dir[n] = 0;
    char *slash = strrchr(dir, '/');
    slash ? (slash[1] = 0) : (dir[0] = 0);
    for (size_t i = 0; i < cps_countof(place); i++) {
        snprintf(path, sizeof path, "%s%s%s", dir, place[i], name);
        if (access(path, R_OK) != 0)
            continue;
        void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!lib)
            *why = dlerror();
        return lib;
    }
    return NULL;
}

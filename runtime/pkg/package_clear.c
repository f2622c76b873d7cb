/* Takes away what an earlier package left in a folder, so that the folder holds exactly what the
 * new manifest describes. Only files that a package consists of are removed, and only where a
 * manifest says that the folder is one; anything else a user keeps there stays. */
#include "runtime/base/file.h"
#include "runtime/pkg/package_plan.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

static const char *const top_files[] = {"manifest.json", "weights.bin", "graph.cir",
                                        "host.o",        "host.so",     "host.h",
                                        "model.neff"};
static const char *const kernel_files[] = {"pe.bin",   "act.bin",     "pool.bin",    "dve.bin", "sp.bin",
                                           "dma.json", "reloc.json",  "kernel.json", "data.bin",
                                           "kernel.cas", "kernel.bir.json"};

void
cps_package_clear(cps_arena *a, const char *dir)
{
    cps_mark mark = cps_arena_mark(a);
    if (cps_path_exists(cps_path_join(a, dir, "manifest.json"))) {
        // The manifest goes first: a folder without one is incomplete and says so.
        for (unsigned i = 0; i < cps_countof(top_files); i++)
            unlink(cps_path_join(a, dir, top_files[i]));
        const char *kdir = cps_path_join(a, dir, "kernels");
        DIR *d = opendir(kdir);
        for (struct dirent *e; d && (e = readdir(d));) {
            if (e->d_name[0] == '.')
                continue;
            const char *sub = cps_path_join(a, kdir, e->d_name);
            static const char *const core[] = {"core0", "core1"};
            for (unsigned i = 0; i < cps_countof(kernel_files); i++) {
                unlink(cps_path_join(a, sub, kernel_files[i]));
                for (unsigned k = 0; k < cps_countof(core); k++)
                    unlink(cps_path_join(a, cps_path_join(a, sub, core[k]), kernel_files[i]));
            }
            for (unsigned k = 0; k < cps_countof(core); k++)
                rmdir(cps_path_join(a, sub, core[k]));
            rmdir(sub);
        }
        if (d)
            closedir(d);
    }
    cps_arena_release(a, mark);
}

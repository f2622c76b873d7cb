/* Dependency files for make and ninja: which files a command read (-MD, -MF). */
#ifndef CPS_FRONTEND_DEPFILE_H
#define CPS_FRONTEND_DEPFILE_H

#include "frontend/cli.h"

/* The command reads the file `path`: said where it is opened, or where a cache vouches for its bytes. */
void cps_cli_depends(cps_cli *c, const char *path);
/* And `name`, a file beside `path`. */
void cps_cli_depends_beside(cps_cli *c, const char *path, const char *name);

/* Whether what -MD and -MF ask for can be written when the command makes `out` (NULL, "-": standard
 * output, which is no target). False after E1104. */
bool cps_depfile_allowed(cps_cli *c, const char *out);

/* When asked for: `out` depends on the files that were read. False after E1002, and after E1104 for a
 * name that no rule can hold. */
bool cps_depfile_write(cps_cli *c, const char *out);

#endif

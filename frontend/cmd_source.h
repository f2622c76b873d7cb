/* .cps sources as input of compile; see cmd_source.c. */
#ifndef CPS_FRONTEND_CMD_SOURCE_H
#define CPS_FRONTEND_CMD_SOURCE_H

#include "frontend/cli.h"

/* Whether a path names a source of the kernel language. */
bool cps_is_source(const char *path);

/* Whether the options are those of the input: how an operator is called is said of a source alone. E1104. */
bool cps_source_options(cps_cli *c, const char *path);

/* `compile F.cps`: the operator or block of the file as a package in `to`, or with --emit graph, tile or
 * asm its text. */
cps_exit cps_source_compile(cps_cli *c, const char *path, const char *to);

#endif

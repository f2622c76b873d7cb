/* BIR JSON files on the command line; see cmd_bir.c. */
#ifndef CPS_FRONTEND_CMD_BIR_H
#define CPS_FRONTEND_CMD_BIR_H

#include "frontend/cli.h"

/* Whether a path names a BIR document by its ending: .bir.json or .bir. */
bool cps_is_bir(const char *path);
/* Whether the command's arguments are one document, or two: of both cores of a pair. */
bool cps_are_bir(const cps_cli *c);

/* `compile F.bir.json [F.bir.json]`: the kernel the documents of its cores describe as a package of one step, or with
 * --emit asm its listing, with --emit bir the document itself. `dir` is the folder or the
 * text's file. */
cps_exit cps_bir_compile(cps_cli *c, const char *dir);

/* `opt F.bir.json`: reads, checks and writes the document. */
cps_exit cps_bir_opt(cps_cli *c, const char *path, const char *to);

#endif

/* Blocks of the registry as packages; see block.c. */
#ifndef CPS_FRONTEND_BLOCK_H
#define CPS_FRONTEND_BLOCK_H

#include "frontend/execute.h"

bool cps_is_block(cps_cli *c, const char *op);

/* The package of a block's calls; `ref` gets the body with all calls inlined. NULL after errors. */
cps_package *cps_block_package(cps_cli *c, const cps_instance *inst, cps_module **ref, unsigned *hits,
                               unsigned *misses);

/* Compiles and simulates a block, compares when asked, emits the report. */
cps_exit cps_block_run(cps_cli *c, const cps_instance *inst, cps_io *in, unsigned nin, cps_io *out,
                       unsigned nout, unsigned checks, cps_report *rep);

#endif

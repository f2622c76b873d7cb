/* The debugger of simulated runs: --break, --watch and --dump. Commands are read from standard input,
 * what they print goes to standard output. */
#ifndef CPS_FRONTEND_DEBUG_H
#define CPS_FRONTEND_DEBUG_H

#include "frontend/cli.h"
#include "runtime/sim/debug.h"

typedef struct cps_debug cps_debug;

/* NULL when none of the options is given; clears *ok after E1104. Lives in the command's arena. */
cps_debug *cps_debug_open(cps_cli *c, bool *ok);
/* Before a run of the kernels loaded in the cores of `s`. False after E1104: a place outside memory, or
 * one that may be of several cores. NULL is fine here and below. */
bool cps_debug_attach(cps_debug *g, cps_sim_group *s, unsigned cores, const char *kernel, cps_sim_opts *o);
/* After it: a last look at the machine when it failed or was stopped on its way, then dumps.
 * Diagnostics are printed first. False when the run failed or a dump could not be written. */
bool cps_debug_detach(cps_debug *g, bool ok);
/* At the end of the command: what was never reached. False after E1104 for a variable that no kernel
 * had. */
bool cps_debug_close(cps_debug *g);
bool cps_debug_quit(const cps_debug *g); /* the user ended the run */

#endif

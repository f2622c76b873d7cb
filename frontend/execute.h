/* Running things: one kernel on the simulator, a graph function by the reference evaluator or as
 * host code, a package on the simulator or the host. */
#ifndef CPS_FRONTEND_EXECUTE_H
#define CPS_FRONTEND_EXECUTE_H

#include "frontend/inputs.h"
#include "frontend/report.h"
#include "runtime/pkg/package.h"

/* Values of an io as doubles: exact ones when present, else widened from storage. */
const double *cps_io_values(cps_arena *a, const cps_io *io);

/* The reference evaluator on storage inputs; outs get data (rounded) and exact values. */
bool cps_execute_ref(cps_cli *c, const cps_module *m, const cps_func *f, const cps_io *in,
                     unsigned nin, cps_io *out, unsigned nout, bool fp32);

/* Host code of a graph function, compiled, loaded and called once. Fills compile_ms, wall_ms. */
bool cps_execute_host_func(cps_cli *c, cps_module *m, cps_func *f, const cps_io *in, unsigned nin,
                           cps_io *out, unsigned nout, cps_report *rep);

/* One kernel on the simulator. Operands stored with swapped axes are laid out so first. */
bool cps_execute_kernel(cps_cli *c, const cps_instance *i, const cps_kbin *k, const cps_io *in,
                        unsigned nin, cps_io *out, unsigned nout, unsigned checks, cps_report *rep);

/* The options of a simulated run. */
bool cps_sim_options(cps_cli *c, unsigned checks, bool trace, cps_sim_opts *out);

/* All steps of a package on the simulator (times summed) or the host. in and out are in the
 * package's order. Per-step reports go to `each` when it is not NULL (one per step). */
bool cps_execute_package(cps_cli *c, const cps_package *p, const char *on, const cps_io *in,
                         cps_io *out, unsigned checks, cps_report *rep, cps_report *each);

/* The facts of a package's target, from --target when it is not a shipped one. NULL after E8003. */
const cps_target *cps_package_target(cps_cli *c, const cps_package *p);

/* The host.so of a package, loaded and called once. */
bool cps_execute_host_so(cps_cli *c, const cps_package *p, const cps_io *in, cps_io *out);

/* The report to where --report says (JSON), else as text to standard error; exit 3 when a
 * comparison failed. */
cps_exit cps_report_emit(cps_cli *c, const cps_report *rep);

#endif

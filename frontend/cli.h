/* The command line: options as rows (opt.def), commands as rows (cmd.def), and what every command
 * needs: memory, diagnostics, registry, cache, target. */
#ifndef CPS_FRONTEND_CLI_H
#define CPS_FRONTEND_CLI_H

#include "codegen/cache.h"
#include "codegen/isa/target.h"
#include "kernels/registry.h"
#include "runtime/base/diag.h"
#include "runtime/base/vec.h"

typedef enum cps_opt {
#define CPS_OPT(id, ...) CPS_OPT_##id,
#include "frontend/opt.def"
    CPS_OPTS
} cps_opt;

typedef struct cps_cli {
    cps_arena *arena;
    cps_diags *diags;
    const char *command;
    CPS_VEC(const char *) args;        /* positional */
    CPS_VEC(const char *) opt[CPS_OPTS]; /* values in order; flags hold "" */
    CPS_VEC(const char *) deps;        /* files that were read, in order (depfile.h) */
    cps_registry *registry;            /* made on demand */
    cps_cache *cache;
    bool registry_failed;              /* a file of -I was refused; said already */
    bool json_messages, color;
} cps_cli;

#define CPS_CMD(id, ...) cps_exit cps_cmd_##id(cps_cli *c);
#include "frontend/cmd.def"

/* Fills args and options for `command`. False after E110x. */
bool cps_cli_parse(cps_cli *c, int argc, char **argv);
void cps_cli_help(const char *command, cps_buf *out); /* NULL: the overview */
/* Appends the closest command name when there is one near. */
const char *cps_cli_near(const char *name);

static inline bool
cps_cli_has(const cps_cli *c, cps_opt o)
{
    return c->opt[o].n != 0;
}
/* The last value given, or `dflt`. */
const char *cps_cli_str(const cps_cli *c, cps_opt o, const char *dflt);
/* Integer in [lo, hi]; clears *ok after E1104. */
int64_t cps_cli_int(cps_cli *c, cps_opt o, int64_t dflt, int64_t lo, int64_t hi, bool *ok);
/* --logical-nc-config: 1, or 2 where the target has pairs of cores (`t` NULL: the host). */
int cps_cli_cores(cps_cli *c, const cps_target *t, bool *ok);
/* One of a blank-separated list of words; NULL after E1104. */
const char *cps_cli_word(cps_cli *c, cps_opt o, const char *dflt, const char *words);

/* NULL target means host; *ok is cleared after a diagnostic. */
const cps_target *cps_cli_target(cps_cli *c, bool *ok);
cps_registry *cps_cli_registry(cps_cli *c); /* NULL after a diagnostic */
cps_cache *cps_cli_cache(cps_cli *c);
unsigned cps_cli_checks(cps_cli *c, bool *ok);

/* Standard output, or a file written atomically; E1002. */
bool cps_cli_write(cps_cli *c, const char *path, const void *data, size_t n);
/* Prints what the sink holds so far to standard error and clears it. */
void cps_cli_flush(cps_cli *c);
/* Exit code for a command that failed with diagnostics: 4 for capacity (E410x), 74 for I/O, else 1. */
cps_exit cps_cli_failed(const cps_cli *c);
double cps_now_ms(void); /* monotonic */

#endif

/* A whole model, from a file to a package in memory (design, section 4). */
#ifndef CPS_FRONTEND_MODEL_H
#define CPS_FRONTEND_MODEL_H

#include "frontend/cli.h"
#include "frontend/inputs.h"
#include "runtime/pkg/package.h"

typedef struct cps_model {
    cps_module *module;   /* the imported graph; lowering changes it in place */
    void *files;          /* mapped files behind its constants */
} cps_model;

/* Reads .onnx or .cir with the command line's --dim; runs the passes up to the reference graph
 * (folded, canonical, auto-cast applied). False after diagnostics. */
bool cps_model_read(cps_cli *c, const char *path, cps_model *out);
/* A graph as text, its large constants in PATH.data beside it (none for "-"); and back, with the
 * digests of the constants checked. False after diagnostics. */
bool cps_model_write(cps_cli *c, cps_module *m, const char *path);
bool cps_model_parse(cps_cli *c, const char *path, cps_model *out);
void cps_model_close(cps_model *m);

/* Lowers in place for the target (NULL: host, nothing is raised) down to registry calls. */
bool cps_model_lower(cps_cli *c, cps_model *m, const cps_target *t);

/* Lowers and compiles; the package refers to the model's constants and lives in the command's
 * arena. NULL after diagnostics. */
cps_package *cps_model_compile(cps_cli *c, cps_model *m, const cps_target *t, unsigned *hits,
                               unsigned *misses);

/* The host code of a model that was read, as LLVM text; the caller frees it. False after diagnostics. */
bool cps_model_llvm(cps_cli *c, cps_model *m, cps_buf *text);

/* Why each macro call gets its leaf (text or JSON). The model itself is not changed. */
bool cps_model_explain(cps_cli *c, cps_model *m, const cps_target *t, bool json, cps_buf *out);

/* The distinct calls of registry operators that the model becomes, in order of their first steps: each
 * is a kernel of cps_model_compile's package, with that name. The model itself is not changed. */
typedef struct cps_call {
    const char *name;   /* of the kernel */
    const cps_decision *pick; /* or NULL */
    cps_instance inst;
    unsigned times;     /* steps */
} cps_call;
bool cps_model_calls(cps_cli *c, cps_model *m, const cps_target *t, cps_call **out, unsigned *n);

/* The module as it stands, independent of later changes (constants are shared). */
cps_module *cps_model_copy(cps_cli *c, const cps_model *m);

/* Bounds of a package's integer inputs: from its reference graph where it has one. */
int64_t *cps_package_bounds(cps_cli *c, const cps_package *p);

/* Tolerance of a whole model against the reference: by the narrowest float of its graph (2e-2 for
 * 16-bit, 1e-3 for fp32 on a NeuronCore, 1e-4 on the host). */
double cps_model_rtol(const cps_module *m, const char *on);

/* Gives the candidate of the decided leaf the parameters of the decision (NULL: nothing was decided). */
void cps_take_decision(cps_arena *a, cps_candidate *k, const cps_decision *pick);

/* One compiled kernel as a package of one step, its operator's body as the reference graph. */
struct cps_compiled;
cps_package *cps_kernel_package(cps_cli *c, const cps_instance *i, const cps_candidate *k,
                                const char *why, const struct cps_compiled *bin);

/* The reference graph of a package that was read back: parsed text, constants in weights.bin. */
cps_module *cps_package_graph(cps_cli *c, const cps_package *p);

/* Inputs and outputs of a package, by its manifest. */
void cps_package_io(cps_cli *c, const cps_package *p, cps_io **in, cps_io **out);

/* Inputs of a graph or a package as io records (no data yet), bounds of integer inputs. */
unsigned cps_graph_inputs(cps_cli *c, const cps_func *f, cps_io **io, int64_t **bound);
unsigned cps_graph_outputs(cps_cli *c, const cps_func *f, cps_io **io);

#endif

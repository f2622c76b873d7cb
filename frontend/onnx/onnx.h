/* ONNX models into graph IR.
 *
 * In: a .onnx file of the default operator set 11 or later (and the few operators that ONNX
 * Runtime's optimiser adds), weights inside or in external data files beside it. Out: one
 * module whose main function has static shapes and base ops only; arithmetic on shapes is gone,
 * names of inputs, outputs and nodes are kept (node->from), dead nodes are left to the
 * canonicaliser. Payloads are not copied: constants point into the mapped files wherever the
 * file stores them as the IR does, without regard to alignment.
 *
 * Dynamic sizes must be given, batch included. Control flow, sequences and strings are refused.
 * binary64 exists only as constants; they are rounded to fp32 when used. */
#ifndef CPS_ONNX_ONNX_H
#define CPS_ONNX_ONNX_H

#include "ir/ir.h"
#include "runtime/base/file.h"

/* The mapped files behind a module. Zero-initialise, keep open while the module is used, then
 * close. Kept even when the import fails. */
typedef struct cps_onnx_file {
    cps_file map;
    const char *name; /* the model's path, or an external file's, relative to the model's folder */
} cps_onnx_file;

typedef struct cps_onnx_files {
    CPS_VEC(cps_onnx_file) file; /* in the arena given to the import; the model first */
} cps_onnx_files;

void cps_onnx_close(cps_onnx_files *f);

typedef struct cps_onnx_opts {
    unsigned ndims;
    const char *const *dims; /* "NAME=N" by dim_param, "INPUT:AXIS=N" where unnamed */
    cps_onnx_files *files;   /* required */
} cps_onnx_opts;

/* The module lives in `a`. NULL after diagnostics (E70xx). */
cps_module *cps_onnx_import(cps_arena *a, const char *path, const cps_onnx_opts *o,
                            cps_diags *d);

/* The same from memory: `name` stands in messages and names the module, `folder` is where
 * external data lies (NULL: none allowed), `data` must outlive the module. */
cps_module *cps_onnx_import_bytes(cps_arena *a, const char *name, const char *folder,
                                  const uint8_t *data, size_t n, const cps_onnx_opts *o,
                                  cps_diags *d);

/* What the importer takes, for `copse list-operators --from onnx`: the rows of onnx.def. */
typedef struct cps_onnx_row {
    const char *domain; /* "" is the default operator set */
    const char *name;
    int since, until; /* operator set versions, inclusive; until 0: current */
    int nin_min, nin_max;
    const char *note; /* limits, or "" */
} cps_onnx_row;

unsigned cps_onnx_rows(const cps_onnx_row **rows);

#endif

/* An ONNX model as it stands in the file: names, attributes and ranges of bytes, nothing
 * interpreted. Strings, lists and structs live in the arena; payloads point into the bytes
 * given. Enumerations are ONNX's own numbers. */
#ifndef CPS_ONNX_MODEL_H
#define CPS_ONNX_MODEL_H

#include "frontend/onnx/wire.h"
#include "runtime/base/diag.h"

/* TensorProto.DataType, as far as the importer knows it. */
typedef enum cps_onnx_dtype {
    CPS_ONNX_FLOAT = 1,
    CPS_ONNX_UINT8 = 2,
    CPS_ONNX_INT8 = 3,
    CPS_ONNX_UINT16 = 4,
    CPS_ONNX_INT16 = 5,
    CPS_ONNX_INT32 = 6,
    CPS_ONNX_INT64 = 7,
    CPS_ONNX_STRING = 8,
    CPS_ONNX_BOOL = 9,
    CPS_ONNX_FLOAT16 = 10,
    CPS_ONNX_DOUBLE = 11,
    CPS_ONNX_UINT32 = 12,
    CPS_ONNX_UINT64 = 13,
    CPS_ONNX_BFLOAT16 = 16
} cps_onnx_dtype;

/* AttributeProto.AttributeType. */
typedef enum cps_onnx_atype {
    CPS_ONNX_A_NONE = 0,
    CPS_ONNX_A_FLOAT = 1,
    CPS_ONNX_A_INT = 2,
    CPS_ONNX_A_STRING = 3,
    CPS_ONNX_A_TENSOR = 4,
    CPS_ONNX_A_GRAPH = 5,
    CPS_ONNX_A_FLOATS = 6,
    CPS_ONNX_A_INTS = 7,
    CPS_ONNX_A_STRINGS = 8
} cps_onnx_atype;

typedef struct cps_onnx_entry {
    const char *key, *value;
} cps_onnx_entry;

typedef struct cps_onnx_tensor {
    const char *name; /* "" when unnamed */
    int32_t dtype;
    cps_i64vec dim;
    cps_bytes raw;
    cps_packed f32, i32, i64, f64, u64;
    bool strings, segment;
    int32_t location; /* 0 in the file, 1 external */
    CPS_VEC(cps_onnx_entry) external;
} cps_onnx_tensor;

typedef struct cps_onnx_attr {
    const char *name;
    int32_t type; /* as written, or found from the field that was there */
    float f;
    int64_t i;
    cps_bytes s;
    cps_onnx_tensor *t; /* or NULL */
    cps_f32vec floats;
    cps_i64vec ints;
    bool ref; /* refers to an attribute of a model-local function */
} cps_onnx_attr;

typedef struct cps_onnx_node {
    const char *name, *op, *domain; /* never NULL */
    cps_strvec in, out;
    CPS_VEC(cps_onnx_attr) attr;
} cps_onnx_node;

typedef struct cps_onnx_dim {
    bool known;
    int64_t value;
    const char *param; /* "" when unnamed */
} cps_onnx_dim;

typedef struct cps_onnx_value {
    const char *name;
    bool tensor; /* a dense tensor type was there */
    bool shaped; /* its shape was there */
    int32_t dtype;
    CPS_VEC(cps_onnx_dim) dim;
} cps_onnx_value;

typedef struct cps_onnx_opset {
    const char *domain;
    int64_t version;
} cps_onnx_opset;

typedef struct cps_onnx_model {
    int64_t ir_version;
    const char *producer, *graph; /* never NULL */
    bool has_graph, sparse, functions;
    CPS_VEC(cps_onnx_opset) opset;
    CPS_VEC(cps_onnx_node) node;
    CPS_VEC(cps_onnx_tensor) init;
    CPS_VEC(cps_onnx_value) input, output, info;
} cps_onnx_model;

/* Decodes `n` bytes, which must outlive the model. `name` stands in messages. NULL after E7001
 * (malformed) or E7002 (a limit). */
cps_onnx_model *cps_onnx_decode(cps_arena *a, const char *name, const uint8_t *data, size_t n,
                                cps_diags *d);

#endif

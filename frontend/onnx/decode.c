/* Bytes of a .onnx file to the structs of model.h: one function per message of onnx.proto.
 *
 * Each attaches sinks to the fields it wants and lets nanopb walk the message. Messages inside
 * messages are decoded by the same functions called back, so the depth of recursion is that of
 * the schema (subgraphs are not entered) and no input can deepen it. Counts are limited here;
 * what the numbers mean is checked by the importer. */
#include "frontend/onnx/model.h"

#include "onnx.pb.h"

// Far above any published model, low enough that a hostile file cannot ask for much memory.
#define MAX_NODES (1u << 19)
#define MAX_TENSORS (1u << 19)
#define MAX_VALUES (1u << 19)
#define MAX_ATTRS 64u
#define MAX_OPERANDS 4096u
#define MAX_DIMS 64u
#define MAX_ENTRIES 16u
#define MAX_OPSETS 256u
#define MAX_BYTES ((size_t)1 << 31) // a protocol buffer message ends at 2 GiB

#define ON(sink, w, to, max, what) cps_sink sink = {w, to, max, what}

static bool
room(cps_wire *w, uint32_t n, uint32_t max, const char *what)
{
    return n < max ||
           cps_wire_limit(w, cps_arena_printf(w->arena, "more than %u %s", max, what));
}

static bool
on_entry(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_tensor *t = k->to;
    if (!cps_wire_delimited(k->w, s) ||
        !room(k->w, t->external.n, MAX_ENTRIES, "entries of external data"))
        return false;
    cps_onnx_entry *e = cps_vec_add(k->w->arena, &t->external);
    e->key = e->value = "";
    ON(key, k->w, &e->key, 0, "key of external data");
    ON(value, k->w, &e->value, 0, "value of external data");
    cps_pb_Entry m = cps_pb_Entry_init_zero;
    m.key = cps_sink_on(&key, cps_sink_string);
    m.value = cps_sink_on(&value, cps_sink_string);
    return cps_wire_message(k->w, s, cps_pb_Entry_fields, &m);
}

static bool
decode_tensor(cps_wire *w, pb_istream_t *s, cps_onnx_tensor *t)
{
    if (!cps_wire_delimited(w, s))
        return false;
    t->name = "";
    ON(dims, w, &t->dim, MAX_DIMS, "tensor shape");
    ON(segment, w, &t->segment, 0, "segment");
    ON(f32, w, &t->f32, 0, "float_data");
    ON(i32, w, &t->i32, 0, "int32_data");
    ON(i64, w, &t->i64, 0, "int64_data");
    ON(f64, w, &t->f64, 0, "double_data");
    ON(u64, w, &t->u64, 0, "uint64_data");
    ON(strings, w, &t->strings, 0, "string_data");
    ON(name, w, &t->name, 0, "tensor name");
    ON(raw, w, &t->raw, 0, "raw_data");
    ON(external, w, t, 0, "external_data");
    cps_pb_Tensor m = cps_pb_Tensor_init_zero;
    m.dims = cps_sink_on(&dims, cps_sink_i64s);
    m.segment = cps_sink_on(&segment, cps_sink_flag);
    m.float_data = cps_sink_on(&f32, cps_sink_packed);
    m.int32_data = cps_sink_on(&i32, cps_sink_packed);
    m.int64_data = cps_sink_on(&i64, cps_sink_packed);
    m.double_data = cps_sink_on(&f64, cps_sink_packed);
    m.uint64_data = cps_sink_on(&u64, cps_sink_packed);
    m.string_data = cps_sink_on(&strings, cps_sink_flag);
    m.name = cps_sink_on(&name, cps_sink_string);
    m.raw_data = cps_sink_on(&raw, cps_sink_bytes);
    m.external_data = cps_sink_on(&external, on_entry);
    if (!cps_wire_message(w, s, cps_pb_Tensor_fields, &m))
        return false;
    t->dtype = m.data_type;
    t->location = m.data_location;
    return true;
}

static bool
on_attr_tensor(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_attr *a = k->to;
    a->t = cps_new(k->w->arena, cps_onnx_tensor);
    return decode_tensor(k->w, s, a->t);
}

static bool
on_attr(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_wire *w = k->w;
    cps_onnx_node *n = k->to;
    if (!cps_wire_delimited(w, s) || !room(w, n->attr.n, MAX_ATTRS, "attributes of one node"))
        return false;
    cps_onnx_attr *a = cps_vec_add(w->arena, &n->attr);
    bool graph = false, strings = false;
    a->name = "";
    ON(name, w, &a->name, 0, "attribute name");
    ON(bytes, w, &a->s, 0, "attribute string");
    ON(tensor, w, a, 0, "attribute tensor");
    ON(subgraph, w, &graph, 0, "subgraph");
    ON(floats, w, &a->floats, 0, "attribute floats");
    ON(ints, w, &a->ints, 0, "attribute ints");
    ON(strs, w, &strings, 0, "attribute strings");
    ON(ref, w, &a->ref, 0, "attribute reference");
    cps_pb_Attribute m = cps_pb_Attribute_init_zero;
    m.name = cps_sink_on(&name, cps_sink_string);
    m.s = cps_sink_on(&bytes, cps_sink_bytes);
    m.t = cps_sink_on(&tensor, on_attr_tensor);
    m.g = m.graphs = cps_sink_on(&subgraph, cps_sink_flag);
    m.floats = cps_sink_on(&floats, cps_sink_f32s);
    m.ints = cps_sink_on(&ints, cps_sink_i64s);
    m.strings = cps_sink_on(&strs, cps_sink_flag);
    m.ref_attr_name = cps_sink_on(&ref, cps_sink_flag);
    if (!cps_wire_message(w, s, cps_pb_Attribute_fields, &m))
        return false;
    a->f = m.f;
    a->i = m.i;
    a->type = m.type;
    if (!a->type) // IR versions before 3 left it out
        a->type = m.has_f       ? CPS_ONNX_A_FLOAT
                  : m.has_i     ? CPS_ONNX_A_INT
                  : a->s.seen   ? CPS_ONNX_A_STRING
                  : a->t        ? CPS_ONNX_A_TENSOR
                  : graph       ? CPS_ONNX_A_GRAPH
                  : a->floats.n ? CPS_ONNX_A_FLOATS
                  : strings     ? CPS_ONNX_A_STRINGS
                                : CPS_ONNX_A_INTS;
    return true;
}

static bool
on_node(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_wire *w = k->w;
    cps_onnx_model *g = k->to;
    if (!cps_wire_delimited(w, s) || !room(w, g->node.n, MAX_NODES, "nodes"))
        return false;
    cps_onnx_node *n = cps_vec_add(w->arena, &g->node);
    n->name = n->op = n->domain = "";
    ON(in, w, &n->in, MAX_OPERANDS, "list of inputs");
    ON(out, w, &n->out, MAX_OPERANDS, "list of outputs");
    ON(name, w, &n->name, 0, "node name");
    ON(op, w, &n->op, 0, "operator name");
    ON(attr, w, n, 0, "attribute");
    ON(domain, w, &n->domain, 0, "operator domain");
    cps_pb_Node m = cps_pb_Node_init_zero;
    m.input = cps_sink_on(&in, cps_sink_strings);
    m.output = cps_sink_on(&out, cps_sink_strings);
    m.name = cps_sink_on(&name, cps_sink_string);
    m.op_type = cps_sink_on(&op, cps_sink_string);
    m.attribute = cps_sink_on(&attr, on_attr);
    m.domain = cps_sink_on(&domain, cps_sink_string);
    if (!cps_wire_message(w, s, cps_pb_Node_fields, &m))
        return false;
    if (!n->op[0])
        return cps_wire_fail(w, "a node without an operator");
    if (!n->out.n)
        return cps_wire_fail(w, "a node without outputs");
    return true;
}

static bool
on_init(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_model *g = k->to;
    if (!room(k->w, g->init.n, MAX_TENSORS, "initializers"))
        return false;
    return decode_tensor(k->w, s, cps_vec_add(k->w->arena, &g->init));
}

static bool
on_dim(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_value *v = k->to;
    if (!cps_wire_delimited(k->w, s) || !room(k->w, v->dim.n, MAX_DIMS, "axes of one value"))
        return false;
    cps_onnx_dim *d = cps_vec_add(k->w->arena, &v->dim);
    d->param = "";
    ON(param, k->w, &d->param, 0, "dimension name");
    cps_pb_Dimension m = cps_pb_Dimension_init_zero;
    m.dim_param = cps_sink_on(&param, cps_sink_string);
    if (!cps_wire_message(k->w, s, cps_pb_Dimension_fields, &m))
        return false;
    d->value = m.dim_value;
    // Exporters write 0 or -1 for "not known"; a tensor without elements has no use as an
    // input.
    d->known = m.has_dim_value && m.dim_value > 0;
    return true;
}

static bool
on_shape(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_value *v = k->to;
    if (!cps_wire_delimited(k->w, s))
        return false;
    v->shaped = true;
    ON(dim, k->w, v, 0, "dimension");
    cps_pb_Shape m = cps_pb_Shape_init_zero;
    m.dim = cps_sink_on(&dim, on_dim);
    return cps_wire_message(k->w, s, cps_pb_Shape_fields, &m);
}

static bool
on_tensor_type(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_value *v = k->to;
    if (!cps_wire_delimited(k->w, s))
        return false;
    v->tensor = true;
    ON(shape, k->w, v, 0, "shape");
    cps_pb_TensorType m = cps_pb_TensorType_init_zero;
    m.shape = cps_sink_on(&shape, on_shape);
    if (!cps_wire_message(k->w, s, cps_pb_TensorType_fields, &m))
        return false;
    v->dtype = m.elem_type;
    return true;
}

static bool
on_type(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    if (!cps_wire_delimited(k->w, s))
        return false;
    ON(tensor, k->w, k->to, 0, "tensor type");
    cps_pb_Type m = cps_pb_Type_init_zero;
    m.tensor_type = cps_sink_on(&tensor, on_tensor_type);
    return cps_wire_message(k->w, s, cps_pb_Type_fields, &m);
}

static bool
decode_value(cps_wire *w, pb_istream_t *s, cps_onnx_value *v)
{
    if (!cps_wire_delimited(w, s))
        return false;
    v->name = "";
    ON(name, w, &v->name, 0, "value name");
    ON(type, w, v, 0, "value type");
    cps_pb_ValueInfo m = cps_pb_ValueInfo_init_zero;
    m.name = cps_sink_on(&name, cps_sink_string);
    m.type = cps_sink_on(&type, on_type);
    return cps_wire_message(w, s, cps_pb_ValueInfo_fields, &m);
}

static bool
on_input(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_model *g = k->to;
    return room(k->w, g->input.n, MAX_VALUES, "graph inputs") &&
           decode_value(k->w, s, cps_vec_add(k->w->arena, &g->input));
}

static bool
on_output(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_model *g = k->to;
    return room(k->w, g->output.n, MAX_VALUES, "graph outputs") &&
           decode_value(k->w, s, cps_vec_add(k->w->arena, &g->output));
}

static bool
on_info(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_model *g = k->to;
    return room(k->w, g->info.n, MAX_VALUES, "value descriptions") &&
           decode_value(k->w, s, cps_vec_add(k->w->arena, &g->info));
}

static bool
on_graph(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_wire *w = k->w;
    cps_onnx_model *g = k->to;
    if (!cps_wire_delimited(w, s))
        return false;
    g->has_graph = true;
    ON(node, w, g, 0, "node");
    ON(name, w, &g->graph, 0, "graph name");
    ON(init, w, g, 0, "initializer");
    ON(input, w, g, 0, "input");
    ON(output, w, g, 0, "output");
    ON(info, w, g, 0, "value description");
    ON(sparse, w, &g->sparse, 0, "sparse initializer");
    cps_pb_Graph m = cps_pb_Graph_init_zero;
    m.node = cps_sink_on(&node, on_node);
    m.name = cps_sink_on(&name, cps_sink_string);
    m.initializer = cps_sink_on(&init, on_init);
    m.input = cps_sink_on(&input, on_input);
    m.output = cps_sink_on(&output, on_output);
    m.value_info = cps_sink_on(&info, on_info);
    m.sparse_initializer = cps_sink_on(&sparse, cps_sink_flag);
    return cps_wire_message(w, s, cps_pb_Graph_fields, &m);
}

static bool
on_opset(pb_istream_t *s, const pb_field_t *f, void **arg)
{
    (void)f;
    cps_sink *k = *arg;
    cps_onnx_model *g = k->to;
    if (!cps_wire_delimited(k->w, s) || !room(k->w, g->opset.n, MAX_OPSETS, "operator sets"))
        return false;
    cps_onnx_opset *o = cps_vec_add(k->w->arena, &g->opset);
    o->domain = "";
    ON(domain, k->w, &o->domain, 0, "domain of an operator set");
    cps_pb_OperatorSetId m = cps_pb_OperatorSetId_init_zero;
    m.domain = cps_sink_on(&domain, cps_sink_string);
    if (!cps_wire_message(k->w, s, cps_pb_OperatorSetId_fields, &m))
        return false;
    o->version = m.version;
    return true;
}

cps_onnx_model *
cps_onnx_decode(cps_arena *a, const char *name, const uint8_t *data, size_t n, cps_diags *d)
{
    if (n > MAX_BYTES) {
        cps_error(d, CPS_E7002, CPS_NOSPAN, "'%s' has %zu bytes, an ONNX file has at most %zu",
                  name, n, MAX_BYTES);
        cps_help(d, "keep the weights in external data files");
        return NULL;
    }
    cps_wire w;
    cps_wire_init(&w, a, data, n);
    pb_istream_t s = cps_wire_stream(&w);
    cps_onnx_model *g = cps_new(a, cps_onnx_model);
    g->producer = g->graph = "";
    ON(producer, &w, &g->producer, 0, "producer name");
    ON(graph, &w, g, 0, "graph");
    ON(opset, &w, g, 0, "operator set");
    ON(functions, &w, &g->functions, 0, "functions");
    cps_pb_Model m = cps_pb_Model_init_zero;
    m.producer_name = cps_sink_on(&producer, cps_sink_string);
    m.graph = cps_sink_on(&graph, on_graph);
    m.opset_import = cps_sink_on(&opset, on_opset);
    m.functions = cps_sink_on(&functions, cps_sink_flag);
    bool ok = cps_wire_message(&w, &s, cps_pb_Model_fields, &m);
    g->ir_version = m.ir_version;
    if (ok && !g->has_graph)
        ok = cps_wire_fail(&w, "the model has no graph");
    if (!ok) {
        cps_error(d, w.limit ? CPS_E7002 : CPS_E7001, CPS_NOSPAN, "'%s': %s (byte %zu of %zu)",
                  name, w.why, w.at, n);
        return NULL;
    }
    return g;
}

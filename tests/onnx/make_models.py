"""Writes the small models of tests/onnx/data. Run with the interpreter of CPS_PYTHON; the files
are checked in, so the C tests need no Python. Same versions of onnx, same bytes."""
import os, sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "data")
R = np.random.RandomState(7)


def f32(*shape):
    return (R.standard_normal(shape) * 0.3).astype(np.float32)


def i64(*v):
    return np.array(v, np.int64)


def model(name, nodes, inputs, outputs, inits, opset=17, extra=(), info=()):
    g = h.make_graph(nodes, name, inputs, outputs, [nh.from_array(v, k) for k, v in inits.items()],
                     value_info=list(info))
    ops = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in extra]
    m = h.make_model(g, opset_imports=ops, producer_name="copse-tests", ir_version=8)
    return m


def save(m, name):
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(m.SerializeToString(deterministic=True))


def vi(name, t, shape):
    return h.make_tensor_value_info(name, t, shape)


class Body:
    """A list of nodes with fresh names, in the way exporters write them."""

    def __init__(self):
        self.nodes, self.inits, self.n = [], {}, 0

    def __call__(self, op, *ins, out=None, **attrs):
        self.n += 1
        out = out or f"v{self.n}"
        self.nodes.append(h.make_node(op, list(ins), [out], f"/{op}_{self.n}", **attrs))
        return out

    def const(self, v):
        self.n += 1
        name = f"c{self.n}"
        self.inits[name] = v
        return name


def mlp():
    b = Body()
    x = b("Gemm", "x", b.const(f32(4, 6)), b.const(f32(6)))
    x = b("Relu", x)
    b("Gemm", x, b.const(f32(3, 6)), b.const(f32(3)), out="y", transB=1, alpha=0.5)
    save(model("mlp", b.nodes, [vi("x", T.FLOAT, ["batch", 4])], [vi("y", T.FLOAT, ["batch", 3])],
               b.inits), "mlp.onnx")


def encoder():
    """One post-norm encoder layer over token ids, with the shape arithmetic of a torch export:
    ids, mask -> embedding, attention with an additive mask, gelu MLP, decomposed layer norms."""
    H, heads, I, V, P = 8, 2, 16, 11, 12
    d = H // heads
    b = Body()

    def norm(x, tag):
        mean = b("ReduceMean", x, axes=[-1])
        c = b("Sub", x, mean)
        var = b("ReduceMean", b("Pow", c, b.const(np.float32(2))), axes=[-1])
        s = b("Sqrt", b("Add", var, b.const(np.float32(1e-5))))
        y = b("Mul", b("Div", c, s), b.const(1 + f32(H)))
        return b("Add", y, b.const(f32(H)))

    def dim(x, axis):
        g = b("Gather", b("Shape", x), b.const(np.int64(axis)), axis=0)
        return b("Unsqueeze", g, b.const(i64(0)))

    def linear(x, n, m):
        return b("Add", b.const(f32(m)), b("MatMul", x, b.const(f32(n, m))))

    def split(x, perm):
        shape = b("Concat", dim(x, 0), dim(x, 1), b.const(i64(heads)), b.const(i64(d)), axis=0)
        return b("Transpose", b("Reshape", x, shape), perm=perm)

    pos = b("Slice", b.const(np.arange(P, dtype=np.int64).reshape(1, P)), b.const(i64(0)),
            dim("ids", 1), b.const(i64(1)), b.const(i64(1)))
    x = b("Add", b("Gather", b.const(f32(V, H)), "ids"), b("Gather", b.const(f32(P, H)), pos))
    x = norm(x, "emb")
    m = b("Unsqueeze", b("Unsqueeze", "mask", b.const(i64(1))), b.const(i64(2)))
    m = b("Sub", b.const(np.float32(1)), b("Cast", m, to=T.FLOAT))
    m = b("Mul", m, b.const(np.float32(-10000)))
    q = split(linear(x, H, H), [0, 2, 1, 3])
    k = split(linear(x, H, H), [0, 2, 3, 1])
    v = split(linear(x, H, H), [0, 2, 1, 3])
    s = b("Div", b("MatMul", q, k), b.const(np.float32(np.sqrt(d))))
    p = b("Softmax", b("Add", s, m), axis=-1)
    a = b("Transpose", b("MatMul", p, v), perm=[0, 2, 1, 3])
    shape = b("Concat", dim(a, 0), dim(a, 1), b.const(i64(H)), axis=0)
    a = linear(b("Reshape", a, shape), H, H)
    x = norm(b("Add", a, x), "attn")
    u = linear(x, H, I)
    e = b("Add", b("Erf", b("Div", u, b.const(np.float32(np.sqrt(2))))), b.const(np.float32(1)))
    u = b("Mul", b("Mul", u, e), b.const(np.float32(0.5)))
    x = norm(b("Add", linear(u, I, H), x), "out")
    b("Identity", x, out="y")
    save(model("encoder", b.nodes, [vi("ids", T.INT64, ["B", "S"]), vi("mask", T.INT64, ["B", "S"])],
               [vi("y", T.FLOAT, ["B", "S", H])], b.inits), "encoder.onnx")


def small_encoder():
    """The demo's stand-in for a published sentence encoder: its inputs, vocabulary and outputs,
    two small layers of random weights. The embedding is waves over the token id, spelled out, so
    that the file stays small: a compiler folds it into a table."""
    H, heads, I, V, P = 32, 2, 64, 30522, 512
    d = H // heads
    b = Body()

    def norm(x):
        return b("LayerNormalization", x, b.const(1 + f32(H)), b.const(f32(H)), axis=-1, epsilon=1e-12)

    def dim(x, axis):
        return b("Unsqueeze", b("Gather", b("Shape", x), b.const(np.int64(axis)), axis=0), b.const(i64(0)))

    def linear(x, n, m):
        return b("Add", b.const(f32(m)), b("MatMul", x, b.const(f32(n, m))))

    def split(x, perm):
        shape = b("Concat", dim(x, 0), dim(x, 1), b.const(i64(heads)), b.const(i64(d)), axis=0)
        return b("Transpose", b("Reshape", x, shape), perm=perm)

    row = b("Range", b.const(np.int64(0)), b.const(np.int64(V)), b.const(np.int64(1)))
    row = b("Unsqueeze", b("Cast", row, to=T.FLOAT), b.const(i64(1)))
    words = b("Sin", b("Mul", row, b.const((R.uniform(0.1, 3, (1, H))).astype(np.float32))))
    pos = b("Slice", b.const(np.arange(P, dtype=np.int64).reshape(1, P)), b.const(i64(0)),
            dim("input_ids", 1), b.const(i64(1)), b.const(i64(1)))
    x = norm(b("Add", b("Gather", words, "input_ids"), b("Gather", b.const(f32(P, H)), pos)))
    m = b("Unsqueeze", b("Unsqueeze", "attention_mask", b.const(i64(1))), b.const(i64(2)))
    m = b("Sub", b.const(np.float32(1)), b("Cast", m, to=T.FLOAT))
    m = b("Mul", m, b.const(np.float32(np.finfo(np.float32).min)))
    for _ in range(2):
        q, k, v = (split(linear(x, H, H), p) for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        s = b("Add", b("Div", b("MatMul", q, k), b.const(np.float32(np.sqrt(d)))), m)
        a = b("Transpose", b("MatMul", b("Softmax", s, axis=-1), v), perm=[0, 2, 1, 3])
        a = b("Reshape", a, b("Concat", dim(a, 0), dim(a, 1), b.const(i64(H)), axis=0))
        x = norm(b("Add", linear(a, H, H), x))
        u = linear(x, H, I)
        e = b("Add", b("Erf", b("Div", u, b.const(np.float32(np.sqrt(2))))), b.const(np.float32(1)))
        u = b("Mul", b("Mul", u, e), b.const(np.float32(0.5)))
        x = norm(b("Add", linear(u, I, H), x))
    tokens = b("Identity", x, out="tokens")
    w = b("Unsqueeze", "attention_mask", b.const(i64(-1)))
    w = b("Cast", b("Expand", w, b("Shape", tokens)), to=T.FLOAT)
    n = b("Clip", b("ReduceSum", w, b.const(i64(1)), keepdims=0), b.const(np.float32(1e-9)))
    b("Div", b("ReduceSum", b("Mul", tokens, w), b.const(i64(1)), keepdims=0), n, out="embedding")
    shape = ["batch_size", "sequence_length"]
    save(model("small_encoder", b.nodes, [vi("input_ids", T.INT64, shape), vi("attention_mask", T.INT64, shape)],
               [vi("tokens", T.FLOAT, shape + [H]), vi("embedding", T.FLOAT, ["batch_size", H])], b.inits),
         "../../data/small_encoder.onnx")


def decoder():
    """A llama-like layer: decomposed RMS norms, rotary positions, grouped heads, a constant causal
    mask, a gated MLP."""
    H, heads, kv, I, V, S, B = 16, 4, 2, 24, 13, 5, 2
    d = H // heads
    b = Body()

    def norm(x):
        v = b("ReduceMean", b("Pow", x, b.const(np.float32(2))), axes=[-1], keepdims=1)
        r = b("Div", b.const(np.float32(1)), b("Sqrt", b("Add", v, b.const(np.float32(1e-6)))))
        return b("Mul", b.const(1 + f32(H)), b("Mul", x, r))

    def heads_of(x, n):
        x = b("Reshape", b("MatMul", x, b.const(f32(H, n * d))), b.const(i64(B, S, n, d)))
        return b("Transpose", x, perm=[0, 2, 1, 3])

    freq = np.outer(np.arange(S), 1.0 / (100.0 ** (np.arange(0, d, 2) / d)))
    angle = np.concatenate([freq, freq], axis=1).astype(np.float32)[None, None]
    cos, sin = b("Cos", b.const(angle)), b("Sin", b.const(angle))

    def rope(x):
        lo = b("Slice", x, b.const(i64(0)), b.const(i64(d // 2)), b.const(i64(3)))
        hi = b("Slice", x, b.const(i64(d // 2)), b.const(i64(2**62)), b.const(i64(3)))
        r = b("Concat", b("Neg", hi), lo, axis=-1)
        return b("Add", b("Mul", x, cos), b("Mul", r, sin))

    def grouped(x):
        x = b("Unsqueeze", x, b.const(i64(2)))
        x = b("Expand", x, b.const(i64(B, kv, heads // kv, S, d)))
        return b("Reshape", x, b.const(i64(B, heads, S, d)))

    x = b("Gather", b.const(f32(V, H)), "ids")
    n = norm(x)
    q, k, v = rope(heads_of(n, heads)), rope(heads_of(n, kv)), heads_of(n, kv)
    s = b("MatMul", q, b("Transpose", grouped(k), perm=[0, 1, 3, 2]))
    s = b("Mul", s, b.const(np.float32(d**-0.5)))
    low = np.finfo(np.float32).min
    mask = b("Trilu", b.const(np.full((1, 1, S, S), low, np.float32)), b.const(np.int64(1)), upper=1)
    a = b("MatMul", b("Softmax", b("Add", s, mask), axis=-1), grouped(v))
    a = b("Reshape", b("Transpose", a, perm=[0, 2, 1, 3]), b.const(i64(B, S, H)))
    x = b("Add", x, b("MatMul", a, b.const(f32(H, H))))
    n = norm(x)
    g = b("MatMul", n, b.const(f32(H, I)))
    g = b("Mul", g, b("Sigmoid", g))
    x = b("Add", x, b("MatMul", b("Mul", g, b("MatMul", n, b.const(f32(H, I)))), b.const(f32(I, H))))
    b("MatMul", norm(x), b.const(f32(H, V)), out="logits")
    save(model("decoder", b.nodes, [vi("ids", T.INT64, [B, S])], [vi("logits", T.FLOAT, [B, S, V])],
               b.inits), "decoder.onnx")


def gpt():
    """A gpt-2-like layer: one projection split in three, a triangle that selects, tanh gelu."""
    H, heads, S, B = 12, 3, 6, 2
    d = H // heads
    b = Body()

    def norm(x):
        return b("LayerNormalization", x, b.const(1 + f32(H)), b.const(f32(H)), axis=-1, epsilon=1e-5)

    def conv1d(x, n, m):
        rows = b("Reshape", x, b.const(i64(-1, n)))
        return b("Reshape", b("Gemm", rows, b.const(f32(n, m)), b.const(f32(m))), b.const(i64(B, S, m)))

    def split(x):
        return b("Transpose", b("Reshape", x, b.const(i64(0, 0, heads, d))), perm=[0, 2, 1, 3])

    n = conv1d(norm("x"), H, 3 * H)
    b.nodes.append(h.make_node("Split", [n, b.const(i64(H, H, H))], ["q", "k", "v"], "/Split", axis=2))
    q, k, v = split("q"), split("k"), split("v")
    s = b("Div", b("MatMul", q, b("Transpose", k, perm=[0, 1, 3, 2])), b.const(np.float32(np.sqrt(d))))
    tri = np.tril(np.ones((1, 1, S, S), bool))
    s = b("Where", b.const(tri), s, b.const(np.float32(np.finfo(np.float32).min)))
    a = b("Transpose", b("MatMul", b("Softmax", s, axis=-1), v), perm=[0, 2, 1, 3])
    x = b("Add", conv1d(b("Reshape", a, b.const(i64(0, 0, H))), H, H), "x")
    u = conv1d(norm(x), H, 4 * H)
    t = b("Add", u, b("Mul", b.const(np.float32(0.044715)), b("Pow", u, b.const(np.float32(3)))))
    t = b("Tanh", b("Mul", b.const(np.float32(np.sqrt(2 / np.pi))), t))
    u = b("Mul", b("Mul", b.const(np.float32(0.5)), u), b("Add", b.const(np.float32(1)), t))
    b("Add", x, conv1d(u, 4 * H, H), out="y")
    save(model("gpt", b.nodes, [vi("x", T.FLOAT, [B, S, H])], [vi("y", T.FLOAT, [B, S, H])], b.inits),
         "gpt.onnx")


def forms():
    """Every way a tensor can be stored: raw, typed lists, varints, halves, double, bool."""
    b = Body()
    mk = h.make_tensor
    inits = [
        mk("f", T.FLOAT, [3], [1.5, -2.0, 3.0]),
        mk("h", T.FLOAT16, [3], [1.5, -2.0, 3.0]),
        mk("i", T.INT32, [3], [-1, 2, -3]),
        mk("l", T.INT64, [3], [-1, 2, 2**40]),
        mk("o", T.BOOL, [3], [True, False, True]),
        mk("u", T.UINT8, [3], [1, 255, 7]),
        mk("d", T.DOUBLE, [3], [0.1, 0.5, 1.0]),
        nh.from_array(np.array([4, 5, 6], np.float32), "r"),
    ]
    f = b("Add", "f", "r")
    f = b("Add", f, b("Cast", "h", to=T.FLOAT))
    f = b("Add", f, b("Cast", "i", to=T.FLOAT))
    f = b("Add", f, b("Cast", "u", to=T.FLOAT))
    f = b("Add", f, b("Cast", "d", to=T.FLOAT))
    f = b("Where", "o", f, "x")
    b("Add", f, "x", out="y")
    b("Add", "l", "n", out="m")
    g = h.make_graph(b.nodes, "forms", [vi("x", T.FLOAT, [3]), vi("n", T.INT64, [3])],
                     [vi("y", T.FLOAT, [3]), vi("m", T.INT64, [3])], inits)
    save(h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=7), "forms.onnx")


def external():
    w = f32(4, 5)
    with open(os.path.join(OUT, "external.bin"), "wb") as f:
        f.write(b"\0" * 64 + w.tobytes())
    t = nh.from_array(w, "w")
    t.ClearField("raw_data")
    t.data_location = T.EXTERNAL
    for k, v in [("location", "external.bin"), ("offset", "64"), ("length", str(w.nbytes))]:
        e = t.external_data.add()
        e.key, e.value = k, v
    b = Body()
    b("MatMul", "x", "w", out="y")
    g = h.make_graph(b.nodes, "external", [vi("x", T.FLOAT, [2, 4])], [vi("y", T.FLOAT, [2, 5])])
    m = h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=7)
    m.graph.initializer.append(t)
    save(m, "external.onnx")
    t.external_data[0].value = "../data/external.bin"
    del m.graph.initializer[:]
    m.graph.initializer.append(t)
    save(m, "bad-external-escapes.onnx")
    t.external_data[0].value = "external.bin"
    t.external_data[1].value = "100"
    del m.graph.initializer[:]
    m.graph.initializer.append(t)
    save(m, "bad-external-short.onnx")


def bad():
    x, y = vi("x", T.FLOAT, [2, 3]), vi("y", T.FLOAT, [2, 3])

    def one(name, nodes, inits=None, opset=13, ins=(x,), outs=(y,), **k):
        save(model(name, nodes, list(ins), list(outs), inits or {}, opset, **k), f"bad-{name}.onnx")

    n = h.make_node
    one("operators", [n("Conv", ["x", "x"], ["a"]), n("Conv", ["x", "x"], ["b"]),
                      n("Attn", ["a"], ["c"], domain="com.acme"), n("Relu", ["c"], ["y"])])
    one("opset", [n("Relu", ["x"], ["y"])], opset=9)
    one("order", [n("Relu", ["a"], ["y"]), n("Relu", ["x"], ["a"])])
    one("twice", [n("Relu", ["x"], ["y"]), n("Abs", ["x"], ["y"])])
    one("output", [n("Relu", ["x"], ["z"])])
    one("axis", [n("Softmax", ["x"], ["y"], axis=5)])
    one("attribute", [n("Softmax", ["x"], ["y"], axis=1.5)])
    one("operand", [n("Add", ["x", ""], ["y"])])
    one("dynamic", [n("Reshape", ["x", "s"], ["y"])], ins=(x, vi("s", T.INT64, [2])))
    one("double", [n("Cast", ["x"], ["y"], to=T.DOUBLE)])
    one("string", [n("Constant", [], ["y"], value_string="a")])
    one("shapes", [n("Add", ["x", "w"], ["y"])], {"w": f32(2, 4)})
    one("rank", [n("Unsqueeze", ["x", "a"], ["y"])], {"a": np.arange(9, dtype=np.int64)})
    one("size", [n("Expand", ["x", "s"], ["y"])], {"s": i64(2**31, 2**31, 2, 3)})
    one("declared-output", [n("Relu", ["x"], ["y"])], outs=[vi("y", T.INT32, [2, 3])])
    one("declared", [n("Relu", ["x"], ["a"]), n("Relu", ["a"], ["y"])],
        info=[vi("a", T.FLOAT, [7, 3])])
    save(model("newer", [n("Relu", ["x"], ["y"])], [x], [y], {}, 99), "bad-newer.onnx")
    m = model("data", [n("Add", ["x", "w"], ["y"])], [x], [y], {"w": f32(2, 3)}, 13)
    m.graph.initializer[0].raw_data = m.graph.initializer[0].raw_data[:-1]
    save(m, "bad-data.onnx")


def where():
    n = h.make_node
    nodes = [n("Greater", ["a", "b"], ["m"], "gt"), n("Mul", ["a", "c"], ["p"], "mul"),
             n("Floor", ["b"], ["f"], "floor"), n("Where", ["m", "p", "f"], ["y"], "where")]
    save(model("where", nodes, [vi(x, T.BFLOAT16, [130, 257]) for x in "abc"], [vi("y", T.BFLOAT16, [130, 257])], {}),
         "where.onnx")


os.makedirs(OUT, exist_ok=True)
os.makedirs(os.path.join(OUT, "../../data"), exist_ok=True)
for f in (mlp, encoder, decoder, gpt, small_encoder, forms, external, bad, where):
    f()

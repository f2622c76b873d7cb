"""Layers of a Llama-like decoder as exporters write them: decomposed norms, rotary positions by halves, keys and values
repeated for groups of heads, a mask from comparisons of ranges, a gated MLP; a prefill, or a step after a past.

    decoder_layer.py OUT [--layers=N] [--seq=S] [--past=L] [--hidden=H] [--heads=h] [--kv=g] [--d=D] [--inter=I] [--window=W] [--inputs]

--inputs: weights are inputs of the graph, so a model of any size is a small file."""
import argparse

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

LLAMA_3_8B = dict(hidden=4096, heads=32, kv=8, d=128, inter=14336)
SMALL = dict(layers=1, seq=128, past=0, hidden=256, heads=4, kv=2, d=64, inter=512, window=0)


class Graph:
    def __init__(self):
        self.nodes, self.inits, self.ins, self.outs, self.n = [], [], [], [], 0

    def name(self):
        self.n += 1
        return f"v{self.n}"

    def __call__(self, kind, *x, **attributes):
        y = self.name()
        self.nodes.append(h.make_node(kind, list(x), [y], **attributes))
        return y

    def const(self, v, name=None):
        name = name or self.name()
        self.inits.append(nh.from_array(np.asarray(v), name))
        return name

    def i64(self, *v):
        return self.const(np.array(v, np.int64))

    def input(self, name, *shape, dtype=T.FLOAT):
        self.ins.append(h.make_tensor_value_info(name, dtype, shape))
        return name


def model(inputs=False, **sizes):
    s = argparse.Namespace(**{**SMALL, **sizes})
    rng, g = np.random.default_rng(7), Graph()
    S, H, D, L = s.seq, s.hidden, s.d, s.seq + s.past

    def weight(name, *shape):
        if inputs:
            return g.input(name, *shape)
        return g.const((rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32), name)

    def norm(x, name):
        m = g("ReduceMean", g("Pow", x, g.const(np.float32(2))), g.i64(-1), keepdims=1)
        r = g("Reciprocal", g("Sqrt", g("Add", m, g.const(np.float32(1e-5)))))
        return g("Mul", weight(name, H), g("Mul", x, r))

    angle = np.arange(L)[:, None] * (500000.0 ** (-np.arange(0, D, 2) / D))[None]
    tables = [f(np.concatenate([angle, angle], 1)).astype(np.float32) for f in (np.cos, np.sin)]
    x = g.input("x", 1, S, H)
    if s.past:
        g.input("position_ids", 1, S, dtype=T.INT64)
        cos, sin = [g("Unsqueeze", g("Gather", g.const(t), "position_ids"), g.i64(1)) for t in tables]
    else:
        cos, sin = [g.const(t[None, None]) for t in tables]

    def rope(x):
        lo = g("Slice", x, g.i64(0), g.i64(D // 2), g.i64(3))
        hi = g("Slice", x, g.i64(D // 2), g.i64(2**31), g.i64(3))
        return g("Add", g("Mul", x, cos), g("Mul", g("Concat", g("Neg", hi), lo, axis=3), sin))

    def split(x, n):
        return g("Transpose", g("Reshape", x, g.i64(1, S, n, D)), perm=[0, 2, 1, 3])

    def repeat(x):
        y = g("Expand", g("Unsqueeze", x, g.i64(2)), g.i64(1, s.kv, s.heads // s.kv, L, D))
        return g("Reshape", y, g.i64(1, s.heads, L, D))

    mask = None
    if S > 1:
        at = g("Range", g.const(np.int64(0)), g.const(np.int64(S)), g.const(np.int64(1)))
        i, j = g("Unsqueeze", at, g.i64(1)), g("Unsqueeze", at, g.i64(0))
        sees = g("LessOrEqual", j, i)
        if s.window:
            sees = g("And", sees, g("Greater", j, g("Sub", i, g.const(np.int64(s.window)))))
        mask = g("Where", sees, g.const(np.float32(0)), g.const(np.finfo(np.float32).min))
    for l in range(s.layers):
        n = norm(x, f"l{l}.norm")
        q = rope(split(g("MatMul", n, weight(f"l{l}.q", H, s.heads * D)), s.heads))
        k = rope(split(g("MatMul", n, weight(f"l{l}.k", H, s.kv * D)), s.kv))
        v = split(g("MatMul", n, weight(f"l{l}.v", H, s.kv * D)), s.kv)
        if s.past:
            k = g("Concat", g.input(f"l{l}.past_k", 1, s.kv, s.past, D), k, axis=2)
            v = g("Concat", g.input(f"l{l}.past_v", 1, s.kv, s.past, D), v, axis=2)
            g.outs += [(k, (1, s.kv, L, D)), (v, (1, s.kv, L, D))]
        z = g("MatMul", q, g("Transpose", repeat(k), perm=[0, 1, 3, 2]))
        z = g("Mul", z, g.const(np.float32(D**-0.5)))
        z = g("Add", z, mask) if mask else z
        o = g("Transpose", g("MatMul", g("Softmax", z, axis=-1), repeat(v)), perm=[0, 2, 1, 3])
        o = g("Reshape", o, g.i64(1, S, s.heads * D))
        x = g("Add", x, g("MatMul", o, weight(f"l{l}.o", s.heads * D, H)))
        n = norm(x, f"l{l}.mlp_norm")
        a, u = g("MatMul", n, weight(f"l{l}.gate", H, s.inter)), g("MatMul", n, weight(f"l{l}.up", H, s.inter))
        m = g("Mul", g("Mul", a, g("Sigmoid", a)), u)
        x = g("Add", x, g("MatMul", m, weight(f"l{l}.down", s.inter, H)))
    outs = [h.make_tensor_value_info(n, T.FLOAT, t) for n, t in [(x, (1, S, H)), *g.outs]]
    return h.make_model(h.make_graph(g.nodes, "decoder", g.ins, outs, g.inits),
                        opset_imports=[h.make_opsetid("", 18)], ir_version=9)


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--inputs", action="store_true")
    for n, v in SMALL.items():
        p.add_argument(f"--{n}", type=int, default=v)
    a = vars(p.parse_args())
    out = a.pop("out")
    onnx.save(model(**a), out)

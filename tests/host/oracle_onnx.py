#!/usr/bin/env python3
"""Host code of whole models against ONNX Runtime in fp32: encoders as exporters write them (heads
split and merged, masks, layer norms out of single ops or whole, erf and tanh gelu), at several
shapes, with random weights. max |difference| <= 1e-4 of max |reference|.

    oracle_onnx.py HOST_RUN [MODEL.onnx NAME=N ...]
With a model, that one is run instead, its integer inputs below 1000 (masks: ones, zeros at the
end)."""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


class Graph:
    def __init__(self, seed):
        self.nodes, self.inits, self.rng = [], [], np.random.default_rng(seed)

    def const(self, value):
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape):
        return self.const((self.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def op(self, kind, *args, outputs=1, **attrs):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(args), names, **attrs))
        return names[0] if outputs == 1 else names

    def norm(self, x, width, whole):
        gamma, beta = self.weight(width), self.weight(width)
        if whole:
            return self.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=1e-5)
        centred = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1], keepdims=1))
        square = self.op("Pow", centred, self.const(np.float32(2)))
        var = self.op("ReduceMean", square, axes=[-1], keepdims=1)
        dev = self.op("Sqrt", self.op("Add", var, self.const(np.float32(1e-5))))
        return self.op("Add", self.op("Mul", self.op("Div", centred, dev), gamma), beta)

    def dense(self, x, rows, cols):
        return self.op("Add", self.op("MatMul", x, self.weight(rows, cols)), self.weight(cols))

    def gelu(self, x, tanh):
        half = self.const(np.float32(0.5))
        one = self.const(np.float32(1))
        if tanh:
            cube = self.op("Mul", self.op("Mul", x, x), x)
            inner = self.op("Add", x, self.op("Mul", cube, self.const(np.float32(0.044715))))
            t = self.op("Tanh", self.op("Mul", inner, self.const(np.float32(0.7978845608))))
        else:
            t = self.op("Erf", self.op("Div", x, self.const(np.float32(np.sqrt(2)))))
        return self.op("Mul", self.op("Mul", x, half), self.op("Add", t, one))


def encoder(batch, length, heads, depth, layers, whole, tanh, seed):
    g = Graph(seed)
    width = heads * depth
    x = g.op("Add", g.op("Gather", g.weight(500, width), "ids"), g.weight(length, width))
    mask = g.op("Cast", "mask", to=TensorProto.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.const(np.float32(1)), mask), g.const(np.float32(-1e9)))
    mask = g.op("Unsqueeze", mask, g.const(np.array([1, 2])))
    split = g.const(np.array([batch, length, heads, depth]))
    merge = g.const(np.array([batch, length, width]))
    for _ in range(layers):
        q, k, v = (g.op("Reshape", g.dense(x, width, width), split) for _ in range(3))
        q = g.op("Transpose", q, perm=[0, 2, 1, 3])
        k = g.op("Transpose", k, perm=[0, 2, 3, 1])
        v = g.op("Transpose", v, perm=[0, 2, 1, 3])
        s = g.op("Div", g.op("MatMul", q, k), g.const(np.float32(np.sqrt(depth))))
        p = g.op("Softmax", g.op("Add", s, mask), axis=-1)
        y = g.op("Transpose", g.op("MatMul", p, v), perm=[0, 2, 1, 3])
        y = g.dense(g.op("Reshape", y, merge), width, width)
        x = g.norm(g.op("Add", x, y), width, whole)
        h = g.gelu(g.dense(x, width, 4 * width), tanh)
        x = g.norm(g.op("Add", x, g.dense(h, 4 * width, width)), width, whole)
    pooled = g.op("ReduceMean", x, axes=[1], keepdims=0)
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in (x, pooled)]
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, [batch, length])
              for n in ("ids", "mask")]
    graph = helper.make_graph(g.nodes, "encoder", inputs, outputs, g.inits)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def data(name, shape, kind, rng):
    if "mask" in name:
        x = np.ones(shape, np.int64)
        x[..., max(1, shape[-1] * 3 // 4):] = 0
        return x
    if "int" in kind:
        return rng.integers(0, 500, shape).astype(np.int64 if "64" in kind else np.int32)
    return rng.standard_normal(shape).astype(np.float32)


def check(host_run, path, dims, what):
    rng = np.random.default_rng(1)
    opts = onnxruntime.SessionOptions()
    opts.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, opts, providers=["CPUExecutionProvider"])
    known = dict(d.split("=") for d in dims)
    feed = {}
    for i in session.get_inputs():
        shape = [int(known.get(d, d)) for d in i.shape]
        feed[i.name] = data(i.name, shape, i.type, rng)
    want = session.run(None, feed)
    with tempfile.TemporaryDirectory() as folder:
        for i, x in enumerate(feed.values()):
            np.save(f"{folder}/in_{i}.npy", x)
        out = subprocess.run([host_run, path, folder, *dims], check=True, capture_output=True,
                             text=True, env={**os.environ, "HOST_RUNS": "3"})
        worst = 0.0
        for i, ref in enumerate(want):
            got = np.load(f"{folder}/out_{i}.npy").astype(np.float64)
            assert got.shape == ref.shape, (got.shape, ref.shape)
            top = np.abs(ref).max()
            worst = max(worst, np.abs(got - ref).max() / top if top else np.abs(got).max())
    print(f"{what}: {worst:.2e} of max; {'; '.join(out.stdout.split(chr(10)))}")
    assert worst <= 1e-4, f"{what}: {worst}"


def main():
    if len(sys.argv) > 2:
        check(sys.argv[1], sys.argv[2], sys.argv[3:], os.path.basename(sys.argv[2]))
        return
    cases = [(1, 7, 2, 16, 1, True, False), (2, 33, 3, 20, 2, False, True),
             (1, 64, 4, 32, 2, False, False), (3, 1, 2, 24, 1, True, True)]
    with tempfile.TemporaryDirectory() as folder:
        for seed, case in enumerate(cases):
            path = f"{folder}/encoder.onnx"
            onnx.save(encoder(*case, seed), path)
            check(sys.argv[1], path, [], f"encoder {case}")


main()

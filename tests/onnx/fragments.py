"""Pieces of models as exporters write them out, through the importer, lowering and the simulator: each is as few kernels as
it says, moves no more bytes than it says (the inputs once, the results once, and no more than a tenth of that besides),
and agrees with the reference that computes in fp32. Values that a threshold decides on lie away from it.

`fragments.py COPSE [NAME...]` prints for each: kernels, bytes against the least, the time and its share of the roof."""
import json, os, subprocess, sys, tempfile
import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

FLOAT = T.FLOAT
SIZE = {T.FLOAT: 4, T.BOOL: 1, T.UINT8: 1, T.INT8: 1, T.INT64: 8}


class Graph:
    """Nodes in the order they are called; g("Add", a, b) is the name of the sum."""

    def __init__(self):
        self.nodes, self.constants, self.inputs, self.outputs, self.count = [], [], [], [], 0
        self.least = 0

    def const(self, x, dtype=np.float32):
        self.count += 1
        self.constants.append(numpy_helper.from_array(np.array(x, dtype), f"c{self.count}"))
        return f"c{self.count}"

    def __call__(self, op, *operands, n=1, **attributes):
        self.count += 1
        results = [f"v{self.count}_{i}" for i in range(n)]
        self.nodes.append(helper.make_node(op, list(operands), results, **attributes))
        return results[0] if n == 1 else results

    def input(self, name, *shape, dtype=FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        self.least += int(np.prod(shape)) * SIZE[dtype]
        return name

    def output(self, value, *shape, dtype=FLOAT):
        name = f"y{len(self.outputs)}"
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))
        self.least += int(np.prod(shape)) * SIZE[dtype]

    def write(self, path):
        g = helper.make_graph(self.nodes, "fragment", self.inputs, self.outputs, self.constants)
        m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(m)
        onnx.save(m, path)


def layer_norm(g):
    x = g.input("x", 512, 1024)
    d = g("Sub", x, g("ReduceMean", x, axes=[-1]))
    v = g("ReduceMean", g("Pow", d, g.const(2.0)), axes=[-1])
    r = g("Div", d, g("Sqrt", g("Add", v, g.const(1e-5))))
    g.output(g("Add", g("Mul", r, g.input("gamma", 1024)), g.input("beta", 1024)), 512, 1024)


def residual_rms_norm(g):
    s = g("Add", g.input("x", 512, 1024), g.input("r", 512, 1024))
    v = g("ReduceMean", g("Pow", s, g.const(2.0)), axes=[-1])
    n = g("Mul", s, g("Reciprocal", g("Sqrt", g("Add", v, g.const(1e-6)))))
    g.output(g("Mul", n, g.input("gamma", 1024)), 512, 1024)
    g.output(s, 512, 1024)


def gelu_by_erf(g):
    x = g("Add", g.input("x", 512, 1024), g.input("bias", 1024))
    e = g("Erf", g("Div", x, g.const(1.4142135381698608)))
    g.output(g("Mul", g("Mul", x, g("Add", e, g.const(1.0))), g.const(0.5)), 512, 1024)


def rotary(g):
    x, half = g.input("x", 1, 4, 256, 64), 32
    f = g("Mul", g.input("position", 1, 1, 256, 1), g.const((1 / 10000 ** (np.arange(half) / half)).reshape(1, 1, 1, half)))
    e = g("Concat", f, f, axis=-1)
    a = g("Slice", x, g.const([0], np.int64), g.const([half], np.int64), g.const([3], np.int64))
    b = g("Slice", x, g.const([half], np.int64), g.const([2**62], np.int64), g.const([3], np.int64))
    turned = g("Concat", g("Neg", b), a, axis=-1)
    g.output(g("Add", g("Mul", x, g("Cos", e)), g("Mul", turned, g("Sin", e))), 1, 4, 256, 64)


def masked_softmax(g):
    s = g("Mul", g.input("x", 1, 4, 256, 256), g.const(0.125))
    s = g("Where", g.input("mask", 1, 1, 256, 256, dtype=T.BOOL), s, g.const(-3e38))
    g.output(g("Softmax", s, axis=-1), 1, 4, 256, 256)


def softmax_written_out(g):
    s = g("Where", g.input("mask", 1, 1, 256, 256, dtype=T.BOOL), g.input("x", 1, 4, 256, 256), g.const(-1e4))
    e = g("Exp", g("Sub", s, g("ReduceMax", s, axes=[-1])))
    g.output(g("Div", e, g("ReduceSum", e, g.const([-1], np.int64))), 1, 4, 256, 256)


def softmax_of_integer_mask(g):
    m = g("Cast", g("Unsqueeze", g.input("mask", 2, 256, dtype=T.INT64), g.const([1, 2], np.int64)), to=FLOAT)
    m = g("Mul", g("Sub", g.const(1.0), m), g.const(-10000.0))
    g.output(g("Softmax", g("Add", g.input("x", 2, 4, 256, 256), m), axis=-1), 2, 4, 256, 256)


def swish_gate(g):
    a, b = g("Split", g.input("x", 512, 2048), axis=-1, n=2)
    g.output(g("Mul", g("Mul", a, g("Sigmoid", a)), b), 512, 1024)


def quantise_dequantise(g):
    q = g("Add", g("Round", g("Div", g.input("x", 512, 1024), g.const(0.05))), g.const(3.0))
    q = g("Clip", q, g.const(-128.0), g.const(127.0))
    g.output(g("Mul", g("Sub", q, g.const(3.0)), g.const(0.05)), 512, 1024)


def quantise_rows(g):
    x = g.input("x", 512, 1024)
    s = g("Div", g("ReduceMax", g("Abs", x), axes=[-1]), g.const(127.0))
    q = g("Clip", g("Round", g("Div", x, s)), g.const(-128.0), g.const(127.0))
    g.output(g("Cast", q, to=T.INT8), 512, 1024, dtype=T.INT8)
    g.output(s, 512, 1)


def nucleus(g):
    """What a sampler keeps of sorted probabilities; in eighths, so that sums are exact on either side."""
    p = g("Div", g("Floor", g("Mul", g.input("x", 64, 2048), g.const(8.0))), g.const(8.0))
    keep = g("Less", g("CumSum", p, g.const(1, np.int64), exclusive=1), g.input("top", 64, 1))
    z = g("Where", keep, p, g.const(0.0))
    g.output(g("Mul", z, g.const(2.0)), 64, 2048)


def group_norm(g):
    x = g.input("x", 2, 64, 16, 16)
    r = g("Reshape", x, g.const([2, 8, -1], np.int64))
    d = g("Sub", r, g("ReduceMean", r, axes=[-1]))
    v = g("ReduceMean", g("Mul", d, d), axes=[-1])
    n = g("Reshape", g("Div", d, g("Sqrt", g("Add", v, g.const(1e-5)))), g.const([2, 64, 16, 16], np.int64))
    g.output(g("Add", g("Mul", n, g.input("gamma", 64, 1, 1)), g.input("beta", 64, 1, 1)), 2, 64, 16, 16)


def image_to_floats(g):
    f = g("Div", g("Cast", g.input("x", 1, 3, 64, 64, dtype=T.UINT8), to=FLOAT), g.const(255.0))
    f = g("Sub", f, g.const(np.array([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)))
    g.output(g("Div", f, g.const(np.array([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1))), 1, 3, 64, 64)


# Fragment, kernels, bytes against the least.
ROWS = [
    (layer_norm, 1, 1.1),
    (residual_rms_norm, 1, 1.1),
    (gelu_by_erf, 1, 1.1),
    (rotary, 2, 1.6),                   # cos and sin of the angles are made once for all heads
    (masked_softmax, 1, 1.1),
    (softmax_written_out, 1, 1.1),
    (softmax_of_integer_mask, 2, 1.1),  # 64-bit integers are narrowed by the library's cast
    (swish_gate, 1, 1.1),
    (quantise_dequantise, 1, 1.1),
    (quantise_rows, 1, 1.1),
    (nucleus, 1, 1.1),
    (group_norm, 2, 2.1),               # a group's statistics, then channels
    (image_to_floats, 1, 1.1),
]


def run(exe, tmp, build, target):
    g, path, report = Graph(), f"{tmp}/fragment.onnx", f"{tmp}/report.json"
    build(g)
    g.write(path)
    env = dict(os.environ, XDG_CACHE_HOME=f"{tmp}/cache", NO_COLOR="1")
    r = subprocess.run([exe, "run", path, "--on", "sim", "--target", target, "--compare", "ref", "--ref-accumulate", "fp32",
                        "--report", report], capture_output=True, text=True, env=env, timeout=300)
    if r.returncode:
        return r.stderr, None, None, g
    e = subprocess.run([exe, "explain", path, "--target", target, "--json"], capture_output=True, text=True, env=env)
    with open(report) as f:
        return "", json.load(f), json.loads(e.stdout), g


def main():
    exe, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    ran = failed = 0
    with tempfile.TemporaryDirectory(prefix="copse-test-") as tmp:
        for build, kernels, ratio in ROWS:
            if names and build.__name__ not in names:
                continue
            for target in ("trn1", "trn2", "trn3"):
                wrong, report, calls, g = run(exe, tmp, build, target)
                ran += 1
                if not wrong:
                    count = sum(c.get("calls", 1) for c in calls)
                    got = report["hbm_bytes"] / g.least
                    if target == "trn2":
                        print(f"{build.__name__:24} {count} kernels, {got:.2f} of the least bytes, {report['time_ns'] / 1000:8.1f} us, "
                              f"{report['roofline_fraction']:.2f} of the roof")
                    if count > kernels or got > ratio or not report["pass"] or any(report["checks"].values()):
                        wrong = f"{count} kernels of {kernels}, {got:.3f} of the least bytes, not {ratio}; {report['checks']}"
                if wrong:
                    failed += 1
                    print(f"FAIL {build.__name__} on {target}: {wrong}")
    print(f"{ran - failed} passed, {failed} failed")
    sys.exit(1 if failed or not ran else 0)


if __name__ == "__main__":
    main()

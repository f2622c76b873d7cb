"""Per-operator differential test: models of one operator through the importer and the reference
evaluator against onnxruntime, and optionally a published model.

usage: ops.py EVAL_CASES [--model FILE.onnx --dim NAME=N ...]
"""
import os, shutil, subprocess, sys, tempfile
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.RandomState(11)
F, H, I64, I32 = np.float32, np.float16, np.int64, np.int32


def f(*s, t=F):
    return (R.standard_normal(s)).astype(t)


def pos(*s):
    return (np.abs(R.standard_normal(s)) + 0.2).astype(F)


def ii(lo, hi, *s, t=I64):
    return R.randint(lo, hi, s).astype(t)


class C:
    """A constant operand."""

    def __init__(self, v, t=I64):
        self.v = np.array(v, t) if not isinstance(v, np.ndarray) else v


CASES = []


def case(op, *ins, opset=17, nout=1, domain="", tol=1e-6, name="", **attrs):
    if op == "ReduceSum":
        tol = 1e-4  # sums may cancel in the oracle's binary32
    CASES.append((f"{len(CASES):03d}-{op}{'-' + name if name else ''}", op, ins, opset, nout, domain,
                  tol, attrs))


# elementwise
for op in "Abs Neg Sign Exp Tanh Erf Sigmoid Softplus Relu Floor Ceil Round Sin Cos Atan Softsign".split():
    case(op, f(3, 5) * 3)
case("Round", np.array([0.5, 1.5, 2.5, -0.5, -1.5], F), name="ties")
case("Mish", f(3, 5), opset=18)
for op in "Log Sqrt Reciprocal".split():
    case(op, pos(3, 5))
for op in "Abs Neg Sign".split():
    case(op, ii(-9, 9, 7), name="i64")
case("IsNaN", np.array([1, np.nan, np.inf], F))
case("Not", ii(0, 2, 6).astype(bool))
case("Gelu", f(3, 5) * 2, opset=20)
case("Gelu", f(3, 5) * 2, opset=20, approximate="tanh")
case("Gelu", f(3, 5), domain="com.microsoft")
case("FastGelu", f(3, 5), f(5), domain="com.microsoft")
case("BiasGelu", f(3, 5), f(5), domain="com.microsoft")
case("QuickGelu", f(3, 5), domain="com.microsoft", alpha=1.702)
case("QuickGelu", f(3, 5), domain="com.microsoft", alpha=1.0)
case("LeakyRelu", f(3, 5), alpha=0.2)
case("PRelu", f(3, 5), f(5))
case("Elu", f(3, 5), alpha=1.5)
case("HardSigmoid", f(3, 5) * 4, alpha=0.3, beta=0.4)
case("HardSwish", f(3, 5) * 4)
case("Selu", f(3, 5), alpha=1.5, gamma=1.2)
case("Celu", f(3, 5), alpha=0.7)
case("ThresholdedRelu", f(3, 5), alpha=0.3)
case("IsInf", np.array([1, -np.inf, np.inf, np.nan], F))
case("IsInf", np.array([1, -np.inf, np.inf, np.nan], F), detect_negative=0)
case("Clip", f(3, 5), C(-0.5, F), C(0.5, F))
case("Clip", f(3, 5), None, C(0.5, F))
case("Clip", ii(-9, 9, 8), C(-3), C(4))
for a, b in [(T.INT64, f(3, 5) * 9), (T.INT32, f(3, 5) * 9), (T.BOOL, f(3, 5)), (T.FLOAT, ii(-9, 9, 4)),
             (T.FLOAT16, f(3, 5)), (T.BOOL, ii(-1, 2, 6)), (T.INT64, ii(0, 2, 6).astype(bool)),
             (T.UINT8, pos(5) * 50), (T.INT8, f(5) * 50)]:
    case("Cast", b, to=a)
case("CastLike", f(3, 5) * 9, ii(0, 2, 2), opset=19)
case("Identity", f(3))
case("Dropout", f(3, 4), nout=2)
for op in "Add Sub Mul Div".split():
    case(op, f(2, 3, 4), pos(3, 1))
    case(op, f(4), pos(2, 1, 4), name="lead")
    case(op, ii(-20, 20, 9), ii(1, 7, 9), name="i64")
case("Add", ii(2**40, 2**41, 4), ii(2**61, 2**62, 4), name="exact")
for op in "And Or Xor".split():
    case(op, ii(0, 2, 2, 4).astype(bool), ii(0, 2, 4).astype(bool))
for op in "Equal Less LessOrEqual Greater GreaterOrEqual".split():
    case(op, ii(0, 3, 3, 4), ii(0, 3, 4))
    case(op, ii(0, 3, 3, 4).astype(F), ii(0, 3, 4).astype(F), name="f")
case("Pow", pos(3, 4), f(4))
case("Pow", f(3, 4), C(2, F))
case("Pow", f(3, 4), C(3, I64))
case("Pow", ii(1, 5, 6), C(2, I64), name="i64")
case("Mod", ii(-9, 9, 9), C([4, -4, 3, -3, 5, -5, 2, 7, -7]))
case("Mod", f(9) * 5, pos(9), fmod=1)
case("Mod", ii(-9, 9, 9), C([4, -4, 3, -3, 5, -5, 2, 7, -7]), fmod=1)
for op in "Min Max Sum Mean".split():
    case(op, f(3, 4), f(4), f(1, 4))
    case(op, f(3, 4))
case("Min", ii(-5, 5, 6), ii(-5, 5, 6))
case("Where", ii(0, 2, 3, 1).astype(bool), f(3, 4), f(4))
case("Where", ii(0, 2, 4).astype(bool), ii(0, 9, 4), ii(0, 9, 4))
# contractions
case("MatMul", f(3, 4), f(4, 5))
case("MatMul", f(2, 3, 4), f(4, 5))
case("MatMul", f(2, 1, 3, 4), f(5, 4, 2))
case("MatMul", f(4), f(4))
case("MatMul", f(4), f(2, 4, 3))
case("MatMul", f(2, 3, 4), f(4))
case("FusedMatMul", f(2, 4, 3), f(2, 5, 4), domain="com.microsoft", transA=1, transB=1, alpha=0.5)
case("Gemm", f(3, 4), f(4, 5))
case("Gemm", f(4, 3), f(5, 4), f(5), transA=1, transB=1, alpha=0.5, beta=2.0)
case("Gemm", f(3, 4), f(4, 5), f(3, 1))
for eq, a, b in [("ij,jk->ik", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
                 ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)), ("bhij,bhjd->bihd", (2, 3, 4, 6), (2, 3, 6, 5)),
                 ("ij,kj->ki", (3, 4), (5, 4)), ("ij,ij->i", (3, 4), (3, 4)), ("i,j->ij", (3,), (4,)),
                 ("ij,jk", (3, 4), (4, 5)), ("bij,k->bk", (2, 3, 4), (5,)), ("i,i->", (4,), (4,))]:
    case("Einsum", f(*a), f(*b), equation=eq, name=eq.replace(",", "_").replace("->", "="))
case("Einsum", f(3, 4, 5), equation="ijk->kij")
case("Einsum", f(3, 4, 5), equation="ijk->j")
for axis in (-1, 0, 1):
    case("Softmax", f(2, 3, 4), axis=axis)
    case("Softmax", f(2, 3, 4), axis=axis, opset=12, name="old")
    case("LogSoftmax", f(2, 3, 4), axis=axis)
case("LayerNormalization", f(2, 3, 4), f(4), f(4))
case("LayerNormalization", f(2, 3, 4), f(4), nout=3, epsilon=1e-3)
case("LayerNormalization", f(2, 3, 4), f(3, 4), f(3, 4), axis=1)
case("LayerNormalization", f(2, 3, 4, t=H), f(4, t=H), f(4, t=H), tol=3e-3)
case("SimplifiedLayerNormalization", f(2, 3, 8), f(8), epsilon=1e-6)
case("RMSNormalization", f(2, 3, 8), f(8), opset=23)
case("SkipLayerNormalization", f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8), domain="com.microsoft", epsilon=1e-5)
case("SkipSimplifiedLayerNormalization", f(2, 3, 8), f(2, 3, 8), f(8), domain="com.microsoft", epsilon=1e-5)
case("BatchNormalization", f(2, 3, 4, 5), f(3), f(3), f(3), pos(3))
case("InstanceNormalization", f(2, 3, 4, 5), f(3), f(3))
case("GroupNormalization", f(2, 4, 3), f(4), f(4), opset=21, num_groups=2)
case("LpNormalization", f(3, 4), axis=0)
case("LpNormalization", f(3, 4), p=1)
# shapes
case("Reshape", f(2, 3, 4), C([0, -1]))
case("Reshape", f(2, 3, 4), C([4, 0, 2]))
case("Reshape", f(2, 3), C([3, 2, 1]))
for axis in (0, 1, 3, -1):
    case("Flatten", f(2, 3, 4), axis=axis)
case("Squeeze", f(1, 3, 1), C([0, -1]))
case("Squeeze", f(1, 3, 1))
case("Squeeze", f(1, 3, 1), axes=[2], opset=11)
case("Unsqueeze", f(3, 4), C([0, -1]))
case("Unsqueeze", f(3, 4), axes=[1, 3], opset=11)
case("Transpose", f(2, 3, 4))
case("Transpose", f(2, 3, 4), perm=[1, 2, 0])
case("Expand", f(3, 1), C([2, 1, 4]))
case("Expand", f(3, 4), C([1, 1]))
case("Tile", f(2, 3), C([2, 3]))
case("Tile", ii(0, 9, 2, 1, 3), C([1, 2, 2]))
B = 2**63 - 1
for st, en, ax, sp in [([1], [3], [0], [1]), ([-3], [B], [1], [1]), ([B], [-B], [1], [-1]), ([4], [0], [1], [-2]),
                       ([0, 1], [9, -1], [0, 1], [2, 1]), ([3], [1], [0], [1]), ([0], [5], [-1], [100]),
                       ([-1], [-100], [0], [-3])]:
    case("Slice", f(4, 5), C(st), C(en), C(ax), C(sp))
case("Slice", f(4, 5), C([1, 2]), C([3, 4]))
case("Concat", f(2, 3), f(2, 1), f(2, 2), axis=1)
case("Concat", f(2, 3), axis=-1)
case("Concat", ii(0, 9, 2, 3), ii(0, 9, 1, 3), axis=-2)
case("Split", f(4, 6), nout=3, axis=1)
case("Split", f(4, 6), C([1, 5]), nout=2, axis=-1)
case("Split", f(4, 7), nout=3, axis=1, num_outputs=3, opset=18)
case("Split", f(4, 6), nout=2, axis=0, split=[3, 1], opset=11)
case("Pad", f(2, 3), C([1, 0, 2, 1]), C(1.5, F))
case("Pad", f(2, 3), C([0, -1, 1, 0]))
case("Pad", f(2, 3, 4), C([1, 2]), None, C([-1]), opset=18)
case("Shape", f(2, 3, 4))
case("Shape", f(2, 3, 4), start=-2, opset=15)
case("Size", f(2, 3, 4))
case("ConstantOfShape", C([2, 3]))
case("ConstantOfShape", C([2, 3]), value=nh.from_array(np.array([7], I64)))
case("Range", C(2, I64), C(11, I64), C(3, I64))
case("Range", C(1, F), C(-2, F), C(-0.7, F))
case("EyeLike", f(3, 4), k=1, dtype=T.FLOAT)
case("DepthToSpace", f(1, 8, 2, 3), blocksize=2)
case("DepthToSpace", f(1, 8, 2, 3), blocksize=2, mode="CRD")
case("SpaceToDepth", f(1, 2, 4, 6), blocksize=2)
# indices
case("Gather", f(5, 4), ii(-5, 5, 2, 3))
case("Gather", f(5, 4), C(1), axis=1)
case("Gather", ii(0, 9, 5, 4), ii(0, 4, 2, t=I32), axis=-1)
case("GatherElements", f(3, 4), ii(-3, 3, 2, 4), axis=0)
case("CumSum", f(3, 4), C(1))
case("CumSum", f(3, 4), C([0]), exclusive=1, reverse=1)
case("CumSum", ii(0, 9, 3, 4), C(-1))
case("TopK", f(3, 9), C([4]), nout=2)
case("TopK", f(6, 3), C([2]), nout=2, axis=0, largest=0)
for op in "ArgMax ArgMin".split():
    case(op, ii(0, 4, 3, 6).astype(F), axis=1, keepdims=0)
    case(op, ii(0, 4, 3, 6).astype(F), axis=-1, select_last_index=1)
case("Trilu", f(2, 4, 5))
case("Trilu", f(4, 5), C(-1), upper=0)
case("OneHot", ii(-4, 6, 3), C(5), C([0.5, 2.0], F))
case("OneHot", ii(0, 5, 2, 3), C([5]), C([0, 1]), axis=0)
# reductions
for op in "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp".split() + ["ReduceLogSum"]:
    if op == "ReduceLogSum":
        case(op, pos(2, 3, 4), C([1]), opset=18)
        case(op, pos(2, 3, 4), axes=[0, 2], keepdims=0)
        continue
    if op != "ReduceSum":
        case(op, f(2, 3, 4), axes=[-1], name="attr")
        case(op, f(2, 3, 4), axes=[0, 2], keepdims=0, name="attr")
    case(op, f(2, 3, 4), C([1]), opset=18)
    case(op, f(2, 3, 4), opset=18, keepdims=0)
case("ReduceSum", f(2, 3, 4), C([0, -1]), keepdims=0)
case("ReduceSum", f(2, 3), C(np.zeros(0, I64)), noop_with_empty_axes=1)
case("ReduceSum", ii(-9, 9, 2, 3), C([1]))
case("ReduceMax", ii(-9, 9, 2, 3), axes=[1])
case("GlobalAveragePool", f(2, 3, 4, 5))
case("GlobalMaxPool", f(2, 3, 4, 5))
# halves: arithmetic is exact in the evaluator, the oracle rounds
case("MatMul", f(3, 4, t=H), f(4, 5, t=H), tol=3e-3)
case("Softmax", f(3, 4, t=H), tol=3e-3)


MODELS = [("../../data/small_encoder", ["batch_size=2", "sequence_length=9"]), ("mlp", ["batch=3"]),
          ("encoder", ["B=2", "S=3"]), ("decoder", []), ("gpt", [])]


def build(c, folder):
    name, op, ins, opset, nout, domain, tol, attrs = c
    names, inputs, inits, feed = [], [], [], {}
    for i, v in enumerate(ins):
        names.append("" if v is None else f"x{i}")
        if isinstance(v, C):
            inits.append(nh.from_array(v.v, names[-1]))
        elif v is not None:
            inputs.append(h.make_tensor_value_info(names[-1], h.np_dtype_to_tensor_dtype(v.dtype), v.shape))
            feed[names[-1]] = v
    outs = [f"y{i}" for i in range(nout)]
    node = h.make_node(op, names, outs, "node", domain=domain, **attrs)
    ys = [onnx.ValueInfoProto(name=o) for o in outs]
    g = h.make_graph([node], "g", inputs, ys, inits)
    ops = [h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1)]
    m = h.make_model(g, opset_imports=ops, ir_version=8)
    onnx.save(m, os.path.join(folder, "model.onnx"))
    for i, v in enumerate(feed.values()):
        np.save(os.path.join(folder, f"in_{i}.npy"), v.astype(F) if v.dtype == H else v)
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.log_severity_level = 4
    s = ort.InferenceSession(m.SerializeToString(), o, providers=["CPUExecutionProvider"])
    return s.run(None, feed), tol


def model_case(path, dims, folder):
    os.symlink(os.path.abspath(path), os.path.join(folder, "model.onnx"))
    with open(os.path.join(folder, "dims.txt"), "w") as fd:
        fd.write("\n".join(dims))
    size = {k: int(v) for k, v in (d.rsplit("=", 1) for d in dims)}
    s = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = {}
    for i, x in enumerate(s.get_inputs()):
        shape = [d if isinstance(d, int) else size[d] for d in x.shape]
        if "int" in x.type:
            v = R.randint(0, 2, shape) if "mask" in x.name else R.randint(0, 11, shape)
            if "mask" in x.name:
                v[:, 0] = 1
            v = v.astype(I64)
        else:
            v = f(*shape)
        feed[x.name] = v
        np.save(os.path.join(folder, f"in_{i}.npy"), v)
    return s.run(None, feed), 1e-5


def differs(want, got, tol):
    want = np.asarray(want)
    if want.shape != got.shape:
        return f"shape {got.shape}, want {want.shape}"
    if want.dtype.kind in "iub":
        bad = np.sum(want.astype(I64) != got.astype(I64))
        return f"{bad} elements differ" if bad else None
    w, g = want.astype(np.float64), got.astype(np.float64)
    if not np.array_equal(np.isnan(w), np.isnan(g)):
        return "NaN differs"
    fin = np.isfinite(w)
    if not np.array_equal(w[~fin & ~np.isnan(w)], g[~fin & ~np.isnan(w)]):
        return "infinities differ"
    if not fin.any():
        return None
    err, top = np.abs(w - g)[fin].max(), np.abs(w[fin]).max()
    return f"error {err:.3g} of {top:.3g}" if err > tol * top + 1e-30 else None


def main():
    tool, args = sys.argv[1], sys.argv[2:]
    root = tempfile.mkdtemp(prefix="copse-ops-")
    jobs, skipped = [], []
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    models = {f"model-{os.path.basename(m)}": (os.path.join(data, m + ".onnx"), dims) for m, dims in MODELS}
    if args:
        dims = [a for i, a in enumerate(args) if args[i - 1] == "--dim"]
        models = {"model": (args[1], dims)}
    todo = ([] if args else CASES) + [(m,) for m in models]
    for c in todo:
        folder = os.path.join(root, c[0])
        os.mkdir(folder)
        try:
            if c[0] in models:
                want, tol = model_case(*models[c[0]], folder)
            else:
                want, tol = build(c, folder)
        except Exception as e:  # an operator that this onnxruntime does not have
            skipped.append(f"{c[0]}: {str(e).splitlines()[0][:120]}")
            continue
        jobs.append((c[0], folder, want, tol))
    p = subprocess.run([tool], input="\n".join(j[1] for j in jobs) + "\n", text=True)
    failed = 0
    for name, folder, want, tol in jobs:
        for i, w in enumerate(want):
            path = os.path.join(folder, f"out_{i}.npy")
            if os.path.exists(path):
                why = differs(w, np.load(path), tol)
            else:
                err = os.path.join(folder, "err.txt")
                why = open(err).read() if os.path.exists(err) else "no output"
            if why:
                failed += 1
                print(f"{name} output {i}: {why}")
            if why and not os.path.exists(path):
                break
    for s in skipped:
        print("oracle declined", s)
    if p.returncode < 0 or p.returncode > 1:
        failed += 1
        print("the evaluator ended with", p.returncode)
    shutil.rmtree(root)
    print(f"{len(jobs)} cases, {failed} failed, {len(skipped)} without an oracle")
    return failed > 0 or len(jobs) == 0


sys.exit(main())

#!/usr/bin/env python3
"""NumPy as the oracle of the graph evaluator.

Writes one function per case as graph text, runs them all with cir_run, and compares every
output: floats against NumPy in binary64 (or binary32 for the fp32 run) within a few ulp of the
largest magnitude involved, integers exactly. Usage: oracle.py CIR_RUN
"""

import math
import subprocess
import sys
import tempfile

import numpy as np

rng = np.random.default_rng(7)
NP = {
    "fp32": np.float32,
    "fp16": np.float16,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "bool": np.bool_,
}
cases, expected = [], {}


def dims(a):
    return "[" + ",".join(map(str, a.shape)) + "]"


def literal(dtype, a):
    def one(v):
        if dtype == "bool":
            return "true" if v else "false"
        if dtype in ("fp32", "fp16"):
            v = float(v)
            return (
                repr(v)
                if math.isfinite(v)
                else ("nan" if v != v else "inf" if v > 0 else "-inf")
            )
        return str(int(v))

    return f"const {dtype}{dims(a)} [" + ", ".join(one(v) for v in a.reshape(-1)) + "]"


def values(dtype, shape, lo=None, hi=None, special=True):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in ("fp32", "fp16"):
        a = rng.normal(0, 2, shape)
        if lo is not None:
            a = rng.uniform(lo, hi, shape)
        a = np.asarray(a).astype(NP[dtype])
        if special and a.size >= 6 and lo is None:
            a.reshape(-1)[:6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]
        return a
    info = np.iinfo(NP[dtype])
    a = rng.integers(
        max(info.min, lo if lo is not None else -9),
        min(info.max, hi if hi is not None else 9),
        shape,
        endpoint=True,
    )
    a = np.asarray(a).astype(NP[dtype])
    if special and a.size >= 6 and lo is None:
        a.reshape(-1)[:2] = [info.min, info.max]
    return a


def case(op, operands, want, attrs="", results=1, tol=4.0):
    """operands: [(dtype, array)]; want: list of arrays (floats in binary64)."""
    name = f"f{len(cases)}"
    lines = [f"func @{name} {{"]
    for i, (dtype, a) in enumerate(operands):
        lines.append(f"  %a{i} = {literal(dtype, a)}")
    outs = ", ".join(f"%r{i}" for i in range(results))
    lines.append(
        f"  {outs} = {op} "
        + ", ".join(f"%a{i}" for i in range(len(operands)))
        + (" {" + attrs + "}" if attrs else "")
    )
    lines += [f'  output "r" %r{i}' for i in range(results)] + ["}"]
    cases.append("\n".join(lines))
    expected[name] = (op, attrs, operands, want, tol)


def wide(a):
    return a.astype(np.float64) if a.dtype.kind == "f" else a


erf = np.vectorize(math.erf, otypes=[float])
sig = lambda x: 1 / (1 + np.exp(-x))
softplus = lambda x: np.logaddexp(0, x)
UNARY = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": np.square,
    "sin": np.sin,
    "cos": np.cos,
    "arctan": np.arctan,
    "tanh": np.tanh,
    "erf": erf,
    "sigmoid": sig,
    "softplus": softplus,
    "relu": lambda x: np.where(x < 0, 0, x),
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * sig(x),
    "swish": lambda x: x * sig(1.702 * x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "isnan": np.isnan,
}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "mod": np.mod,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
REDUCE = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
}
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def build():
    for op, fn in UNARY.items():
        for dt in ("fp32", "fp16"):
            x = values(dt, (4, 5), *((0.1, 9) if op in ("log", "sqrt", "rsqrt") else ()))
            case(op, [(dt, x)], [fn(wide(x))])
    for dt in INTS:
        x = values(dt, (3, 4))
        for op in ("neg", "abs", "sign", "square", "relu"):
            if dt[0] == "u" and op in ("sign", "relu", "abs"):
                case(op, [(dt, x)], [np.sign(x) if op == "sign" else x])
            else:
                case(op, [(dt, x)], [UNARY[op](x).astype(x.dtype)])
        case("not", [(dt, x)], [np.invert(x)])
    b = values("bool", (7,))
    case("not", [("bool", b)], [~b])

    shapes = [
        ((3, 4), (3, 4)),
        ((3, 4), (4,)),
        ((3, 1), (1, 4)),
        ((), (2, 3)),
        ((2, 1, 3), (5, 1)),
        ((2, 3, 4), ()),
        ((0, 3), (1, 3)),
        ((2, 3, 1), (2, 3, 4)),
    ]
    for op, fn in BINARY.items():
        for sx, sy in shapes:
            x, y = values("fp32", sx), values("fp32", sy)
            case(op, [("fp32", x), ("fp32", y)], [fn(wide(x), wide(y))])
        for dt in INTS:
            x, y = values(dt, (3, 4)), values(dt, (4,), special=False)
            if op in ("div", "mod"):
                y[y == 0] = 3
            if op == "pow":
                y = values(dt, (4,), 0, 6)
            if op == "div":
                q = [
                    int(abs(int(p)) // abs(int(r)))
                    * (1 if (int(p) < 0) == (int(r) < 0) else -1)
                    for p, r in zip(x.reshape(-1), np.broadcast_to(y, x.shape).reshape(-1))
                ]
                bits = np.iinfo(x.dtype).bits
                q = [v % (1 << bits) for v in q]
                want = (
                    np.array(q, dtype=np.uint64)
                    .astype(f"u{bits//8}")
                    .view(x.dtype)
                    .reshape(3, 4)
                )
            else:
                want = fn(x, y)
            case(op, [(dt, x), (dt, y)], [want])
    x, y = values("fp32", (9,)), values("fp32", (9,), 0.5, 3)
    case("mod", [("fp32", x), ("fp32", y)], [np.fmod(wide(x), wide(y))], "fmod=true")
    x, y = values("i32", (9,)), values("i32", (9,), 1, 5)
    case("mod", [("i32", x), ("i32", -y)], [np.fmod(x, -y)], "fmod=true")
    for op, fn in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        for dt in ("bool", "i16", "u64"):
            x, y = values(dt, (4, 3)), values(dt, (3,))
            case(op, [(dt, x), (dt, y)], [fn(x, y)])
    for sc, sx, sy in [((3, 4), (3, 4), (4,)), ((3, 1), (4,), ()), ((), (2, 3), (2, 1))]:
        c, x, y = values("bool", sc), values("fp32", sx), values("fp32", sy)
        case("select", [("bool", c), ("fp32", x), ("fp32", y)], [np.where(c, wide(x), wide(y))])

    for op, fn in REDUCE.items():
        for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2), ()):
            x = values("fp32", (3, 4, 5), special=axes == (1,))
            for keep in (True, False):
                case(
                    op,
                    [("fp32", x)],
                    [fn(wide(x), axis=axes, keepdims=keep)],
                    f"axes=[{','.join(map(str, axes))}], keep={str(keep).lower()}",
                    tol=64,
                )
            if op != "reduce_mean":
                for dt in ("i32", "i64", "u64", "i8"):
                    x = values(dt, (3, 4, 5))
                    kw = {} if op in ("reduce_max", "reduce_min") else {"dtype": x.dtype}
                    case(
                        op,
                        [(dt, x)],
                        [fn(x, axis=axes, **kw)],
                        f"axes=[{','.join(map(str, axes))}], keep=false",
                    )
    z = np.zeros((0, 3), np.float32)
    case("reduce_sum", [("fp32", z)], [np.zeros(3)], "axes=[0], keep=false")
    case("reduce_prod", [("fp32", z)], [np.ones(3)], "axes=[0], keep=false")
    case("reduce_mean", [("fp32", z)], [np.full(3, np.nan)], "axes=[0], keep=false")

    for sx, sy in [
        ((3, 4), (4, 5)),
        ((1, 7), (7, 1)),
        ((2, 3, 4), (4, 9)),
        ((5, 1, 2, 3), (2, 3, 4)),
        ((2, 3), (4, 3, 17)),
        ((9, 300), (300, 3)),
        ((3, 0), (0, 2)),
        ((13, 5), (5, 33)),
    ]:
        x, y = values("fp32", sx, special=False), values("fp32", sy, special=False)
        case("matmul", [("fp32", x), ("fp32", y)], [wide(x) @ wide(y)], tol=1000)
        x, y = values("i32", sx, special=False), values("i32", sy, special=False)
        case("matmul", [("i32", x), ("i32", y)], [x @ y])

    x = values("fp32", (2, 3, 4))
    X = ("fp32", x)
    case("reshape", [X], [wide(x).reshape(4, 6)], "shape=[4,6]")
    for p in [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1)]:
        case("transpose", [X], [wide(x).transpose(p)], f"perm=[{','.join(map(str, p))}]")
    y = values("fp32", (3, 1))
    case("broadcast", [("fp32", y)], [np.broadcast_to(wide(y), (2, 3, 4))], "shape=[2,3,4]")
    case(
        "slice",
        [X],
        [wide(x)[0:2:1, 2::-2, 1:4:2]],
        "start=[0,2,1], stop=[2,-1,4], step=[1,-2,2]",
    )
    case("slice", [X], [wide(x)[1:1, :, ::-1]], "start=[1,0,3], stop=[1,3,-1], step=[1,1,-1]")
    y = values("fp32", (2, 2, 4))
    case(
        "concat",
        [X, ("fp32", y), X],
        [np.concatenate([wide(x), wide(y), wide(x)], 1)],
        "axis=1",
    )
    case(
        "pad",
        [X, ("fp32", np.float32(7))],
        [np.pad(wide(x), ((0, 1), (2, 0), (1, 3)), constant_values=7)],
        "lo=[0,2,1], hi=[1,0,3]",
    )
    case("repeat", [X], [np.repeat(wide(x), 3, 1)], "axis=1, n=3")
    case(
        "index",
        [],
        [np.broadcast_to(np.arange(3)[:, None], (2, 3, 4))],
        "axis=1, dtype=i32, shape=[2,3,4]",
    )
    case(
        "index",
        [],
        [np.broadcast_to(np.arange(4.0), (2, 4))],
        "axis=1, dtype=fp32, shape=[2,4]",
    )
    for axis in range(3):
        ix = values("i64", (2, 2), -x.shape[axis], x.shape[axis] - 1)
        case("gather", [X, ("i64", ix)], [np.take(wide(x), ix, axis)], f"axis={axis}")
        ix = values("i32", (2, 3, 4), -x.shape[axis], x.shape[axis] - 1)
        case(
            "gather_elements",
            [X, ("i32", ix)],
            [np.take_along_axis(wide(x), ix % x.shape[axis], axis)],
            f"axis={axis}",
        )
    for add in (False, True):
        base, ix = values("fp32", (5, 3), special=False), np.array([1, -1, 4, 1], np.int32)
        u = values("fp32", (4, 3), special=False)
        want = wide(base)
        for k, i in enumerate(ix):
            if i >= 0:
                want[i] = want[i] + u[k] if add else u[k]
        case(
            "scatter",
            [("fp32", base), ("i32", ix), ("fp32", u)],
            [want],
            f"axis=0, add={str(add).lower()}",
        )
    for axis in range(3):
        for excl in (False, True):
            for rev in (False, True):
                for dt in ("fp32", "i32"):
                    x = values(dt, (2, 3, 4), special=False)
                    w = np.flip(wide(x), axis) if rev else wide(x)
                    s = np.cumsum(w, axis, dtype=w.dtype)
                    s = s - w if excl and dt == "i32" else s
                    if excl and dt == "fp32":
                        s = np.concatenate(
                            [
                                np.zeros_like(np.take(w, [0], axis)),
                                np.take(s, range(w.shape[axis] - 1), axis),
                            ],
                            axis,
                        )
                    s = np.flip(s, axis) if rev else s
                    case(
                        "cumsum",
                        [(dt, x)],
                        [s],
                        f"axis={axis}, exclusive={str(excl).lower()}, "
                        f"reverse={str(rev).lower()}",
                        tol=32,
                    )
    for dt in ("fp32", "i8", "u64"):
        for axis in range(2):
            x = values(dt, (6, 7))
            x.reshape(-1)[20:26] = x.reshape(-1)[10:16]  # ties
            i = np.argsort(wide(x), axis, kind="stable")
            case(
                "sort",
                [(dt, x)],
                [np.take_along_axis(wide(x), i, axis), i],
                f"axis={axis}, descending=false",
                2,
            )
            # Descending and stable: NaN first, equal elements in their order.
            ranks = np.unique(wide(x), return_inverse=True)[1].reshape(x.shape)
            j = np.argsort(-ranks, axis, kind="stable")
            case(
                "sort",
                [(dt, x)],
                [np.take_along_axis(wide(x), j, axis), j],
                f"axis={axis}, descending=true",
                2,
            )

    x = np.array(
        [0.0, -0.5, 1.5, 2.5, -2.9, 300.0, -300.0, np.nan, np.inf, -np.inf, 1e20], np.float32
    )
    for dt in INTS:
        lo, hi = np.iinfo(NP[dt]).min, np.iinfo(NP[dt]).max
        want = [
            0 if v != v else hi if v > hi else lo if v < lo else int(v) for v in x.astype(float)
        ]
        case("cast", [("fp32", x)], [np.array(want, dtype=object)], f"dtype={dt}")
        for src in INTS:
            y = values(src, (8,))
            case("cast", [(src, y)], [y.astype(NP[dt])], f"dtype={dt}")
        y = values(dt, (8,))
        case("cast", [(dt, y)], [y.astype(np.float32).astype(np.float64)], "dtype=fp32")
        case("cast", [(dt, y)], [y != 0], "dtype=bool")
    with np.errstate(over="ignore"):
        case("cast", [("fp32", x)], [x.astype(np.float16).astype(np.float64)], "dtype=fp16")
    case("cast", [("fp32", x)], [x != 0], "dtype=bool")


def check(tool, fp32):
    with tempfile.NamedTemporaryFile("w", suffix=".cir") as f:
        f.write("copse.graph 1\n" + "\n".join(cases) + "\n")
        f.flush()
        run = subprocess.run(
            [tool, f.name] + (["fp32"] if fp32 else []), capture_output=True, text=True
        )
    if run.returncode:
        sys.exit(f"{tool} failed: {run.stderr[:2000]}")
    got = {}
    for line in run.stdout.splitlines():
        name, output, *vals = line.split()
        got[name, output] = vals
    bad = seen = 0
    for name, (op, attrs, operands, want, tol) in expected.items():
        for k, w in enumerate(want):
            w = np.asarray(w)
            g = got.get((name, str(k)))
            seen += 1
            if g is None:
                ok, g = False, got.get((name, "error"))
            elif w.dtype.kind == "f":
                a = np.array([float.fromhex(v) for v in g]).reshape(w.shape)
                eps = 2.0**-23 if fp32 else 2.0**-52
                finite = w[np.isfinite(w)]
                scale = np.maximum(np.abs(w), 1e-300)
                if tol > 4:
                    scale = max(np.abs(finite).max(initial=0.0), 1e-300)
                if op in ("gelu", "silu", "mish", "swish", "gelu_tanh", "sin", "cos"):
                    scale = np.maximum(scale, 1.0)  # the oracle itself cancels
                with np.errstate(invalid="ignore", over="ignore"):
                    top = 3.4e38 if fp32 else 1.7e308
                    close = np.abs(a - w) <= tol * eps * scale
                    over = (np.abs(w) >= top) & np.isinf(a) & (np.sign(a) == np.sign(w))
                    tiny = (np.abs(w) < 2.0**-126) & (np.abs(a) <= 2.0**-125) if fp32 else False
                    ok = bool(
                        (close | (a == w) | (np.isnan(a) & np.isnan(w)) | over | tiny).all()
                    )
            else:
                ok = [int(v) for v in g] == [int(v) for v in w.reshape(-1)]
            if not ok:
                bad += 1
                if bad < 10:
                    print(
                        f"{op} {{{attrs}}} on "
                        f"{[(d, a.tolist()) for d, a in operands]}:\n  got  "
                        f"{g}\n  want {w.reshape(-1).tolist()}"
                    )
    print(f"{'fp32' if fp32 else 'fp64'}: {seen} outputs, {bad} wrong")
    return bad


if __name__ == "__main__":
    np.seterr(all="ignore")
    build()
    sys.exit(1 if check(sys.argv[1], False) + check(sys.argv[1], True) else 0)

"""Speed of the simulator against NumPy executing the same instructions, against oneDNN's matmul, and of its
checks against itself. One process, one core, one thread, seconds of processor; the two sides of a line take
turns, and a line's figure is the median of the ratios of its rounds.

    taskset -c 0 build/venv/bin/python tests/bench/sim.py build [--json F] [--rounds N] [--only TEXT]
    build/venv/bin/python tests/bench/sim.py build --check

`--check` times nothing: it runs every comparison at small sizes and fails when the two sides differ."""

import os

# NumPy's OpenBLAS at its best kernels, and one thread: both are read when NumPy is loaded.
CORE = {"avx512f": "SkylakeX", "avx2": "Haswell"}
with open("/proc/cpuinfo") as f:
    FLAGS = next((set(l.split()) for l in f if l.startswith("flags")), set())
BEST = next((v for k, v in CORE.items() if k in FLAGS), None)
if BEST:
    os.environ["OPENBLAS_CORETYPE"] = BEST
for v in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[v] = "1"

import argparse
import ctypes as C
import json
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import peer
from peer import F32, U16, U32, narrow, wide, widen

HERE = os.path.dirname(os.path.abspath(__file__))
P = 128
now = lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def codes(x):
    """fp32 to bf16 codes, of a copy."""
    out = np.empty(x.shape, U16)
    narrow(np.ascontiguousarray(x, F32), out, np.empty(x.shape, U32))
    return out


def floats(a):
    return widen(a, wide(a.shape)) if a.dtype == U16 else a


# ---- the simulator ----


class Result(C.Structure):
    _fields_ = [("seconds", C.c_double), ("instructions", C.c_uint64), ("time_ps", C.c_int64)]


class Lib:
    def __init__(self, build):
        self.build = build
        self.c = c = C.CDLL(os.path.join(build, "tests", "libbench_machine.so"))
        p, i, q, s = C.c_void_p, C.c_int, C.c_int64, C.c_char_p
        for name, res, args in (
            ("bench_error", s, []),
            ("bench_close", None, [p]),
            ("bench_open", p, [s]),
            ("bench_new", p, [s, s]),
            ("bench_load", None, [p, s, i, i, q]),
            ("bench_code", C.c_bool, [p, s, s, i, s, s]),
            ("bench_store", None, [p, s, i, i, q]),
            ("bench_ready", C.c_bool, [p]),
            ("bench_bind", C.c_bool, [p, s, p, C.c_size_t, i]),
            ("bench_run", C.c_bool, [p, i, C.POINTER(Result)]),
        ):
            f = getattr(c, name)
            f.restype, f.argtypes = res, args

    def need(self, ok):
        if not ok:
            raise RuntimeError(self.c.bench_error().decode())
        return ok


class Kernel:
    """A loaded kernel with its arrays."""

    def __init__(self, lib, handle):
        self.lib, self.h, self.arrays, self.res = lib, lib.need(handle), {}, Result()

    def bind(self, name, a, defined):
        self.arrays[name] = a
        self.lib.need(self.lib.c.bench_bind(self.h, name.encode(), a.ctypes.data, a.nbytes, defined))

    def run(self, checks=False):
        self.lib.need(self.lib.c.bench_run(self.h, checks, C.byref(self.res)))
        return self.res.seconds

    def close(self):
        self.lib.c.bench_close(self.h)


def by_hand(lib, engine, loads, before, body, times, last, after, stores):
    """loads: name, byte, array [P, ...]; stores: name, byte, array to fill."""
    c = lib.c
    h = lib.need(c.bench_new(b"trn2", engine.encode()))
    row = lambda a: a.nbytes // a.shape[0]
    for name, byte, a in loads:
        c.bench_load(h, name.encode(), a.shape[0], byte, row(a))
    lib.need(c.bench_code(h, before.encode(), body.encode(), times, last.encode(), after.encode()))
    for name, byte, a in stores:
        c.bench_store(h, name.encode(), a.shape[0], byte, row(a))
    lib.need(c.bench_ready(h))
    k = Kernel(lib, h)
    for name, _, a in loads:
        k.bind(name, a, 1)
    for name, _, a in stores:
        k.bind(name, a, 0)
    return k


def compiled(lib, op, dims, dtype="bf16", attrs=(), leaf=None, include=None):
    """A kernel of the library: the loaded binary, the text of its tile program, its variables."""
    call = [op, "--dims", ",".join(f"{k}={v}" for k, v in dims.items()), "--dtype", dtype, "--target", "trn2"]
    call += [x for a in attrs for x in ("--attr", a)] + (["--leaf", leaf] if leaf else [])
    call += ["-I", os.path.join(HERE, include)] if include else []
    tool = [os.path.join(lib.build, "copse"), "kernel"]
    text = subprocess.run(tool + ["run"] + call + ["--emit", "tile"], capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as d:
        r = subprocess.run(tool + ["compile"] + call + ["-o", d, "--no-cache"], capture_output=True, text=True)
        if text.returncode or r.returncode:
            raise RuntimeError(text.stderr + r.stderr)
        with open(os.path.join(d, "manifest.json")) as f:
            man = json.load(f)
        k = Kernel(lib, lib.c.bench_open(os.path.join(d, "kernels", man["kernels"][0]["name"]).encode()))
    return k, text.stdout, man


# ---- timing ----


def rounds(a, b, n):
    """Pairs of seconds of a() and b(), which take turns; each says itself how long it took."""
    a(), b()
    return [(a(), b()) for _ in range(n)]


def timed(f, times):
    """Seconds of one call, over `times` calls."""

    def go():
        t = now()
        for _ in range(times):
            f()
        return (now() - t) / times

    return go


def median_of(pairs):
    r = sorted(p / o for o, p in pairs)
    return {
        "ours_us": 1e6 * statistics.median(o for o, _ in pairs),
        "peer_us": 1e6 * statistics.median(p for _, p in pairs),
        "ratio": statistics.median(r),
        "low": r[0],
        "high": r[-1],
    }


class Check(Exception):
    pass


def close(name, got, want, tol):
    got, want = floats(got).astype(np.float64), floats(want).astype(np.float64)
    far = np.max(np.abs(got - want.reshape(got.shape)))
    if not far <= tol * np.max(np.abs(want)):
        raise Check(f"{name}: the sides differ by {far:.3g}, largest value {np.max(np.abs(want)):.3g}")


# ---- single instructions ----

rng = np.random.default_rng(5)
normal = lambda *shape: rng.standard_normal(shape).astype(F32)
GROUP = " num_active_rows=128 num_active_cols=128 row_grp=0xf col_grp=0xf"
BF, FP = 2.0**-8, 2.0**-20  # half a step of bf16; room for sums in another order


class Line:
    """One instruction, or the few that make one call: assembly for `engine`, arrays with their bytes in each
    partition, and `peer`, which fills the arrays of `stores` in NumPy. `after` brings results to SBUF."""

    def __init__(self, name, goal, engine, before, body, loads, stores, peer, tol, last=None, after="", count=1):
        self.name, self.goal, self.engine, self.before, self.body = name, goal, engine, before, body
        self.loads, self.stores, self.peer, self.tol = loads, stores, peer, tol
        self.last, self.after, self.count = last or engine, after, count

    def kernel(self, lib, times):
        got = [(n, b, np.zeros_like(a)) for n, b, a in self.stores]
        return by_hand(lib, self.engine, self.loads, self.before, self.body, times, self.last, self.after, got), got


def matmul_line(name, goal, dtype, n):
    """LDWEIGHTS and MATMUL: two passes when fp32, as the device does it; NumPy does the same passes."""
    two = dtype == "fp32"
    store = codes if dtype == "bf16" else (lambda x: x)
    w, x = store(normal(P, P)), store(normal(P, n))
    es = w.itemsize
    xb = P * es
    ld = f"LDWEIGHTS src={dtype}@sbuf[p0][1][128]{GROUP}"
    mm = f"MATMUL src={dtype}@sbuf[p0+{xb}][1][{n}]{GROUP} dst=fp32@psum[p0][1][{n}]"
    if two:
        body = "\n".join(
            f"{ld} fp32_mode={m}\n{mm} fp32_mode=LOW_HIGH psum_accumulate_flags={f}"
            for m, f in (("LOW", "START"), ("HIGH", "END"))
        )
    else:
        body = f"{ld}\n{mm} psum_accumulate_flags=START|END"
    psum, tmp = np.empty((P, n), F32), np.empty((P, n), F32)
    fw, fx, hi = wide((P, P)), wide((P, n)), np.empty((P, P), F32)

    def one():
        a, b = (widen(w, fw), widen(x, fx)) if dtype == "bf16" else (w, x)
        np.matmul(a.T, b, out=tmp)
        np.copyto(psum, tmp)

    def passes():
        np.bitwise_and(w.view(U32), U32(0xFFFFF000), out=hi.view(U32))
        np.subtract(w, hi, out=fw)
        np.matmul(fw.T, x, out=tmp)
        np.copyto(psum, tmp)
        np.matmul(hi.T, x, out=tmp)
        np.add(psum, tmp, out=psum)

    return Line(
        name, goal, "pe", "", body, [("w", 0, w), ("x", xb, x)], [("y", 8192, psum)], passes if two else one,
        2.0**-9 if dtype == "tf32" else FP, last="dve",
        after=f"COPY src=fp32@psum[p0][1][{n}] ch=128 dst=fp32@sbuf[p0+8192][1][{n}]",
    )


def cast_line(name, goal, n):
    x, to, tmp, D = normal(P, n), np.empty((P, n), U16), np.empty((P, n), U32), 16384
    body = f"CAST src=fp32@sbuf[p0][1][{n}] ch=128 dst=bf16@sbuf[p0+{D}][1][{n}]"
    return Line(name, goal, "dve", "", body, [("x", 0, x)], [("y", D, to)], lambda: narrow(x, to, tmp), 0)


def lines(n, small):
    """Every line of single instructions, on [128, n] and [128, small]."""
    x = normal(P, n)
    xb = codes(x)
    bias = normal(P, 1)
    out = []
    A, B, D, S = 0, 8192, 16384, 24576  # operands, result, scalars in each partition

    # exp with bias and a running sum, as softmax uses it
    want, tot = np.empty((P, n), U16), np.empty((P, 1), F32)
    f, t, tmp = wide((P, n)), np.empty((P, n), F32), np.empty((P, n), U32)

    def exp():
        widen(xb, f)
        np.add(f, bias, out=t)
        np.exp(t, out=t)
        np.add.reduce(t, axis=1, keepdims=True, out=tot)
        narrow(t, want, tmp)

    out.append(
        Line(
            f"exp + sum, bf16 [128,{n}]", 5.0, "act", "ACTIVATION_TABLE_LOAD",
            f"ACTIVATE exp accumulator_cmd=ZERO_ACCUMULATE src=bf16@sbuf[p0][1][{n}] ch=128 scale=1.0 "
            f"bias=fp32@ptr[{S}] dst=bf16@sbuf[p0+{D}][1][{n}]",
            [("x", A, xb), ("b", S, bias)], [("y", D, want), ("s", S + 64, tot)], exp, BF,
            after=f"ACTIVATION_READ_ACCUMULATOR ch=128 dst=fp32@sbuf[p0+{S + 64}][1][1]",
        )
    )

    def simple(name, goal, body, loads, like, peer, tol, count=1, engine="dve"):
        out.append(Line(name, goal, engine, "", body, loads, [("y", D, like)], peer, tol, count=count))

    out.append(cast_line(f"cast fp32 to bf16 [128,{n}]", 5.0, n))
    tw, tf, tt, tu = np.empty((P, n), U16), wide((P, n)), np.empty((P, n), F32), np.empty((P, n), U32)

    def scalars():
        widen(xb, tf)
        np.multiply(tf, bias, out=tt)
        np.add(tt, F32(0.5), out=tt)
        narrow(tt, tw, tu)

    simple(
        f"tensor_scalar mult, add, bf16 [128,{n}]", 5.0,
        f"TENSOR_SCALAR_ARITH src=bf16@sbuf[p0][1][{n}] ch=128 op0=mult imm0=ptr[{S}] op1=add imm1=0.5 "
        f"dst=bf16@sbuf[p0+{D}][1][{n}]",
        [("x", A, xb), ("b", S, bias)], tw, scalars, 0,
    )
    for op, fold in (("max", np.maximum.reduce), ("add", np.add.reduce)):
        rw, rf = np.empty((P, 1), F32), wide((P, n))

        def reduce(rw=rw, rf=rf, fold=fold):
            fold(widen(xb, rf), axis=1, keepdims=True, out=rw)

        simple(
            f"reduce {op}, bf16 [128,{n}]", 5.0,
            f"TENSOR_REDUCE_ARITH src=bf16@sbuf[p0][1][{n}] ch=128 op={op} op_dim=X dst=fp32@sbuf[p0+{D}][1][1]",
            [("x", A, xb)], rw, reduce, FP,
        )

    # small tiles: a mix of eight instructions, each result where nothing else lies
    m = small
    a, b = normal(P, m), normal(P, m)
    ab, bb = codes(a), codes(b)
    W = 1024
    off = lambda k: D + k * W
    like = [np.empty((P, m), F32 if k % 2 == 0 else U16) for k in range(8)]
    sf = [wide((P, m)) for _ in range(3)]
    st, su = np.empty((P, m), F32), np.empty((P, m), U32)
    view = lambda t, at: f"{t}@sbuf[p0+{at}][1][{m}]"
    code = [
        f"TENSOR_TENSOR_ARITH op=add ch=128 src0={view('fp32', A)} src1={view('fp32', B)} dst={view('fp32', off(0))}",
        f"TENSOR_TENSOR_ARITH op=mult ch=128 src0={view('bf16', A + W)} src1={view('bf16', B + W)} dst={view('bf16', off(1))}",
        f"TENSOR_SCALAR_ARITH src={view('fp32', A)} ch=128 op0=mult imm0=1.5 op1=add imm1=0.5 dst={view('fp32', off(2))}",
        f"TENSOR_SCALAR_ARITH src={view('bf16', A + W)} ch=128 op0=mult imm0=ptr[{S}] dst={view('bf16', off(3))}",
        f"COPY src={view('fp32', A)} ch=128 dst={view('fp32', off(4))}",
        f"CAST src={view('fp32', B)} ch=128 dst={view('bf16', off(5))}",
        f"CAST src={view('bf16', A + W)} ch=128 dst={view('fp32', off(6))}",
        f"TENSOR_TENSOR_ARITH op=max ch=128 src0={view('bf16', A + W)} src1={view('bf16', B + W)} dst={view('bf16', off(7))}",
    ]

    def mixed():
        np.add(a, b, out=like[0])
        np.multiply(widen(ab, sf[0]), widen(bb, sf[1]), out=st)
        narrow(st, like[1], su)
        np.multiply(a, F32(1.5), out=like[2])
        np.add(like[2], F32(0.5), out=like[2])
        np.multiply(widen(ab, sf[0]), bias, out=st)
        narrow(st, like[3], su)
        np.copyto(like[4], a)
        narrow(b, like[5], su)
        widen(ab, like[6])
        np.maximum(widen(ab, sf[0]), widen(bb, sf[1]), out=st)
        narrow(st, like[7], su)

    like[6] = wide((P, m))
    out.append(
        Line(
            f"element-wise mix of 8, [128,{m}]", None, "dve", "", "\n".join(code),
            [("a", A, a), ("b", B, b), ("c", A + W, ab), ("d", B + W, bb), ("s", S, bias)],
            [(f"y{k}", off(k), like[k]) for k in range(8)], mixed, 0, count=8,
        )
    )
    return out


# ---- kernels ----

KERNELS = {  # operator, dims at full and at tiny size, attributes, leaf, file, dtype
    "softmax": ("softmax", dict(T=512, N=2048), dict(T=130, N=64), (), None, None, "bf16"),
    "rmsnorm": ("rmsnorm", dict(T=512, H=2048), dict(T=130, H=64), (), None, None, "bf16"),
    "rope": ("rope", dict(B=1, S=1024, h=8, d=128), dict(B=1, S=130, h=2, d=16), (), None, None, "bf16"),
    "topk": ("bench_topk", dict(B=128, V=4096), dict(B=128, V=64), ("k=64",), None, "topk.cps", "fp32"),
    "attention": ("attention", dict(B=4, Sq=512, Bkv=4, Skv=512, d=128), dict(B=1, Sq=128, Bkv=1, Skv=128, d=32),
                  (), "attention_flash", None, "bf16"),
    "matmul": ("matmul", dict(M=1024, K=1024, N=1024), dict(M=128, K=128, N=128), (), None, None, "bf16"),
    "small tiles": ("binary", dict(T=1024, N=128, Ty=1024, Ny=128), dict(T=128, N=16, Ty=128, Ny=16), ("f=add",),
                    None, None, "bf16"),
}


def kernel(lib, name, tiny):
    """The kernel with seeded inputs bound, and NumPy's program on the same inputs with arrays of its own."""
    op, full, small, attrs, leaf, include, dtype = KERNELS[name]
    if tiny and op == "bench_topk":
        attrs = ("k=16",)
    k, text, man = compiled(lib, op, small if tiny else full, dtype, attrs, leaf, include)
    mine = {}
    for v in man["vars"]:
        a = normal(*v["shape"])
        mine[v["name"]] = codes(a) if v["dtype"] == "bf16" else a
        k.bind(v["name"], mine[v["name"]] if v["kind"] == "input" else np.zeros_like(mine[v["name"]]), v["kind"] == "input")
    outs = [v["name"] for v in man["outputs"]]
    for n in outs:
        mine[n] = np.zeros_like(mine[n])
    return k, text, mine, outs


# ---- the table ----


class Table:
    def __init__(self):
        self.rows = []

    def add(self, name, goal, r, **more):
        self.rows.append(dict(line=name, goal=goal, **r, **more))
        ours = f"{r['ours_us']:11.2f}" if "ours_us" in r else " " * 11
        other = f"{r['peer_us']:11.2f}" if "peer_us" in r else " " * 11
        spread = f"{r['low']:.2f}..{r['high']:.2f}" if "low" in r else ""
        print(f"{name:44s} {ours} {other} {r['ratio']:9.3f}  {spread:14s} {goal or '':>10}", flush=True)


def measured(lib, l, n):
    """n pairs of seconds, of one call of the line each."""
    l.peer()
    t = timed(l.peer, 1)
    times = max(2, int(0.04 / max(min(t(), t()), 1e-6) * l.goal if l.goal else 2000))
    k, _ = l.kernel(lib, times)
    pairs = rounds(lambda: k.run() / times, timed(l.peer, max(2, times // 4)), n)
    k.close()
    return pairs


def product_with_casts(lib, table, args):
    """The product of operands that come in fp32: two engines, so each part is measured alone."""
    parts = matmul_line("nc_matmul 128x128x512 of bf16", None, "bf16", 512), cast_line("casts of its operands", None, 512 + P)
    name = "nc_matmul 128x128x512 bf16 incl. casts"
    if args.only not in name:
        return
    pairs = [measured(lib, l, args.rounds) for l in parts]
    for l, some in zip(parts, pairs):
        table.add("  " + l.name, None, median_of(some))
    both = [(o + a, p + b) for (o, p), (a, b) in zip(*pairs)]
    table.add(name, ">= 1.8", median_of(both))


def instructions(lib, table, args):
    product_with_casts(lib, table, args)
    for l in [matmul_line("nc_matmul 128x128x512 fp32, two passes", 1.15, "fp32", 512), *lines(512, 128)]:
        if args.only not in l.name:
            continue
        pairs = measured(lib, l, args.rounds)
        r = median_of(pairs)
        if l.count > 1:
            rate = l.count / r["ours_us"] * 1e6
            table.add(l.name, None, r)
            r = dict(ratio=rate / 4e5, low=l.count / (4e5 * max(o for o, _ in pairs)),
                     high=l.count / (4e5 * min(o for o, _ in pairs)), rate=rate)
            table.add(f"  instructions a second / 400,000 ({rate:,.0f}/s)", ">= 1", r)
        else:
            table.add(l.name, f">= {l.goal}", r)


def kernels(lib, table, args):
    ratios = []
    for name in ("softmax", "rmsnorm", "rope", "topk", "attention"):
        if args.only not in "kernel " + name:
            continue
        k, text, mine, _ = kernel(lib, name, False)
        p = peer.Program(text, mine)
        r = median_of(rounds(k.run, timed(p.run, 1), args.rounds))
        ratios.append(r["ratio"])
        table.add(f"kernel {name} ({p.count} instructions)", "", r)
        k.close()
    if len(ratios) == 5:
        table.add("kernels, geometric mean", ">= 6", dict(ratio=float(np.exp(np.mean(np.log(ratios))))))


def native(lib, table, args):
    path = os.path.join(lib.build, "tests", "libbench_onednn.so")
    if args.only not in "matmul 1024^3 oneDNN":
        return
    if not os.path.exists(path):
        print("matmul 1024^3 against oneDNN: libdnnl-dev was not there when this was built")
        return
    c = C.CDLL(path)
    c.onednn_matmul.restype = C.c_void_p
    c.onednn_matmul.argtypes = [C.c_int64] * 3 + [C.c_void_p] * 3
    c.onednn_run.restype, c.onednn_run.argtypes = C.c_double, [C.c_void_p]
    k, _, mine, _ = kernel(lib, "matmul", False)
    x, w = floats(mine["x"]), floats(mine["w"])
    y = np.empty((1024, 1024), F32)
    prod = c.onednn_matmul(1024, 1024, 1024, x.ctypes.data, w.ctypes.data, y.ctypes.data)
    best = lambda: min(c.onednn_run(prod) for _ in range(2))
    pairs = rounds(k.run, best, args.rounds)
    close("oneDNN", k.arrays["y"], y, 2.0**-7)
    r = median_of([(p, o) for o, p in pairs])
    r["ours_us"], r["peer_us"] = r["peer_us"], r["ours_us"]
    table.add("matmul 1024^3: time / oneDNN's f32", "<= 1.25", r)
    k.close()


def checks(lib, table, args):
    ratios = []
    for name in ("matmul", "softmax", "attention", "rmsnorm", "small tiles"):
        if args.only not in "checks " + name:
            continue
        k, *_ = kernel(lib, name, False)
        pairs = rounds(lambda: k.run(True), lambda: k.run(False), args.rounds)
        r = median_of([(p, o) for o, p in pairs])
        r["ours_us"], r["peer_us"] = r["peer_us"], r["ours_us"]
        table.add(f"checks on / off: {name}", "<= 3", r)
        ratios.append(r["ratio"])
        k.close()
    if len(ratios) == 5:
        table.add("checks on / off: median", "<= 3", dict(ratio=statistics.median(ratios)))
        table.add("checks on / off: worst", "<= 3", dict(ratio=max(ratios)))


def timing(lib, table, args):
    if args.only not in "timing only":
        return
    rates = []
    for _ in range(args.rounds):
        r = subprocess.run([os.path.join(lib.build, "tests", "test_sim_speed")], capture_output=True, text=True,
                           cwd=os.path.dirname(os.path.dirname(HERE)))
        rates += [float(w[2]) for w in map(str.split, r.stdout.split("\n")) if w[:2] == ["time", "only:"]]
    table.add(f"timing only, instructions a second / 20 M", ">= 1",
              dict(ratio=statistics.median(rates) / 20, low=min(rates) / 20, high=max(rates) / 20))


def check(lib):
    """Both sides of every comparison at small sizes."""
    n = 0
    for l in [
        *(matmul_line(f"nc_matmul {t}", 1, t, 64) for t in ("fp32", "bf16")),
        *lines(48, 16),
    ]:
        k, got = l.kernel(lib, 2)
        k.run(True)
        l.peer()
        for (name, _, a), (_, _, want) in zip(got, l.stores):
            close(f"{l.name}, {name}", a, want, l.tol)
            n += 1
        k.close()
    for name in KERNELS:
        k, text, mine, outs = kernel(lib, name, True)
        k.run(True)
        peer.Program(text, mine).run()
        for o in outs:
            close(f"{name}, {o}", k.arrays[o], mine[o], 0 if name == "topk" else 2.0**-7)
            n += 1
        k.close()
    print(f"{n} results agree")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("build")
    ap.add_argument("--check", action="store_true")
    ap.add_argument("--json")
    ap.add_argument("--rounds", type=int, default=9)
    ap.add_argument("--only", default="", help="lines whose name holds this text")
    args = ap.parse_args()
    lib = Lib(os.path.abspath(args.build))
    if args.check:
        return check(lib)
    if len(os.sched_getaffinity(0)) != 1:
        ap.error("run it under taskset -c 0: both sides on one core")
    print(f"{'line':44s} {'ours, us':>11} {'peer, us':>11} {'ratio':>9}  {'of rounds':14s} {'wanted':>10}")
    table = Table()
    for part in (instructions, kernels, native, checks, timing):
        part(lib, table, args)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(dict(openblas=BEST, rounds=args.rounds, rows=table.rows), f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    try:
        main()
    except Check as e:
        sys.exit(str(e))

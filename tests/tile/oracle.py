#!/usr/bin/env python3
"""NumPy as the oracle of the tile evaluator: every row of top.def, on random data, with the
numbers computed here from the documented semantics. Results must be equal bit for bit (NaN as
NaN), except where a last unit of a function in binary64 may show. Usage: oracle.py TILE_RUN
"""

import math
import sys

import ml_dtypes
import numpy as np

import oracle_base as base
from oracle_base import NP, P, data, expect, f32, f64, is_int, rng, same, to, v, w


# ---- arithmetic ----


def mod(x, y):
    r = np.fmod(x, y)
    return np.where((r != 0) & ((r < 0) != (y < 0)), r + y, r).astype(f32)


ARITH = {
    "bypass": lambda x, y: x + 0 * y * 0 if False else x,
    "add": np.add,
    "subtract": np.subtract,
    "mult": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "logical_and": lambda x, y: ((x != 0) & (y != 0)).astype(f32),
    "logical_or": lambda x, y: ((x != 0) | (y != 0)).astype(f32),
    "logical_xor": lambda x, y: ((x != 0) ^ (y != 0)).astype(f32),
    "is_eq": lambda x, y: (x == y).astype(f32),
    "is_ne": lambda x, y: (x != y).astype(f32),
    "is_gt": lambda x, y: (x > y).astype(f32),
    "is_ge": lambda x, y: (x >= y).astype(f32),
    "is_le": lambda x, y: (x <= y).astype(f32),
    "is_lt": lambda x, y: (x < y).astype(f32),
    "abs_diff": lambda x, y: np.abs(x - y),
    "abs_value": lambda x, y: np.abs(x),
}
POOL_ARITH = {
    "divide": np.divide,
    "mod": mod,
    "pow": lambda x, y: np.power(x.astype(f64), y.astype(f64)).astype(f32),
    "rsqrt": lambda x, y: (1 / np.sqrt(x.astype(f64))).astype(f32),
}
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": lambda x, y: np.invert(x),
}


def shifts(dt):
    bits = np.iinfo(NP[dt]).bits
    u = np.dtype(f"u{bits // 8}")
    return {
        "logical_shift_left": lambda x, y: (x.view(u) << y.view(u)).view(x.dtype),
        "logical_shift_right": lambda x, y: (x.view(u) >> y.view(u)).view(x.dtype),
        "arith_shift_right": lambda x, y: (
            x.view(np.dtype(f"i{bits // 8}")) >> y.view(np.dtype(f"i{bits // 8}"))
        ).view(x.dtype),
    }


def tensor_tensor():
    for op, fn in {**ARITH, **POOL_ARITH}.items():
        for da, db, do in (
            ("fp32", "fp32", "fp32"),
            ("bf16", "fp32", "bf16"),
            ("i32", "u8", "fp32"),
            ("fp16", "i16", "i8"),
        ):
            lo = 0.1 if op in ("pow", "rsqrt") else -3
            a, b = data(da, 32, 24, lo=lo, special=lo < 0 and op not in ("mod",)), data(
                db, 32, 24
            )
            if op in ("pow", "rsqrt"):
                a = np.abs(a.astype(f32)).astype(NP[da]) if not is_int(da) else a
                if is_int(da):
                    continue
            if op == "pow":
                b = np.clip(b.astype(f32), -2, 2).astype(NP[db])
            p = P()
            x, y, o = p.put(da, a), p.put(db, b), p.tile(do, 32, 24)
            on = " on pool" if op in POOL_ARITH else ""
            p.op(
                f"tensor_tensor {v(o, 32, 24)} <- "
                f"{v(x, 32, 24)}, {v(y, 32, 24)} {{op0={op}}}{on}"
            )
            p.get(o, do, 32, 24)
            expect(
                f"tensor_tensor {op} {da} {db} {do}",
                p,
                [to(do, fn(a.astype(f32), b.astype(f32)))],
                ulp=1 if op in ("pow",) else 0,
            )
    for dt in ("u8", "i16", "i32", "u32"):
        a, b = data(dt, 16, 9), data(dt, 16, 9)
        for op, fn in {**BITS, **shifts(dt)}.items():
            c = b
            if "shift" in op:
                c = (np.abs(b.astype(np.int64)) % np.iinfo(NP[dt]).bits).astype(NP[dt])
            p = P()
            x, y, o = p.put(dt, a), p.put(dt, c), p.tile(dt, 16, 9)
            p.op(f"tensor_tensor {v(o, 16, 9)} <- {v(x, 16, 9)}, {v(y, 16, 9)} {{op0={op}}}")
            p.get(o, dt, 16, 9)
            expect(f"tensor_tensor {op} {dt}", p, [fn(a, c)])
    # True integer arithmetic on POOL; through binary32 on DVE.
    for dt in ("i32", "u32"):
        a, b = data(dt, 16, 9), data(dt, 16, 9)
        for op, fn in (("add", np.add), ("subtract", np.subtract), ("mult", np.multiply)):
            for on in ("pool", "dve"):
                p = P()
                x, y, o = p.put(dt, a), p.put(dt, b), p.tile(dt, 16, 9)
                p.op(
                    f"tensor_tensor {v(o, 16, 9)} <- "
                    f"{v(x, 16, 9)}, {v(y, 16, 9)} {{op0={op}}} on {on}"
                )
                p.get(o, dt, 16, 9)
                expect(
                    f"tensor_tensor {op} {dt} on {on}",
                    p,
                    [fn(a, b) if on == "pool" else to(dt, fn(a.astype(f32), b.astype(f32)))],
                )
    a, b = data("i32", 16, 9), data("i32", 16, 9)
    for op, fn in (
        ("add_int", np.add),
        ("sub_int", np.subtract),
        ("mult_int", np.multiply),
        ("max_int", np.maximum),
        ("min_int", np.minimum),
        ("gt_int", lambda x, y: (x > y).astype(np.int32)),
        ("eq_int", lambda x, y: (x == y).astype(np.int32)),
        ("abs_value_int", lambda x, y: np.abs(x)),
    ):
        p = P()
        x, y, o = p.put("i32", a), p.put("i32", b), p.tile("i32", 16, 9)
        p.op(
            f"tensor_tensor {v(o, 16, 9)} <- {v(x, 16, 9)}, {v(y, 16, 9)} {{op0={op}}} on pool"
        )
        p.get(o, "i32", 16, 9)
        expect(f"tensor_tensor {op}", p, [fn(a, b)])


def tensor_scalar():
    for da, do in (("fp32", "fp32"), ("bf16", "bf16"), ("u8", "fp32"), ("fp32", "fp8e4m3")):
        for op0, op1, rev in (
            ("mult", "add", 0),
            ("subtract", "max", 1),
            ("add", "subtract", 2),
            ("is_gt", "mult", 3),
            ("mult", None, 0),
            ("abs_value", "min", 0),
        ):
            a, s, t = (
                data(da, 64, 20, lo=-90, hi=90, special=not is_int(da)),
                data("fp32", 64, 1),
                f32(-0.75),
            )
            p = P()
            x, c, o = p.put(da, a), p.put("fp32", s), p.tile(do, 64, 20)
            second = "_" if op1 is None else "-0.75"
            at = (
                f"op0={op0}"
                + (f", op1={op1}" if op1 else "")
                + (f", reverse={rev}" if rev else "")
            )
            p.op(
                f"tensor_scalar {v(o, 64, 20)} <- "
                f"{v(x, 64, 20)}, {v(c, 64, 1)}, {second} {{{at}}}"
            )
            p.get(o, do, 64, 20)
            r = a.astype(f32)
            r = ARITH[op0](s, r) if rev & 1 else ARITH[op0](r, np.broadcast_to(s, r.shape))
            if op1:
                r = ARITH[op1](t, r) if rev & 2 else ARITH[op1](r, t)
            expect(
                f"tensor_scalar {op0} {op1} {rev} {da} {do}",
                p,
                [to(do, np.broadcast_to(r, (64, 20)))],
            )
    a = data("u32", 32, 7)
    p = P()
    x, o = p.put("u32", a), p.tile("u32", 32, 7)
    p.op(
        f"tensor_scalar {v(o, 32, 7)} <- {v(x, 32, 7)}, 255, 4 "
        "{op0=bitwise_and, op1=logical_shift_left}"
    )
    p.get(o, "u32", 32, 7)
    expect("tensor_scalar bits", p, [(a & 255) << 4])
    s = (data("u8", 32, 1) % 8).astype(np.uint8)
    a = data("u8", 32, 7)
    p = P()
    x, c, o = p.put("u8", a), p.put("u8", s), p.tile("u8", 32, 7)
    p.op(
        f"tensor_scalar {v(o, 32, 7)} <- "
        f"{v(x, 32, 7)}, {v(c, 32, 1)}, _ {{op0=logical_shift_right}}"
    )
    p.get(o, "u8", 32, 7)
    expect("tensor_scalar bits, column", p, [a >> s])


def three_operands():
    a, b, s = data("bf16", 96, 33), data("fp32", 96, 33), data("fp32", 96, 1)
    for op0, op1, rev in (("mult", "add", 0), ("subtract", "subtract", 3), ("max", "mult", 1)):
        p = P()
        x, c, y, o = (
            p.put("bf16", a),
            p.put("fp32", s),
            p.put("fp32", b),
            p.tile("bf16", 96, 33),
        )
        p.op(
            f"scalar_tensor_tensor {v(o, 96, 33)} <- "
            f"{v(x, 96, 33)}, {v(c, 96, 1)}, {v(y, 96, 33)} "
            f"{{op0={op0}, op1={op1}, reverse={rev}}}"
        )
        p.get(o, "bf16", 96, 33)
        r = a.astype(f32)
        r = ARITH[op0](s, r) if rev & 1 else ARITH[op0](r, s)
        r = ARITH[op1](b, r) if rev & 2 else ARITH[op1](r, b)
        expect(f"stt {op0} {op1} {rev}", p, [to("bf16", r)])
    for init in ("0.5", None):
        p = P()
        x, y, c, o = (
            p.put("bf16", a),
            p.put("fp32", b),
            p.put("fp32", s),
            p.tile("fp32", 96, 33),
        )
        p.op(
            f"tensor_tensor_scan {v(o, 96, 33)} <- {v(x, 96, 33)}, {v(y, 96, 33)}, "
            f"{init or v(c, 96, 1)} {{op0=mult, op1=add}}"
        )
        p.get(o, "fp32", 96, 33)
        r, out = np.full(96, 0.5, f32) if init else s[:, 0], []
        for i in range(33):
            r = (a[:, i].astype(f32) * r).astype(f32) + b[:, i]
            out.append(r)
        expect(f"scan {init}", p, [np.stack(out, 1)])


def running(fn, a, start):
    r = np.full(a.shape[0], start, f32)
    for i in range(a.shape[1]):
        r = fn(r, a[:, i]).astype(f32)
    return r[:, None]


IDENT = {
    "add": 0,
    "mult": 1,
    "max": -np.inf,
    "min": np.inf,
    "subtract": 0,
    "logical_and": 1,
    "logical_or": 0,
    "logical_xor": 0,
}


def reductions():
    for op in IDENT:
        for do, neg in (("fp32", 0), ("bf16", 1)):
            a = data("bf16", 64, 4 * 5 * 3)
            p = P()
            x, o = p.put("bf16", a), p.tile(do, 64, 4)
            p.op(
                f"tensor_reduce {v(o, 64, 4)} <- {x}[p0:64, 0, 15*4, 3*5, 1*3] "
                f"{{op0={op}, axes=2{', negate' if neg else ''}}}"
            )
            p.get(o, do, 64, 4)
            parts = [
                running(ARITH[op], a.astype(f32)[:, 15 * i : 15 * i + 15], IDENT[op])
                for i in range(4)
            ]
            r = np.concatenate(parts, 1)
            expect(f"tensor_reduce {op} {do}", p, [to(do, -r if neg else r)])
    a = data("u16", 32, 20)
    for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        p = P()
        x, o = p.put("u16", a), p.tile("u16", 32, 1)
        p.op(f"tensor_reduce {v(o, 32, 1)} <- {v(x, 32, 20)} {{op0={op}, axes=1}}")
        p.get(o, "u16", 32, 1)
        expect(f"tensor_reduce {op}", p, [BITS[op].reduce(a, 1, keepdims=True)])
    a, b = data("fp32", 32, 17), data("fp32", 32, 9)
    for red in ("add", "mult", "max", "min"):
        p = P()
        x, y, o, q, r, r2 = (
            p.put("fp32", a),
            p.put("fp32", b),
            p.tile("bf16", 32, 17),
            p.tile("bf16", 32, 9),
            p.tile("fp32", 32, 1),
            p.tile("fp32", 32, 1),
        )
        p.op(
            f"tensor_scalar_reduce {v(o, 32, 17)}, {v(r, 32, 1)} <- {v(x, 32, 17)}, 2.5 "
            f"{{op0=mult, red={red}, acc=3}}"
        )
        p.op(
            f"tensor_scalar_reduce {v(q, 32, 9)}, {v(r2, 32, 1)} <- {v(y, 32, 9)}, 1.0 "
            f"{{op0=add, red={red}, acc=2}}"
        )
        p.get(o, "bf16", 32, 17)
        p.get(r, "fp32", 32, 1)
        p.get(r2, "fp32", 32, 1)
        s = running(ARITH[red], a * f32(2.5), IDENT[red])
        t = s[:, 0]
        for i in range(9):
            t = ARITH[red](t, b[:, i] + f32(1)).astype(f32)
        expect(f"tensor_scalar_reduce {red}", p, [to("bf16", a * f32(2.5)), s, t[:, None]])
    a = data("bf16", 128, 40)
    for op in ("add", "max", "min", "mult"):
        p = P()
        x, o = p.put("bf16", a), p.tile("fp32", 1, 40)
        p.op(f"tensor_partition_reduce {v(o, 1, 40)} <- {v(x, 128, 40)} {{op0={op}}}")
        p.get(o, "fp32", 1, 40)
        expect(f"partition_reduce {op}", p, [running(ARITH[op], a.astype(f32).T, IDENT[op]).T])
    for n in (1, 2, 7, 100):
        a = data("bf16", 40, n)
        p = P()
        x, o, g = p.put("bf16", a), p.tile("fp32", 40, 6), p.tile("fp32", 40, 2)
        p.op(f"bn_stats {v(o, 40, 6)} <- {v(x, 40, n)}")
        p.op(f"bn_aggr {v(g, 40, 2)} <- {v(o, 40, 6)}")
        p.get(o, "fp32", 40, 6)
        p.get(g, "fp32", 40, 2)
        d = a.astype(f64)
        s = []
        for k in range(2):
            h = d[:, k::2]
            m = h.mean(1) if h.shape[1] else np.zeros(40)
            s += [np.full(40, h.shape[1]), m, ((h - m[:, None]) ** 2).sum(1)]
        s = np.stack(s, 1).astype(f32)
        t = s.astype(f64)
        mean = (t[:, 0] * t[:, 1] + t[:, 3] * t[:, 4]) / n
        var = sum(t[:, k + 2] + t[:, k] * (t[:, k + 1] - mean) ** 2 for k in (0, 3)) / n
        assert np.allclose(mean, d.mean(1)) and np.allclose(var, d.var(1))
        expect(f"bn {n}", p, [s, np.stack([mean, var], 1).astype(f32)], ulp=1)


def tops():
    a = rng.integers(0, 12, (32, 30)).astype(ml_dtypes.bfloat16)  # many ties
    p = P()
    x, o, ix, r, pos = (
        p.put("bf16", a),
        p.tile("bf16", 32, 8),
        p.tile("u16", 32, 8),
        p.tile("bf16", 32, 30),
        p.tile("u32", 32, 8),
    )
    p.op(f"max8 {v(o, 32, 8)} <- {v(x, 32, 30)}")
    p.op(f"nc_find_index8 {v(ix, 32, 8)} <- {v(x, 32, 30)}, {v(o, 32, 8)}")
    p.op(
        f"nc_match_replace8 {v(r, 32, 30)}, {v(pos, 32, 8)} <- "
        f"{v(x, 32, 30)}, {v(o, 32, 8)}, -9.0"
    )
    p.get(o, "bf16", 32, 8)
    p.get(ix, "u16", 32, 8)
    p.get(r, "bf16", 32, 30)
    p.get(pos, "u32", 32, 8)
    top = -np.sort(-a.astype(f32), 1)[:, :8]
    find, rep, back = (
        np.zeros((32, 8), np.uint16),
        a.astype(f32).copy(),
        np.zeros((32, 8), np.uint32),
    )
    for i in range(32):
        row = a[i].astype(f32)
        for k in range(8):
            hits = np.flatnonzero(row == top[i, k])
            find[i, k] = hits[(top[i, :k] == top[i, k]).sum()]
        for k in reversed(range(8)):
            hits = np.flatnonzero((row == top[i, k]) & (rep[i] != -9))
            back[i, k] = hits[0]
            rep[i, hits[0]] = -9
    expect("top 8", p, [to("bf16", top), find, to("bf16", rep), back])
    # The example of the API documentation, and values that are absent.
    d = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]], f32)
    vals = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], f32)
    p = P()
    x, y, r, pos, ix = (
        p.put("fp32", d),
        p.put("fp32", vals),
        p.tile("fp32", 1, 11),
        p.tile("u32", 1, 8),
        p.tile("u32", 1, 8),
    )
    p.op(f"nc_match_replace8 {v(r, 1, 11)}, {v(pos, 1, 8)} <- {v(x, 1, 11)}, {v(y, 1, 8)}, 0.0")
    p.op(f"nc_find_index8 {v(ix, 1, 8)} <- {v(r, 1, 11)}, {v(y, 1, 8)}")
    p.get(r, "fp32", 1, 11)
    p.get(pos, "u32", 1, 8)
    p.get(ix, "u32", 1, 8)
    expect(
        "match_replace8 example",
        p,
        [
            np.array([[1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0]], f32),
            np.array([[2, 10, 9, 8, 7, 6, 5, 4]], np.uint32),
            np.full((1, 8), 2**32 - 1, np.uint32),
        ],
    )


# ---- activation ----

erf = np.vectorize(math.erf, otypes=[float])
sig = lambda x: 1 / (1 + np.exp(-x))
cdf = lambda x: 0.5 * (1 + erf(x / np.sqrt(2)))
soft = lambda x: np.logaddexp(0, x)
FUNCS = {
    "identity": lambda x: x,
    "copy": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sig,
    "tanh": np.tanh,
    "exp": np.exp,
    "softplus": soft,
    "erf": erf,
    "erf_dx": lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x),
    "gelu": lambda x: x * cdf(x),
    "mish": lambda x: x * np.tanh(soft(x)),
    "gelu_apprx_tanh": lambda x: 0.5
    * x
    * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu_apprx_sigmoid": lambda x: x * sig(1.702 * x),
    "square": lambda x: x * x,
    "sign": np.sign,
    "gelu_dx": lambda x: cdf(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi),
    "abs": np.abs,
    "abs_reciprocal_sqrt": lambda x: 1 / np.sqrt(np.abs(x)),
    "is_finite": lambda x: np.isfinite(x) * 1.0,
    "silu": lambda x: x * sig(x),
    "silu_dx": lambda x: sig(x) * (1 + x * (1 - sig(x))),
    "gelu_apprx_sigmoid_dx": lambda x: sig(1.702 * x) * (1 + 1.702 * x * (1 - sig(1.702 * x))),
    "memset_zero": lambda x: 0 * x,
    "lrelu": lambda x: np.where(x < 0, 0.01 * x, x),
    "prelu": lambda x: np.where(x < 0, 0 * x, x),
    "sin": lambda x: np.where(
        np.abs(x) <= np.pi,
        np.sin(x),
        -(x - np.sign(x) * np.pi) + (x - np.sign(x) * np.pi) ** 3 / 6,
    ),
    "arctan": lambda x: np.where(np.abs(x) <= np.pi / 2, np.arctan(x), np.nan),
    "reciprocal": lambda x: 1 / x,
}
POSITIVE = {"log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x)}


def activation():
    for fn, f in {**FUNCS, **POSITIVE}.items():
        a = data("fp32", 32, 50, lo=0.01 if fn in POSITIVE else -6, hi=6)
        p = P()
        x, o = p.put("fp32", a), p.tile("fp32", 32, 50)
        p.op(f"activation {v(o, 32, 50)} <- {v(x, 32, 50)}, _, _ {{func={fn}}}")
        p.get(o, "fp32", 32, 50)
        expect(
            f"activation {fn}",
            p,
            [f(a.astype(f64)).astype(f32)],
            ulp=0 if fn in ("copy", "identity", "relu", "sign", "abs", "square") else 16,
        )
    a, s, b = data("bf16", 64, 30), data("fp32", 64, 1), data("bf16", 64, 1)
    p = P()
    x, c, y, o, r = (
        p.put("bf16", a),
        p.put("fp32", s),
        p.put("bf16", b),
        p.tile("bf16", 64, 30),
        p.tile("fp32", 64, 1),
    )
    p.op(
        f"activation {v(o, 64, 30)}, {v(r, 64, 1)} <- "
        f"{v(x, 64, 30)}, {v(c, 64, 1)}, {v(y, 64, 1)} "
        "{func=square, acc=3}"
    )
    p.get(o, "bf16", 64, 30)
    p.get(r, "fp32", 64, 1)
    t = (a.astype(f32) * s).astype(f32) + b.astype(f32)
    t = t * t
    expect("activation with sum", p, [to("bf16", t), running(np.add, t, 0)])
    # The sum goes on over two instructions.
    p = P()
    x, o, r = p.put("bf16", a), p.tile("fp32", 64, 30), p.tile("fp32", 64, 1)
    half = lambda t, c: f"{t}[p0:64, {c}, 1*15]"
    p.op(f"activation {half(o, 0)} <- {half(x, 0)}, 2.0, 0.5 {{func=relu, acc=3}}")
    p.op(
        f"activation {half(o, 15)}, {v(r, 64, 1)} <- "
        f"{half(x, 15)}, 2.0, 0.5 {{func=relu, acc=2}}"
    )
    p.get(r, "fp32", 64, 1)
    expect(
        "activation sum in two",
        p,
        [running(np.add, np.maximum(a.astype(f32) * 2 + f32(0.5), 0), 0)],
    )
    i = data("i32", 16, 8)
    for target, want in (("trn2", i), ("trn1", to("i32", i.astype(f32)))):
        p = P(target)
        x, o = p.put("i32", i), p.tile("i32", 16, 8)
        p.op(f"activation {v(o, 16, 8)} <- {v(x, 16, 8)}, 1.0, 0.0 {{func=copy}}")
        p.get(o, "i32", 16, 8)
        expect(f"activation copy of integers on {target}", p, [want])


# ---- moves ----


def moves():
    types = list(NP)
    types.remove("i64")
    for a in types:
        for b in types:
            d = data(a, 16, 12, lo=-300, hi=300, special=not is_int(a))
            p = P()
            x, o = p.put(a, d), p.tile(b, 16, 12)
            p.op(f"tensor_copy {v(o, 16, 12)} <- {v(x, 16, 12)}")
            p.get(o, b, 16, 12)
            expect(f"copy {a} {b}", p, [d if a == b else to(b, d.astype(f32))])
            p = P()
            h, q = p.hbm(a, (16, 12), "in", d), p.hbm(b, (12, 16), "out")
            p.op(f"dma_copy {w(q, 12, 16)} <- {w(h, 16, 12)}")
            expect(f"dma {a} {b}", p, [d if a == b else to(b, d.astype(f32))])
    for dt, imm, val in (
        ("fp32", "1.5", 1.5),
        ("bf16", "nan", np.nan),
        ("i32", "-7", -7),
        ("u8", "200", 200),
        ("i16", "2.5", 2),
        ("fp8e4m3", "300.0", np.inf),
    ):
        p = P()
        o = p.tile(dt, 32, 6)
        p.op(f"memset {v(o, 32, 6)} <- {imm}")
        p.get(o, dt, 32, 6)
        expect(f"memset {dt}", p, [np.full((32, 6), val).astype(NP[dt])])
    a = data("fp32", 32, 11, special=True)
    p = P()
    x, o = p.put("fp32", a), p.tile("bf16", 32, 11)
    p.op(f"reciprocal {v(o, 32, 11)} <- {v(x, 32, 11)}")
    p.get(o, "bf16", 32, 11)
    expect("reciprocal", p, [to("bf16", f32(1) / a)])

    # Strided, reversed and moved views: partitions 32..63 to 64..95, columns backwards.
    a = data("bf16", 128, 64)
    p = P()
    x, o = p.put("bf16", a), p.tile("bf16", 128, 64)
    p.op(f"memset {v(o, 128, 64)} <- 0.0")
    p.op(f"tensor_copy {o}[p64:32, 3, 8*5, 2*3] <- {x}[p32:32, 60, -12*5, -4*3]")
    p.get(o, "bf16", 128, 64)
    r = np.zeros((128, 64), ml_dtypes.bfloat16)
    for i in range(5):
        for j in range(3):
            r[64:96, 3 + 8 * i + 2 * j] = a[32:64, 60 - 12 * i - 4 * j]
    expect("views", p, [r])
    # In place, other partitions: all lanes at once.
    p = P()
    x = p.put("bf16", a)
    p.op(f"tensor_copy {x}[p32:64, 0, 1*64] <- {x}[p0:64, 0, 1*64] on dve")
    p.get(x, "bf16", 128, 64)
    expect_overlap = a.copy()
    expect_overlap[32:96] = a[0:64]
    p.target = "trn2"
    # 64 partitions may start at 0 or 64 only: use 0..31 to 32..63 twice instead.
    p.inst[1] = f"tensor_copy {x}[p32:32, 0, 1*64] <- {x}[p0:32, 0, 1*64] on dve"
    r = a.copy()
    r[32:64] = a[0:32]
    expect("in place, other lanes", p, [r])
    # Bits of another type.
    a = data("fp32", 16, 4)
    p = P()
    x, o = p.put("fp32", a), p.tile("u16", 16, 8)
    p.op(f"tensor_copy {v(o, 16, 8)} <- {x} as u16[p0:16, 0, 1*8]")
    p.get(o, "u16", 16, 8)
    expect("reinterpreted", p, [a.view(np.uint16)])
    mask = [(i * 7 + 3) % 32 if i % 5 else 255 for i in range(32)]
    a, b = data("fp32", 64, 6), data("fp32", 64, 6)
    p = P()
    x, o = p.put("fp32", a), p.put("fp32", b)
    p.op(f"nc_stream_shuffle {v(o, 64, 6)} <- {v(x, 64, 6)} {{mask={mask}}}")
    p.get(o, "fp32", 64, 6)
    r = b.copy()
    for q in range(2):
        for i in range(32):
            if mask[i] != 255:
                r[32 * q + i] = a[32 * q + mask[i]]
    expect("shuffle", p, [r])
    for rows, cols, dt in ((64, 96, "bf16"), (32, 32, "fp32"), (96, 32, "u8")):
        a = data(dt, rows, cols)
        p = P()
        x, o = p.put(dt, a), p.tile(dt, cols, rows)
        p.op(f"nc_transpose {v(o, cols, rows)} <- {v(x, rows, cols)} on dve")
        p.get(o, dt, cols, rows)
        expect(f"transpose on DVE {dt}", p, [a.T])


def masks():
    a, b = data("bf16", 64, 21), data("bf16", 64, 21)
    for pt in ("u8", "i32", "u16"):
        m = (data(pt, 64, 21) % 3).astype(NP[pt])
        for neg in ("", ", negate"):
            p = P()
            x, y, q = p.put("bf16", a), p.put("bf16", b), p.put(pt, m)
            p.op(
                f"tensor_copy_predicated {v(y, 64, 21)} <- {v(q, 64, 21)}, {v(x, 64, 21)} "
                + ("{negate}" if neg else "")
            )
            p.get(y, "bf16", 64, 21)
            expect(f"copy_predicated {pt}{neg}", p, [np.where((m != 0) != bool(neg), a, b)])
    m, f = (data("u8", 64, 21) % 2).astype(np.uint8), data("fp32", 64, 1)
    p = P()
    x, q, c, o, r = (
        p.put("bf16", a),
        p.put("u8", m),
        p.put("fp32", f),
        p.tile("bf16", 64, 21),
        p.tile("fp32", 64, 1),
    )
    p.op(
        f"select_reduce {v(o, 64, 21)}, {v(r, 64, 1)} <- "
        f"{v(q, 64, 21)}, {v(x, 64, 21)}, {v(c, 64, 1)}"
    )
    p.get(o, "bf16", 64, 21)
    p.get(r, "fp32", 64, 1)
    s = np.where(m != 0, a.astype(f32), f)
    expect("select_reduce", p, [to("bf16", s), s.max(1, keepdims=True)])
    lo = rng.integers(0, 10, (64, 1)).astype(f32)
    p = P()
    x, c, o, r = (
        p.put("bf16", a),
        p.put("fp32", lo),
        p.tile("fp32", 64, 21),
        p.tile("fp32", 64, 1),
    )
    p.op(
        f"range_select {v(o, 64, 21)}, {v(r, 64, 1)} <- {v(x, 64, 21)}, {v(c, 64, 1)}, 17.0 "
        "{op0=is_ge, op1=is_lt, base=2}"
    )
    p.get(o, "fp32", 64, 21)
    p.get(r, "fp32", 64, 1)
    at = np.arange(21) + 2
    s = np.where((at >= lo) & (at < 17), a.astype(f32), -np.finfo(f32).max)
    expect("range_select", p, [s, s.max(1, keepdims=True)])
    for do in ("i32", "fp32", "bf16", "u8"):
        p = P()
        o = p.tile(do, 96, 15)
        p.op(f"iota {o}[p0:96, 0, 3*5, 1*3] {{base=-7, channel=5, pattern=[-2, 11]}}")
        p.get(o, do, 96, 15)
        c = (
            -7
            + 5 * np.arange(96)[:, None, None]
            - 2 * np.arange(5)[:, None]
            + 11 * np.arange(3)
        ).reshape(96, 15)
        expect(f"iota {do}", p, [c.astype(np.int32) if do == "i32" else to(do, c)])
    for op, fn in (("is_ge", np.greater_equal), ("is_eq", np.equal), ("is_lt", np.less)):
        p = P()
        x, o = p.put("bf16", data("bf16", 64, 64)), p.tile("bf16", 64, 64)
        src = p.args[0][2]
        p.op(
            f"affine_select {v(o, 64, 64)} <- {v(x, 64, 64)}, -1e30 "
            f"{{op0={op}, base=1, channel=1, pattern=[-1]}}"
        )
        p.get(o, "bf16", 64, 64)
        c = 1 + np.arange(64)[:, None] - np.arange(64)
        expect(f"affine_select {op}", p, [np.where(fn(c, 0), src, to("bf16", -1e30))])


# ---- PE ----


def product(wt, x, exact):
    acc = np.zeros((wt.shape[1], x.shape[1]), f32)
    for k in range(wt.shape[0]):
        if exact:
            acc = (acc.astype(f64) + wt[k][:, None].astype(f64) * x[k].astype(f64)).astype(f32)
        else:
            acc = acc + wt[k][:, None] * x[k]
    return acc


def add_product(psum, wt, x, exact):
    """One nc_matmul onto psum (None: start). fp32 weights take two passes, each added: what is
    below the upper 12 bits of their significands, then those."""
    high = (wt.view(np.uint32) & 0xFFFFF000).view(f32) if exact else wt
    for part in ([wt - high, high] if exact else [wt]):
        r = product(part, x, exact)
        psum = r if psum is None else psum + r
    return psum


def pe():
    for dt, K, M, N in (
        ("bf16", 128, 128, 512),
        ("bf16", 96, 33, 17),
        ("fp32", 64, 40, 30),
        ("fp16", 1, 1, 1),
        ("fp8e4m3", 128, 7, 100),
        ("fp8e5m2", 32, 64, 8),
    ):
        a, b, c = data(dt, K, M), data(dt, K, N), data(dt, K, N)
        p = P()
        x, y, z, ps, o = (
            p.put(dt, a),
            p.put(dt, b),
            p.put(dt, c),
            p.tile("fp32", M, N, "psum"),
            p.tile("fp32", M, N),
        )
        p.op(f"nc_matmul {v(ps, M, N)} <- {v(x, K, M)}, {v(y, K, N)} {{start}}")
        p.op(f"nc_matmul {v(ps, M, N)} <- {v(x, K, M)}, {v(z, K, N)} {{stop}}")
        p.op(f"tensor_copy {v(o, M, N)} <- {v(ps, M, N)}")
        p.get(o, "fp32", M, N)
        q = [t.astype(f32) for t in (a, b, c)]
        ex = dt == "fp32"
        expect(
            f"matmul {dt} {K} {M} {N}",
            p,
            [add_product(add_product(None, q[0], q[1], ex), q[0], q[2], ex)],
        )
    # Double rows: [partition, 2, free].
    a, b = data("fp8e4m3", 128, 2 * 48), data("fp8e4m3", 128, 2 * 64)
    p = P()
    x, y, ps, o = (
        p.put("fp8e4m3", a),
        p.put("fp8e4m3", b),
        p.tile("fp32", 48, 64, "psum"),
        p.tile("fp32", 48, 64),
    )
    p.op(
        f"nc_matmul {v(ps, 48, 64)} <- {x}[p0:128, 0, 48*2, 1*48], {y}[p0:128, 0, 64*2, 1*64] "
        "{start, stop, perf=1}"
    )
    p.op(f"tensor_copy {v(o, 48, 64)} <- {v(ps, 48, 64)}")
    p.get(o, "fp32", 48, 64)
    expect(
        "matmul double row",
        p,
        [product(a.astype(f32).reshape(256, 48), b.astype(f32).reshape(256, 64), False)],
    )
    # trn3: bf16 in PSUM, rounded at every write.
    a, b, c = data("bf16", 32, 16), data("bf16", 32, 24), data("bf16", 32, 24)
    p = P("trn3")
    x, y, z, ps, o = (
        p.put("bf16", a),
        p.put("bf16", b),
        p.put("bf16", c),
        p.tile("bf16", 16, 24, "psum"),
        p.tile("bf16", 16, 24),
    )
    p.op(f"nc_matmul {v(ps, 16, 24)} <- {v(x, 32, 16)}, {v(y, 32, 24)} {{start}}")
    p.op(f"nc_matmul {v(ps, 16, 24)} <- {v(x, 32, 16)}, {v(z, 32, 24)} {{stop}}")
    p.op(f"tensor_copy {v(o, 16, 24)} <- {v(ps, 16, 24)}")
    p.get(o, "bf16", 16, 24)
    q = [t.astype(f32) for t in (a, b, c)]
    first = to("bf16", product(q[0], q[1], False)).astype(f32)
    expect("matmul bf16 psum", p, [to("bf16", first + product(q[0], q[2], False))])
    for target, dt in (("trn2", "bf16"), ("trn2", "fp32"), ("trn2", "u16"), ("trn1", "bf16")):
        a = data(dt, 64, 96, special=dt != "u16")
        p = P(target)
        x, ps, o = p.put(dt, a), p.tile(dt, 96, 64, "psum"), p.tile(dt, 96, 64)
        p.op(f"nc_transpose {v(ps, 96, 64)} <- {v(x, 64, 96)} on pe")
        p.op(f"tensor_copy {v(o, 96, 64)} <- {v(ps, 96, 64)}")
        p.get(o, dt, 96, 64)
        r = a.T
        if target == "trn1":  # a product with the identity: infinities spread
            with np.errstate(invalid="ignore"):
                r = to(dt, product(a.astype(f32), np.eye(64, dtype=f32), True))
        expect(f"transpose on PE {target} {dt}", p, [r])
    # With the identity, made on the device; a matmul in transpose mode is the same.
    a = data("bf16", 64, 96, special=True)
    for op, at in (("nc_transpose", ""), ("nc_matmul", " {start, stop, transpose}")):
        p = P()
        x, ident, ps, o = (
            p.put("bf16", a),
            p.tile("bf16", 64, 64),
            p.tile("bf16", 96, 64, "psum"),
            p.tile("bf16", 96, 64),
        )
        p.op(f"memset {v(ident, 64, 64)} <- 0.0")
        p.op(
            f"affine_select {v(ident, 64, 64)} <- {v(ident, 64, 64)}, 1.0 "
            "{op0=is_ne, base=0, channel=1, pattern=[-1]}"
        )
        p.op(f"{op} {v(ps, 96, 64)} <- {v(x, 64, 96)}, {v(ident, 64, 64)}{at}")
        p.op(f"tensor_copy {v(o, 96, 64)} <- {v(ps, 96, 64)}")
        p.get(o, "bf16", 96, 64)
        expect(f"{op} with identity", p, [a.T])


# ---- DMA and control ----


def dma():
    a, b = data("bf16", 40, 24), data("fp32", 40, 24)
    p = P()
    h, o = p.hbm("bf16", (40, 24), "in", a), p.hbm("fp32", (40, 24), "inout", b)
    p.op(f"dma_copy {w(o, 40, 24)} <- {w(h, 40, 24)} {{accumulate}}")
    expect("dma accumulate", p, [b + a.astype(f32)])
    a = data("i64", 6, 5)
    p = P()
    h, o = p.hbm("i64", (6, 5), "in", a), p.hbm("i64", (5, 6), "out")
    p.op(f"dma_copy {o}[0, 1*5, 5*6] <- {h}[0, 1*5, 5*6]")  # row-major axes of both sides
    r = np.zeros((5, 6), np.int64).reshape(-1)
    for i in range(5):
        for j in range(6):
            r[i + 5 * j] = a.reshape(-1)[i + 5 * j]
    expect("dma of 64-bit integers", p, [r.reshape(5, 6)])
    a = data("bf16", 128, 6)
    p = P()
    h, t, o = (
        p.hbm("bf16", (6, 128), "in", a.reshape(6, 128)),
        p.tile("bf16", 128, 6),
        p.hbm("bf16", (128, 6), "out"),
    )
    p.op(f"dma_transpose {v(t, 128, 6)} <- {w(h, 6, 128)}")
    p.op(f"dma_copy {w(o, 128, 6)} <- {v(t, 128, 6)}")
    expect("dma_transpose", p, [a.reshape(6, 128).T])
    a = data("u16", 3, 20)
    p = P()
    h, o = p.hbm("u16", (3, 4, 5), "in", a.reshape(3, 4, 5)), p.hbm("u16", (3, 5, 4), "out")
    p.op(f"dma_transpose {o}[0, 20*3, 4*5, 1*4] <- {h}[0, 20*3, 5*4, 1*5]")
    expect("dma_transpose of three axes", p, [a.reshape(3, 4, 5).transpose(0, 2, 1)])
    # Gather and scatter by index.
    table, ix = data("bf16", 50, 12), rng.integers(0, 50, (16, 1)).astype(np.int32)
    p = P()
    i, h, t = p.put("i32", ix), p.hbm("bf16", (50, 12), "in", table), p.tile("bf16", 16, 8)
    p.op(f"dma_copy {v(t, 16, 8)} <- {h}[2, 12*16, 1*8, index {i}[p0:16, 0]]")
    p.get(t, "bf16", 16, 8)
    expect("gather", p, [table[ix[:, 0], 2:10]])
    ix = rng.permutation(50)[:16].reshape(16, 1).astype(np.int32)
    ix[3], ix[9] = -1, 50
    src = data("bf16", 16, 12)
    p = P()
    i, t, o = p.put("i32", ix), p.put("bf16", src), p.hbm("bf16", (50, 12), "inout", table)
    p.op(f"dma_copy {o}[0, 12*16, 1*12, index {i}[p0:16, 0, 1*1]] <- {v(t, 16, 12)} {{oob=1}}")
    r = table.copy()
    for k in range(16):
        if 0 <= ix[k, 0] < 50:
            r[ix[k, 0]] = src[k]
    expect("scatter", p, [r])


def control():
    a = data("fp32", 8, 40)
    p = P()
    h, o, t, i, j, k = (
        p.hbm("fp32", (8, 40), "in", a),
        p.hbm("fp32", (8, 40), "out"),
        p.tile("fp32", 8, 4),
        p.reg(),
        p.reg(),
        p.reg(),
    )
    p.op(f"register_move {j} <- 40")
    p.op(f"loop {i} <- 0, 10")
    p.op(f"register_alu {k} <- {j}, {i} {{op0=subtract}}")
    p.op(f"dma_copy {v(t, 8, 4)} <- {h}[0, 40*8, 1*4, reg {i}*4]")
    p.op(f"when {k}, 36 {{op0=is_gt}}")
    p.op(f"tensor_scalar {v(t, 8, 4)} <- {v(t, 8, 4)}, {i}, _ {{op0=mult}}")
    p.op("else")
    p.op(f"tensor_scalar {v(t, 8, 4)} <- {v(t, 8, 4)}, -1.0, _ {{op0=mult}}")
    p.op("end")
    p.op(f"dma_copy {o}[0, 40*8, 1*4, reg {i}*4] <- {v(t, 8, 4)}")
    p.op("end")
    r = a.reshape(8, 10, 4).copy()
    for n in range(10):
        r[:, n] = r[:, n] * f32(n) if 40 - n > 36 else -r[:, n]
    expect("loop and when", p, [r.reshape(8, 40)])
    n = np.array([[3, 7]], np.int32)
    p = P()
    h, o, t, i, r0, r1 = (
        p.hbm("i32", (1, 2), "in", n),
        p.hbm("i32", (1, 8), "out"),
        p.tile("i32", 1, 8),
        p.reg(),
        p.reg(),
        p.reg(),
    )
    p.op(f"register_load {r0} <- {h}[0, 1*1]")
    p.op(f"register_load {r1} <- {h}[1, 1*1]")
    p.op(f"memset {v(t, 1, 8)} <- 0")
    p.op(f"loop {i} <- {r0}, {r1}")
    p.op(f"memset {t}[p0:1, 0, 1*1, reg {i}*1] <- 9")
    p.op("end")
    p.op(f"loop {i} <- 5, 5")
    p.op(f"memset {v(t, 1, 8)} <- 1")
    p.op("end")
    p.op("fence")
    p.op(f"dma_copy {w(o, 1, 8)} <- {v(t, 1, 8)}")
    expect("loop of registers", p, [np.array([[0, 0, 0, 9, 9, 9, 9, 0]], np.int32)])


if __name__ == "__main__":
    np.seterr(all="ignore")
    for part in (
        tensor_tensor,
        tensor_scalar,
        three_operands,
        reductions,
        tops,
        activation,
        moves,
        masks,
        pe,
        dma,
        control,
    ):
        part()
    print(f"{base.ran} programs, {base.failed} wrong")
    sys.exit(1 if base.failed or not base.ran else 0)

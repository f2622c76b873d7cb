#!/usr/bin/env python3
"""What the tile oracle stands on: storage types in NumPy, random data, programs as text, running
one through the tool and comparing bit for bit."""

import math
import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

f32, f64 = np.float32, np.float64
NP = {
    "fp32": f32,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "fp8e4m3": ml_dtypes.float8_e4m3,
    "fp8e5m2": ml_dtypes.float8_e5m2,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "i64": np.int64,
}
rng = np.random.default_rng(11)
tool = sys.argv[1] if len(sys.argv) > 1 else None
ran = failed = 0


def is_int(dt):
    return dt[0] in "iu"


def to(dt, a):
    """binary32 to storage: nearest even; integers saturate, NaN is 0."""
    a = np.asarray(a, f32)
    if not is_int(dt):
        with np.errstate(over="ignore", invalid="ignore"):
            return a.astype(NP[dt])
    info = np.iinfo(NP[dt])
    w = np.rint(a.astype(f64))
    w = np.where(np.isnan(w), 0, np.clip(w, float(info.min), float(info.max)))
    return (
        np.array(
            [int(min(max(v, info.min), info.max)) for v in w.reshape(-1).tolist()], dtype=object
        )
        .astype(NP[dt])
        .reshape(a.shape)
    )


def data(dt, *shape, lo=-3, hi=3, special=False):
    if is_int(dt):
        i = np.iinfo(NP[dt])
        return rng.integers(i.min, i.max, shape, endpoint=True, dtype=NP[dt])
    a = rng.uniform(lo, hi, shape).astype(f32)
    if special:
        a.reshape(-1)[:5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    return a.astype(NP[dt])


class P:
    """One program: declarations, instructions, arguments."""

    def __init__(self, target="trn2"):
        self.target, self.decl, self.inst, self.args, self.n = target, [], [], [], 0

    def buf(self, text):
        self.n += 1
        self.decl.append(f"%b.{self.n} = {text}")
        return f"%b.{self.n}"

    def hbm(self, dt, shape, role, value=None):
        b = self.buf(f"hbm {dt}[{','.join(map(str, shape))}] {role}")
        if value is None:
            value = np.zeros(shape, np.uint8).astype(NP[dt])
        self.args.append((role, dt, np.ascontiguousarray(value)))
        return b

    def tile(self, dt, parts, n, space="sbuf"):
        return self.buf(f"{space} {dt}[{parts}, {n}]")

    def reg(self):
        return self.buf("reg i32[]")

    def put(self, dt, a):
        """An input, in SBUF."""
        a = a.reshape(a.shape[0], -1)
        h, t = self.hbm(dt, a.shape, "in", a), self.tile(dt, *a.shape)
        self.op(f"dma_copy {v(t, *a.shape)} <- {w(h, *a.shape)}")
        return t

    def get(self, t, dt, parts, n):
        """An SBUF or PSUM tile, as output."""
        h = self.hbm(dt, (parts, n), "out")
        self.op(f"dma_copy {w(h, parts, n)} <- {v(t, parts, n)}")

    def op(self, text):
        self.inst.append(text)

    def run(self):
        text = (
            f"copse.tile 1\nkernel @oracle on {self.target} core 0 of 1\n"
            + "\n".join(self.decl)
            + "\n"
            + "\n".join(self.inst)
            + "\n"
        )
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "t.cir")
            open(path, "w").write(text)
            open(path + ".in", "wb").write(b"".join(a.tobytes() for _, _, a in self.args))
            r = subprocess.run([tool, path], capture_output=True, text=True)
            if r.returncode:
                return None, r.stderr + "\n" + text
            raw = open(path + ".out", "rb").read()
        out, at = [], 0
        for role, dt, a in self.args:
            if role != "in":
                out.append(np.frombuffer(raw, a.dtype, a.size, at).reshape(a.shape))
            at += a.nbytes
        return out, text


def v(t, parts, n, part=0):
    return f"{t}[p{part}:{parts}, 0, 1*{n}]"


def w(h, rows, cols):
    return f"{h}[0, {cols}*{rows}, 1*{cols}]"


def same(a, b, ulp):
    if a.dtype != b.dtype:
        return False
    if a.dtype.kind in "iu":
        return bool((a == b).all())
    x, y = a.astype(f64), b.astype(f64)
    ok = (x == y) | (np.isnan(x) & np.isnan(y))
    if ulp:
        eps = {"float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}.get(
            a.dtype.name, 2.0**-3
        )
        with np.errstate(invalid="ignore", over="ignore"):
            ok |= np.abs(x - y) <= ulp * eps * np.maximum(np.abs(x), np.abs(y))
    return bool(ok.all())


def expect(name, p, want, ulp=0):
    global ran, failed
    ran += 1
    got, text = p.run()
    ok = (
        got is not None
        and len(got) == len(want)
        and all(same(g, np.asarray(x).reshape(g.shape), ulp) for g, x in zip(got, want))
    )
    if not ok:
        failed += 1
        if failed < 8:
            print(f"{name}:\n{text[:1500]}")
            if got is not None:
                for g, x in zip(got, want):
                    x = np.asarray(x).reshape(g.shape)
                    bad = np.argwhere(~((g == x) | ((g != g) & (x != x))))[:4]
                    print(
                        "  dtype",
                        g.dtype,
                        x.dtype,
                        "differs at",
                        [(tuple(i), g[tuple(i)], x[tuple(i)]) for i in bad],
                    )

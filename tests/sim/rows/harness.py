"""Cases for the row oracle: memory, instructions as assembly text, and the bytes that must come
out, computed by NumPy from what the documents say. cases.c runs them."""
import copy
import subprocess

import ml_dtypes as ml
import numpy as np

P = 128
DTYPES = {
    "fp32": np.float32, "bf16": ml.bfloat16, "fp16": np.float16, "fp8e3m4": ml.float8_e3m4,
    "fp8e4m3": ml.float8_e4m3, "fp8e5m2": ml.float8_e5m2, "i8": np.int8, "u8": np.uint8,
    "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64,
    "u64": np.uint64,
}
INTS = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"}
TARGETS = {"v2": "trn1", "v3": "trn2", "v4": "trn3"}
f32 = np.float32


def cast(x, dtype):
    """fp32 values to a storage type as the engines write them: floats to nearest even, integers
    to nearest even and then saturated, NaN to 0."""
    x = np.asarray(x, np.float32)
    if dtype not in INTS:
        with np.errstate(all="ignore"):
            return x.astype(DTYPES[dtype])
    info = np.iinfo(DTYPES[dtype])
    r = np.rint(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300))
    if dtype in ("i64", "u64"):
        return np.array([int(min(max(v, info.min), info.max)) for v in r.ravel().tolist()],
                        DTYPES[dtype]).reshape(x.shape)
    return np.clip(r, info.min, info.max).astype(DTYPES[dtype])


def wide(x):
    """Storage values as the engines read them."""
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(np.float32)


class Case:
    """One run. Names begin with the instruction row they are for: ROW or ROW/detail."""

    def __init__(self, name, target=None, fails=None, ulp=0):
        self.name, self.target, self.fails, self.ulp = name, target or "trn2", fails, ulp
        self.free = target is None  # of a generation
        self.row = name.split("/")[0]
        self.lines, self.expect, self.shown, self.texts = [], [], [], []

    def put(self, byte, array, part=0):
        """A 2-D array (partitions, elements) into SBUF."""
        assert not self.texts, "memory comes before instructions"
        a = np.ascontiguousarray(array)
        self.lines.append(f"in {part} {a.shape[0]} {byte} {a.tobytes().hex()}")
        return self

    def var(self, name, kind, array, expect=None):
        """An HBM variable; of an output or inout variable the bytes afterwards."""
        a = np.ascontiguousarray(array)
        data = a.tobytes().hex() if kind != "output" else ""
        self.lines.append(f"var {name} {kind} {a.nbytes} {data}")
        if kind in ("output", "inout"):
            self.shown.append((f"'{name}'", np.ascontiguousarray(expect)))
        return self

    def insn(self, engine, text):
        self.lines.append(f"insn {engine} {text}")
        self.texts.append(text)
        return self

    def at(self, engine, text):
        self.lines.append(f"at {engine} {text}")
        self.texts.append(text)
        return self

    def reloc(self, field, var, addend=0):
        self.lines.append(f"reloc {field} {var} {addend}")
        return self

    def seed(self, n):
        self.lines.append(f"seed {n}")
        return self

    def want(self, byte, array, part=0):
        """What the rows of SBUF from `byte` on must hold."""
        a = np.ascontiguousarray(array)
        self.lines.append(f"out {part} {a.shape[0]} {byte} {a.nbytes // a.shape[0]}")
        self.expect.append((f"SBUF p{part}+{byte:#x}", a))
        return self

    def on(self, target):
        """The same on another target."""
        other = copy.copy(self)
        other.target, other.free = target, False
        return other

    def text(self):
        return "\n".join([f"case {self.name} {self.target}"] + self.lines + ["end\n"])


def ordinal(x):
    """fp32 values as integers in their order, for distances in ulps."""
    i = x.view(np.int32).astype(np.int64)
    return np.where(i < 0, -(i & 0x7FFFFFFF), i)


def differences(got, want, ulp):
    g, w = got.ravel(), want.ravel()
    if want.dtype.kind in "iub":
        return np.flatnonzero(g != w)
    size = want.dtype.itemsize
    same = g.view(f"u{size}") == w.view(f"u{size}")
    with np.errstate(all="ignore"):
        a, b = g.astype(np.float32), w.astype(np.float32)
    same |= np.isnan(a) & np.isnan(b)
    if ulp:
        near = np.abs(ordinal(a) - ordinal(b)) <= ulp
        same |= near & np.isfinite(a) & np.isfinite(b)
    return np.flatnonzero(~same)


def check(case, head, rows):
    """A list of complaints."""
    mnemonics = [t.split()[0] for t in case.texts]
    if case.row not in mnemonics:
        return [f"does not run {case.row}"]
    words = head.split(" ", 4)
    if case.fails:
        return [] if words[2] == "fail" and words[3] == case.fails else [f"not {case.fails}: {head}"]
    if words[2] != "ok":
        return [head]
    wants = case.shown + case.expect
    if len(rows) != len(wants) or not wants:
        return [f"{len(rows)} outputs, {len(wants)} expected"]
    out = []
    for line, (where, want) in zip(rows, wants):
        got = np.frombuffer(bytes.fromhex(line), want.dtype)
        bad = differences(got, want, case.ulp)
        n = want.size // want.shape[0]
        for i in bad[:4]:
            out.append(f"{where}[{i // n}][{i % n}]: got {got[i]!r}, want {want.ravel()[i]!r}")
        if len(bad):
            out.append(f"{where}: {len(bad)} of {want.size} elements differ")
    return out


def run(tool, cases):
    """Number of failed cases."""
    text = "".join(c.text() for c in cases)
    done = subprocess.run([tool], input=text.encode(), stdout=subprocess.PIPE)
    lines = done.stdout.decode().splitlines()
    failed, at = 0, 0
    if done.returncode:
        print(f"the tool ended with {done.returncode}")
        failed += 1
    for c in cases:
        if at >= len(lines):
            print(f"{c.name} ({c.target}): no answer")
            failed += 1
            break
        head, at = lines[at], at + 1
        rows = []
        while at < len(lines) and not lines[at].startswith("case "):
            rows.append(lines[at])
            at += 1
        why = check(c, head, rows) if head.startswith(f"case {c.name} ") else [f"answer: {head}"]
        failed += bool(why)
        for w in why:
            print(f"{c.name} ({c.target}): {w}")
    return failed

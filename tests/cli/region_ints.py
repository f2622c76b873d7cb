"""Integers in regions, held against Python's own: sums, products, quotients, remainders, bits, comparisons and casts of
every pair of what lies at the ends, around nought and in between, in all widths, on every target. Every value is compared."""
import struct
from util import *

CODE = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "fp32": "f", "bool": "?"}
DESCR = {"i8": "|i1", "u8": "|u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "fp32": "<f4", "bool": "|b1"}
N = 48  # values of a dtype, so pairs are N by N


def write(name, t, values, shape):
    head = f"{{'descr': '{DESCR[t]}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    with open(f"{TMP}/{name}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}{CODE[t]}", *values))


def read(name, t, count):
    with open(f"{TMP}/{name}.npy", "rb") as f:
        return struct.unpack(f"<{count}{CODE[t]}", f.read()[-struct.calcsize(f"<{count}{CODE[t]}"):])


def ends(t):
    bits, sign = int(t[1:]), t[0] == "i"
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if sign else (0, (1 << bits) - 1)


def wrap(x, t):
    lo, hi = ends(t)
    return (x - lo) % (hi - lo + 1) + lo


def some(t):
    lo, hi = ends(t)
    v = [lo, lo + 1, hi, hi - 1, hi // 2, hi // 2 + 1, hi // 3, lo // 3, lo // 2, 0, 1, 2, 3, 5, 7, 10, 11, 100]
    v += [x for x in (-1, -2, -3, -5, -7, -64, -100) if x >= lo]
    seed = 12345
    while len(v) < N:
        seed = seed * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        v.append(wrap(seed >> 20 + seed % 20, t))
    return v[:N]


def cut(a, b):  # the quotient towards zero
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


PAIRS = [("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b), ("maximum", max), ("minimum", min),
         ("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b), ("div", cut),
         ("mod", lambda a, b: a % b), ("mod {fmod=true}", lambda a, b: a - cut(a, b) * b)]
ORDER = [("lt", lambda a, b: a < b), ("ge", lambda a, b: a >= b), ("eq", lambda a, b: a == b), ("ne", lambda a, b: a != b)]
ONE = [("neg", lambda a: -a), ("abs", abs), ("sign", lambda a: (a > 0) - (a < 0)), ("square", lambda a: a * a),
       ("relu", lambda a: max(a, 0)), ("not", lambda a: ~a)]
NUMBERS = (1, 2, 3, 7, 64, 100, -1, -3, 1000003)


def graph(t, target):
    """One graph of every op on a [N,1] and b [1,N], and what each result must be."""
    v, full = some(t), f"{t}[{N},{N}]"
    rows = [a for a in v for _ in v]
    columns = v * N
    odd = [b | 1 for b in columns]
    text = [f"  input %a: {full}", f"  input %b: {full}", f"  %one = const {t}[] [1]", f"  %d = or %b, %one : {full}"]
    want = {}
    for op, f in PAIRS:
        divides = op[:3] in ("div", "mod")
        name, attr = op.split(" ") if " " in op else (op, "")
        y = f"y{len(want)}"
        text.append(f"  %{y} = {name} %a, %{'d' if divides else 'b'} {attr} : {full}")
        want[y] = (t, op, [wrap(f(p, q), t) for p, q in zip(rows, odd if divides else columns)])
    for op, f in ORDER:
        y = f"y{len(want)}"
        text.append(f"  %{y} = {op} %a, %b : bool[{N},{N}]")
        want[y] = ("bool", op, [f(p, q) for p, q in zip(rows, columns)])
    for op, f in ONE:
        y = f"y{len(want)}"
        text.append(f"  %{y} = {op} %a : {full}")
        want[y] = (t, op, [wrap(f(p), t) for p in rows])
    lo, hi = ends(t)
    for n in NUMBERS:
        if not lo <= n <= hi:
            continue
        text.append(f"  %n{len(want)} = const {t}[] [{n}]")
        k = len(want)
        for op, f in (("div", cut), ("mod", lambda a, b: a % b)):
            y = f"y{len(want)}"
            text.append(f"  %{y} = {op} %a, %n{k} : {full}")
            want[y] = (t, f"{op} by {n}", [wrap(f(p, n), t) for p in rows])
    for to in ("i8", "u8", "i16", "u16", "i32"):
        if to != t:
            y = f"y{len(want)}"
            text.append(f"  %{y} = cast %a {{dtype={to}}} : {to}[{N},{N}]")
            want[y] = (to, f"cast to {to}", [wrap(p, to) for p in rows])
    text += [f'  output "{y}" %{y}' for y in want]
    return "copse.graph 1\nmodule \"ints\"\nfunc @main {\n" + "\n".join(text) + "\n}\n", want, rows, columns


def run(text, want, target, inputs):
    with open(f"{TMP}/ints.cir", "w") as f:
        f.write(text)
    r = copse("run", f"{TMP}/ints.cir", "--on", "sim", "--target", target, f"--output-dir={TMP}",
              *[f"--input={i}={TMP}/{i}.npy" for i in inputs])
    check(r.returncode == 0, f"{target}: {r.stderr.decode()}")
    for y, (t, what, values) in want.items():
        got = read(y, t, len(values))
        wrong = [(i, v, g) for i, (v, g) in enumerate(zip(values, got)) if v != g]
        check(not wrong, f"{what} of {t} on {target}: {len(wrong)} wrong, the first (place, right, got): {wrong[:3]}")


for target in ("trn1", "trn2", "trn3"):
    for t in ("i8", "u8", "i16", "u16", "i32"):
        text, want, rows, columns = graph(t, target)
        write("a", t, rows, (N, N))
        write("b", t, columns, (N, N))
        run(text, want, target, "ab")

# From floats: cut towards zero, held at the ends of the range.
FLOATS = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.999, 127.5, 128.5, -128.5, -129.0, 255.9, 256.0, 32767.9, 40000.25, 65535.5, 70000.0,
          -32768.9, -40000.0, 3e9, -3e9, 1e30, -1e30, float("inf"), float("-inf"), 2147483520.0, -2147483648.0, 16777217.0, 1e-30]
values = struct.unpack(f"<{len(FLOATS)}f", struct.pack(f"<{len(FLOATS)}f", *FLOATS)) * 128
text, want = f"copse.graph 1\nmodule \"cut\"\nfunc @main {{\n  input %a: fp32[128,{len(FLOATS)}]\n  %r = round %a : fp32[128,{len(FLOATS)}]\n", {}
for t in ("i8", "u8", "i16", "u16", "i32"):
    lo, hi = ends(t)
    for source, whole in (("a", lambda x: x), ("r", lambda x: x if abs(x) > 2**53 else round(x))):
        y = f"y{len(want)}"
        text += f"  %{y} = cast %{source} {{dtype={t}}} : {t}[128,{len(FLOATS)}]\n"
        want[y] = (t, f"cast of %{source}", [int(max(lo, min(hi, whole(x)))) for x in values])
text += "".join(f'  output "{y}" %{y}\n' for y in want) + "}\n"
for target in ("trn1", "trn2", "trn3"):
    write("a", "fp32", values, (128, len(FLOATS)))
    run(text, want, target, "a")

# Running sums that wrap, without the element itself too, in rows longer than a tile is wide.
for width in (70, 8192):
    values = [wrap(i * 2654435761 + i // 7, "i32") for i in range(8 * width)]
    text, want = f"copse.graph 1\nmodule \"sums\"\nfunc @main {{\n  input %a: i32[8,{width}]\n", {}
    for y, exclusive in (("y0", False), ("y1", True)):
        text += f"  %{y} = cumsum %a {{axis=1, exclusive={str(exclusive).lower()}, reverse=false}} : i32[8,{width}]\n"
        out = []
        for i in range(8):
            s = 0
            for x in values[i * width:(i + 1) * width]:
                out.append(wrap(s if exclusive else s + x, "i32"))
                s += x
        want[y] = ("i32", f"cumsum, exclusive {exclusive}", out)
    text += '  output "y0" %y0\n  output "y1" %y1\n}\n'
    for target in ("trn1", "trn2", "trn3"):
        write("a", "i32", values, (8, width))
        run(text, want, target, "a")
done()

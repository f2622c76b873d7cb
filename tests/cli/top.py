"""Heads of sorts and positions of extremes on the NeuronCore: which graphs become calls of `topk`, on which axis, both ways
round, and that the result is the reference's to the bit, equal values in the order of their positions included."""
import math, struct
from util import *

ROWS = """
head    [4,100]   axis=1 k=5    descending | head [3,7]     axis=1 k=7 descending | head [2,3,40] axis=1 k=2 descending
head    [6,33]    axis=0 k=4    ascending  | head [2,20000] axis=1 k=9 descending | head [200]    axis=0 k=20 ascending
whole   [5,64]    axis=1 k=64   descending
argmax  [4,100]   axis=1 | argmax [9,5,12] axis=0 | argmax [300,3] axis=1 | argmin [7,41] axis=1 | argmax [40000] axis=0
"""


def graph(kind, shape, axis, k, descending):
    """The text of a graph; its input is cut to eighths, so that values repeat."""
    dims = [int(d) for d in shape[1:-1].split(",")]
    eights = f"""  %big = const fp32[] [8.0]
  %m = mul %a.1, %big : fp32{shape}
  %r = floor %m : fp32{shape}
"""
    head = f'copse.graph 1\nmodule "top"\nfunc @main {{\n  input %a.1: fp32{shape}\n' + eights
    if kind in ("head", "whole"):
        to = dims[:axis] + [k] + dims[axis + 1:]
        cut = f"{{start={[0] * len(dims)}, step={[1] * len(dims)}, stop={to}}}"
        text = f"  %s, %i = sort %r {{axis={axis}, descending={descending}}} : fp32{shape}, i64{shape}\n"
        if kind == "head":
            text += f"  %v = slice %s {cut} : fp32{to}\n  %p = slice %i {cut} : i64{to}\n"
        names = ("%v", "%p") if kind == "head" else ("%s", "%i")
        return head + text.replace("'", "") + f'  output "v" {names[0]}\n  output "p" {names[1]}\n}}\n'
    n, inner = dims[axis], 1
    for d in dims[axis + 1:]:
        inner *= d
    count = n * inner
    for d in dims[:axis]:
        count *= d
    one = dims[:axis] + [1] + dims[axis + 1:]
    out = dims[:axis] + dims[axis + 1:]
    where = ", ".join(str(e // inner % n) for e in range(count))
    place = f"const i64{shape} [{where}]" if count <= 4096 else f"index {{axis={axis}, dtype=i64, shape={shape}}} : i64{shape}"
    best = "reduce_max" if kind == "argmax" else "reduce_min"
    return head + f"""  %t = {best} %r {{axes=[{axis}], keep=true}} : fp32{one}
  %h = eq %r, %t : bool{shape}
  %q = {place}
  %n = const i64[] [{n - 1}]
  %w = select %h, %q, %n : i64{shape}
  %p = reduce_min %w {{axes=[{axis}], keep=false}} : i64{out}
  output "p" %p
}}
"""


for row in ROWS.replace("\n", "|").split("|"):
    word = row.split()
    if not word:
        continue
    pairs = dict(p.split("=") for p in word[2:] if "=" in p)
    text = graph(word[0], word[1], int(pairs["axis"]), int(pairs.get("k", 0)), str("descending" in word).lower())
    path = f"{TMP}/top.cir"
    with open(path, "w") as f:
        f.write(text)
    r = copse("opt", path, "--target", "trn2", "--passes", "narrow,raise,canon")
    check(r.returncode == 0 and b"call @topk" in r.stdout and b" sort " not in r.stdout and b" eq " not in r.stdout,
          f"{row.strip()}: {r.stdout.decode()[-800:]}{r.stderr.decode()}")
    for target in ("trn1", "trn2"):
        r = copse("run", path, "--on", "sim", "--target", target, "--compare", "ref", "--seed", "3")
        check(r.returncode == 0 and b"max abs 0," in r.stdout + r.stderr, f"{row.strip()} on {target}: {r.stdout.decode()}{r.stderr.decode()}")

# A slice from the middle reads a whole sort; other constants are no positions, and the reduction stays.
with open(path, "w") as f:
    f.write(graph("head", "[4,100]", 1, 5, "true").replace("start=[0, 0]", "start=[0, 2]").replace("stop=[4, 5]", "stop=[4, 7]"))
r = copse("run", path, "--on", "sim", "--compare", "ref")
check(r.returncode == 0 and b"max abs 0," in r.stdout + r.stderr, f"from the middle: {r.stderr.decode()}")
OTHER = {
    "positions of other elements": graph("argmax", "[4,10]", 1, 0, "").replace("7, 8, 9]", "7, 9, 8]"),
    "a default inside the row": graph("argmax", "[4,10]", 1, 0, "").replace("i64[] [9]", "i64[] [5]"),
    "the minimum along another axis": graph("argmax", "[4,4]", 1, 0, "").replace("axes=[1], keep=false", "axes=[0], keep=false"),
}
for what, text in OTHER.items():
    with open(path, "w") as f:
        f.write(text)
    r = copse("opt", path, "--target", "trn2", "--passes", "narrow,raise,canon")
    check(r.returncode == 0 and b" eq " in r.stdout and b"topk" not in r.stdout, f"{what}: {r.stdout.decode()}{r.stderr.decode()}")
# Rows that run out of numbers: -inf keeps its places, in one round, in several, in folds and on two cores; a row of NaN gives
# places inside the row.
low, nan = -math.inf, math.nan
for n, k, more in ((64, 9, []), (64, 8, []), (20000, 20, []), (20000, 20, ["--logical-nc-config", 2])):
    with open(path, "w") as f:
        f.write(graph("head", f"[3,{n}]", 1, k, "true"))
    array(f"{TMP}/a.npy", [1, 2, 3] + [low] * (n - 3) + [low] * n + [low, 5] * (n // 2), shape=(3, n))
    for target in ("trn2", "trn3") if more else ("trn1", "trn2"):
        r = copse("run", path, "--on", "sim", "--target", target, "--compare", "ref", "--input", f"a={TMP}/a.npy", *more)
        check(r.returncode == 0 and b"max abs 0," in r.stdout + r.stderr, f"-inf, {k} of {n} on {target}: {r.stdout.decode()}{r.stderr.decode()}")
with open(path, "w") as f:
    f.write(graph("argmax", "[2,16]", 1, 0, ""))
array(f"{TMP}/a.npy", [nan] * 16 + [low] * 16, shape=(2, 16))
r = copse("run", path, "--on", "sim", "--input", f"a={TMP}/a.npy", "--output-dir", f"{TMP}/o")
with open(f"{TMP}/o/p.npy", "rb") as f:
    last = struct.unpack("<2i", f.read()[-8:])
check(r.returncode == 0 and last == (15, 0), f"a row of NaN: {last} {r.stderr.decode()}")
done()

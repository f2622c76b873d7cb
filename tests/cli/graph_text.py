"""A graph written as text, with its large constants beside it, is the graph: read back it gives the
same text, the same data and the same package; damage is told, never swallowed."""
import json, os, random, shutil
from util import *

MODEL = f"{ROOT}/tests/data/small_encoder.onnx"


def opt(src, out, *more):
    r = copse("opt", src, *more, "-o", out)
    check(r.returncode == 0, r.stderr.decode())
    return open(out, "rb").read(), open(out + ".data", "rb").read()


for to in ("graph", "lowered"):
    g, h = f"{TMP}/{to}.cir", f"{TMP}/{to}2.cir"
    first = opt(MODEL, g, *DIMS, "--to", to)
    check(opt(g, h, "--to", "graph") == first, f"{to}: text and data come back byte for byte")
g = f"{TMP}/graph.cir"
check(copse("compile", MODEL, *DIMS, "--emit", "graph", "-o", f"{TMP}/e.cir").returncode == 0, "--emit graph")
check(open(f"{TMP}/e.cir.data", "rb").read() == open(g + ".data", "rb").read(), "compile --emit writes the same data")

cache = ["--cache", f"{TMP}/c"]
for on, src, dims in (("onnx", MODEL, DIMS), ("cir", g, [])):
    r = copse("run", src, *dims, "--on", "host", "--seed", "3", "--output-dir", f"{TMP}/{on}")
    check(r.returncode == 0, r.stderr.decode())
check(tree(f"{TMP}/onnx") == tree(f"{TMP}/cir") and tree(f"{TMP}/cir"), "the text computes what the model computes")
hits = []
for i in range(2):
    r = copse("compile", g, *cache, "-o", f"{TMP}/p{i}", "--report", f"{TMP}/r.json")
    check(r.returncode == 0, r.stderr.decode())
    hits.append(json.load(open(f"{TMP}/r.json"))["cache"])
check(hits[1]["misses"] == 0 and tree(f"{TMP}/p0") == tree(f"{TMP}/p1"), f"a graph text is kept in the cache too: {hits}")

# A lowered text compiles again, to the same leaves, and its calls have mathematics.
def integers(name, values):
    head = "{'descr': '<i8', 'fortran_order': False, 'shape': (1, %d), }" % len(values)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(f"{TMP}/{name}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        f.write(b"".join(v.to_bytes(8, "little") for v in values))
    return f"--input={name}={TMP}/{name}.npy"


given = [integers("input_ids", [7 * k % 50 for k in range(16)]), integers("attention_mask", [int(k < 12) for k in range(16)])]
low = f"{TMP}/lowered.cir"
for src, name, dims in ((MODEL, "of-model", DIMS), (low, "of-lowered", [])):
    r = copse("compile", src, *dims, "-o", f"{TMP}/{name}")
    check(r.returncode == 0 and b"warning" not in r.stderr, f"{name}: {r.stderr.decode()}")
    r = copse("run", f"{TMP}/{name}", "--on", "sim", *given, "--compare", "ref", "--output-dir", f"{TMP}/{name}-out")
    check(r.returncode == 0 and b"within tolerance" in r.stderr, f"{name}: {r.stderr.decode()}")
check(tree(f"{TMP}/of-model-out") == tree(f"{TMP}/of-lowered-out") and tree(f"{TMP}/of-model-out"), "both compute the same bytes")

# Without the data, or with other bytes, there is no graph.
alone = f"{TMP}/alone.cir"
shutil.copy(g, alone)
r = copse("opt", alone, "--to", "graph")
check(r.returncode == 1 and b"E9106" in r.stderr and b"alone.cir.data" in r.stderr, f"no data: {r.stderr}")
r = copse("opt", MODEL, *DIMS, "--to", "graph")
check(r.stdout == open(g, "rb").read(), "standard output has the same text")
good = open(g + ".data", "rb").read()
random.seed(11)
for i in range(40):
    bad = bytearray(good)
    if i % 3 == 0:
        at = random.choice((0, 5, 17, random.randrange(len(bad)), len(bad) - 70))
        bad = bad[:at]
    else:
        at = random.randrange(64) if i % 3 == 1 else random.randrange(len(bad))
        bad[at] ^= 1 << random.randrange(8)
    open(alone + ".data", "wb").write(bad)
    r = copse("opt", alone, "--to", "graph")
    # padding and reserved words are not read: only then may the graph still be there, and right
    fine = r.returncode == 0 and r.stdout == open(g, "rb").read()
    check(fine or (r.returncode == 1 and (b"E9108" in r.stderr or b"E9106" in r.stderr)),
          f"damage at {at}: {r.returncode} {r.stderr}")
    check(not (fine and i % 3 == 0), f"cut at {at} and accepted")
done()

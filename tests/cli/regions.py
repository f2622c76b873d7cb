"""Regions through the command line: an ONNX graph of ops that have no leaf of their own, from the file to the
simulator on every target; the graph's text with its written kernels read back; a chain near its roof; why a
region was formed."""
import json, math, struct
from util import *

WHERE = "tests/onnx/data/where.onnx"

for target in ("trn1", "trn2", "trn3"):
    report = f"{TMP}/{target}.json"
    r = copse("run", WHERE, "--on", "sim", "--target", target, "--compare", "ref", "--report", report)
    check(r.returncode == 0, f"{target}: {r.stderr.decode()}")
    with open(report) as f:
        rep = json.load(f)
    check(rep["pass"] and not any(rep["checks"].values()), f"{target}: {rep['checks']}")

# The text carries the kernel: it lowers to the same binary without the pass, and evaluates.
text = f"{TMP}/where.cir"
check(copse("opt", WHERE, "--target", "trn2", "-o", text).returncode == 0, "opt")
lines = open(text).read().split("\n")
check(sum("call @region_" in x for x in lines) == 1, "one region")
for where in ("ref", "sim"):
    r = copse("run", text, "--on", where, "--compare", "ref")
    check(r.returncode == 0, f"text on {where}: {r.stderr.decode()}")
with open(text) as f:
    damaged = f.read().replace("let v", "let let v", 1)
with open(text, "w") as f:
    f.write(damaged)
r = copse("run", text, "--on", "sim")
check(r.returncode == 1 and b"E2106" in r.stderr, f"a damaged kernel: {r.returncode} {r.stderr.decode()}")

r = copse("explain", WHERE, "--json")
calls = json.loads(r.stdout)
check(len(calls) == 1 and calls[0]["region"] == "A region of 4 ops: gt mul floor select. Formed because the "
      "library has no leaf for: gt floor select.", calls)

# Every op is named, also one whose name is part of another's.
names = f"{TMP}/names.cir"
with open(names, "w") as f:
    f.write("""copse.graph 1
module "names"
func @main {
  input %a.1: fp32[128,40]
  input %b.1: bool[128,40]
  input %c.1: bool[128,40]
  %2 = floor %a.1 : fp32[128,40]
  %3 = or %b.1, %c.1 : bool[128,40]
  %4 = select %3, %2, %a.1 : fp32[128,40]
  %5 = floor %4 : fp32[128,40]
  output "y" %5
}
""")
why = json.loads(copse("explain", names, "--json").stdout)[0]["region"]
check(why.endswith("no leaf for: floor or select."), why)



def by_value(op, values, lines, right):
    """Runs `lines`, which make %y of %x = op(%a), on `values` 256 times over; right(value, result) judges each."""
    n = len(values) * 2
    values = struct.unpack(f"<{n * 128}f", struct.pack(f"<{n * 128}f", *values * 256))
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (128, {n}), }}".ljust(117) + "\n"
    with open(f"{TMP}/part.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{n * 128}f", *values))
    t = f"fp32[128,{n}]"
    with open(f"{TMP}/part.cir", "w") as f:
        f.write(f'copse.graph 1\nmodule "part"\nfunc @main {{\n  input %a: {t}\n  %x = {op} %a : {t}\n{lines(t)}  output "y" %y\n}}\n')
    for target in ("trn1", "trn2", "trn3"):
        r = copse("run", f"{TMP}/part.cir", "--on", "sim", "--target", target, f"--input=a={TMP}/part.npy", f"--output-dir={TMP}")
        check(r.returncode == 0, f"{op} on {target}: {r.stderr.decode()}")
        with open(f"{TMP}/y.npy", "rb") as f:
            got = struct.unpack(f"<{n * 128}f", f.read()[-4 * n * 128:])
        wrong = {x: y for x, y in zip(values, got) if not right(x, y)}
        check(not wrong, f"{op} on {target}: {wrong}")


# What has a fraction up to 2^23, and beyond, where nothing has: the rest is exact, not within a tolerance of what is large.
FRACTIONS = [4194304.5, -4194304.5, 4194305.5, -6000000.5, 8388607.5, -8388607.5, 8388608.0, -8388609.0, 17000000.0,
             -3e9, 2.5, -2.5, 0.5, -0.5, 0.25, -0.75, 0.0, -0.0, 1.0, -7.0]
for op, whole in (("floor", math.floor), ("ceil", math.ceil), ("round", round)):
    by_value(op, FRACTIONS, lambda t: f"  %y = sub %a, %x : {t}\n", lambda x, y: y == x - whole(x))

# Beyond the tables of ScalarE: its ln ends at 2^64 and 2^-64, its reciprocal at 2^42 and 2^-42; 1 / 1e-45 is infinite in fp32.
WIDE = [1e-45, 1e-38, 1e-30, 1e-20, 6e-20, 1e-13, 1e-3, 0.5, 1.0, 2.0, 10.0, 1e10, 1e13, 1.1e18, 1.2e18, 1e20, 1e30, 3e38]
for op, exact in (("log", math.log), ("reciprocal", lambda x: 1 / x)):
    by_value(op, WIDE, lambda t: f"  %q = const fp32[] [0.25]\n  %y = mul %x, %q : {t}\n",
             lambda x, y: abs(y - exact(x) / 4) <= 1e-6 * abs(exact(x) / 4) or (y == math.inf and exact(x) > 2**128))

# Running sums: few long rows (the library's operator, the element taken off), both ways, along another axis, in tiles.
sums = f"{TMP}/sums.cir"
with open(sums, "w") as f:
    f.write("""copse.graph 1
module "sums"
func @main {
  input %a: fp32[2,50000]
  input %b: bf16[130,3000]
  input %c: fp32[70,33,40]
  input %d: fp32[20,20000]
  %e = cumsum %a {axis=1, exclusive=true, reverse=false} : fp32[2,50000]
  %f = cumsum %b {axis=1, exclusive=true, reverse=true} : bf16[130,3000]
  %g = cumsum %c {axis=1, exclusive=false, reverse=true} : fp32[70,33,40]
  %h = cumsum %d {axis=1, exclusive=true, reverse=false} : fp32[20,20000]
  output "e" %e
  output "f" %f
  output "g" %g
  output "h" %h
}
""")
for target in ("trn1", "trn2", "trn3"):
    r = copse("run", sums, "--on", "sim", "--target", target, "--compare", "ref")
    check(r.returncode == 0, f"running sums on {target}: {r.stderr.decode()}")

# What is put around a tensor, by a number and by a value of the graph.
pads = f"{TMP}/pads.cir"
with open(pads, "w") as f:
    f.write("""copse.graph 1
module "pads"
func @main {
  input %a: fp32[3,70,40]
  input %b: bf16[30,33]
  input %v: bf16[]
  %n = const fp32[] [-1.5]
  %c = pad %a, %n {lo=[0, 2, 1], hi=[1, 0, 3]} : fp32[4,72,44]
  %d = pad %b, %v {lo=[0, 7], hi=[5, 0]} : bf16[35,40]
  %e = relu %c : fp32[4,72,44]
  output "c" %c
  output "d" %d
  output "e" %e
}
""")
for target in ("trn1", "trn2", "trn3"):
    r = copse("run", pads, "--on", "sim", "--target", target, "--compare", "ref")
    check(r.returncode == 0, f"padding on {target}: {r.stderr.decode()}")

# Positions: a causal mask of positions that are too many to be folded reads a row of them.
mask = f"{TMP}/mask.cir"
with open(mask, "w") as f:
    f.write("""copse.graph 1
module "mask"
func @main {
  input %a: fp32[1024,1040]
  %i = index {axis=0, dtype=i32, shape=[1024, 1040]} : i32[1024,1040]
  %j = index {axis=1, dtype=i32, shape=[1024, 1040]} : i32[1024,1040]
  %m = le %j, %i : bool[1024,1040]
  %n = const fp32[] [-10000]
  %y = select %m, %a, %n : fp32[1024,1040]
  output "y" %y
}
""")
for target in ("trn1", "trn2", "trn3"):
    report = f"{TMP}/mask.json"
    r = copse("run", mask, "--on", "sim", "--target", target, "--compare", "ref", "--report", report)
    check(r.returncode == 0, f"positions on {target}: {r.stderr.decode()}")
    check(json.load(open(report))["hbm_bytes"] < 1.01 * 8 * 1024 * 1040, f"positions on {target}: bytes")

# One load, one store: a chain of five at 0.8 of its roof or more.
chain = f"{TMP}/chain.cir"
with open(chain, "w") as f:
    f.write("""copse.graph 1
module "chain"
func @main {
  input %a.1: bf16[4096,4096]
  %2 = relu %a.1 : bf16[4096,4096]
  %3 = const bf16[] [0.5]
  %4 = mul %2, %3 : bf16[4096,4096]
  %5 = const bf16[] [0.25]
  %6 = sub %4, %5 : bf16[4096,4096]
  %7 = tanh %6 : bf16[4096,4096]
  %8 = add %7, %a.1 : bf16[4096,4096]
  output "y" %8
}
""")
report = f"{TMP}/chain.json"
r = copse("run", chain, "--on", "sim", "--target", "trn2", "--compare", "ref", "--report", report)
check(r.returncode == 0, f"chain: {r.stderr.decode()}")
rep = json.load(open(report))
fraction = rep["roofline_fraction"]
print(f"five ops on [4096,4096] bf16: {rep['time_ns']} ns, {fraction:.3f} of the roof")
check(fraction >= 0.8, f"{fraction:.3f} of the roof")
# Indices from the end, known only when the model runs.
path = f"{TMP}/rows.cir"
with open(path, "w") as f:
    f.write("""copse.graph 1
module "rows"
func @main {
  input %x.1: fp32[30,8]
  input %i.2: i32[5]
  %3 = gather %x.1, %i.2 {axis=0} : fp32[5,8]
  output "y" %3
}
""")
for ids, right in (([0, -1, 5, -30, 29], True), ([0, 1, 2, -31, 3], False), ([0, 30, 2, 1, 3], False)):
    array(f"{TMP}/ids.npy", ids, "i")
    for target in ("trn1", "trn2"):
        r = copse("run", path, "--on", "sim", "--target", target, "--input", f"i={TMP}/ids.npy", *(["--compare", "ref"] if right else []))
        told = r.returncode == 0 and b"max abs 0," in r.stdout + r.stderr if right else r.returncode == 1 and b"E8302" in r.stderr
        check(told, f"rows {ids} on {target}: {r.returncode} {r.stderr.decode()}")
# A cut beside an axis that is turned round is no plain cut; sums from the end keep small terms behind large ones, and what does
# not depend on an infinity stays finite.
with open(path, "w") as f:
    f.write("""copse.graph 1
module "turned"
func @main {
  input %x.1: fp32[6,80]
  input %z.2: fp32[6,40]
  input %c.3: fp32[2,8]
  %4 = slice %x.1 {start=[5, 8], step=[-1, 1], stop=[-1, 48]} : fp32[6,40]
  %5 = floor %4 : fp32[6,40]
  %6 = add %5, %z.2 : fp32[6,40]
  %7 = cumsum %c.3 {axis=1, exclusive=false, reverse=true} : fp32[2,8]
  %8 = cumsum %c.3 {axis=1, exclusive=true, reverse=true} : fp32[2,8]
  %9 = slice %c.3 {start=[0, 0], step=[1, 1], stop=[2, 1]} : fp32[2,1]
  %10 = cumsum %9 {axis=1, exclusive=true, reverse=false} : fp32[2,1]
  output "y" %6
  output "from_end" %7
  output "behind" %8
  output "none" %10
}
""")
array(f"{TMP}/c.npy", [1e8, 1, 2, 3, 4, 5, 6, 7, 1, 2, math.inf, 3, 4, 5, 6, 7], shape=(2, 8))
for target in ("trn1", "trn2"):
    r = copse("run", path, "--on", "sim", "--target", target, "--input", f"c={TMP}/c.npy", "--compare", "ref", "--output-dir", f"{TMP}/turned")
    check(r.returncode == 0, f"turned on {target}: {r.stderr.decode()}")
    with open(f"{TMP}/turned/from_end.npy", "rb") as f:
        sums = struct.unpack("<16f", f.read()[-64:])
    check(sums[1:8] == (28, 27, 25, 22, 18, 13, 7) and sums[8] == math.inf and sums[11:] == (25, 22, 18, 13, 7), f"{sums}")
done()

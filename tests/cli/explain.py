"""copse explain --cycles: kernels whose bound is known by how they are written must be told so, and the
change that would help must be the one that was left out."""
import json
from util import *

# The same chain of load, one instruction, store, with everything single and with room to run ahead; a
# copy that only moves bytes; a product of one tile, over and over, that only multiplies.
SOURCE = """
op chain(x[T, N]) -> y[T, N] { y = x * 2.0; }
leaf chain_single for chain on trn2 {
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 512);
    for t in tiles(T, P) {
        sbuf xt[t, N] bufs 1 <- x[t, :];
        sbuf yt[t, N] bufs 1 = xt * 2.0;
        y[t, :] <- yt;
    }
}
leaf chain_ahead for chain on trn2 {
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 512);
    for t in tiles(T, P) {
        sbuf xt[t, N] bufs 8 <- x[t, :];
        sbuf yt[t, N] bufs 8 = xt * 2.0;
        y[t, :] <- yt;
    }
}
leaf chain_param for chain on trn1 {
    param C in {64, 512} = 64;
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 512);
    for t in tiles(T, P), c in tiles(N, C) {
        sbuf xt[t, c] bufs 8 <- x[t, c];
        sbuf yt[t, c] bufs 8 = xt * 2.0;
        y[t, c] <- yt;
    }
}
op power(x[T, N]) -> y[T, N] { y = x * 1.0; }
leaf power_act for power on trn2 {
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 512);
    sbuf a[T, N]: fp32 <- x;
    for r in 0..40 { a = a * 1.0 on act; }
    y <- a;
}
"""
path = f"{TMP}/known.cps"
with open(path, "w") as f:
    f.write(SOURCE)


def account(*args):
    r = copse("explain", *args, "--cycles", "--json")
    check(r.returncode == 0, f"{args}: {r.stderr.decode()}")
    try:
        return json.loads(r.stdout)["kernels"]
    except ValueError:
        check(False, f"{args}: no JSON: {r.stdout[:200]}")
        return None


def line_of(words):
    return 1 + next(i for i, l in enumerate(SOURCE.split("\n")) if words in l)


def whole(k, what):
    """What holds for every account: parts add up, changes are sorted and worth something."""
    for c in k["cores"]:
        for e, kinds in c["engines"].items():
            check(abs(sum(kinds.values()) - c["time_ns"]) < 1, f"{what}: {e} adds up to {sum(kinds.values())}")
        path_ns = sum(p["ns"] for p in c["critical_path"]["parts"])
        check(abs(path_ns - c["time_ns"]) < 1, f"{what}: the path adds up to {path_ns} of {c['time_ns']}")
        for e, w in c["waits"].items():
            check(abs(sum(w.values()) - c["engines"][e].get("waiting", 0)) < 1, f"{what}: waits of {e}")
    saves = [x["saves_ns"] for x in k["changes"]]
    check(len(saves) <= 3 and saves == sorted(saves, reverse=True), f"{what}: {saves}")
    check(all(0.005 < x["saves_fraction"] < 1 for x in k["changes"]), f"{what}: {k['changes']}")
    if "roof" in k:
        roof = max(k["roof"]["roofline_ns"], k["roof"]["engines_ns"])
        check(abs(k["roof"]["fraction"] - roof / k["time_ns"]) < 1e-6, f"{what}: {k['roof']}")
    return k


# Moving bytes: the memory roof, DMA on the path, and nothing but DMA to gain from.
k = whole(account("unary", "--dims", "T=2048,N=2048", "--attr", "f=copy")[0], "copy")
check(k["roof"]["roof"] == "memory" and k["roof"]["flops"] == 0, f"copy: {k['roof']}")
check(k["roof"]["hbm_bytes"] == 2 * 2 * 2048 * 2048, f"copy: {k['roof']}")
check(k["cores"][0]["binding"] == "dma" and k["cores"][0]["binding_fraction"] > 0.6, f"copy: {k['cores'][0]['binding']}")
check(k["changes"][0]["run"] == "DMA twice as fast" and k["changes"][0]["saves_fraction"] > 0.1, f"copy: {k['changes']}")
check(not any("twice as fast" in x["run"] and "DMA" not in x["run"] for x in k["changes"]), f"copy: {k['changes']}")

# Multiplying: the compute roof, PE on the path, and a faster PE first.
k = whole(account("matmul", "--dims", "M=1024,K=1024,N=1024")[0], "matmul")
check(k["roof"]["roof"] == "compute" and k["roof"]["flops"] == 2 * 1024**3, f"matmul: {k['roof']}")
check(abs(k["roof"]["intensity"] - 2 * 1024**3 / (3 * 2 * 1024**2)) < 1e-3, f"matmul: {k['roof']}")
check(k["cores"][0]["binding"] == "pe", f"matmul: {k['cores'][0]['binding']}")
check(k["changes"][0]["run"] == "PE twice as fast", f"matmul: {k['changes']}")
check(k["changes"][0]["file"] == "leaves/matmul.cps" and k["changes"][0]["line_share"] >= 0.5, f"matmul: {k['changes'][0]}")

# One engine's work, all of it in one line.
k = whole(account("power", "-I", path, "--dims", "T=128,N=4096")[0], "power")
check(k["cores"][0]["binding"] == "act", f"power: {k['cores'][0]['binding']}")
x = k["changes"][0]
check(x["run"] == "ACT twice as fast" and x["line"] == line_of("on act") and x["line_share"] > 0.9, f"power: {x}")

# Single buffers: latency holds the path, and buffers are named; with eight each, they are not.
single = whole(account("chain", "-I", path, "--leaf", "chain_single", "--dims", "T=2048,N=512")[0], "single")
ahead = whole(account("chain", "-I", path, "--leaf", "chain_ahead", "--dims", "T=2048,N=512")[0], "ahead")
check(single["cores"][0]["binding"] == "latency", f"single: {single['cores'][0]['binding']}")
TRIED = "compiled so and simulated"
named = [x for x in single["changes"] if "one more buffer" in x["action"]]
check(len(named) == 1 and named[0]["saves_fraction"] > 0.2, f"single: {single['changes']}")
check(not any(x["run"] == TRIED for x in ahead["changes"]), f"ahead: {ahead['changes']}")
# The leaf that runs ahead is there to be taken, and what it gains is what it takes less.
(other,) = [x for x in single["changes"] if "leaf chain_ahead instead" in x["action"]]
check(abs(single["time_ns"] - other["saves_ns"] - ahead["time_ns"]) < 1 and other["run"] == TRIED, f"{other}")
check(single["changes"][0] == other, f"the best comes first: {single['changes']}")
param = whole(account("chain", "-I", path, "--target", "trn1", "--dims", "T=2048,N=512")[0], "param")
wide = account("chain", "-I", path, "--target", "trn1", "--dims", "T=2048,N=512", "--leaf", "chain_param", "--param", "C=512")[0]
x = param["changes"][0]
check("parameter C=512 of the leaf" in x["action"] and abs(param["time_ns"] - x["saves_ns"] - wide["time_ns"]) < 1, f"param: {x}")
# The figure is what the change gives: the leaf written so takes that much less.
wide = SOURCE
for name in ("xt", "yt"):
    if f"'{name}'" in named[0]["action"]:
        wide = wide.replace(f"{name}[t, N] bufs 1", f"{name}[t, N] bufs 2")
first = "xt" if wide.count("xt[t, N] bufs 2") else "yt"
check(named[0]["line"] == line_of(f"{first}[t, N] bufs 1") and named[0]["file"] == path, f"{named}")
with open(path, "w") as f:
    f.write(wide)
wider = account("chain", "-I", path, "--leaf", "chain_single", "--dims", "T=2048,N=512")[0]
check(wide != SOURCE and abs(single["time_ns"] - named[0]["saves_ns"] - wider["time_ns"]) < 1,
      f"{named[0]}, then {wider['time_ns']}")
with open(path, "w") as f:
    f.write(SOURCE)

# The time is that of a run with data and all checks; two accounts are the same bytes.
args = ["softmax", "--dims", "T=512,N=2048"]
k = whole(account(*args)[0], "softmax")
r = copse("kernel", "run", *args, "--report", "-")
check(json.loads(r.stdout)["time_ns"] == k["time_ns"], f"softmax: {k['time_ns']} here, run {r.stdout[-300:]}")
a, b = (copse("explain", *args, "--cycles", "--no-cache") for _ in range(2))
check(a.stdout == b.stdout and b"changes that would help most" in a.stdout, a.stderr.decode() + a.stdout.decode())

# Packages, their kernels, folders of kernels; pairs of cores; blocks and models.
r = copse("kernel", "compile", *args, "-o", f"{TMP}/pk")
p = whole(account(f"{TMP}/pk")[0], "package")
check(k["others_tried"] and not p["others_tried"], "other ways are tried where the leaf is known")
check(p["time_ns"] == k["time_ns"] and p["roof"]["hbm_bytes"] == k["roof"]["hbm_bytes"], f"package: {p}")
f = whole(account(f"{TMP}/pk/kernels/{p['kernel']}")[0], "folder")
check(f["time_ns"] == k["time_ns"] and "roof" not in f, f"folder: {f}")
two = whole(account("matmul", "--dims", "M=512,K=512,N=512", "--logical-nc-config", "2")[0], "pair")
check(len(two["cores"]) == 2 and two["changes"], f"pair: {two['changes']}")
model = f"{ROOT}/tests/data/small_encoder.onnx"
all_of = account(model, *DIMS)
r = copse("explain", model, *DIMS, "--cycles")
names = [l.split()[0] for l in r.stdout.decode().split("cycles by step")[1].split("\n")[1:] if l.endswith("%")]
check({k["kernel"] for k in all_of} == set(names), f"{[k['kernel'] for k in all_of]}, steps {names}")
one = account(model, *DIMS, "--kernel", names[0])
check(len(one) == 1 and one[0]["kernel"] == names[0], f"{one}")

# Without --cycles: the candidates of one operator.
r = copse("explain", *args)
check(r.returncode == 0 and b"\n  * softmax" in r.stdout and b"bound by" in r.stdout, r.stdout.decode())

for args, code, want in [
    ([f"{TMP}/pk"], 2, b"E1104"),
    ([f"{TMP}/pk", "--cycles", "--kernel", "other"], 2, b"E1105"),
    (["nothing", "--cycles"], 1, b"E1106"),
    (["matmul", "--cycles", "--dims", "M=4"], 1, b"E2310"),
    (["matmul", "--dims", "M=4,K=4,N=4", "--json"], 2, b"E1104"),
    (["matmul", "softmax"], 2, b"E1105"),
    (["matmul", "--target", "host"], 2, b"E1104"),
]:
    r = copse("explain", *args)
    check(r.returncode == code and want in r.stderr, f"{args}: exit {r.returncode}: {r.stderr.decode()[:300]}")
done()

"""copse tune and --tuned: the search finds what is better by construction, does not depend on how many
processes share it, never writes what fails its check; the file is used where it fits, and only there."""
import json, re, signal
from util import *

# `slots` begins at the worst value, so a search must raise it. In `trap` the fast way is wrong.
SOURCE = """
op chain(x[T, N]) -> y[T, N] { y = x * 2.0; }
leaf chain_slots for chain on trn2 {
    param slots in {1, 2, 4} = 1;
    param C in {256, 512} = 512;
    cost hbm: bytes(x) + bytes(y);
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 512);
    for t in tiles(T, P), c in tiles(N, C) {
        sbuf xt[t, c] bufs slots <- x[t, c];
        sbuf yt[t, c] bufs slots = xt * 2.0;
        y[t, c] <- yt;
    }
}
op trap(x[T, N]) -> y[T, N] { y = x * 3.0; }
leaf trap_door for trap on trn2 {
    param passes in 1..4 = 3;
    cost hbm: bytes(x) + bytes(y);
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 512);
    sbuf a[T, N]: fp32 <- x;
    for r in 1..passes { a = a * (3.0 / (passes - 1)); }
    if (passes == 3) { a = a * (4.0 / 3.0); }
    y <- a;
}
op other(x[T, N]) -> y[T, N] { y = x + 1.0; }
leaf other_only for other on trn2 {
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 512);
    sbuf a[T, N] <- x;
    y <- a + 1.0;
}
"""
path = f"{TMP}/own.cps"


def write(file, text):
    with open(file, "w") as f:
        f.write(text)


def read(file):
    with open(file) as f:
        return f.read()


def rows(file):
    return [l.split("\t") for l in read(file).split("\n") if l and not l.startswith("#")]


write(path, SOURCE)
CHAIN = ["chain", "--dims", "T=2048,N=512", "-I", path]
tuned = f"{TMP}/own.tuned"

# The search: better by construction; the same bytes for any number of processes and from a warm cache.
r = copse("tune", *CHAIN, "-o", tuned, "-j", 1)
check(r.returncode == 0, r.stderr.decode())
check(b"\r" not in r.stderr and b"timing [" not in r.stderr, f"a bar without a terminal: {r.stderr}")
first = read(tuned)
for j in (2, 5):
    os.remove(tuned)
    copse("tune", *CHAIN, "-o", tuned, "-j", j)
    check(read(tuned) == first, f"-j {j}: another result: {read(tuned)}")
(row,) = rows(tuned)
call, leaf, config, ns, without = row[:5]
check(leaf == "chain_slots" and config.startswith("C=") and "slots=4" in config, f"{row}")
check(int(ns) < 0.7 * int(without), f"{ns} of {without}")
r = copse("tune", *CHAIN, "--json")
(j,) = json.loads(r.stdout)["calls"]
check(j["tuned"]["ns"] == int(ns) and j["before"] == {"config": "C=512,slots=1", "leaf": "chain_slots", "ns": int(without)}
      and j["tried"] == 6 == j["fit"] and j["not_tried"] == 0 and j["max_rel_err"] < 2e-2, f"{j}")
j = json.loads(copse("tune", *CHAIN, "--json", "--tries", 2).stdout)["calls"][0]
check(j["tried"] == 2 and j["not_tried"] == 4, f"{j}")

# The file in use: the times it says, the parameters it names; without it nothing has changed.
run = ["kernel", "run", *CHAIN, "--compare", "ref", "--report", "-"]
plain, better = (json.loads(copse(*run, *more).stdout) for more in ([], ["--tuned", tuned]))
check(round(plain["time_ns"]) == int(without) and round(better["time_ns"]) == int(ns), f"{plain['time_ns']} {better['time_ns']}")
check(better["pass"] and better["checks"]["races"] == 0, f"{better}")
copse("kernel", "compile", *CHAIN, "-o", f"{TMP}/plain")
copse("kernel", "compile", *CHAIN, "-o", f"{TMP}/better", "--tuned", tuned)
k = json.loads(read(f"{TMP}/better/manifest.json"))["kernels"][0]
check(k["why"] == "tuned" and k["config"] == config, f"{k}")
k = json.loads(read(f"{TMP}/plain/manifest.json"))["kernels"][0]
check(k["why"] == "only" and k["config"] == "C=512,slots=1", f"{k}")
r = copse("explain", *CHAIN, "--tuned", tuned)
check(f"with {config} (tuned)".encode() in r.stdout, r.stdout.decode())
r = copse("kernel", "run", "chain", "--dims", "T=1024,N=512", "-I", path, "--tuned", tuned)
check(r.returncode == 0 and b"W1115" not in r.stderr, f"another call: {r.stderr.decode()}")


# Lines that do not fit any more: said so once, by code and reason, and the result is as if they were not there.
def stale(text, reason, source=None):
    write(f"{TMP}/stale.tuned", text)
    write(path, source or SOURCE)
    want = "plain" if source is None else "changed"
    copse("kernel", "compile", *CHAIN, "-o", f"{TMP}/changed", "--no-cache")
    r = copse("kernel", "compile", *CHAIN, "-o", f"{TMP}/stale", "--tuned", f"{TMP}/stale.tuned", "--no-cache")
    err = r.stderr.decode()
    check(r.returncode == 0 and err.count("[W1115]") == 1 and reason in err, f"{reason}: {err}")
    check(tree(f"{TMP}/stale") == tree(f"{TMP}/{want}"), f"{reason}: another package")
    write(path, SOURCE)


stale(first.replace("\tchain_slots\t", "\tchain_gone\t"), "no leaf 'chain_gone'")
stale(first.replace("slots=4", "slots=3"), "no parameter value 'slots=3'")
stale(first.replace(config, "slots=4"), "other parameters")
stale(first.replace(row[5], "0" * 64), "text of leaf 'chain_slots' has changed")
stale(first.replace(row[6], "0" * 64), "target's description has changed")
stale(first, "text of leaf 'chain_slots' has changed", SOURCE.replace("{1, 2, 4}", "{1, 2, 3, 4}"))

# Files that are none.
for text, what in [
    ("", "no first line"),
    ("# tuned\n", "another first line"),
    (first + row[0] + "\tx\n", "two fields"),
    (first + "\t".join(row) + "\n", "a call twice"),
    (first.replace(row[5], "zz" + row[5][2:]), "no digest"),
    (first.replace(f"\t{ns}\t", "\t-1\t"), "no time"),
    (first.replace(f"\t{config}\t", "\t\t"), "an empty field"),
]:
    write(f"{TMP}/bad.tuned", text)
    for args in (["kernel", "run", *CHAIN, "--tuned", f"{TMP}/bad.tuned"], ["tune", *CHAIN, "-o", f"{TMP}/bad.tuned"]):
        r = copse(*args)
        check(r.returncode == 1 and b"[E1114]" in r.stderr and read(f"{TMP}/bad.tuned") == text, f"{what}: {r.stderr.decode()}")
r = copse("kernel", "run", *CHAIN, "--tuned", f"{TMP}/none.tuned")
check(r.returncode == 74 and b"[E1001]" in r.stderr, r.stderr.decode())

# A winner that is wrong is not written, and an older line for its call goes.
trap = ["trap", "--dims", "T=128,N=512", "-I", path, "-o", tuned]
write(tuned, first + first.split("\n")[2].replace("chain(", "trap(").replace("2048", "128") + "\n")
r = copse("tune", *trap)
check(r.returncode == 3 and b"[E1116]" in r.stderr and b"passes=1" in r.stderr, r.stderr.decode())
check(read(tuned) == first, f"after a trap: {read(tuned)}")

# A file grows, stays sorted, and loses a line for what cannot be beaten.
write(path, SOURCE.replace("slots in {1, 2, 4} = 1", "slots in {1, 2, 4} = 4").replace("C in {256, 512} = 512", "C in {256, 512} = " + config[2:5]))
r = copse("tune", *CHAIN, "-o", tuned)
check(r.returncode == 0 and rows(tuned) == [] and b"0 of 1 calls faster" in r.stderr, f"{r.stderr.decode()}{read(tuned)}")
write(path, SOURCE)
for dims in ("T=4096,N=512", "T=1024,N=512", "T=2048,N=512"):
    copse("tune", "chain", "--dims", dims, "-I", path, "-o", tuned)
check([x[0] for x in rows(tuned)] == sorted(x[0] for x in rows(tuned)) and len(rows(tuned)) == 3, read(tuned))
r = copse("tune", "other", "--dims", "T=128,N=512", "-I", path)
check(r.returncode == 0 and r.stdout.decode().count("\n") == 2, r.stdout.decode())

# A model: every kernel at least as fast, the sum what the search said; the module cache tells files apart.
model = [f"{ROOT}/tests/data/small_encoder.onnx", "--dim", "batch_size=1", "--dim", "sequence_length=512"]
r = copse("tune", *model, "-o", f"{TMP}/m.tuned")
check(r.returncode == 0 and len(rows(f"{TMP}/m.tuned")) >= 1, f"{r.stderr.decode()}")
said = [float(w) for w in re.findall(r"([0-9.]+) us (?:as it is|tuned)", r.stderr.decode())]
copse("compile", *model, "-o", f"{TMP}/m0")
r = copse("compile", *model, "-o", f"{TMP}/m1", "--tuned", f"{TMP}/m.tuned")
check(b"W1115" not in r.stderr, r.stderr.decode())
times = [json.loads(copse("sim", f"{TMP}/{m}", "--report", "-", "--check", "none").stdout)["time_ns"] / 1e3 for m in ("m0", "m1")]
check(len(said) == 2 and times[1] < times[0] and all(abs(a - b) < 0.1 for a, b in zip(said, times)), f"said {said}, ran {times}")
check([k["why"] for k in json.loads(read(f"{TMP}/m1/manifest.json"))["kernels"]].count("tuned") == len(rows(f"{TMP}/m.tuned")), "tuned kernels")
r = copse("run", f"{TMP}/m1", "--compare", "ref")
check(r.returncode == 0 and b"within tolerance" in r.stderr, r.stderr.decode())
for more, want in (([], "m0"), (["--tuned", f"{TMP}/m.tuned"], "m1"), ([], "m0")):
    copse("compile", *model, "-o", f"{TMP}/again", *more)
    check(tree(f"{TMP}/again") == tree(f"{TMP}/{want}"), f"the cache gave another package than {want}")

# A lowered graph's text carries leaf and parameters: it compiles to the same kernels without the file.
PRODUCT = ["--dims", "M=512,K=512,N=512", "--target", "trn1"]
graph, lowered, its = f"{TMP}/g.cir", f"{TMP}/l.cir", f"{TMP}/g.tuned"
with open(graph, "wb") as f:
    f.write(copse("kernel", "run", "matmul", *PRODUCT, "--emit", "graph").stdout)
r = copse("tune", graph, "--target", "trn1", "-o", its)
check(r.returncode == 0 and len(rows(its)) == 1, f"{r.stderr.decode()}")
r = copse("opt", graph, "--target", "trn1", "--tuned", its, "-o", lowered)
check(read(lowered).count('why "tuned"') == 1, r.stderr.decode() + read(lowered))
kernels = []
for k, args in enumerate([[lowered], [graph, "--tuned", its], [graph]]):
    r = copse("compile", *args, "--target", "trn1", "-o", f"{TMP}/g{k}")
    check(r.returncode == 0, r.stderr.decode())
    kernels.append(tree(f"{TMP}/g{k}/kernels"))
check(kernels[0] == kernels[1] != kernels[2], "kernels of the lowered graph, tuned, untuned")
r = copse("explain", lowered, "--target", "trn1")
check(rows(its)[0][2].replace(",", " ").encode() in r.stdout, r.stdout.decode())

# A worker that dies takes the search with it, and the file stays as it was.
before = read(tuned)
p = subprocess.Popen([COPSE, "tune", "attention", "--dims", "B=8,Sq=2048,Bkv=8,Skv=2048,d=64", "-o", tuned, "-j", "2"],
                     stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
child, list_of = "", f"/proc/{p.pid}/task/{p.pid}/children"
check(os.path.exists(list_of), f"{list_of}: this test needs to know the workers")
while not child and p.poll() is None and os.path.exists(list_of):
    child = read(list_of).split(" ")[0]
if child:
    os.kill(int(child), signal.SIGKILL)
err = p.communicate()[1].decode()
check(child and p.returncode == 1 and "[E1117]" in err and read(tuned) == before, f"exit {p.returncode}: {err}")

for args, code, want in [
    ([], 2, b"E1105"),
    (["matmul", "softmax"], 2, b"E1105"),
    (["nothing"], 1, b"E1106"),
    (["matmul", "--dims", "M=4,K=4,N=4", "--target", "host"], 2, b"E1104"),
    (["matmul", "--dims", "M=4,K=4,N=4", "--tries", "0"], 2, b"E1104"),
    (["matmul", "--dims", "M=4,K=4,N=4", "--leaf", "softmax_rows"], 1, b"E1107"),
    (["/nonexistent.onnx"], 74, b"E1001"),
]:
    r = copse("tune", *args)
    check(r.returncode == code and want in r.stderr, f"{args}: exit {r.returncode}: {r.stderr.decode()[:300]}")
done()

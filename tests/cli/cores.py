"""Two cores of a logical core: kernels compiled to a pair, run in one time with shared memory, with the checks on;
and groups of kernels that exchange by collectives."""
import json, shutil, struct
from util import *

LEAF = """op flip(x[T, N]) -> y[T, N] {
    y = x;
}

leaf flip_cores for flip on trn2, trn3 {
    cost hbm: 2 * bytes(x) + 2 * bytes(y);
    cases (T: 256, N: 64);

    hbm t[T, N]: bf16;
    for a in tiles(T, P) across cores {
        sbuf u[a, N] <- x[a, :];
        t[a, :] <- u;
    }
    barrier();
    for b in tiles(N, 32) across cores {
        for a in tiles(T, P) {
            sbuf v[a, b] <- t[a, b];
            y[a, b] <- v;
        }
    }
}
"""
with open(f"{TMP}/flip.cps", "w") as f:
    f.write(LEAF)
with open(f"{TMP}/race.cps", "w") as f:
    f.write(LEAF.replace("    barrier();\n", ""))
with open(f"{TMP}/both.cps", "w") as f:  # both cores write all of y
    f.write(LEAF.replace("for b in tiles(N, 32) across cores", "for b in tiles(N, 32)"))


def run(lnc, *args, target="trn2"):
    out = f"{TMP}/io{lnc}"
    r = copse("kernel", "run", *args, "--target", target, "--no-cache", "--compare", "ref", "--logical-nc-config", lnc,
              "--save-io", out, "--report", f"{TMP}/r{lnc}.json")
    check(r.returncode == 0, f"{args} on {lnc} cores: {r.stderr.decode()[:600]}")
    rep = json.load(open(f"{TMP}/r{lnc}.json"))
    check(rep["checks"] == {"bounds": 0, "races": 0, "uninit": 0}, f"{args}: {rep['checks']}")
    return rep, {k: v for k, v in tree(out).items() if k.startswith("out_")}


# The same results as one core's, byte for byte, in less time; the work is divided.
for args, target in [(("softmax", "--dims", "T=512,N=1024"), "trn2"),
                     (("softmax", "--dims", "T=300,N=77", "--dtype", "fp32"), "trn3"),
                     (("softmax", "--dims", "T=100,N=777"), "trn2"),
                     (("matmul", "--dims", "M=1024,K=512,N=512"), "trn2"),
                     (("matmul", "--dims", "M=700,K=257,N=129", "--with", "bias"), "trn3"),
                     (("rmsnorm", "--dims", "T=257,H=512"), "trn2"),
                     # one strip of rows: by columns; one batch: by rows
                     (("matmul", "--dims", "M=1,K=1024,N=4096"), "trn2"),
                     (("matmul", "--dims", "M=128,K=257,N=2037", "--with", "bias,residual", "--attr", "act=gelu"), "trn3"),
                     (("matmul", "--dims", "M=400,K=2048,N=1530", "--dtype", "fp32", "--attr", "tx=1"), "trn2"),
                     (("bmm", "--dims", "B=1,M=300,K=140,N=1700"), "trn2"),
                     # by key heads, by query heads, by blocks of queries in turns, by halves; again by rows each its own
                     (("attention", "--dims", "B=4,Bkv=2,Sq=130,Skv=300,d=64,Bm=2", "--with", "mask,sink"), "trn2"),
                     (("attention", "--dims", "B=2,Bkv=1,Sq=300,Skv=300,d=64", "--attr", "causal=true", "--leaf",
                       "attention_turned"), "trn3"),
                     (("attention", "--dims", "B=3,Bkv=1,Sq=1100,Skv=1200,d=40", "--attr", "causal=true"), "trn2"),
                     (("attention", "--dims", "B=3,Bkv=1,Sq=700,Skv=700,d=64", "--attr", "causal=true", "--attr", "scale=40", "--attr",
                       "tq=1", "--with", "sink"), "trn2"),
                     (("attention", "--dims", "B=1,Bkv=1,Sq=600,Skv=601,d=64", "--attr", "causal=true", "--attr", "window=200", "--attr",
                       "scale=40"), "trn2"),
                     (("flip", "-I", f"{TMP}/flip.cps", "--dims", "T=256,N=64"), "trn2")]:
    one, a = run(1, *args, target=target)
    two, b = run(2, *args, target=target)
    check(a == b, f"{args}: two cores' results are not one core's")
    check("cores" not in one and len(two["cores"]) == 2, f"{args}: a section for each core")
    check(two["instructions"] == sum(c["instructions"] for c in two["cores"]), f"{args}: instructions are summed")
    check(two["time_ns"] >= max(c["time_ns"] for c in two["cores"]), f"{args}: time is the last core's end")
    if "T=100" not in args[2]:  # one tile: the second core has nothing to do
        check(two["time_ns"] < one["time_ns"], f"{args}: {two['time_ns']} ns on two, {one['time_ns']} on one")
        check(all(c["instructions"] for c in two["cores"]), f"{args}: both cores work")
    else:
        check(two["cores"][1]["instructions"] == 0, "a core without a share has no instruction")
one, _ = run(1, "softmax", "--dims", "T=512,N=1024")
two, _ = run(2, "softmax", "--dims", "T=512,N=1024")
check(abs(two["roofline_ns"] - one["roofline_ns"] * 384 / 362 / 2) < 1e-6 * one["roofline_ns"],
      "the roof of a pair: 362 B/ns each")

# The hidden activations of an MLP pass from core to core where both share the columns, or not the same rows.
for args, target in [(("--dims", "T=1,H=1024,I=3000"), "trn2"), (("--dims", "T=32,H=1024,I=2304", "--dtype", "fp32"), "trn2"),
                     (("--dims", "T=2,H=6500,I=520", "--leaf", "mlp_few"), "trn3"), (("--dims", "T=300,H=2048,I=1700"), "trn2"),
                     (("--dims", "T=1536,H=512,I=512", "--leaf", "mlp_products", "--param", "MB=4", "--param", "MD=2"), "trn2"),
                     (("--dims", "T=300,H=512,I=512", "--leaf", "mlp_products", "--param", "MB=4", "--param", "MD=2"), "trn2"),
                     (("--dims", "T=300,H=512,I=512", "--leaf", "mlp_products", "--param", "MB=1", "--param", "MD=2"), "trn2")]:
    one, _ = run(1, "mlp", *args, target=target)
    two, _ = run(2, "mlp", *args, target=target)
    check(all(c["instructions"] for c in two["cores"]), f"mlp {args}: both cores work")
    check(two["time_ns"] < one["time_ns"], f"mlp {args}: {two['time_ns']} ns on two, {one['time_ns']} on one")
r = copse("kernel", "compile", "mlp", "--leaf", "mlp_products", "--dims", "T=300,H=200,I=136", "--param", "MB=4", "--param", "MD=4",
          "--logical-nc-config", 2, "-o", f"{TMP}/narrow")
check(r.returncode == 1 and b"for one core" in r.stderr, f"one strip of few columns: {r.returncode} {r.stderr.decode()[:300]}")

# A prior: positions that are not used count for nobody, a window reaches back over those that are.
for n, (used, *args) in enumerate([(0, "--attr", "causal=true"), (200, "--attr", "scale=0.2"),
                                   (77, "--attr", "causal=true", "--attr", "window=100"),
                                   (129, "--attr", "causal=true", "--attr", "window=290", "--attr", "scale=40")]):
    with open(f"{TMP}/used{n}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
                + struct.pack("<i", used))
    call = ("attention", "--dims", "B=2,Bkv=1,Sq=300,Skv=300,d=64,Sp=200", "--with", "k_prior,v_prior,prior_used", "--input",
            f"prior_used={TMP}/used{n}.npy", *args)
    one, a = run(1, *call)
    two, b = run(2, *call)
    check(a == b and two["time_ns"] < one["time_ns"], f"{call}: a prior on two cores")

# What one core uses and the other writes must be ordered by a barrier, and is found when compiling.
for f, what in [("race", "'t' bytes"), ("both", "'y' bytes")]:
    r = copse("kernel", "run", "flip", "-I", f"{TMP}/{f}.cps", "--dims", "T=256,N=64", "--logical-nc-config", 2)
    text = r.stderr.decode()
    check(r.returncode == 1 and "E8303" in text and "core 0 " in text and "core 1 " in text and what in text,
          f"{f}: {r.returncode} {text[:400]}")
    r = copse("kernel", "run", "flip", "-I", f"{TMP}/{f}.cps", "--dims", "T=256,N=64", "--compare", "ref")
    check(r.returncode == 0, f"{f} on one core: {r.stderr.decode()[:300]}")

# A package: a folder for each core, the same bytes again, run by `sim` and `run`; a process of the trace a core.
for d in ("p", "q"):
    r = copse("kernel", "compile", "flip", "-I", f"{TMP}/flip.cps", "--dims", "T=256,N=64", "--logical-nc-config", 2,
              "-o", f"{TMP}/{d}")
    check(r.returncode == 0, r.stderr.decode())
check(tree(f"{TMP}/p") == tree(f"{TMP}/q"), "a cached pair gives the same package")
files = set(tree(f"{TMP}/p"))
for c in (0, 1):
    k = f"kernels/flip_cores_0/core{c}/"
    check({k + "sp.bin", k + "dma.json", k + "kernel.json"} <= files, f"{files}")
    check((json.load(open(f"{TMP}/p/{k}kernel.json"))["core"]) == c, "kernel.json names its core")
    check("PSEUDO_CORE_BARRIER" in open(f"{TMP}/p/{k}kernel.cas").read(), "both cores have the barrier")
m = json.load(open(f"{TMP}/p/manifest.json"))
check(m["target"]["lnc"] == 2 and "core1/sp.bin" in m["kernels"][0]["digests"], "the manifest says so")
r = copse("sim", f"{TMP}/p", "--trace", f"{TMP}/t.json", "--summary", "--report", f"{TMP}/r.json")
check(r.returncode == 0, r.stderr.decode()[:500])
check(b"flip_cores_0, core 0" in r.stderr and b"flip_cores_0, core 1" in r.stderr, "a summary for each core")
check(len(json.load(open(f"{TMP}/r.json"))["steps"][0]["cores"]) == 2, "steps have a section for each core")
ev = json.load(open(f"{TMP}/t.json"))["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in ev if e["ph"] == "M" and e["name"] == "process_name"}
check(names[1] == "NeuronCore engines" and names[5] == "core 1: NeuronCore engines", f"{names}")
met = [e for e in ev if e["ph"] == "X" and e["name"] == "PSEUDO_CORE_BARRIER"]
check(sorted(e["pid"] for e in met) == [1, 5] and len({e["ts"] + e["dur"] for e in met}) == 1,
      f"both leave the barrier together: {met}")
r = copse("run", f"{TMP}/p", "--compare", "ref")
check(r.returncode == 0, r.stderr.decode()[:500])
# over a package of one core nothing of the other kind stays
copse("kernel", "compile", "softmax", "--dims", "T=8,N=8", "-o", f"{TMP}/p")
check(not any("core1" in f for f in tree(f"{TMP}/p")), f"left over: {set(tree(f'{TMP}/p'))}")

for args, what in [(("--target", "trn1"), b"trn1 has no logical cores of two"), (("--on", "host"), b"the host has no")]:
    r = copse("kernel", "run", "softmax", "--dims", "T=8,N=8", "--logical-nc-config", 2, *args)
    check(r.returncode != 0 and what in r.stderr, f"{args}: {r.stderr.decode()[:300]}")

# BIR of a pair: a document for each core; both give the kernel back, and neither by itself.
from bir_schema import problems
for args in (("flip", "-I", f"{TMP}/flip.cps", "--dims", "T=256,N=64"), ("attention", "--dims", "B=2,Bkv=1,Sq=300,Skv=300,d=64"),
             ("softmax", "--dims", "T=100,N=77", "--target", "trn3")):
    shutil.rmtree(f"{TMP}/b", ignore_errors=True)
    r = copse("kernel", "compile", *args, "--logical-nc-config", 2, "--emit", "bir", "-o", f"{TMP}/b")
    check(r.returncode == 0, f"bir of a pair: {r.stderr.decode()[:300]}")
    (folder,) = (f"{TMP}/b/kernels/{k}" for k in os.listdir(f"{TMP}/b/kernels"))
    docs = [f"{folder}/core{c}/kernel.bir.json" for c in (0, 1)]
    for c, path in enumerate(docs):
        text = open(path, "rb").read()
        doc = json.loads(text)
        check(not problems(doc) and doc["functions"][0]["copse"]["core"] == c and len(doc["functions"]) == 1, f"{args}: {problems(doc)[:3]}")
        r = copse("opt", path)
        check(r.returncode == 0 and r.stdout == text, f"{args}: opt changes core {c}'s document")
        r = copse("compile", path, "-o", f"{TMP}/half")
        check(r.returncode == 2 and b"E1105" in r.stderr and b"both cores" in r.stderr, f"half a pair: {r.stderr.decode()[:300]}")
    for order in (docs, docs[::-1]):
        r = copse("compile", *order, "-o", f"{TMP}/c")
        check(r.returncode == 0, f"{args}: {r.stderr.decode()[:500]}")
        a, b = tree(folder), tree(f"{TMP}/c/kernels/{os.listdir(f'{TMP}/c/kernels')[0]}")
        check({k: v for k, v in a.items() if not k.endswith(".bir.json")} == b, f"{args}: {sorted(k for k in a if b.get(k) != a[k])}")
    check(copse("sim", f"{TMP}/c").returncode == 0, "a pair made of BIR runs")
    listing = copse("compile", *docs, "--emit", "asm").stdout.decode()
    check(listing == copse("kernel", "run", *args, "--logical-nc-config", 2, "--emit", "asm").stdout.decode() != "", f"{args}: its listing")
r = copse("compile", docs[0], docs[0], "-o", f"{TMP}/half")
check(r.returncode == 2 and b"not its peer's" in r.stderr, f"the same core twice: {r.stderr.decode()[:300]}")
r = copse("kernel", "run", "softmax", "--dims", "T=8,N=8", "--logical-nc-config", 2, "--emit", "bir")
check(r.returncode == 2 and b"two documents" in r.stderr and not r.stdout, f"two documents in one stream: {r.stderr.decode()[:300]}")

# A container of a pair: a graph for each core; its streams are the package's, and it runs like it.
copse("kernel", "compile", "flip", "-I", f"{TMP}/flip.cps", "--dims", "T=256,N=64", "--logical-nc-config", 2, "--emit", "neff", "-o",
      f"{TMP}/p")
d = json.loads(copse("neff", "inspect", f"{TMP}/p/model.neff", "--json").stdout)
h = d["header"]
check((h["lnc_size"], h["num_tpb"], h["requested_tpb_count"], h["tpb_per_node"]) == (2, 2, 2, "2") and not d["notes"], f"{h} {d['notes']}")
check("neff_feature_vnc" in [f["name"] for f in d["features"]] and [g["name"] for g in d["graphs"]] == ["sg00", "sg01"], f"{d['features']}")
for g in d["graphs"]:
    check({"name": "flip_cores_0.t", "kind": "shared"}.items() <= next(v for v in g["vars"] if v["kind"] == "shared").items(), f"{g['vars']}")
r = copse("neff", "unpack", f"{TMP}/p/model.neff", "-o", f"{TMP}/u")
for c in (0, 1):
    for e in ("pe", "act", "pool", "dve", "sp"):
        check(tree(f"{TMP}/u")[f"sg0{c}/{e}.bin"] == tree(f"{TMP}/p")[f"kernels/flip_cores_0/core{c}/{e}.bin"], f"{e} of core {c}")
copse("neff", "pack", f"{TMP}/u", "-o", f"{TMP}/u.neff")
copse("neff", "pack", f"{TMP}/p", "-o", f"{TMP}/v.neff")
packed = [open(f"{TMP}/{f}", "rb").read() for f in ("p/model.neff", "u.neff", "v.neff")]
check(packed[0] == packed[1] == packed[2], "unpacked and packed again, packed twice: the same bytes")
out = {}
for what in ("p", "p/model.neff"):
    r = copse("run", f"{TMP}/{what}", "--compare", "ref", "--output-dir", f"{TMP}/o", "--report", f"{TMP}/r.json")
    rep = json.load(open(f"{TMP}/r.json"))
    check(r.returncode == 0 and len(rep["cores"]) == 2 and rep["checks"]["races"] == 0, f"{what}: {r.stderr.decode()[:400]}")
    out[what] = tree(f"{TMP}/o"), rep["time_ns"]
check(out["p"] == out["p/model.neff"], "a container of one step runs as its package does")
copse("neff", "pack", f"{TMP}/p", "--kernel", "flip_cores_0", "-o", f"{TMP}/k.neff")
check(copse("sim", f"{TMP}/k.neff").returncode == 0, "one kernel of it")

# A model on two cores, linked: the cores meet between steps, or what one wrote would race with what the other reads.
r = copse("compile", f"{ROOT}/tests/data/small_encoder.onnx", "-o", f"{TMP}/enc", "--target", "trn2", "--logical-nc-config", 2, "--emit", "neff",
          *DIMS)
check(r.returncode == 0, r.stderr.decode()[:500])
for what in ("enc", "enc/model.neff"):
    r = copse("run", f"{TMP}/{what}", "--compare", "ref", "--output-dir", f"{TMP}/o", "--report", f"{TMP}/r.json")
    rep = json.load(open(f"{TMP}/r.json"))
    check(r.returncode == 0 and len(rep["cores"]) == 2 and rep["checks"] == {"bounds": 0, "races": 0, "uninit": 0}, r.stderr.decode()[:400])
    out[what] = tree(f"{TMP}/o")
check(out["enc"] == out["enc/model.neff"], "the linked pair's outputs are the package's")
copse("neff", "unpack", f"{TMP}/enc/model.neff", "-o", f"{TMP}/u2")
steps = len(json.load(open(f"{TMP}/enc/manifest.json"))["steps"])
for c in (0, 1):  # barriers of cores become ones of nobody
    path = f"{TMP}/u2/sg0{c}/sp.bin"
    text = copse("dis", path).stdout.decode()
    check(steps > 30 and text.count("PSEUDO_CORE_BARRIER") >= steps - 1,
          f"core {c}: {text.count('PSEUDO_CORE_BARRIER')} meetings of {steps} steps")
    with open(f"{TMP}/sp.cas", "w") as f:
        f.write("".join("NOP\n" if "PSEUDO_CORE_BARRIER" in s else s for s in text.splitlines(True)))
    check(copse("asm", f"{TMP}/sp.cas", "-o", path).returncode == 0, "without meetings")
copse("neff", "pack", f"{TMP}/u2", "-o", f"{TMP}/loose.neff")
r = copse("run", f"{TMP}/loose.neff")
check(r.returncode == 1 and b"E8303" in r.stderr and b"core 1" in r.stderr, f"without the meetings: {r.returncode} {r.stderr.decode()[:400]}")

# ---- groups of kernels given as folders ----

ENGINES = ("pe", "act", "pool", "dve", "sp")
N = 301


def kernel(name, text, groups=None):
    d = f"{TMP}/{name}"
    os.makedirs(d, exist_ok=True)
    with open(d + "/t.cas", "w") as f:
        f.write(text)
    r = copse("asm", d + "/t.cas", "-o", d + "/pool.bin")
    check(r.returncode == 0, r.stderr.decode())
    for e in ENGINES:
        if e != "pool":
            open(f"{d}/{e}.bin", "wb").close()
    none = {e: [] for e in ENGINES}
    zero = {e: 0 for e in ENGINES}

    def var(name, kind, dtype, bytes, n):
        return {"name": name, "kind": kind, "dtype": dtype, "shape": [n], "bytes": bytes}

    doc = {"schema": 1, "name": "exchange", "target": "trn2", "generation": "v3", "core": 0, "cores": 1,
           "instructions": zero, "sources": [], "places": none,
           "stats": {"flops": 0, "hbm_bytes": 0, "pe_flops_ps": 0, "engine_min_ps": zero, "psum_banks_peak": 0,
                     "sbuf_peak_bytes_per_partition": 0, "semaphores": 1},
           "vars": [var("sb", "state-buffer", "u8", 1 << 25, 1 << 25), var("x", "input", "fp32", 4 * N, N),
                    var("y", "output", "fp32", 4 * N, N)]}
    if groups:
        doc["replica_groups"] = groups
    for f, what in (("kernel.json", doc), ("dma.json", none), ("reloc.json", [])):
        with open(f"{d}/{f}", "w") as h:
            json.dump(what, h)
    return d


def numbers(path):
    b = open(path, "rb").read()
    at = 10 + struct.unpack_from("<H", b, 8)[0]
    return struct.unpack(f"<{(len(b) - at) // 4}f", b[at:])


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


SUM = f"PSEUDO_TRIGGER_COLLECTIVE op=add dtype=fp32 input_tensor_id=1 output_tensor_id=2 num_elements={N} " \
      "ctype=ALL_REDUCE then S[22]++@complete\nEVENT_SEMAPHORE wait S[22]>0\n"
all4 = [kernel(f"k{r}", SUM) for r in range(4)]
two = [kernel(f"h{r}", SUM, [[[0, 1], [3, 2]]]) for r in range(4)]
head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({N},), }}".ljust(117) + "\n"
for r in range(4):
    with open(f"{TMP}/x{r}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() +
                struct.pack(f"<{N}f", *((i * 7 % 31 - 9.5) * (r + 1) / 3 for i in range(N))))
x = [numbers(f"{TMP}/x{r}.npy") for r in range(4)]
for folders, groups in ((all4, [[0, 1, 2, 3]]), (two, [[0, 1], [3, 2]])):
    reports = []
    for out in ("o1", "o2"):
        r = copse("sim", *folders, *[a for k in range(4) for a in ("--input", f"{k}:x={TMP}/x{k}.npy")],
                  "--output-dir", f"{TMP}/{out}", "--report", f"{TMP}/r.json", "--trace", f"{TMP}/t.json")
        check(r.returncode == 0, f"{groups}: {r.stderr.decode()[:500]}")
        reports.append(json.load(open(f"{TMP}/r.json")))
    check(tree(f"{TMP}/o1") == tree(f"{TMP}/o2") and reports[0]["time_ns"] == reports[1]["time_ns"],
          "a group runs the same way every time")
    check(len(reports[0]["cores"]) == 4 and reports[0]["checks"]["races"] == 0, f"{reports[0]['cores']}")
    for g in groups:
        want = x[g[0]]
        for m in g[1:]:
            want = tuple(f32(a + b) for a, b in zip(want, x[m]))
        for m in g:
            check(numbers(f"{TMP}/o1/rank{m}/y.npy") == want, f"{groups}: the sum on rank {m}")
    ev = json.load(open(f"{TMP}/t.json"))["traceEvents"]
    check({1, 5, 9, 13} <= {e["pid"] for e in ev}, "a process for each core")
r = copse("sim", *all4, "--input", f"x={TMP}/x2.npy", "--output-dir", f"{TMP}/o3")
check(r.returncode == 0 and numbers(f"{TMP}/o3/rank1/y.npy") ==
      tuple(f32(f32(f32(a + a) + a) + a) for a in x[2]), "one input for all ranks")
r = copse("sim", *all4, "--output-dir", f"{TMP}/o4")
check(r.returncode == 0 and len({v for v in tree(f"{TMP}/o4").values()}) == 1, "seeded inputs, one sum")

# One rank that does not take part, one whose exchange is another, one that does not wait.
idle = kernel("idle", "EVENT_SEMAPHORE wait S[3]>0\n")
other = kernel("other", SUM.replace("op=add", "op=max"))
rash = kernel("rash", SUM.replace("EVENT_SEMAPHORE wait S[22]>0",
                                  "PSEUDO_TENSOR_LOAD dtype=fp32 var_id=2 num_elem=[1,1] step_elem=[1,1] data=0x03"))
for folders, code, says in [
        ([*all4[:3], idle], "E8301", ["core 0 pool[1] EVENT_SEMAPHORE waits for semaphore 22",
                                      "waits for core 3 to take part", "core 3 pool[0] EVENT_SEMAPHORE waits for"]),
        ([*all4[:3], other], "E8207", ["core 3 pool[0]", "core 0 pool[0]"]),
        ([*all4[:3], rash], "E8303", ["queue cc of core 3 pool[0]", "core 3 pool[1] PSEUDO_TENSOR_LOAD"])]:
    r = copse("sim", *folders)
    text = r.stderr.decode()
    check(r.returncode == 1 and code in text and all(s in text for s in says), f"{code}: {r.returncode} {text[:800]}")

# The folder of a pair is a rank too.
copse("kernel", "compile", "flip", "-I", f"{TMP}/flip.cps", "--dims", "T=256,N=64", "--logical-nc-config", 2, "-o",
      f"{TMP}/p")
r = copse("sim", f"{TMP}/p/kernels/flip_cores_0", "--output-dir", f"{TMP}/o5", "--report", f"{TMP}/r.json")
check(r.returncode == 0 and len(json.load(open(f"{TMP}/r.json"))["cores"]) == 2, r.stderr.decode()[:400])
check("rank0/y.npy" in tree(f"{TMP}/o5"), f"{set(tree(f'{TMP}/o5'))}")
# What one form of `sim` would pass over is refused.
copse("kernel", "compile", "softmax", "--dims", "T=8,N=8", "-o", f"{TMP}/p1")
for args, says in [((f"{TMP}/p1", "--rows", "fast"), "of a package"), ((f"{TMP}/p1", "--counts"), "--validate"), ((f"{TMP}/p1", "--json"), "--validate"),
                   ((*all4, "--kernel", "x"), "of a group"), (("--validate", "--break", "start"), "of --validate"),
                   (("--validate", "--rows", "fast", "--html", f"{TMP}/x.html"), "of --validate")]:
    r = copse("sim", *args, stdin=b"")
    check(r.returncode == 2 and b"E1104" in r.stderr and says.encode() in r.stderr, f"{args}: {r.returncode} {r.stderr.decode()[:300]}")
r = copse("sim", f"{TMP}/p1", "--input", "x=/dev/zero", timeout=60)
check(r.returncode == 74 and b"E1001" in r.stderr, f"an input without end: {r.returncode} {r.stderr.decode()[:300]}")
# Two cores that scatter rows of their own, and a core that writes the other's rows on a path that no run takes: left open.
with open(f"{TMP}/open.cps", "w") as f:
    f.write("""op put(x[B, H], ids[B]: i32) -> y[B, H] { y = x * 2; }
leaf put_rows for put on trn2, trn3 {
    cases (B: 256, H: 64);
    for m in tiles(B, P) across cores {
        sbuf i[m, 1]: i32 <- ids[m];
        sbuf r[m, H] <- x[m, :];
        y[i, :] <- r;
    }
}
op twice(x[R, C]) -> y[R, C]: fp32 { y = x * 2; }
leaf twice_forked for twice on trn2, trn3 {
    cases (R: 256, C: 64);
    sbuf n[1, 2]: i32 = 0;
    sbuf z[P, C]: fp32 = 0.0;
    reg a: i32 <- n[0, 0];
    reg b: i32 <- n[0, 1];
    if (core == 0) { when (a > 0) { when (b > 0) { y[128:256, :] <- z; } else { } } else { } }
    for m in tiles(R, P) across cores {
        sbuf o[P, C]: fp32 <- x[m, :];
        o = o * 2.0;
        y[m, :] <- o;
    }
}
""")
for op, dims in (("put", "B=256,H=64"), ("twice", "R=256,C=64")):
    r = copse("kernel", "compile", op, "-I", f"{TMP}/open.cps", "--dims", dims, "--logical-nc-config", 2, "-o", f"{TMP}/{op}")
    check(r.returncode == 0, f"{op} on two cores: {r.stderr.decode()}")
    with open(f"{TMP}/{op}/manifest.json") as f:
        check('"races": "open"' in f.read(), f"{op}: its proof")
done()

"""Hardware loops over strips of large products: right at every number of strips a turn, on one core and two, with what
stands before the loop and behind it; taken by themselves where a kernel is long, and only there."""
import glob, json, os
from util import *


def bundles(folder):
    files = glob.glob(os.path.join(folder, "kernels", "**", "*.bin"), recursive=True)
    return sum(os.path.getsize(f) for f in files if not f.endswith("data.bin")) // 64


def compiled(name, *args):
    """The first kernel of a package's manifest, and how many bundles it has."""
    out = f"{TMP}/{name}"
    r = copse("kernel", "compile", *args, "--no-cache", "-o", out)
    check(r.returncode == 0, f"{args}: {r.stderr.decode()[:400]}")
    with open(f"{out}/manifest.json") as f:
        return json.load(f)["kernels"][0], bundles(out)


def right(*args):
    r = copse("kernel", "run", *args, "--no-cache", "--compare", "ref", "--report", f"{TMP}/r.json")
    check(r.returncode == 0, f"{args}: {r.stderr.decode()[:400]}")
    if r.returncode == 0:
        with open(f"{TMP}/r.json") as f:
            rep = json.load(f)
        check(rep["checks"] == {"bounds": 0, "races": 0, "uninit": 0}, f"{args}: {rep['checks']}")
        check(rep["proof"] == {"deadlock_free": 1, "kernels": 1, "race_free": 1}, f"{args}: {rep['proof']}")


# w stays on chip (a strip before the loop brings it) or streams; whole turns or not; rows turned by a transfer, by PE, or stored
# turned; strips left behind the loop, the last of them short.
BANKS = ["matmul", "--leaf", "matmul_banks", "--param", "MB=1"]
KEPT, STREAMED = "K=300,N=600", "K=1024,N=12800"
for target, turn, dims, more in [
    ("trn2", 2, f"M=1000,{KEPT}", ["--with", "bias,residual", "--attr", "act=gelu"]),
    ("trn1", 2, f"M=1000,{KEPT}", ["--with", "bias,residual", "--attr", "act=gelu"]),
    ("trn3", 1, f"M=400,{KEPT}", ["--attr", "tx=1"]),
    ("trn2", 4, f"M=1300,{KEPT}", ["--dtype", "fp32"]),
    ("trn2", 2, f"M=700,{STREAMED}", []),
    ("trn1", 1, f"M=300,{STREAMED}", ["--attr", "tx=1", "--with", "bias"]),
    ("trn2", 1, f"M=300,{STREAMED}", ["--dtype", "fp16", "--with", "residual"]),
    ("trn2", 1, f"M=1100,{KEPT}", ["--logical-nc-config", "2"]),
    ("trn2", 2, f"M=1024,{STREAMED}", ["--logical-nc-config", "2", "--attr", "tx=1"]),
    ("trn2", 1, "M=420,K=1027,N=6001", []),
    ("trn1", 1, "M=300,K=1027,N=6001", ["--with", "residual"]),
    ("trn1", 16, "M=2200,K=130,N=70", []),
]:
    right(*BANKS, "--param", f"turn={turn}", "--target", target, "--dims", dims, *more)
PRODUCTS = ["mlp", "--leaf", "mlp_products", "--param", "MB=1", "--param", "MD=1"]
for target, turns, dims, more in [
    ("trn2", (1, 2), "T=700,H=512,I=1100", ["--attr", "act=gelu"]),
    ("trn1", (2, 1), "T=300,H=384,I=640", ["--dtype", "fp32"]),
    ("trn2", (1, 0), "T=600,H=256,I=512", ["--logical-nc-config", "2"]),
]:
    right(*PRODUCTS, "--param", f"turn={turns[0]}", "--param", f"last_turn={turns[1]}", "--target", target, "--dims", dims, *more)

STREAM = ["matmul", "--leaf", "matmul_stream", "--param", "MB=1"]
for target, loops, dims, more in [
    ("trn2", "rows", "M=300,K=140,N=1100", ["--with", "bias,residual"]),
    ("trn1", "rows", "M=300,K=1100,N=601", ["--attr", "act=gelu"]),
    ("trn2", "columns", "M=300,K=140,N=1100", ["--with", "bias,residual", "--attr", "act=gelu"]),
    ("trn1", "columns", "M=200,K=1100,N=1027", ["--dtype", "fp32"]),
    ("trn3", "columns", "M=200,K=1100,N=1024", ["--attr", "tx=1"]),
    ("trn2", "rows", "M=1030,K=1100,N=520", ["--logical-nc-config", "2"]),
    ("trn2", "columns", "M=1030,K=300,N=1028", ["--logical-nc-config", "2", "--dtype", "fp32"]),
]:
    right(*STREAM, "--param", f"loops={loops}", "--target", target, "--dims", dims, *more)

# Fewer strips than a turn takes are refused.
for args in ([*BANKS, "--dims", f"M=400,{KEPT}", "--param", "turn=4"], [*PRODUCTS, "--dims", "T=300,H=384,I=640", "--param", "turn=4"]):
    r = copse("kernel", "compile", *args, "-o", f"{TMP}/refused")
    check(r.returncode == 1 and b"a loop needs" in r.stderr, f"{args}: {r.returncode} {r.stderr.decode()[:400]}")

# Long kernels loop by themselves, and shrink by it; the short, those of a target that loses too much by it, and those whose rows
# a moving transfer would cut to pieces, do not.
LARGE = ["matmul", "--attr", "tx=1", "--dims", "M=4096,K=4096,N=4096"]
looped, small = compiled("looped", *LARGE)
whole, large = compiled("whole", *LARGE, "--leaf", "matmul_banks", "--param", "turn=0")
check("turn=2" in looped["config"] and "turn=0" in whole["config"] and small * 3 < large, f"{looped['config']}: {small} and {large} bundles")
for name, args in [("short", ["matmul", "--dims", "M=1024,K=1024,N=1024"]), ("trn1", [*LARGE, "--target", "trn1"]),
                   ("odd", ["matmul", "--attr", "tx=1", "--dims", "M=4100,K=4096,N=4096"]), ("odder", ["matmul", "--dims", "M=4096,K=4096,N=4100"])]:
    k, _ = compiled(name, *args)
    check("turn=0" in k["config"], f"{name}: {k['config']}")
gate, n = compiled("gate", "mlp", "--dims", "T=2048,H=4096,I=14336")
check("turn=1" in gate["config"] and "last_turn=1" in gate["config"] and n < 40000, f"{gate['config']}: {n} bundles")

# What no trace has the steps for loops whatever its rows and target are.
for target in ("trn1", "trn2"):
    for args in ("matmul --dims M=16379,K=16383,N=16381", "matmul --dims M=16384,K=16384,N=16384", "matmul --dims M=4194304,K=128,N=128",
                 "matmul --dims M=300,K=65536,N=65536", "mlp --dims T=16379,H=16383,I=16381"):
        k, n = compiled("long", *args.split(), "--target", target)
        check(not {"turn=0", "last_turn=0", "loops=none"} & set(k["config"].split(",")), f"{args} on {target}: {k['config']}")

# What is written beside the package has the loops as well.
for kind in ("neff", "bir"):
    r = copse("kernel", "compile", *BANKS, "--param", "turn=2", "--dims", f"M=1000,{KEPT}", "--no-cache", "--emit", kind, "-o", f"{TMP}/{kind}")
    check(r.returncode == 0, f"{kind}: {r.stderr.decode()[:400]}")
r = copse("compile", *glob.glob(f"{TMP}/bir/kernels/*/kernel.bir.json"), "-o", f"{TMP}/again")
streams = [{os.path.basename(f): open(f, "rb").read() for f in glob.glob(f"{TMP}/{d}/kernels/*/*.bin")} for d in ("bir", "again")]
check(r.returncode == 0 and streams[0] == streams[1] and len(streams[0]) == 5, f"the document gives other streams: {r.stderr.decode()[:400]}")
done()

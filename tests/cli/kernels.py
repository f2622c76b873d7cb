"""Every leaf of the registry, through the command line, on every target it names: the simulated binary with
all checks on against the reference at the leaf's own tolerance, and against NumPy where that is installed
(oracle.py).

Three sets: the cases that leaves declare, edges chosen here, and random calls from a fixed seed. A random
call may be refused by every leaf, with reasons (E1108); anything else than right or refused is a failure.
Arguments after the program: names of operators to run, or none for all."""
import json, math, os, random
from concurrent.futures import ThreadPoolExecutor
from cases import leaf_cases, operators, options
from util import *

try:
    import numpy as np
    import oracle
except ImportError:
    oracle = None

TARGETS = ("trn1", "trn2", "trn3")
TF32 = {"attention_turned"}  # leaves that round 4-byte factors, as their own tolerance says
only = sys.argv[2:]

# Shapes next to what tiles and banks hold, and degenerate ones: operator, dims, options.
EDGES = """
softmax T=127,N=129 | softmax T=1,N=2 dtype=fp32 | softmax T=2,N=9000
rmsnorm T=127,H=1 | rmsnorm T=1,H=8193 dtype=fp32
layernorm T=1,H=2 | layernorm T=131,H=63 with=residual dtype=fp16
unary T=1,N=16385 f=sigmoid | unary T=127,N=2 f=square dtype=fp32 | gelu T=1,N=1 | silu T=1,N=129
affine T=1,N=1 mul=2 add=3
binary T=1,N=5,Ty=1,Ny=1 f=sub | binary T=129,N=1,Ty=1,Ny=1 f=add | binary T=5,N=1,Ty=5,Ny=1 f=div dtype=fp32
binary T=2,N=2049,Ty=1,Ny=2049 f=maximum | binary T=129,N=2,Ty=1,Ny=2 f=div reverse=true
cast T=1,N=1 to=fp32 | cast T=1,N=1 dtype=i64 to=i32 | cast T=129,N=3 dtype=i32 to=bf16 | cast T=2,N=3 dtype=bool to=fp32
transpose A=1,B=1,C=1 | transpose A=1,B=513,C=2 | transpose A=1,B=2,C=129 dtype=fp32
swap_axes A=1,B=2,C=129,D=1 | swap_axes A=1,B=1,C=3,D=5 dtype=u8 | swap_axes A=1,B=129,C=2,D=3
slice A=1,N=1,B=1 start=0 count=1 | slice A=129,N=3,B=2 start=1 count=2 | slice A=2,N=131,B=1 start=1 count=130
gather_rows V=1,H=1,T=1 | gather_rows V=9,H=64,T=129 dtype=fp32
topk B=1,V=151936 k=256 dtype=fp32 | topk B=1,V=1 k=1 | topk B=129,V=9 k=9 | topk B=127,V=3999 k=20 dtype=fp32 | topk B=1,V=25600 k=2048 dtype=fp32 | topk B=40,V=4058 k=256
cumsum B=1,N=2049 | cumsum B=129,N=1 dtype=fp32
reduction A=1,N=1,B=1 f=sum | reduction A=129,N=2,B=1 f=max | reduction A=1,N=129,B=3 f=mean | reduction A=1,N=129,B=129 f=min
matmul M=128,K=128,N=512 | matmul M=129,K=129,N=513 dtype=fp32 | matmul M=1,K=1,N=1 with=bias,residual act=relu
matmul M=257,K=3,N=5 tx=1 | matmul M=129,K=385,N=513 tx=1 | matmul M=64,K=513,N=385 tx=1 with=bias,residual act=relu | matmul M=130,K=130,N=130 tx=1 dtype=fp32 act=silu with=bias | matmul M=513,K=1,N=1
bmm B=1,M=1,K=1,N=1 | bmm B=2,M=129,K=129,N=513
mlp T=129,H=129,I=129 | mlp T=1,H=2,I=3 act=relu dtype=fp32
attention B=1,Bkv=1,Sq=1,Skv=129,d=64 | attention B=4,Bkv=1,Sq=129,Skv=129,d=128 causal=true
attention B=4,Bkv=4,Sq=2,Skv=2,d=32,Bm=2 with=mask,sink scale=0.5 | attention B=1,Bkv=1,Sq=130,Skv=260,d=2 causal=true window=1
attention B=2,Bkv=1,Sq=129,Skv=513,d=130 dtype=fp32 scale=-0.1
attention B=2,Bkv=1,Sq=200,Skv=300,d=64 causal=true scale=40 tq=1 tk=1 on=trn2+trn3
attention B=2,Bkv=1,Sq=200,Skv=300,d=64 causal=true scale=40 tq=1 to=1 on=trn2+trn3 | attention B=3,Bkv=3,Sq=300,Skv=300,d=40 to=1 on=trn2+trn3
attention B=5,Bkv=5,Sq=130,Skv=77,d=32 tq=1 tk=1 | attention B=4,Bkv=2,Sq=3,Skv=700,d=160 tq=1 tk=1 dtype=fp32
attention B=6,Bkv=3,Sq=300,Skv=5200,d=64 causal=true scale=0.1 tk=1 dtype=fp32 | attention B=3,Bkv=3,Sq=200,Skv=200,d=64 tk=1 dtype=fp32
attention B=2,Bkv=1,Sq=130,Skv=130,d=64,Sp=129 causal=true window=5 with=k_prior,v_prior,prior_used on=trn2+trn3
rope B=1,S=129,h=1,d=2 interleaved=true | rope B=2,S=1,h=33,d=64
"""


def dims_of(names, pairs):
    return ",".join(f"{k}={v}" for k, v in pairs if k in names)


def edge_cases(ops):
    at = {op["name"]: op for op in ops}
    for line in EDGES.replace("|", "\n").split("\n"):
        word = line.split()
        if word and word[0] in at:
            pairs = [tuple(p.split("=")) for p in word[1].split(",")]
            pairs += [tuple(p.split("=")) for p in word[2:] if not p.startswith("on=")]
            on = [p[3:].split("+") for p in word[2:] if p.startswith("on=")]
            for target in on[0] if on else TARGETS:
                yield at[word[0]], None, pairs, target


def random_cases(ops, seed, count):
    """Small legal calls. Dims are drawn near powers of two and between them."""
    g = random.Random(seed)

    def dim(hi):
        near = [n + e for n in (1, 32, 64, 128, 256, 512) for e in (-1, 0, 1) if 1 <= n + e <= hi]
        return g.choice(near) if g.random() < 0.4 else int(math.exp(g.uniform(0, math.log(hi))))

    for op in ops:
        for k in range(count):
            d = {n: dim(300 if n in ("M", "N", "K", "H", "T", "S") else 40) for n in op["dims"]}
            a = {"dtype": g.choice(("bf16", "fp16", "fp32"))}
            name = op["name"]
            if name == "binary":
                d["Ty"], d["Ny"] = g.choice((1, d["T"])), g.choice((1, d["N"]))
                a.update(f=g.choice(("add", "sub", "mul", "div", "maximum", "minimum")), reverse=g.choice(("true", "false")))
            elif name == "unary":
                a["f"] = g.choice(("gelu", "relu", "tanh", "exp", "erf", "copy", "neg", "square"))
            elif name == "cast":
                a.update(dtype=g.choice(("bf16", "fp32", "i32", "i64", "u8")), to=g.choice(("bf16", "fp32", "i32")))
            elif name == "slice":
                start = g.randrange(d["N"])
                a.update(start=start, count=g.randint(1, d["N"] - start))
            elif name == "topk":
                a["k"] = g.randint(1, d["V"])
            elif name == "reduction":
                a["f"] = g.choice(("sum", "mean", "max", "min"))
            elif name == "matmul":
                a.update(act=g.choice(("none", "gelu", "relu")), tx=g.choice((0, 1)))
                a["with"] = g.choice(("", "bias", "residual", "bias,residual"))
            elif name == "layernorm":
                a["with"] = g.choice(("", "residual"))
            elif name == "attention":
                kv = g.randint(1, 4)
                d.update(B=kv * g.randint(1, 3), Bkv=kv, Sq=dim(300), Skv=dim(300), d=g.choice((16, 32, 64, 128)),
                         Bm=g.choice((1, kv)))
                a["with"] = g.choice(("", "mask", "sink", "mask,sink"))
                if g.random() < 0.5:
                    a.update(causal="true", window=g.choice((0, 0, 5, 128)))
            elif name == "conv1d_depthwise":
                d["W"] += d["R"] - 1                            # some taps must fit
            elif name == "rope":
                d.update(h=g.randint(1, 9), d=2 * dim(64))
                a["interleaved"] = g.choice(("true", "false"))
            yield op, None, list(d.items()) + list(a.items()), TARGETS[k % 3]


def run(case):
    """One call: (what, error text or None, leaf, error against NumPy, simulated ns, roofline fraction)."""
    op, leaf, pairs, target, may_refuse = case
    names = op["dims"]
    attrs = {k: str(v) for k, v in pairs if k not in names and k not in ("dtype", "with")}
    o = dict(pairs)
    dims = dims_of(names, pairs)
    dtype, extra = o.get("dtype", "bf16"), o.get("with", "")
    what = f"{op['name']} {leaf or ''} on {target}: {dims} {dtype} {extra} {attrs}"
    folder = tempfile.mkdtemp(dir=TMP)
    args = ["kernel", "run", op["name"], *options(op, leaf, pairs, target), "--compare", "ref", "--no-cache",
            "--save-io", folder, "--report", f"{folder}/r.json"]
    try:
        r = copse(*args, timeout=600)
        text = r.stderr.decode()
        if may_refuse and r.returncode == 5 and "[E1108]" in text:
            return what, None, "", 0, 0, 0
        if r.returncode != 0:
            return what, text[-1500:], "", 0, 0, 0
        rep = json.load(open(f"{folder}/r.json"))
        if not rep["pass"] or any(rep["checks"].values()):
            return what, str(rep["checks"]), "", 0, 0, 0
        if any(n != rep["proof"]["kernels"] for n in rep["proof"].values()):
            return what, f"not proved: {rep['proof']}", "", 0, 0, 0
        if not oracle:
            return what, None, rep["leaf"], rep["max_rel_err"], rep["time_ns"], rep["roofline_fraction"]
        x = {f[3:-4]: np.load(f"{folder}/{f}") for f in os.listdir(folder) if f.startswith("in_")}
        x = {k: v.astype(float if v.dtype.kind == "f" else np.int64) for k, v in x.items()}
        err = max(oracle.error(np.load(f"{folder}/out_{k}.npy").astype(float), v.astype(float))
                  for k, v in oracle.ref(op["name"], x, attrs).items())
        exact = dtype == "fp32" and attrs.get("to", "fp32") == "fp32" and rep["leaf"] not in TF32
        wrong = None if err <= oracle.CODES.get(op["name"], 2e-4 if exact else 2e-2) else f"error {err:.3g} against NumPy"
        return what, wrong, rep["leaf"], err, rep["time_ns"], rep["roofline_fraction"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


ops = operators(only)
if oracle:
    for op in ops:
        check(op["name"] in oracle.OPS, f"{op['name']} has no oracle")
    ops = [op for op in ops if op["name"] in oracle.OPS]
check(len(ops) > 0, "no operator to run")
work = [(*c, False) for c in leaf_cases(ops)] + [(*c, False) for c in edge_cases(ops)]
work += [(*c, True) for c in random_cases(ops, 20, 6)]
worst = {}
with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
    for what, wrong, leaf, err, ns, roof in pool.map(run, work):
        check(wrong is None, f"{what}\n{wrong}")
        if leaf:
            w = worst.setdefault(leaf, [0, 0, 0, 0])
            w[0] += 1
            w[1] = max(w[1], err)
            if roof > w[3]:
                w[2:] = ns, roof
for leaf in sorted(worst):
    n, err, ns, roof = worst[leaf]
    print(f"{leaf:22} {n:4} runs, worst error {err:.2e}; nearest the roofline: {ns / 1e3:8.1f} us, {100 * roof:5.1f} %")
done()

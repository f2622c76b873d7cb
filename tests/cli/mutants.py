"""Malformed files through the command line: a clear error and exit 1, never a crash, nothing hanging."""
import glob, random
from util import *

COUNT = int(os.environ.get("COPSE_MUTANTS", "200"))
random.seed(11)


def mutate(raw):
    raw = bytearray(raw or b"\0")
    kind = random.randrange(5)
    if kind == 0 and raw:
        del raw[random.randrange(len(raw)):]
    elif kind == 1:
        for _ in range(random.randint(1, 8)):
            raw[random.randrange(len(raw))] = random.randrange(256)
    elif kind == 2:
        at = random.randrange(len(raw))
        raw[at:at + random.randint(1, 40)] = bytes(random.randrange(256) for _ in range(random.randint(1, 40)))
    elif kind == 3:
        at = random.randrange(len(raw))
        raw[at:at] = b"\xff" * random.randint(1, 12)
    else:
        a, b = sorted(random.randrange(len(raw)) for _ in range(2))
        raw[a:a] = raw[a:b][:4000]
    return bytes(raw)


package = f"{TMP}/package"
model = sorted(glob.glob(os.path.join(ROOT, "tests/data/*.onnx")))[0]
r = copse("compile", model, *DIMS, "-o", package)
check(r.returncode == 0, r.stderr.decode())
kernel = sorted(glob.glob(package + "/kernels/*"))[0]
stream = max(glob.glob(kernel + "/*.bin"), key=os.path.getsize)
cir = f"{TMP}/m.cir"
r = copse("compile", model, *DIMS, "--emit", "graph", "-o", cir)
cps = os.path.join(ROOT, "kernels/leaves/softmax.cps")
xml = os.path.join(ROOT, "codegen/isa/targets/trn2.xml")
cas = f"{TMP}/s.cas"
copse("dis", stream, "-o", cas)
cases = {  # suffix: (seed file, command on the mutant)
    ".onnx": (model, lambda f: ["compile", f, *DIMS, "-o", f"{TMP}/o"]),
    ".cir": (cir, lambda f: ["opt", f, "-o", f"{TMP}/o.cir"]),
    ".cps": (cps, lambda f: ["kernel", "list", "-I", f]),
    ".cas": (cas, lambda f: ["asm", f, "-o", f"{TMP}/o.bin"]),
    ".bin": (stream, lambda f: ["dis", f, "-o", f"{TMP}/o.cas"]),
    ".xml": (xml, lambda f: ["kernel", "run", "softmax", "--dims", "T=4,N=8", "--target", f]),
}
for suffix, (seed, command) in cases.items():
    raw = open(seed, "rb").read()
    refused = 0
    for i in range(COUNT):
        path = f"{TMP}/mutant{suffix}"
        with open(path, "wb") as f:
            f.write(mutate(raw))
        r = copse(*command(path), timeout=60)
        check(r.returncode in (0, 1, 4, 5), f"{suffix} mutant {i}: exit {r.returncode}\n{r.stderr.decode(errors='replace')[-600:]}")
        if r.returncode in (1, 4, 5):
            refused += 1
            check(b"error: " in r.stderr and b"[E" in r.stderr, f"{suffix} mutant {i}: no coded message")
    check(refused or suffix == ".bin", f"{suffix}: no mutant was refused")

# The package's own files: the reader trusts none of them.
good = tree(package)
for name in sorted(good):
    if name.endswith((".cas", "weights.bin")):
        continue
    for i in range(max(1, COUNT // 6)):
        with open(os.path.join(package, name), "wb") as f:
            f.write(mutate(good[name]))
        r = copse("run", package, "--compare", "ref", timeout=60)
        check(r.returncode in (0, 1, 3, 4, 5), f"{name} mutant {i}: exit {r.returncode}\n{r.stderr.decode(errors='replace')[-600:]}")
    with open(os.path.join(package, name), "wb") as f:
        f.write(good[name])
done()

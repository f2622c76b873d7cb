"""Same input, same bytes: packages compiled in different folders, clocks, locales and environments, and kernels twenty
times each with other threads, memory contents and places in memory."""
import glob, shutil
from util import *

model = sorted(glob.glob(os.path.join(ROOT, "tests/data/*.onnx")))[0]
a, b = f"{TMP}/first", f"{TMP}/second/deeper"
os.makedirs(os.path.dirname(b))
copy = f"{TMP}/second/{os.path.basename(model)}"
shutil.copy(model, copy)
for target in ("trn2", "trn1", "host"):
    r1 = copse("compile", model, *DIMS, "-o", a + target, "--target", target, "--no-cache", "-j", "1",
               env={"LC_ALL": "C", "TZ": "UTC", "SOURCE_DATE_EPOCH": "1"})
    r2 = copse("compile", os.path.basename(copy), *DIMS, "-o", b + target, "--target", target, "--no-cache", "-j", "2",
               env={"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Pacific/Auckland", "HOME": "/nonexistent",
                    "USER": "somebody", "SOURCE_DATE_EPOCH": "2000000000"}, cwd=f"{TMP}/second")
    check(r1.returncode == 0, r1.stderr.decode())
    check(r2.returncode == 0, r2.stderr.decode())
    x, y = tree(a + target), tree(b + target)
    check(len(x) > 2, f"{target}: an almost empty package")
    check(x.keys() == y.keys(), f"{target}: different files {set(x) ^ set(y)}")
    for f in x:
        check(x.get(f) == y.get(f), f"{target}: {f} differs")
        check(TMP.encode() not in x[f], f"{target}: {f} holds a path")

# What malloc hands out, how large the environment is (which moves the stack), and where the program is loaded.
fixed = ["setarch", "-R"] if subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0 else []
KERNELS = [("matmul", "M=300,K=200,N=700"), ("softmax", "T=300,N=500"), ("attention", "B=2,Sq=200,Bkv=1,Skv=300,d=64"),
           ("rmsnorm_quant", "T=200,H=300")]
for op, dims in KERNELS:
    want = None
    for k in range(20):
        env = dict(os.environ, MALLOC_PERTURB_=str(37 * k % 256), FILLER="x" * (997 * k), MALLOC_ARENA_MAX=str(1 + k % 3))
        r = subprocess.run((fixed if k % 2 else []) + [COPSE, "kernel", "compile", op, "--dims", dims, "-o", f"{TMP}/k", "--no-cache",
                           "-j", str(1 + k % 4)], capture_output=True, env=env)
        check(r.returncode == 0, f"{op}, run {k}: {r.stderr.decode()}")
        got = tree(f"{TMP}/k")
        shutil.rmtree(f"{TMP}/k", ignore_errors=True)
        want = want or got
        check(len(got) > 2 and got == want, f"{op}, run {k}: other bytes than the first run's")
done()

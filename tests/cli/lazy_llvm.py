"""What is loaded: a NeuronCore compile and every cache hit need libc and libm only."""
import glob, re
from util import *


def libs(*args):
    r = copse(*args, env={"LD_DEBUG": "files"})
    names = set(re.findall(r"file=([^ ]+) \[0\];  (?:needed|dynamically loaded)", r.stderr.decode()))
    return r.returncode, {os.path.basename(n) for n in names}


allowed = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "linux-vdso.so.1"}
kernel = ["kernel", "run", "softmax", "--dims", "T=128,N=256", "--cache", f"{TMP}/c"]
for what in ("miss", "hit"):
    code, got = libs(*kernel)
    check(code == 0, f"kernel run fails on a {what}")
    check(not got - allowed, f"a {what} loads {got - allowed}")
model = sorted(glob.glob(os.path.join(ROOT, "tests/data/*.onnx")))[0]
host = ["compile", model, *DIMS, "--target", "host", "-o", f"{TMP}/h", "--cache", f"{TMP}/c"]
code, got = libs(*host)
check(code == 0 and any("LLVM" in g for g in got), f"making host code loads LLVM: {got}")
code, got = libs(*host)
check(code == 0 and not got - allowed, f"a host hit loads {got - allowed}")
# Containers bring libarchive and zlib, and bring them to nobody else.
box = f"{TMP}/box"
os.makedirs(box)
open(f"{box}/member", "w").close()
code, got = libs("neff", "pack", box, "-o", f"{TMP}/box.neff")
check(code == 0 and "libcopse-archive.so" in got and any("libarchive" in g for g in got), f"packing loads {got}")
for args in (["neff", "inspect", box], ["neff", "--help"], ["version"]):
    code, got = libs(*args)
    check(code == 0 and not got - allowed, f"{args} loads {got - allowed}")
done()

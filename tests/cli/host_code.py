"""Host code of a model as LLVM text and as an object: the same twice, the one what the other is made of, and only for the host."""
from util import *

MODEL = "tests/onnx/data/where.onnx"


def emit(kind, *args):
    return copse("compile", MODEL, "--emit", kind, *args)


text, again = emit("llvm", "--target", "host"), emit("llvm", "--target", "host", "--no-cache")
check(text.returncode == 0 and b"define " in text.stdout and b"@cps_model_run(" in text.stdout, text.stderr.decode())
check(text.stdout == again.stdout, "two texts of one model")
plain = emit("llvm", "--target", "host", "-O", "0")
check(plain.returncode == 0 and plain.stdout != text.stdout, "-O 0 is the same text")
obj = f"{TMP}/model.o"
for way in ((), ("--no-cache",)):
    r = emit("obj", "--target", "host", "-o", obj, *way)
    with open(obj, "rb") as f:
        data = f.read()
    check(r.returncode == 0 and data[:4] == b"\x7fELF" and data[16] == 1, r.stderr.decode())
    check(all(s in data for s in (b"cps_model_run", b"cps_model_scratch_bytes")), "symbols of the object")
check(emit("obj", "--target", "host", "-o", "-").stdout == data, "an object on the standard output")
for kind in ("llvm", "obj"):
    r = emit(kind, "--target", "trn2")
    check(r.returncode == 2 and b"E1104" in r.stderr and b"--target host" in r.stderr and not r.stdout, f"{kind} on trn2: {r.stderr.decode()}")
r = emit("asm", "--target", "host")
check(r.returncode == 2 and b"E1104" in r.stderr, f"asm for the host: {r.stderr.decode()}")
done()

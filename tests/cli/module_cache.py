"""Whole models in the trace cache: what hits, what misses, and that a hit is what a compile gives."""
import json, os, shutil, struct, time
from util import *

MODEL = f"{TMP}/m.onnx"
shutil.copy(f"{ROOT}/tests/data/small_encoder.onnx", MODEL)
CACHE = ["--cache", f"{TMP}/c"]
n = 0


def compiled(*more, path=MODEL, dims=DIMS, cache=CACHE):
    """(hits, misses, files) of one compile."""
    global n
    n += 1
    out = f"{TMP}/p{n}"
    r = copse("compile", path, *dims, *more, *cache, "-o", out, "--report", f"{TMP}/r.json")
    if r.returncode != 0:
        check(False, f"{more}: {r.stderr.decode()}")
        return -1, -1, {}
    c = json.load(open(f"{TMP}/r.json"))["cache"]
    t = tree(out)
    shutil.rmtree(out)
    return c["hits"], c["misses"], t


def fresh(*more, path=MODEL, dims=DIMS):
    return compiled(*more, path=path, dims=dims, cache=["--no-cache"])[2]


# A hit is the compile, byte for byte, on every kind of target and with constants that were cast.
for more in (["--target", "trn2"], ["--target", "trn1"], ["--target", "host"], ["--auto-cast", "all"]):
    h, m, cold = compiled(*more)
    check(m > 0, f"{more}: the first compile misses: {h}, {m}")
    h, m, warm = compiled(*more)
    check(h > 0 and m == 0, f"{more}: the second hits: {h}, {m}")
    check(cold == warm and cold == fresh(*more), f"{more}: cold, warm and without a cache give the same package")

# Nothing but the model file is read on a hit: no leaf is parsed, so kernels of a whole model are
# all hits even where the entries of the single kernels are gone.
whole = compiled()[0]
check(whole == len(json.loads(fresh()["manifest.json"])["kernels"]), f"every kernel is a hit: {whole}")


def anew(what, *more, path=MODEL, dims=DIMS):
    t = compiled(*more, path=path, dims=dims)[2]
    check(t == fresh(*more, path=path, dims=dims), f"{what}: another package than without a cache")
    return t


base = fresh()
check(anew("another size", dims=["--dim", "batch_size=1", "--dim", "sequence_length=24"]) != base, "sizes count")
check(anew("fewer casts", "--auto-cast", "matmult") != base, "options count")
check(anew("another type", "--auto-cast", "all", "--auto-cast-type", "fp16") != base, "types count")

# Changed weights: in place, of the same size, with the time of change put back.
raw = bytearray(open(MODEL, "rb").read())
before = os.stat(MODEL)
time.sleep(2.1)  # the model's sum is remembered from here on
compiled()
check(compiled()[:2] == (whole, 0), "still a hit")
at = len(raw) - len(raw) // 8  # inside a weight of the last layer
raw[at] ^= 1
with open(MODEL, "r+b") as f:
    f.seek(at)
    f.write(raw[at:at + 1])
os.utime(MODEL, ns=(before.st_atime_ns, before.st_mtime_ns))
t = anew("a changed byte")
check(t != base, "a changed weight changes the package")
# Changed again and again, right after a compile, of the same size each time: never a stale package.
for i in range(12):
    raw[at] ^= 1 << i % 3
    with open(MODEL, "r+b") as f:
        f.seek(at)
        f.write(raw[at:at + 1])
    time.sleep((0, 0.005, 0.12, 0.3)[i % 4])
    anew(f"change {i}")
other = f"{TMP}/other/m.onnx"
os.makedirs(f"{TMP}/other")
shutil.copy(MODEL, other)
check(compiled(path=other)[:2] == (whole, 0), "the same model elsewhere hits")

# A file of -I is part of the key, and is read anew when it changes.
leaf = f"{TMP}/own.cps"
open(leaf, "w").write("op twice(x[T, N]) -> y[T, N] { y = x + x; }\n")
first = compiled("-I", leaf)
check(compiled("-I", leaf)[:2] == (whole, 0), "and is part of the key")
open(leaf, "w").write("op twice(x[T, N]) -> y[T, N] { y = x + x + x; }\n")
r = copse("compile", MODEL, *DIMS, "-I", leaf, *CACHE, "-o", f"{TMP}/i", "--report", f"{TMP}/r.json")
check(r.returncode == 0, r.stderr.decode())
open(leaf, "w").write("op twice(\n")
r = copse("compile", MODEL, *DIMS, "-I", leaf, *CACHE, "-o", f"{TMP}/i")
check(r.returncode == 1, f"a broken file of -I is an error, hit or not: {r.returncode}")

# Damaged entries are compiled anew; removed ones too.
for base_dir, _, files in os.walk(f"{TMP}/c"):
    for f in files:
        if f != "secret":
            p = os.path.join(base_dir, f)
            with open(p, "r+b") as h:
                h.seek(os.path.getsize(p) // 2)
                b = h.read(1)
                h.seek(-1, 1)
                h.write(bytes([b[0] ^ 0x40]))
h, m, t = compiled()
check(m > 0 and t == fresh(), f"damaged entries are not used: {h}, {m}")
check(copse("cache", "gc", "--max-bytes", "0", *CACHE).returncode == 0, "gc")
check(compiled()[1] > 0, "an empty cache misses")


# ---- external data: a model of one product, its weights in a file beside it ----
def field(i, payload):
    if isinstance(payload, int):
        return bytes([i << 3]) + varint(payload)
    return bytes([i << 3 | 2]) + varint(len(payload)) + payload


def varint(v):
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def value(name, shape):
    dims = b"".join(field(1, field(1, d)) for d in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def entry(k, v):
    return field(13, field(1, k) + field(2, v))


w = (b"".join(field(1, d) for d in (64, 32)) + field(2, 1) + field(8, b"w") + entry(b"location", b"w.bin")
     + entry(b"offset", b"128") + field(14, 1))
node = field(1, b"x") + field(1, b"w") + field(2, b"y") + field(4, b"MatMul")
graph = field(1, node) + field(2, b"g") + field(5, w) + field(11, value(b"x", (8, 64))) + field(12, value(b"y", (8, 32)))
os.makedirs(f"{TMP}/e")
ext = f"{TMP}/e/ext.onnx"
open(ext, "wb").write(field(1, 8) + field(7, graph) + field(8, field(2, 13)))


def weights(seed):
    open(f"{TMP}/e/w.bin", "wb").write(bytes(128) + b"".join(struct.pack("<f", (i * seed) % 7) for i in range(64 * 32)))


weights(1)
time.sleep(3.1)
one = compiled(path=ext, dims=[])
check(one[1] == 1, f"external data: the first compile misses {one[:2]}")
two = compiled(path=ext, dims=[])
check(two[:2] == (1, 0) and two[2] == one[2] == fresh(path=ext, dims=[]), f"external data: the second hits {two[:2]}")
weights(2)
three = compiled(path=ext, dims=[])
check(three[2] == fresh(path=ext, dims=[]) and three[2] != one[2], "changed external data change the package")
os.remove(f"{TMP}/e/w.bin")
r = copse("compile", ext, *CACHE, "-o", f"{TMP}/x")
check(r.returncode == 1 and b"E7005" in r.stderr, f"missing external data are an error: {r.stderr}")
done()

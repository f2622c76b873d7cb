"""Files from numpy.save go through our reader and writer, and numpy.load reads the result.
usage: oracle_npy.py BASE_DUMP
"""
import io
import subprocess
import sys

import ml_dtypes as ml
import numpy as np

checks = failed = 0


def through(a, dtype, version=None):
    f = io.BytesIO()
    if version:
        np.lib.format.write_array(f, a, version=version)
    else:
        np.save(f, a)
    p = subprocess.run([sys.argv[1], "npy", dtype], input=f.getvalue(), capture_output=True)
    if p.returncode:
        return None, p.stderr.decode()
    return np.load(io.BytesIO(p.stdout)), ""


def check(what, ok):
    global checks, failed
    checks += 1
    if not ok:
        failed += 1
        print(what)


rng = np.random.default_rng(3)
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 4), (2, 1, 3, 4), (1,) * 8]
OWN = {"fp16": "f2", "fp32": "f4", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
       "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "bool": "?"}
for name, d in OWN.items():
    for shape in SHAPES:
        a = rng.normal(0, 40, shape).astype(np.int64).astype(d) if name != "bool" else \
            np.asarray(rng.integers(0, 2, shape), bool)
        for version in (None, (1, 0), (2, 0), (3, 0)):
            got, err = through(np.ascontiguousarray(a).reshape(shape), name, version)
            check(f"{name} {shape} {version}: {err}", got is not None and got.dtype == a.dtype
                  and got.shape == shape and np.array_equal(got, a))
NARROW = {"bf16": ml.bfloat16, "fp8e3m4": ml.float8_e3m4, "fp8e4m3": ml.float8_e4m3,
          "fp8e4m3fn": ml.float8_e4m3fn, "fp8e5m2": ml.float8_e5m2, "fp4e2m1": ml.float4_e2m1fn}
for name, d in NARROW.items():
    for source in (np.float32, np.float16, np.int32):
        a = rng.normal(0, 3, (33, 65)).astype(source)
        got, err = through(a, name)
        want = a.astype(np.float32).astype(d).astype(np.float32)
        check(f"{name} from {source.__name__}: {err}", got is not None
              and got.dtype == np.float32 and np.array_equal(got, want, equal_nan=True))
a = rng.normal(0, 1, (9, 9))
got, err = through(a, "fp32")
check(f"fp32 from f8: {err}", got is not None and np.array_equal(got, a.astype(np.float32)))
for bad, name in ((np.asfortranarray(a), "fp32"), (a.astype(">f4"), "fp32"), (a, "i32"),
                  (a.astype(np.complex64), "fp32"), (np.array(["x"]), "fp32"),
                  (np.array([300]), "u8"), (np.zeros(2, [("a", "<f4")]), "fp32")):
    got, err = through(bad, name)
    check(f"{bad.dtype} as {name} was accepted", got is None and len(err) > 10)
print(f"{checks} checks, {failed} failed")
sys.exit(1 if failed or not checks else 0)

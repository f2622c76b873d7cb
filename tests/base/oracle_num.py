"""Compares every conversion of runtime/base/num.c with NumPy and ml_dtypes, code by code, and with
integer arithmetic (exact.py) where their behaviour is not the documented one.

Widening: all codes of the types up to 16 bits, samples of the others. Narrowing: every 65537th
binary32 code, everything near a rounding boundary of each type, and special values; from
binary64 the exact midpoints and their neighbours. NumPy's NaNs compare as NaN of the same sign,
those of exact.py by their bits.
usage: oracle_num.py BASE_DUMP [--exhaustive [TYPE ...]]
--exhaustive narrows all 2^32 binary32 codes and widens all of i32, u32, tf32 and fp32, by hand:
about a minute a type on an idle core.
"""
import subprocess
import sys
import time

import exact
import ml_dtypes as ml
import numpy as np

DUMP = sys.argv[1]
FLOATS = {
    "bf16": ml.bfloat16, "fp16": np.float16, "fp32": np.float32, "fp8e3m4": ml.float8_e3m4,
    "fp8e4m3": ml.float8_e4m3, "fp8e4m3fn": ml.float8_e4m3fn, "fp8e5m2": ml.float8_e5m2,
    "fp8e8m0": ml.float8_e8m0fnu, "fp4e2m1": ml.float4_e2m1fn,
}
INTS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
        "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
STOCHASTIC = [*exact.FORMS]
checks = failed = 0


def dump(how, name, a):
    return subprocess.run([DUMP, how, name], input=a.tobytes(), stdout=subprocess.PIPE,
                          check=True).stdout


def both(how, name, a, dtype):
    """The bulk and the single form, which must agree."""
    global checks, failed
    bulk, one = dump(how, name, a), dump("one-" + how, name, a)
    checks += 1
    if bulk != one:
        failed += 1
        print(f"{how} {name}: the bulk and the single form differ")
    return np.frombuffer(bulk, dtype)


def compare(what, src, got, want):
    """Equal bits, or NaN of the same sign on both sides."""
    global checks, failed
    with np.errstate(all="ignore"):
        g, w = got.astype(np.float64), want.astype(np.float64)
        nan = np.isnan(g) & np.isnan(w) & (np.signbit(g) == np.signbit(w))
    size = got.dtype.itemsize
    same = got.view(f"u{size}") == want.astype(got.dtype).view(f"u{size}")
    bad = np.flatnonzero(~(same | nan))
    checks += len(got)
    failed += len(bad)
    for i in bad[:8]:
        print(f"{what}: {src[i]!r}: got {got[i]!r}, want {want[i]!r}")


def compare_cells(what, bits, got, want):
    """Equal cells."""
    global checks, failed
    bad = np.flatnonzero(got != want)
    checks += len(got)
    failed += len(bad)
    for i in bad[:8]:
        print(f"{what}: {bits[i]:#010x}: got {got[i]:#x}, want {want[i]:#x} (exact)")


def codes(dtype):
    """All storage codes of a type up to 16 bits (four for fp4), else a stride of them."""
    n = {"float4_e2m1fn": 16}.get(np.dtype(dtype).name, 0)
    size = np.dtype(dtype).itemsize
    if n or size <= 2:
        return np.arange(n or 1 << (8 * size), dtype=f"u{size}").view(dtype)
    a = np.arange(0, 1 << 32, 65537, dtype=np.uint64)
    a *= np.uint64(1 if size == 4 else 4294967311)
    return a.astype(f"u{size}").view(dtype)


def sources32(dtype):
    """binary32 inputs that matter for a type: midpoints of neighbours, and around them."""
    stride = np.arange(0, 1 << 32, 65537, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 2.0**-126, 2.0**-127,
                        3.4028235e38, -3.4028235e38, 0.5, 1.5, 2.5, -0.5, -1.5, 2.0**31,
                        -(2.0**31), 2.0**32, 2.0**63, 2.0**64, 127.5, 128.5, 255.5, 32767.5,
                        65535.5], np.float32)
    negative_nan = np.array([0xFFC00001, 0x7F800001, 0xFF800001], np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        v = np.unique(codes(dtype).astype(np.float64))
        v = v[np.isfinite(v)]
        mid = ((v[1:] + v[:-1]) / 2).astype(np.float32)
        edge = np.concatenate([v.astype(np.float32), mid, v[-1:].astype(np.float32) * 1.0625])
        up = np.nextafter(edge, np.float32(np.inf))
        down = np.nextafter(edge, np.float32(-np.inf))
    return np.concatenate([stride, special, negative_nan, edge, up, down])


def sources64(dtype):
    with np.errstate(all="ignore"):
        v = np.unique(codes(dtype).astype(np.float64))
        v = v[np.isfinite(v)]
        mid = (v[1:] + v[:-1]) / 2
        edge = np.concatenate([v, mid])
        tiny = np.concatenate([edge * (1 + 2.0**-40), edge * (1 - 2.0**-40)])
        up, down = np.nextafter(edge, np.inf), np.nextafter(edge, -np.inf)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e308, -1e308,
                        2.0**-150])
    return np.concatenate([edge, tiny, up, down, special])


def nearest_even(x, dtype):
    """Direct rounding of binary64 to a float type, by search among its values: neither we nor
    NumPy are trusted with double rounding."""
    all_codes = codes(dtype)
    with np.errstate(all="ignore"):
        vals = all_codes.astype(np.float64)
    keep = np.isfinite(vals) & ~np.signbit(vals)
    order = np.argsort(vals[keep], kind="stable")
    v, c = vals[keep][order], all_codes[keep][order]
    raw = c.view(f"u{c.dtype.itemsize}").astype(np.int64)
    a = np.abs(x)
    lo = np.clip(np.searchsorted(v, a, side="right") - 1, 0, len(v) - 1)
    hi = np.minimum(lo + 1, len(v) - 1)
    mid = (v[lo] + v[hi]) / 2
    pick = np.where((a > mid) | ((a == mid) & (raw[lo] % 2 == 1)), hi, lo)
    return v, c, pick


def check_narrow64(name, dtype):
    src = sources64(dtype)
    v, c, pick = nearest_even(src, dtype)
    step = v[-1] - v[-2]
    src_ok = np.isfinite(src) & (np.abs(src) < v[-1] + step / 2)
    x = src[src_ok]
    got = both("f64to", name, x, dtype)
    want = np.where(np.signbit(x), -v[pick[src_ok]], v[pick[src_ok]])
    compare(f"f64to {name}", x, got, want.astype(dtype))
    over = src[~src_ok]
    with np.errstate(all="ignore"):
        compare(f"f64to {name} (overflow)", over, both("f64to", name, over, dtype),
                over.astype(np.float32).astype(dtype))


def check_float(name, dtype):
    all_codes = codes(dtype)
    with np.errstate(all="ignore"):
        for how, wide in (("tof32", np.float32), ("tof64", np.float64)):
            compare(f"{how} {name}", all_codes, both(how, name, all_codes, wide),
                    all_codes.astype(wide))
        src = sources32(dtype)
        if name == "fp8e8m0":
            # ml_dtypes sends all of (2^-127, 2^-126) up; we go to the nearer one
            src = src[~((src > 2.0**-127) & (src < 1.5 * 2.0**-127))]
        check_exact(name, sources32(dtype))
        compare(f"f32to {name}", src, both("f32to", name, src, dtype), src.astype(dtype))
    if name == "fp32":
        src = np.concatenate([sources64(np.float16), sources64(np.float32)])
        with np.errstate(all="ignore"):
            compare("f64to fp32", src, both("f64to", name, src, dtype), src.astype(dtype))
    elif name == "fp8e8m0":  # no zero, no sign, halves go up: direct rule
        src = np.abs(sources64(dtype))
        src = src[np.isfinite(src) & (src > 0)]
        m, e = np.frexp(src)
        e = np.where(m >= 0.75, e, e - 1)
        want = np.where(e > 127, 255, np.clip(e, -127, 127) + 127).astype(np.uint8).view(dtype)
        compare("f64to fp8e8m0", src, both("f64to", name, src, dtype), want)
    else:
        check_narrow64(name, dtype)


def check_stochastic(name, dtype):
    """The neighbour farther from zero exactly when the random bits are below the distance."""
    src = sources32(dtype)
    with np.errstate(all="ignore"):
        v = np.unique(np.abs(codes(dtype).astype(np.float64)))
        v = v[np.isfinite(v)]
        top = v[-1] + (v[-1] - v[-2])  # one step beyond: what is rounded up to it overflows
    x = src[np.isfinite(src) & (np.abs(src.astype(np.float64)) < top)]
    a = np.abs(x.astype(np.float64))
    lo = np.searchsorted(v, a, side="right") - 1
    ext = np.append(v, top)
    frac = (a - ext[lo]) / (ext[lo + 1] - ext[lo])
    chance = np.floor(frac * 2.0**32)
    for bits in (chance - 1, chance, np.zeros_like(chance), np.full_like(chance, 2.0**32 - 1)):
        keep = (bits >= 0) & (bits < 2.0**32)
        b = bits[keep].astype(np.uint32)
        up = b < chance[keep]
        near = ext[lo[keep] + up]
        with np.errstate(all="ignore"):
            want = np.copysign(near, x[keep]).astype(np.float32).astype(dtype)
        pairs = np.stack([x[keep].view(np.uint32), b], axis=1)
        got = np.frombuffer(dump("f32sr", name, pairs), dtype)
        compare(f"f32sr {name}", x[keep], got, want)
    rest = src[~np.isfinite(src)]
    pairs = np.stack([rest.view(np.uint32), np.full(len(rest), 12345, np.uint32)], axis=1)
    with np.errstate(all="ignore"):
        compare(f"f32sr {name}", rest, np.frombuffer(dump("f32sr", name, pairs), dtype),
                rest.astype(dtype))


def check_tf32():
    src = sources32(np.float16)
    compare("tof32 tf32", src, both("tof32", "tf32", src, np.float32),
            exact.narrow("tf32", src.view(np.uint32)).view(np.float32))
    check_exact("tf32", src)
    # fp16 has the same significand: where fp16 is normal, tf32 rounds binary64 alike.
    x = sources64(np.float16)
    a = np.abs(x)
    x = x[(a >= 2.0**-14) & (a <= 65504)]
    compare("f64to tf32", x, both("f64to", "tf32", x, np.float32),
            x.astype(np.float16).astype(np.float32))


def saturate(x, dtype):
    lo, hi = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([0 if np.isnan(v) else lo if v <= lo else hi if v >= hi
                     else int(np.rint(np.float64(v))) for v in x.tolist()], dtype=dtype)


def check_int(name, dtype):
    all_codes = codes(dtype)
    lo, hi = np.iinfo(dtype).min, np.iinfo(dtype).max
    all_codes = np.concatenate([all_codes, np.array([lo, hi, 0, 1, hi - 1, lo + 1], dtype)])
    for how, wide in (("tof32", np.float32), ("tof64", np.float64)):
        compare(f"{how} {name}", all_codes, both(how, name, all_codes, wide),
                all_codes.astype(wide))
    rng = np.random.default_rng(7)
    near = np.array([lo, hi], np.float64)
    near = np.concatenate([near + d for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)])
    halves = np.arange(-300, 300) + 0.5
    scaled = np.concatenate([rng.normal(0, 2.0**s, 200) for s in range(0, 70)])
    x64 = np.concatenate([near, halves, scaled, [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0]])
    x32 = np.concatenate([x64.astype(np.float32, copy=True), sources32(np.float16)])
    compare(f"f64to {name}", x64, both("f64to", name, x64, dtype), saturate(x64, dtype))
    few = np.concatenate([x32[:len(x64)], x32[len(x64)::16]])
    compare(f"f32to {name}", few, both("f32to", name, few, dtype), saturate(few, dtype))
    check_exact(name, x32)


def check_exact(name, src):
    """By their bits, NaNs too."""
    bits = src.view(np.uint32)
    cell = exact.CELLS[name]
    compare_cells(f"f32to {name}", bits, both("f32to", name, src, cell), exact.narrow(name, bits))
    if name not in STOCHASTIC:
        return
    rng = np.random.default_rng(65537)
    for random in (np.zeros(len(bits), np.uint32), np.full(len(bits), 2**32 - 1, np.uint32),
                   rng.integers(0, 2**32, len(bits), np.uint32)):
        check_stochastic_codes(name, bits, random)


def check_stochastic_codes(name, bits, random):
    got = np.frombuffer(dump("f32sr", name, np.stack([bits, random], axis=1)), exact.CELLS[name])
    compare_cells(f"f32sr {name}", bits, got, exact.to_float_stochastic(name, bits, random))


def check_probability(name, count=1 << 20):
    """Uniform words give one of the two neighbours, the farther one as often as its distance
    says: within five standard deviations of a binomial, for a normal, a subnormal and an
    overflowing value."""
    global checks, failed
    frac, bias, top = exact.FORMS[name][:3]
    rng = np.random.default_rng(count)

    unit, small, large = (2.0**(e - frac) for e in (0, 1 - bias, (top >> frac) - bias))
    last = ((1 << frac) + (top & ((1 << frac) - 1))) * large
    for low, step, part in ((1.0, unit, 0.3), (small, small, 0.8), (last, large, 0.5)):
        x = np.float32(low + part * step)
        words = rng.integers(0, 2**32, count, np.uint32)
        pairs = np.stack([np.full(count, x.view(np.uint32)), words], axis=1)
        got = np.frombuffer(dump("f32sr", name, pairs), exact.CELLS[name])
        down, up = exact.to_float_stochastic(name, np.full(2, x.view(np.uint32)),
                                             np.array([2**32 - 1, 0], np.uint32))
        p = (np.float64(x) - low) / step
        ups = int((got == up).sum())
        checks += 1
        if down == up:  # e2m1 has nothing beyond its last value
            wrong = name != "fp4e2m1" or low != last or ups != count
        else:
            wrong = ups + int((got == down).sum()) != count or \
                abs(ups - count * p) > 5 * np.sqrt(count * p * (1 - p))
        if wrong:
            failed += 1
            print(f"f32sr {name}: {x!r} goes up {ups} times in {count}, not {p:.6f}")


def check_bool():
    x = np.array([0, -0.0, 1, 0.25, -3, np.nan, np.inf], np.float32)
    compare("f32to bool", x, both("f32to", "bool", x, np.uint8), (x != 0).astype(np.uint8))
    check_exact("bool", sources32(np.float16))
    b = np.arange(256, dtype=np.uint8)
    compare("tof32 bool", b, both("tof32", "bool", b, np.float32), (b != 0).astype(np.float32))


def saturate_all(x, dtype):
    """Nearest even, then the range; NaN is 0. For arrays."""
    info = np.iinfo(dtype)
    r = np.rint(np.where(np.isnan(x), np.float32(0), x))
    low, high = r <= np.float64(info.min), r >= np.float64(info.max)
    inside = np.where(low | high, np.float32(0), r).astype(dtype)
    return np.where(low, dtype(info.min), np.where(high, dtype(info.max), inside))


def narrowed(name, src):
    """What NumPy and ml_dtypes make of binary32 values."""
    with np.errstate(all="ignore"):
        if name in INTS:
            return saturate_all(src, INTS[name])
        if name == "bool":
            return (src != 0).astype(np.uint8)
        return src.astype(FLOATS[name])


def numpy_differs(name, x, g):
    """NaN may differ in what it carries."""
    want = narrowed(name, x)
    if name == "fp8e8m0":  # see check_float
        keep = ~((x > 2.0**-127) & (x < 1.5 * 2.0**-127))
        x, g, want = x[keep], g[keep], want[keep]
    if g.tobytes() != want.tobytes():
        compare(f"f32to {name}", x, g.view(want.dtype), want)


def range_differs(name, first, count):
    """Narrows `count` codes of one exponent and sign. Where cells repeat, both oracles are asked at
    both ends of every run of equal cells: such codes ascend in magnitude and so do the oracles'
    answers (an infinity comes before all NaNs and those are alike), so equal ends mean an equal
    run. Else they are asked about every code."""
    global failed
    each = name in ("fp32", "i32", "u32", "i64", "u64") and 143 <= first >> 23 & 255 < 190
    done = subprocess.run([DUMP, "f32range" if each else "f32runs", name, str(first), str(count)],
                          stdout=subprocess.PIPE)
    if done.returncode:
        failed += 1
        print(f"f32to {name}: from {first:#x} on the dump ends with {done.returncode}")
        return
    if each:
        got = np.frombuffer(done.stdout, exact.CELLS[name])
        at = np.arange(first, first + count, dtype=np.uint32)
    else:
        run = np.frombuffer(done.stdout, np.uint64).reshape(-1, 2)
        cell = run[:, 1].astype(exact.CELLS[name])
        last = np.append(run[1:, 0], np.uint64(first + count)) - np.uint64(1)
        at, got = np.append(run[:, 0], last).astype(np.uint32), np.append(cell, cell)
    for k in range(0, len(at), 1 << 16):
        bits, g = at[k:k + (1 << 16)], got[k:k + (1 << 16)]
        compare_cells(f"f32to {name}", bits, g, exact.narrow(name, bits))
        if name != "tf32":
            numpy_differs(name, bits.view(np.float32), g)


def widen_all(name, bits):
    """One part of the codes of a 32-bit type; tf32 codes need not be rounded ones."""
    dtype = {"tf32": np.float32, **FLOATS, **INTS}[name]
    src = bits.view(dtype)
    want = (exact.narrow("tf32", bits).view(np.float32) if name == "tf32" else
            src.astype(np.float32))
    got = both("tof32", name, src, np.float32)
    if got.tobytes() != want.tobytes():
        compare(f"tof32 {name}", src, got, want)


def exhaustive(names):
    rng = np.random.default_rng(32)
    step, low = 1 << 23, np.arange(1 << 23, dtype=np.uint32)
    for name in names:
        before, start, many = failed, time.monotonic(), 0
        for high in range(512):
            range_differs(name, high * step, step)
            bits = low + np.uint32(high * step)
            if name in ("i32", "u32", "tf32", "fp32"):
                widen_all(name, bits)
            if name in STOCHASTIC:  # one code in 257, a random word each
                some = bits[high % 257::257]
                many += len(some)
                check_stochastic_codes(name, some, rng.integers(0, 2**32, len(some), np.uint32))
        print(f"{name}: 4294967296 binary32 codes narrowed, {many} stochastically, "
              f"{failed - before} differ, {time.monotonic() - start:.0f} s", flush=True)
    return 1 if failed else 0


if "--exhaustive" in sys.argv:
    sys.exit(exhaustive(sys.argv[3:] or [*exact.CELLS]))
with np.errstate(all="ignore"):
    for n, t in FLOATS.items():
        check_float(n, t)
        if n not in ("fp32", "fp8e8m0"):
            check_stochastic(n, t)
    check_tf32()
    for n in STOCHASTIC:
        check_probability(n)
    for n, t in INTS.items():
        check_int(n, t)
    check_bool()
print(f"{checks} checks, {failed} failed")
sys.exit(1 if failed or checks < 4_000_000 else 0)

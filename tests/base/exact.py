"""Conversions of binary32 codes by integer arithmetic alone: a second opinion beside NumPy and
ml_dtypes, and the only one where those do something else than num.h says (integers out of range,
NaN to an integer, small e8m0, tf32, stochastic rounding).

A binary32 code is sign and M * 2^(X - 150) with M < 2^24 and X >= 1. Codes are arrays; X and the
sign may be single numbers, which is what makes all 2^32 codes affordable: 2^23 successive codes
share them."""
import numpy as np

# fraction bits, bias, largest finite code, code of an overflow, code of NaN, bits of a cell's
# magnitude, bits that the cell has below the code. The magnitudes are those of num.c, which took
# them from the OCP specifications and ml_dtypes.
FORMS = {
    "bf16": (7, 127, 0x7F7F, 0x7F80, 0x7FC0, 15, 0),
    "fp16": (10, 15, 0x7BFF, 0x7C00, 0x7E00, 15, 0),
    "tf32": (10, 127, 0x3FBFF, 0x3FC00, 0x3FE00, 18, 13),
    "fp8e3m4": (4, 3, 0x6F, 0x70, 0x78, 7, 0),
    "fp8e4m3": (3, 7, 0x77, 0x78, 0x7C, 7, 0),
    "fp8e4m3fn": (3, 7, 0x7E, 0x7F, 0x7F, 7, 0),
    "fp8e5m2": (2, 15, 0x7B, 0x7C, 0x7E, 7, 0),
    "fp4e2m1": (1, 1, 7, 7, None, 3, 0),
}
CELLS = {"bf16": "u2", "fp16": "u2", "tf32": "u4", "fp32": "u4", "bool": "u1", "fp8e3m4": "u1",
         "fp8e4m3": "u1", "fp8e4m3fn": "u1", "fp8e5m2": "u1", "fp8e8m0": "u1", "fp4e2m1": "u1",
         "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
         "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}


def split(bits):
    """Sign, M, X, and whether the exponent is the one of infinities and NaN; single numbers
    where all codes agree."""
    high = bits >> np.uint32(23)
    if len(high) and high[0] == high[-1] and bool((high == high[0]).all()):
        high = int(high[0])
    sign, x = high >> 8, high & 255
    m = (bits & np.uint32(0x7FFFFF)).astype(np.int64)
    m += (np.asarray(x) > 0).astype(np.int64) << 23
    return sign, m, np.maximum(np.asarray(x, np.int64), 1), x == 255


def shifted(m, s):
    """M / 2^s and what is left over, for s >= 0; beyond 25 bits nothing of M counts."""
    s = np.minimum(s, 25)
    q = m >> s
    return q, m - (q << s), s


def nearest_even(m, s):
    q, rest, s = shifted(m, s)
    half = (1 << s) >> 1  # 0 when nothing is dropped, and then nothing is left either
    return q + ((rest > half) | ((rest == half) & (rest > 0) & (q & 1 == 1)))


def assembled(name, sign, m, x, special, least, q):
    """Cells of magnitudes q in steps of the format at exponents `least`."""
    frac, bias, top, over, nan, width, below = FORMS[name]
    code = ((least + bias - 1) << frac) + q
    code = np.where(code > top, over, code)
    is_nan = special & (m > 1 << 23)
    code = np.where(special, over, code)
    if nan is None:  # nothing to give: a zero of the opposite sign, as ml_dtypes
        code, sign = np.where(is_nan, 0, code), sign ^ is_nan
    else:
        code = np.where(is_nan, nan, code)
    return ((code | (sign << width)) << below).astype(CELLS[name])


def steps(name, x):
    """The exponent whose steps the format takes there, and the bits of M below such a step."""
    frac, bias = FORMS[name][:2]
    least = np.maximum(x - 127, 1 - bias)
    return least, least - frac - x + 150


def to_float(name, bits):
    sign, m, x, special = split(bits)
    least, s = steps(name, x)
    return assembled(name, sign, m, x, special, least, nearest_even(m, s))


def to_float_stochastic(name, bits, random):
    """Away from zero when random / 2^32 is less than what is left over / one step."""
    sign, m, x, special = split(bits)
    least, s = steps(name, x)
    far = s > 25
    q = np.where(far, 0, m >> np.minimum(s, 25))
    rest = m - (q << np.minimum(s, 25))
    # floor(rest * 2^32 / 2^s): rest < 2^25, so the product fits
    chance = (rest << 32 - 8) >> np.clip(s - 8, 0, 62)
    chance = np.where(s < 8, (rest << 32) >> np.minimum(s, 8), chance)
    return assembled(name, sign, m, x, special, least, q + (random < chance))


def to_e8m0(bits):
    sign, m, x, special = split(bits)
    code = np.where(m < 1 << 23, m >= 3 << 21, x + (m - (1 << 23) >= 1 << 22))
    bad = (m == 0) | (np.asarray(sign) == 1) | special
    return np.where(bad, 255, code).astype("u1")


def to_int(name, bits):
    """Nearest even, then the range of the type; NaN is 0."""
    info = np.iinfo(CELLS[name])
    sign, m, x, special = split(bits)
    small = nearest_even(m, np.maximum(150 - x, 0))
    # Above 2^24 nothing is rounded. A magnitude of 2^63 and more is out of range, but for u64:
    # 64 bits without sign hold what is below 2^64.
    up = np.maximum(x - 150, 0)
    fits = up <= 40
    large = m.astype(np.uint64) << np.minimum(up, 40).astype(np.uint64)
    mag = np.where(x < 150, small.astype(np.uint64), large)
    limit = np.where(sign, np.uint64(-int(info.min)), np.uint64(info.max))
    mag = np.where(fits & ~np.asarray(special), np.minimum(mag, limit), limit)
    mag = np.where(special & (m > 1 << 23), np.uint64(0), mag)
    return np.where(sign, np.uint64(0) - mag, mag).astype(CELLS[name])


def to_fp32(bits):
    return bits


def to_bool(bits):
    return (bits & np.uint32(0x7FFFFFFF) != 0).astype("u1")


def narrow(name, bits):
    """Cells of the type `name` for binary32 codes, to nearest even."""
    if name in FORMS:
        return to_float(name, bits)
    whole = {"fp8e8m0": to_e8m0, "fp32": to_fp32, "bool": to_bool}.get(name)
    return whole(bits) if whole else to_int(name, bits)

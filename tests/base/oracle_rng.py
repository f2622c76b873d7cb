"""The definition of seeded inputs, written down a second time from its text and with libm's log
and cos beside it: our streams must equal the definition bit for bit, and libm closely.
usage: oracle_rng.py BASE_DUMP
"""
import math
import struct
import subprocess
import sys

MASK = (1 << 64) - 1


def mix(x):
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


class Stream:
    def __init__(self, seed, index):
        self.s = mix((mix(seed) + index + 1) & MASK)

    def next(self):
        self.s = (self.s + 0x9E3779B97F4A7C15) & MASK
        return mix(self.s)

    def uniform(self):
        return (self.next() >> 11) * 2.0**-53

    def below(self, bound):
        while True:
            p = self.next() * bound
            if (p & MASK) >= (1 << 64) % bound:
                return p >> 64

    def normal(self):
        u, v = 1 - self.uniform(), 1 - self.uniform()
        libm = math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)
        return math.sqrt(-2 * log(u)) * cos2pi(v), libm


def log(x):
    m, e = math.frexp(x)
    m, e = 2 * m, e - 1
    if m >= 1.4142135623730951:
        m, e = m / 2, e + 1
    t = (m - 1) / (m + 1)
    z, p = t * t, 1 / 25
    for k in range(23, 0, -2):
        p = p * z + 1 / k
    return e * 0.6931471805599453 + 2 * t * p


def cos2pi(v):
    k = math.floor(4 * v + 0.5)
    r = (v - k / 4) * 6.283185307179586
    z, odd = r * r, k % 2
    p = 1 / math.factorial(16 + odd)
    for i in range(7, -1, -1):
        p = 1 / math.factorial(2 * i + odd) - p * z
    p = p * r if odd else p
    return -p if k % 4 in (1, 2) else p


bad = 0
for seed, index in ((0, 0), (1, 0), (0, 1), (42, 7), (MASK, MASK), (123456789, 3)):
    n = 2000
    out = subprocess.run([sys.argv[1], "rng", str(seed), str(index), str(n)],
                         stdout=subprocess.PIPE, check=True).stdout
    got = struct.unpack(f"<{2 * n}d{n}Q", out)
    s = Stream(seed, index)
    for i in range(3 * n):
        if i < n:
            ours, libm = s.normal()
            ok = got[i] == ours and abs(ours - libm) < 1e-14
        else:
            ok = got[i] == (s.uniform() if i < 2 * n else s.below(1000))
        bad += not ok
        if not ok and bad < 10:
            print(f"seed {seed} index {index}: value {i} is {got[i]!r}")
print(f"{18 * n} checks, {bad} failed")
sys.exit(bool(bad))

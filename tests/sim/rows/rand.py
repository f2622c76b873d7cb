"""Random generators: their states are set first, so that the numbers are known. The algorithms are
the published ones; how an instruction uses them is a choice of the model (MODEL.md)."""
import numpy as np

from harness import DTYPES, TARGETS, Case, cast, f32

A, O, Q = 0, 0x4000, 0x6000
R, N = 8, 24
M = 0xFFFFFFFF
rng = np.random.default_rng(4)


class Lfsr:
    def __init__(self, words):
        self.x = words[0]

    def next(self):
        for _ in range(32):
            bit = (self.x ^ self.x >> 10 ^ self.x >> 30 ^ self.x >> 31) & 1
            self.x = self.x >> 1 | bit << 31
        return self.x

    def words(self):
        return [self.x]


class Xorwow:
    def __init__(self, words):
        self.x = list(words)

    def next(self):
        x, y, z, w, v, d = self.x
        t = (x ^ x >> 2) & M
        v2 = (v ^ v << 4 ^ t ^ t << 1) & M
        d = d + 362437 & M
        self.x = [y, z, w, v, v2, d]
        return v2 + d & M

    def words(self):
        return self.x


class Turns:
    """The four states of the vector engine."""

    def __init__(self, words):
        self.states, self.at = [Xorwow(words[k:k + 6]) for k in range(0, 24, 6)], 0

    def next(self):
        s = self.states[self.at]
        self.at = (self.at + 1) % 4
        return s.next()

    def words(self):
        return [w for s in self.states for w in s.words()]


class Pcg:
    def __init__(self, words):
        self.s = words[1] << 32 | words[0]

    def next(self):
        old = self.s
        self.s = (old * 0x5851F42D4C957F2D + 0x14057B7EF767814F) & (1 << 64) - 1
        x, by = ((old >> 18 ^ old) >> 27) & M, old >> 59
        return (x >> by | x << (-by & 31)) & M

    def words(self):
        return [self.s & M, self.s >> 32]


class Philox:
    def __init__(self, words):
        self.c = sum(w << 32 * k for k, w in enumerate(words[:4]))
        self.k, self.at = words[4:6], words[6]

    def block(self):
        c = [self.c >> 32 * k & M for k in range(4)]
        k0, k1 = self.k
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [q >> 32 ^ c[1] ^ k0, q & M, p >> 32 ^ c[3] ^ k1, p & M]
            k0, k1 = k0 + 0x9E3779B9 & M, k1 + 0xBB67AE85 & M
        return c

    def next(self):
        w = self.block()[self.at]
        self.at = (self.at + 1) % 4
        if self.at == 0:
            self.c = (self.c + 1) % (1 << 128)
        return w

    def words(self):
        return [self.c >> 32 * k & M for k in range(4)] + list(self.k) + [self.at]


# engine, generation: the class, the generator's number, words of state
GENERATORS = {
    ("dve", "v2"): (Lfsr, 0, 1), ("dve", "v3"): (Lfsr, 0, 1), ("dve", "v4"): (Turns, 1, 24),
    ("pool", "v2"): (Lfsr, 0, 1), ("pool", "v3"): (Xorwow, 1, 6), ("pool", "v4"): (Xorwow, 1, 6),
}


def seeds(words, r=R):
    s = rng.integers(1, M, (r, words), dtype=np.uint32)
    return s


def load(case, engine, state, generator):
    """RAND_SET_STATE from memory."""
    return case.put(A, state).insn(
        engine, f"RAND_SET_STATE ch={len(state)} "
        f"update_state=SRC_TENSOR src=u32@sbuf[p0][1][{state.shape[1]}] "
        f"rand_generator={generator}")


def stream(kind, state, n):
    """n numbers of each lane, and the states after them."""
    lanes = [kind([int(w) for w in row]) for row in state]
    y = np.array([[g.next() for _ in range(n)] for g in lanes], np.uint32)
    return y, np.array([g.words() for g in lanes], np.uint32)


def names(k):
    return ("LFSR", "XORWOW", "PHILOX", "OUTPUT_CVT_LFSR")[k]


def generators():
    for (engine, gen), (kind, number, words) in GENERATORS.items():
        state = seeds(words)
        y, after = stream(kind, state, N)
        target = TARGETS[gen]
        for d, mask in (("u32", M), ("u16", 0xFFFF), ("u8", 0xFF)):
            yield (load(Case(f"RNG/{engine}-{gen}-{d}", target), engine, state, names(number))
                   .insn(engine, f"RNG dst_element_count={N} ch={R} dst={d}@sbuf[p0+{O:#x}][1][{N}]")
                   .want(O, (y & mask).astype(d.replace("u", "uint"))))
        yield (load(Case(f"RAND_GET_STATE/{engine}-{gen}", target), engine, state, names(number))
               .insn(engine, f"RNG dst_element_count={N} ch={R} dst=u32@sbuf[p0+{O:#x}][1][{N}]")
               .insn(engine, f"RAND_GET_STATE rand_generator={names(number)} ch={R} "
                     f"dst=u32@sbuf[p0+{Q:#x}][1][{words}]").want(Q, after))
    for engine, generator, words in (("act", "LFSR", 2), ("dve", "PHILOX", 7),
                                     ("dve", "OUTPUT_CVT_LFSR", 1), ("pool", "PHILOX", 7)):
        state = seeds(words)
        yield (load(Case(f"RAND_SET_STATE/{engine}-{generator}"), engine, state, generator)
               .insn(engine, f"RAND_GET_STATE rand_generator={generator} ch={R} "
                     f"dst=u32@sbuf[p0+{Q:#x}][1][{words}]").want(Q, state))
    for target in ("trn1", "trn3"):
        state = seeds(1)
        yield (load(Case("RAND_SET_STATE/lfsr", target), "dve", state, "LFSR")
               .insn("dve", f"RAND_GET_STATE rand_generator=LFSR ch={R} "
                     f"dst=u32@sbuf[p0+{Q:#x}][1][1]").want(Q, state))
    imm = [11, 22, 33, 44, 55, 66]
    for update, step in (("IMM_SINGLE", 0), ("IMM_LANE", 1)):
        one = np.tile(np.array(imm, np.uint32), (R, 1))
        one[:, 0] += (np.arange(R) * step).astype(np.uint32)
        yield (Case(f"RAND_SET_STATE/{update}")
               .insn("pool", f"RAND_SET_STATE rand_algorithm=XORWOW ch={R} update_state={update} "
                     f"rand_generator=XORWOW imm_state={imm}".replace(", ", ","))
               .insn("pool", f"RAND_GET_STATE rand_generator=XORWOW ch={R} "
                     f"dst=u32@sbuf[p0+{Q:#x}][1][6]").want(Q, one))


def older():
    for target in TARGETS.values():
        yield from older_on(target)


def older_on(target):
    for name, kind, generator, words in (("LFSR", Lfsr, "LFSR", 1), ("PHILOX", Philox, "PHILOX", 7),
                                         ("XORWOW", Turns, "XORWOW", 24)):
        if name == "XORWOW" and target == "trn1":
            continue
        state = seeds(words)
        if name == "PHILOX":
            state[:, 6] %= 4
            state[0, 0:2] = M
        y, _ = stream(kind, state, 3 * N)
        for steps in (0, 2):
            take = y[:, steps::steps + 1][:, :N]
            yield (load(Case(f"RAND/{name}-{steps}", target), "dve", state, generator)
                   .insn("dve", f"RAND rand_algorithm={name} rand_num_steps={steps} ch={R} "
                         f"dst=u32@sbuf[p0+{O:#x}][1][{N}]").want(O, take))
    yield Case("RAND/range", target, fails="E8202").insn(
        "dve", f"RAND post_process=UNIFORM_IN_RANGE ch={R} dst=u32@sbuf[p0+{O:#x}][1][{N}]")
    state = seeds(2)
    y, _ = stream(Pcg, state, N)
    yield (load(Case("RAND_SET_STATE/pcg", target), "act", state, "LFSR")
           .insn("act", f"RAND_GET_STATE rand_generator=LFSR ch={R} "
                 f"dst=u32@sbuf[p0+{Q:#x}][1][2]").want(Q, state))


def ranges():
    state = seeds(24)
    y, _ = stream(Turns, state, N)
    u = (y & 0x7FFFFF | 0x3F800000).view(f32) - f32(1)
    for d in ("fp32", "bf16", "fp8e5m2"):
        v = f32(-2) + (f32(3) - f32(-2)) * u
        yield (load(Case(f"RAND2/{d}", "trn3"), "dve", state, "XORWOW")
               .insn("dve", f"RAND2 rand_algorithm=XORWOW post_process=UNIFORM_IN_RANGE ch={R} "
                     f"min=-2.0 max=3.0 dst={d}@sbuf[p0+{O:#x}][1][{N}]").want(O, cast(v, d)))
    for target, (kind, number, words) in (("trn1", GENERATORS["dve", "v2"]),
                                          ("trn2", GENERATORS["dve", "v3"]),
                                          ("trn3", GENERATORS["dve", "v4"])):
        state = seeds(words)
        y, _ = stream(kind, state, N)
        u = (((y >> 8).astype(np.float64) + 0.5) * 2.0**-24).astype(f32)
        v = rng.standard_normal((R, N)).astype(f32)
        for how, keep in (("DROP_RATE", u > f32(0.25)), ("KEEP_RATE", u < f32(0.25))):
            c = Case(f"DROPOUT/{target}-{how}", target).put(0x1000, v)
            yield (load(c, "dve", state, names(number))
                   .insn("dve", f"DROPOUT src=fp32@sbuf[p0+0x1000][1][{N}] ch={R} "
                         f"threshold_type={how} threshold=fp32@0.25 "
                         f"dst=fp32@sbuf[p0+{O:#x}][1][{N}]").want(O, np.where(keep, v, f32(0))))


def seed():
    for target in TARGETS.values():
        yield from seed_on(target)


def seed_on(target):
    """A seed repeats: the numbers after it are those after it the second time."""
    draw = f"RNG dst_element_count=1 ch={R} dst=u32@sbuf[p0+{{:#x}}][1][1]"
    c = Case("PSEUDO_SET_RNG_SEED", target)
    for k in (0, 4):
        c.insn("dve", "PSEUDO_SET_RNG_SEED seed=77").insn("dve", draw.format(O + k))
    equal = f"TENSOR_TENSOR_ARITH op=is_eq ch={R} src0=u32@sbuf[p0+{O:#x}][1][1] " \
        f"src1=u32@sbuf[p0+{O + 4:#x}][1][1] dst=u8@sbuf[p0+{Q:#x}][1][1]"
    c.insn("dve", equal)
    yield c.want(Q, np.ones((R, 1), np.uint8))
    c = Case("PSEUDO_SET_RNG_SEED/other", target)
    for k, s in ((0, 77), (4, 78)):
        c.insn("dve", f"PSEUDO_SET_RNG_SEED seed={s}").insn("dve", draw.format(O + k))
    yield c.insn("dve", equal).want(Q, np.zeros((R, 1), np.uint8))


def between(v, dtype, bits):
    """Stochastic rounding: the neighbour farther from zero when the random word is below the
    distance from the nearer one, in parts of 2^32."""
    down = np.abs(v).astype(DTYPES[dtype])
    wide = down.astype(np.float64)
    down = np.where(wide > np.abs(v), np.nextafter(down, DTYPES[dtype](0)), down)
    up = np.nextafter(down, DTYPES[dtype](np.inf))
    lo, hi = down.astype(np.float64), up.astype(np.float64)
    chance = np.floor((np.abs(v) - lo) / (hi - lo) * 2.0**32)
    y = np.where(bits < chance, up, down)
    return np.copysign(y, v.astype(DTYPES[dtype]))


def rounding():
    """One word of the lane's rounding generator for each element, in order."""
    v = (rng.standard_normal((R, N)) * 3).astype(f32)
    v[:, 0] = 1.5  # exact stays
    state = seeds(1)
    bits, _ = stream(Lfsr, state, N)
    for engine, text in (("dve", "CAST src={} ch={} dst={}"), ("pool", "CAST src={} ch={} dst={}"),
                         ("act", "ACTIVATE identity src={} ch={} scale=1.0 bias=fp32@0.0 dst={}")):
        for d in ("bf16", "fp16", "fp8e5m2", "fp8e4m3"):
            c = Case(f"{text.split()[0]}/stochastic-{engine}-{d}").seed(9).put(0x1000, v)
            c = load(c, engine, state, "OUTPUT_CVT_LFSR")
            c.insn(engine, text.format(f"fp32@sbuf[p0+0x1000][1][{N}]", R,
                                       f"{d}@sbuf[p0+{O:#x}][1][{N}]"))
            yield c.want(O, between(v, d, bits))
    c = Case("CAST/stochastic-int").seed(9).put(0x1000, v)  # integers round to nearest even
    yield (load(c, "dve", state, "OUTPUT_CVT_LFSR")
           .insn("dve", f"CAST src=fp32@sbuf[p0+0x1000][1][{N}] ch={R} "
                 f"dst=i8@sbuf[p0+{O:#x}][1][{N}]").want(O, cast(v, "i8")))


def cases():
    for group in (generators, older, ranges, seed, rounding):
        yield from group()

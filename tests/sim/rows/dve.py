"""Vector engine: two tensors, tensor and scalars, predicates, reductions, searches."""
import numpy as np

from harness import DTYPES, INTS, TARGETS, Case, cast, f32, wide

A, B, C, O, Q = 0, 0x1000, 0x2000, 0x4000, 0x6000
R, N = 32, 40  # partitions, elements
rng = np.random.default_rng(20)

SPECIAL = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, -3.4e38, 0.5, 2.5],
                   np.float32)


def floats(n=N, r=R, scale=4.0):
    return (rng.standard_normal((r, n)) * scale).astype(np.float32)


def odd(n=N, r=R):
    """Values with every special one among them."""
    v = floats(n, r)
    v.ravel()[:: 3][: v.size // 3] = np.resize(SPECIAL, v.ravel()[:: 3][: v.size // 3].shape)
    return v


def values(dtype, n=N, r=R):
    if dtype in INTS:
        info = np.iinfo(DTYPES[dtype])
        v = rng.integers(info.min, info.max, (r, n), dtype=DTYPES[dtype], endpoint=True)
        v[0, 0], v[-1, -1] = info.min, info.max
        return v
    return cast(odd(n, r), dtype)


def t(dtype, byte, n=N, pattern=None, part=0):
    return f"{dtype}@sbuf[p{part}+{byte:#x}]{pattern or f'[1][{n}]'}"


def logic(v):
    return np.asarray(v).astype(np.float32)


def pick_max(a, b):  # NaN of either side stays
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, np.where(a > b, a, b)))


def pick_min(a, b):
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, np.where(a < b, a, b)))


ARITH = {
    "bypass": lambda a, b: a,
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "mult": lambda a, b: a * b,
    "max": pick_max, "min": pick_min,
    "logical_and": lambda a, b: logic((a != 0) & (b != 0)),
    "logical_or": lambda a, b: logic((a != 0) | (b != 0)),
    "logical_xor": lambda a, b: logic((a != 0) ^ (b != 0)),
    "is_eq": lambda a, b: logic(a == b), "is_ne": lambda a, b: logic(a != b),
    "is_gt": lambda a, b: logic(a > b), "is_ge": lambda a, b: logic(a >= b),
    "is_le": lambda a, b: logic(a <= b), "is_lt": lambda a, b: logic(a < b),
    "abs_diff": lambda a, b: np.abs(a - b), "abs_value": lambda a, b: np.abs(a),
}
V4 = {
    "abs_max": lambda a, b: pick_max(np.abs(a), np.abs(b)),
    "abs_min": lambda a, b: pick_min(np.abs(a), np.abs(b)),
    "relu": lambda a, b: pick_max(a, f32(0)), "square": lambda a, b: a * a,
}


def shift(kind, a, b, bits):
    """Shifts of unsigned words; at the width and beyond nothing is left."""
    far = b >= bits
    k = np.where(far, 0, b).astype(a.dtype)
    if kind == "left":
        return np.where(far, 0, a << k).astype(a.dtype)
    if kind == "right":
        return np.where(far, 0, a >> k).astype(a.dtype)
    s = a.view(f"i{a.dtype.itemsize}")
    return (s >> np.where(far, bits - 1, k).astype(s.dtype)).view(a.dtype)


BITS = {
    "bitwise_and": lambda a, b, w: a & b, "bitwise_or": lambda a, b, w: a | b,
    "bitwise_xor": lambda a, b, w: a ^ b, "bitwise_not": lambda a, b, w: ~a,
    "logical_shift_left": lambda a, b, w: shift("left", a, b, w),
    "logical_shift_right": lambda a, b, w: shift("right", a, b, w),
    "arith_shift_left": lambda a, b, w: shift("left", a, b, w),
    "arith_shift_right": lambda a, b, w: shift("arith", a, b, w),
}


def two_tensors():
    for op, fn in list(ARITH.items()) + list(V4.items()):
        v, w = odd(), np.roll(odd(), 7, axis=1)
        with np.errstate(all="ignore"):
            y = fn(v, w)
        yield (Case(f"TENSOR_TENSOR_ARITH/{op}", "trn3" if op in V4 else "trn2")
               .put(A, v).put(B, w)
               .insn("dve", f"TENSOR_TENSOR_ARITH op={op} ch={R} src0={t('fp32', A)} "
                     f"src1={t('fp32', B)} dst={t('fp32', O)}").want(O, y))
    for d0, d1, d2 in (("bf16", "fp32", "bf16"), ("fp16", "u8", "i16"), ("i8", "u16", "fp32"),
                       ("fp8e4m3", "fp8e5m2", "fp8e3m4"), ("i32", "u32", "i32"),
                       ("bf16", "bf16", "u8"), ("u32", "fp32", "fp16")):
        v, w = values(d0), values(d1)
        with np.errstate(all="ignore"):
            y = cast(wide(v) + wide(w), d2)
        yield (Case(f"TENSOR_TENSOR_ARITH/{d0}-{d1}-{d2}").put(A, v).put(B, w)
               .insn("dve", f"TENSOR_TENSOR_ARITH op=add ch={R} src0={t(d0, A)} src1={t(d1, B)} "
                     f"dst={t(d2, O)}").want(O, y))
    # comparisons give 1.0 and 0.0 in the type of the result
    for d in ("bf16", "fp8e4m3", "u8", "i32"):
        v, w = odd(), odd()
        yield (Case(f"TENSOR_TENSOR_ARITH/is_ge-{d}").put(A, v).put(B, w)
               .insn("dve", f"TENSOR_TENSOR_ARITH op=is_ge ch={R} src0={t('fp32', A)} "
                     f"src1={t('fp32', B)} dst={t(d, O)}").want(O, cast(logic(v >= w), d)))
    # a 32-bit integer that fp32 does not hold goes to its nearest even neighbour when it is read
    v = (np.arange(R * N).reshape(R, N) * 3 + (1 << 24) - 50).astype(np.int32)
    yield (Case("TENSOR_TENSOR_ARITH/i32-above-2^24").put(A, v).put(B, np.zeros((R, N), f32))
           .insn("dve", f"TENSOR_TENSOR_ARITH op=add ch={R} src0={t('i32', A)} "
                 f"src1={t('fp32', B)} dst={t('i32', O)}")
           .want(O, v.astype(np.float32).astype(np.int32)))
    for d in ("u8", "u16", "u32", "i8", "i32"):
        for op, fn in BITS.items():
            v, w = values(d), values(d)
            bits = v.dtype.itemsize * 8
            if "shift" in op:
                if d[0] == "i" or (op == "arith_shift_right" and bits != 32):
                    continue
                w = (w % (bits + 3)).astype(w.dtype)
            yield (Case(f"TENSOR_TENSOR_BITVEC/{op}-{d}").put(A, v).put(B, w)
                   .insn("dve", f"TENSOR_TENSOR_BITVEC op={op} ch={R} src0={t(d, A)} "
                         f"src1={t(d, B)} dst={t(d, O)}").want(O, fn(v, w, bits)))
    # 32-bit integers on GpSimd are integers
    for op, fn in (("add", np.add), ("subtract", np.subtract), ("mult", np.multiply)):
        for d in ("i32", "u32"):
            v, w = values(d), values(d)
            with np.errstate(all="ignore"):
                y = fn(v, w)
            yield (Case(f"TENSOR_TENSOR_ARITH/pool-{op}-{d}").put(A, v).put(B, w)
                   .insn("pool", f"TENSOR_TENSOR_ARITH op={op} ch={R} src0={t(d, A)} "
                         f"src1={t(d, B)} dst={t(d, O)}").want(O, y))
    ints = {"add_int": np.add, "sub_int": np.subtract, "mult_int": np.multiply,
            "max_int": np.maximum, "min_int": np.minimum,
            "abs_diff_int": lambda a, b: np.abs(a.astype(np.int64) - b).astype(np.int32),
            "eq_int": lambda a, b: (a == b).astype(np.int32),
            "lt_int": lambda a, b: (a < b).astype(np.int32)}
    for op, fn in ints.items():
        v, w = values("i32"), values("i32")
        w[:, ::4] = v[:, ::4]
        with np.errstate(all="ignore"):
            y = fn(v, w)
        early = op in ("add_int", "sub_int", "mult_int")  # the others exist from v3
        for target in (None,) if early else ("trn2", "trn3"):
            yield (Case(f"TENSOR_TENSOR_ARITH/{op}", target).put(A, v).put(B, w)
                   .insn("pool", f"TENSOR_TENSOR_ARITH op={op} ch={R} src0={t('i32', A)} "
                         f"src1={t('i32', B)} dst={t('i32', O)}").want(O, y))
    v, w = np.abs(floats()), floats()
    y = np.array([[np.float32(float(a) ** float(b)) for a, b in zip(r, s)]
                  for r, s in zip(v, w)])
    yield (Case("TENSOR_TENSOR_ARITH/pow", ulp=1).put(A, v).put(B, w)
           .insn("pool", f"TENSOR_TENSOR_ARITH op=pow ch={R} src0={t('fp32', A)} "
                 f"src1={t('fp32', B)} dst={t('fp32', O)}").want(O, y))
    for op, fn in (("divide", np.divide), ("mod", np.mod)):
        v, w = floats(), floats()
        yield (Case(f"TENSOR_TENSOR_ARITH/{op}").put(A, v).put(B, w)
               .insn("pool", f"TENSOR_TENSOR_ARITH op={op} ch={R} src0={t('fp32', A)} "
                     f"src1={t('fp32', B)} dst={t('fp32', O)}").want(O, fn(v, w)))
    # one operand backwards, one broadcast, the output strided
    v, w = floats(), floats(4)
    yield (Case("TENSOR_TENSOR_ARITH/patterns").put(A, v).put(B, w).put(O, np.zeros((R, 2 * N), f32))
           .insn("dve", f"TENSOR_TENSOR_ARITH op=mult ch={R} "
                 f"src0={t('fp32', A + 4 * (N - 1), 0, f'[-1][{N}]')} "
                 f"src1={t('fp32', B, 0, '[0,1][10,4]')} dst={t('fp32', O, 0, f'[2][{N}]')}")
           .want(O, np.stack([v[:, ::-1] * np.repeat(w, 10, axis=1), np.zeros((R, N), f32)],
                             axis=2).reshape(R, 2 * N)))


def bf16_pool():
    for row, fn in (("ADD", np.add), ("MULT", np.multiply), ("SUB", np.subtract)):
        v, w = values("bf16"), values("bf16")
        with np.errstate(all="ignore"):
            y = cast(fn(wide(v), wide(w)), "bf16")
        yield (Case(f"TENSOR_TENSOR_{row}_BF16", "trn1").put(A, v).put(B, w)
               .insn("pool", f"TENSOR_TENSOR_{row}_BF16 ch={R} src0={t('bf16', A)} "
                     f"src1={t('bf16', B)} dst={t('bf16', O)}").want(O, y))
    for row in ("ADD", "MAX"):
        v = cast(floats(), "bf16")
        x = wide(v).reshape(R, 8, 5)
        y = fold("add" if row == "ADD" else "max", x)
        yield (Case(f"TENSOR_REDUCE_{row}_BF16", "trn1").put(A, v)
               .insn("pool", f"TENSOR_REDUCE_{row}_BF16 src={t('bf16', A, 0, '[1,5][5,8]')} "
                     f"ch={R} op_dim=X dst={t('bf16', O, 8)}").want(O, cast(y, "bf16")))


def ts(row, dt, ot, imm, extra="", n=N, src=None):
    return (f"{row} src={src or t(dt, A, n)} ch={R} {extra} {imm} dst={t(ot, O, n)}")


def apply(op, a, b, swap):
    with np.errstate(all="ignore"):
        return ARITH[op](b, a) if swap else ARITH[op](a, b)


def scalars():
    for rev in range(4):
        name = ("NONE", "FIRST", "SECOND", "BOTH")[rev]
        for op0, op1 in (("subtract", "subtract"), ("mult", "is_lt"), ("max", "subtract")):
            v, s = odd(), floats(1)
            y = apply(op0, v, s, rev & 1)
            y = apply(op1, y, f32(1.25), rev & 2)
            yield (Case(f"TENSOR_SCALAR_ARITH/{op0}-{op1}-{name}").put(A, v).put(B, s)
                   .insn("dve", ts("TENSOR_SCALAR_ARITH", "fp32", "fp32",
                                   f"imm0=ptr[{B:#x}] imm1=1.25",
                                   f"op0={op0} op1={op1} reverse_operands={name}")).want(O, y))
    for op, fn in list(ARITH.items()) + list(V4.items()):
        v = odd()
        with np.errstate(all="ignore"):
            y = fn(v, f32(0.5))
        yield (Case(f"TENSOR_SCALAR_ARITH/{op}", "trn3" if op in V4 else "trn2").put(A, v)
               .insn("dve", ts("TENSOR_SCALAR_ARITH", "fp32", "fp32", "imm0=0.5", f"op0={op}"))
               .want(O, y))
    for dt, ot in (("bf16", "fp8e4m3"), ("fp16", "i8"), ("u8", "fp8e5m2"), ("i32", "fp32"),
                   ("fp32", "u32"), ("fp8e3m4", "bf16"), ("fp32", "i32"), ("u16", "u8")):
        v = values(dt)
        with np.errstate(all="ignore"):
            y = cast(wide(v) * f32(1.5) + f32(-0.25), ot)
        yield (Case(f"TENSOR_SCALAR_ARITH/{dt}-{ot}").put(A, v)
               .insn("dve", ts("TENSOR_SCALAR_ARITH", dt, ot, "imm0=1.5 imm1=-0.25",
                               "op0=mult op1=add")).want(O, y))
    v = np.abs(floats()) + f32(0.01)
    y = np.array([f32(1 / np.sqrt(np.float64(a))) for a in v.ravel()]).reshape(v.shape)
    yield (Case("TENSOR_SCALAR_ARITH/rsqrt", ulp=1).put(A, v)
           .insn("pool", ts("TENSOR_SCALAR_ARITH", "fp32", "fp32", "", "op0=rsqrt")).want(O, y))
    for d in ("u8", "u16", "u32"):
        for op, fn in BITS.items():
            bits = np.dtype(DTYPES[d]).itemsize * 8
            if op == "arith_shift_right" and bits != 32:
                continue
            v = values(d)
            k = v.dtype.type(3)
            y = fn(v, k, bits) ^ v.dtype.type(0x55)
            yield (Case(f"TENSOR_SCALAR_BITVEC/{op}-{d}").put(A, v)
                   .insn("dve", ts("TENSOR_SCALAR_BITVEC", d, d, "imm0=0x3 imm1=0x55",
                                   f"op0={op} op1=bitwise_xor")).want(O, y))
    v, s = values("u16"), values("u16", 1)
    yield (Case("TENSOR_SCALAR_BITVEC/pointer").put(A, v).put(B, s)
           .insn("dve", ts("TENSOR_SCALAR_BITVEC", "u16", "u16", f"imm0=ptr[{B:#x}]",
                           "op0=bitwise_and")).want(O, v & s))
    # the older forms: both scalars by pointer, source bytes 0
    v, s, k = floats(), floats(1), floats(1)
    yield (Case("TENSOR_SCALAR_PTR_ARITH").put(A, v).put(B, s).put(C, k)
           .insn("dve", ts("TENSOR_SCALAR_PTR_ARITH", "fp32", "fp32",
                           f"imm0={B:#x} imm1={C:#x}", "op0=mult op1=add"))
           .want(O, v * s + k))
    yield (Case("TENSOR_SCALAR_PTR_ARITH/one").put(A, v).put(B, s)
           .insn("dve", ts("TENSOR_SCALAR_PTR_ARITH", "fp32", "fp32", f"imm0={B:#x}",
                           "op0=subtract reverse_operands=FIRST")).want(O, s - v))
    v, s, k = values("u32"), values("u32", 1), values("u32", 1)
    yield (Case("TENSOR_SCALAR_PTR_BITVEC").put(A, v).put(B, s).put(C, k)
           .insn("dve", ts("TENSOR_SCALAR_PTR_BITVEC", "u32", "u32",
                           f"imm0={B:#x} imm1={C:#x}", "op0=bitwise_or op1=bitwise_xor"))
           .want(O, (v | s) ^ k))
    v = values("i32")
    yield (Case("TENSOR_SCALAR_ARITH/same-type-copy").put(A, v)
           .insn("dve", ts("TENSOR_SCALAR_ARITH", "i32", "i32", "")).want(O, v))


IDENTITY = {"add": 0, "mult": 1, "max": -np.inf, "min": np.inf}


def fold(op, x, start=None):
    """The last axis in order, fp32 after each step."""
    x = np.moveaxis(x, -1, 0)
    acc = np.full(x.shape[1:], IDENTITY[op], f32) if start is None else start
    with np.errstate(all="ignore"):
        for row in x:
            acc = ARITH[op](acc, row)
    return acc


def read_acc(case, dst=Q, ch=R, extra=""):
    return case.insn("dve", f"DVE_READ_ACCUMULATOR ch={ch} {extra} dst={t('fp32', dst, 1)}")


def accumulators():
    for op in ("add", "mult", "max", "min"):
        for cmd in ("ZERO_ACCUMULATE", "ACCUMULATE", "LOAD_ACCUMULATE"):
            v, first = floats(scale=1.0), floats(8, scale=1.0)
            c = Case(f"TENSOR_SCALAR_CACHE_REDUCE/{op}-{cmd}").put(A, v).put(B, first)
            c.insn("dve", f"TENSOR_SCALAR_CACHE_REDUCE accumulator_cmd=ZERO_ACCUMULATE "
                   f"src={t('fp32', B, 8)} ch={R} op0=mult op1={op} imm0=1.0 "
                   f"dst={t('fp32', C, 8)}")
            c.insn("dve", f"TENSOR_SCALAR_CACHE_REDUCE accumulator_cmd={cmd} src={t('fp32', A)} "
                   f"ch={R} op0=add op1={op} imm0=0.5 imm1=2.0 dst={t('bf16', O)}")
            x = v + f32(0.5)
            start = fold(op, first)
            if cmd == "LOAD_ACCUMULATE":
                start = np.full(R, 2, f32)
            acc = fold(op, x) if cmd == "ZERO_ACCUMULATE" else fold(op, x, start)
            read_acc(c).want(O, cast(x, "bf16")).want(Q, acc[:, None])
            yield c
    v = floats()
    c = Case("DVE_READ_ACCUMULATOR/negated").put(A, v)
    c.insn("dve", f"TENSOR_SCALAR_CACHE_REDUCE accumulator_cmd=ZERO_ACCUMULATE src={t('fp32', A)} "
           f"ch={R} op0=mult op1=max imm0=1.0 dst={t('fp32', O)}")
    yield read_acc(c, extra="negated=1").want(Q, -v.max(axis=1, keepdims=True))
    for op in ("add", "subtract", "mult", "max", "min"):
        v = floats(scale=1.0)
        acc, ys = np.full(R, 3, f32), []
        for k in range(N):
            acc = ARITH[op](v[:, k] * f32(0.5), acc)
            ys.append(acc)
        c = Case(f"TENSOR_SCALAR_CACHE_CUMULATIVE/{op}").put(A, v)
        c.insn("dve", f"TENSOR_SCALAR_CACHE_CUMULATIVE accumulator_cmd=LOAD_ACCUMULATE "
               f"src={t('fp32', A)} ch={R} op0=mult op1={op} imm0=0.5 imm1=3.0 "
               f"dst={t('fp32', O)}")
        yield read_acc(c).want(O, np.stack(ys, axis=1)).want(Q, acc[:, None])
    v = floats()
    e = np.exp((v - f32(2)).astype(np.float64)).astype(f32)
    c = Case("EXPONENTIAL", ulp=1).put(A, v)
    c.insn("dve", f"EXPONENTIAL accumulator_cmd=ZERO_ACCUMULATE src={t('fp32', A)} ch={R} imm0=2.0 "
           f"dst={t('fp32', O)}")
    yield c.want(O, e)


def stt():
    for rev in range(4):
        name = ("NONE", "FIRST", "SECOND", "BOTH")[rev]
        v, w = odd(), floats()
        y = apply("subtract", v, f32(0.75), rev & 1)
        y = apply("subtract", y, w, rev & 2)
        yield (Case(f"SCALAR_TENSOR_TENSOR_ARITH/{name}").put(A, v).put(B, w)
               .insn("dve", f"SCALAR_TENSOR_TENSOR_ARITH src0={t('fp32', A)} src1={t('fp32', B)} "
                     f"op0=subtract op1=subtract reverse_operands={name} ch={R} "
                     f"dst={t('fp32', O)} imm0=fp32@0.75").want(O, y))
    v, w = cast(floats(), "bf16"), cast(floats(), "bf16")
    y = (wide(v) - f32(0.5)) * wide(w)
    c = (Case("SCALAR_TENSOR_TENSOR_ARITH/sum").put(A, v).put(B, w)
         .insn("dve", f"SCALAR_TENSOR_TENSOR_ARITH src0={t('bf16', A)} src1={t('bf16', B)} "
               f"op0=subtract op1=mult ch={R} accumulator_cmd=ZERO_ACCUMULATE dst={t('bf16', O)} "
               "imm0=fp32@0.5"))
    yield read_acc(c).want(O, cast(y, "bf16")).want(Q, fold("add", y)[:, None])
    # an instruction that sums nothing leaves the register (MODEL.md)
    c = (Case("SCALAR_TENSOR_TENSOR_ARITH/idle").put(A, v).put(B, w))
    for cmd, dst in (("ZERO_ACCUMULATE", O), ("IDLE", C)):
        c.insn("dve", f"SCALAR_TENSOR_TENSOR_ARITH src0={t('bf16', A)} src1={t('bf16', B)} "
               f"op0=subtract op1=mult ch={R} accumulator_cmd={cmd} dst={t('bf16', dst)} "
               "imm0=fp32@0.5")
    yield read_acc(c).want(C, cast(y, "bf16")).want(Q, fold("add", y)[:, None])
    v, w = values("u32"), values("u32")
    yield (Case("SCALAR_TENSOR_TENSOR_BITVEC").put(A, v).put(B, w)
           .insn("dve", f"SCALAR_TENSOR_TENSOR_BITVEC src0={t('u32', A)} src1={t('u32', B)} "
                 f"op0=logical_shift_right op1=bitwise_or ch={R} dst={t('u32', O)} imm0=fp32@0x5")
           .want(O, (v >> 5) | w))
    for op0, op1 in (("mult", "add"), ("max", "mult"), ("add", "min")):
        for rev in range(4):
            name = ("NONE", "FIRST", "SECOND", "BOTH")[rev]
            v, w = floats(scale=1.0), floats(scale=1.0)
            acc, ys = np.full(R, 0.5, f32), []
            for k in range(N):
                acc = apply(op0, v[:, k], acc, rev & 1)
                acc = apply(op1, acc, w[:, k], rev & 2)
                ys.append(acc)
            yield (Case(f"TENSOR_TENSOR_SCAN_ARITH/{op0}-{op1}-{name}").put(A, v).put(B, w)
                   .insn("dve", f"TENSOR_TENSOR_SCAN_ARITH src0={t('fp32', A)} "
                         f"src1={t('fp32', B)} op0={op0} op1={op1} reverse_operands={name} ch={R} "
                         f"dst={t('fp32', O)} imm0=fp32@0.5").want(O, np.stack(ys, axis=1)))


def selections():
    for d in ("u8", "u16", "i32"):
        mask = (rng.integers(0, 3, (R, N)) == 1).astype(DTYPES[d]) * 7
        v, old = values("bf16"), values("bf16")
        yield (Case(f"COPY_PREDICATED/{d}").put(A, mask).put(B, v).put(O, old)
               .insn("dve", f"COPY_PREDICATED ch={R} src0={t(d, A)} src1={t('bf16', B)} "
                     f"dst={t('bf16', O)}").want(O, np.where(mask != 0, v, old)))
        w = values("fp32")
        yield (Case(f"CAST_PREDICATED/{d}").put(A, mask).put(B, w).put(O, old)
               .insn("dve", f"CAST_PREDICATED ch={R} src0={t(d, A)} src1={t('fp32', B)} "
                     f"dst={t('bf16', O)}").want(O, np.where(mask != 0, cast(w, "bf16"), old)))
        for rev in (0, 1):
            take = (mask != 0) == (rev == 1)
            yield (Case(f"COPY_PREDICATED_SCALAR/{d}-{rev}").put(A, mask).put(O, w)
                   .insn("dve", f"COPY_PREDICATED_SCALAR pred={t(d, A)} reversed_pred={rev} ch={R} "
                         f"src0_imm=fp32@4.5 dst={t('fp32', O)}")
                   .want(O, np.where(take, f32(4.5), w)))
    for rev in (0, 1):
        for pred in (0, 1):
            v = values("fp32")
            y = v if (pred != 0) != (rev != 0) else np.full_like(v, 2.5)
            yield (Case(f"TENSOR_SCALAR_SELECT/{rev}-{pred}").put(A, v)
                   .insn("dve", f"TENSOR_SCALAR_SELECT src0={t('fp32', A)} reversed_pred={rev} "
                         f"ch={R} src1_imm=fp32@2.5 pred_imm=u32@{pred} dst={t('fp32', O)}")
                   .want(O, y))
    mask = rng.integers(0, 2, (R, N)).astype(np.uint8)
    v = floats()
    y = np.where(mask != 0, v, f32(-2))
    c = (Case("SELECT_REDUCE").put(A, mask).put(B, v)
         .insn("dve", f"SELECT_REDUCE src0={t('u8', A)} src1={t('fp32', B)} op1=max ch={R} "
               f"accumulator_cmd=ZERO_ACCUMULATE dst={t('bf16', O)} imm0=fp32@-2.0"))
    yield read_acc(c).want(O, cast(y, "bf16")).want(Q, y.max(axis=1, keepdims=True))
    ops = {"is_eq": np.equal, "is_gt": np.greater, "is_ge": np.greater_equal,
           "is_le": np.less_equal, "is_lt": np.less}
    low, high = rng.integers(0, N, (R, 1)).astype(f32), rng.integers(0, N, (R, 1)).astype(f32)
    at = (np.arange(N) + 3).astype(f32)
    fill = np.uint32(0xFF7FFFFF).view(f32)
    for o0, f0 in ops.items():
        v = floats()
        keep = f0(at, low) & np.less(at, high)
        y = np.where(keep, v, fill)
        c = (Case(f"RANGE_SELECT/{o0}").put(A, v).put(B, low).put(C, high)
             .insn("dve", f"RANGE_SELECT ch={R} reduce_cmd=RESET_REDUCE base=3.0 "
                   f"src={t('fp32', A)} comp_op0={o0} comp_op1=is_lt bound0=ptr[{B:#x}] "
                   f"bound1=ptr[{C:#x}] dst={t('bf16', O)}"))
        # the fill value overflows to -inf in a narrower type; the register keeps it
        yield read_acc(c).want(O, cast(y, "bf16")).want(Q, y.max(axis=1, keepdims=True))


    # the fill value is beyond bf16, fp16 and fp8: minus infinity there; positions are exact up to 2^24
    base = float((1 << 24) - N)
    at = (np.arange(N) + base).astype(f32)
    low = (base + rng.integers(0, N, (R, 1))).astype(f32)
    for d in ("fp16", "fp8e4m3", "fp8e5m2", "fp32"):
        v = floats()
        y = np.where((at >= low) & (at < f32(1 << 24)), v, fill)
        c = (Case(f"RANGE_SELECT/{d}").put(A, v).put(B, low)
             .insn("dve", f"RANGE_SELECT ch={R} reduce_cmd=RESET_REDUCE base={base} "
                   f"src={t('fp32', A)} comp_op0=is_ge comp_op1=is_lt bound0=ptr[{B:#x}] "
                   f"bound1={float(1 << 24)} dst={t(d, O)}"))
        assert d == "fp32" or np.isneginf(wide(cast(fill, d)))
        yield read_acc(c).want(O, cast(y, d)).want(Q, y.max(axis=1, keepdims=True))


def folds():
    for op in ("add", "mult", "max", "min"):
        for dt, ot in (("fp32", "fp32"), ("bf16", "bf16"), ("i8", "fp32"), ("fp16", "i16")):
            v = cast(floats(), dt) if dt not in INTS else values(dt)
            if op == "mult":
                v = cast(floats(scale=1.0), dt)
            x = wide(v).reshape(R, 4, 5, 2)
            for dim, k in (("X", 2), ("XY", 10), ("XYZ", 40)):
                y = fold(op, x.reshape(R, N // k, k))
                for neg in (0, 1):
                    yield (Case(f"TENSOR_REDUCE_ARITH/{op}-{dt}-{ot}-{dim}-{neg}").put(A, v)
                           .insn("dve", f"TENSOR_REDUCE_ARITH "
                                 f"src={t(dt, A, 0, '[1,2,10][2,5,4]')} ch={R} negated={neg} "
                                 f"op={op} op_dim={dim} dst={t(ot, O, N // k)}")
                           .want(O, cast(-y if neg else y, ot)))
    for op, fn in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or),
                   ("bitwise_xor", np.bitwise_xor)):
        v = values("u16")
        yield (Case(f"TENSOR_REDUCE_BITVEC/{op}").put(A, v)
               .insn("dve", f"TENSOR_REDUCE_BITVEC src={t('u16', A, 0, '[1,5][5,8]')} ch={R} "
                     f"op={op} op_dim=X dst={t('u16', O, 8)}")
               .want(O, fn.reduce(v.reshape(R, 8, 5), axis=2)))
        x = v.reshape(R, 8, 5)
        yield (Case(f"TENSOR_CUMULATIVE_BITVEC/{op}").put(A, v)
               .insn("dve", f"TENSOR_CUMULATIVE_BITVEC src={t('u16', A, 0, '[1,5][5,8]')} ch={R} "
                     f"op={op} op_dim=X dst={t('u16', O)}")
               .want(O, fn.accumulate(x, axis=2).reshape(R, N)))
    for op in ("add", "max", "min", "mult"):
        v = floats(scale=1.0)
        x = v.reshape(R, 8, 5)
        ys = [x[:, :, 0]]
        for k in range(1, 5):
            ys.append(ARITH[op](ys[-1], x[:, :, k]))
        yield (Case(f"TENSOR_CUMULATIVE_ARITH/{op}").put(A, v)
               .insn("dve", f"TENSOR_CUMULATIVE_ARITH src={t('fp32', A, 0, '[1,5][5,8]')} ch={R} "
                     f"op={op} op_dim=X dst={t('fp32', O)}")
               .want(O, np.stack(ys, axis=2).reshape(R, N)))


def moves():
    for d in DTYPES:
        for engine in ("dve", "pool", "act"):
            v = values(d)
            yield (Case(f"COPY/{engine}-{d}").put(A, v)
                   .insn(engine, f"COPY src={t(d, A)} ch={R} dst={t(d, O)}").want(O, v))
    names = [d for d in DTYPES if d not in ("i64", "u64")]
    for d0 in names:
        for d1 in names:
            v = values(d0)
            yield (Case(f"CAST/{d0}-{d1}").put(A, v)
                   .insn("dve", f"CAST src={t(d0, A)} ch={R} dst={t(d1, O)}")
                   .want(O, cast(wide(v), d1)))
    v = odd()
    with np.errstate(all="ignore"):
        yield (Case("RECIPROCAL").put(A, v)
               .insn("dve", f"RECIPROCAL src={t('fp32', A)} ch={R} dst={t('fp32', O)}")
               .want(O, f32(1) / v))
    for d, bits in (("u8", 0xA5), ("bf16", 0x3FC0), ("fp32", 0xFF800000), ("i16", 0x8000)):
        v = np.full((R, N), bits, f"u{np.dtype(DTYPES[d]).itemsize}")
        for engine in ("dve", "pool"):
            yield (Case(f"MEMSET/{engine}-{d}")
                   .insn(engine, f"MEMSET dst_element_count={N} ch={R} set_value={bits:#x} "
                         f"dst={t(d, O)}").want(O, v))
    for d in ("bf16", "u8", "fp32"):
        v = values(d, 64, 64)
        y = v.reshape(2, 32, 2, 32).transpose(0, 3, 2, 1).reshape(64, 64)
        yield (Case(f"STREAM_TRANSPOSE/{d}").put(A, v)
               .insn("dve", f"STREAM_TRANSPOSE src={t(d, A, 64)} ch=64 dst={t(d, O, 64)}")
               .want(O, y))
    lanes = [int(x) for x in rng.permutation(32)]
    lanes[5] = lanes[9] = 255
    v, old = values("fp16", N, 64), values("fp16", N, 64)
    y = old.copy()
    for q in range(2):
        for i, m in enumerate(lanes):
            if m != 255:
                y[q * 32 + i] = v[q * 32 + m]
    yield (Case("STREAM_SHUFFLE").put(A, v).put(O, old)
           .insn("dve", f"LOAD_MASK_SELECT immediate=0x{bytes(lanes).hex()}")
           .insn("dve", f"STREAM_SHUFFLE src={t('fp16', A)} ch=64 dst={t('fp16', O)}").want(O, y))
    one = bytes([3] * 32).hex()
    y = np.repeat(v.reshape(2, 32, N)[:, 3:4], 32, axis=1).reshape(64, N)
    yield (Case("LOAD_MASK_SELECT").put(A, v)
           .insn("dve", f"LOAD_MASK_SELECT immediate=0x{one}")
           .insn("dve", f"STREAM_SHUFFLE src={t('fp16', A)} ch=64 dst={t('fp16', O)}").want(O, y))


def transposed(v):
    """Each block of 32 x 32 seen through a transpose."""
    r, n = v.shape
    return v.reshape(r // 32, 32, n // 32, 32).transpose(0, 3, 2, 1).reshape(r, n)


def transposed_reads():
    v = floats(64, 64)
    y = fold("add", transposed(v).reshape(64, 4, 16))
    yield (Case("TRANSPOSE_TENSOR_REDUCE_ARITH").put(A, v)
           .insn("dve", f"TRANSPOSE_TENSOR_REDUCE_ARITH src={t('fp32', A, 0, '[1,16][16,4]')} "
                 f"ch=64 negated=1 op=add op_dim=X dst={t('fp32', O, 4)}").want(O, -y))
    w = values("u16", 64, 64)
    y = np.bitwise_xor.reduce(transposed(w).reshape(64, 4, 16), axis=2)
    yield (Case("TRANSPOSE_TENSOR_REDUCE_BITVEC").put(A, w)
           .insn("dve", f"TRANSPOSE_TENSOR_REDUCE_BITVEC src={t('u16', A, 0, '[1,16][16,4]')} "
                 f"ch=64 op=bitwise_xor op_dim=X dst={t('u16', O, 4)}").want(O, y))
    s = floats(1, 64)
    yield (Case("TRANSPOSE_TENSOR_SCALAR_ARITH").put(A, v).put(B, s)
           .insn("dve", f"TRANSPOSE_TENSOR_SCALAR_ARITH src={t('fp32', A, 64)} ch=64 op0=mult "
                 f"op1=add imm0=ptr[{B:#x}] imm1=0.5 dst={t('bf16', O, 64)}")
           .want(O, cast(transposed(v) * s + f32(0.5), "bf16")))
    yield (Case("TRANSPOSE_BATCH_NORM_STATS2", ulp=1).put(A, v)
           .insn("dve", f"TRANSPOSE_BATCH_NORM_STATS2 src={t('fp32', A, 64)} ch=64 "
                 f"dst={t('fp32', O, 6)}").want(O, stats(transposed(v))))


def stats(v):
    """count, mean, count * population variance of even and of odd elements."""
    out = []
    for x in (v[:, 0::2].astype(np.float64), v[:, 1::2].astype(np.float64)):
        n = x.shape[1]
        mean = x.mean(axis=1) if n else np.zeros(len(v))
        out += [np.full(len(v), n), mean, ((x - mean[:, None]) ** 2).sum(axis=1)]
    return np.stack(out, axis=1).astype(f32)


def norms():
    for n in (1, 2, 7, 512):
        v = floats(n)
        yield (Case(f"BATCH_NORM_STATS2/{n}", ulp=2).put(A, v)
               .insn("dve", f"BATCH_NORM_STATS2 src={t('fp32', A, n)} ch={R} "
                     f"dst={t('fp32', O, 6)}").want(O, stats(v)))
    v = floats(33)
    x = v.astype(np.float64)
    whole = np.stack([x.mean(axis=1), x.var(axis=1)], axis=1).astype(f32)
    # rounding of the intermediate statistics allows a few ulps
    yield (Case("BATCH_NORM_AGGREGATE", ulp=64).put(A, v)
           .insn("dve", f"BATCH_NORM_STATS2 src={t('fp32', A, 33)} ch={R} dst={t('fp32', C, 6)}")
           .insn("dve", f"BATCH_NORM_AGGREGATE src={t('fp32', C, 6)} ch={R} dst={t('fp32', O, 2)}")
           .want(O, whole))


def gradients():
    v = floats(33)
    x = v.astype(np.float64)
    y = np.stack([np.full(R, 33), x.mean(axis=1), ((x.T - x.mean(axis=1)).T ** 2).sum(axis=1)],
                 axis=1).astype(f32)
    yield (Case("BATCH_NORM_STATS", ulp=2).put(A, v)
           .insn("dve", f"BATCH_NORM_STATS src={t('fp32', A, 33)} ch={R} dst={t('fp32', O, 3)}")
           .want(O, y))
    m, r, g = floats(1), np.abs(floats(1)), floats(33)
    hat = (v - m) * r
    sums = np.stack([fold("add", g), fold("add", g * hat), fold("add", hat)], axis=1)
    for row, how in (("BATCH_NORM_GRAD_ACCUMULATE", ""),
                     ("BATCH_NORM_GRAD_ACCUMULATE2", "imm0_imm1_src=0x11 ")):
        yield (Case(row).put(A, v).put(B, g).put(C, np.concatenate([m, r], axis=1))
               .insn("dve", f"{row} imm0=fp32@{C:#x} src0={t('fp32', A, 33)} "
                     f"src1={t('fp32', B, 33)} dst={t('fp32', O, 3)} imm1=fp32@{C + 4:#x} "
                     f"{how}ch={R}").want(O, sums))
    n = 33
    p = sums[:, :2] / f32(n)
    y = ((g - p[:, :1]) - hat * p[:, 1:]) * r
    load = f"BATCH_NORM_PARAM_LOAD2 src={t('fp32', Q, 2)} element_count=33.0 ch={R} " \
        f"imm0=fp32@ptr[{C:#x}] imm1=fp32@ptr[{C + 4:#x}]"
    back = f"BATCH_NORM_BACK_PROP ch={R} src0={t('fp32', A, 33)} src1={t('fp32', B, 33)} " \
        f"dst={t('fp32', O, 33)}"
    for row in ("BATCH_NORM_PARAM_LOAD2", "BATCH_NORM_BACK_PROP"):
        yield (Case(row).put(A, v).put(B, g).put(C, np.concatenate([m, r], axis=1))
               .put(Q, sums[:, :2]).insn("dve", load).insn("dve", back).want(O, y))
    # the pieces together are the gradient of a normalisation
    x, d = v.astype(np.float64), g.astype(np.float64)
    mean, s = x.mean(axis=1, keepdims=True), 1 / np.sqrt(x.var(axis=1, keepdims=True))
    h = (x - mean) * s
    y = s * (d - d.mean(axis=1, keepdims=True) - h * (d * h).mean(axis=1, keepdims=True))
    ms = np.concatenate([mean, s], axis=1).astype(f32)
    got = s.astype(f32) * ((g - d.mean(axis=1, keepdims=True).astype(f32))
                           - ((v - ms[:, :1]) * ms[:, 1:])
                           * (d * h).mean(axis=1, keepdims=True).astype(f32))
    assert np.abs(got - y).max() < 1e-4  # the formula of the case above, against the derivation
    # the parameter RAM holds tables that the exact statistics do not need
    yield (Case("LOAD_PARAMETER_RAM", ulp=2).put(A, v)
           .insn("dve", "LOAD_PARAMETER_RAM param_ram_offset=8 immediate=0x" + "5a" * 32)
           .insn("dve", f"BATCH_NORM_STATS2 src={t('fp32', A, 33)} ch={R} dst={t('fp32', O, 6)}")
           .want(O, stats(v)))


def preset():
    for rev in ("NONE", "BOTH"):
        for op in ("add", "subtract", "mult", "max"):
            v, w = floats(), floats(4)
            x = v.reshape(R, 4, 10)
            y = apply(op, x, w[:, :, None], rev == "BOTH").reshape(R, N)
            yield (Case(f"TENSOR_SCALAR_PTR_MULTI_ARITH/{op}-{rev}").put(A, v)
                   .put(B, cast(w, "fp32"))
                   .insn("dve", f"TENSOR_SCALAR_IMM_LD_ARITH src={t('fp32', B, 4)} ch={R}")
                   .insn("dve", f"TENSOR_SCALAR_PTR_MULTI_ARITH "
                         f"src={t('fp32', A, 0, '[1,5,0,10][5,2,1,4]')} ch={R} op={op} "
                         f"reverse_operands={rev} dst={t('fp32', O)}").want(O, y))
    v, w = cast(floats(), "bf16"), cast(floats(8), "bf16")
    y = wide(v).reshape(R, 8, 5) * wide(w)[:, :, None]
    yield (Case("TENSOR_SCALAR_IMM_LD_ARITH").put(A, v).put(B, w)
           .insn("dve", f"TENSOR_SCALAR_IMM_LD_ARITH src={t('bf16', B, 8)} ch={R}")
           .insn("dve", f"TENSOR_SCALAR_PTR_MULTI_ARITH "
                 f"src={t('bf16', A, 0, '[1,0,0,5][5,1,1,8]')} ch={R} op=mult "
                 f"dst={t('fp32', O)}").want(O, y.reshape(R, N)))
    v, w = values("u16"), values("u16", 2)
    y = v.reshape(R, 2, 20) ^ w[:, :, None]
    for row in ("TENSOR_SCALAR_IMM_LD_BITVEC", "TENSOR_SCALAR_PTR_MULTI_BITVEC"):
        yield (Case(row).put(A, v).put(B, w)
               .insn("dve", f"TENSOR_SCALAR_IMM_LD_BITVEC src={t('u16', B, 2)} ch={R}")
               .insn("dve", f"TENSOR_SCALAR_PTR_MULTI_BITVEC "
                     f"src={t('u16', A, 0, '[1,0,0,20][20,1,1,2]')} ch={R} op=bitwise_xor "
                     f"dst={t('u16', O)}").want(O, y.reshape(R, N)))


def find(row, keys, order):
    """Position of each key among what is not taken; all ones when there is none."""
    taken, at = set(), [0xFFFFFFFF] * 8
    for k in order:
        for j, x in enumerate(row):
            if x == keys[k] and j not in taken:
                taken.add(j)
                at[k] = j
                break
    return at


def searches():
    for d in ("fp32", "bf16"):
        v = cast(np.round(floats(200)), d)  # many ties
        y = -np.sort(-wide(v), axis=1)[:, :8]
        yield (Case(f"MAX8/{d}").put(A, v)
               .insn("dve", f"MAX8 src={t(d, A, 200)} ch={R} dst={t('fp32', O, 8)}").want(O, y))
    v = floats(40)
    v[:, ::7], v[0, 1], v[1, 1:] = np.nan, -np.inf, -np.inf  # NaN is never among the largest
    y = -np.sort(-np.where(np.isnan(v), -np.inf, v), axis=1)[:, :8]
    yield (Case("MAX8/nan").put(A, v)
           .insn("dve", f"MAX8 src={t('fp32', A)} ch={R} dst={t('fp32', O, 8)}").want(O, y))
    v = np.round(floats(60))
    keys = v[:, :8].copy()
    keys[:, 3] = 1e6     # nowhere
    keys[:, 5] = keys[:, 1]
    keys[0, 2] = np.nan  # never equal
    for d, miss in (("u32", 0xFFFFFFFF), ("u16", 0xFFFF)):
        at = np.array([find(r, k, range(8)) for r, k in zip(v, keys)])
        yield (Case(f"FIND_INDEX8/{d}").put(A, v).put(B, keys)
               .insn("dve", f"MATCH_VALUE_LOAD src={t('fp32', B, 8)} ch={R}")
               .insn("dve", f"FIND_INDEX8 src={t('fp32', A, 60)} ch={R} dst={t(d, O, 8)}")
               .want(O, (at & miss).astype(DTYPES[d])))
    at = [find(r, k, range(7, -1, -1)) for r, k in zip(v, keys)]
    y = v.copy()
    for r, a in enumerate(at):
        y[r, [j for j in a if j != 0xFFFFFFFF]] = -9
    load = f"MATCH_VALUE_LOAD src={t('fp32', B, 8)} ch={R}"
    yield (Case("MATCH_REPLACE8").put(A, v).put(B, keys).insn("dve", load)
           .insn("dve", f"MATCH_REPLACE8 src={t('fp32', A, 60)} ch={R} immediate=-9.0 "
                 f"dst={t('fp32', O, 60)}").want(O, y))
    yield (Case("MATCH_VALUE_LOAD").put(A, v).put(B, cast(keys, "bf16"))
           .insn("dve", load.replace("fp32", "bf16"))
           .insn("dve", f"MATCH_REPLACE8 src={t('fp32', A, 60)} ch={R} immediate=-9.0 "
                 f"dst={t('fp32', O, 60)}").want(O, y))
    # where the same keys are found, lowest column first
    row = np.tile(np.array([1, 2, 3, 4] + [8] * 7, f32), (R, 1))
    key = np.tile(np.array([3] + [8] * 7, f32), (R, 1))
    yield (Case("FIND_INDEX8/example").put(A, row).put(B, key).insn("dve", load)
           .insn("dve", f"FIND_INDEX8 src={t('fp32', A, 11)} ch={R} dst={t('u32', O, 8)}")
           .want(O, np.tile(np.array([2, 4, 5, 6, 7, 8, 9, 10], np.uint32), (R, 1))))
    # the example of the NKI documents: 1 2 3 4 8 x 7, keys 3, 8 x 7
    row = np.tile(np.array([1, 2, 3, 4] + [8] * 7, f32), (R, 1))
    key = np.tile(np.array([3] + [8] * 7, f32), (R, 1))
    for target in ("trn2", "trn3"):
        for d in ("u32", "u16"):
            yield (Case(f"DVE_READ_INDICES/{d}", target).put(A, row).put(B, key).insn("dve", load)
                   .insn("dve", f"MATCH_REPLACE8 src={t('fp32', A, 11)} ch={R} immediate=0.0 "
                         f"dst={t('fp32', O, 11)}")
                   .insn("dve", f"DVE_READ_INDICES dst_element_count=8 ch={R} dst={t(d, Q, 8)}")
                   .want(Q, np.tile(np.array([2, 10, 9, 8, 7, 6, 5, 4], DTYPES[d]), (R, 1))))


def pooling():
    for fn, scale in (("MAX", 1.0), ("AVG", 0.25)):
        v = floats(64)
        x = v.reshape(R, 4, 2, 4, 2).transpose(0, 1, 3, 2, 4).reshape(R, 16, 4)
        y = fold("max" if fn == "MAX" else "add", x) * f32(scale)
        for engine in ("dve", "pool"):
            yield (Case(f"POOL/{engine}-{fn}").put(A, v)
                   .insn(engine, f"POOL src={t('fp32', A, 0, '[1,8,2,16][2,2,4,4]')} ch={R} "
                         f"pool_func={fn} pool_dim=XY pool_scale={scale} dst={t('bf16', O, 16)}")
                   .want(O, cast(y, "bf16")))


def cases():
    for group in (two_tensors, bf16_pool, scalars, accumulators, stt, selections, folds, moves,
                  transposed_reads, norms, gradients, preset, searches, pooling):
        yield from group()
    for target in TARGETS.values():  # the same on every generation
        v, w = floats(), floats()
        yield (Case("TENSOR_TENSOR_ARITH/generation", target).put(A, v).put(B, w)
               .insn("dve", f"TENSOR_TENSOR_ARITH op=add ch={R} src0={t('fp32', A)} "
                     f"src1={t('fp32', B)} dst={t('fp32', O)}").want(O, v + w))

"""GpSimd: index patterns, gathers, order, reductions over partitions, unpacking."""
import numpy as np

from dve import floats, t, values
from harness import DTYPES, Case, cast, f32, wide

A, B, C, O, Q = 0, 0x1000, 0x2000, 0x4000, 0x6000
R, N = 32, 40
rng = np.random.default_rng(7)


def patterns():
    x, y = np.arange(10), np.arange(4)
    base = (7 + x[None, :] * 3 + y[:, None] * -100).ravel()
    for d in ("i32", "fp32", "u16", "i16", "bf16", "u8"):
        v = base[None, :] + np.arange(R)[:, None] * 1000
        if d in ("fp32", "bf16"):
            y_ = cast(v, d)
        else:
            y_ = v.astype(np.int64).astype(DTYPES[d])  # the low bits
        yield (Case(f"IOTA/{d}")
               .insn("pool", f"IOTA pattern=7[3,-100][10,4] ch={R} channel_multiplier=1000 "
                     f"dst={t(d, O)}").want(O, y_))
    wrap = (np.int64(2147483647) + np.arange(4)).astype(np.uint32).view(np.int32)
    yield (Case("IOTA/wraps")
           .insn("pool", f"IOTA pattern=2147483647[1][4] ch=2 dst={t('i32', O, 4)}")
           .want(O, np.tile(wrap, (2, 1))))
    where = np.arange(R)[:, None] - np.arange(N)[None, :]
    for mode, fn in (("GT", np.greater), ("GE", np.greater_equal), ("EQ", np.equal),
                     ("NE", np.not_equal)):
        for di, do in (("bf16", "bf16"), ("fp32", "bf16"), ("i32", "i32")):
            v = values(di)
            same = v if di == do else cast(wide(v), do)
            y_ = np.where(fn(where, 0), same, cast(np.float32(-2), do))
            yield (Case(f"TENSOR_SCALAR_AFFINE_SELECT/{mode}-{di}-{do}").put(A, v)
                   .insn("pool", "MOVE num_mov=1 dtype=fp32 source=IMMEDIATE dst_regs=[4] "
                         f"imm=[{np.float32(-2).view(np.uint32)}]")
                   .insn("pool", f"TENSOR_SCALAR_AFFINE_SELECT ch={R} fill_mode={mode} fill_reg=4 "
                         f"mask=0[-1][{N}] src={t(di, A)} dst={t(do, O)} channel_multiplier=1")
                   .want(O, y_))


    # affine values are int32 and compared as such: fp32 would take 2^24 + 1 - 2^24 for zero
    base, step = (1 << 24) + 1, -(1 << 24)
    where = base + step * np.arange(R)[:, None] - np.arange(N)[None, :]
    v = values("fp32")
    yield (Case("TENSOR_SCALAR_AFFINE_SELECT/above-2^24").put(A, v)
           .insn("pool", "MOVE num_mov=1 dtype=fp32 source=IMMEDIATE dst_regs=[4] imm=[0]")
           .insn("pool", f"TENSOR_SCALAR_AFFINE_SELECT ch={R} fill_mode=NE fill_reg=4 "
                 f"mask={base}[-1][{N}] src={t('fp32', A)} dst={t('fp32', O)} "
                 f"channel_multiplier={step}").want(O, np.where(where != 0, v, f32(0))))


def lanes():
    for op in ("ADD", "AVERAGE", "MAX"):
        for axis in ("PARTITIONS", "ALL"):
            v = np.round(floats() * 4)  # sums are exact in any order
            scale = f32(0.125) if op == "AVERAGE" else f32(1)
            x = v * scale
            y = x.max(axis=0) if op == "MAX" else x.sum(axis=0)
            if axis == "ALL":
                y = np.array([y.max() if op == "MAX" else y.sum()])
            yield (Case(f"CROSS_LANE_REDUCE_ARITH/{op}-{axis}").put(A, v)
                   .insn("pool", f"CROSS_LANE_REDUCE_ARITH src={t('fp32', A)} ch={R} "
                         f"reduce_op={op} reduce_axis={axis} scale={scale} "
                         f"dst={t('fp32', O, len(y))}").want(O, y[None, :].astype(f32)))
    for op, fn in (("OR", np.bitwise_or), ("AND", np.bitwise_and), ("XOR", np.bitwise_xor)):
        v = values("u16")
        y = fn.reduce(v, axis=0)
        yield (Case(f"CROSS_LANE_REDUCE_BITVEC/{op}").put(A, v)
               .insn("pool", f"CROSS_LANE_REDUCE_BITVEC src={t('u16', A)} ch={R} reduce_op={op} "
                     f"reduce_axis=PARTITIONS dst={t('u16', O)}").want(O, y[None, :]))
        yield (Case(f"CROSS_LANE_REDUCE_BITVEC/{op}-all").put(A, v)
               .insn("pool", f"CROSS_LANE_REDUCE_BITVEC src={t('u16', A)} ch={R} reduce_op={op} "
                     f"reduce_axis=ALL dst={t('u16', O, 1)}").want(O, fn.reduce(y)[None, None]))


def gathers():
    for d in ("fp32", "bf16", "u8"):
        table, old = values(d, 64), values(d)
        at = rng.integers(0, 64, (R, N)).astype(np.uint16) + np.uint16(0x400)
        at[:, ::5] = rng.integers(0, 64, at[:, ::5].shape)  # not in the buffer
        hit = (at & 0xFFC0) == 0x400
        got = np.take_along_axis(table, (at & 63).astype(np.int64), axis=1)
        load = f"POOL_BUFFER_LOAD src={t(d, A, 64)} ch={R} start_index=1024 mask=0x3f"
        for miss in (0, 1):
            imm = np.zeros((), DTYPES[d])
            y = np.where(hit, got, imm if miss else old)
            yield (Case(f"GATHER/{d}-{miss}").put(A, table).put(B, at).put(O, old)
                   .insn("pool", load)
                   .insn("pool", f"GATHER src={t('u16', B)} ch={R} index_miss_behavior={miss} "
                         f"dst={t(d, O)}").want(O, y))
    # what nc_n_gather does: more than 512 elements in two loads
    table = values("fp32", 700)
    at = rng.integers(0, 700, (R, N)).astype(np.uint32)
    c = Case("POOL_BUFFER_LOAD").put(A, table).put(B, at).put(O, np.zeros((R, N), f32))
    for k, n in ((0, 512), (512, 188)):
        c.insn("pool", f"POOL_BUFFER_LOAD src={t('fp32', A + 4 * k, n)} ch={R} start_index={k} "
               "mask=0x1ff")
        c.insn("pool", f"GATHER src={t('u32', B)} ch={R} free_pool_buffer=1 dst={t('fp32', O)}")
    yield c.want(O, np.take_along_axis(table, at.astype(np.int64), axis=1))
    yield (Case("GATHER/freed", fails="E8305").put(A, table).put(B, at).put(O, np.zeros((R, N), f32))
           .insn("pool", f"POOL_BUFFER_LOAD src={t('fp32', A, 512)} ch={R} mask=0x1ff")
           .insn("pool", f"GATHER src={t('u32', B)} ch={R} free_pool_buffer=1 dst={t('fp32', O)}")
           .insn("pool", f"GATHER src={t('u32', B)} ch={R} dst={t('fp32', O)}"))
    yield Case("GATHER/unknown", fails="E8202").insn(
        "pool", f"GATHER src={t('u32', B)} ch={R} index_miss_behavior=2 dst={t('fp32', O)}")
    for d, per, n in (("fp32", 1, 40), ("bf16", 4, 33), ("u8", 32, 5)):
        data = values(d, 200, 32)
        at = rng.integers(0, 200 - per + 1, (2, n))  # two cores
        cols = -(-n // 16)
        idx = np.zeros((2, 16, cols), np.uint16)
        for j in range(n):
            idx[:, j % 16, j // 16] = at[:, j]
        y = np.stack([np.concatenate([data[p, a:a + per] for a in at[p // 16]])
                      for p in range(32)])
        yield (Case(f"INDIRECT_COPY/{d}-{per}").put(A, data).put(B, idx.reshape(32, cols))
               .insn("pool", f"INDIRECT_COPY src_idx={0x20000000 + B:#x} src={A:#x} "
                     f"src_num_elem={n * per} in_dtype={d} ch=32 src_num_elem_per_idx={per} "
                     f"src_buffer_size=200 dst={t(d, O, n * per)}").want(O, y))
    yield (Case("INDIRECT_COPY/outside", fails="E8302").put(A, values("fp32", 8, 16))
           .put(B, np.full((16, 1), 8, np.uint16))
           .insn("pool", f"INDIRECT_COPY src_idx={0x20000000 + B:#x} src={A:#x} src_num_elem=16 "
                 f"in_dtype=fp32 ch=16 src_num_elem_per_idx=1 src_buffer_size=8 "
                 f"dst={t('fp32', O, 16)}"))


def order():
    x = np.array([[9, 3, 5, 1, 0, 0]], np.uint16)  # the header's example
    y = np.stack([[0, 0, 1, 3, 5, 9], [104, 105, 103, 101, 102, 100]], axis=1)
    yield (Case("SORT").put(A, x)
           .insn("pool", f"SORT ch=1 comparison=is_lt src={t('u16', A, 6)} "
                 f"dst={t('u16', O, 0, '[1,2][2,6]')} index_offset=100 stable=1")
           .want(O, y.reshape(1, 12).astype(np.uint16)))
    for d in ("fp32", "i32", "bf16", "u16"):
        for down in (0, 1):
            v = np.round(floats(20, 4)) if d in ("fp32", "bf16") else values(d, 20, 4) % 7
            v = cast(v, d) if d in ("fp32", "bf16") else v.astype(DTYPES[d])
            k = v.dtype.itemsize
            w = wide(v).astype(np.float64)
            if d == "fp32":
                v[:, 3] = w[:, 3] = np.nan  # last, whichever way
            rank = np.argsort(np.where(np.isnan(w), np.inf, -w if down else w), axis=1,
                              kind="stable")
            out = np.empty((4, 20, 2), f"u{k}")
            out[:, :, 0] = np.take_along_axis(v, rank, axis=1).view(f"u{k}")
            out[:, :, 1] = rank + 5
            yield (Case(f"SORT/{d}-{down}").put(A, v)
                   .insn("pool", f"SORT ch=4 comparison={'is_gt' if down else 'is_lt'} "
                         f"src={t(d, A, 20)} dst={t(d, O, 0, '[1,2][2,20]')} index_offset=5 "
                         "stable=1").want(O, out.reshape(4, 40)))
    for d in ("fp32", "i32"):
        v = values(d, 12, 32)
        v[:, ::3] = 0
        keep = np.full((32, 13), 99, np.int32)
        for p in (0, 16):
            at = np.flatnonzero(v[p] != 0)
            keep[p] = np.concatenate([at + 100, np.full(12 - len(at), -1), [len(at)]])
        yield (Case(f"NONZERO_WITH_COUNT/{d}").put(A, v).put(O, np.full((32, 13), 99, np.int32))
               .insn("pool", f"NONZERO_WITH_COUNT ch=32 src={t(d, A, 12)} index_offset=100 "
                     f"padding_val=0xffffffff dst={t('i32', O, 13)}").want(O, keep))
    v = np.tile(np.array([0, -0.0, np.nan, 1e-45, -np.inf, 0, 1], f32), (16, 1))
    keep = np.full((16, 8), 9, np.int32)
    keep[0] = 2, 3, 4, 6, -1, -1, -1, 4  # what is not equal to zero, NaN among it
    for target in ("trn2", "trn3"):
        yield (Case("NONZERO_WITH_COUNT/special", target).put(A, v).put(O, np.full((16, 8), 9, np.int32))
               .insn("pool", f"NONZERO_WITH_COUNT ch=16 src={t('fp32', A, 7)} "
                     f"padding_val=0xffffffff dst={t('i32', O, 8)}").want(O, keep))
    v = np.round(floats(64))
    v[0, :4] = np.nan, 1, 2, np.nan
    x = v.reshape(R, 4, 2, 4, 2).transpose(0, 1, 3, 2, 4).reshape(R, 16, 4)
    y = np.argmax(x, axis=2)
    yield (Case("MAX_POOL_SELECT").put(A, v)
           .insn("pool", f"MAX_POOL_SELECT src={t('fp32', A, 0, '[1,8,2,16][2,2,4,4]')} ch={R} "
                 f"pool_dim=XY dst={t('u8', O, 16)}").want(O, y.astype(np.uint8)))


NF4 = [-1, -.6962, -.5251, -.3949, -.2844, -.1848, -.0911, 0, .0796, .1609, .2461, .3379, .4407,
       .5626, .7230, 1]
FP4 = [0.0, .5, 1, 1.5, 2, 3, 4, 6]
FP6 = [m / 8 for m in range(8)] + [(1 + m / 8) * 2.0 ** (e - 1) for e in (1, 2, 3)
                                   for m in range(8)]


def unpack(target):
    int4 = list(range(8)) + list(range(-8, 0))
    fp4 = FP4 + [-x for x in FP4]
    for fmt, levels, d in (("FP4_E5M2", fp4, "fp8e5m2"), ("INT4_E5M2", int4, "fp8e5m2"),
                           ("NF4_E4M3", NF4, "fp8e4m3")):
        code = rng.integers(0, 16, (R, 32))
        code[0, :16] = np.arange(16)
        packed = (code[:, 0::2] | code[:, 1::2] << 4).astype(np.uint8)
        y = cast(np.array(levels, f32)[code], d)
        yield (Case(f"TENSOR_DEQUANTIZE/{fmt}", target).put(A, packed)
               .insn("pool", f"TENSOR_DEQUANTIZE src={t('u32', A, 4)} ch={R} dequant_fmt={fmt} "
                     f"dst={t('u32', O, 8)}").want(O, y))
    code = rng.integers(0, 64, (R, 32))
    code[0], code[1] = np.arange(32), np.arange(32, 64)
    bits = (code[:, :, None] >> np.arange(6) & 1).reshape(R, -1)
    packed = np.packbits(bits, axis=1, bitorder="little")
    y = cast(np.array(FP6 + [-x for x in FP6], f32)[code], "fp8e4m3")
    yield (Case("TENSOR_DEQUANTIZE/FP6_E4M3", target).put(A, packed)
           .insn("pool", f"TENSOR_DEQUANTIZE src={t('u32', A, 6)} ch={R} dequant_fmt=FP6_E4M3 "
                 f"dst={t('u32', O, 8)}").want(O, y))
    yield (Case("TENSOR_DEQUANTIZE/groups", target, fails="E8202")
           .insn("pool", f"TENSOR_DEQUANTIZE src={t('u32', A, 5)} ch={R} dequant_fmt=FP4_E5M2 "
                 f"group_size=8 dst={t('u32', O, 8)}"))


def unpacking():
    yield from unpack("trn2")
    yield from unpack("trn3")
    yield (Case("TENSOR_DEQUANTIZE/v2", "trn1", fails="E5501")
           .insn("pool", f"TENSOR_DEQUANTIZE src={t('u32', A, 4)} ch={R} dequant_fmt=FP4_E5M2 "
                 f"dst={t('u32', O, 8)}"))


def addresses():
    x = rng.integers(-1000, 1000, (R, 6)).astype(np.int32)
    y = (x.astype(np.int64) * 4096 + 0x123456789A).view(np.uint64)
    yield (Case("TENSOR_SCALAR_ADDR/rows").put(A, x)
           .insn("pool", f"TENSOR_SCALAR_ADDR src={t('i32', A, 6)} imm0=0x1000 imm1=0x123456789a "
                 f"imm0_imm1_dtype=i32/u64 op0=mult op1=add ch={R} dst={t('u64', O, 6)}")
           .want(O, y))
    base = rng.integers(0, 1 << 60, (R, 1), dtype=np.uint64)
    yield (Case("TENSOR_SCALAR_ADDR/pointer").put(A, x).put(B, base)
           .insn("pool", f"TENSOR_SCALAR_ADDR src={t('i32', A, 6)} imm0={B:#x} "
                 f"imm0_imm1_dtype=u64/u64 imm0_src=POINTER_IMMEDIATE op0=add ch={R} "
                 f"dst={t('u64', O, 6)}").want(O, (x.astype(np.int64).view(np.uint64) + base)))
    yield (Case("TENSOR_SCALAR_ADDR/32-bit").put(A, x)
           .insn("pool", f"TENSOR_SCALAR_ADDR src={t('i32', A, 6)} imm0=0xffffffff imm1=0x7 "
                 f"imm0_imm1_dtype=i32/i32 op0=mult op1=add ch={R} dst={t('i32', O, 6)}")
           .want(O, 7 - x))
    v = rng.integers(0, 1 << 62, (R, 6), dtype=np.uint64)
    v[:, 0], v[:, 1], v[:, 2] = 1 << 40, (1 << 40) + 99, (1 << 40) + 100
    y = ((v - np.uint64(1 << 40)) < 100).astype(np.int32)
    yield (Case("TENSOR_SCALAR_ADDR/range").put(A, v)
           .insn("pool", f"TENSOR_SCALAR_ADDR src={t('u64', A, 6)} imm0={1 << 40:#x} imm1=0x64 "
                 f"imm0_imm1_dtype=u64/u64 op0=subtract op1=is_lt ch={R} dst={t('i32', O, 6)}")
           .want(O, y))
    yield (Case("TENSOR_SCALAR_ADDR/other", fails="E5509").put(A, v)
           .insn("pool", f"TENSOR_SCALAR_ADDR src={t('u64', A, 6)} op0=max ch={R} "
                 f"dst={t('u64', O, 6)}"))


ONE = " ".join(f"{x}={t('fp32', A, 1)}" for x in ("src0", "src1", "dst"))


def extended():
    v, w = floats(8, 128), floats(8, 128)
    yield (Case("EXTENDED_INST").put(A, v).put(B, w)
           .insn("pool", f"EXTENDED_INST ext_opcode=TENSOR_TENSOR_ARITH op=subtract "
                 f"src0={t('fp32', A, 8)} src1={t('fp32', B, 8)} dst={t('fp32', O, 8)}")
           .want(O, v - w))
    yield (Case("EXTENDED_INST/nop").put(A, v).insn("pool", f"EXTENDED_INST ext_opcode=NOP {ONE}")
           .want(A, v))
    yield Case("EXTENDED_INST/copy", fails="E8202").insn("pool", f"EXTENDED_INST ext_opcode=COPY {ONE}")
    for row in ("LOAD_POOL_ARGUMENT imm_ptr_select=1",
                "MODIFY_POOL_CONFIG modify_op=LOAD core_mask=0xff library_index=3"):
        yield Case(row.split()[0]).put(A, v).insn("pool", row).want(A, v)  # nothing changes


def cases():
    for group in (patterns, lanes, gathers, order, unpacking, addresses, extended):
        yield from group()

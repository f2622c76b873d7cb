"""Tensor indirection of v4: operands whose elements a list of offsets picks."""
import numpy as np

from dve import fold, floats, values
from harness import Case, cast, f32, wide
from pe import fetch, group, ldw, mm, product

A, B, C, O = 0, 0x2000, 0x4000, 0x6000
rng = np.random.default_rng(8)


def lists(r, n, limit, size=16, unique=False):
    """Offsets of each group of partitions, and where they lie: snake order over its lanes."""
    groups = -(-r // size)
    at = np.stack([rng.permutation(limit)[:n] if unique else rng.integers(0, limit, n)
                   for _ in range(groups)])
    cols = -(-n // size)
    m = np.zeros((groups, size, cols), np.uint16)
    for i in range(n):
        m[:, i % size, i // size] = at[:, i]
    full = np.repeat(at, size, axis=0)[:r]
    return m.reshape(groups * size, cols), full


def op(d, index, data, n, part=0):
    return f"{d}@index:sbuf[p{part}+{index:#x}]->sbuf[p{part}+{data:#x}][{n}]"


def vector():
    for engine, r, n in (("dve", 32, 40), ("act", 64, 33), ("pool", 16, 8), ("dve", 20, 5)):
        for d in ("fp32", "bf16"):
            v = values(d, 100, r)
            idx, at = lists(r, n, 100)
            got = np.take_along_axis(v, at, axis=1)
            yield (Case(f"COPY/gather-{engine}-{r}x{n}-{d}", "trn3").put(A, v).put(B, idx)
                   .insn(engine, f"COPY src={op(d, B, A, n)} ch={r} dst={d}@sbuf[p0+{O:#x}][1][{n}]")
                   .want(O, got))
    idx, at = lists(32, 40, 100, unique=True)
    v, old = floats(40), floats(100)
    want = old.copy()
    np.put_along_axis(want, at, v * f32(2), axis=1)
    yield (Case("TENSOR_SCALAR_ARITH/scatter", "trn3").put(A, v).put(B, idx).put(O, old)
           .insn("dve", f"TENSOR_SCALAR_ARITH src=fp32@sbuf[p0+{A:#x}][1][40] ch=32 op0=mult "
                 f"imm0=2.0 dst={op('fp32', B, O, 40)}").want(O, want))
    v, w = floats(100), floats(40)
    got = np.take_along_axis(v, at, axis=1)
    yield (Case("TENSOR_TENSOR_ARITH/gather", "trn3").put(A, v).put(B, idx).put(C, w)
           .insn("dve", f"TENSOR_TENSOR_ARITH op=subtract ch=32 src0={op('fp32', B, A, 40)} "
                 f"src1=fp32@sbuf[p0+{C:#x}][1][40] dst=fp32@sbuf[p0+{O:#x}][1][40]")
           .want(O, got - w))
    yield (Case("TENSOR_REDUCE_ARITH/gather", "trn3").put(A, v).put(B, idx)
           .insn("dve", f"TENSOR_REDUCE_ARITH src={op('fp32', B, A, 40)} ch=32 op=add op_dim=X "
                 f"dst=fp32@sbuf[p0+{O:#x}][1][1]").want(O, fold("add", got)[:, None]))
    yield (Case("ACTIVATE/gather", "trn3").put(A, v).put(B, idx)
           .insn("act", f"ACTIVATE square src={op('fp32', B, A, 40)} ch=32 scale=1.0 "
                 f"bias=fp32@0.5 dst=bf16@sbuf[p0+{O:#x}][1][40]")
           .want(O, cast((got + f32(0.5)) ** 2, "bf16")))
    yield (Case("COPY/register-list", "trn3").put(A, v).put(B, idx)
           .insn("dve", f"MOVE num_mov=1 dtype=u32 source=IMMEDIATE dst_regs=[5] imm=[{B}]")
           .insn("dve", f"COPY src=fp32@index:reg[5]->sbuf[p0+{A:#x}][40] ch=32 "
                 f"dst=fp32@sbuf[p0+{O:#x}][1][40]").want(O, got))
    # a predicated store leaves the rest of what it could reach
    take = rng.integers(0, 2, (32, 40)).astype(np.uint8)
    want = old.copy()
    new = np.where(take != 0, w, np.take_along_axis(old, at, axis=1))
    np.put_along_axis(want, at, new, axis=1)
    yield (Case("COPY_PREDICATED/scatter", "trn3").put(A, take).put(B, idx).put(C, w).put(O, old)
           .insn("dve", f"COPY_PREDICATED ch=32 src0=u8@sbuf[p0+{A:#x}][1][40] "
                 f"src1=fp32@sbuf[p0+{C:#x}][1][40] dst={op('fp32', B, O, 40)}").want(O, want))
    # only what is picked must have been written
    yield (Case("COPY/unwritten", "trn3", fails="E8304").put(A, v[:, :50]).put(B, idx)
           .insn("dve", f"COPY src={op('fp32', B, A, 40)} ch=32 dst=fp32@sbuf[p0+{O:#x}][1][40]"))
    yield (Case("COPY/outside", "trn3", fails="E8302")
           .put(B, np.full((16, 1), 65535, np.uint16))
           .insn("dve", f"COPY src={op('fp32', B, 0x20000, 16)} ch=16 "
                 f"dst=fp32@sbuf[p0+{O:#x}][1][16]"))
    yield (Case("COPY/before-v4", "trn2", fails="E5513")
           .insn("dve", f"COPY src={op('fp32', B, A, 40)} ch=32 dst=fp32@sbuf[p0+{O:#x}][1][40]"))


def tensor():
    k, m, n = 64, 32, 20
    w, x = cast(floats(m, k), "bf16"), cast(floats(70, k), "bf16")
    idx, at = lists(k, n, 70, size=32)
    got = np.take_along_axis(x, at, axis=1)
    c = Case("MATMUL/gather", "trn3").put(A, w).put(B, x).put(C, idx)
    c.insn("pe", ldw("bf16", m, k, A))
    text = mm("bf16", n, m, k, byte=B).replace(f"bf16@sbuf[p0+{B:#x}][1][{n}]",
                                              op("bf16", C, B, n))
    yield fetch(c.insn("pe", text), m, n).want(0xC000, product(wide(w), wide(got)))
    widx, wat = lists(k, m, 70, size=32)
    c = Case("LDWEIGHTS/gather", "trn3").put(A, x).put(B, w).put(C, widx)
    c.insn("pe", f"LDWEIGHTS src={op('bf16', C, A, m)} num_active_rows={k} num_active_cols={m} "
           f"row_grp={group(0, k):#x} col_grp=0x1")
    c.insn("pe", mm("bf16", m, m, k, byte=B))
    picked = np.take_along_axis(x, wat, axis=1)
    yield fetch(c, m, m).want(0xC000, product(wide(picked), wide(w)))
    # sums scattered over a bank: the second group member adds where the first one wrote
    didx, dat = lists(m, n, 60, size=32, unique=True)
    v = cast(floats(n, k), "bf16")
    part = product(wide(w), wide(v))
    want = np.zeros((m, 60), f32)
    np.put_along_axis(want, dat, part + part, axis=1)
    c = Case("MATMUL/scatter", "trn3").put(A, w).put(B, v).put(C, didx)
    c.insn("dve", "MEMSET dst_element_count=60 ch=32 dst=fp32@psum[p0][1][60]")
    c.insn("pe", ldw("bf16", m, k, A))
    for flag in (1, 6):
        text = mm("bf16", n, m, k, flags=flag, byte=B)
        c.insn("pe", text.replace(f"dst=psum[p0+0x0][1][{n}]",
                                  f"dst=fp32@index:sbuf[p0+{C:#x}]->psum[p0+0x0][{n}]"))
    yield fetch(c, m, 60).want(0xC000, want)


def cases():
    yield from vector()
    yield from tensor()

"""DMA instructions: copies, casts, arithmetic, rows by index, transposes."""
import numpy as np

from dve import values
from harness import DTYPES, Case, cast, wide

A, B, O = 0, 0x1000, 0x4000
P = 1 << 18  # bytes from partition to partition
rng = np.random.default_rng(12)


def wait(case, engine="sp", n=16):
    return case.insn(engine, f"EVENT_SEMAPHORE wait S[9]>={n}")


def memcpy(src, dst, kind="DMA_MEMCPY", extra=""):
    """src, dst: (address, steps, counts, element bytes)."""
    text = f"{kind} semaphore=9 sem_increment=16"
    for name, (addr, step, num, size) in (("src", src), ("dst", dst)):
        text += f" {name}={addr} {name}_step_elem=[{step[0]},{step[1]}] " \
            f"{name}_num_elem=[{num[0]},{num[1]}] {name}_elem_size={size}"
    return f"{text} {extra}"


def reorder(text):
    """Fields in the order of the table."""
    words = text.split()
    order = ["semaphore", "sem_increment", "compute_op", "dge_opcode", "src", "src_step_elem",
             "src_num_elem", "src_elem_size", "src_bound_reg", "dst_bound_reg", "dst",
             "dst_step_elem", "dst_num_elem", "dst_elem_size", "in_dtype", "out_dtype"]
    return " ".join(words[:1] + sorted(words[1:], key=lambda w: order.index(w.split("=")[0])))


def copies():
    for engine in ("sp", "act", "pool", "dve", "pe"):
        v = rng.integers(0, 1 << 32, (8, 24), dtype=np.uint32)
        c = Case(f"DMA_MEMCPY/{engine}").var("x", "input", v).put(O, np.zeros((8, 24), np.uint32))
        c.insn(engine, reorder(memcpy((0, (1, 24), (24, 8), 4), (O, (1, P // 4), (24, 8), 4))))
        c.reloc("src", "x")
        yield wait(c, engine).want(O, v)
    v = values("bf16", 24, 8)
    c = Case("DMA_MEMCPY/store").put(A, v).var("y", "inout", np.zeros_like(v), v)
    c.insn("sp", reorder(memcpy((A, (1, P // 2), (24, 8), 2), (0, (1, 24), (24, 8), 2))))
    yield wait(c.reloc("dst", "y"))
    # rows reversed, every other element; 64 KiB elements are written as 0
    v = rng.integers(0, 255, (6, 32), dtype=np.uint8)
    c = Case("DMA_MEMCPY/strides").put(A, v).put(O, np.zeros((1, 96), np.uint8))
    c.insn("sp", reorder(memcpy((5 * P, (2, -P), (16, 6), 1), (O, (1, 16), (16, 6), 1))))
    yield wait(c).want(O, v[::-1, ::2].reshape(1, 96))
    v = rng.integers(0, 255, (1, 65536), dtype=np.uint8)
    c = Case("DMA_MEMCPY/64k").var("x", "input", v).var("y", "inout", np.zeros_like(v), v)
    c.insn("sp", reorder(memcpy((0, (1, 1), (1, 1), 0), (0, (1, 1), (1, 1), 0))))
    yield wait(c.reloc("src", "x").reloc("dst", "y"))
    # an address from two registers
    v = rng.integers(0, 1 << 32, (4, 8), dtype=np.uint32)
    c = Case("DMA_MEMCPY/registers").put(A, v).put(O, np.zeros((4, 8), np.uint32))
    c.insn("sp", "MOVE num_mov=2 dtype=u32 source=IMMEDIATE dst_regs=[4,5] imm=[0,0]")
    c.insn("sp", reorder(memcpy(("reg[4,5]", (1, P // 4), (8, 4), 4),
                                (O, (1, P // 4), (8, 4), 4))))
    yield wait(c).want(O, v)
    # before loading: variables by number
    v = rng.integers(0, 1 << 32, (4, 8), dtype=np.uint32)
    y = np.zeros((5, 8), np.uint32)
    y[1:] = v
    c = Case("PSEUDO_DMA_DIRECT2D").var("x", "input", v).var("y", "inout", np.zeros_like(y), y)
    c.insn("sp", reorder(memcpy(("var[1]", (1, 8), (8, 4), 4), ("var[2+0x20]", (1, 8), (8, 4), 4),
                                "PSEUDO_DMA_DIRECT2D")))
    yield wait(c)
    yield Case("PSEUDO_DMA_DIRECT2D/kind", fails="E8202").insn(
        "sp", "PSEUDO_DMA_DIRECT2D dge_opcode=DMA_TRANSPOSE")
    yield Case("DMA_MEMCPY/bound", fails="E8202").insn(
        "sp", reorder(memcpy((0, (1, 1), (1, 1), 4), (O, (1, 1), (1, 1), 4), extra="src_bound_reg=0x83")))
    yield Case("DMA_MEMCPY/outside", fails="E8205").insn(
        "sp", reorder(memcpy((0, (1, 1), (1, 1), 4), (0x3FFFE, (1, 1), (1, 1), 4))))


def casts():
    names = [d for d in DTYPES if d not in ("i64", "u64")]
    for di in names:
        for do in ("fp32", "bf16", "fp8e5m2", "i8", "u32"):
            if di == do:
                continue
            v = values(di, 12, 8)
            si, so = v.dtype.itemsize, np.dtype(DTYPES[do]).itemsize
            want = cast(wide(v), do)
            c = Case(f"DMA_MEMCPY/{di}-{do}").put(A, v).put(O, np.zeros_like(want))
            c.insn("sp", reorder(memcpy((A, (1, P // si), (12, 8), si), (O, (1, P // so), (12, 8), so),
                                        extra=f"in_dtype={di} out_dtype={do}")))
            yield wait(c).want(O, want)
    ops = {"ADD": lambda a, b: a + b, "MULTIPLY": lambda a, b: a * b, "MAX": np.maximum,
           "MIN": np.minimum}
    for op, fn in ops.items():
        for di, do in (("fp32", "fp32"), ("bf16", "fp32"), ("bf16", "bf16"), ("fp32", "i32")):
            v, old = values(di, 12, 8), values(do, 12, 8)
            si, so = v.dtype.itemsize, old.dtype.itemsize
            with np.errstate(all="ignore"):
                want = cast(fn(wide(old), wide(v)), do)
            c = Case(f"DMA_MEMCPY/{op}-{di}-{do}").put(A, v).put(O, old)
            c.insn("sp", reorder(memcpy((A, (1, P // si), (12, 8), si), (O, (1, P // so), (12, 8), so),
                                        extra=f"compute_op={op} in_dtype={di} out_dtype={do}")))
            yield wait(c).want(O, want)


def indirect(kind, lanes, n, size, src, dst, src_idx=0, dst_idx=0, extra=""):
    return f"{kind} semaphore=9 sem_increment=16 idx_num_active_channels={lanes} {extra} " \
        f"src={src[0]} src_step_elem={src[1]} src_num_elem={n} src_elem_size={size} " \
        f"dst={dst[0]} dst_step_elem={dst[1]} dst_num_elem={n} dst_elem_size={size} " \
        f"src_idx={src_idx:#x} dst_idx={dst_idx:#x}"


def by_index():
    table = rng.integers(0, 1 << 32, (40, 8), dtype=np.uint32)
    for n in (6, 128, 200):
        idx = rng.integers(0, 40, n)
        lanes = min(n, 128) if n != 200 else 100
        at = np.zeros((lanes, -(-n // lanes)), np.uint32)
        for k, i in enumerate(idx):
            at[k % lanes, k // lanes] = i
        want = table[idx]
        c = Case(f"DMA_INDIRECT/gather-{n}").put(B, at).var("x", "input", table)
        c.var("y", "inout", np.zeros_like(want), want)
        c.insn("pool", indirect("DMA_INDIRECT", lanes, n, 32, (0, 1), (0, 1), src_idx=B))
        yield wait(c.reloc("src", "x").reloc("dst", "y"), "pool")
    idx = rng.permutation(40)[:16]
    v = rng.integers(0, 1 << 32, (16, 8), dtype=np.uint32)
    want = table.copy()
    want[idx] = v
    c = Case("DMA_INDIRECT/scatter").put(B, idx.astype(np.uint32)[:, None]).var("x", "input", v)
    c.var("y", "inout", table, want)
    c.insn("pool", indirect("DMA_INDIRECT", 16, 16, 32, (0, 1), (0, 1), dst_idx=B, extra="flags=0x1"))
    yield wait(c.reloc("src", "x").reloc("dst", "y"), "pool")
    take = rng.integers(0, 16, 16)
    want = table.copy()
    want[idx] = v[take]
    c = Case("DMA_INDIRECT/both").put(B, idx.astype(np.uint32)[:, None])
    c.put(0x1100, take.astype(np.uint32)[:, None]).var("x", "input", v).var("y", "inout", table, want)
    c.insn("pool", indirect("DMA_INDIRECT", 16, 16, 32, (0, 1), (0, 1), src_idx=0x1100, dst_idx=B,
                            extra="flags=0x2"))
    yield wait(c.reloc("src", "x").reloc("dst", "y"), "pool")
    # sums: fp32 inside, bf16 rows
    x, old = values("bf16", 8, 16), values("fp32", 8, 40)
    want = old.copy()
    with np.errstate(all="ignore"):
        want[idx] = old[idx] + wide(x)
    c = Case("DMA_INDIRECT/add").put(B, idx.astype(np.uint32)[:, None]).var("x", "input", x)
    c.var("y", "inout", old, want)
    c.insn("pool", "DMA_INDIRECT semaphore=9 sem_increment=16 idx_num_active_channels=16 flags=0x1 "
           "src=0x0 src_step_elem=1 src_num_elem=16 src_elem_size=16 dst=0x0 dst_step_elem=1 "
           f"dst_num_elem=16 dst_elem_size=32 dst_idx={B:#x} in_dtype=bf16 out_dtype=fp32 "
           "compute_op=ADD")
    yield wait(c.reloc("src", "x").reloc("dst", "y"), "pool")
    # a bound: rows beyond it are left out, or the run ends
    idx = np.array([3, 39, 100, 0], np.uint32)
    old = np.full((4, 8), 7, np.uint32)
    want = np.stack([table[3], table[39], old[2], table[0]])
    for strict in (0, 4):
        c = Case(f"DMA_INDIRECT/bound-{strict}", fails="E8302" if strict else None)
        c.put(B, idx[:, None]).var("x", "input", table).var("y", "inout", old, want)
        c.insn("pool", "MOVE num_mov=1 dtype=u32 source=IMMEDIATE dst_regs=[6] imm=[40]")
        c.insn("pool", indirect("DMA_INDIRECT", 4, 4, 32, (0, 1), (0, 1), src_idx=B,
                                extra=f"flags={strict:#x}") + " src_idx_bound_reg=0x86")
        yield wait(c.reloc("src", "x").reloc("dst", "y"), "pool")


def transposes():
    for d in ("bf16", "fp32"):
        for r, n in ((16, 24), (64, 8)):
            v = values(d, n, r)
            es = v.dtype.itemsize
            c = Case(f"DMA_TRANSPOSE/{d}-{r}x{n}").var("x", "input", v)
            c.put(O, np.zeros((n, r), DTYPES[d]))
            c.insn("sp", f"DMA_TRANSPOSE in_dtype={d} out_dtype={d} src=0x0 src_step_elem=[1,{n}] "
                   f"src_num_elem=[{n},{r}] dst={O:#x} dst_step_elem=[1,{P // es}] "
                   f"dst_num_elem=[{r},{n}] tile_cols={n} semaphore=9")
            yield wait(c.reloc("src", "x")).want(O, v.T)
    for target in ("trn2", "trn3"):
        table = values("bf16", 24, 40)
        idx = rng.integers(0, 40, 32)
        c = Case("DMA_GATHER_TRANSPOSE", target).var("x", "input", table)
        c.put(B, idx.astype(np.uint32)[:, None]).put(O, np.zeros((24, 32), DTYPES["bf16"]))
        c.insn("pool", "DMA_GATHER_TRANSPOSE semaphore=9 idx_num_active_channels=32 src=0x0 "
               f"src_step_elem=[1,24] src_num_elem=[24,32] src_idx={B:#x} dst={O:#x} "
               f"dst_step_elem_1={P // 2} dst_num_elem=[32,24] elem_size=2 dtype=bf16/bf16")
        yield wait(c.reloc("src", "x"), "pool").want(O, table[idx].T)
    yield (Case("DMA_GATHER_TRANSPOSE/wide", fails="E5507").put(B, np.zeros((32, 1), np.uint32))
           .insn("pool", "DMA_GATHER_TRANSPOSE semaphore=9 idx_num_active_channels=32 src=0x0 "
                 f"src_step_elem=[1,24] src_num_elem=[24,32] src_idx={B:#x} dst={O:#x} "
                 "dst_num_elem=[32,24] elem_size=4 dtype=fp32/fp32"))


def triggers():
    v = values("u8", 40, 128)  # the cases' own transfers are such triggers
    yield (Case("PSEUDO_DMA_TRIGGER/nothing", fails="E8203")
           .insn("sp", 'PSEUDO_DMA_TRIGGER queue="nowhere" block_id=3'))
    yield (Case("PSEUDO_DMA_TRIGGER/foreign", fails="E8203").put(A, v)
           .insn("act", 'PSEUDO_DMA_TRIGGER queue="q_in"'))
    # block 0 of the input queue once more
    yield (Case("PSEUDO_DMA_TRIGGER").put(A, v).insn("dve", f"MEMSET dst_element_count=40 ch=128 "
           f"dst=u8@sbuf[p0+{A:#x}][1][40]").insn("sp", 'PSEUDO_DMA_TRIGGER queue="q_in"')
           .insn("sp", "EVENT_SEMAPHORE wait S[3]>=32").want(A, v))


def cases():
    for group in (copies, casts, by_index, transposes, triggers):
        yield from group()

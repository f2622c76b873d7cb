"""Tensor engine: dense products, passes of fp32, double rows, tiles, transposes, PSUM groups, MX
types and structured sparsity."""
import ml_dtypes as ml
import numpy as np

from dve import SPECIAL
from harness import DTYPES, TARGETS, Case, cast, f32, wide
from rand import Lfsr, between, stream

A, B, C, O = 0, 0x4000, 0x8000, 0xC000
START, END = 1, 2
rng = np.random.default_rng(30)


def floats(r, n, scale=1.0):
    return (rng.standard_normal((r, n)) * scale).astype(f32)


def product(w, x):
    """In the order of the partitions, fp32 after each step."""
    acc = np.zeros((w.shape[1], x.shape[1]), f32)
    with np.errstate(all="ignore"):
        for k in range(len(w)):
            acc = acc + w[k][:, None] * x[k][None, :]
    return acc


def exact(w, x, acc=None):
    """Exact products, fp32 sums."""
    acc = np.zeros((w.shape[1], x.shape[1]), f32)
    for k in range(len(w)):
        p = w[k].astype(np.float64)[:, None] * x[k].astype(np.float64)[None, :]
        acc = (acc.astype(np.float64) + p).astype(f32)
    return acc


def group(start, span):
    if span > 64:
        return 0xF
    if span > 32:
        return 0x3 if start == 0 else 0xC
    return 1 << start // 32


def ldw(dt, m, k, byte=A, rp=0, cp=0, extra="", per=1):
    return f"LDWEIGHTS src={dt}@sbuf[p{rp}+{byte:#x}][1][{m * per}] {extra} num_active_rows={k} " \
        f"num_active_cols={m} row_grp={group(rp, k):#x} col_grp={group(cp, m):#x}"


def mm(dt, n, m, k, flags=3, byte=B, rp=0, cp=0, bank=0, extra="", per=1, out="", dst=None,
       region="", step=1):
    return f"MATMUL src={dt}@sbuf[p{rp}+{byte:#x}][1][{n * per}] {extra} num_active_rows={k} " \
        f"num_active_cols={m} psum_accumulate_flags={flags:#x} row_grp={group(rp, k):#x} " \
        f"col_grp={group(cp, m):#x} {region} " \
        f"dst={out}psum[p{cp}+{2048 * bank if dst is None else dst:#x}][{step}][{n}]"


def v2(text, target):
    """v2 names the bus of the array too."""
    if target != "trn1":
        return text
    bus = {"0xf": 0x10, "0x3": 1, "0xc": 4}
    g = text.split("col_grp=")[1].split()[0]
    at = text.index("col_grp=" + g) + len("col_grp=" + g)
    return f"{text[:at]} xbus_sel={bus.get(g, int(g, 16)):#x}{text[at:]}"


def fetch(case, m, n, cp=0, bank=0, dt="fp32", dst=O, byte=None):
    at = 2048 * bank if byte is None else byte
    return case.insn("dve", f"COPY src={dt}@psum[p{cp}+{at:#x}][1][{n}] ch={m} "
                     f"dst={dt}@sbuf[p{cp}+{dst:#x}][1][{n}]")


def dense():
    shapes = [(128, 128, 512), (128, 32, 70), (32, 128, 64), (1, 1, 1), (100, 60, 33)]
    types = ["bf16", "fp16", "fp8e4m3", "fp8e5m2", "fp8e3m4"]
    for row in ("LDWEIGHTS", "MATMUL"):
        for d in types:
            for k, m, n in shapes[: 5 if d == "bf16" else 2]:
                for target in TARGETS.values():
                    w, x = cast(floats(k, m), d), cast(floats(k, n), d)
                    c = Case(f"{row}/{d}-{k}x{m}x{n}", target).put(A, w).put(B, x)
                    c.insn("pe", v2(ldw(d, m, k), target)).insn("pe", v2(mm(d, n, m, k), target))
                    yield fetch(c, m, n).want(O, product(wide(w), wide(x)))
    w, x = cast(floats(64, 32), "fp8e5m2"), cast(floats(64, 40), "bf16")
    c = Case("MATMUL/mixed").put(A, w).put(B, x).insn("pe", ldw("fp8e5m2", 32, 64))
    yield fetch(c.insn("pe", mm("bf16", 40, 32, 64)), 32, 40).want(O, product(wide(w), wide(x)))
    w, x = floats(32, 32), floats(32, 12)
    w[5, 3], w[6, 4], x[5, 7], x[6, 7] = np.inf, np.nan, 0, 1
    w, x = cast(w, "bf16"), cast(x, "bf16")
    c = Case("MATMUL/special").put(A, w).put(B, x).insn("pe", ldw("bf16", 32, 32))
    yield fetch(c.insn("pe", mm("bf16", 12, 32, 32)), 32, 12).want(O, product(wide(w), wide(x)))
    # a register holds the address; a reversed pattern
    w, x = cast(floats(32, 32), "bf16"), cast(floats(32, 12), "bf16")
    c = Case("MATMUL/register").put(A, w).put(B, x).insn("pe", ldw("bf16", 32, 32))
    c.insn("pe", f"MOVE num_mov=1 dtype=u32 source=IMMEDIATE dst_regs=[5] imm=[{B + 22}]")
    c.insn("pe", mm("bf16", 12, 32, 32).replace(f"sbuf[p0+{B:#x}][1][12]", "reg[5][-1][12]"))
    yield fetch(c, 32, 12).want(O, product(wide(w), wide(x)[:, ::-1]))


def tiles():
    for rp, cp, k, m, target in ((32, 64, 32, 32, "trn2"), (64, 0, 64, 64, "trn1"),
                                 (0, 64, 64, 64, "trn2"), (96, 96, 32, 32, "trn3"),
                                 (64, 32, 20, 32, "trn2")):
        w, x = cast(floats(k, m), "bf16"), cast(floats(k, 20), "bf16")
        c = Case(f"MATMUL/tile-{rp}-{cp}-{k}x{m}", target).put(A, w, rp).put(B, x, rp)
        c.insn("pe", v2(ldw("bf16", m, k, rp=rp, cp=cp), target))
        c.insn("pe", v2(mm("bf16", 20, m, k, rp=rp, cp=cp), target))
        yield fetch(c, m, 20, cp).want(O, product(wide(w), wide(x)), cp)
    # four tiles hold their weights at once
    w, x = cast(floats(128, 32), "bf16"), cast(floats(128, 8), "bf16")
    c = Case("LDWEIGHTS/tiles").put(A, w).put(B, x)
    for g in range(4):
        c.insn("pe", ldw("bf16", 32, 32, rp=32 * g, cp=32 * g))
    for g in range(4):
        c.insn("pe", mm("bf16", 8, 32, 32, rp=32 * g, cp=32 * g))
    y = np.concatenate([product(wide(w[32 * g:32 * g + 32]), wide(x[32 * g:32 * g + 32]))
                        for g in range(4)])
    yield fetch(c, 128, 8).want(O, y)
    for d in ("fp8e4m3", "fp8e5m2"):
        for target in ("trn2", "trn3"):
            w, x = cast(floats(256, 32), d), cast(floats(256, 24), d)
            pair = [np.concatenate([v[:128], v[128:]], axis=1) for v in (w, x)]
            c = Case(f"MATMUL/double-row-{d}", target).put(A, pair[0]).put(B, pair[1])
            c.insn("pe", ldw(d, 32, 128, extra="perf_opt=DOUBLE_ROW", per=2))
            c.insn("pe", mm(d, 24, 32, 128, extra="perf_opt=DOUBLE_ROW", per=2))
            yield fetch(c, 32, 24).want(O, product(wide(w), wide(x)))
    for mode in ("DOUBLE_COLUMN", "DOUBLE_PIXEL"):
        yield Case(f"MATMUL/{mode}", fails="E8202").insn(
            "pe", mm("bf16", 4, 32, 32, extra=f"perf_opt={mode}"))


def high(v):
    return (v.view(np.uint32) & 0xFFFFF000).view(f32)


def tf32(v):
    b = v.view(np.uint32).astype(np.uint64)
    return ((b + 0xFFF + (b >> 13 & 1)).astype(np.uint32) & np.uint32(0xFFFFE000)).view(f32)


def fp32():
    for target in TARGETS.values():
        w, x = floats(64, 32), floats(64, 40)
        c = Case("MATMUL/fp32", target).put(A, w).put(B, x)
        for k, mode in enumerate(("LOW", "HIGH")):
            c.insn("pe", v2(ldw("fp32", 32, 64, extra=f"fp32_mode={mode}"), target))
            c.insn("pe", v2(mm("fp32", 40, 32, 64, flags=(START, END)[k],
                               extra="fp32_mode=LOW_HIGH"), target))
        y = exact(w - high(w), x) + exact(high(w), x)
        # both passes together are the exact product
        assert np.abs(y - w.T.astype(np.float64) @ x).max() < 1e-5
        yield fetch(c, 32, 40).want(O, y)
        c = Case("MATMUL/tf32", target).put(A, w).put(B, x)
        c.insn("pe", v2(ldw("fp32", 32, 64, extra="fp32_mode=HIGH"), target))
        c.insn("pe", v2(mm("fp32", 40, 32, 64, extra="fp32_mode=HIGH"), target))
        yield fetch(c, 32, 40).want(O, product(tf32(w), tf32(x)))


def groups():
    w = [cast(floats(128, 32), "bf16") for _ in range(3)]
    x = [cast(floats(128, 40), "bf16") for _ in range(3)]
    parts = [product(wide(a), wide(b)) for a, b in zip(w, x)]
    flags = {"trn1": (1, 0, 2), "trn2": (1, 0, 2), "trn3": (1, 4, 6)}
    for target, f in flags.items():
        c = Case("MATMUL/group", target)
        for k in range(3):
            c.put(A + 0x100 * k, w[k]).put(B + 0x100 * k, x[k])
        for again in range(2):  # a second group starts afresh
            for k in range(3):
                c.insn("pe", v2(ldw("bf16", 32, 128, A + 0x100 * k), target))
                c.insn("pe", v2(mm("bf16", 40, 32, 128, f[k], B + 0x100 * k), target))
        yield fetch(c, 32, 40).want(O, (parts[0] + parts[1]) + parts[2])
    # two groups open in one bank: the second start makes the first overwrite again
    c = Case("MATMUL/one-bank")
    for k in range(3):
        c.put(A + 0x100 * k, w[k]).put(B + 0x100 * k, x[k])
    for k, (flag, dst) in enumerate(((1, 0), (1, 512), (2, 0))):
        c.insn("pe", ldw("bf16", 32, 128, A + 0x100 * k))
        c.insn("pe", mm("bf16", 40, 32, 128, flag, B + 0x100 * k, dst=dst))
    yield fetch(c, 32, 40).want(O, parts[2])
    c = Case("MATMUL/two-banks")
    for k in range(3):
        c.put(A + 0x100 * k, w[k]).put(B + 0x100 * k, x[k])
    for k, (flag, dst) in enumerate(((1, 0), (1, 2048), (2, 0))):
        c.insn("pe", ldw("bf16", 32, 128, A + 0x100 * k))
        c.insn("pe", mm("bf16", 40, 32, 128, flag, B + 0x100 * k, dst=dst))
    yield fetch(c, 32, 40).want(O, parts[0] + parts[2])
    # a larger zero region of v4 reaches the next bank
    c = Case("MATMUL/region", "trn3")
    for k in range(3):
        c.put(A + 0x100 * k, w[k]).put(B + 0x100 * k, x[k])
    for k, (flag, dst) in enumerate(((1, 0), (1, 2048), (2, 0))):
        c.insn("pe", ldw("bf16", 32, 128, A + 0x100 * k))
        c.insn("pe", mm("bf16", 40, 32, 128, flag, B + 0x100 * k, dst=dst,
                        region="psum_zero_region=B4096"))
    yield fetch(c, 32, 40).want(O, parts[2])
    # bf16 in PSUM: one rounding after every accumulating instruction
    c = Case("MATMUL/psum-bf16", "trn3")
    for k in range(3):
        c.put(A + 0x100 * k, w[k]).put(B + 0x100 * k, x[k])
    for k in range(3):
        c.insn("pe", ldw("bf16", 32, 128, A + 0x100 * k))
        c.insn("pe", mm("bf16", 40, 32, 128, (1, 4, 6)[k], B + 0x100 * k, out="bf16@"))
    y = cast(parts[0], "bf16")
    for p in parts[1:]:
        y = cast(wide(y) + p, "bf16")
    yield fetch(c, 32, 40, dt="bf16").want(O, y)
    # halves of a word are elements of their own
    c = Case("MATMUL/psum-halves", "trn3")
    for k in range(2):
        c.put(A + 0x100 * k, w[k]).put(B + 0x100 * k, x[k])
    for k in range(2):
        c.insn("pe", ldw("bf16", 32, 128, A + 0x100 * k))
        c.insn("pe", mm("bf16", 40, 32, 128, (1, 0)[k], B + 0x100 * k, out="bf16@", dst=2 * k,
                        step=2))
    y = np.stack([cast(parts[0], "bf16"), cast(parts[1], "bf16")], axis=2).reshape(32, 80)
    yield fetch(c, 32, 80, dt="bf16").want(O, y)
    yield Case("MATMUL/quantised", "trn1", fails="E8202").insn(
        "pe", v2(mm("u8", 40, 32, 128, 0, extra="quant_offset=3"), "trn1"))
    yield Case("MATMUL/scalar", "trn3", fails="E8202").insn(
        "pe", mm("bf16", 40, 32, 128).replace("psum_acc", "flags=SCALAR:1 psum_acc"))
    yield fetch(Case("MATMUL/unstarted", fails="E8304").put(A, w[0]).put(B, x[0])
                .insn("pe", ldw("bf16", 32, 128)).insn("pe", mm("bf16", 40, 32, 128, 0)), 32, 40)


def transposes():
    one = {"bf16": "bf16", "fp32": "fp32", "fp8e4m3": "fp8e4m3", "fp16": "fp16"}
    for d in one:
        v = floats(64, 48)
        v.ravel()[::7] = np.resize(SPECIAL, v.ravel()[::7].shape)
        with np.errstate(all="ignore"):
            v = cast(v, d)
        eye = np.eye(64, dtype=DTYPES[d])
        es = v.dtype.itemsize
        out = "fp32" if d == "fp32" else "bf16" if es == 1 else d
        # fp8 becomes 16-bit elements, the upper byte zero
        want = v.T.copy() if es > 1 else v.T.view(np.uint8).astype(np.uint16).view(DTYPES["bf16"])
        for target in ("trn2", "trn3"):
            how = "transpose_mode=1" if target == "trn2" else ""
            flag = "" if target == "trn2" else "flags=TRANSPOSE"
            mode = "fp32_mode=HIGH " if d == "fp32" else ""
            c = Case(f"MATMUL/transpose-{d}", target).put(A, v).put(B, eye)
            c.insn("pe", ldw(d, 48, 64, extra=mode))
            text = mm(d, 64, 48, 64, extra=mode + how, out=f"{out}@")
            if flag:
                text = text.replace("psum_acc", f"{flag} psum_acc")
            c.insn("pe", text)
            yield fetch(c, 48, 64, dt=out).want(O, want)
    # on v2 an identity multiplies: an infinity spoils its column
    v = floats(64, 48)
    v[3, 5], v[4, 9] = np.inf, np.nan
    v = cast(v, "bf16")
    eye = cast(np.eye(64, dtype=f32), "bf16")
    c = Case("MATMUL/transpose-v2", "trn1").put(A, v).put(B, eye)
    c.insn("pe", v2(ldw("bf16", 48, 64), "trn1")).insn("pe", v2(mm("bf16", 64, 48, 64), "trn1"))
    yield fetch(c, 48, 64).want(O, product(wide(v), wide(eye)))


FP4 = np.array([0.0, .5, 1, 1.5, 2, 3, 4, 6] + [-0.0, -.5, -1, -1.5, -2, -3, -4, -6], f32)
MX = {"fp8e4m3": (ml.float8_e4m3fn, 4), "fp8e5m2": (ml.float8_e5m2, 4), "0x10": (None, 2)}


def mx_data(d, k, n):
    """Packed cells of n elements, their values [k][n][4], scale bytes per 8 partitions."""
    if d == "0x10":
        code = rng.integers(0, 16, (k, n, 4))
        v = FP4[code]
        raw = (code[..., 0::2] | code[..., 1::2] << 4).astype(np.uint8).reshape(k, 2 * n)
    else:
        t = MX[d][0]
        x = (rng.standard_normal((k, n, 4)) * 4).astype(t)
        v, raw = x.astype(f32), x.view(np.uint8).reshape(k, 4 * n)
    scale = rng.integers(118, 136, (k // 8, n)).astype(np.uint8)
    s = np.repeat(np.ldexp(f32(1), scale.astype(np.int32) - 127), 8, axis=0)
    return raw, v * s[:, :, None], scale


def place(scale, off):
    """Scale rows where they belong: four of each 32 partitions, from `off` on."""
    groups, n = scale.shape
    full = np.zeros((groups // 4 * 32, n), np.uint8)
    for g in range(groups):
        full[g // 4 * 32 + g % 4 + off] = scale[g]
    return full


def mx_op(d, byte, sbyte, n, off=0, step=1, part=0):
    if step < 0:
        byte, sbyte = byte + (n - 1) * MX[d][1], sbyte + n - 1
    return f"{d}@sbuf[p{part}+{byte:#x}]*sbuf[p{part}+{sbyte:#x}][{4 * n},{step},{off}]"


def by_planes(w, x):
    """Value 0 of every element first, each in the order of the partitions."""
    return product(np.concatenate([w[:, :, q] for q in range(4)]),
                   np.concatenate([x[:, :, q] for q in range(4)]))


def scaled():
    for row in ("LDWEIGHTS_MX", "MATMUL_MX"):
        for dw, dx in (("fp8e4m3", "fp8e4m3"), ("fp8e5m2", "0x10"), ("0x10", "fp8e4m3")):
            for k, off, step in ((128, 0, 1), (32, 8, 1), (64, 4, -1)):
                m, n = 32, 24
                rw, w, sw = mx_data(dw, k, m)
                rx, x, sx = mx_data(dx, k, n)
                c = Case(f"{row}/{dw}-{dx}-{k}-{off}", "trn3").put(A, rw).put(B, rx)
                c.put(C, place(sw, off)).put(C + 0x100, place(sx, 0))
                g = group(0, k)
                c.insn("pe", f"LDWEIGHTS_MX src={mx_op(dw, A, C, m, off, step)} "
                       f"num_active_rows={k} num_active_cols={m} row_grp={g:#x}")
                c.insn("pe", f"MATMUL_MX src={mx_op(dx, B, C + 0x100, n)} num_active_rows={k} "
                       f"num_active_cols={m} psum_accumulate_flags=0x3 row_grp={g:#x} col_grp=0xf "
                       f"dst=fp32@psum[p0][1][{n}]")
                yield fetch(c, m, n).want(O, by_planes(w[:, ::step], x))
    # accumulating, with bf16 sums; a scale of 255 is NaN
    k, m, n = 32, 32, 16
    rw, w, sw = mx_data("fp8e5m2", k, m)
    rx, x, sx = mx_data("fp8e5m2", k, n)
    part = by_planes(w, x)
    c = Case("MATMUL_MX/psum-bf16", "trn3").put(A, rw).put(B, rx).put(C, place(sw, 0))
    c.put(C + 0x100, place(sx, 0))
    c.insn("pe", f"LDWEIGHTS_MX src={mx_op('fp8e5m2', A, C, m)} num_active_rows={k} "
           f"num_active_cols={m} row_grp=0x1")
    for flag in (1, 6):
        c.insn("pe", f"MATMUL_MX src={mx_op('fp8e5m2', B, C + 0x100, n)} num_active_rows={k} "
               f"num_active_cols={m} psum_accumulate_flags={flag:#x} row_grp=0x1 col_grp=0xf "
               f"dst=bf16@psum[p0][1][{n}]")
    y = cast(part, "bf16")
    yield fetch(c, m, n, dt="bf16").want(O, cast(wide(y) + part, "bf16"))
    sx[1, 3] = 255
    x[8:16, 3] = np.nan
    c = Case("MATMUL_MX/nan-scale", "trn3").put(A, rw).put(B, rx).put(C, place(sw, 0))
    c.put(C + 0x100, place(sx, 0))
    c.insn("pe", f"LDWEIGHTS_MX src={mx_op('fp8e5m2', A, C, m)} num_active_rows={k} "
           f"num_active_cols={m} row_grp=0x1")
    c.insn("pe", f"MATMUL_MX src={mx_op('fp8e5m2', B, C + 0x100, n)} num_active_rows={k} "
           f"num_active_cols={m} psum_accumulate_flags=0x3 row_grp=0x1 col_grp=0xf "
           f"dst=fp32@psum[p0][1][{n}]")
    yield fetch(c, m, n).want(O, by_planes(w, x))
    yield Case("LDWEIGHTS_MX/unwritten-scales", "trn3", fails="E8304").put(A, rw).insn(
        "pe", f"LDWEIGHTS_MX src={mx_op('fp8e5m2', A, C, m)} num_active_rows={k} "
        f"num_active_cols={m} row_grp=0x1")


def quantised():
    for src in ("bf16", "fp16"):
        for d, t, top, limit in (("fp8e4m3", ml.float8_e4m3fn, 8, 448),
                                 ("fp8e5m2", ml.float8_e5m2, 15, 57344)):
            p, n = 64, 40
            v = floats(p, n) * np.ldexp(1.0, rng.integers(-10, 10, (p, n))).astype(f32)
            v[:8, :4] = 0
            v = cast(v, src)
            x = wide(v).reshape(p // 8, 8, n // 4, 4)
            largest = np.abs(x).max(axis=(1, 3))
            with np.errstate(divide="ignore"):
                e = np.floor(np.log2(largest)) - (top - 1)
            scale = np.where(largest == 0, 0, e + 127).astype(np.uint8)
            q = (x / np.ldexp(1.0, scale.astype(np.int32) - 127)[:, None, :, None]).astype(f32)
            assert np.abs(q).max() < limit  # nothing needs the saturation
            for header in ("", "hdr.inst_word_len=0x11 "):
                c = Case(f"QUANTIZE_MX/{src}-{d}{'-clip' if header else ''}", "trn3").put(A, v)
                c.put(C, np.zeros((p, n // 4), np.uint8))
                c.insn("dve", f"QUANTIZE_MX src={src}@sbuf[p0+{A:#x}][1][{n}] ch={p} "
                       f"dst={mx_op(d, O, C, n // 4)} {header}")
                yield c.want(O, q.astype(t).reshape(p, n)).want(C, place(scale, 0))
    # one NaN or infinity makes its group NaN; groups too small for a scale byte keep byte 0
    v = floats(32, 16)
    v[:8, :4], v[8:16, :4], v[16:24, :4] = 1, np.ldexp(f32(1), -125), 2
    v[3, 1], v[17, 2], v[18, 2] = np.nan, np.inf, 1
    v = cast(v, "bf16")
    x = wide(v).reshape(4, 8, 4, 4)
    with np.errstate(all="ignore"):
        e = np.floor(np.log2(np.abs(x).max(axis=(1, 3)))) - 7
        scale = np.where(np.isfinite(e), np.clip(e + 127, 0, 254), 255).astype(np.uint8)
    assert scale[0, 0] == scale[2, 0] == 255 and scale[1, 0] == 0
    with np.errstate(all="ignore"):
        s = np.where(scale == 255, np.nan, np.ldexp(1.0, scale.astype(np.int32) - 127))
        q = (x / s[:, None, :, None]).astype(f32).astype(ml.float8_e4m3fn).reshape(32, 16)
    c = Case("QUANTIZE_MX/special", "trn3").put(A, v).put(C, np.zeros((32, 4), np.uint8))
    c.insn("dve", f"QUANTIZE_MX src=bf16@sbuf[p0+{A:#x}][1][16] ch=32 dst={mx_op('fp8e4m3', O, C, 4)}")
    yield c.want(O, q).want(C, place(scale, 0))
    # there and back: a product of quantised data
    v = cast(floats(32, 64), "bf16")
    c = Case("QUANTIZE_MX/into-matmul", "trn3").put(A, v)
    one = f"QUANTIZE_MX src=bf16@sbuf[p0+{A:#x}][1][64] ch=32 dst={mx_op('fp8e4m3', O, C, 16)}"
    c.insn("dve", one)
    c.insn("pe", f"LDWEIGHTS_MX src={mx_op('fp8e4m3', O, C, 16)} num_active_rows=32 "
           "num_active_cols=16 row_grp=0x1")
    c.insn("pe", f"MATMUL_MX src={mx_op('fp8e4m3', O, C, 16)} num_active_rows=32 "
           "num_active_cols=16 psum_accumulate_flags=0x3 row_grp=0x1 col_grp=0xf "
           "dst=fp32@psum[p0][1][16]")
    x = wide(v).reshape(4, 8, 16, 4)
    s = np.ldexp(1.0, (np.floor(np.log2(np.abs(x).max(axis=(1, 3)))) - 7).astype(np.int32))
    q = ((x / s[:, None, :, None]).astype(ml.float8_e4m3fn).astype(f32)
         * s[:, None, :, None].astype(f32)).reshape(32, 16, 4)
    yield fetch(c, 16, 16, dst=O + 0x400).want(O + 0x400, by_planes(q, q))


def sparse():
    patterns = {"4:16": (4, 0), "4:12": (3, 0), "4:8": (2, 0), "2:8": (4, 8), "2:4": (2, 8),
                "1:4": (4, 12), "1:2": (2, 12)}
    for number, (name, (maps, force)) in enumerate(patterns.items()):
        k, m, n = 64, 32, 20
        w, x = cast(floats(k, m), "bf16"), cast(floats(k, maps * n), "bf16")
        row, fmap = rng.integers(0, 4, (k, m)), rng.integers(0, maps, (k, m))
        tag = row << 2 | fmap
        word = np.zeros((k, m // 4), np.uint16)
        for c in range(m):
            word[:, c // 4] |= (tag[:, c] << 4 * (c % 4)).astype(np.uint16)
        own = np.arange(k)[:, None] % 4
        f = force >> 2
        at = np.arange(k)[:, None] // 4 * 4 + ((row & ~f) | (own & f))
        xs = wide(x).reshape(k, maps, n)
        acc = np.zeros((m, n), f32)
        for i in range(k):
            acc = acc + wide(w)[i][:, None] * xs[at[i], fmap[i]]
        for r in ("LDTAGS", "MATMUL_SPARSE"):
            c = Case(f"{r}/{name}", ("trn2", "trn3")[number % 2]).put(A, w).put(B, x).put(C, word)
            c.insn("pe", ldw("bf16", m, k))
            c.insn("pe", f"LDTAGS tags=i16@sbuf[p0+{C:#x}][1][{m // 4}] force_tag={force} "
                   f"num_active_rows={k} row_grp=0x3")
            c.insn("pe", f"MATMUL_SPARSE src=bf16@sbuf[p0+{B:#x}][1,{n}][{n},{maps}] "
                   f"num_active_rows={k} num_active_cols={m} psum_accumulate_flags=0x3 "
                   f"row_grp=0x3 dst=fp32@psum[p0][1][{n}]")
            yield fetch(c, m, n).want(O, acc)
    c = Case("MATMUL_SPARSE/no-map", fails="E8305").put(A, w).put(B, x)
    c.put(C, np.full((64, 8), 0xFFFF, np.uint16)).insn("pe", ldw("bf16", 32, 64))
    c.insn("pe", f"LDTAGS tags=i16@sbuf[p0+{C:#x}][1][8] num_active_rows=64 row_grp=0x3")
    yield c.insn("pe", f"MATMUL_SPARSE src=bf16@sbuf[p0+{B:#x}][1,20][20,2] num_active_rows=64 "
                 "num_active_cols=32 psum_accumulate_flags=0x3 row_grp=0x3 "
                 "dst=fp32@psum[p0][1][20]")
    v = rng.integers(0, 1 << 32, (16, 128), dtype=np.uint32)
    seed = "PE_MANAGE_SEED src=sbuf[p0+{:#x}][1][128] identity=bf16@sbuf[p0][1][1] mode={} " \
        "dst=sbuf[p0+{:#x}][1][128]"
    # the first row of seeds rounds sums to bf16, a lane a column
    w, x = cast(floats(64, 32), "bf16"), cast(floats(64, 20), "bf16")
    bits, _ = stream(Lfsr, v[0, :32, None], 20)
    c = Case("PE_MANAGE_SEED/stochastic", "trn3").seed(5).put(A, w).put(B, x).put(C, v)
    c.insn("pe", seed.format(C, "LOAD", O)).insn("pe", ldw("bf16", 32, 64))
    c.insn("pe", mm("bf16", 20, 32, 64, out="bf16@"))
    yield fetch(c, 32, 20, dt="bf16").want(O, between(product(wide(w), wide(x)), "bf16", bits))
    yield (Case("PE_MANAGE_SEED", "trn3").put(A, v).insn("pe", seed.format(A, "LOAD", O))
           .insn("pe", seed.format(A, "SAVE", O)).want(O, v))


def cases():
    for g in (dense, tiles, fp32, groups, transposes, scaled, quantised, sparse):
        yield from g()

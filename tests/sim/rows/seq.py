"""The sequencer: registers, branches, loops, calls, semaphores, barriers."""
import numpy as np

from harness import TARGETS, Case, f32

O = 0x4000
M = 0xFFFFFFFF
rng = np.random.default_rng(3)


def move(pairs, dtype="u32"):
    """Immediates into registers, at most eight."""
    regs, vals = zip(*pairs)
    return f"MOVE num_mov={len(regs)} dtype={dtype} source=IMMEDIATE " \
        f"dst_regs=[{','.join(map(str, regs))}] imm=[{','.join(str(v & M) for v in vals)}]"


def store(regs, byte=O, dtype="u32", step=1):
    data = bytes(regs).hex()
    return f"TENSOR_STORE dtype={dtype} num_elem=[{len(regs)},1] start={byte:#x} " \
        f"step_elem=[{step},0] data=0x{data}"


def u32(*v):
    return np.array([v], np.uint64).astype(np.uint32)


def alu(op, dtype, a, b=None, imm=None, dst=10):
    src1 = f"src1_datasrc=IMMEDIATE imm={imm & (1 << 64) - 1:#x}" if imm is not None \
        else f"src1_lo={b}"
    return f"ALU_OP op={op} dtype={dtype} src0_lo={a} {src1} dst_lo={dst}"


INT = {"add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "mult": lambda a, b: a * b,
       "max": max, "min": min, "bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b,
       "bitwise_xor": lambda a, b: a ^ b, "is_lt": lambda a, b: int(a < b),
       "is_eq": lambda a, b: int(a == b), "is_ge": lambda a, b: int(a >= b)}


def registers():
    yield (Case("MOVE").at("sp", move([(1, 7), (2, M), (3, 9)]))
           .at("sp", "MOVE num_mov=2 dtype=u32 src_regs=[1,2] dst_regs=[2,1]")  # at once
           .at("sp", store([1, 2, 3])).insn("sp", "NOP").want(O, u32(M, 7, 9)))
    pairs = [(5, 3), (M, 1), (0x7FFFFFFF, 2), (0x80000000, M), (12345, 12345)]
    for dtype in ("i32", "u32"):
        sign = (lambda v: v - (1 << 32) if v >> 31 else v) if dtype == "i32" else lambda v: v
        for op, fn in INT.items():
            c, want = Case(f"ALU_OP/{op}-{dtype}"), []
            for k, (a, b) in enumerate(pairs):
                c.at("act", move([(1, a), (2, b)]))
                c.at("act", alu(op, dtype, 1, 2, dst=10 + 2 * k))
                c.at("act", alu(op, dtype, 1, imm=b, dst=11 + 2 * k))
                bits = op.startswith("bitwise")
                r = fn(a, b) if bits else fn(sign(a), sign(b))
                want += [r & M, r & M]
            yield c.at("act", store(range(10, 20))).insn("act", "NOP").want(O, u32(*want))
    x, y = f32(2.5), f32(-0.75)
    bits = [int(v.view(np.uint32)) for v in (x, y)]
    c = Case("ALU_OP/fp32").at("pool", move([(1, bits[0]), (2, bits[1])]))
    for k, op in enumerate(("add", "subtract", "mult", "max")):
        c.at("pool", alu(op, "fp32", 1, 2, dst=10 + k))
    want = np.array([[x + y, x - y, x * y, max(x, y)]], f32)
    yield c.at("pool", store(range(10, 14))).insn("pool", "NOP").want(O, want)
    c = Case("ALU_OP/convert").at("pool", move([(1, bits[0]), (2, bits[1])]))
    c.at("pool", "ALU_OP op=mult dtype=fp32 dst_dtype=i32 src0_lo=1 src1_lo=2 dst_lo=3")
    yield c.at("pool", store([3])).insn("pool", "NOP").want(O, np.array([[-2]], np.int32))
    a, b = 0x0123456789ABCDEF, 0xFEDCBA9876543210
    for op, r in (("add", a + b), ("subtract", a - b), ("mult", a * b)):
        c = Case(f"ALU_OP/{op}-u64").at("sp", move([(2, a), (3, a >> 32), (4, b), (5, b >> 32)]))
        c.at("sp", f"ALU_OP op={op} dtype=u64 src0_lo=2 src0_hi=3 src1_lo=4 src1_hi=5 dst_lo=6 "
             "dst_hi=7").at("sp", store([6], dtype="u64"))
        yield c.insn("sp", "NOP").want(O, np.array([[r & (1 << 64) - 1]], np.uint64))
    # loads extend to 32 bits, stores cut
    v = np.array([[0x80, 0x7F, 0xFF, 1]], np.uint8)
    for d, want in (("u8", [0x80, 0x7F, 0xFF, 1]), ("i8", [-128, 127, -1, 1])):
        yield (Case(f"TENSOR_LOAD/{d}").put(0, v)
               .insn("sp", f"TENSOR_LOAD dtype={d} num_elem=[2,2] start=0x0 step_elem=[1,2] "
                     "data=0x01020304")
               .insn("sp", store([1, 2, 3, 4])).want(O, u32(*[w & M for w in want])))
    v = np.array([[1, -2, 3, -4]], np.int16)
    yield (Case("TENSOR_LOAD/stride").put(0, v)
           .insn("dve", "TENSOR_LOAD dtype=i16 num_elem=[2,1] start=0x2 step_elem=[2,0] data=0x0908")
           .insn("dve", store([8, 9])).want(O, u32(-4 & M, -2 & M)))
    v = np.array([[0x1122334455667788, 5]], np.uint64)
    yield (Case("TENSOR_LOAD/u64").put(0, v)
           .insn("dve", "TENSOR_LOAD dtype=u64 num_elem=[2,1] start=0x0 step_elem=[1,0] data=0x0204")
           .insn("dve", store([2, 3, 4, 5]))
           .want(O, u32(0x55667788, 0x11223344, 5, 0)))
    for d, n in (("u8", 1), ("u16", 2), ("u32", 4)):
        want = np.array([[0x11223344 & (1 << 8 * n) - 1] * 2], d.replace("u", "uint"))
        yield (Case(f"TENSOR_STORE/{d}").at("pool", move([(1, 0x11223344)]))
               .at("pool", store([1, 1], dtype=d)).insn("pool", "NOP").want(O, want))
    yield (Case("TENSOR_STORE/immediates")
           .at("sp", f"TENSOR_STORE dtype=u16 src_datasrc=IMMEDIATE num_elem=[3,1] start={O:#x} "
               "step_elem=[1,0] data=0x010002000300").insn("sp", "NOP")
           .want(O, np.array([[1, 2, 3]], np.uint16)))
    yield (Case("PSEUDO_TENSOR_STORE")
           .var("v", "inout", np.zeros(4, np.uint32), np.array([[0, 77, 0, 0]], np.uint32))
           .at("sp", move([(1, 77)]))
           .at("sp", "PSEUDO_TENSOR_STORE dtype=u32 num_elem=[1,1] var_id=1 var_offset=4 "
               "step_elem=[1,0] data=0x01"))
    yield (Case("PSEUDO_TENSOR_LOAD").var("v", "input", np.array([5, 6, 7], np.uint32))
           .at("sp", "PSEUDO_TENSOR_LOAD dtype=u32 num_elem=[2,1] var_id=1 var_offset=4 "
               "step_elem=[1,0] data=0x0908")
           .at("sp", store([9, 8])).insn("sp", "NOP").want(O, u32(6, 7)))
    # an address from a register
    w = np.arange(8, dtype=np.uint32)[None, :]
    yield (Case("MOVE/address").put(0x100, w)
           .insn("dve", move([(7, 0x110)]))
           .insn("dve", f"COPY src=u32@reg[7][1][4] ch=1 dst=u32@sbuf[p0+{O:#x}][1][4]")
           .want(O, w[:, 4:]))


CMP = {"LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "EQ": lambda a, b: a == b,
       "NE": lambda a, b: a != b, "GE": lambda a, b: a >= b, "GT": lambda a, b: a > b}


def branches():
    for kind in ("IMM", "REG"):
        for op, fn in CMP.items():
            for d in ("i32", "u32"):
                c, want = Case(f"COMPARE_BRANCH/{op}-{kind}-{d}"), []
                for k, (a, b) in enumerate(((3, 4), (4, 4), (5, 4), (-1, 4), (4, -1))):
                    c.at("sp", move([(1, a), (2, b), (10 + k, 1)]))
                    imm = f"cmp_imm={b & M}" if kind == "IMM" else "cmp_reg1=2"
                    c.at("sp", f"COMPARE_BRANCH cmp_op={op}_{kind} dtype={d} "
                         f"target_mode=RELATIVE_IMMEDIATE {imm} cmp_reg0=1 branch=2")
                    c.at("sp", move([(10 + k, 0)]))
                    x, y = (a, b) if d == "i32" else (a & M, b & M)
                    want.append(int(fn(x, y)))
                yield c.at("sp", store(range(10, 15))).insn("sp", "NOP").want(O, u32(*want))
    # a loop: sum of 1..10
    c = Case("COMPARE_BRANCH/loop").at("sp", move([(1, 10), (2, 0)]))
    c.at("sp", alu("add", "i32", 2, 1, dst=2)).at("sp", alu("subtract", "i32", 1, imm=1, dst=1))
    c.at("sp", "COMPARE_BRANCH cmp_op=GT_IMM dtype=i32 target_mode=RELATIVE_IMMEDIATE cmp_imm=0 "
         "cmp_reg0=1 branch=-2")
    yield c.at("sp", store([2])).insn("sp", "NOP").want(O, u32(55))
    for mode, reg in (("RELATIVE_REGISTER", 2), ("REGISTER", 3)):
        c = Case(f"COMPARE_BRANCH/{mode}").at("sp", move([(5, reg), (1, 1)]))
        c.at("sp", f"COMPARE_BRANCH target_mode={mode} target_reg_lo=5").at("sp", move([(1, 0)]))
        yield c.at("sp", store([1])).insn("sp", "NOP").want(O, u32(1))
    c = Case("PSEUDO_BRANCH_LABEL").at("sp", move([(1, 1)]))
    c.at("sp", "COMPARE_BRANCH target_mode=RELATIVE_IMMEDIATE branch=2").at("sp", move([(1, 0)]))
    yield c.at("sp", "PSEUDO_BRANCH_LABEL").at("sp", store([1])).insn("sp", "NOP").want(O, u32(1))
    yield Case("COMPARE_BRANCH/outside", fails="E8302").at(
        "sp", "COMPARE_BRANCH target_mode=RELATIVE_IMMEDIATE branch=100").at("sp", "NOP")


def calls():
    begin = 'PSEUDO_FUNCTION_BEGIN name="{}" return_lo={} return_hi={}'
    for row in ("PSEUDO_FUNCTION_BEGIN", "PSEUDO_FUNCTION_CALL", "PSEUDO_FUNCTION_RETURN"):
        c = Case(row).at("sp", move([(1, 1), (2, 100)]))
        c.at("sp", 'PSEUDO_FUNCTION_CALL name="twice"').at("sp", alu("add", "i32", 2, 1, dst=2))
        c.at("sp", 'PSEUDO_FUNCTION_CALL name="twice"').at("sp", store([1, 2]))
        c.insn("sp", "NOP").at("sp", "COMPARE_BRANCH target_mode=RELATIVE_IMMEDIATE branch=10")
        c.at("sp", begin.format("twice", 62, 63)).at("sp", alu("add", "i32", 1, 1, dst=1))
        c.at("sp", 'PSEUDO_FUNCTION_CALL name="inner"')
        c.at("sp", "PSEUDO_FUNCTION_RETURN")
        c.at("sp", begin.format("inner", 60, 61)).at("sp", alu("add", "i32", 1, imm=10, dst=1))
        c.at("sp", "PSEUDO_FUNCTION_RETURN").at("sp", "NOP").at("sp", "NOP")
        yield c.want(O, u32(34, 112))  # 1 -> 12; 100 + 12; 12 -> 34
    yield Case("PSEUDO_FUNCTION_CALL/missing", fails="E8202").at(
        "sp", 'PSEUDO_FUNCTION_CALL name="nowhere"')
    yield Case("PSEUDO_FUNCTION_RETURN/alone", fails="E8202").at("sp", "PSEUDO_FUNCTION_RETURN")


def ends():
    for row in ("HALT", "PSEUDO_INST sub_op=EXIT", "PSEUDO_FUNCTION_RETURN"):
        c = Case(f"{row.split()[0]}/ends").at("pool", move([(1, 1), (2, 2)]))
        if row == "PSEUDO_FUNCTION_RETURN":
            c.at("pool", 'PSEUDO_FUNCTION_BEGIN name="main" return_lo=62 return_hi=63')
        c.at("pool", store([1])).at("pool", "DRAIN then S[20]++@complete").at("pool", row)
        c.at("pool", store([2]))
        c.at("sp", "EVENT_SEMAPHORE wait S[20]>=1").insn("sp", "NOP")
        yield c.want(O, u32(1))
    yield Case("PSEUDO_INST/reload", fails="E8202").at("sp", "PSEUDO_INST sub_op=LIBRARY_RELOAD")
    nothing = ["NOP", "ENGINE_NOP", "INSTRUCTION_FLUSH", "NOTIFY", "SET_ORDERING_MODE mode=1",
               "BRANCH_PREFETCH_HINT", "PSEUDO_BRANCH_HINT", 'PSEUDO_DMA_REARM queue="q"',
               'PSEUDO_SWAP_QUEUE_SET queue="q"', "MOVE_SHAPE reg=3 step=[1,2,3,4] num=[5,6,7,8]",
               "PSEUDO_CORE_BARRIER barrier=1 semaphore=7"]
    v = np.arange(6, dtype=np.uint32)[None, :]
    for row in nothing:  # neither registers nor memory change
        for target in TARGETS.values():
            yield (Case(row.split()[0], target).put(O, v).insn("act", move([(1, 5)]))
                   .insn("act", row).insn("act", store([1], O + 0x40))
                   .want(O, v).want(O + 0x40, u32(5)))


def synchronisation():
    flag = u32(1)
    waits = [(">=", 2, 2), (">", 1, 2), ("==", 2, 2), ("<=", 2, 2), ("<", 3, 2)]
    for op, value, have in waits:
        c = Case(f"EVENT_SEMAPHORE/wait{op}")
        c.at("act", f"EVENT_SEMAPHORE then2 S[30]+={have}@complete")
        c.at("sp", "EVENT_SEMAPHORE wait S[30]>=2")  # it has come
        c.at("sp", f"EVENT_SEMAPHORE wait2 S[30]{op}{value}")
        c.at("sp", move([(1, 1)])).at("sp", store([1]))
        yield c.insn("sp", "NOP").want(O, flag)
    for op in (">=", ">", "=="):
        c = Case(f"EVENT_SEMAPHORE/deadlock{op}", fails="E8301")
        yield c.at("sp", f"EVENT_SEMAPHORE wait S[30]{op}7")
    updates = [("S[31]++@complete", 6), ("S[31]--@complete", 4), ("S[31]+=7@read", 12),
               ("S[31]-=2@complete", 3), ("S[31]=9@complete", 9)]
    for text, value in updates:
        c = Case(f"EVENT_SEMAPHORE/{text.replace(' ', '')}")
        c.at("sp", "EVENT_SEMAPHORE then2 S[31]=5@complete")
        c.at("sp", "EVENT_SEMAPHORE wait S[31]==5").at("sp", f"EVENT_SEMAPHORE then2 {text}")
        c.at("sp", f"EVENT_SEMAPHORE wait S[31]=={value}")
        yield c.at("sp", move([(1, 1)])).at("sp", store([1])).insn("sp", "NOP").want(O, flag)
    c = Case("EVENT_SEMAPHORE/event").at("act", "EVENT_SEMAPHORE then2 E[9]++@complete")
    c.at("sp", "EVENT_SEMAPHORE wait2 E[9]--").at("sp", move([(1, 1)])).at("sp", store([1]))
    yield c.insn("sp", "NOP").want(O, flag)
    c = Case("EVENT_SEMAPHORE/register").at("act", "EVENT_SEMAPHORE then2 S[30]+=3@complete")
    c.at("sp", move([(4, 3), (1, 1)])).at("sp", "EVENT_SEMAPHORE wait S[30]>=r4")
    yield c.at("sp", store([1])).insn("sp", "NOP").want(O, flag)
    for clear, left in (("clear=RANGE first=30 last=31", (0, 0, 5)),
                        ("clear=BITMASK bitmask=[0x40000000,1]", (0, 5, 0))):
        c = Case(f"EVENT_SEMAPHORE_RANGE_CLEAR/{clear[6]}")
        for s in (30, 31, 32):
            c.at("sp", f"EVENT_SEMAPHORE then2 S[{s}]=5@complete")
            c.at("sp", f"EVENT_SEMAPHORE wait S[{s}]==5")
        c.at("sp", f"EVENT_SEMAPHORE_RANGE_CLEAR {clear}")
        for s, v in zip((30, 31, 32), left):
            c.at("sp", f"EVENT_SEMAPHORE wait S[{s}]=={v}")
        yield c.at("sp", move([(1, 1)])).at("sp", store([1])).insn("sp", "NOP").want(O, flag)
    # DRAIN: what the datapath wrote is there for the sequencer
    c = Case("DRAIN").insn("dve", "MEMSET dst_element_count=1 ch=1 set_value=0x2a "
                           "dst=u32@sbuf[p0+0x100][1][1]")
    c.at("dve", "DRAIN").at("dve", "TENSOR_LOAD dtype=u32 num_elem=[1,1] start=0x100 "
                            "step_elem=[1,0] data=0x01")
    yield c.at("dve", store([1])).insn("dve", "NOP").want(O, u32(42))
    c = Case("TENSOR_LOAD/no-drain", fails="E8303").insn(
        "dve", "MEMSET dst_element_count=1 ch=1 set_value=0x2a dst=u32@sbuf[p0+0x100][1][1]")
    yield c.at("dve", "TENSOR_LOAD dtype=u32 num_elem=[1,1] start=0x100 step_elem=[1,0] data=0x01")


def barriers():
    # everyone writes, meets, and the last reads what all wrote
    c = Case("PSEUDO_SYNC_BARRIER")
    for k, e in enumerate(("act", "pool", "dve")):
        c.at(e, f"MEMSET dst_element_count=1 ch=1 set_value={k + 1:#x} "
             f"dst=u32@sbuf[p0+{0x100 + 4 * k:#x}][1][1]" if e != "act" else
             store([0], 0x100 + 4 * k))
        c.at(e, "PSEUDO_SYNC_BARRIER")
    c.at("sp", "PSEUDO_SYNC_BARRIER")
    c.at("sp", "TENSOR_LOAD dtype=u32 num_elem=[3,1] start=0x100 step_elem=[1,0] data=0x010203")
    yield c.at("sp", store([1, 2, 3])).insn("sp", "NOP").want(O, u32(0, 2, 3))
    c = Case("PSEUDO_SYNC_BARRIER/alone", fails="E8301").at("act", "PSEUDO_SYNC_BARRIER")
    yield c.at("sp", "NOP")
    c = Case("PSEUDO_SYNC_BARRIER/twice")
    for e in ("act", "dve", "sp"):
        c.at(e, "PSEUDO_SYNC_BARRIER").at(e, "PSEUDO_SYNC_BARRIER")
    yield c.at("sp", store([0])).insn("sp", "NOP").want(O, u32(0))


def cases():
    for group in (registers, branches, calls, ends, synchronisation, barriers):
        yield from group()

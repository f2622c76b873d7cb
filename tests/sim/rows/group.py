"""Cases of the exchanges between logical cores: every collective on 2 and 4 ranks, messages, ranks;
the bytes that must come out are computed here by NumPy. group_cases.c runs them."""
import subprocess

import numpy as np

import harness
from harness import DTYPES, cast, wide

SIZES = (1, 7, 130, 3001)  # elements of a part


class Case:
    """One run. Names begin with the instruction row they are for, as harness.Case."""

    def __init__(self, name, ranks, target="trn2", fails=None, says=()):
        self.name, self.ranks, self.target, self.fails, self.says = name, ranks, target, fails, says
        self.row = name.split("/")[0]
        self.lines, self.want = [], []

    def group(self, table, *ranks):
        self.lines.append(" ".join(map(str, ("group", table, *ranks))))
        return self

    def pair(self, table, a, b):
        self.lines.append(f"pair {table} {a} {b}")
        return self

    def var(self, rank, name, kind, array, expect=None):
        a = np.ascontiguousarray(array)
        self.lines.append(f"var {rank} {name} {kind} {a.nbytes} {a.tobytes().hex() if kind != 'output' else ''}")
        if kind != "input":
            self.want.append((f"rank {rank} '{name}'", np.ascontiguousarray(expect)))
        return self

    def insn(self, rank, engine, text):
        self.lines.append(f"insn {rank} {engine} {text}")
        return self

    def text(self):
        return "\n".join([f"case {self.name} {self.target} {self.ranks}"] + self.lines + ["end\n"])


def numbers(seed, n, dtype):
    g = np.random.default_rng(seed)
    if dtype in harness.INTS:
        i = np.iinfo(DTYPES[dtype])
        return g.integers(i.min, i.max, n, DTYPES[dtype], endpoint=True)
    return cast(g.standard_normal(n) * 3, dtype)


def reduced(parts, op, dtype):
    """One after another, rounded to the type each time, as DMA engines accumulate."""
    acc = parts[0]
    for p in parts[1:]:
        a, b = wide(acc), wide(p)
        acc = cast({"add": np.add, "max": np.maximum, "min": np.minimum}[op](a, b), dtype)
    return acc


def results(ctype, op, dtype, ins, groups, pairs):
    """What each rank's output must be."""
    out = [None] * len(ins)
    if ctype.startswith("PERMUTE"):
        to = dict(pairs)
        if ctype.endswith("IMPLICIT"):
            to = {g[i]: g[(i + 1) % len(g)] for g in groups for i in range(len(g))}
        back = {b: a for a, b in to.items()}
        for r, x in enumerate(ins):
            if "REDUCE" in ctype:
                out[r] = reduced([x, ins[back[r]]], op, dtype) if r in back else x
            else:
                out[r] = ins[back[r]] if r in back else np.zeros_like(x)
        return out
    for g in groups:
        n = len(g)
        for at, r in enumerate(g):
            parts = [ins[m] for m in g]
            cut = len(ins[r]) // n
            mine = slice(at * cut, (at + 1) * cut)
            out[r] = {"ALL_REDUCE": lambda: reduced(parts, op, dtype),
                      "REDUCE_SCATTER": lambda: reduced([p[mine] for p in parts], op, dtype),
                      "ALL_GATHER": lambda: np.concatenate(parts),
                      "ALL_TO_ALL": lambda: np.concatenate([p[mine] for p in parts])}[ctype]()
    return out


def collective(name, ctype, ranks, n, dtype, op="add", groups=None, pairs=(), target="trn2", table=0):
    c = Case(name, ranks, target)
    groups = groups or [list(range(ranks))]
    if groups != [list(range(ranks))] or table:
        for g in groups:
            c.group(table, *g)
    for a, b in pairs:
        c.pair(table, a, b)
    ins = [numbers(100 * n + r, n, dtype) for r in range(ranks)]
    for r, want in enumerate(results(ctype, op, dtype, ins, groups, pairs)):
        c.var(r, "x", "input", ins[r])
        c.var(r, "y", "output", want, want)
        c.insn(r, ("pool", "sp", "act", "dve")[r % 4],
               f"PSEUDO_TRIGGER_COLLECTIVE op={op} dtype={dtype} group_id={table} input_tensor_id=1 "
               f"output_tensor_id=2 num_elements={n} ctype={ctype} then S[{9 + r}]++@complete")
        c.insn(r, "pe", f"EVENT_SEMAPHORE wait S[{9 + r}]>0")
    return c


def message(c, rank, engine, send, peer, tensor, offset, size, sem):
    c.insn(rank, engine, f"PSEUDO_SENDRECV tensor_id={tensor} peer={peer} is_send={int(send)} offset={offset} "
                         f"size={size} then S[{sem}]++@complete")
    return c.insn(rank, "pe", f"EVENT_SEMAPHORE wait S[{sem}]>0")


def cases():
    row = "PSEUDO_TRIGGER_COLLECTIVE"
    out = []
    for ranks in (2, 4):
        for target in ("trn1", "trn2", "trn3"):
            for ctype in ("ALL_REDUCE", "REDUCE_SCATTER", "ALL_GATHER", "ALL_TO_ALL", "PERMUTE_IMPLICIT",
                          "PERMUTE_REDUCE_IMPLICIT"):
                out.append(collective(f"{row}/{ctype}_{ranks}_{target}", ctype, ranks, 12 * ranks, "fp32",
                                      target=target))
        for n in SIZES:
            for ctype in ("ALL_REDUCE", "ALL_GATHER"):
                out.append(collective(f"{row}/{ctype}_{ranks}_odd{n}", ctype, ranks, n, "bf16"))
            for ctype in ("REDUCE_SCATTER", "ALL_TO_ALL"):
                out.append(collective(f"{row}/{ctype}_{ranks}_odd{n}", ctype, ranks, n * ranks, "bf16"))
        for dtype in ("bf16", "fp16", "fp32", "fp8e4m3", "fp8e5m2"):
            for op in ("add", "max", "min"):
                out.append(collective(f"{row}/ALL_REDUCE_{ranks}_{dtype}_{op}", "ALL_REDUCE", ranks, 77, dtype, op))
                out.append(collective(f"{row}/REDUCE_SCATTER_{ranks}_{dtype}_{op}", "REDUCE_SCATTER", ranks,
                                      33 * ranks, dtype, op))
        for dtype in ("u8", "i16", "i32"):  # moved, not computed
            for ctype in ("ALL_GATHER", "ALL_TO_ALL", "PERMUTE_IMPLICIT"):
                out.append(collective(f"{row}/{ctype}_{ranks}_{dtype}", ctype, ranks, 5 * ranks, dtype))
    # groups of ranks, in an order of their own, and a second table
    out.append(collective(f"{row}/groups", "ALL_REDUCE", 4, 51, "bf16", groups=[[0, 2], [3, 1]]))
    out.append(collective(f"{row}/group_order", "ALL_GATHER", 4, 5, "i32", groups=[[3, 0], [2, 1]]))
    out.append(collective(f"{row}/one_alone", "ALL_REDUCE", 3, 9, "fp32", groups=[[0, 2], [1]]))
    out.append(collective(f"{row}/table_2", "ALL_TO_ALL", 4, 8, "i16", groups=[[0, 1], [2, 3]], table=2))
    # permutations: a ring, a pair, a chain whose first hears nobody, one that sends to itself
    for k, pairs in enumerate(([(0, 1), (1, 2), (2, 3), (3, 0)], [(0, 3), (3, 0)], [(0, 1), (1, 2)], [(2, 2)])):
        out.append(collective(f"{row}/PERMUTE_{k}", "PERMUTE", 4, 13, "bf16", pairs=pairs))
        out.append(collective(f"{row}/PERMUTE_REDUCE_{k}", "PERMUTE_REDUCE", 4, 13, "fp16", "max", pairs=pairs))
    # offsets in bytes, output over input, two in order on one semaphore
    x = [numbers(r, 24, "fp32") for r in range(2)]
    c = Case(f"{row}/in_place", 2)
    for r in range(2):
        y = x[r].copy()
        y[4:10] = reduced([x[0][4:10], x[1][4:10]], "add", "fp32")
        y[10:16] = reduced([x[0][10:16], x[1][10:16]], "max", "fp32")
        c.var(r, "x", "inout", x[r], y)
        for op, at in (("add", 16), ("max", 40)):
            c.insn(r, "sp", f"{row} op={op} dtype=fp32 input_tensor_id=1 output_tensor_id=1 num_elements=6 "
                            f"ctype=ALL_REDUCE src={at} dst={at} then S[7]++@complete")
        c.insn(r, "sp", "EVENT_SEMAPHORE wait S[7]>=2")
    out.append(c)
    for target in ("trn1", "trn2", "trn3"):
        c = Case(f"PSEUDO_ALLREDUCE/{target}", 4, target)
        ins = [numbers(r, 31, "bf16") for r in range(4)]
        for r in range(4):
            want = reduced(ins, "add", "bf16")
            c.var(r, "x", "input", ins[r]).var(r, "y", "output", want, want)
            c.insn(r, "pool", "PSEUDO_ALLREDUCE op=add dtype=bf16 input_tensor_id=1 output_tensor_id=2 num_elements=31 "
                              "then S[5]++@complete").insn(r, "pool", "EVENT_SEMAPHORE wait S[5]>0")
        out.append(c)
        # messages: to each other at once, and along a chain, where each waits for what it sends on
        c = Case(f"PSEUDO_SENDRECV/exchange_{target}", 2, target)
        for r in range(2):
            want = ins[1 - r][3:20]
            c.var(r, "x", "input", ins[r]).var(r, "y", "output", want, want)
            message(c, r, "sp", True, 1 - r, 1, 6, 34, 4)
            message(c, r, "act", False, 1 - r, 2, 0, 34, 5)
        out.append(c)
        c = Case(f"PSEUDO_SENDRECV/chain_{target}", 4, target)
        for r in range(4):
            c.var(r, "x", "inout", ins[r], ins[0])
            if r > 0:
                message(c, r, "sp", False, r - 1, 1, 0, 62, 4)
                c.insn(r, "sp", "EVENT_SEMAPHORE wait S[4]>0")
            if r < 3:
                message(c, r, "sp", True, r + 1, 1, 0, 62, 5)
        out.append(c)
        # the number in a group goes to memory
        c = Case(f"PSEUDO_RANK_ID/{target}", 4, target).group(0, 0, 1, 2, 3).group(1, 3, 1).group(1, 2, 0)
        for r, (a, b) in enumerate(((0, 1), (1, 1), (2, 0), (3, 0))):
            want = np.array([a, b], np.int32)
            c.var(r, "y", "output", want, want)
            for table, reg in ((0, 3), (1, 4)):
                c.insn(r, "sp", f"PSEUDO_RANK_ID group_id={table} dst_reg={reg}")
            c.insn(r, "sp", "PSEUDO_TENSOR_STORE dtype=i32 var_id=1 num_elem=[2,1] "
                            "step_elem=[1,2] data=0x0304")
        out.append(c)
    # what does not load, does not fit, or never ends
    bad = [("sum_of_integers", "E8202", "op=add dtype=i32 num_elements=4 ctype=ALL_REDUCE", None),
           ("product", "E8202", "op=mult dtype=fp32 num_elements=4 ctype=ALL_REDUCE", None),
           ("counts", "E8202", "op=add dtype=fp32 num_elements=4 ctype=ALL_TO_ALL_V", None),
           ("undivided", "E8305", "op=add dtype=fp32 num_elements=3 ctype=ALL_TO_ALL", None),
           ("no_group", "E8305", "op=add dtype=fp32 num_elements=4 ctype=ALL_REDUCE group_id=1", None),
           ("outside", "E8302", "op=add dtype=fp32 num_elements=5 ctype=ALL_REDUCE", None),
           ("other_type", "E8207", "op=add dtype=fp32 num_elements=4 ctype=ALL_REDUCE",
            "op=max dtype=fp32 num_elements=4 ctype=ALL_REDUCE"),
           ("other_count", "E8207", "op=add dtype=fp32 num_elements=4 ctype=ALL_REDUCE",
            "op=add dtype=fp32 num_elements=2 ctype=ALL_REDUCE"),
           ("alone", "E8301", "op=add dtype=fp32 num_elements=4 ctype=ALL_REDUCE", "")]
    for name, code, one, two in bad:
        c = Case(f"{row}/{name}", 2, fails=code,
                 says=("core 0 pool[0]", "core 1 pool[0]") if code == "E8207" else
                 ("core 0 pool[0] PSEUDO_TRIGGER_COLLECTIVE waits for core 1 to take part, which has ended",)
                 if name == "alone" else ())
        for r in range(2):
            y = np.zeros(4, np.float32)
            c.var(r, "x", "input", y).var(r, "y", "output", y, y)
            text = one if r == 0 or two is None else two
            if text:
                c.insn(r, "pool", f"{row} {text} input_tensor_id=1 output_tensor_id=2")
        out.append(c)
    # the output used, and the input overwritten, before the exchange is known to be complete
    for name, tensor, kind in (("early_use", 2, "read"), ("early_write", 1, "write")):
        c = Case(f"{row}/{name}", 2, fails="E8303", says=(f"{kind} by core 0 sp",))
        for r in range(2):
            y = np.zeros(4, np.float32)
            c.var(r, "x", "inout", y, y).var(r, "y", "inout", y, y)
            c.insn(r, "sp", f"{row} op=add dtype=fp32 num_elements=4 ctype=ALL_REDUCE input_tensor_id=1 "
                            "output_tensor_id=2 then S[4]++@complete")
            c.insn(r, "sp", f"PSEUDO_TENSOR_LOAD dtype=fp32 var_id=2 num_elem=[1,1] step_elem=[1,1] data=0x03"
                   if tensor == 2 else "PSEUDO_TENSOR_STORE dtype=i32 var_id=1 "
                                       "num_elem=[1,1] step_elem=[1,1] data=0x03")
        out.append(c)
    # each waits for the other's message before it sends its own
    c = Case("PSEUDO_SENDRECV/deadlock", 2, fails="E8301", says=("core 0 sp", "core 1 sp", "to take part"))
    for r in range(2):
        c.var(r, "x", "inout", np.zeros(8, np.uint8), np.zeros(8, np.uint8))
        c.insn(r, "sp", f"PSEUDO_SENDRECV tensor_id=1 peer={1 - r} is_send=0 offset=0 size=4 then S[4]++@complete")
        c.insn(r, "sp", "EVENT_SEMAPHORE wait S[4]>0")
        c.insn(r, "sp", f"PSEUDO_SENDRECV tensor_id=1 peer={1 - r} is_send=1 offset=4 size=4")
    out.append(c)
    return out


def run(tool, mine):
    """Number of failed cases."""
    done = subprocess.run([tool], input="".join(c.text() for c in mine).encode(), stdout=subprocess.PIPE)
    lines = done.stdout.decode().splitlines()
    failed, at = int(done.returncode != 0), 0
    for c in mine:
        head, rows = lines[at] if at < len(lines) else "", []
        at += 1
        while at < len(lines) and not lines[at].startswith("case "):
            rows.append(lines[at])
            at += 1
        words = head.split(" ", 4)
        why = []
        if c.fails:
            if words[2:4] != ["fail", c.fails] or not all(s in head for s in c.says):
                why = [f"not {c.fails} {c.says}: {head}"]
        elif words[2:3] != ["ok"] or len(rows) != len(c.want):
            why = [head]
        else:
            for line, (where, want) in zip(rows, c.want):
                got = np.frombuffer(bytes.fromhex(line), want.dtype)
                bad = harness.differences(got, want, 0)
                why += [f"{where}: {len(bad)} of {want.size} differ, first [{bad[0]}]: {got[bad[0]]!r}, "
                        f"want {want.ravel()[bad[0]]!r}"] if len(bad) else []
        failed += bool(why)
        for w in why:
            print(f"{c.name}: {w}")
    return failed

"""The language guide holds: every block of frontend/LANGUAGE.md loads, runs or fails as it says; the
rows of its combining table give the instructions named; its lists are those of the sources; its
definition of seeded inputs gives the bits that the program draws."""
import math, os, re, struct, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from util import *

GUIDE = open(os.path.join(ROOT, "frontend/LANGUAGE.md"), encoding="utf-8").read()
DEMO = ["demo", "--dims", "M=300,K=256,N=512,B=16"]
PLACE = "    // the example stands here\n"


def source(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def blocks():
    """(line, marker word, rest of the marker, text) of each fenced copse block."""
    for m in re.finditer(r"^```copse\n(.*?)^```$", GUIDE, re.S | re.M):
        text = m.group(1)
        mark = re.match(r"// (run|error|demo|frame)\b:? ?(.*)\n", text)
        yield (GUIDE.count("\n", 0, m.start()) + 2, mark[1] if mark else "file",
               mark[2].strip() if mark else "", text)


def feed(text, *args):
    """Runs copse with the text as a file of the user's."""
    with open(TMP + "/k.cps", "w") as f:
        f.write(text)
    r = copse(*args, "-I", "k.cps", cwd=TMP)
    return r.returncode, r.stdout.decode(), r.stderr.decode()


FRAME = next(text for _, kind, _, text in blocks() if kind == "frame")
TABLE = next(text for _, kind, rest, text in blocks() if kind == "demo" and rest == "table")
check(FRAME.count(PLACE) == 1, "the frame has one place for examples")


def in_frame(body):
    return FRAME.replace(PLACE, body)


def fails_with(what, code, rc, err):
    got = set(re.findall(r"error: .* \[([EW]\d{4})\]", err))
    check(rc not in (0, 70) and got == {code}, f"{what} gives {got or 'no error'}, not {code}\n{err}")


counts = {}
for line, kind, rest, text in blocks():
    what = f"LANGUAGE.md:{line}"
    counts[kind] = counts.get(kind, 0) + 1
    if kind == "run":
        leaf = re.search(r"^leaf \w+ for \w+ on ([\w, ]+) \{", text, re.M)
        for target in leaf[1].split(", ") if leaf else ["trn2"]:
            rc, out, err = feed(text, "kernel", "run", *rest.split(), "--target", target, "--compare", "ref")
            check(rc == 0 and "within tolerance" in out + err, f"{what}: {rest} on {target}\n{out}{err}")
    elif kind == "error":
        code, *args = rest.split()
        rc, out, err = feed(text, "kernel", *(["run", *args] if args else ["list"]))
        fails_with(what, code, rc, err)
    elif kind == "demo" and rest.startswith("error:"):
        rc, out, err = feed(in_frame(text), "kernel", "run", *DEMO, "--emit", "tile")
        fails_with(what, rest.split()[1], rc, err)
    elif kind == "demo":
        rc, out, err = feed(in_frame(text), "kernel", "run", *DEMO, "--emit", "tile")
        check(rc == 0, f"{what}\n{err}")
    else:
        rc, out, err = feed(text, "kernel", "list")
        check(rc == 0, f"{what}\n{err}")
check(counts.get("run", 0) >= 7 and counts.get("demo", 0) >= 10 and counts.get("error", 0) >= 1,
      f"blocks of every kind: {counts}")

# The sample message is what the block before it gives.
sample = re.search(r"^```copse\n(// demo error: \w+\n(?:(?!```).)*)^```\n\ngives\n\n```text\n(.*?)^```",
                   GUIDE, re.S | re.M)
check(sample is not None, "the sample of a message")
if sample:
    rc, out, err = feed(in_frame(sample[1]), "kernel", "run", *DEMO, "--emit", "tile")
    check(err == sample[2], f"the sample of a message is\n{err}")


# The combining table: each row's statement behind a fence, the instructions that follow it.
def section(title):
    return re.search(rf"^#+ {title}\n(.*?)^#+ ", GUIDE, re.S | re.M)[1]


def instructions(tile):
    out = []
    for l in tile[tile.rindex("\nfence\n") + 7:].splitlines():
        engine = re.search(r" (?:on|pin) (\w+)", l)
        out.append(l.split()[0] + (" " + engine[1] if engine else ""))
    return ", ".join(out)


rows = re.findall(r"^\| `(.*?;)` \| (\w.*?) \|", section("The combining table"), re.M)
check(len(rows) >= 25, f"{len(rows)} rows of the combining table")
for statement, want in rows:
    rc, out, err = feed(in_frame(TABLE + "fence();\n" + statement + "\n"), "kernel", "run", *DEMO,
                        "--emit", "tile")
    check(rc == 0, f"{statement}\n{err}")
    if rc == 0:
        check(instructions(out) == want, f"{statement} becomes {instructions(out)}, not {want}")

# Lists: reserved words, dtypes, intrinsics, functions and codes.
lexical = section("Lexical rules")
reserved = re.search(r"Reserved:\s+`([^`]*)`", lexical)[1].split()
check(sorted(reserved) == sorted(re.findall(r'KEYWORD\("(\w+)"', source("frontend/dsl/keyword.def"))),
      "the reserved words are those of keyword.def")
names = re.findall(r'FUNCTION\("(\w+)",\s*"(\w+)"', source("frontend/dsl/function.def"))
check(sorted(re.search(r", and\s+`([^`]*)`", lexical)[1].split()) == sorted(n for n, w in names if w[0] == "C"),
      "the predefined functions are those of function.def")
dtypes = re.search(r"`([^`]*)`", section("Dtypes"))[1].split()
check(dtypes == re.findall(r'CPS_DTYPE\(\w+,\s*"(\w+)"', source("runtime/base/dtype.def")), "the dtypes")
tops = dict(re.findall(r'CPS_TOP\((\w+),\s*"(\w+)"', source("ir/top.def")))
table = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section("Intrinsics"), re.M))
for top, outs, ins, attrs in re.findall(r'CPS_INTRINSIC\((\w+),\s*"(.*?)",\s*"(.*?)",\s*"(.*?)"\)',
                                        source("frontend/dsl/intrinsic.def")):
    attrs = re.sub(r":\w+", "", attrs)
    got = [c.strip() for c in table.pop(tops[top], "").split("|")]
    check(got == [outs, ins, attrs], f"{tops[top]} takes {outs} | {ins} | {attrs}, not {got}")
check(not table, f"no intrinsics: {sorted(table)}")
marks = re.findall(r'MARK\("(\w+)"', source("frontend/dsl/mark.def"))
check(all(re.search(rf"`{m}\b", GUIDE) for m in marks), "every mark is named")
codes = set(re.findall(r"CPS_DIAG\((\w+),", source("runtime/base/diag.def")))
check(set(re.findall(r"\b[EW]\d{4}\b", GUIDE)) <= codes, "every code exists")
acts = set(re.findall(r'CPS_ACTFN\(\w+,\s*\d+,\s*"(\w+)"', source("codegen/isa/act.def")))
scalar = re.search(r"on ScalarE:\s+`([^`]*)`,\s+and the derivatives\s+`([^`]*)`", section("Expressions"))
listed = set((scalar[1] + " " + scalar[2]).split())
check(listed <= acts and len(listed) >= 27, f"unknown functions {listed - acts}")
body = "sbuf f[128, 64] <- x[0:128, 0:64];\nsbuf d[128, 64]: fp32;\n"
rc, out, err = feed(in_frame(body + "".join(f"d = {f}(f);\n" for f in sorted(listed)) + "y[0:128, 0:64] <- d;\n"),
                    "kernel", "run", *DEMO, "--emit", "tile")
check(rc == 0, f"functions of ScalarE\n{err}")


# Seeded inputs, by the text of the guide.
U64 = (1 << 64) - 1


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & U64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & U64
    return x ^ x >> 31


def draws(seed, index):
    s = mix((mix(seed) + index + 1) & U64)
    while True:
        s = (s + 0x9E3779B97F4A7C15) & U64
        yield mix(s)


def below(it, b):
    while True:
        p = next(it) * b
        if (p & U64) >= (1 << 64) % b:
            return p >> 64


def log(x):
    m, e = math.frexp(x)  # m in [1/2, 1)
    if m < math.sqrt(0.5):
        m, e = m * 2, e - 1
    t = (m - 1) / (m + 1)
    z = t * t
    p = 1 / 25
    for k in range(23, 0, -2):
        p = p * z + 1 / k
    return e * 0.6931471805599453 + 2 * t * p


def cos2pi(v):
    k = math.floor(4 * v + 0.5)
    r = (v - k / 4) * 6.283185307179586
    z = r * r
    odd = k % 2
    p = 1 / math.factorial(16 + odd)
    for i in range(7, -1, -1):
        p = 1 / math.factorial(2 * i + odd) - p * z
    if odd:
        p *= r
    return -p if k % 4 in (1, 2) else p


def normal(it):
    u, v = (1 - (next(it) >> 11) * 2.0**-53 for _ in range(2))
    return math.sqrt(-2 * log(u)) * cos2pi(v)


def npy(path, kind):
    with open(path, "rb") as f:
        b = f.read()
    at = 10 + struct.unpack("<H", b[8:10])[0]
    return [v for v, in struct.iter_unpack("<" + kind, b[at:])]


seeded = """op seeded(table[V, H]: fp32, ids[T]: i32, n[H]: i32) -> y[T, H]: fp32 {
    y = gather(table, ids) + n;
}
"""
for seed in (0, 7):
    rc, out, err = feed(seeded, "kernel", "run", "seeded", "--dims", "V=11,H=300,T=200", "--on", "ref",
                        "--seed", str(seed), "--save-io", TMP + "/io")
    check(rc == 0, err)
    if rc == 0:
        it = draws(seed, 0)
        want = [struct.unpack("<f", struct.pack("<f", normal(it)))[0] for _ in range(11 * 300)]
        check(npy(TMP + "/io/in_table.npy", "f") == want, f"normal inputs of seed {seed}")
        it = draws(seed, 1)
        check(npy(TMP + "/io/in_ids.npy", "i") == [below(it, 11) for _ in range(200)], "indices")
        it = draws(seed, 2)
        check(npy(TMP + "/io/in_n.npy", "i") == [below(it, 2) for _ in range(300)], "integers")
done()

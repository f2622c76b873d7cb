"""Hardware loops: what a turn takes (moving transposes, registers by the dozen, min and max), what it does not cost
(barriers where only registers changed, tables that stay), and attention in blocks of queries and keys."""
import json
from util import *

LEAVES = os.path.join(ROOT, "tests/data/loops.cps")


def run(what, *args):
    """With all checks on: the binary must be right and proved, and nothing found."""
    r = copse("kernel", "run", *args, "--compare", "ref", "--report", "-", "--no-cache")
    check(r.returncode == 0, f"{what}: {r.stderr.decode()[-600:]}")
    if r.returncode == 0:
        report = json.loads(r.stdout)
        check(report["checks"] == {"bounds": 0, "races": 0, "uninit": 0}, f"{what}: {report['checks']}")
        check(report["proof"] == {"deadlock_free": 1, "kernels": 1, "race_free": 1}, f"{what}: {report['proof']}")


def listing(*args):
    out = tempfile.mkdtemp(dir=TMP)
    r = copse("kernel", "compile", *args, "--no-cache", "-o", out)
    check(r.returncode == 0, f"{args}: {r.stderr.decode()[-600:]}")
    return "".join(data.decode() for path, data in tree(out).items() if path.endswith(".cas"))


for op, leaf, targets, drains, tables in (("flip", "flip_turns", "trn2 trn3", 2, 0), ("stairs", "stairs_turns", "trn1 trn2 trn3", 2, 0),
                                          ("warm", "warm_turns", "trn1 trn2 trn3", 2, 1),
                                          ("warmer", "warmer_turns", "trn2", 2, 1), ("waver", "waver_turns", "trn2", 2, 2)):
    for target in targets.split():
        args = [op, "-I", LEAVES, f"--leaf={leaf}", "--dims=R=1024,C=64", f"--target={target}"]
        run(f"{leaf} on {target}", *args)
        text = listing(*args)
        # a barrier drains all five engines: one before the loops, one at the end of the innermost body
        check(text.count("\nDRAIN") == 5 * drains, f"{leaf} on {target}: {text.count(chr(10) + 'DRAIN')} drains")
        check(text.count("\nACTIVATION_TABLE_LOAD") == tables, f"{leaf} on {target}: {text.count('ACTIVATION_TABLE_LOAD')} tables")

r = copse("kernel", "compile", "flip", "-I", LEAVES, "--leaf=flip_odd", "--dims=R=512,C=64", "-o", f"{TMP}/odd")
check(r.returncode == 1 and b"multiples of 16 rows" in r.stderr, f"8 rows: exit {r.returncode}: {r.stderr.decode()}")

# Offsets that lead out of their tile or tensor: by a loop's counter for the compiler to find, by data for the run.
OVER = os.path.join(ROOT, "tests/data/over.cps")
FITS = ["over", "-I", OVER, "--dims=R=128,C=64", "--dtype=fp32"]
for leaf, targets, says in (
        ("reads", "trn1 trn2 trn3", "leads out of 'a': partitions 0..127, bytes 2048..2304 of SBUF; it has partitions 0..127, bytes 0..2048"),
        ("writes", "trn1 trn2", "'dst' leads out of 'a': partitions 0..127, bytes 2048..2304 of SBUF"), ("moves", "trn2 trn3", "leads out of 'a'"),
        ("tensor", "trn2 trn3", "'src' leads out of 'x': bytes 36864..45056; it has 32768"), ("psum", "trn1 trn2", "of PSUM; it has partitions 0..127, bytes")):
    for target in targets.split():
        r = copse("kernel", "compile", *FITS, f"--leaf=over_{leaf}", f"--target={target}", "--no-cache", "-o", f"{TMP}/over")
        check(r.returncode == 1 and says.encode() in r.stderr and b"(%s:" % OVER.encode() in r.stderr and b"[E8302]" in r.stderr
              and b"`min`, `max` or `when`" in r.stderr and b"back end" not in r.stderr, f"{leaf} on {target}: exit {r.returncode}: {r.stderr.decode()}")
for leaf, target, says in (("data", "trn1", "leads out of 'a': partitions 0..127, bytes 2304..2560"), ("data", "trn2", "leads out of 'a'"),
                           ("load", "trn1", "leads out of 'n': partitions 0..0"), ("load", "trn3", "leads out of 'n'")):
    at = f"{TMP}/over_{leaf}_{target}"
    for turn in "anew", "from the cache":  # what the binary carries is in the cache, the folder and the container
        r = copse("kernel", "compile", *FITS, f"--leaf=over_{leaf}", f"--target={target}", f"--cache={TMP}/over_cache", "-o", at)
        check(r.returncode == 0, f"{leaf} on {target} {turn}: {r.stderr.decode()}")
        r = copse("sim", at)
        check(r.returncode == 1 and says.encode() in r.stderr and b"[E8302]" in r.stderr, f"{leaf} on {target} {turn}: exit {r.returncode}: {r.stderr.decode()}")
    r = copse("neff", "pack", at, "-o", at + ".neff")
    check(r.returncode == 0, r.stderr.decode())
    r = copse("sim", at + ".neff")
    check(r.returncode == 1 and says.encode() in r.stderr, f"{leaf} on {target} in a container: exit {r.returncode}: {r.stderr.decode()}")
for target in "trn2", "trn3":
    run(f"offsets in bounds on {target}", *FITS, "--leaf=over_not", f"--target={target}")

# Blocks of queries and keys: heads of one group and of many, sinks, the second half by rows (large scores), two cores that share
# key heads or the query heads of each.
ATTENTION = ["attention", "--leaf=attention_turned", "--attr=causal=true"]
for dims, step, more in (("B=2,Bkv=2,Sq=1024,Skv=1024,d=64", 512, ["--with=sink"]), ("B=4,Bkv=2,Sq=1536,Skv=1600,d=64", 512, []),
                         ("B=3,Bkv=1,Sq=1024,Skv=1024,d=128", 1024, ["--with=sink", "--dtype=fp16"]),
                         ("B=1,Bkv=1,Sq=1536,Skv=1536,d=128", 512, ["--target=trn3"]),
                         ("B=2,Bkv=1,Sq=1024,Skv=1024,d=64", 512, ["--attr=scale=40", "--with=sink"]),
                         ("B=4,Bkv=2,Sq=1024,Skv=1024,d=64", 512, ["--logical-nc-config=2", "--with=sink"]),
                         ("B=6,Bkv=3,Sq=1024,Skv=1024,d=64", 512, ["--logical-nc-config=2"]),
                         ("B=12,Bkv=3,Sq=512,Skv=512,d=64", 512, ["--logical-nc-config=2", "--attr=scale=30"])):
    args = [*ATTENTION, f"--dims={dims}", *more]
    run(f"{dims} in blocks of {step}", *args, f"--param=step={step}")
    check(listing(*args, f"--param=step={step}").count("\nCOMPARE_BRANCH") > listing(*args, "--param=step=1").count("\nCOMPARE_BRANCH"),
          f"{dims}: no loop")
# Heads in a loop: one or several on a key head, ragged rows, masks, priors, the second half by rows, two cores.
HEADS = {"attention_turned": """
B=3,Bkv=3,Sq=300,Skv=300,d=64 | B=4,Bkv=2,Sq=300,Skv=300,d=128 --attr=causal=true --with=sink | B=2,Bkv=2,Sq=304,Skv=336,d=96 --dtype=fp16
B=4,Bkv=2,Sq=130,Skv=700,d=128,Bm=2 --with=mask,sink | B=4,Bkv=4,Sq=130,Skv=700,d=128,Bm=1 --with=mask --attr=scale=40
B=2,Bkv=1,Sq=1100,Skv=1100,d=40 --attr=causal=true --attr=window=130 | B=2,Bkv=2,Sq=2048,Skv=2100,d=64 --dtype=fp32 --attr=causal=true
B=4,Bkv=2,Sq=300,Skv=300,d=64,Sp=200 --attr=causal=true --attr=window=160 --with=sink,k_prior,v_prior,prior_used
B=3,Bkv=1,Sq=700,Skv=333,d=64 --logical-nc-config=2 | B=2,Bkv=2,Sq=300,Skv=333,d=64 --attr=tq=1 --attr=tk=1 --target=trn3
""", "attention_stream": """
B=3,Bkv=3,Sq=300,Skv=1300,d=192 | B=4,Bkv=2,Sq=130,Skv=1700,d=130,Bm=2 --with=mask,sink | B=4,Bkv=4,Sq=130,Skv=700,d=128,Bm=1 --with=mask
B=2,Bkv=1,Sq=1100,Skv=1100,d=40 --attr=causal=true --attr=window=130 --target=trn1 | B=4,Bkv=2,Sq=130,Skv=700,d=64,Bm=4 --with=mask --target=trn1
B=4,Bkv=2,Sq=301,Skv=333,d=192 --attr=tq=1 --attr=tk=1 --dtype=fp32 --target=trn1 | B=4,Bkv=2,Sq=301,Skv=333,d=192 --logical-nc-config=2
"""}
for leaf, lines in HEADS.items():
    for line in lines.strip().replace("\n", "|").split("|"):
        dims, *more = line.split()
        args = ["attention", f"--leaf={leaf}", f"--dims={dims}", *more]
        run(f"{leaf} {line} with heads in a loop", *args, "--param=heads=loop")
        check(listing(*args, "--param=heads=loop").count("\nCOMPARE_BRANCH") > listing(*args, "--param=heads=unrolled").count("\nCOMPARE_BRANCH"),
              f"{leaf} {line}: no loop")
r = copse("kernel", "compile", "attention", "--leaf=attention_stream", "--param=heads=loop", "--dims=B=8,Bkv=4,Sq=130,Skv=700,d=64,Bm=2", "--with=mask",
          "-o", f"{TMP}/rows")
check(r.returncode == 1 and b"rows of the mask" in r.stderr, f"rows of a mask for parts of groups: {r.returncode} {r.stderr.decode()[-400:]}")
# what no trace has the steps for loops by itself
text = listing("attention", "--dims=B=8,Bkv=8,Sq=16380,Skv=16380,d=64")
check("COMPARE_BRANCH" in text, "8 heads of 16380 do not loop")
# the document of such a kernel comes back as the same kernel
args = [*ATTENTION, "--dims=B=2,Bkv=2,Sq=1024,Skv=1024,d=64", "--param=step=512", "--no-cache"]
check(copse("kernel", "compile", *args, "--emit=bir", "-o", f"{TMP}/a").returncode == 0, "a document")
(path,) = [f"{TMP}/a/{p}" for p in tree(f"{TMP}/a") if p.endswith(".bir.json")]
check(copse("compile", path, "-o", f"{TMP}/b").returncode == 0, "from a document")
a, b = ({p: d for p, d in tree(f"{TMP}/{x}").items() if p.endswith(".bin")} for x in "ab")
check(len(a) == 5 and sorted(a.values()) == sorted(b.values()), "another kernel came back")
check(copse("kernel", "compile", *args, "--emit=neff", "-o", f"{TMP}/c").returncode == 0, "a container")
# lengths that are worth it are cut without being asked
text = listing("attention", "--attr=causal=true", "--dims=B=4,Bkv=4,Sq=8192,Skv=8192,d=64")
check(text.count("\n") < 12000, f"4 heads of 8192 take {text.count(chr(10))} lines")
# Rows of a scatter race where two of its indices are equal: indices are data, so a proof leaves that open, and a run tells.
with open(f"{TMP}/scatter.cps", "w") as f:
    f.write("""op put(x[B, H], ids[B]: i32, base[S, H]) -> y[S, H] { y = scatter(base, ids, x, axis: 0); }
leaf put_rows for put on trn1, trn2, trn3 {
    cases (B: 4, H: 64, S: 300);
    y <- base;
    sbuf i[B, 1] <- ids;
    sbuf r[B, H] <- x;
    y[i, :] <- r;
}
""")

for b, verdict in ((64, "open"), (1, "open")):
    r = copse("kernel", "compile", "put", "-I", f"{TMP}/scatter.cps", "--dims", f"B={b},H=64,S=300", "-o", f"{TMP}/put{b}")
    check(r.returncode == 0, r.stderr.decode())
    with open(f"{TMP}/put{b}/manifest.json") as f:
        text = f.read()
    check(f'"deadlock": "proved", "races": "{verdict}"' in text, f"scatter of {b} rows: {text[:400]}")
ids = list(range(64))
array(f"{TMP}/ok.npy", ids, "i")
array(f"{TMP}/twice.npy", [3 if k == 40 else k for k in ids], "i")
r = copse("run", f"{TMP}/put64", "--input", f"ids={TMP}/ok.npy", "--compare", "ref")
check(r.returncode == 0 and b"open: a scatter" in r.stderr + r.stdout, f"scatter: {r.stderr.decode()}")
r = copse("run", f"{TMP}/put64", "--input", f"ids={TMP}/twice.npy")
check(r.returncode == 1 and b"E8303" in r.stderr and b"two of its indices are equal" in r.stderr, f"equal indices: {r.stderr.decode()}")
done()

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
done()

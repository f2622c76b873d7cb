"""Kernels whose tiles need 1.5, 4 and 20 times the SBUF there is: they compile, say what is streamed, are right, and
lose at most a quarter to the same kernel streamed by hand. A core with 16 KiB a partition keeps the sizes small."""
import json, re
from util import *

LEAVES = os.path.join(ROOT, "tests/data/pressure.cps")
USABLE = 16 * 1024  # bytes of a partition


def target(name):
    text = open(os.path.join(ROOT, f"codegen/isa/targets/{name}.xml")).read()
    reserve = int(re.search(r'<sbuf [^>]*reserve="(\d+)"', text)[1])
    text = re.sub(r'(<sbuf [^>]*bytes=")\d+', rf"\g<1>{reserve + USABLE}", text)
    path = f"{TMP}/{name}.xml"
    with open(path, "w") as f:
        f.write(text)
    return path


def run(op, leaf, dims, t):
    r = copse("kernel", "run", op, "-I", LEAVES, "--leaf", leaf, "--dims", dims, "--target", t, "--compare", "ref", "--report", "-",
              "--no-cache")
    err = r.stderr.decode()
    check(r.returncode == 0, f"{leaf} {dims}: {err}")
    try:
        return json.loads(r.stdout), err
    except ValueError:
        return None, err


def least_ns(report):
    return report["time_ns"] if report else 0


# Bytes a partition of what is kept: K / 128 * N * 2, and M / 128 * N * 2.
CASES = [("pressed_matmul", "matmul", "wt", [(1.5, "M=256,K=512,N=3072"), (4, "M=256,K=1024,N=4096"), (20, "M=128,K=2048,N=10240")]),
         ("pressed_share", "share", "e", [(1.5, "M=6144,N=256"), (4, "M=16384,N=256"), (20, "M=81920,N=256"), (4, "M=16300,N=253")])]
for name in ("trn2", "trn1"):
    t = target(name)
    for op, stem, tile, sizes in CASES:
        for times, dims in sizes:
            if name == "trn1" and times == 20:
                continue
            d = {k: int(v) for k, v in (x.split("=") for x in dims.split(","))}
            need = -(-d["K" if "K" in d else "M"] // 128) * d["N"] * 2
            check(abs(need / USABLE / times - 1) < 0.05, f"{dims} needs {need / USABLE:.2f} times SBUF, not {times}")
            kept, said = run(op, stem + "_kept", dims, t)
            hand, quiet = run(op, stem + "_streamed", dims, t)
            check("W4108" in said and f"'{tile}'" in said, f"{name} {dims}: not said to be streamed: {said}")
            check("W4108" not in quiet, f"{name} {dims}: the hand-streamed kernel is streamed again")
            a, b = least_ns(kept), least_ns(hand)
            check(0 < a <= 1.25 * b, f"{name} {stem} {dims}: {a} ns, by hand {b}")

# What no instruction can do with is refused, with what lives at the peak.
r = copse("kernel", "run", "pressed_share", "-I", LEAVES, "--leaf", "share_whole", "--dims", "M=8192,N=256", "--target", target("trn2"))
text = r.stderr.decode()
check(r.returncode == 4, f"exit {r.returncode}: {text}")
for want in ("E4101", "bytes per partition of SBUF are live here", "'e': 1 slot of", "'d': 1 slot of"):
    check(want in text, f"{want!r} is not in {text}")

# A transfer that adds is no load to repeat.
small = target("trn2")
_, said = run("pressed_sum", "sum_added", "T=4,N=16384", small)
check("W4108" in said, f"the sum fits: {said}")

# It is said every time, by a hit as by a miss, and a pinned tile, a gathered one and banks that collide are told as what they are.
told = []
for k in range(2):
    r = copse("kernel", "run", "pressed_sum", "-I", LEAVES, "--leaf", "sum_added", "--dims", "T=4,N=16384", "--target", small, "--cache", f"{TMP}/c")
    check(r.returncode == 0 and b"W4108" in r.stderr, f"run {k}: {r.stderr.decode()}")
    check(f"({k} hits, {1 - k} misses)" in r.stderr.decode(), f"run {k}: {r.stderr.decode()[-200:]}")
    told.append("".join(s for s in r.stderr.decode().splitlines(True) if not s.startswith("  compile ")))
check(told[0] == told[1] and "^\n" in told[0] and "help:" in told[0], f"a miss says\n{told[0]}a hit says\n{told[1]}")
for op, leaf, dims, code in (("pressed_sum", "sum_pinned", "T=4,N=16384", "E4101"), ("pressed_rows", "rows_gathered", "R=8,T=8,N=16384", "E4101"),
                             ("pressed_sum", "sum_banks", "T=4,N=16384", "E4103")):
    r = copse("kernel", "run", op, "-I", LEAVES, "--leaf", leaf, "--dims", dims, "--target", small, timeout=60)
    text = r.stderr.decode()
    check(r.returncode == 4 and code in text and "W4108" not in text, f"{leaf}: exit {r.returncode}: {text}")
# One semaphore raised by more transfers than 16 bits count.
with open(f"{TMP}/many.cps", "w") as f:
    f.write("""op many(x[T, N]) -> y[T, N] { y = x; }
leaf many_rows for many on trn1, trn2, trn3 {
    cases (T: 256, N: 4);
    for t in tiles(T, 1) {
        sbuf a[t, N] bufs 1 <- x[t, :];
        sbuf b[t, N]: x.dtype bufs 1 = a * 1.0 on dve;
        y[t, :] <- b;
    }
}
""")
r = copse("kernel", "compile", "many", "-I", f"{TMP}/many.cps", "--dims", "T=65600,N=4", "-o", f"{TMP}/many")
check(r.returncode == 0, f"65,600 transfers on a semaphore: {r.stderr.decode()[:600]}")
with open(f"{TMP}/many/manifest.json") as f:
    check('"deadlock": "proved", "races": "proved"' in f.read(), "their proof")
done()

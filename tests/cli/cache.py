"""The trace cache: hits, what makes a miss, and that a killed compile leaves nothing accepted wrongly."""
import hashlib, json, os, random, signal, subprocess, time
from util import *

KERNEL = ["kernel", "run", "matmul", "--dims", "M=256,K=256,N=256", "--check", "none"]


def counts(*more, env=None):
    r = copse(*KERNEL, *more, "--report", f"{TMP}/r.json", env=env)
    check(r.returncode == 0, f"{more}: {r.stderr.decode()}")
    c = json.load(open(f"{TMP}/r.json"))["cache"] if r.returncode == 0 else {"hits": -1, "misses": -1}
    return c["hits"], c["misses"]


cache = ["--cache", f"{TMP}/c"]
check(counts(*cache) == (0, 1), "first run misses")
check(counts(*cache) == (1, 0), "second run hits")
check(counts(*cache, "--no-cache") == (0, 1), "--no-cache misses")
check(counts(*cache, "--seed", "7") == (1, 0), "the seed is no part of the key")
check(counts(*cache, env={"HOME": "/", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}) == (1, 0), "the environment is no part of the key")
check(counts(*cache, "--dtype", "fp32") == (0, 1), "another dtype misses")
check(counts(*cache, "--attr", "act=gelu") == (0, 1), "another attribute misses")
check(counts(*cache, "--target", "trn1") == (0, 1), "another target misses")
check(counts(*cache, "--attr", "tx=1") == (0, 1), "another layout misses")
check(counts(*cache) == (1, 0), "and the first still hits")

# A damaged entry of any size is a miss.
huge = ["--cache", f"{TMP}/huge"]
check(counts(*huge) == (0, 1) and counts(*huge) == (1, 0), "a cache of its own")
for folder, _, names in os.walk(f"{TMP}/huge"):
    for n in names:
        if n != "secret":
            os.truncate(os.path.join(folder, n), 200 << 30)
check(counts(*huge) == (0, 1), "entries that claim 200 GiB miss")

# Two at once write into one folder: what is there afterwards is of one of them.
for i in range(20):
    out = f"{TMP}/shared"
    two = [subprocess.Popen([COPSE, "kernel", "compile", *KERNEL[2:5], f"--attr=act={a}", *huge, "-o", out],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for a in ("tanh", "gelu")]
    check([p.wait() for p in two] == [0, 0], f"try {i}: one of two compilers failed")
    text = open(f"{out}/manifest.json").read()
    at = f"{out}/kernels/{json.loads(text)['kernels'][0]['name']}"
    other = [f for f in os.listdir(at) if f.endswith((".bin", ".json")) and hashlib.sha256(open(f"{at}/{f}", "rb").read()).hexdigest() not in text]
    check(not other, f"try {i}: {other} are not those of the manifest")

# A leaf of one's own: its text is part of the key.
leaf = """op twice(x[T, N]) -> y[T, N] { y = x + x; }
leaf twice_rows for twice on trn2 {
    tolerance 1e-2, 1e-5;
    cases (T: 4, N: 8);
    for t in tiles(T, P) {
        sbuf xt[t, N] <- x[t, :];
        y[t, :] <- xt * 2.0;
    }
}
"""


def own(name, text):
    with open(f"{TMP}/{name}", "w") as f:
        f.write(text)
    r = copse("kernel", "run", "twice", "-I", f"{TMP}/{name}", "--dims", "T=4,N=8", "--cache", f"{TMP}/own",
              "--report", f"{TMP}/r.json")
    check(r.returncode == 0, r.stderr.decode())
    return json.load(open(f"{TMP}/r.json"))["cache"]["hits"]


check(own("a.cps", leaf) == 0 and own("a.cps", leaf) == 1, "a leaf of one's own is cached")
check(own("a.cps", leaf.replace("xt * 2.0", "xt + xt")) == 0, "a changed leaf misses")

# What a miss warns of, a hit warns of: messages, carets and notes, also of two kernels of one leaf at once.
with open(f"{TMP}/warn.cps", "w") as f:
    f.write("op warned(x[T, N]) -> y[T, N] { y = x; }\n"
            "leaf warned_rows for warned on trn2 {\n    cases (T: 4, N: 8);\n    sbuf n[T, N]: i32 <- x;\n"
            "    sbuf a[T, N]: fp32 = n * 33554433;\n    sbuf b[T, N]: i32 = a;\n    y <- b;\n}\n")
for fmt in ("text", "json"):
    said = []
    for k in range(3):
        r = copse("kernel", "run", "warned", "-I", f"{TMP}/warn.cps", "--dims", "T=4,N=8", "--dtype", "i32", "--cache", f"{TMP}/warned-{fmt}",
                  "--message-format", fmt, "--report", f"{TMP}/r.json")
        check(r.returncode == 0 and b"W3301" in r.stderr, f"run {k}: {r.stderr.decode()[:400]}")
        check(json.load(open(f"{TMP}/r.json"))["cache"]["hits"] == (k > 0), f"run {k} hits")
        said.append("".join(s for s in r.stderr.decode().splitlines(True) if not s.startswith("  compile ")))
    check(said[0] == said[1] == said[2] and ("^~" in said[0] or fmt == "json"), f"a miss says\n{said[0]}a hit says\n{said[1]}")
r = copse("cache", "stats", "--json", *cache)
s = json.loads(r.stdout)
check(s["entries"] == 5 and s["broken"] == 0, f"stats {s}")
check(copse("cache", "verify", *cache).returncode == 0, "verify accepts whole entries")

# A damaged entry is a miss, reported by verify, removed by gc.
entries = [os.path.join(b, f) for b, _, fs in os.walk(f"{TMP}/c") for f in fs]
random.seed(5)
for path in entries:
    raw = bytearray(open(path, "rb").read())
    raw[random.randrange(len(raw))] ^= 1 << random.randrange(8)
    open(path, "wb").write(raw)
check(copse("cache", "verify", *cache).returncode == 1, "verify finds damage")
check(counts(*cache) == (0, 1), "a damaged entry misses")
copse("cache", "gc", *cache)
check(json.loads(copse("cache", "stats", "--json", *cache).stdout)["entries"] == 1, "gc removes damage, keeps the new entry")
copse("cache", "gc", "--max-bytes", "0", *cache)
check(json.loads(copse("cache", "stats", "--json", *cache).stdout)["entries"] == 0, "gc shrinks to the size asked for")

# A folder that others may write to is not trusted.
os.makedirs(f"{TMP}/open/v1")
os.chmod(f"{TMP}/open/v1", 0o777)
r = copse(*KERNEL, "--cache", f"{TMP}/open")
check(r.returncode == 0 and b"W1101" in r.stderr, "a folder writable by others is refused with a warning")

# Killed at 50 random moments: whatever is left is either whole or not there.
t = time.monotonic()
copse(*KERNEL, "--no-cache")
span = time.monotonic() - t
kc = f"{TMP}/k"
killed = 0
for i in range(50):
    p = subprocess.Popen([COPSE, *KERNEL, "--cache", kc, "--dims", f"M=256,K=256,N={256 + i}"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.random() * span)
    p.send_signal(signal.SIGKILL)
    killed += p.wait() == -signal.SIGKILL
check(killed > 10, f"only {killed} of 50 were killed in time")
r = copse("cache", "verify", "--cache", kc, "--json")
check(r.returncode == 0 and json.loads(r.stdout)["broken"] == 0, f"after kills: {r.stdout}")
for i in range(50):
    shape = ["--dims", f"M=256,K=256,N={256 + i}", "--emit", "asm"]
    got = copse(*KERNEL[:3], *shape, "--cache", kc).stdout
    fresh = copse(*KERNEL[:3], *shape, "--no-cache").stdout
    check(len(fresh) > 0 and got == fresh, f"after the kills, shape {i} gives another listing")


# `kernel compile`: a hit writes the package as it was, whatever the folder; what goes into it makes a miss.
COMPILE = ["kernel", "compile", "matmul", "--dims", "M=256,K=256,N=256"]


def package(name, *more, place=f"{TMP}/packages"):
    out = f"{TMP}/{name}"
    r = copse(*COMPILE, *more, "-o", out, "--cache", place)
    check(r.returncode == 0, f"{more}: {r.stderr.decode()}")
    files = {os.path.relpath(os.path.join(b, f), out): open(os.path.join(b, f), "rb").read()
             for b, _, fs in os.walk(out) for f in fs}
    return b"from the cache" in r.stderr, files


fresh = package("p0", "--no-cache")
check(not fresh[0], "--no-cache compiles")
check(package("p1") == fresh, "the first compile misses")
check(package("p2") == (True, fresh[1]), "the second hits, and writes the same bytes")
check(package("p2", "-j", "1", "--color", "never") == (True, fresh[1]), "over an older package, with options that change nothing")
for more in (["--dtype", "fp32"], ["--target", "trn1"], ["--attr", "tx=1"], ["--leaf", "matmul_stream"], ["--logical-nc-config", "2"]):
    cold = package("p3", *more)
    check(not cold[0] and cold[1] != fresh[1], f"{more} misses")
    check(package("p3", *more) == (True, cold[1]), f"{more} hits then")
with open(f"{TMP}/more.cps", "w") as f:
    f.write("op more(x[N]) -> y[N] { y = x; }\n")
package("p4", "-I", f"{TMP}/more.cps")
with open(f"{TMP}/more.cps", "w") as f:
    f.write("op more(x[N] -> y[N] { y = x; }\n")
check(copse(*COMPILE, "-I", f"{TMP}/more.cps", "-o", f"{TMP}/p4", "--cache", f"{TMP}/packages").returncode == 1, "a file of -I is read each time")
for base, _, names in os.walk(f"{TMP}/packages"):
    for name in names:
        raw = bytearray(open(os.path.join(base, name), "rb").read())
        raw[len(raw) // 2] ^= 4
        open(os.path.join(base, name), "wb").write(raw)
check(package("p5") == fresh, "damaged entries miss")
done()

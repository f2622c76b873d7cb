"""Every value of every parameter of every leaf, one changed at a time: on the largest of the leaf's cases that
is still quick, the simulated binary with all checks on must match the reference. The defaults are what
kernels.py runs. Then what --param says to values that are none."""
import math, re
from concurrent.futures import ThreadPoolExecutor
from cases import leaf_cases, operators, options
from util import *

QUICK = 1 << 27  # product of the dimensions


def parameters(leaf):
    """(name, values as text) of each parameter, from the leaf's text."""
    text = copse("kernel", "show", leaf).stdout.decode()
    body = text[text.index(f"leaf {leaf} "):]
    body = body[:body.index("\n}")]
    for name, values, lo, hi in re.findall(r"\n    param (\w+) in (?:\{([^}]*)\}|(\d+)\.\.(\d+)) = ", body):
        yield name, [v.strip().strip('"') for v in values.split(",")] if values else [str(v) for v in range(int(lo), int(hi))]


best = {}  # leaf: (size, operator, pairs, target) of the largest quick case; targets take turns
for k, (op, leaf, pairs, target) in enumerate(leaf_cases(operators())):
    if any(key == "cores" for key, _ in pairs):
        continue
    size = math.prod(int(v) for key, v in pairs if key in op["dims"])
    if size <= QUICK and (leaf not in best or (size, k % 3) > best[leaf][:2]):
        best[leaf] = size, k % 3, op, pairs, target
jobs = [(leaf, name, v) for leaf in best for name, values in parameters(leaf) for v in values]
check(len(jobs) > 100 and {"matmul_banks", "softmax_rows", "attention_stream"} <= {j[0] for j in jobs}, f"{len(jobs)} values")


def run(job):
    leaf, name, value = job
    _, _, op, pairs, target = best[leaf]
    args = ["kernel", "run", op["name"], *options(op, leaf, pairs, target), "--param", f"{name}={value}", "--compare", "ref"]
    r = copse(*args)
    # A leaf may refuse a value: a tile wider than the row, a ring that does not fit.
    refused = r.returncode == 1 and b"[E2401]" in r.stderr
    return r.returncode == 0 or refused, refused, f"{leaf} with {name}={value} on {target}, {pairs}: {r.stderr.decode()[-600:]}"


with ThreadPoolExecutor(os.cpu_count()) as pool:
    done_jobs = list(pool.map(run, jobs))
for ok, _, what in done_jobs:
    check(ok, what)
check(sum(refused for _, refused, _ in done_jobs) < len(jobs) / 10, "most values are taken")

SOFT = ["softmax", "--dims", "T=128,N=512"]
for args, code, want in [
    ([*SOFT, "--param", "slots=2"], 2, "name it with --leaf"),
    ([*SOFT, "--leaf", "softmax_rows", "--param", "slots=5"], 2, "of slots=2, slots=3, slots=4"),
    ([*SOFT, "--leaf", "softmax_rows", "--param", "other=5"], 2, "no parameter value 'other=5'"),
    ([*SOFT, "--leaf", "softmax_stream", "--param", "C=1024"], 5, "E1108"),
    (["softmax", "--dims", "T=128,N=9000", "--leaf", "softmax_rows", "--param", "slots=6"], 1, "E2401"),
]:
    for verb in (["kernel", "run"], ["explain"]):
        r = copse(*verb, *args)
        check(r.returncode == code and want in r.stderr.decode(), f"{verb} {args}: exit {r.returncode}: {r.stderr.decode()[:400]}")
# A pinned parameter is part of the cache's key.
times = set()
for slots in (2, 4, 2, 4):
    r = copse("kernel", "run", "softmax", "--dims", "T=4096,N=512", "--leaf", "softmax_rows", "--param", f"slots={slots}", "--report", "-")
    times.add((slots, re.search(r'"time_ns": ([0-9.]+)', r.stdout.decode())[1]))
check(len(times) == 2 and len({t for _, t in times}) == 2, f"{times}")
done()

#!/usr/bin/env python3
"""How compile time and memory grow with the program: one kernel after another, cold, as whole processes.

    latency.py COPSE [--runs=N] [--only=TEXT] [--json]

A row gives the bundles of the kernel, the processor time of the fastest of N runs (user and system; wall time says
little on a shared machine), the time per bundle and the peak of resident memory. Where time per bundle rises down a
group, something grows faster than the program; small kernels pay for the start of the process."""
import argparse, glob, json, os, subprocess, sys, tempfile

MATMUL = [256, 512, 1024, 2048, 4096]
ATTENTION = [1024, 2048, 4096, 8192, 16384]


def rows():
    for n in MATMUL:
        yield "matmul %d" % n, ["matmul", "--dims=M=%d,K=%d,N=%d" % (n, n, n), "--attr=tx=1"]
    for n in ATTENTION:
        yield "attention %d" % n, ["attention", "--dims=B=8,Bkv=8,Sq=%d,Skv=%d,d=128" % (n, n), "--attr=causal=true"]


def once(cmd):
    """Runs it; seconds of the processor and peak bytes, or the first line of what it says against it."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=said)
        _, status, use = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            text = said.read().decode(errors="replace").strip() or "exit %d" % child.returncode
            return text.splitlines()[0], None
    return None, (use.ru_utime + use.ru_stime, use.ru_maxrss * 1024)


def measure(copse, args, runs):
    best = None
    with tempfile.TemporaryDirectory() as tmp:
        for _ in range(runs):
            error, got = once([copse, "kernel", "compile", *args, "--no-cache", "-o", os.path.join(tmp, "k")])
            if error:
                return {"error": error}
            best = got if best is None else (min(best[0], got[0]), max(best[1], got[1]))
        code = glob.glob(os.path.join(tmp, "k", "kernels", "*", "**", "*.bin"), recursive=True)
        bundles = sum(os.path.getsize(p) for p in code) // 64
    return {"bundles": bundles, "ms": best[0] * 1e3, "us_per_bundle": best[0] * 1e6 / max(bundles, 1),
            "peak_mib": best[1] / 2**20}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("copse")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--only", default="")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    out, bad = [], 0
    if not a.json:
        print("%-18s %9s %10s %10s %10s" % ("kernel", "bundles", "ms", "us/bundle", "peak MiB"))
    for name, args in rows():
        if a.only not in name:
            continue
        r = {"kernel": name, **measure(a.copse, args, a.runs)}
        out.append(r)
        bad += "error" in r
        if a.json:
            continue
        if "error" in r:
            print("%-18s %s" % (name, r["error"]), flush=True)
        else:
            print("%-18s %9d %10.1f %10.2f %10.1f" %
                  (name, r["bundles"], r["ms"], r["us_per_bundle"], r["peak_mib"]), flush=True)
    if a.json:
        json.dump(out, sys.stdout, indent=1)
        print()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

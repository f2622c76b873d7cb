#!/usr/bin/env python3
"""Prints how near the kernel library's leaves come to the roof on the simulated device, line by line of
roofline.tsv: roof, cap of the slowest engine, the line to reach and the figure, side by side.

    roofline.py COPSE [--group=G,...] [--only=TEXT]... [--verify] [--json] [--markdown]

Simulated times are deterministic: one run each. Checks are on; a finding makes the row fail. `--verify` compares
results with the reference evaluator as well, at the leaf's tolerance. Exit 1 when a line is missed."""
import argparse, json, math, os, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OWN_LINE, OWN_BEST = 0.62, 0.61  # geometric mean over the rows of NKIBench; the paper's own is 0.61 (arXiv 2511.15915)


def rows():
    with open(os.path.join(HERE, "roofline.tsv")) as f:
        lines = [l.rstrip("\n").split("\t") for l in f if l.strip() and not l.startswith("#")]
    return [dict(zip(lines[0], l)) for l in lines[1:]]


def run(copse, row, verify, extra):
    with tempfile.TemporaryDirectory() as tmp:
        report = os.path.join(tmp, "r.json")
        cmd = [copse, "kernel", "run", row["op"], "--target=" + row["target"], "--dims=" + row["dims"],
               *row["options"].split(), *extra, "--no-cache", "--report=" + report]
        if verify:
            cmd.append("--compare=ref")
        r = subprocess.run(cmd, capture_output=True, text=True)
        if not os.path.exists(report):
            return {"error": (r.stderr.strip().splitlines() or ["exit %d" % r.returncode])[0]}
        with open(report) as f:
            out = json.load(f)
        if r.returncode:
            out["error"] = (r.stderr.strip().splitlines() or ["exit %d" % r.returncode])[0]
        elif verify and out["pass"] is not True:
            out["error"] = "results differ from the reference"
        return out


def figure(row, r):
    """The row's figure and whether it reaches the line."""
    line = float(row["line"])
    if row["by"] in ("roof", "engines"):
        value = r["roofline_fraction" if row["by"] == "roof" else "engines_fraction"]
        return value, value >= line
    if row["by"] == "mfu":  # the PE term of the roof is operations over peak
        value = r["roofline_ns"] / r["time_ns"]
        return value, value >= line
    if row["by"] == "near":
        value = (r["time_ns"] - 5200) / r["roofline_ns"]
        return value, value <= line
    value = (r["time_ns"] + (22000 if row["by"] == "us22" else 0)) / 1000
    return value, value <= line


def own_mean(results):
    """Geometric mean of the fraction of the publisher's own roof, when every row that has one was run, else None."""
    want = sum("own" in r for r in rows())
    part = [float(r["own"]) / r["reached"] for r in results if "own" in r and r["reached"]]
    return math.exp(sum(map(math.log, part)) / want) if len(part) == want else None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("copse")
    p.add_argument("--group")
    p.add_argument("--only", action="append", default=[])
    p.add_argument("--verify", action="store_true")
    p.add_argument("--json", action="store_true")
    p.add_argument("--markdown", action="store_true")
    a, extra = p.parse_known_args()
    todo = [r for r in rows() if (not a.group or r["group"] in a.group.split(","))
            and (not a.only or any(o in r["work"] or o == r["op"] for o in a.only))]
    if not todo:
        sys.exit("no row is meant")
    missed, results = 0, []
    edge = "| " if a.markdown else ""
    wide = max(len(r["work"]) for r in todo)
    head = ("work", "on", "by", "time us", "roof us", "cap us", "line", "reached", "best", "leaf", "ms", "")
    form = edge + f"%-{wide}s %s%-5s %s%-7s %s%9s %s%9s %s%9s %s%7s %s%7s %s%7s %s%-18s %s%7s %s%s" + (" |" if a.markdown else "")

    def show(*cells):
        out = [cells[0]]
        for c in cells[1:]:
            out += [edge, c]
        print((form % tuple(out)).rstrip(), flush=True)

    if not a.json:
        show(*head)
        if a.markdown:
            print("|---" * len(head) + "|")
    for row in todo:
        r = run(a.copse, row, a.verify, extra)
        value, ok = (None, False) if "error" in r and "time_ns" not in r else figure(row, r)
        findings = sum(r.get("checks", {}).values())
        ok = ok and not findings and "error" not in r
        missed += not ok
        results.append({**row, "reached": value, "ok": ok, "report": r})
        if a.json:
            continue
        if value is None:
            show(row["work"], row["target"], row["by"], "-", "-", "-", row["line"], "-", row["best"], "-", "-", r["error"])
            continue
        say = r.get("error") or ("%d findings" % findings if findings else "" if ok else "below")
        show(row["work"], row["target"], row["by"], *("%.1f" % (r[k] / 1000) for k in ("time_ns", "roofline_ns", "roofline_engines_ns")),
             row["line"], "%.3f" % value, row["best"], r["leaf"], "%.1f" % r["compile_ms"], say)
    mean = own_mean(results)
    if mean:
        missed += mean < OWN_LINE
        todo.append({"work": "geometric mean over %d kernels of NKIBench, of its own roofs" % sum("own" in r for r in results)})
        results.append({**todo[-1], "line": OWN_LINE, "best": OWN_BEST, "reached": mean, "ok": mean >= OWN_LINE})
        if not a.json:
            show(todo[-1]["work"], "trn1", "own", "-", "-", "-", OWN_LINE, "%.3f" % mean, OWN_BEST, "-", "-", "" if mean >= OWN_LINE else "below")
    if a.json:
        json.dump(results, sys.stdout, indent=1)
        print()
    else:
        print("%d of %d lines reached" % (len(todo) - missed, len(todo)))
    sys.exit(missed > 0)


main()

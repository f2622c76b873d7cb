"""The trace as Chrome's trace event format: each phase's members and their types are rows, then what
a viewer relies on: names for all tracks, slices of a track nested, arrows with both ends on slices."""
import json, re
from util import *

NUM, TXT, INT, OBJ = (int, float), str, int, dict
MUST = {  # phase: members with their types
    "M": dict(name=TXT, pid=INT, tid=INT, args=OBJ),
    "X": dict(name=TXT, cat=TXT, pid=INT, tid=INT, ts=NUM, dur=NUM, args=OBJ),
    "C": dict(name=TXT, pid=INT, ts=NUM, args=OBJ),
    "s": dict(name=TXT, cat=TXT, pid=INT, tid=INT, ts=NUM, id=INT),
    "f": dict(name=TXT, cat=TXT, pid=INT, tid=INT, ts=NUM, id=INT, bp=TXT),
}
EPS = 1.5e-6  # us: times carry picoseconds


def schema(e):
    """What is wrong with one event, or None."""
    must = MUST.get(e.get("ph"))
    if must is None:
        return f"phase {e.get('ph')!r}"
    for key, kind in must.items():
        if not isinstance(e.get(key), kind) or isinstance(e.get(key), bool):
            return f"{e['ph']}: {key} is {e.get(key)!r}"
    if extra := e.keys() - must.keys() - {"ph"}:
        return f"{e['ph']}: unknown members {extra}"
    if e["ph"] == "M" and (e["name"] not in ("process_name", "thread_name") or list(e["args"]) != ["name"]):
        return f"metadata {e}"
    if e["ph"] == "C" and (not e["args"] or not all(isinstance(v, NUM) for v in e["args"].values())):
        return f"counter {e}"
    if e.get("ts", 0) < 0 or e.get("dur", 0) < 0:
        return f"negative time {e}"
    return None


def nested(slices):
    """Slices of one track, in file order sorted by start: each inside or after the open ones."""
    open_until = []
    for e in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
        end = e["ts"] + e["dur"]
        while open_until and open_until[-1] <= e["ts"] + EPS:
            open_until.pop()
        if open_until and end > open_until[-1] + EPS:
            return False
        open_until.append(end)
    return True


# The checks themselves: each row breaks one rule.
GOOD = dict(ph="X", name="a", cat="c", pid=1, tid=1, ts=1.0, dur=2, args={})
check(schema(GOOD) is None, "a good event")
for broken in ({**GOOD, "ph": "Q"}, {**GOOD, "ts": "1"}, {**GOOD, "dur": -1}, {**GOOD, "colour": 1},
               {k: v for k, v in GOOD.items() if k != "tid"}, dict(ph="C", name="n", pid=1, ts=0, args={"v": "x"})):
    check(schema(broken) is not None, f"{broken} passes")
check(not nested([{**GOOD, "ts": 0, "dur": 2}, {**GOOD, "ts": 1, "dur": 2}]), "crossing slices pass")


def look(args, what):
    path, report = f"{TMP}/t.json", f"{TMP}/r.json"
    r = copse(*args, "--trace", path, "--report", report)
    check(r.returncode == 0, f"{what}: {r.stderr.decode()}")
    first = open(path, "rb").read()
    copse(*args, "--trace", path)
    check(first == open(path, "rb").read(), f"{what}: two runs, two traces")
    top, rep = json.loads(first), json.load(open(report))
    check(top.keys() == {"displayTimeUnit", "traceEvents"}, f"{what}: members {top.keys()}")
    events = top["traceEvents"]
    for e in events:
        if why := schema(e):
            check(False, f"{what}: {why}")
            return
    check(True, what)
    tracks, threads, processes = {}, {}, {}
    for e in events:
        if e["ph"] == "M" and e["name"] == "thread_name":
            threads[e["pid"], e["tid"]] = e["args"]["name"]
        elif e["ph"] == "M":
            processes[e["pid"]] = e["args"]["name"]
        elif e["ph"] == "X":
            tracks.setdefault((e["pid"], e["tid"]), []).append(e)
    check(tracks.keys() <= threads.keys(), f"{what}: tracks without a name {tracks.keys() - threads.keys()}")
    check({e["pid"] for e in events} <= processes.keys(), f"{what}: processes without a name")
    for t, slices in tracks.items():
        check(nested(slices), f"{what}: slices of '{threads[t]}' cross")
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    check(starts and starts.keys() == ends.keys(), f"{what}: arrows with one end")
    for k, s in starts.items():
        check(s["ts"] <= ends[k]["ts"] + EPS, f"{what}: arrow {k} goes back in time")
        for e in (s, ends[k]):
            inside = any(x["ts"] - EPS <= e["ts"] <= x["ts"] + x["dur"] + EPS for x in tracks[e["pid"], e["tid"]])
            check(inside, f"{what}: arrow {k} hangs in the air")
    insns = [e for e in events if e["ph"] == "X" and processes[e["pid"]] == "NeuronCore engines" and e["cat"] != "stall"]
    check(len(insns) == rep["instructions"], f"{what}: {len(insns)} slices, {rep['instructions']} instructions")
    for e in insns:
        if not {"bundle", "opcode", "text"} <= e["args"].keys() or e["name"] not in e["args"]["text"]:
            check(False, f"{what}: args {e['args']}")
            return
    # what the back end adds (waits, constants) has no source line
    placed = sum("source" in e["args"] for e in insns)
    check(placed > 0.7 * len(insns), f"{what}: {placed} of {len(insns)} instructions have a source line")
    for name in ("PE busy", "PE of peak", "DMA rate", "DMA bytes in flight", "SBUF bytes in use", "PSUM bytes in use"):
        points = [(e["ts"], *e["args"].values()) for e in events if e["ph"] == "C" and e["name"] == name]
        check(points and points == sorted(points, key=lambda p: p[0]), f"{what}: counter {name}")
        check(points[-1][1] == 0 and all(p[1] >= 0 for p in points), f"{what}: {name} ends at {points[-1]}")
    check(any(e["ph"] == "C" and e["name"].startswith("S[") for e in events), f"{what}: semaphores")
    # PE's utilisation, averaged over the run, is the report's figure.
    pe = [(e["ts"], e["args"]["percent"]) for e in events if e["ph"] == "C" and e["name"] == "PE busy"]
    mean = sum(v * (pe[k + 1][0] - t) for k, (t, v) in enumerate(pe[:-1])) / (rep["time_ns"] / 1e3)
    check(abs(mean - 100 * rep["busy"]["pe"]) < 0.2, f"{what}: PE busy {mean} in the trace, {rep['busy']['pe']} reported")


look(["kernel", "run", "matmul", "--dims", "M=512,K=256,N=512"], "matmul")
look(["kernel", "run", "attention", "--dims", "B=1,Sq=256,Bkv=1,Skv=256,d=64", "--target", "trn1"], "attention")
r = copse("compile", f"{ROOT}/tests/data/small_encoder.onnx", "-o", f"{TMP}/enc", *DIMS)
look(["sim", f"{TMP}/enc"], "model")

# The same as text: an engine's shares add up to the run, and so do those of the critical path.
r = copse("kernel", "run", "attention", "--dims", "B=1,Sq=512,Bkv=1,Skv=512,d=64", "--summary")
text = r.stderr.decode()
check(r.returncode == 0 and "what would help" in text and "  dma: " in text, text)
rows = re.findall(r"^  (pe|act|pool|dve|sp) +((?:[0-9.]+|-)(?: +(?:[0-9.]+|-))*)", text, re.M)
check(len(rows) >= 4, f"engines {rows}")
for name, cells in rows:
    shares = sum(float(c) for c in cells.split() if c != "-")
    check(abs(shares - 100) < 0.6, f"{name}: shares add up to {shares}")
path = re.search(r"critical path, \d+ steps:(.*?)\n  \w", text, re.S).group(1)
check(abs(sum(map(float, re.findall(r"\(([0-9.]+) %\)", path))) - 100) < 1, f"critical path {path}")
hints = [int(n) for n in re.findall(r": (\d+) ns less", text)]
check(1 <= len(hints) <= 3 and hints == sorted(hints, reverse=True), f"hints {hints}")
done()

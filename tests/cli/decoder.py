"""A decoder layer through the command line: what it becomes, and its numbers on the simulator against ONNX Runtime."""
import os, re, sys

import numpy as np
import onnx
import onnxruntime

from util import ROOT, TMP, check, copse, done

sys.path.insert(0, os.path.join(ROOT, "tests", "onnx"))
import decoder_layer

CASES = {  # sizes, calls of operators that it becomes, position of a step
    "prefill": (dict(), {"attention": 1, "rope": 2, "rmsnorm": 2, "mlp": 1, "matmul": 4}),
    "window": (dict(seq=96, window=40, heads=2, kv=2), {"attention": 1, "rope": 2, "mlp": 1}),
    "odd": (dict(seq=37, hidden=192, heads=6, kv=2, d=32, inter=200, layers=2), {"attention": 2, "rope": 4, "mlp": 2}),
    "step": (dict(seq=1, past=130), {"attention": 1, "rope": 2, "rmsnorm": 2, "mlp": 1, "concat": 2, "gather_rows": 2}),
}
LIMIT = 1e-3  # of the largest value: what the simulated core may differ in fp32 (the published encoder's limit)

for name, (sizes, calls) in CASES.items():
    path, package, folder = (os.path.join(TMP, name + x) for x in (".onnx", "", ".out"))
    onnx.save(decoder_layer.model(**sizes), path)
    r = copse("compile", path, "--emit=lowered", "--fallback=error", "-o", "-")
    text = r.stdout.decode()
    check(r.returncode == 0, f"{name}: {r.stderr.decode()}")
    for op, n in calls.items():
        found = len(re.findall(rf"call @{op} ", text))
        check(found == n, f"{name}: {found} calls of {op}, {n} are wanted")
    check(f"window={sizes['window']}" in text if "window" in sizes else "window=" not in text, f"{name}: window")
    session, rng, feed, given = onnxruntime.InferenceSession(path), np.random.default_rng(3), {}, []
    for i in session.get_inputs():
        whole = "int64" in i.type
        feed[i.name] = np.full(i.shape, sizes.get("past", 0), np.int64) if whole else rng.standard_normal(i.shape).astype(np.float32)
        np.save(os.path.join(TMP, f"{name}.{i.name}.npy"), feed[i.name])
        given.append(f"--input={i.name}={TMP}/{name}.{i.name}.npy")
    check(copse("compile", path, "-o", package).returncode == 0, f"{name}: compiles")
    r = copse("run", package, *given, "--output-dir", folder)
    check(r.returncode == 0, f"{name}: {r.stdout.decode()}{r.stderr.decode()}")
    for o, want in zip(session.get_outputs(), session.run(None, feed)):
        got = np.load(os.path.join(folder, o.name + ".npy"))
        far = np.max(np.abs(got - want)) / np.max(np.abs(want))
        check(got.shape == want.shape and far <= LIMIT, f"{name}: {o.name} differs by {far:.3g} of the largest value")
done()

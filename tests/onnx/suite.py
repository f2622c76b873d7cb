"""The node cases of the ONNX project through the importer and the reference evaluator: each must
give the published result or be refused with a typed message; nothing may crash or be wrong.

usage: suite.py EVAL_CASES
Sizes and axes are inputs in many of these cases; such a case is run again with them as constants.
"""
import collections, os, re, shutil, subprocess, sys, tempfile, warnings
import numpy as np
import onnx
from onnx import numpy_helper as nh

warnings.filterwarnings("ignore")
from onnx.backend.test.case.node import collect_testcases

F64 = np.float64


def narrow(v):
    """As the tool takes it: fp32 for floats, integers and bool as they are. None: cannot be."""
    if not isinstance(v, (np.ndarray, np.generic)) or v.dtype.kind not in "fiub":
        return v.astype(np.float32) if str(getattr(v, "dtype", "")) == "bfloat16" else None
    return v.astype(np.float32) if v.dtype.kind == "f" else np.asarray(v)


def write(folder, model, ins, constants):
    """model.onnx and the inputs; integer inputs as initializers when `constants`."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    names = [i.name for i in m.graph.input]
    keep = 0
    for name, v in zip(names, ins):
        small = isinstance(v, (np.ndarray, np.generic)) and v.size < 64 and (
            v.dtype.kind in "iu" or v.size == 1)
        if constants and small and v.dtype.kind in "fiub":
            m.graph.initializer.append(nh.from_array(np.asarray(v), name))
            continue
        w = narrow(v)
        if w is None:
            return False
        np.save(os.path.join(folder, f"in_{keep}.npy"), w)
        keep += 1
    onnx.save(m, os.path.join(folder, "model.onnx"))
    return True


def verdict(folder, outs, rtol, atol):
    if not os.path.exists(os.path.join(folder, "out_0.npy")):
        err = os.path.join(folder, "err.txt")
        codes = re.findall(r"\[(E\d{4})\]", open(err).read()) if os.path.exists(err) else []
        return codes[0] if codes else "silent"
    for i, w in enumerate(outs):
        if not isinstance(w, (np.ndarray, np.generic)):
            return "wrong: not a tensor"
        w = np.asarray(w)
        g = np.load(os.path.join(folder, f"out_{i}.npy"))
        if g.shape != w.shape:
            return f"wrong: shape {g.shape}, want {w.shape}"
        a, b = g.astype(F64), w.astype(F64)
        half = w.dtype == np.float16 or str(w.dtype) == "bfloat16"
        t = max(rtol, 2e-2 if str(w.dtype) == "bfloat16" else 2e-3 if half else 1e-5)
        top = np.abs(b[np.isfinite(b)]).max(initial=0)
        if not np.allclose(a, b, rtol=t, atol=atol + t * top, equal_nan=True):
            return f"wrong: off by {np.nanmax(np.abs(a - b)):.3g}"
    return "pass"


def run(tool, cases, constants):
    root = tempfile.mkdtemp(prefix="copse-suite-")
    jobs, result = [], {}
    for c in cases:
        folder = os.path.join(root, c.name)
        os.mkdir(folder)
        try:
            ins, outs = c.data_sets[0]
        except Exception:
            continue
        if write(folder, c.model, ins, constants):
            jobs.append((c, folder, outs))
        else:
            result[c.name] = "not a tensor"
    p = subprocess.run([tool], input="\n".join(j[1] for j in jobs) + "\n", text=True)
    if p.returncode not in (0, 1):
        print("the evaluator ended with", p.returncode)
        result["crash"] = "wrong: crash"
    for c, folder, outs in jobs:
        result[c.name] = verdict(folder, outs, c.rtol, c.atol)
    shutil.rmtree(root)
    return result


def main():
    cases = collect_testcases(None)
    result = run(sys.argv[1], cases, False)
    again = [c for c in cases if result.get(c.name) == "E7011"]
    result.update(run(sys.argv[1], again, True))
    count = collections.Counter()
    for name, v in sorted(result.items()):
        count["wrong" if v.startswith("wrong") or v == "silent" else v] += 1
        if v.startswith("wrong") or v == "silent" or (len(sys.argv) > 2 and v == sys.argv[2]):
            print(name, v)
    print(", ".join(f"{k} {n}" for k, n in sorted(count.items())))
    bad = count["wrong"]
    print(f"{len(result)} cases, {count['pass']} pass, {len(result) - count['pass'] - bad} refused, "
          f"{bad} wrong")
    return bad > 0 or count["pass"] < 600


sys.exit(main())

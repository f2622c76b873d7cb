"""The contract of reports, exit codes and saved tensors that outside scripts rely on."""
import json
from util import *

KEYS = {"bound", "busy", "cache", "checks", "compile_ms", "cycles", "engines_fraction", "flops", "hbm_bytes",
        "instructions", "kernel", "leaf", "max_abs_err", "max_rel_err", "pass", "psum_banks_peak",
        "roofline_engines_ns", "roofline_fraction", "roofline_ns", "sbuf_peak_bytes_per_partition", "target",
        "time_ns", "wall_ms"}
r = copse("kernel", "run", "matmul", "--dims", "M=128,K=128,N=512", "--with", "bias,residual", "--compare", "ref",
          "--save-io", f"{TMP}/io", "--report", f"{TMP}/r.json")
check(r.returncode == 0, r.stderr.decode())
rep = json.load(open(f"{TMP}/r.json"))
check(KEYS <= rep.keys(), f"missing keys {KEYS - rep.keys()}")
check(rep["flops"] == 2 * 128 * 128 * 512, f"flops {rep['flops']}")
check(rep["hbm_bytes"] == 2 * (128 * 128 + 128 * 512 + 512 + 2 * 128 * 512), f"bytes {rep['hbm_bytes']}")
roof = max(rep["flops"] / (2 * 128 * 128 * 2.4), rep["hbm_bytes"] / 384)
check(abs(rep["roofline_ns"] - roof) < 1e-6 * roof, f"roofline {rep['roofline_ns']} against {roof}")
check(abs(rep["roofline_fraction"] - rep["roofline_ns"] / rep["time_ns"]) < 1e-9, "fraction is roof / time")
check(rep["pass"] is True and rep["checks"] == {"bounds": 0, "races": 0, "uninit": 0}, f"{rep['checks']}")
check(set(rep["cycles"]) == {"pe", "act", "pool", "dve", "sp"} and rep["cycles"]["pe"] > 0, f"{rep['cycles']}")
names = {"in_x.npy", "in_w.npy", "in_bias.npy", "in_residual.npy", "out_y.npy", "ref_y.npy"}
check(set(os.listdir(f"{TMP}/io")) == names, f"{os.listdir(f'{TMP}/io')}")
head = open(f"{TMP}/io/in_x.npy", "rb").read(128)
check(b"'<f4'" in head and b"(128, 128)" in head, f"bf16 travels widened: {head}")

# The same seed gives the same inputs; --input takes them back.
copse("kernel", "run", "matmul", "--dims", "M=128,K=128,N=512", "--with", "bias,residual", "--save-io", f"{TMP}/io2",
      "--on", "ref")
check(tree(f"{TMP}/io")["in_w.npy"] == tree(f"{TMP}/io2")["in_w.npy"], "seeded inputs differ between runs")

for args, code in [
    (["kernel", "run", "nothing"], 1),
    (["kernel", "run", "matmul", "--dims", "M=1"], 1),
    (["kernel", "run", "matmul", "--dims", "M=x,K=1,N=1"], 2),
    (["kernel", "run", "matmul", "--dims", "M=4,K=4,N=4", "--leaf", "none_such"], 1),
    (["kernel", "run", "matmul", "--dims", "M=4,K=4,N=4", "--attr", "nope=1"], 1),
    (["kernel", "run", "matmul", "--dims", "M=4,K=4,N=4", "--target", "trn9"], 1),
    (["kernel", "run", "matmul", "--dims", "M=4,K=4,N=4", "--frobnicate"], 2),
    (["compile", "/nonexistent.onnx", "-o", f"{TMP}/x"], 74),
    (["nonsense"], 2),
    (["dis", "/nonexistent.bin"], 74),
    (["run", f"{TMP}"], 1),
]:
    r = copse(*args)
    check(r.returncode == code, f"{args}: exit {r.returncode}, want {code}: {r.stderr.decode()[:300]}")
    check(b"error: " in r.stderr, f"{args}: no message")
r = copse("kernel", "run", "matmul", "--dims", "M=4,K=4", "--message-format", "json")
line = json.loads(r.stderr.decode().split("\n")[0])
check(line["severity"] == "error" and line["code"].startswith("E"), f"{line}")
for c in ("compile", "run", "kernel", "explain", "opt", "asm", "dis", "sim", "cache", "list-operators", "targets", "tune",
          "isa", "version", "help"):
    r = copse(c, "--help")
    check(r.returncode == 0 and b"usage: copse" in r.stdout, f"{c} --help")
check(b"sbuf.bytes" in copse("targets").stdout, "targets lists facts")
check(len(json.loads(copse("targets", "--json").stdout)) == 3, "three targets")
check(copse("help", "E1108").stdout.startswith(b"E1108: "), "help of a code")
done()

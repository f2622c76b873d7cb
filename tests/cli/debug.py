"""The debugger by scripts on standard input: where it stops, what it tells, and that looking changes
nothing."""
import json, random, re
from util import *

MATMUL = ["kernel", "run", "matmul", "--leaf", "matmul_stream", "--dims", "M=128,K=128,N=512"]


def debug(script, *args, base=MATMUL):
    r = copse(*base, *args, stdin="".join(s + "\n" for s in script).encode())
    return r.returncode, r.stdout.decode(), r.stderr.decode()


# Every way to name a place: the same instruction, or more where the name fits more.
asm = copse(*MATMUL, "--emit", "asm").stdout.decode()
line = re.search(r"MATMUL .*?leaves/matmul\.cps:(\d+)", asm).group(1)
for where, want in [("start", 1), ("pe:1", 1), ("pe:MATMUL", 1), ("MATMUL", 1), (line, 2), (f"matmul.cps:{line}", 2),
                    (f"leaves/matmul.cps:{line}", 2), ("dve:0", 1), ("PSEUDO_DMA_TRIGGER", 3), ("sp:PSEUDO_DMA_TRIGGER", 2)]:
    code, out, err = debug(["c"] * 9, "--break", where)
    got = len(re.findall(r"^stop at .*: break 1 \(", out, re.M))
    check(code == 0 and got == want, f"--break {where}: {got} stops, want {want}; exit {code} {err[-300:]}")
for where in ("pe:99", "99999", "other.cps:1", "ACTIVATE"):
    code, out, _ = debug([], "--break", where)
    check(code == 0 and "was never reached" in out and "stop at" not in out, f"--break {where}: {out}")

# Looking at a stopped machine.
code, out, err = debug(["where", "list", "regs", "regs dve", "sems", "sems 9", "mem sbuf:0:0:8", "mem psum:0:0:8", "info", "continue"],
                       "--break", "MATMUL")
check(code == 0, err)
for want in (r"^next is pe\[1\] MATMUL .*// leaves/matmul\.cps:\d+$", r"^kernel matmul_stream at [0-9.]+ us$",
             r"^dve: waits for S\[\d+\], which is 0 and shall be 1; next is dve\[0\] CAST ", r"^> pe\[1\] MATMUL",
             r"^pe: all zero$", r"^S\[8\] = \d+, S\[9\] = 16$", r"^S\[9\] = 16, E\[9\] = 0$",
             r"^ +0:( [0-9a-f]{2}){8}$", r"^ +0:( --){8}$", r"^1: break MATMUL$", r"^kernel matmul_stream ended at "):
    check(re.search(want, out, re.M), f"nothing like {want} in\n{out}")

# Steps: one instruction of any engine, some of one engine.
code, out, _ = debug(["step", "step 2", "step dve", "c"], "--break", "start")
stops = re.findall(r"^stop at .*: (\w+)", out, re.M)
check(stops == ["break", "step", "step", "step"], f"{stops}")
check(re.search(r"step\nnext is dve\[0\]", out), out)

# A watch tells who changed the bytes, from what to what; a second one on the output sees the DMA.
code, out, _ = debug(["c"] * 40, "--watch", "psum:0:0:8", "--watch", "hbm:y:1024:2")
hits = re.findall(r"watch (\d) .*\nbytes (\d+) to (\d+):((?: --| [0-9a-f]{2})+) ->((?: --| [0-9a-f]{2})+)\n(written by|moved by the transfer of) (\w+)\[", out)
check(len(hits) == 2, f"{len(hits)} changes in\n{out}")
check([h[0] for h in hits] == ["1", "2"] and hits[0][6] == "pe" and hits[1][5].startswith("moved"), f"{hits}")
check(all("--" in h[3] and "--" not in h[4] for h in hits), f"{hits}")
check(hits[0][1:3] == ("0", "7") and hits[1][1:3] == ("1024", "1025"), f"{hits}")

# Dumps: the output is what --save-io writes; PSUM holds it unrounded.
dumps = [f"hbm:y:0:128x512:bf16={TMP}/y.npy", f"psum:0:0:128x512:fp32={TMP}/acc.npy", "sbuf:0:0:2x4:bf16"]
args = [x for d in dumps for x in ("--dump", d)]
code, out, err = debug([], *args, "--save-io", f"{TMP}/io", "--report", f"{TMP}/r.json")
check(code == 0, err)
check(open(f"{TMP}/y.npy", "rb").read() == open(f"{TMP}/io/out_y.npy", "rb").read(), "a dumped variable is another than the saved one")
check(len(re.findall(r"^  \[\d\]( -?[0-9.e-]+){4}$", out, re.M)) == 2, out)


def npy(path):
    import struct
    b = open(path, "rb").read()
    n = struct.unpack("<H", b[8:10])[0]
    return struct.unpack(f"<{(len(b) - 10 - n) // 4}f", b[10 + n:])


acc, y = npy(f"{TMP}/acc.npy"), npy(f"{TMP}/y.npy")
check(len(acc) == len(y) and max(abs(a - b) for a, b in zip(acc, y)) <= max(map(abs, acc)) / 256, "PSUM and the output")

# Looking changes neither results nor time.
rep = json.load(open(f"{TMP}/r.json"))
code, _, _ = debug(["step", "where", "sems", "c"], "--break", "MATMUL", "--watch", "sbuf:0:0:64", "--report", f"{TMP}/r2.json",
                   "--save-io", f"{TMP}/io2")
rep2 = json.load(open(f"{TMP}/r2.json"))
check(code == 0 and rep["time_ns"] == rep2["time_ns"] and rep["instructions"] == rep2["instructions"], "time under the debugger")
check(tree(f"{TMP}/io") == tree(f"{TMP}/io2"), "results under the debugger")
code, out, err = debug(["quit"], "--break", "start")
check(code == 0 and "simulated time" not in err, f"quit: {code} {err}")

# Mistakes of the command line and of commands.
for args in (["--break", "nowhere"], ["--break", "xx:MATMUL"], ["--break", "-4"], ["--watch", "sbuf:1"], ["--watch", "dram:0:0"],
             ["--watch", "sbuf:128:0"], ["--watch", "sbuf:0:99999999"], ["--watch", "hbm:nosuch:0"], ["--watch", "sbuf:0:0:0"],
             ["--dump", "sbuf:0:0"], ["--dump", "sbuf:0:0:4x4:float99"], ["--dump", "sbuf:100:0:64x4:bf16"], ["--dump", "hbm:nosuch:0:4:bf16"],
             ["--dump", "psum:0:16000:1x4096:fp32"], ["--dump", "sbuf:0:0:999999999x9999999:i8"], ["--dump", "sbuf:0:0:4x4:bf16="]):
    code, out, err = debug(["c"] * 3, *args)
    check(code == 2 and "[E1104]" in err, f"{args}: exit {code}: {err[-300:]}")
for on in ("host", "ref"):
    for args in (["--html", f"{TMP}/x.html"], ["--trace", f"{TMP}/x.json"], ["--summary"], ["--break", "start"], ["--dump", "sbuf:0:0:4x4:i8"]):
        code, out, err = debug([], "--on", on, *args)
        check(code == 2 and "[E1104]" in err, f"--on {on} {args}: exit {code}")
code, out, err = debug([], "--dump", f"hbm:y:0:4:bf16={TMP}/none/y.npy")
check(code == 74 and "[E1002]" in err, f"a dump that cannot be written: {code} {err}")
code, out, err = debug(["jump", "regs xx", "sems 999", "mem", "mem sbuf:0", "mem sbuf:200:0", "mem hbm:y:0:4 nothing", "dump psum:0:0:4",
                        "break", "break nowhere", "watch zz", "watch hbm:no:0", "delete 7", "step -1", "help", ""], "--break", "start")
for want in ("no command 'jump'", "no engine 'xx'", "no semaphore '999'", "mem SPACE:", "is no memory", "dump SPACE:", "break start |",
             "watch SPACE:", "delete N", "step [ENGINE] [N]", "repeats the last one"):
    check(want in out, f"no '{want}'")
check(code == 0, f"exit {code}")

# A kernel that fails is looked at where it stands: here a wait that nobody ends.
pack = f"{TMP}/pack"
copse("kernel", "compile", "matmul", "--leaf", "matmul_stream", "--dims", "M=128,K=128,N=512", "-o", pack)
kernel = os.listdir(f"{pack}/kernels")[0]
path = f"{pack}/kernels/{kernel}/dve.bin"
text = copse("dis", path).stdout.decode()
with open(f"{TMP}/dve.cas", "w") as f:
    f.write(text.replace("wait S[3]>=1", "wait S[3]>=7"))
r = copse("asm", f"{TMP}/dve.cas", "-o", path)
check(r.returncode == 0 and "S[3]>=1" in text, r.stderr.decode())
code, out, err = debug(["where", "step", "sems", "mem psum:0:0:4 fp32"], "--break", "99999", base=["sim", pack])
check(code == 1 and "[E8301]" in err, f"deadlock: {code} {err}")
check("failed at" in out and "the run has ended" in out, out)
check(re.search(r"^dve: waits for S\[3\], which is 1 and shall be 7", out, re.M) and "S[3] = 1" in out, out)

# Several kernels: each is stopped in, --kernel chooses.
copse("compile", f"{ROOT}/tests/data/small_encoder.onnx", "-o", f"{TMP}/enc", *DIMS)
code, out, err = debug(["c"] * 400, "--break", "start", base=["sim", f"{TMP}/enc"])
steps = len(json.load(open(f"{TMP}/enc/manifest.json"))["steps"])
check(code == 0 and len(re.findall(r"^stop at", out, re.M)) > 10, f"{steps} steps: {out[:300]} {err}")
name = re.search(r"kernel (\S+) ended", out).group(1)
code, out, err = debug(["c"] * 400, "--break", "start", "--kernel", name, base=["sim", f"{TMP}/enc"])
check(code == 0 and {m for m in re.findall(r"kernel (\S+) ended", out)} == {name}, out[:300])

# Anything typed leaves the program alive.
rng = random.Random(7)
words = ("step continue where list regs sems mem dump break watch info delete pe dve sp xx 0 1 -1 7 99 18446744073709551616 sbuf:0:0 "
         "psum:0:0:64 hbm:y:0:32 hbm::0 sbuf:-1:0 sbuf:0:0:4x4:bf16 psum:0:0:1x1:fp32 fp32 bf16 fp4e2m1 MATMUL :: : = x:: start pe:0 9:9").split()
for _ in range(12):
    script = [" ".join(rng.choice(words) for _ in range(rng.randint(0, 4))) for _ in range(200)]
    code, out, err = debug(script, "--break", "start")
    check(code == 0, f"exit {code}: {err[-300:]} after {script}")
done()

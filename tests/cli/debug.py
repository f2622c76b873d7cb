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
code, out, err = debug(["where", "step", "sems", "mem psum:0:0:4 fp32"], "--break", "99999", base=["sim", pack, "--allow-changed"])
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

# Two cores: a place names its core, all stand still at a stop.
with open(f"{TMP}/flip.cps", "w") as f:
    f.write("""op flip(x[T, N]) -> y[T, N] { y = x; }
leaf flip_cores for flip on trn2 {
    cases (T: 256, N: 64);
    hbm t[T, N]: bf16;
    for a in tiles(T, P) across cores {
        sbuf u[a, N] <- x[a, :];
        t[a, :] <- u;
    }
    barrier();
    for b in tiles(N, 32) across cores {
        for a in tiles(T, P) {
            sbuf v[a, b] <- t[a, b];
            y[a, b] <- v;
        }
    }
}
""")
PAIR = ["kernel", "run", "flip", "-I", f"{TMP}/flip.cps", "--dims", "T=256,N=64", "--logical-nc-config", "2"]
for where, want in [("start", 1), ("core1:start", 1), ("core0:sp:0", 1), ("sp:0", 2), ("core1:sp:0", 1), ("PSEUDO_CORE_BARRIER", 2),
                    ("core1:PSEUDO_CORE_BARRIER", 1), ("core0:sp:PSEUDO_CORE_BARRIER", 1), ("core1:flip.cps:9", None)]:
    code, out, err = debug(["c"] * 99, "--break", where, base=PAIR)
    stops = re.findall(r"^stop at .*: break 1 \(.*\nnext is core (\d) ", out, re.M)
    check(code == 0 and (len(stops) == want or want is None and stops), f"--break {where}: {stops}, want {want}; {err[-300:]}")
    named = re.match(r"core(\d):", where)
    check(not named or set(stops) == {named.group(1)}, f"--break {where}: {stops}")
code, out, err = debug(["c"] * 99, "--watch", "hbm:t:0", "--watch", "core1:hbm:y:64:2", "--watch", "core1:sbuf:0:0", base=PAIR)
hits = re.findall(r"watch (\d) .*\n.*\n(?:written by|moved by the transfer of) core (\d) \w+\[", out)
check(code == 0 and set(hits) == {("1", "0"), ("2", "1"), ("3", "1")}, f"who changed what: {hits} {err}")
code, out, err = debug(["core", "where", "core 0", "list sp", "regs core1:sp", "sems core1:3", "mem core1:sbuf:0:0:4", "mem sbuf:0:0:4",
                        "core 2", "core x", "mem core2:sbuf:0:0", "step core1:sp 2", "step core0", "step pe", "regs core7", "step core1:xx", "c"],
                       "--break", "core1:start", base=PAIR)
check(code == 0, err)
for want in (r"^core 1 of 2$", r"^core 0 sp: ", r"^core 1 sp: next is core 1 sp\[0\] PSEUDO_DMA_TRIGGER",
             r"^core 0 q_sp_in transfer 1: 16384 bytes", r"^core 0 of 2$", r"^> core 0 sp\[1\] DRAIN", r"^core 1 sp: all zero$", r"^S\[3\] = 0",
             r"^ +0: -- -- -- --\n +0: -- -- -- --$", r"no core '2'", r"no core 'x'", r"^core2:sbuf:0:0 is no memory",
             r"step\nnext is core 1 sp\[1\]", r"step\nnext is core 0 ", r"step\nnext is core 0 pe", r"no core 7", r"^step \[ENGINE\]"):
    check(re.search(want, out, re.M), f"nothing like {want} in\n{out}")
code, out, err = debug([], "--dump", f"hbm:y:0:256x64:bf16={TMP}/py.npy", "--dump", "core1:sbuf:0:0:2x2:bf16", "--save-io", f"{TMP}/pio",
                       "--report", f"{TMP}/p1.json", base=PAIR)
check(code == 0 and open(f"{TMP}/py.npy", "rb").read() == open(f"{TMP}/pio/out_y.npy", "rb").read(), f"a shared variable: {err}")
code, _, err = debug(["step", "core 1", "step core0:sp", "c"] + ["c"] * 99, "--break", "PSEUDO_CORE_BARRIER", "--watch", "core0:sbuf:0:0",
                     "--report", f"{TMP}/p2.json", base=PAIR)
check(code == 0 and all(json.load(open(f"{TMP}/p1.json"))[k] == json.load(open(f"{TMP}/p2.json"))[k] for k in ("time_ns", "instructions")),
      "a pair's time under the debugger")
code, out, err = debug(["quit"], "--break", "start", base=PAIR)
check(code == 0 and "simulated time" not in err, f"quit: {code} {err}")
for args, what in ([["--dump", "sbuf:0:0:2x2:bf16"], "names no core"], [["--watch", "psum:0:0"], "names no core"],
                   [["--watch", "core2:sbuf:0:0"], "no kernel runs on a core 2"], [["--dump", "core1:hbm:none:0:2:bf16"], "such a variable"],
                   [["--watch", "core0:sbuf:0:99999999"], "outside memory"], [["--break", "core1:"], "names no place"],
                   [["--break", "core99:start"], "names no place"]):
    code, out, err = debug(["c"] * 3, *args, base=PAIR)
    check(code == 2 and "[E1104]" in err and what in err, f"{args}: exit {code}: {err[-300:]}")
# a package of a pair, and a group of two of them
copse("kernel", "compile", *PAIR[2:], "-o", f"{TMP}/pair")
code, out, err = debug(["c"] * 9, "--break", "core1:sp:0", base=["sim", f"{TMP}/pair"])
check(code == 0 and len(re.findall("^stop at", out, re.M)) == 1 and "next is core 1 sp[0]" in out, f"a package: {out} {err}")
folder = f"{TMP}/pair/kernels/flip_cores_0"
code, out, err = debug(["where", "c"], "--break", "core3:sp:0", "--dump", "core2:hbm:y:0:2x2:bf16", base=["sim", folder, folder])
check(code == 0 and "next is core 3 sp[0]" in out and "core 0 sp: " in out and "core2:hbm:y:0:2x2:bf16 of kernel" in out, f"a group: {out} {err}")
code, out, err = debug([], "--dump", "hbm:y:0:2x2:bf16", base=["sim", folder, folder])
check(code == 2 and "names no core" in err, f"two ranks have a 'y' each: {code} {err}")
code, out, err = debug(["quit"], "--break", "start", base=["sim", folder, folder])
check(code == 0 and "simulated time" not in err, f"quit of a group: {code} {err}")

# Anything typed leaves the program alive.
rng = random.Random(7)
words = ("step continue where core core1 core9:sp list regs sems mem dump break watch info delete pe dve sp xx 0 1 -1 7 99 18446744073709551616 sbuf:0:0 "
         "psum:0:0:64 hbm:y:0:32 hbm::0 sbuf:-1:0 sbuf:0:0:4x4:bf16 psum:0:0:1x1:fp32 fp32 bf16 fp4e2m1 MATMUL :: : = x:: start pe:0 9:9").split()
for _ in range(12):
    script = [" ".join(rng.choice(words) for _ in range(rng.randint(0, 4))) for _ in range(200)]
    code, out, err = debug(script, "--break", "start")
    check(code == 0, f"exit {code}: {err[-300:]} after {script}")
    code, out, err = debug([s.replace("pe", "core1:pe").replace("sbuf", "core1:sbuf") for s in script], "--break", "start", base=PAIR)
    check(code == 0, f"a pair: exit {code}: {err[-300:]} after {script}")
done()

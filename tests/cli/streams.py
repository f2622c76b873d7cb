"""Every instruction stream that is emitted survives disassembly and assembly byte for byte, and the golden vectors that
the compiler's instructions rest on decode to instructions whose own text gives the bytes back."""
import glob, subprocess
from util import *

model = sorted(glob.glob(os.path.join(ROOT, "tests/data/*.onnx")))[0]
streams = 0
for target in ("trn1", "trn2", "trn3"):
    r = copse("compile", model, *DIMS, "-o", f"{TMP}/{target}", "--target", target)
    check(r.returncode == 0, r.stderr.decode())
    for path in sorted(glob.glob(f"{TMP}/{target}/kernels/*/*.bin")):
        raw = open(path, "rb").read()
        text = copse("dis", path, "--target", target)
        check(text.returncode == 0 and b".bytes" not in text.stdout, f"{path}: not all decoded")
        rules = copse("dis", path, "--target", target, "--verify")
        check(rules.returncode == 0 and not rules.stderr, f"{path}: {rules.stderr.decode()}")
        back = copse("asm", "-", "--target", target, "-o", "-", stdin=text.stdout)
        check(back.stdout == raw, f"{path}: {len(raw)} bytes came back as {len(back.stdout)}")
        streams += len(raw) > 0
check(streams > 30, f"only {streams} streams")

wanted = {"matmul": 5, "activate": 2, "tt_add": 1, "ts_": 2, "copy": 1, "cast": 1, "reduce": 1, "memset": 1}
seen = dict.fromkeys(wanted, 0)
targets = {"v2": "trn1", "v3": "trn2", "v4": "trn3"}
for line in open(os.path.join(ROOT, "tests/golden/isa.tsv"), encoding="utf-8"):
    if line.startswith("#") or line.startswith("kind"):
        continue
    kind, name, gens, hexes = line.split("\t")[:4]
    for g in gens.split(","):
        with open(f"{TMP}/v.bin", "wb") as f:
            f.write(bytes.fromhex(hexes))
        text = copse("dis", f"{TMP}/v.bin", "--target", targets[g])
        check(text.returncode == 0 and not text.stdout.startswith(b".bytes"), f"{name} on {g}: {text.stdout}")
        back = copse("asm", "-", "--target", targets[g], "-o", "-", stdin=text.stdout)
        check(back.stdout == bytes.fromhex(hexes), f"{name} on {g} comes back differently")
    for w in wanted:
        seen[w] += kind == "CON" and name.startswith(w)

# Both commands stream: twenty times the input takes the same memory, from file to file and through pipes.
one = b"".join(bytes.fromhex(line.split("\t")[3]) for line in open(os.path.join(ROOT, "tests/golden/isa.tsv"), encoding="utf-8")
               if not line.startswith(("#", "kind")))


def peak(command, src, dst):
    """Largest resident memory in KiB (at least that of this process); files as standard streams."""
    with open(src, "rb") as i, open(dst, "wb") as o:
        p = subprocess.Popen([COPSE, command, "-", "-o", "-"], stdin=i, stdout=o, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    check(p.returncode == 0, f"{command} through pipes ends with {p.returncode}")
    return used.ru_maxrss


sizes = []
for times in (340, 6800):
    with open(f"{TMP}/big.bin", "wb") as f:
        for _ in range(times):
            f.write(one)
    sizes.append((peak("dis", f"{TMP}/big.bin", f"{TMP}/big.cas"), peak("asm", f"{TMP}/big.cas", f"{TMP}/big.back")))
    with open(f"{TMP}/big.back", "rb") as f:
        same = all(f.read(len(one)) == one for _ in range(times)) and not f.read(1)
    check(same, "other bytes come back through pipes")
check(all(large - small < 8192 for small, large in zip(*sizes)), f"memory grows with the file: {sizes} KiB")
for w, n in wanted.items():
    check(seen[w] >= n, f"{seen[w]} vectors {w}*, want {n}")
done()

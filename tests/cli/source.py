"""Sources of the kernel language as input of `compile`, what a command read as a rule for make, and the levels
and the manifest of `opt`."""
import glob, json, re, subprocess
from util import *

ADD = ("op plus(x[M, N]) -> y[M, N] { y = x + 1.0; }\n"
       "leaf plus_rows for plus on trn1, trn2, trn3 {\n    where M <= P : \"one tile\";\n    cases (M: 8, N: 8);\n"
       "    sbuf t[M, N] <- x;\n    y <- t + 1.0;\n}\n")
TWICE = "op twice(x[M, N]) -> y[M, N] { y = x * 2.0; }\nleaf twice_rows for twice on trn2 {\n    cases (M: 8, N: 8);\n" \
        "    sbuf t[M, N] <- x;\n    y <- t * 2.0;\n}\n"


def write(name, text):
    path = f"{TMP}/{name}"
    with open(path, "w") as f:
        f.write(text)
    return path


def said(r, code, *texts):
    err = r.stderr.decode()
    check(r.returncode == code and all(t in err for t in texts), f"exit {r.returncode}, want {code} {texts}: {err[:500]}")


plus, both = write("plus.cps", ADD), write("both.cps", ADD + TWICE)
# One operator: the package is that of `kernel compile`, by either way to give sizes.
for n, args in enumerate((["--dims", "M=8,N=40"], ["--dim", "M=8", "--dim", "N=40"], ["--dim", "M=8", "--dims", "N=40"])):
    r = copse("compile", plus, "-o", f"{TMP}/a{n}", *args)
    said(r, 0, "plus_rows (only)")
said(copse("kernel", "compile", "plus", "-I", plus, "--dims", "M=8,N=40", "-o", f"{TMP}/k"), 0)
check(tree(f"{TMP}/a0") == tree(f"{TMP}/a1") == tree(f"{TMP}/a2") == tree(f"{TMP}/k"), "one package, however it is asked for")
said(copse("run", f"{TMP}/a0", "--compare", "ref"), 0, "within tolerance")
said(copse("compile", plus, "-o", f"{TMP}/n", "--dims", "M=8,N=40", "--emit", "neff"), 0)
said(copse("run", f"{TMP}/n/model.neff", "--compare", "ref"), 0, "within tolerance")
# Several, and none.
said(copse("compile", both, "-o", f"{TMP}/x", "--dims", "M=8,N=8"), 2, "E1105", "has 2 operators", "'plus'", "'twice'")
said(copse("compile", both, "-o", f"{TMP}/x", "--dims", "M=8,N=8", "--kernel", "twice"), 0, "twice_rows")
said(copse("compile", both, "-o", f"{TMP}/x", "--dims", "M=8,N=8", "--kernel", "thrice"), 1, "E1106", "there is 'plus'")
said(copse("compile", write("none.cps", "// nothing yet\n"), "-o", f"{TMP}/x"), 2, "no operator and no leaf")
# A further leaf of an operator that there is already.
leaf = write("leaf.cps", "leaf softmax_plain for softmax on trn2 {\n    where T <= P : \"one tile\";\n    cases (T: 8, N: 8);\n"
             "    sbuf t[T, N] <- x;\n    sbuf m[T, 1]: fp32 = max(t, axis: free);\n    sbuf e[T, N]: fp32 = exp(t - m);\n"
             "    sbuf s[T, 1]: fp32 = 1.0 / sum(e, axis: free);\n    y <- e * s;\n}\n")
r = copse("compile", leaf, "-o", f"{TMP}/s", "--dims", "T=8,N=64", "--leaf", "softmax_plain")
said(r, 0, "softmax_plain (forced)")
# Stages as text.
for kind in ("tile", "asm"):
    r = copse("compile", plus, "--dims", "M=8,N=40", "--emit", kind)
    check(r.stdout == copse("kernel", "run", "plus", "-I", plus, "--dims", "M=8,N=40", "--emit", kind).stdout != b"", f"--emit {kind}")
check(b"add" in copse("compile", plus, "--dims", "M=8,N=40", "--emit", "graph").stdout, "--emit graph")
# Mistakes.
said(copse("compile", plus, "-o", f"{TMP}/x"), 1, "E2310", "M, N")
said(copse("compile", plus, "-o", f"{TMP}/x", "--dims", "M=8,N=40", "--target", "host"), 2, "E1104")
said(copse("compile", plus, "-o", f"{TMP}/x", "--dims", "M=8,N=40", "--emit", "lowered"), 2, "E1104")
said(copse("compile", write("bad.cps", ADD.replace("t + 1.0", "u + 1.0")), "-o", f"{TMP}/x", "--dims", "M=8,N=8"), 1, "bad.cps:6:10")
said(copse("compile", f"{TMP}/nowhere.cps", "-o", f"{TMP}/x", "--dims", "M=8,N=8"), 74, "E1001")
MODEL = f"{ROOT}/tests/data/small_encoder.onnx"
for opt in ("--dims=A=1", "--dtype=bf16", "--attr=a=1", "--with=b", "--leaf=l", "--param=p=1", "--kernel=k"):
    said(copse("compile", MODEL, *DIMS, "-o", f"{TMP}/x", opt), 2, "E1104", "is none")


# ---- what each line becomes ----

import re
ROW = re.compile(r"^      \|     (pe|act|pool|dve|sp)\s+(\S+)\s+x (\d+)\s+\d+(?: to \d+)? cycles?$")


def expanded(*args):
    r = copse("kernel", "show", *args, "--expand")
    said(r, 0)
    out, line, temps = {}, 0, {}
    for s in r.stdout.decode().splitlines():
        m = ROW.match(s)
        if m:
            out[line, m[1], m[2]] = int(m[3])
        elif s.startswith("      |     temporary "):
            temps.setdefault(line, []).append(s.split("temporary ")[1])
        elif not s.startswith("//"):
            line = int(s[:5])
    return r.stdout.decode(), out, temps


call = ["--dims", "T=300,N=700"]
text, rows, temps = expanded("softmax_rows", *call)
listing = copse("kernel", "run", "softmax", "--leaf", "softmax_rows", *call, "--emit", "asm").stdout.decode()
want, engine = {}, ""
for s in listing.splitlines():
    m = re.match(r"// ---- (\w+): ", s)
    engine = m[1] if m else engine
    m = re.match(r"(\S+).*// \d+ leaves/softmax.cps:(\d+):", s)
    if m:
        want[int(m[2]), engine, m[1]] = want.get((int(m[2]), engine, m[1]), 0) + 1
check(rows == want != {}, f"the rows are those of the listing: {rows} {want}")
check("softmax(x bf16[300,700])" in text and any("sbuf bf16[128, 700]" in t for t in temps.get(18, [])), f"the staged result: {temps}")
for (line, *_), n in rows.items():  # the source stands above its rows
    check(f"\n{line:5} | " in text, f"line {line}")
check("(x bf16[128,4096])" in expanded("softmax_rows")[0], "without dims it is the leaf's first case")
check(copse("kernel", "show", "softmax", "--expand", "--dims", "T=8,N=8").stdout.startswith(b"// leaf softmax_"), "of an operator the leaf it gets")
leaves = [x["name"] for o in json.loads(copse("kernel", "list", "--json").stdout) for x in o["leaves"]]
for name in leaves[::7] + ["attention_turned"]:
    check(len(expanded(name)[1]) > 0, f"{name} becomes nothing")
check(len(expanded("plus_rows", "-I", plus)[1]) == 3, "a leaf of one's own")
said(copse("kernel", "show", "nothing", "--expand"), 1, "E1106")
said(copse("kernel", "show", "softmax", "--expand"), 1, "E2310")
said(copse("kernel", "show", "softmax_rows", "--expand", "--target", "host"), 2, "E1104")
said(copse("kernel", "show", "softmax_rows", "--expand", "--dims", "T=1,N=99999999"), 5, "E1108")

# ---- what was read ----

def rule(path):
    """Target and files of a rule, as make reads them."""
    names = [""]
    text = open(path).read().replace("\\\n", " ")
    for m in re.finditer(r"(\\*)([ \t#:])|\$\$|[^$]", text.rstrip("\n")):
        if m[2] is None:
            names[-1] += m[0].replace("$$", "$")
        elif len(m[1]) % 2:
            names[-1] += m[1][: len(m[1]) // 2] + m[2]
        else:
            names[-1] += m[1]
            names += [":", ""] if m[2] == ":" else [""]
    names = [n for n in names if n]
    check(names.count(":") == 1 and names[1] == ":", f"{path}: {names}")
    return names[0], names[2:]


r = copse("compile", plus, "-o", f"{TMP}/d", "--dims", "M=8,N=40", "-MD")
said(r, 0)
check(rule(f"{TMP}/d/manifest.json.d") == (f"{TMP}/d/manifest.json", [plus]), f"{rule(f'{TMP}/d/manifest.json.d')}")
odd, own = write("odd $name C:\\ #1\\2.cps", TWICE), write("own.xml", copse("targets").stdout.decode() and
                                                   open(f"{ROOT}/codegen/isa/targets/trn2.xml").read())
tuned = f"{TMP}/t.tuned"
said(copse("tune", "plus", "-I", plus, "--dims", "M=8,N=40", "-o", tuned, "--tries", "2"), 0)
r = copse("kernel", "compile", "plus", "-I", plus, "-I", odd, "--tuned", tuned, "--target", own, "--dims", "M=8,N=40", "-o", f"{TMP}/d",
          "-MF", f"{TMP}/x.d")
said(r, 0)
check(rule(f"{TMP}/x.d") == (f"{TMP}/d/manifest.json", [own, plus, odd, tuned]), f"{rule(f'{TMP}/x.d')}")
# A graph and its data; a hit of the whole model in the cache says the same.
said(copse("opt", MODEL, *DIMS, "-o", f"{TMP}/g.cir", "-MD", "--target", "trn2"), 0)
check(rule(f"{TMP}/g.cir.d") == (f"{TMP}/g.cir", [MODEL]), f"{rule(f'{TMP}/g.cir.d')}")
for k in range(2):
    r = copse("compile", f"{TMP}/g.cir", "-o", f"{TMP}/g", "--cache", f"{TMP}/c", "-MF", f"{TMP}/g{k}.d")
    said(r, 0, "17 kernels (17 hits" if k else "17 kernels (0 hits")
    check(rule(f"{TMP}/g{k}.d") == (f"{TMP}/g/manifest.json", [f"{TMP}/g.cir", f"{TMP}/g.cir.data"]), f"{rule(f'{TMP}/g{k}.d')}")
    r = copse("compile", f"{TMP}/g.cir", "-o", f"{TMP}/g", "--cache", f"{TMP}/c", "-I", plus, "--tuned", tuned, "--target", own, "-MF", f"{TMP}/g.d")
    said(r, 0, "17 kernels")
    got = rule(f"{TMP}/g.d")[1]
    check(sorted(got) == sorted([f"{TMP}/g.cir", f"{TMP}/g.cir.data", plus, tuned, own]), f"{got}")
if shutil.which("make"):
    with open(f"{TMP}/Makefile", "w") as f:
        f.write(f"{TMP}/d/manifest.json:\n\t@echo again\ninclude {TMP}/x.d\n")
    again = lambda: subprocess.run(["make", "-C", TMP, f"{TMP}/d/manifest.json"], capture_output=True).stdout
    check(b"again" not in again(), "nothing has changed")
    os.utime(odd, (os.stat(f"{TMP}/d/manifest.json").st_mtime + 9,) * 2)
    check(b"again" in again(), "make sees the change of a file with an odd name")
for args in (["compile", MODEL, *DIMS, "--emit", "graph", "-MD"], ["opt", MODEL, *DIMS, "-MD"], ["opt", "-", "-o", f"{TMP}/o.cir", "-MD"],
             ["kernel", "run", "softmax", "--dims", "T=8,N=8", "-MD"]):
    said(copse(*args, stdin=b""), 2, "E1104", "-MD")
said(copse("compile", plus, "-o", f"{TMP}/d", "--dims", "M=8,N=40", "-MF", f"{TMP}/no/x.d"), 74, "E1002")
# Words of the command line are no files, whatever lies in the folder; the second time kernels come from the cache.
os.makedirs(f"{TMP}/named/compile", exist_ok=True)
os.makedirs(f"{TMP}/named/matmul", exist_ok=True)
for k in range(2):
    said(copse("kernel", "compile", "matmul", "--dims", "M=128,K=128,N=128", "-o", "out", "--cache", "c", "--emit", "bir", "-MD",
               cwd=f"{TMP}/named"), 0)
    check(rule(f"{TMP}/named/out/manifest.json.d") == ("out/manifest.json", []), "an operator of the registry is no file")
(doc,) = glob.glob(f"{TMP}/named/out/kernels/*/kernel.bir.json")
for args, to, target in ((["opt", doc], f"{TMP}/o.bir.json", ""), (["compile", doc, "--emit", "bir"], f"{TMP}/o.bir.json", ""),
                         (["compile", doc, "--emit", "asm"], f"{TMP}/o.cas", ""), (["compile", doc], f"{TMP}/o", "/manifest.json")):
    said(copse(*args, "-o", to, "-MD"), 0)
    check(rule(f"{to}{target}.d") == (f"{to}{target}", [doc]), f"{args}")
said(copse("opt", doc, "-MD"), 2, "E1104", "-MD")
# No rule can hold these.
for name, why in (("two\nlines.cps", "line break"), ("end\\", "ends in a backslash")):
    bad = write(name, TWICE)
    said(copse("kernel", "compile", "plus", "-I", plus, "-I", bad, "--dims", "M=8,N=40", "-o", f"{TMP}/d", "-MD"), 2, "E1104", why)
    said(copse("opt", doc, "-o", bad, "-MD"), 2, "E1104", why)

# ---- opt: levels and manifest ----

text = open(f"{TMP}/g.cir", "rb").read()
r = copse("opt", MODEL, *DIMS, "--manifest", f"{TMP}/m.json", "-o", f"{TMP}/h.cir")
said(r, 0)
check(open(f"{TMP}/h.cir", "rb").read() == text, "the manifest changes nothing")
check(open(f"{TMP}/h.cir.data", "rb").read() == open(f"{TMP}/g.cir.data", "rb").read(), "nor the constants")
said(copse("compile", f"{TMP}/h.cir", "-o", f"{TMP}/g"), 0)
m = json.load(open(f"{TMP}/m.json"))
import hashlib
check(m["output_digest"] == hashlib.sha256(text).hexdigest() and m["input_digest"] == hashlib.sha256(open(MODEL, "rb").read()).hexdigest(), f"{m}")
check(m["target"]["name"] == "trn2" and m["target"]["lnc"] == 1 and m["level"] == "lowered" and m["schema"] == 1, f"{m['target']}")
check(m["decisions"] == json.loads(copse("explain", MODEL, *DIMS, "--json").stdout), "the decisions are those that explain tells")
for level, emit in (("tile", "tile"), ("bundle", "asm")):
    r = copse("opt", MODEL, *DIMS, "--to", level, "--manifest", f"{TMP}/m.json")
    want = copse("compile", MODEL, *DIMS, "--emit", emit)
    check(r.returncode == want.returncode == 0 and r.stdout == want.stdout and len(r.stdout) > 1000, f"--to {level}: {r.stderr.decode()[:300]}")
    check(json.load(open(f"{TMP}/m.json"))["output_digest"] is None, "a stream has no digest")
    said(copse("opt", MODEL, *DIMS, "--to", level, "--target", "host"), 2, "E1104")
    said(copse("opt", MODEL, *DIMS, "--to", level, "--passes", "fold"), 2, "E1104")
# A stream is a graph's text.
small = write("small.cir", copse("compile", plus, "--dims", "M=8,N=40", "--emit", "graph").stdout.decode())
r = copse("opt", "-", "--to", "graph", stdin=open(small, "rb").read())
check(r.returncode == 0 and r.stdout == copse("opt", small, "--to", "graph").stdout != b"", r.stderr.decode()[:300])
done()

"""BIR JSON through the command line.

Every case of every leaf on every target it names is compiled with `--emit bir`; the document keeps to the
published schema (bir_schema.py), prints again as it was, and makes the kernel that it came from: the same
bytes in every stream and in every other file of the kernel. Arguments after the program: names of operators,
or `all`; without any, some operators, and models, texts of single kernels, control flow and messages."""
import glob, json
from concurrent.futures import ThreadPoolExecutor
from bir_schema import problems
from cases import leaf_cases, operators, options
from util import *

# What the published members cannot say of our own instructions and stands as plain fields; everything else
# must come from operands and members. PE modes of 4-byte floats; steps of one-row walks.
PLAIN = {"fp32_mode", "src_step_elem", "dst_step_elem"}


def plain_fields(i):
    own = i.get("copse", {})
    for part in (own, own.get("before", {}), own.get("after", {})):
        yield from part.get("fields", {})
        for key in ("isa", "bytes", "relocs"):
            if key in part:
                yield key


def files_of(folder):
    """The files of the one kernel of a package, without the document itself."""
    (kernel,) = glob.glob(f"{folder}/kernels/*")
    return {k: v for k, v in tree(kernel).items() if not k.endswith(".bir.json")}


def one(case, more=()):
    op, leaf, pairs, target = case
    what = f"{op['name']} {leaf} on {target}: {dict(pairs)}"
    d = tempfile.mkdtemp(dir=TMP)
    try:
        r = copse("kernel", "compile", op["name"], *options(*case), "--no-cache", "--emit", "bir", "-o",
                  f"{d}/a", *more)
        if r.returncode:
            return what, r.stderr.decode()[-800:], {}
        (path,) = glob.glob(f"{d}/a/kernels/*/kernel.bir.json")
        text = open(path, "rb").read()
        doc = json.loads(text)
        bad = problems(doc)
        if bad:
            return what, "\n".join(bad), {}
        r = copse("opt", path)
        if r.returncode or r.stderr or r.stdout != text:
            return what, "opt changes it\n" + r.stderr.decode()[-800:], {}
        r = copse("compile", path, "-o", f"{d}/b")
        if r.returncode:
            return what, r.stderr.decode()[-800:], {}
        a, b = files_of(f"{d}/a"), files_of(f"{d}/b")
        differ = sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k))
        if differ:
            return what, f"files differ: {differ}", {}
        if b'"memref": "sb_all"' in text or b'"memref": "psum_all"' in text:
            return what, "an operand names no buffer", {}
        seen = {}
        for block in doc["functions"][0]["blocks"]:
            for i in block["instructions"]:
                seen[i["opcode"]] = seen.get(i["opcode"], 0) + 1
                odd = sorted(set(plain_fields(i)) - PLAIN)
                if odd or i["opcode"] == "InlineASMBytes":
                    return what, f"{i['opcode']} {i['name']} needs plain {odd}", {}
        if any("desc" in x.get("copse", {}) for q in doc["queues"] for b in q.get("dma_blocks", [])
               for x in b["descriptors"]):
            return what, "a descriptor needs its plain form", {}
        return what, None, seen
    finally:
        shutil.rmtree(d, ignore_errors=True)


def leaves(only):
    cases = list(leaf_cases(operators(only)))
    check(len(cases) > 0, "no case to run")
    total = {}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for what, wrong, seen in pool.map(one, cases):
            check(wrong is None, f"{what}\n{wrong}")
            for k, n in seen.items():
                total[k] = total.get(k, 0) + n
    print(f"{len(cases)} kernels, instructions: " + ", ".join(f"{k} {n}" for k, n in sorted(total.items())))


CONTROL = """
op steps(x[T, H], n[1]: i32) -> y[T, H] {
    y = x * 2.0;
}
leaf steps_loop for steps on trn1, trn2, trn3 {
    where T % P == 0 : "whole tiles of 128 rows";
    cases (T: 384, H: 100);
    reg last: i32 <- n[0];
    loop i in 0..T / P {
        sbuf t[P, H] <- x[ds(i * P, P), :];
        sbuf u[P, H] = t * 2.0;
        when (i <= last) { y[ds(i * P, P), :] <- u; } else { y[ds(i * P, P), :] <- t; }
    }
}
"""


def control():
    """Loops and branches: blocks, registers, moving transfers."""
    path = f"{TMP}/steps.cps"
    open(path, "w").write(CONTROL)
    op = {"name": "steps", "dims": ["T", "H"]}
    for target in ("trn1", "trn2", "trn3"):
        what, wrong, seen = one((op, "steps_loop", [("T", "384"), ("H", "100")], target), ["-I", path])
        check(wrong is None, f"{what}\n{wrong}")
        for k in ("CompareAndBranch", "UncondBranch", "TensorLoad", "RegisterAlu", "DMACopy", "GroupResetSemaphores"):
            check(seen.get(k, 0) > 0, f"{what}: no {k}")


def models():
    onnx = f"{ROOT}/tests/data/small_encoder.onnx"
    r = copse("compile", onnx, *DIMS, "--emit", "bir", "-o", f"{TMP}/m", "--no-cache")
    check(r.returncode == 0, r.stderr.decode()[-400:])
    kernels = sorted(glob.glob(f"{TMP}/m/kernels/*"))
    check(len(kernels) > 5, "few kernels")
    for k in kernels:
        check(not problems(json.load(open(f"{k}/kernel.bir.json"))), f"{k} breaks the schema")
    manifest = json.load(open(f"{TMP}/m/manifest.json"))
    check(all("kernel.bir.json" in json.dumps(k) for k in manifest["kernels"]), "the manifest does not list it")
    r = copse("run", f"{TMP}/m", "--compare", "ref")
    check(r.returncode == 0, r.stderr.decode()[-400:])
    # a package written without it leaves none behind
    check(copse("compile", onnx, *DIMS, "-o", f"{TMP}/m").returncode == 0, "plain compile")
    check(not glob.glob(f"{TMP}/m/kernels/*/kernel.bir.json"), "documents of an older package stay")
    # the same bytes with and without a warm cache
    a = copse("compile", onnx, *DIMS, "--emit", "bir", "-o", f"{TMP}/m2")
    check(a.returncode == 0 and files_like(f"{TMP}/m2"), "documents from a warm cache")
    tile = copse("compile", onnx, *DIMS, "--emit", "tile").stdout.decode()
    check(tile.count("copse.tile 1\n") == len(kernels), "one tile program a kernel")
    asm = copse("compile", onnx, *DIMS, "--emit", "asm").stdout.decode()
    check(asm.count("// kernel ") == len(kernels), "one listing a kernel")
    whole = "".join(open(f"{k}/kernel.cas").read() for k in glob.glob(f"{TMP}/m/kernels/*"))
    check(sorted(whole.split("\n")) == sorted(asm.split("\n")), "listings are those of the package")


def files_like(folder):
    return all(os.path.getsize(f) > 500 for f in glob.glob(f"{folder}/kernels/*/kernel.bir.json"))


def texts():
    args = ["matmul", "--dims", "M=128,K=128,N=512", "--leaf", "matmul_banks"]
    r = copse("kernel", "run", *args, "--emit", "bir")
    check(r.returncode == 0 and not problems(json.loads(r.stdout)), "kernel run --emit bir")
    again = copse("kernel", "run", *args, "--emit", "bir")  # the cache now holds the kernel
    check(again.stdout == r.stdout, "not the same bytes twice")
    path = f"{TMP}/k.bir.json"
    open(path, "wb").write(r.stdout)
    asm = copse("compile", path, "--emit", "asm")
    check(asm.returncode == 0 and asm.stdout == copse("kernel", "run", *args, "--emit", "asm").stdout, "--emit asm")
    # the rebuilt kernel runs, with all checks on
    check(copse("compile", path, "-o", f"{TMP}/k").returncode == 0, "compile")
    check(copse("run", f"{TMP}/k").returncode == 0, "run")
    # a wait left out is a race, and no kernel is made
    doc = json.loads(r.stdout)
    for i in doc["functions"][0]["blocks"][0]["instructions"]:
        if i["opcode"] == "TensorCopy":
            i["sync_info"]["on_wait"] = []
    open(path, "w").write(json.dumps(doc))
    bad = copse("compile", path, "-o", f"{TMP}/race")
    check(bad.returncode == 1 and b"[E8303]" in bad.stderr and not os.path.exists(f"{TMP}/race"), bad.stderr.decode()[-300:])
    # other documents: members in any order and form come out sorted, nothing is lost
    doc = json.loads(r.stdout)
    doc["mine"] = [1, 2.50, None, {"b": 1e-3, "a": "\u00fc"}]
    doc["functions"][0]["blocks"][0]["instructions"][0]["opcode"] = "Frobnicate"
    open(path, "w").write(json.dumps({"module": dict(reversed(doc.items()))}))
    r = copse("opt", path, "-o", f"{TMP}/sorted.bir")
    check(r.returncode == 0 and b"[N9306]" in r.stderr, "opt of another's document")
    check(json.load(open(f"{TMP}/sorted.bir")) == {"module": doc}, "opt loses something")
    check(copse("compile", path, "-o", f"{TMP}/no").returncode == 1, "no kernel can be made of it")


def messages():
    def fails(name, text, code, *args):
        path = f"{TMP}/{name}.bir.json"
        open(path, "w").write(text)
        r = copse("opt", path, "--message-format=json") if not args else copse(*args)
        check(r.returncode == 1 and code in r.stderr.decode(), f"{name}: {r.returncode} {r.stderr.decode()[:300]}")
        return r.stderr.decode()

    fails("cut", '{"functions": [', "E9301")
    fails("form", '{"functions": 1}', "E9302")
    fails("missing", '{"functions": [{"name": "f"}]}', "E9303")
    fails("twice", '{"functions": [{"name": "f", "blocks": []}, {"name": "f", "blocks": []}]}', "E9304")
    text = fails("nothing", '{"functions": [{"name": "f", "blocks": [{"name": "b", "instructions":\n'
                 ' [{"name": "i", "opcode": "DMATrigger", "engine": "SP", "queue": "q"}]}]}]}', "E9305")
    m = json.loads(text.split("\n")[0])
    check("'/functions/0/blocks/0/instructions/0/queue'" in m["message"] and m["line"] == 2, f"the place: {text[:300]}")
    open(f"{TMP}/two.bir", "w").write('{"functions": [], "version": 2}')
    fails("two", "", "E9307", "compile", f"{TMP}/two.bir", "-o", f"{TMP}/two")
    r = copse("compile", f"{TMP}/not-there.bir.json", "-o", f"{TMP}/x")
    check(r.returncode == 74 and b"E1001" in r.stderr, f"a file that is not there: {r.returncode}")
    onnx = f"{ROOT}/tests/data/small_encoder.onnx"
    for args in (("compile", onnx, *DIMS, "--emit", "bir"), ("compile", onnx, *DIMS, "--emit", "tile", "--target", "host"),
                 ("kernel", "compile", "silu", "--dims", "T=2,N=2", "--emit", "asm", "-o", f"{TMP}/x"),
                 ("compile", f"{TMP}/two.bir", "--emit", "tile")):
        r = copse(*args)
        check(r.returncode == 2, f"{args[0]} ... {args[-2:]}: {r.returncode}")


if len(sys.argv) < 3:
    models()
    texts()
    control()
    messages()
    leaves(("matmul", "softmax", "gather_rows", "cumsum", "rope", "topk"))
else:
    leaves(() if sys.argv[2] == "all" else sys.argv[2:])
done()

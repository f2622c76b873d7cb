"""A package whose files are not those that its manifest was written with is refused, and taken when that is asked for."""
import json
from util import *

MATMUL = ["matmul", "--leaf=matmul_banks", "--dims=M=128,K=128,N=256"]


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def read(path):
    with open(path, "rb") as f:
        return f.read()


for lnc, ops in (1, MATMUL), (2, ["softmax", "--dims=T=512,N=256", "--logical-nc-config=2"]):
    at = f"{TMP}/package{lnc}"
    r = copse("kernel", "compile", *ops, "-o", at)
    check(r.returncode == 0, r.stderr.decode())
    manifest = json.loads(read(f"{at}/manifest.json"))
    (kernel,) = manifest["kernels"]
    folder = f"{at}/kernels/{kernel['name']}"
    check(len(kernel["digests"]) == 8 * lnc, f"{len(kernel['digests'])} digests")
    check(copse("sim", at).returncode == 0, "as it was written")
    for name in kernel["digests"]:
        path = f"{folder}/{name}"
        was = read(path)
        # a record's reserved byte, or a blank: what the readers themselves do not mind
        write(path, was + b"\n" if name.endswith(".json") else was + was[-64:] if was else bytes(64))
        for args in (["sim", at], ["run", at], ["run", at, "--on", "ref"], ["explain", at, "--cycles"], ["neff", "pack", at, "-o", f"{TMP}/x.neff"]):
            r = copse(*args)
            check(r.returncode == 1 and b"[E8004]" in r.stderr and f"{name}'".encode() in r.stderr and b"--allow-changed" in r.stderr,
                  f"{name}, {args[0]}: exit {r.returncode}: {r.stderr.decode()[-400:]}")
        if name.endswith(".json"):
            for args in ["sim", at], ["run", at], ["neff", "pack", at, "-o", f"{TMP}/x.neff"]:
                r = copse(*args, "--allow-changed")
                check(r.returncode == 0, f"{name}, {args[0]} --allow-changed: {r.stderr.decode()[-400:]}")
            if lnc == 1:
                r = copse("sim", folder)
                check(r.returncode == 0, f"{name}, without the manifest: {r.stderr.decode()[-400:]}")
        write(path, was)
    os.rename(path, path + ".away")
    r = copse("sim", at)
    check(r.returncode == 1 and b"is missing" in r.stderr, f"a file that is gone: {r.stderr.decode()}")
    os.rename(path + ".away", path)
    listing = f"{folder}/kernel.cas" if lnc == 1 else f"{folder}/core0/kernel.cas"
    write(listing, b"")  # text for people; no digest is kept of it
    check(copse("sim", at).returncode == 0, "without its listing")

good = manifest
for what, digests, code in (("no list", None, 0), ("no digest", {name: "12"}, 1), ("a way out of the folder", {"../../manifest.json": "0" * 64}, 1),
                            ("another", {name: "0" * 64}, 1)):
    bad = json.loads(json.dumps(good))
    bad["kernels"][0]["digests"] = digests
    if digests is None:
        del bad["kernels"][0]["digests"]
    write(f"{at}/manifest.json", json.dumps(bad).encode())
    r = copse("sim", at)
    check(r.returncode == code, f"{what}: exit {r.returncode}: {r.stderr.decode()}")
done()

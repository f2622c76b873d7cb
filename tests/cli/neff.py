"""Containers: an all-reduce container rebuilt from its public description and inspected figure by figure, both dialects of
names, unpack and pack, what is refused, and damage of every kind. Archives are made and read by Python's own tar and
gzip, so reader and writer are judged by something else than themselves."""
import gzip, hashlib, io, json, os, shutil, struct, tarfile
from util import *

HEAD = 1024


def header(archive, pkg=2, major=2, minor=0, build=b"", name=b"x", uuid=bytes(16), features=0, lnc=1, size=None,
           head=HEAD, digest=None, nodes=bytes(64), tpb=1):
    h = bytearray(HEAD)
    size = len(archive) if size is None else size
    struct.pack_into("<5Q", h, 0, pkg, head, size, major, minor)
    h[0x28:0x28 + len(build)] = build
    struct.pack_into("<I", h, 0xA8, tpb)
    if digest is None:
        digest = hashlib.md5(archive).digest() + b"0" * 16 if pkg == 2 else hashlib.sha256(archive).digest()
    h[0xAC:0xCC] = digest
    h[0xCC:0xDC] = uuid
    h[0xDC:0xDC + len(name)] = name
    struct.pack_into("<I", h, 0x1DC, tpb)
    h[0x1E0:0x220] = nodes
    struct.pack_into("<QI", h, 0x220, features, lnc)
    return bytes(h)


def tar(files, fmt=tarfile.GNU_FORMAT, **meta):
    """Files by name; None is a folder; a TarInfo comes as it is."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as t:
        for name, data in files:
            i = data if isinstance(data, tarfile.TarInfo) else tarfile.TarInfo(name)
            if data is None:
                i.type = tarfile.DIRTYPE
            for k, v in meta.items():
                setattr(i, k, v)
            if isinstance(data, bytes):
                i.size = len(data)
            t.addfile(i, io.BytesIO(data) if isinstance(data, bytes) else None)
    return out.getvalue()


def zip_(data):
    return gzip.compress(data, 6, mtime=0)


def neff(files, raw=False, pkg=2, tar_meta={}, fmt=tarfile.GNU_FORMAT, **head):
    t = tar(files, fmt, **tar_meta)
    a = t if raw else zip_(t)
    return header(a, pkg=pkg, **head) + a


def put(name, data):
    path = f"{TMP}/{name}"
    with open(path, "wb") as f:
        f.write(data)
    return path


def inspect(path, *more, code=0):
    r = copse("neff", "inspect", path, "--json", *more)
    check(r.returncode == code, f"inspect {path}: exit {r.returncode}, {r.stderr.decode()}")
    return json.loads(r.stdout) if r.stdout else {}


def refused(name, data, code, text, exit_=1, *more):
    r = copse("neff", "inspect", put(name, data), *more)
    err = r.stderr.decode()
    check(r.returncode == exit_ and code in err and text in err, f"{name}: want {code} {text!r}, got {r.returncode} {err}")
    check(not r.stdout, f"{name}: printed in spite of {code}")


# ---- the worked all-reduce of 32 fp32 ----

def record(*parts):
    b = bytearray(64)
    for at, data in parts:
        b[at:at + len(data)] = data
    return bytes(b)


pe_bin = record((0, b"\xc8\x10\0\0"), (4, b"\x04\x0a\x13\x16"), (12, b"\x04\x0a\0\0"), (16, struct.pack("<II", 3, 4)),
                (24, struct.pack("<Q", 32)), (32, b"\x01"))
pool_bin = (record((0, b"\xc1\x10\0\0"), (12, b"q_gradient_in")) +
            record((0, b"\xc1\x10\0\0\x04\x16"), (12, b"q_gradient_out")) + record((0, b"\xa0\x10\0\0\x04\x0b")))
desc = {"from_off": 0, "from_sizes": [128, 1], "from_steps": [1, 128], "to_off": 0, "to_sizes": [128, 1], "to_steps": [1, 128]}
pool_json = {"dma": [{"id": 0, "queue": "q_gradient_in", "semaphore": 10, "desc": [dict(desc, **{"from": "input", "to": "gradient_in"})]},
                     {"id": 0, "queue": "q_gradient_out", "semaphore": 11,
                      "desc": [dict(desc, **{"from": "gradient_out", "to": "output"})]}],
             "instr": "pool.bin", "name": "pool"}
definition = {
    "name": "sg00", "version": "0.6-",
    "var": {"input": {"type": "input", "var_id": 0, "size": 128}, "SB": {"type": "state-buffer", "var_id": 1, "size": 1 << 25},
            "output": {"type": "output", "var_id": 2, "size": 128}, "gradient_in": {"type": "tmp-buf", "var_id": 3, "size": 128},
            "gradient_out": {"type": "tmp-buf", "var_id": 4, "size": 128}},
    "dma_queue": {"q_gradient_in": {"owner": "pool", "semaphore": 10, "type": "in"},
                  "q_gradient_out": {"owner": "pool", "semaphore": 11, "type": "out"}},
    "replica_groups": [[]]}
host = {"nodes": [{"op": "null", "name": "input", "inputs": []},
                  {"op": "tvm_op", "name": "sg_tonga0", "attrs": {"func_name": "__kelf"}, "inputs": [[0, 0, 0]]}]}


def j(x):
    return json.dumps(x, indent=1).encode()


ENG = ("pe", "pool", "act", "dve", "sp")
bins = {"pe": pe_bin, "pool": pool_bin}
files = [("kelf-a.json", j({"graphs": [{"definition": "sg00/def.json", "name": "sg00"}], "version": "0.5", "target": "*"})),
         ("neff.json", j(host)), ("sg00/", None), ("sg00/def.json", j(definition))]
for e in ENG:  # with an empty assembly text each: nineteen members
    files += [(f"sg00/{e}.json", j(pool_json if e == "pool" else {"dma": [], "instr": f"{e}.bin", "name": e})),
              (f"sg00/{e}.bin", bins.get(e, b"")), (f"sg00/{e}.asm", b"")]
check(len(files) == 19, "nineteen members")
uuid = bytes.fromhex("561826fb125f4bb8991c29e085c8949a")
build = b"2.0.21884.0%kaena-tools/develop@6c66f4b"
# an older producer's dialect: GNU magic, owners beyond what octal digits hold
golden = neff(files, tar_meta={"uid": 1 << 22, "gid": 1 << 22, "mtime": 1700000000}, build=build, uuid=uuid)
archive = golden[HEAD:]
fixture = put("allreduce.neff", golden)
d = inspect(fixture)
h = d["header"]
want = {"pkg_version": 2, "header_size": 0x400, "data_size": len(archive), "neff_version_major": 2, "neff_version_minor": 0,
        "neff_build_version": build.decode(), "num_tpb": 1, "hash": hashlib.md5(archive).hexdigest(),
        "uuid": "561826fb-125f-4bb8-991c-29e085c8949a", "name": "x", "requested_tpb_count": 1, "tpb_per_node": "0",
        "feature_bits": "0x0", "lnc_size": 1}
check(h == want, f"header {h}")
check(golden[0xAC + 16:0xCC] == b"0" * 16, "the hash is padded with characters")
check(d["archive"]["inflated"] == 20480 and d["archive"]["gzip"], f"archive {d['archive']['inflated']}")
check(d["archive"]["trailing"] == 0 and d["archive"]["bytes"] == len(archive) and d["file_bytes"] == len(golden), "sizes")
check([(m["name"], m["bytes"]) for m in d["archive"]["members"]] == [(n, len(b)) for n, b in files if b is not None], "members")
check(d["target"] == "*" and d["kelf"] == "kelf-a.json" and d["kelf_version"] == "0.5", "kelf")
check({c["name"]: c["verdict"] for c in d["checks"]} == dict.fromkeys(("version", "features", "package", "hash", "target"), "passes"),
      "checks")
check(d["notes"] == [], f"notes {d['notes']}")
g = d["graphs"][0]
check(len(d["graphs"]) == 1 and g["name"] == "sg00" and g["definition"] == "sg00/def.json" and g["version"] == "0.6-", "graph")
check([(v["name"], v["id"], v["kind"], v["size"]) for v in g["vars"]] ==
      [("input", 0, "input", 128), ("SB", 1, "state-buffer", 1 << 25), ("output", 2, "output", 128),
       ("gradient_in", 3, "tmp-buf", 128), ("gradient_out", 4, "tmp-buf", 128)], f"vars {g['vars']}")
check([(q["name"], q["owner"], q["semaphores"], q["kind"], q["num_queues"]) for q in g["queues"]] ==
      [("q_gradient_in", "pool", [10], "in", 1), ("q_gradient_out", "pool", [11], "out", 1)], f"queues {g['queues']}")
check(g["replica_groups"] == [[]], "replica groups")
eng = {e["name"]: e for e in g["engines"]}
check({n: (e["bytes"], e["instructions"]) for n, e in eng.items()} ==
      {"pe": (64, 1), "act": (0, 0), "pool": (192, 3), "dve": (0, 0), "sp": (0, 0)}, "streams")
check([(o["name"], o["count"], o["opcode"]) for o in eng["pe"]["opcodes"]] == [("PSEUDO_TRIGGER_COLLECTIVE", 1, 0xC8)], "pe opcodes")
check([(o["name"], o["count"], o["opcode"]) for o in eng["pool"]["opcodes"]] ==
      [("EVENT_SEMAPHORE", 1, 0xA0), ("PSEUDO_DMA_TRIGGER", 2, 0xC1)], "pool opcodes")
check((eng["pool"]["dma_items"], eng["pool"]["descriptors"]) == (2, 2), "pool dma")
t = d["totals"]
check((t["instructions"], t["dma_items"], t["members"], t["vars"], t["queues"], t["scratch_bytes"], t["engines"]) ==
      (4, 2, 18, 5, 2, 256, 2), f"totals {t}")
text = copse("neff", "inspect", fixture).stdout.decode()
for word in ("561826fb-125f-4bb8-991c-29e085c8949a", "gradient_out", "q_gradient_in", "PSEUDO_TRIGGER_COLLECTIVE", "state-buffer"):
    check(word in text, f"the text lacks {word}")

r = copse("neff", "unpack", fixture, "-o", f"{TMP}/all")
check(r.returncode == 0, r.stderr.decode())
got = tree(f"{TMP}/all")
check({k: v for k, v in got.items() if k != "neff_header.bin"} == {n: b for n, b in files if b is not None}, "unpacked members")
check(got["neff_header.bin"] == golden[:HEAD], "the header is kept")
pe = copse("dis", f"{TMP}/all/sg00/pe.bin").stdout.decode()
check(pe == "PSEUDO_TRIGGER_COLLECTIVE op=add dtype=fp32 input_tensor_id=3 output_tensor_id=4 num_elements=32 ctype=ALL_REDUCE "
            "wait S[10]>0 then S[22]++@complete\n", f"the collective: {pe}")  # of group 0, at offsets 0
pool = copse("dis", f"{TMP}/all/sg00/pool.bin").stdout.decode().split("\n")
check('queue="q_gradient_in"' in pool[0] and 'queue="q_gradient_out" wait S[22]>0' in pool[1] and "S[11]>0" in pool[2], f"{pool}")

# Packed again: the same members and header fields, another compressor.
for out in ("again.neff", "again2.neff"):
    r = copse("neff", "pack", f"{TMP}/all", "-o", f"{TMP}/{out}")
    check(r.returncode == 0, r.stderr.decode())
again = open(f"{TMP}/again.neff", "rb").read()
check(again == open(f"{TMP}/again2.neff", "rb").read(), "two packs differ")
check(again[HEAD:HEAD + 10] == b"\x1f\x8b\x08\0\0\0\0\0\x04\x03", f"gzip header {again[HEAD:HEAD + 10].hex()}")
with tarfile.open(fileobj=io.BytesIO(gzip.decompress(again[HEAD:]))) as t:
    infos = t.getmembers()
    check([i.name for i in infos] == sorted(n for n, b in files if b is not None), "packed members are sorted")
    check(all(t.extractfile(i).read() == dict(files)[i.name] for i in infos), "packed bytes")
    check(all((i.mtime, i.uname, i.gname, i.mode, i.type) == (0, "nobody", "nobody", 0o644, tarfile.REGTYPE) for i in infos), "packed meta")
check(len(gzip.decompress(again[HEAD:])) % 10240 == 0, "blocks of 20 records")
d2 = inspect(f"{TMP}/again.neff")
check({**d2["header"], "hash": 0, "data_size": 0} == {**h, "hash": 0, "data_size": 0}, "header of the second")
check(d2["header"]["hash"] == hashlib.md5(again[HEAD:]).hexdigest(), "hash of the second")
check(d2["graphs"] == d["graphs"], "graphs of the second")
check(inspect(f"{TMP}/all")["graphs"] == d["graphs"], "a folder is described alike")

# ---- other dialects ----

names = {"pe": "PE", "act": "Activation", "pool": "Pool", "dve": "DVE", "sp": "SP"}
modern = [("./kelf-0.json", j({"graphs": [{"definition": "sg00/def.json", "name": "sg00"}], "version": "0.5", "target": "cayman"})),
          ("./nc0/sg00/def.json", j({**definition, "neff_features": ["neff_feature_vnc"]})),
          ("./nc0/sg00/tensor_map.json", j({"inputs": ["input"], "alias_map": []}))]
for e, n in names.items():
    b = bins.get(e, b"")
    modern += [(f"./nc0/sg00/{n}.json", j({"dma": [], "instr": f"{n}.bin", "name": n})), (f"./nc0/sg00/{n}.bin", b)]
for raw, pkg, fmt in ((False, 2, tarfile.PAX_FORMAT), (True, 2, tarfile.USTAR_FORMAT), (True, 1, tarfile.GNU_FORMAT)):
    m = inspect(put("modern.neff", neff(modern, raw=raw, pkg=pkg, fmt=fmt, features=0x1000440 | 1 << 40, major=1)))
    check(m["target"] == "cayman" and m["graphs"][0]["definition"] == "nc0/sg00/def.json", "modern layout")
    check([e["instructions"] for e in m["graphs"][0]["engines"]] == [1, 0, 3, 0, 0], "modern engines")
    check(m["graphs"][0]["engines"][1]["binary"] == "nc0/sg00/Activation.bin", "modern name")
    check(m["graphs"][0]["features"] == ["neff_feature_vnc"] and m["graphs"][0]["tensor_map"]["inputs"] == ["input"], "modern def")
    check([(f["bit"], f["name"]) for f in m["features"]] ==
          [(6, "neff_feature_dynamic_pwp"), (10, "neff_feature_vnc"), (24, "generation_v4"), (40, None)], f"{m['features']}")
    check(m["archive"]["gzip"] is not raw and m["checks"][3]["verdict"] == "passes", "hash of both versions")
instr = [(n.replace("PE.", "pe_instr.").replace("Pool.", "pool_instr."), b) for n, b in modern]
m = inspect(put("instr.neff", neff([(n, b) for n, b in instr if not n.endswith(("_instr.json", "SP.bin"))])))
check([e["instructions"] for e in m["graphs"][0]["engines"]] == [1, 0, 3, 0, 0], "_instr names")
check(any("no stream for sp" in n for n in m["notes"]), f"{m['notes']}")
bare = [f for f in files if not f[0].startswith("kelf")]
m = inspect(put("bare.neff", neff(bare)))
check(len(m["graphs"]) == 1 and any("no kelf" in n for n in m["notes"]) and m["checks"][4]["verdict"] == "unknown", "without a kelf")
m = inspect(put("fails.neff", neff(files, major=3, features=1 << 30)))
check(m["checks"][0]["verdict"] == "fails" and m["checks"][1]["verdict"] == "passes", "version check")
m = inspect(put("fails.neff", neff(files, major=2, features=1 << 30)))
check(m["checks"][1]["verdict"] == "fails", "feature check")
r = copse("neff", "inspect", put("hash.neff", neff(files, digest=bytes(32))), "--json")
check(r.returncode == 0 and b"W8407" in r.stderr and json.loads(r.stdout)["checks"][3]["verdict"] == "fails", "a wrong hash is said")
m = inspect(put("tail.neff", golden + b"tail"))
check(m["archive"]["trailing"] == 4 and any("4 bytes" in n for n in m["notes"]), "trailing bytes are said")
evil = neff([("kelf-a.json", j({"target": "\x1b[2J", "graphs": []}))], name=b"\x1b]0;x\x07")
r = copse("neff", "inspect", put("evil.neff", evil))
check(r.returncode == 0 and b"\x1b" not in r.stdout + r.stderr and b"\\x1b" in r.stdout, "terminal sequences are shown, not sent")

# ---- what is refused ----

refused("empty", b"", "E8401", "0 bytes")
refused("text", b"hello" * 1000, "E8401", "package version")
refused("gzip", zip_(tar(files)), "E8401", "gzip stream without a header")
refused("short", golden[:1023], "E8401", "1023 bytes")
refused("cut", golden[:-1], "E8401", "announces an archive")
refused("size", header(archive, size=1 << 60) + archive, "E8401", "announces an archive")
refused("head", header(archive, head=2048) + archive, "E8401", "claims 2048")
refused("notar", header(b"x" * 4096) + b"x" * 4096, "E8402", "damaged")
for cut in (1, 9, 10, 11, 18, 20, 100, len(archive) // 2, len(archive) - 9, len(archive) - 8, len(archive) - 4, len(archive) - 1):
    a = archive[:cut]
    refused(f"cut{cut}", header(a) + a, "E8402", "damaged")
plain = tar(files)
for cut in (1, 100, 511, 513, 600, 1023, 1100, 5000):
    a = plain[:cut]
    refused(f"plain{cut}", header(a) + a, "E8402", "damaged")
crc = bytearray(archive)
crc[-5] ^= 1
refused("crc", header(bytes(crc)) + bytes(crc), "E8402", "damaged")
for name, why in (("/etc/x", "an absolute path"), ("../x", "'..'"), ("a/../../x", "'..'"), ("a//b", "empty component"),
                  ("a/./b", "'.'"), ("a\nb", "control"), ("a\\b", "backslash"), ("n" * 300, "too long"), ("d/" * 600 + "x", "too long")):
    refused("name.neff", neff([(name, b"x")], fmt=tarfile.PAX_FORMAT), "E8403", why)
for kind, word in ((tarfile.SYMTYPE, "a link"), (tarfile.LNKTYPE, "a link"), (tarfile.FIFOTYPE, "neither"), (tarfile.CHRTYPE, "neither")):
    i = tarfile.TarInfo("sg00/trap")
    i.type, i.linkname = kind, "/etc/passwd"
    refused("kind.neff", neff([("a", b"a"), ("", i)]), "E8403", word)
refused("twice.neff", neff([("a", b"1"), ("./a", b"2")]), "E8403", "twice")
refused("many.neff", neff([(f"f{i}", b"") for i in range(65537)], fmt=tarfile.USTAR_FORMAT), "E8403", "65536")
i = tarfile.TarInfo("huge")
i.size = 1 << 40
refused("claim.neff", neff([("huge", i)]), "E8403", "the limit")
i.size = 200 << 20
refused("claim2.neff", neff([("huge", i)]), "E8402", "claims")
zeros = tar([("zeros", bytes(380 << 20))])
bomb = zip_(zeros)
del zeros
bomb = header(bomb) + bomb
check(len(bomb) < 1 << 20, "a small bomb")
refused("bomb.neff", bomb[:0x400] + bomb[0x400:], "E8403", "--max-bytes")
m = inspect(f"{TMP}/bomb.neff", "--max-bytes", str(1 << 30))
check(m["totals"]["bytes"] == 380 << 20, "a trusted one is read")
late = zip_(tar([("a", b"a")]) + bytes(380 << 20))  # all of it behind the end mark
refused("late.neff", header(late) + late, "E8403", "inflates to more")
r = copse("neff", "inspect", put("json.neff", neff([(n, b"{nonsense" if n.endswith("def.json") else b) for n, b in files])))
check(r.returncode == 1 and b"E8404" in r.stderr and b"sg00/def.json" in r.stderr and b"kelf" in r.stdout, "broken JSON is an error, the rest is shown")

os.makedirs(f"{TMP}/full/x")
r = copse("neff", "unpack", fixture, "-o", f"{TMP}/full")
check(r.returncode == 1 and b"not empty" in r.stderr, "only a new folder is filled")
r = copse("neff", "unpack", put("clash.neff", neff([("a", b"1"), ("a/b", b"2")])), "-o", f"{TMP}/clash")
check(r.returncode == 74 and b"E1002" in r.stderr, f"a file where a folder must be: {r.stderr}")
os.symlink("/etc", f"{TMP}/all/link")
r = copse("neff", "pack", f"{TMP}/all", "-o", f"{TMP}/no.neff")
check(r.returncode == 1 and b"neither a file nor a folder" in r.stderr, "links are not packed")
os.remove(f"{TMP}/all/link")
os.remove(f"{TMP}/all/neff_header.bin")
r = copse("neff", "pack", f"{TMP}/all", "-o", f"{TMP}/fresh.neff")
m = inspect(f"{TMP}/fresh.neff")["header"]
check(r.returncode == 0 and m["name"] == "all" and m["neff_build_version"].startswith("copse ") and m["uuid"][14] == "4", f"{m}")
# Names of any length and alphabet, sizes around a record's edge: what Python's tar reads is what was packed.
odd = {"d" * 90 + "/" + "e" * 90 + "/" + "f" * 200: b"deep", "n\u00e4me \u4e2d.bin": b"bytes", "edge512": bytes(512),
       "edge513": b"x" * 513, "empty": b""}
for k, v in odd.items():
    os.makedirs(os.path.dirname(f"{TMP}/odd/{k}"), exist_ok=True)
    with open(f"{TMP}/odd/{k}", "wb") as f:
        f.write(v)
for env in ({"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}):
    r = copse("neff", "pack", f"{TMP}/odd", "-o", f"{TMP}/odd.neff", env=env)
    raw = open(f"{TMP}/odd.neff", "rb").read()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(raw[HEAD:]))) as t:
        check({i.name: t.extractfile(i).read() for i in t.getmembers()} == odd, f"odd names: {t.getnames()}")
    shutil.rmtree(f"{TMP}/odd2", ignore_errors=True)
    r = copse("neff", "unpack", f"{TMP}/odd.neff", "-o", f"{TMP}/odd2", env=env)
    check(r.returncode == 0 and {k: v for k, v in tree(f"{TMP}/odd2").items() if k != "neff_header.bin"} == odd, r.stderr.decode())
os.makedirs(f"{TMP}/alone")
shutil.copy(COPSE, f"{TMP}/alone/copse")
r = subprocess.run([f"{TMP}/alone/copse", "neff", "inspect", fixture], capture_output=True)
check(r.returncode == 1 and b"E8406" in r.stderr and b"libcopse-archive.so" in r.stderr, f"{r.stderr}")
for args, word in ((["neff"], "one of"), (["neff", "open", "x"], "one of"), (["neff", "inspect"], "one path"),
                   (["neff", "unpack", f"{TMP}/all"], "folder"), (["neff", "pack", fixture], "folder"),
                   (["neff", "unpack", fixture, "-o", ""], "-o DIR")):
    r = copse(*args)
    check(r.returncode == 2 and word in r.stderr.decode(), f"{args}: {r.returncode} {r.stderr}")
# ---- ours: one kernel, a model, on every target ----

ENGINES = ("act", "dve", "pe", "pool", "sp")


def npy(folder):
    return {k: v for k, v in tree(folder).items() if k.endswith(".npy")}


def streams(folder):
    return {e: open(f"{folder}/{e}.bin", "rb").read() for e in ENGINES}


model = os.path.join(ROOT, "tests/data/small_encoder.onnx")
words = {"trn1": "sunda", "trn2": "cayman", "trn3": "mariana"}
for target in words:
    pkg = f"{TMP}/enc-{target}"
    r = copse("compile", model, *DIMS, "-o", pkg, "--target", target, "--emit", "neff")
    check(r.returncode == 0 and b"W8408" in r.stderr and b"gelu_and_others" in r.stderr and b"W8409" in r.stderr, r.stderr.decode())
    box = f"{pkg}/model.neff"
    r = copse("neff", "pack", pkg, "-o", f"{TMP}/{target}.neff", env={"TZ": "Pacific/Auckland", "LC_ALL": "C", "USER": "x"}, cwd=TMP)
    raw = open(box, "rb").read()
    check(r.returncode == 0 and raw == open(f"{TMP}/{target}.neff", "rb").read(), "the same package, the same bytes")
    check(TMP.encode() not in gzip.decompress(raw[HEAD:]), "no path inside")
    m = inspect(box)
    check(m["target"] == words[target] and m["notes"] == [] and all(c["verdict"] == "passes" for c in m["checks"]), f"{m['notes']}")
    check(m["header"]["hash"] == hashlib.md5(raw[HEAD:]).hexdigest() and m["header"]["data_size"] == len(raw) - HEAD, "its hash")
    man = json.load(open(f"{pkg}/manifest.json"))
    g = m["graphs"][0]
    by = {v["name"]: v for v in g["vars"]}
    check([v["id"] for v in g["vars"]] == list(range(len(g["vars"]))) and g["vars"][0]["kind"] == "state-buffer", "ids")
    check([v["name"] for v in g["vars"] if v["kind"] in ("input", "output")] ==
          [x["name"] for x in man["inputs"] + man["outputs"]], "borders in order")
    weights = open(f"{pkg}/weights.bin", "rb").read()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(raw[HEAD:]))) as t:
        data = {i.name: t.extractfile(i).read() for i in t.getmembers()}
    for v in man["vars"]:
        if v["kind"] == "const":
            check(data["sg00/" + by[v["name"]]["file"]] == weights[v["offset"]:v["offset"] + v["bytes"]], f"constant {v['name']}")
        elif v["kind"] == "tmp":
            check(by[v["name"]]["kind"] == "virtual" and by[v["name"]]["backing_variable_off"] == v["offset"], f"temporary {v['name']}")
    check(m["totals"]["scratch_bytes"] <= man["arena_bytes"], "the scratchpad is the arena")
    # what the streams are: the kernels' in order, with barriers between
    want = dict.fromkeys(ENGINES, 0)
    for s in man["steps"]:
        for e, b in streams(f"{pkg}/kernels/{s['kernel']}").items():
            want[e] += len(b) // 64
    n = len(man["steps"]) - 1
    check({e["name"]: e["instructions"] for e in g["engines"]} == {e: want[e] + n * (6 if e == "sp" else 4) for e in want}, "stream lengths")
    bits = {f["name"] for f in m["features"]}
    check({"neff_feature_dynamic_pwp", "DGE", "vector_DGE"} <= bits and ("generation_v4" in bits) == (target == "trn3") and
          ("DVE_perf_mode" in bits) == (target != "trn1"), f"{bits}")
    check(set(g["features"]) == {b for b in bits if b.startswith("neff_feature")}, "def.json lists the same")
    check("gelu_and_others" in g["engines"][1]["tables"], "table sets")
    host = json.loads(data["neff.json"])
    kelf = [x for x in host["nodes"] if x["op"] == "__kelf"]
    check(len(kelf) == 1 and kelf[0]["attrs"]["kelf"] == "kelf-0.json" and "kelf-0.json" in data and
          kelf[0]["output_names"] == [o["name"] for o in man["outputs"]], "host graph")
    check(host["node_row_ptr"][-1] == len(man["inputs"]) + len(man["outputs"]), "rows of the host graph")
    for e in ENGINES:  # bytes, and only sums that the public text allows
        for item in json.loads(data[f"sg00/{e}.json"])["dma"]:
            for x in item["desc"]:
                check(x.get("from_dtype", "uint8") in ("uint8", "float32", "int32", "int64", "uint32", "bfloat16") and
                      len(x["from_steps"]) == len(x["from_sizes"]) <= 4 and x["from"] in by and x["to"] in by, f"{x}")
    # run: from the package and from the container, the same numbers, within the reference
    for what, out in ((pkg, f"{TMP}/a{target}"), (box, f"{TMP}/b{target}")):
        r = copse("run", what, "--compare", "ref", "--output-dir", out, "--report", f"{out}.json")
        check(r.returncode == 0, f"{what}: {r.stderr.decode()}")
    check(npy(f"{TMP}/a{target}") == npy(f"{TMP}/b{target}") and npy(f"{TMP}/a{target}"), "outputs differ")
    one, two = (json.load(open(f"{TMP}/{k}{target}.json")) for k in "ab")
    check(two["checks"] == {"races": 0, "uninit": 0, "bounds": 0} and 1 <= two["time_ns"] / one["time_ns"] < 1.1, "one launch, and its barriers")
    # unpack, pack: the same file again; assembly of every stream too
    r = copse("neff", "unpack", box, "-o", f"{TMP}/un-{target}")
    check(r.returncode == 0, r.stderr.decode())
    r = copse("neff", "pack", f"{TMP}/un-{target}", "-o", f"{TMP}/re.neff")
    check(r.returncode == 0 and open(f"{TMP}/re.neff", "rb").read() == raw, "unpacked and packed again it is the same file")
    for e in ENGINES:
        text = copse("dis", f"{TMP}/un-{target}/sg00/{e}.bin", "--target", target)
        back = copse("asm", "-", "--target", target, "-o", "-", stdin=text.stdout)
        check(b".bytes" not in text.stdout and back.stdout == data[f"sg00/{e}.bin"], f"{e} of the program")
    # one kernel of it, its streams untouched
    kernels = sorted(os.listdir(f"{pkg}/kernels"))
    for name in (next(k for k in kernels if k.startswith("matmul_")), next(k for k in kernels if k.startswith("gather_rows_"))):
        r = copse("neff", "pack", pkg, "--kernel", name, "-o", f"{TMP}/k.neff")
        check(r.returncode == 0 and (b"W8409" in r.stderr) == name.startswith("gather"), r.stderr.decode())
        shutil.rmtree(f"{TMP}/k", ignore_errors=True)
        check(copse("neff", "unpack", f"{TMP}/k.neff", "-o", f"{TMP}/k").returncode == 0, "unpack")
        check(streams(f"{TMP}/k/sg00") == streams(f"{pkg}/kernels/{name}"), f"streams of {name}")
        r = copse("sim", f"{TMP}/k.neff")
        check(r.returncode == 0 and b"races 0" in r.stderr, r.stderr.decode())

for args in (["softmax", "--dims", "T=300,N=64"], ["matmul", "--dims", "M=256,K=128,N=512", "--with", "bias,residual"],
             ["rmsnorm", "--dims", "T=256,H=512", "--dtype", "fp32"], ["attention", "--dims", "B=2,Sq=128,Bkv=2,Skv=128,d=64"], ["transpose", "--dims", "A=2,B=64,C=96"]):
    pkg = f"{TMP}/one-{args[0]}"
    r = copse("kernel", "compile", *args, "-o", pkg, "--emit", "neff")
    check(r.returncode == 0, r.stderr.decode())
    r = copse("neff", "unpack", f"{pkg}/model.neff", "-o", f"{pkg}-un")
    folder = os.listdir(f"{pkg}/kernels")[0]
    check(streams(f"{pkg}-un/sg00") == streams(f"{pkg}/kernels/{folder}"), f"{args[0]}: one step keeps its bytes")
    a, b = (copse("run", p, "--compare", "ref", "--output-dir", f"{TMP}/o{i}{args[0]}")
            for i, p in enumerate((pkg, f"{pkg}/model.neff")))
    check(a.returncode == b.returncode == 0 and npy(f"{TMP}/o0{args[0]}") == npy(f"{TMP}/o1{args[0]}"), f"{args[0]}: {b.stderr.decode()}")
# Steps with hardware loops, branches and registers, one behind the other: branches are relative.
guide = open(os.path.join(ROOT, "frontend/LANGUAGE.md"), encoding="utf-8").read()
loops = guide[guide.index("op fold_rows("):]
loops = loops[:loops.index("```")] + """
block fold_twice(x[T, H], n[1]: i32) -> y[128, H]: fp32 {
    let a = fold_rows(x, n);
    y = fold_rows(a, n);
}
"""
r = copse("kernel", "compile", "fold_twice", "-I", put("loops.cps", loops.encode()), "--dims", "T=512,H=64", "-o", f"{TMP}/loops",
          "--emit", "neff")
check(r.returncode == 0, r.stderr.decode())
m = inspect(f"{TMP}/loops/model.neff")
check(sum(o["count"] for e in m["graphs"][0]["engines"] for o in e["opcodes"] if o["name"] == "COMPARE_BRANCH") >= 20, "there are branches")
a, b = (copse("run", p, "--compare", "ref", "--seed", "3", "--output-dir", f"{TMP}/loops{i}")
        for i, p in enumerate((f"{TMP}/loops", f"{TMP}/loops/model.neff")))
check(a.returncode == b.returncode == 0 and npy(f"{TMP}/loops0") == npy(f"{TMP}/loops1") != {}, b.stderr.decode())
r = copse("kernel", "compile", "softmax", "--dims", "T=8,N=8", "-o", f"{TMP}/one-softmax")
check(not os.path.exists(f"{TMP}/one-softmax/model.neff"), "an old container does not stay")

# A run of a container checks what it reads.
whole = tree(f"{TMP}/un-trn2")


def broken(what, name, change, code="E8404"):
    folder = f"{TMP}/broken"
    shutil.rmtree(folder, ignore_errors=True)
    for k, v in whole.items():
        os.makedirs(os.path.dirname(f"{folder}/{k}"), exist_ok=True)
        if k == name:
            v = change(json.loads(v)) if name.endswith(".json") else change(v)
        if v is not None:
            with open(f"{folder}/{k}", "wb") as f:
                f.write(v if isinstance(v, bytes) else j(v))
    copse("neff", "pack", folder, "-o", f"{TMP}/broken.neff")
    r = copse("sim", f"{TMP}/broken.neff")
    check(r.returncode == 1 and code in r.stderr.decode(), f"{what}: {r.returncode} {r.stderr.decode()}")


def edit(path, value):
    def go(d):
        x = d
        for k in path[:-1]:
            x = x[k]
        x[path[-1]] = value
        return d
    return go


broken("no part of ours", "copse.json", lambda d: None, "E8405")
broken("not JSON", "copse.json", lambda d: b"{")
broken("no object", "copse.json", lambda d: b"[]")
for key in ("generation", "inputs", "kernel", "model", "outputs", "relocs", "roof", "schema", "target", "vars"):
    broken(f"without {key}", "copse.json", lambda d: {k: v for k, v in d.items() if k != key})
broken("schema", "copse.json", edit(["schema"], 0))
broken("generation", "copse.json", edit(["generation"], "v9"))
broken("digest", "copse.json", edit(["target", "digest"], "00"))
broken("input", "copse.json", edit(["inputs", 0, "var"], "nothing"))
broken("input kind", "copse.json", edit(["inputs", 0, "var"], "tokens"))
broken("shape", "copse.json", edit(["inputs", 0, "shape"], [1, 15]))
broken("shape overflow", "copse.json", edit(["inputs", 0, "shape"], [1 << 40, 1 << 40]))
broken("outputs", "copse.json", edit(["outputs"], []))
broken("reloc engine", "copse.json", edit(["relocs", 0, "engine"], "dma"))
broken("reloc bundle", "copse.json", edit(["relocs", 0, "bundle"], 100000))
broken("reloc field", "copse.json", edit(["relocs", 0, "field"], "opcode"))
broken("reloc addend", "copse.json", edit(["relocs", 0, "addend"], 1 << 40))
broken("var kind", "copse.json", edit(["vars", "tokens", "kind"], "state-buffer"))
broken("var size", "sg00/def.json", edit(["var", "tokens", "size"], 1 << 50))
broken("var id", "sg00/def.json", edit(["var", "tokens", "var_id"], 1))
broken("file name", "sg00/def.json", edit(["var", "const.0.c25", "file_name"], "../../etc/passwd"))
broken("item", "sg00/sp.json", edit(["dma", 0, "desc", 0, "from"], "nothing"))
broken("item size", "sg00/sp.json", edit(["dma", 0, "desc", 0, "from_sizes"], [1 << 40]))
broken("stream size", "sg00/pe.bin", lambda b: b[:-1])
broken("a weight", "sg00/5-const.0.c25.bin", lambda b: b[:-4])
r = copse("sim", fixture)
check(r.returncode == 1 and b"E8405" in r.stderr, "a foreign container is not run")

r = copse("neff", "pack", f"{TMP}/enc-trn2", "--kernel", "nothing", "-o", f"{TMP}/no.neff")
check(r.returncode == 1 and b"E8405" in r.stderr and b"no kernel 'nothing'" in r.stderr, f"{r.stderr}")
r = copse("compile", model, *DIMS, "--target", "host", "-o", f"{TMP}/host")
r = copse("neff", "pack", f"{TMP}/host", "-o", f"{TMP}/no.neff")
check(r.returncode == 1 and b"E8405" in r.stderr and not os.path.exists(f"{TMP}/no.neff"), f"{r.stderr}")
man = json.load(open(f"{TMP}/enc-trn2/manifest.json"))
del man["steps"][0]["args"]["x"]
json.dump(man, open(f"{TMP}/enc-trn2/manifest.json", "w"))
r = copse("neff", "pack", f"{TMP}/enc-trn2", "-o", f"{TMP}/no.neff")
check(r.returncode == 1 and b"nothing is given for its operand 'x'" in r.stderr, f"{r.stderr}")
r = copse("neff", "inspect", f"{TMP}/enc-trn2")
check(r.returncode == 1 and b"neff pack" in r.stderr, f"{r.stderr}")
r = copse("compile", model, *DIMS, "--target", "host", "-o", f"{TMP}/host2", "--emit", "neff")
check(r.returncode == 2 and b"none for the host" in r.stderr and not os.path.exists(f"{TMP}/host2"), f"{r.stderr}")
r = copse("kernel", "compile", "softmax", "--dims", "T=8,N=8", "-o", f"{TMP}/k2", "--emit", "asm")
check(r.returncode == 2 and b"E1104" in r.stderr, "kernel compile has one --emit")
r = copse("neff", "pack", f"{TMP}/un-trn2", "--kernel", "x")
check(r.returncode == 2, "--kernel is for packages")

r = copse("neff", "inspect", f"{TMP}/nothing")
check(r.returncode == 74 and b"E1001" in r.stderr, f"{r.returncode} {r.stderr}")
done()

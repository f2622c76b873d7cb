"""Containers: an all-reduce container rebuilt from its public description and inspected figure by figure, both dialects of
names, unpack and pack, what is refused, and damage of every kind. Archives are made and read by Python's own tar and
gzip, so reader and writer are judged by something else than themselves."""
import gzip, hashlib, io, json, struct, tarfile
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
for word in ("wait S[10]>0", "then S[22]++@complete", "input_tensor_id=3", "output_tensor_id=4", "num_elements=32", "fp32"):
    check(word in pe, f"'{word}' not in {pe}")
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
for args, word in ((["neff"], "one of"), (["neff", "open", "x"], "one of"), (["neff", "inspect"], "one path"),
                   (["neff", "unpack", f"{TMP}/all"], "folder"), (["neff", "pack", fixture], "folder"),
                   (["neff", "unpack", fixture, "-o", ""], "-o DIR")):
    r = copse(*args)
    check(r.returncode == 2 and word in r.stderr.decode(), f"{args}: {r.returncode} {r.stderr}")
r = copse("neff", "inspect", f"{TMP}/nothing")
check(r.returncode == 74 and b"E1001" in r.stderr, f"{r.returncode} {r.stderr}")
done()

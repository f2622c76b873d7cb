"""The instruction set through the command line: every vector on every target, byte for byte both ways, with the
verifier's verdict; queue descriptors; `copse isa` as pages and JSON."""
import json, random, re
from util import *

TARGETS = {"v2": "trn1", "v3": "trn2", "v4": "trn3"}
vectors = []
for name in ("isa.tsv", "isa-more.tsv"):
    for line in open(os.path.join(ROOT, "tests/golden", name), encoding="utf-8"):
        if not line.startswith("#") and line.count("\t") >= 4:
            kind, name_, gens, hexes = line.split("\t")[:4]
            vectors.append((name_, gens.split(","), bytes.fromhex(hexes)))
check(len(vectors) >= 264, f"{len(vectors)} vectors")


def both_ways(raw, target, what, *opts):
    with open(f"{TMP}/v.bin", "wb") as f:
        f.write(raw)
    text = copse("dis", f"{TMP}/v.bin", "--target", target, *opts)
    back = copse("asm", "-", "--target", target, "-o", "-", stdin=text.stdout)
    check(back.returncode == 0 and back.stdout == raw, f"{what} on {target} comes back differently")
    return text


for gen, target in TARGETS.items():
    good = [v for v in vectors if gen in v[1]]
    check(len(good) > 150, f"{len(good)} vectors on {target}")
    text = both_ways(b"".join(v[2] for v in good), target, "legal vectors", "--verify")
    check(text.returncode == 0, f"legal vectors on {target}: {text.stderr.decode()}")
    check(b"note" not in text.stderr and b"E55" not in text.stderr and b"W55" not in text.stderr.replace(b"W5517", b""),
          f"{target}: {text.stderr.decode()}")
    check(b".bytes" not in text.stdout and b"raw[" not in text.stdout, f"escape forms on {target}")
    check(text.stdout.count(b"\n") == len(good), f"{target}: a line for each vector")
    # What is not legal there is said to be so, and comes back all the same.
    bad = [v for v in vectors if gen not in v[1]]
    check(len(bad) > 5, f"only {len(bad)} vectors that {target} has not")
    for i in range(0, len(bad), 8):
        part = bad[i:i + 8]
        text = both_ways(b"".join(v[2] for v in part), target, "foreign vectors", "--verify")
        err = text.stderr.decode()
        check(text.returncode == 1, f"{target} takes one of {[v[0] for v in part]}")
        check(f"{len(part)} of {len(part)} records are no legal {gen} instructions" in err, f"{target}: {err}")
        places = {int(m) for m in re.findall(r"v\.bin:(\d+):1: error: ", err)}
        check(places == set(range(1, len(part) + 1)), f"{target}: places {places}: {err}")

# The engine: by the option, else by the file's name.
pe = next(v for v in vectors if v[0] == "matmul_start_v3")[2]
with open(f"{TMP}/pe.bin", "wb") as f:
    f.write(pe)
with open(f"{TMP}/dve.bin", "wb") as f:
    f.write(pe)
check(copse("dis", f"{TMP}/pe.bin", "--verify").returncode == 0, "a matmul is for the PE")
r = copse("dis", f"{TMP}/dve.bin", "--verify")
check(r.returncode == 1 and b"E5505" in r.stderr, "dve.bin holds no matmul")
check(copse("dis", f"{TMP}/dve.bin", "--verify", "--engine", "pe").returncode == 0, "--engine rules")
check(copse("dis", f"{TMP}/pe.bin", "--verify", "--engine", "act").returncode == 1, "--engine rules")
check(copse("dis", f"{TMP}/pe.bin", "--verify", "--engine", "frob").returncode == 2, "no such engine")

# asm --verify: a broken rule is an error at the instruction's line, also where a label comes later.
lines = (b"NOP\n\n  COPY src=bf16@sbuf[p16][1][8] ch=1 dst=bf16@sbuf[p0][1][8] // bad start\n"
         b"COMPARE_BRANCH target_mode=2 branch=end\nend: NOP wait S[1]>=1 then S[2]+=1@complete\n")
check(copse("asm", "-", "-o", "-", stdin=lines).returncode == 0, "without --verify all of it assembles")
r = copse("asm", "-", "--verify", "-o", f"{TMP}/no.bin", stdin=lines)
err = r.stderr.decode()
check(r.returncode == 1 and not os.path.exists(f"{TMP}/no.bin"), "a broken rule writes nothing")
check("-:3:3: error: 'COPY': src starts at partition 16" in err and "  |   ^~~~" in err, err)
check("-:4:1: error: 'COMPARE_BRANCH': " in err and "-:5:6: warning: 'NOP': " in err, err)
good = copse("asm", "-", "--verify", "--engine", "dve", "-o", "-", stdin=b"COPY src=bf16@sbuf[p0][1][8] ch=1 dst=bf16@sbuf[p0][1][8]\n")
check(good.returncode == 0 and len(good.stdout) == 64, good.stderr.decode())
check(copse("asm", "-", "--verify", "-o", f"{TMP}/pe.bin", stdin=b"IOTA\n").returncode == 1, "pe.bin has no IOTA")

# Descriptors of DMA queues: any bytes, in each form.
random.seed(3)
ring = b"".join(bytes.fromhex("0010000d03000801") + random.randbytes(8) for _ in range(50)) + random.randbytes(16 * 500)
with open(f"{TMP}/ring.bin", "wb") as f:
    f.write(ring)
for form in ("descriptors", "m2s", "s2m"):
    text = copse("dis", f"{TMP}/ring.bin", f"--form={form}")
    back = copse("asm", "-", f"--form={form}", "-o", "-", stdin=text.stdout)
    check(text.returncode == 0 and back.stdout == ring, f"--form={form} comes back differently")
check(b"M2S" in text.stdout or b"S2M" in text.stdout, "a form a line")
check(copse("dis", f"{TMP}/ring.bin", "--form=descriptors", "--verify").returncode == 1, "random bits are reserved ones")
with open(f"{TMP}/ring.bin", "wb") as f:
    f.write(ring[:800])
check(copse("dis", f"{TMP}/ring.bin", "--form=descriptors", "--verify").returncode == 0, "plain copies")
with open(f"{TMP}/ring.bin", "wb") as f:
    f.write(ring[:24])
r = copse("dis", f"{TMP}/ring.bin", "--form=descriptors")
check(r.returncode == 1 and b"E9001" in r.stderr, "24 bytes are no descriptors")

# copse isa: JSON of everything, pages by name, opcode, format and enum, suggestions.
rows = json.loads(copse("isa", "--json").stdout)
check(len(rows) >= 171 and all(r["fields"] or r["format"] == "CTRL_NO" for r in rows), "171 instructions with fields")
for r in rows:
    need = {"confidence", "cycles", "engines", "fields", "format", "generations", "meaning", "name", "opcode", "opcodes",
            "pseudo", "rules", "semantics", "source"}
    check(set(r) == need and list(r) == sorted(r), f"keys of {r['name']}")
    check(r["confidence"] in ("confirmed", "strong", "inferred") and r["source"] and r["engines"], r["name"])
    used = set(range(12))
    for f in r["fields"]:
        span = set(range(f["byte"], f["byte"] + f["bits"] // 8))
        check(not span & used and max(span) < 64, f"{r['name']}.{f['name']}")
        used |= span
enums = {f["enum"] for r in rows for f in r["fields"] if "enum" in f}
for e in sorted(enums):
    values = json.loads(copse("isa", e, "--json").stdout)[0]["values"]
    check(values and len({v["value"] for v in values}) == len(values), f"values of {e}")
unsure = json.loads(copse("isa", "--json", "--unsure").stdout)
check(0 < len(unsure) < len(rows), "--unsure says less")
check(all(u["confidence"] != "confirmed" or all(f["confidence"] != "confirmed" for f in u["fields"]) for u in unsure),
      "--unsure keeps only what is not confirmed")
page = copse("isa", "activate").stdout.decode()
check("opcode 0x21" in page and "needs" in page and "IMM_SRC: " in page and "semantics: activate" in page, page)
check(copse("isa", "0x21").stdout.decode() == page, "by opcode")
check("used by: ACTIVATE" in copse("isa", "s3d3_ac").stdout.decode(), "a format")
check("ZERO_ACCUMULATE" in copse("isa", "ACCUM_CMD").stdout.decode(), "an enum")
for word, want in (("MATMULL", "did you mean 'MATMUL'?"), ("shuffle", "there is 'STREAM_SHUFFLE'"), ("zzz", "lists")):
    r = copse("isa", word)
    check(r.returncode == 2 and not r.stdout and want in r.stderr.decode(), f"{word}: {r.stderr.decode()}")
check(copse("isa", "0x00").returncode == 2, "no instruction 0x00")
done()

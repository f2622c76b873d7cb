"""Published times: the fast rows, against the page in the repository; and tables that are wrong."""
import glob, json, re
from util import *

PAGE = open(f"{ROOT}/runtime/sim/VALIDATION.md", encoding="utf-8").read()
r = copse("sim", "--validate", "--rows", "fast", "--json", "-o", f"{TMP}/page.md")
check(r.returncode == 0, r.stderr.decode())
rows = json.loads(r.stdout)["rows"]
check(len(rows) >= 1, "there are fast rows")
for row in rows:
    if row["predicted"] is None:
        continue
    pub, pred, low = row["published"], row["predicted"], row["published_low"] or row["published"]
    want = max(0, pred / pub - 1) if row["kind"] == "bound" else \
        min(0, pred / min(pub, low) - 1) + max(0, pred / max(pub, low) - 1)
    check(abs(row["error"] - want) < 1e-12, f"{row['name']}: error {row['error']}, computed {want}")
made = open(f"{TMP}/page.md", encoding="utf-8").read()
for line in made.split("\n"):
    if line.startswith("| ") and line.split(" | ")[0][2:] in {x["name"] for x in rows}:
        check(line in PAGE, f"VALIDATION.md is old: `copse sim --validate -o runtime/sim/VALIDATION.md`; now {line}")

# The page says what the table says, and its summaries follow from its rows: what is not replayed here is at
# least no row of an older table.
table = open(f"{ROOT}/tests/validate/rows.tsv", encoding="utf-8").read().split("\n")
head = table[0]
listed = [dict(zip(head.split("\t"), x.split("\t"))) for x in table[1:] if x and x[0] != "#"]
on_page = {}
for line in PAGE.split("\n## ", 1)[1].split("\n"):
    f = [x.strip() for x in line.strip("|").split("|")] if line.startswith("|") else []
    if len(f) == 8 and f[0] not in ("row", "---"):
        on_page[f[0]] = f
check(set(on_page) == {f["name"] for f in listed}, f"rows of VALIDATION.md: {set(on_page) ^ {f['name'] for f in listed}}")
errors, hard = {}, []
for f in listed:
    p = on_page[f["name"]]
    what = [w for w in (f["kind"] if f["kind"] == "bound" else "", "soft" if f["soft"] == "soft" else "",
                        "not replayed" if f["file"] == "-" else "") if w]
    check(p[1] == f["target"] and p[6] == " ".join(what) and p[7] == ("" if f["note"] == "-" else f["note"]),
          f"VALIDATION.md is old: {p} against {f}")
    low, high = sorted([float(f["published_ns"]), float(f["low_ns"] if f["low_ns"] != "-" else f["published_ns"])])
    digits = [float(x) * 1e3 for x in p[2].split(" to ")]
    check(abs(digits[0] / low - 1) < 6e-4 and abs(digits[-1] / high - 1) < 6e-4, f"VALIDATION.md is old: {p}, published {low} {high}")
    if p[3] == "-":
        continue
    got = float(p[3]) * 1e3
    error = max(0, got / high - 1) if f["kind"] == "bound" else min(0, got / low - 1) + max(0, got / high - 1)
    digit = 10.0**-len(p[3].partition(".")[2]) * 1e3 / got  # the last one of the page's figure
    check(abs(error * 100 - float(p[4])) < 0.06 + 55 * digit, f"{p}: the error is {error * 100:.2f} %")
    if f["kind"] != "bound":
        errors.setdefault(f["group"], []).append(abs(float(p[4])))
        hard += [abs(float(p[4]))] if f["soft"] != "soft" else []
errors["all measured"], errors["without soft rows"] = sum(errors.values(), []), hard
for group, v in errors.items():
    v.sort()
    at = lambda q: v[int(q * (len(v) - 1))] + (q * (len(v) - 1) % 1) * (v[min(int(q * (len(v) - 1)) + 1, len(v) - 1)] - v[int(q * (len(v) - 1))])
    m = re.search(rf"^\| {group} \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", PAGE, re.M)
    check(m and int(m[1]) == len(v) and max(abs(at(0.5) - float(m[2])), abs(at(0.9) - float(m[3])), abs(v[-1] - float(m[4]))) < 0.11,
          f"summary of {group}: {m and m[0]}; from its rows {len(v)} {at(0.5):.1f} {at(0.9):.1f} {v[-1]:.1f}")

# What replays of NKIBench execute, against the counters of its profiles (README.md): MiB of HBM, and units of 2 KiB of a
# partition. "published~ours" where they differ, with the reason.
counted = {row["name"]: row["counts"] for row in rows}
lines = [x.split("\t") for x in open(f"{ROOT}/tests/validate/counts.tsv", encoding="utf-8").read().splitlines()]
compared = 0
for f in lines[1:]:
    check(len(f) == len(lines[0]) and f[0] in {x["name"] for x in listed}, f"counts.tsv: {f}")
    for column, cell in zip(lines[0][1:-1], f[1:-1]):
        published, _, ours = cell.partition("~")
        check(not ours or column in f[-1], f"counts.tsv: {f[0]}: no reason for {column}")
        if published == "-" or f[0] not in counted:
            continue
        got = counted[f[0]][column] / (1 << 20 if column.startswith("hbm") else 2048)
        near = 0.06 if "." in (ours or published) and not column.startswith("hbm") else 1e-4
        if not column.startswith("hbm"):  # steps on one column: a unit holds 512
            near = max(near, 0.005)
        check(abs(got - float(ours or published)) <= near, f"{f[0]}: {column} is {got}, not {ours or published}")
        check(not ours or abs(got - float(published)) > 1e-4, f"counts.tsv: {f[0]}: {column} no longer differs")
        compared += 1
check(compared >= 80, f"{compared} counts are compared")

# Every replay computes what its operator says, on the first of its cases.
uses = {}
for line in table[1:]:
    f = dict(zip(head.split("\t"), line.split("\t")))
    if line and line[0] != "#" and f["file"] != "-":
        uses.setdefault((f["file"], f["leaf"]), f)
for path in sorted(glob.glob(f"{ROOT}/tests/validate/*.cps")):
    text = re.sub(r"//.*", "", open(path, encoding="utf-8").read())
    for leaf, op in re.findall(r"^leaf (\w+) for (\w+)", text, re.M):
        f = uses.pop((os.path.basename(path), f"{op}/{leaf}"), None)
        check(f, f"{path}: no row uses {leaf}")
        case = re.search(r"cases \(([^)]*)\)", text[text.index(f"leaf {leaf} "):]).group(1)
        args = dict(x.split(": ") for x in case.split(", "))
        dims = ",".join(f"{k}={v}" for k, v in args.items() if k[0].isupper())
        attrs = [] if f["attrs"] == "-" else ["--attr", f["attrs"]]
        r = copse("kernel", "run", op, "-I", path, "--leaf", leaf, "--dims", dims, "--dtype", f["dtype"], *attrs,
                  "--target", f["target"], "--compare", "ref", "--no-cache")
        check(r.returncode == 0, f"{path}: {leaf}: {r.stderr.decode()}")
check(not uses, f"rows of leaves that are not there: {list(uses)}")

# A folder of one's own; and every way in which its table can be wrong.
good = ["mine", "1000", "measured", "-", "g", "-", "trn2", "bf16", "x", "k.cps", "matmul/mine", "trn2", "M=128,K=128,N=512",
        "tx=1", "time", "-", "written", "-", "here", "-"]
os.mkdir(f"{TMP}/v")
open(f"{TMP}/v/k.cps", "w").write("""leaf mine for matmul on trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 128, K: 128, N: 512);
    sbuf a[128, 128] <- x';
    sbuf b[128, 512] <- w;
    psum acc[128, 512]: fp32 = a' @ b;
    y <- acc;
}
""")


def table_with(row):
    open(f"{TMP}/v/rows.tsv", "w").write(head + "\n" + "\t".join(row) + "\n")
    return copse("sim", "--validate", f"{TMP}/v", "--json")


r = table_with(good)
check(r.returncode == 0 and 2000 < json.loads(r.stdout)["rows"][0]["predicted"] < 20000, r.stderr.decode())
for column, value, code in [(1, "0", "E1113"), (1, "x", "E1113"), (2, "guess", "E1113"), (5, "hard", "E1113"), (10, "mine", "E1113"),
                            (11, "trn9", "E1003"), (12, "M=128", "E"), (12, "M", "E1113"), (14, "occupy NOPE", "E1113"),
                            (16, "random", "E1113"), (9, "none.cps", "E1001"), (10, "matmul/other", "E1108"),
                            (12, "M=128,K=128,N=1024", "E"), (9, "-", "E1113")]:
    r = table_with(good[:column] + [value] + good[column + 1:])
    check(r.returncode not in (0, 70) and f"[{code}".encode() in r.stderr, f"column {column} = {value}: {r.returncode} {r.stderr.decode()}")
r = table_with(good + ["more"])
check(r.returncode == 1 and b"E1113" in r.stderr, "too many columns")
r = copse("sim", "--validate", "--rows", "no_such_row")
check(r.returncode == 2, "no row of that name")
done()

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

# Every replay computes what its operator says, on the first of its cases.
table = open(f"{ROOT}/tests/validate/rows.tsv", encoding="utf-8").read().split("\n")
head = table[0]
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

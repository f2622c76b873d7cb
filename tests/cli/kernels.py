"""Every leaf of the registry on its own cases and on edges, every target it names: the simulated binary
against the reference at the leaf's tolerance, with all checks on."""
import json, re
from util import *



def cases():
    r = copse("kernel", "list", "--json")
    check(r.returncode == 0, r.stderr.decode())
    for op in json.loads(r.stdout):
        for leaf in op["leaves"]:
            text = copse("kernel", "show", leaf["name"]).stdout.decode()
            body = text[text.index(f"leaf {leaf['name']} "):]
            m = re.search(r"\n    cases (.*?);\n", body, re.S)
            check(m is not None, f"{leaf['name']} has no cases")
            for case in re.findall(r"\(([^()]*)\)", m.group(1) if m else ""):
                dims, opts = [], []
                for part in case.split(","):
                    k, v = (x.strip() for x in part.split(":"))
                    if k == "dtype":
                        opts += ["--dtype", v]
                    elif re.fullmatch(r"[A-Z]\w*", k) or k in ("d", "h", "count_") or k in dim_names(op):
                        dims.append(f"{k}={v}")
                    else:
                        opts += ["--attr", f"{k}={v.split('.')[-1] if re.match(r'[A-Z]', v) else v}"]
                for target in leaf["targets"].split():
                    if target != "host":
                        yield op["name"], leaf["name"], target, ",".join(dims), opts


def dim_names(op):
    return op.get("dims", [])


worst = {}
for op, leaf, target, dims, opts in cases():
    r = copse("kernel", "run", op, "--leaf", leaf, "--target", target, "--dims", dims, *opts, "--compare", "ref",
              "--report", f"{TMP}/r.json", timeout=600)
    what = f"{leaf} on {target}: {dims} {' '.join(opts)}"
    check(r.returncode == 0, f"{what}\n{r.stderr.decode()[-1500:]}")
    if r.returncode == 0:
        rep = json.load(open(f"{TMP}/r.json"))
        check(rep["pass"] and not any(rep["checks"].values()), f"{what}: {rep['checks']}")
        worst[leaf] = max(worst.get(leaf, 0), rep["max_rel_err"])
for leaf in sorted(worst):
    print(f"{leaf:28} max rel err {worst[leaf]:.3g}")
done()

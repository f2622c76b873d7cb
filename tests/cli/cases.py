"""The cases that leaves declare: (operator, leaf, pairs of dimensions and attributes, target)."""
import json, re
from util import check, copse


def operators(only=()):
    return [op for op in json.loads(copse("kernel", "list", "--json").stdout)
            if op["leaves"] and (not only or op["name"] in only)]


def leaf_cases(ops):
    for op in ops:
        for leaf in op["leaves"]:
            text = copse("kernel", "show", leaf["name"]).stdout.decode()
            body = text[text.index(f"leaf {leaf['name']} "):]
            m = re.search(r"\n    cases (.*?);\n", body, re.S)
            check(m is not None, f"{leaf['name']} has no cases")
            for case in re.findall(r"\(([^()]*)\)", m.group(1) if m else ""):
                pairs = [(k, v.strip('"').replace(" ", ",").split(".")[-1] if re.match(r'["A-Z]', v) else v)
                         for k, v in re.findall(r'(\w+): ("[^"]*"|[^,]+)', case)]
                for target in leaf["targets"].split():
                    if target != "host":
                        yield op, leaf["name"], pairs, target


def options(op, leaf, pairs, target):
    """A case as options of `copse kernel`."""
    names, o = op["dims"], dict(pairs)
    args = ["--target", target, "--dims", ",".join(f"{k}={v}" for k, v in pairs if k in names),
            "--dtype", o.get("dtype", "bf16")]
    args += ["--leaf", leaf] if leaf else []
    args += ["--with", o["with"]] if o.get("with") else []
    for k, v in pairs:
        if k not in names and k not in ("dtype", "with"):
            args += ["--attr", f"{k}={v}"]
    return args

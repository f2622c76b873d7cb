"""Golden text tests: one file, one behaviour.

    // RUN: copse dis --target trn2 %s
    // EXIT: 1
    ...input...
    // OUT:
    // expected standard output
    // ERR:
    // expected standard error

Comment lines may start with `//` or `#`. %s is the test file, %t an empty scratch folder.
`--update` rewrites the expectations; the difference is for review. Several RUN lines run in order,
their outputs are concatenated. The last line printed is the summary.
"""
import argparse, difflib, glob, os, shlex, shutil, subprocess, sys, tempfile


def parse(path):
    runs, want_exit, body, sections, mark = [], 0, [], {}, None
    for line in open(path, encoding="utf-8", newline="\n").read().split("\n"):
        lead = next((c for c in ("//", "#") if line.startswith(c)), None)
        text = line[len(lead):] if lead else None
        if text is not None and text.startswith(" RUN:"):
            runs.append(text[5:].strip())
        elif text is not None and text.startswith(" EXIT:"):
            want_exit = int(text[6:])
        elif text is not None and text.strip() in ("OUT:", "ERR:"):
            mark = text.strip()[:3]
            sections[mark] = []
            continue
        elif mark and text is not None:
            sections[mark].append(text[1:] if text.startswith(" ") else text)
            continue
        if not mark:
            body.append(line)
    return runs, want_exit, body, sections


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--copse", required=True)
    ap.add_argument("--update", action="store_true")
    ap.add_argument("files", nargs="+")
    a = ap.parse_args()
    copse = os.path.abspath(a.copse)
    files = sorted(f for pattern in a.files for f in glob.glob(pattern, recursive=True))
    passed = failed = 0
    for path in files:
        runs, want_exit, body, sections = parse(path)
        if not runs:
            continue
        scratch = tempfile.mkdtemp(prefix="copse-golden-")
        env = dict(os.environ, XDG_CACHE_HOME=scratch + "/cache", NO_COLOR="1", LC_ALL="C")
        out, err, code = "", "", 0
        for run in runs:
            words = [w.replace("%s", path).replace("%t", scratch) for w in shlex.split(run)]
            if words[0] == "copse":
                words[0] = copse
            r = subprocess.run(words, capture_output=True, env=env, stdin=subprocess.DEVNULL)
            out += r.stdout.decode("utf-8", "replace").replace(scratch, "%t")
            err += r.stderr.decode("utf-8", "replace").replace(scratch, "%t")
            code = r.returncode
            if code:
                break
        shutil.rmtree(scratch)
        got = {"OUT": out.rstrip("\n").split("\n") if out else [],
               "ERR": err.rstrip("\n").split("\n") if err else []}
        if a.update:
            lead = "#" if any(l.startswith("# RUN:") for l in body) else "//"
            while body and body[-1] == "":
                body.pop()
            text = body[:]
            for name in ("OUT", "ERR"):
                if got[name]:
                    text.append(f"{lead} {name}:")
                    text += [f"{lead} {l}" if l else lead for l in got[name]]
            open(path, "w", encoding="utf-8", newline="\n").write("\n".join(text) + "\n")
        bad = []
        if code != want_exit:
            bad.append(f"exit {code}, want {want_exit}")
        for name in ("OUT", "ERR"):
            want = sections.get(name, [])
            if not a.update and got[name] != want:
                bad += list(difflib.unified_diff(want, got[name], f"{name} wanted", f"{name} got",
                                                 lineterm=""))
        if bad:
            failed += 1
            print(f"FAIL {path}")
            print("\n".join("  " + b for b in bad))
        else:
            passed += 1
    print(f"golden: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())

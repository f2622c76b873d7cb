"""The README's tour as a test: every `$ copse ...` line of its fenced blocks is run in one scratch folder, and the
lines that follow must appear in what it prints, in order (`...` stands for anything, <n> for a number). DATA/ is the
folder of test models."""
import re, shlex, subprocess
from util import *

text = open(sys.argv[2], encoding="utf-8").read()
steps = []
for block in re.findall(r"```console\n(.*?)```", text, re.S):
    for line in block.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            steps.append([line[2:], []])
        elif steps:
            steps[-1][1].append(line)
check(len(steps) >= 5, f"the README has {len(steps)} commands")
for command, want in steps:
    words = [w.replace("DATA/", os.path.join(ROOT, "tests/data/")) for w in shlex.split(command)]
    if words[0] not in ("copse", "cat", "ls"):
        continue
    r = copse(*words[1:], cwd=TMP) if words[0] == "copse" else subprocess.run(words, cwd=TMP, capture_output=True)
    check(r.returncode == 0, f"$ {command}\n{r.stderr.decode()}")
    out = (r.stdout + r.stderr).decode()
    at = 0
    for line in want:
        if line.strip() in ("", "..."):
            continue
        pattern = "".join(".*?" if p == "..." else r"[-+0-9.e]+" if p == "<n>" else re.escape(p)
                          for p in re.split(r"(\.\.\.|<n>)", line.rstrip()))
        m = re.compile(pattern).search(out, at)
        check(m is not None, f"$ {command}: not found: {line}\ngot:\n{out[:2000]}")
        at = m.end() if m else at
done()

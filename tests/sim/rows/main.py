"""Every executable row of the instruction table against NumPy: main.py TOOL GROUP_TOOL [ROW ...].

Cases that name no target run on every generation that has their rows. Without rows given, also:
each row of insn.def that has semantics (sem.def) has a case that runs on each of its generations,
and each that has none stands in MODEL.md with the reason, and no other; each fact that
MODEL.md lists has its cases."""
import fnmatch
import pathlib
import re
import sys

import act
import dma
import dve
import group
import harness
import indirect
import pe
import pool
import rand
import seq

GROUPS = (act, dma, dve, indirect, pe, pool, rand, seq)
ALIKE = (act, dma, dve, pool, seq)  # the generations do not differ in what these cases use
ROOT = pathlib.Path(__file__).resolve().parents[3]


def table():
    """Rows that exist on some generation: generations and the name of their semantics."""
    text = (ROOT / "codegen/isa/insn.def").read_text()
    rows = re.findall(r'^CPS_INSN\((\w+),\s*0x\w+,\s*\w+,\s*\w+,\s*(\w+),\s*\w,\s*\d,\s*\w+,\s*(\w+),',
                      text, re.M)
    assert len(rows) > 150
    return {name: (gens, sem) for name, gens, sem in rows if gens != "NONE"}


def everywhere(cases, rows):
    """Cases that are free of a generation, on all that have what they use."""
    for c in cases:
        yield c
        for gen, target in harness.TARGETS.items():
            used = {t.split()[0] for t in c.texts}
            if c.free and not c.fails and target != c.target and \
                    all(gen[1] in rows[r][0] for r in used):
                yield c.on(target)


def coverage(cases):
    """Complaints about rows without semantics, test or reason."""
    sems = set(re.findall(r'^SEMP?\s*\("(\w+)"', (ROOT / "runtime/sim/sem.def").read_text(), re.M))
    model = (ROOT / "runtime/sim/MODEL.md").read_text()
    section = model.split("\n## Rows that are not executed\n")[1].split("\n## ")[0]
    excused = set(re.findall(r"^\| `(\w+)` \|", section, re.M))
    tested = {(c.row, c.target) for c in cases
              if c.fails in (None, "E5501")}  # or the checker refuses it there
    out = []
    for row, (gens, sem) in table().items():
        for gen, target in harness.TARGETS.items():
            if sem in sems and gen[1] in gens and (row, target) not in tested:
                out.append(f"{row}: has semantics and no case on {target}")
        if sem not in sems and row not in excused:
            out.append(f"{row}: has no semantics and no reason in MODEL.md")
        if sem in sems and row in excused:
            out.append(f"{row}: runs, though MODEL.md says otherwise")
    out += [f"{row}: MODEL.md names no such row" for row in excused - set(table())]
    return out


def facts(cases):
    """Complaints about facts of MODEL.md without a case that holds them."""
    model = (ROOT / "runtime/sim/MODEL.md").read_text()
    section = model.split("\n## What the documents do say\n")[1].split("\n## ")[0]
    names = {c.name for c in cases}
    rows = re.findall(r"^\| (.+?) \| (`.+`) \|$", section, re.M)
    out = [f"{fact}: no case is called {p}" for fact, held in rows
           for p in re.findall(r"`([^`]+)`", held) if not fnmatch.filter(names, p)]
    return out if len(rows) > 20 else out + ["the facts of MODEL.md cannot be read"]


def main():
    tool, group_tool, only = sys.argv[1], sys.argv[2], sys.argv[3:]
    rows = table()
    cases = []
    for g in GROUPS:
        mine = [c for c in g.cases() if not only or c.row in only]
        cases += everywhere(mine, rows) if g in ALIKE else mine
    failed = harness.run(tool, cases)
    several = [c for c in group.cases() if not only or c.row in only]
    failed += group.run(group_tool, several)
    cases += several
    missing = [] if only else coverage(cases) + facts(cases)
    for m in missing:
        print(m)
    print(f"{len(cases)} cases of {len({c.row for c in cases})} rows, {failed} failed")
    return 1 if failed or missing or not cases else 0


sys.exit(main())

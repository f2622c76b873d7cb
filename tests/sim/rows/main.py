"""Every executable row of the instruction table against NumPy: main.py TOOL [ROW ...]."""
import sys

import act
import dma
import dve
import harness
import pe
import pool
import rand
import seq

GROUPS = (act, dma, dve, pe, pool, rand, seq)


def main():
    tool, only = sys.argv[1], sys.argv[2:]
    cases = [c for g in GROUPS for c in g.cases() if not only or c.row in only]
    failed = harness.run(tool, cases)
    print(f"{len(cases)} cases of {len({c.row for c in cases})} rows, {failed} failed")
    return 1 if failed or not cases else 0


sys.exit(main())

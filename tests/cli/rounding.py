"""Stochastic rounding by the command line: a seed repeats, another seed differs, the mathematics
stays within tolerance."""
import os

import util
from util import check, copse, done

RUN = ["kernel", "run", "softmax", "--dims", "T=128,N=256"]


def run(name, *more):
    folder = os.path.join(util.TMP, name)
    got = copse(*RUN, "--compare", "ref", "--save-io", folder, *more)
    check(got.returncode == 0, f"{name}: exit {got.returncode}")
    with open(os.path.join(folder, "out_y.npy"), "rb") as f:
        return f.read()


plain = run("plain")
first, again, other = (run(n, "--stochastic-rounding", s)
                       for n, s in (("first", 1), ("again", 1), ("other", 2)))
check(first == again, "the same seed gives the same bytes")
check(first != other, "another seed gives other bytes")
check(first != plain, "rounding to nearest gives other bytes")
check(copse(*RUN, "--stochastic-rounding", "x").returncode == 2, "a seed is a number")
done()

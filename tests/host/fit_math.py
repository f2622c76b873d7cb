#!/usr/bin/env python3
"""The minimax fits behind codegen/host/math.def: Lawson's reweighted least squares on Chebyshev
nodes. Each fits the smooth rest of a function after its exact leading terms were taken out, with
the weight that makes the error relative to the function itself. Prints rows of math.def, with the
largest relative error of the fit and of the rounded coefficients in exact arithmetic."""
import math

import numpy as np


def fit(f, weight, lo, hi, degree, nodes=4000, rounds=400):
    x = (lo + hi) / 2 + (hi - lo) / 2 * np.cos((2 * np.arange(nodes) + 1) / (2 * nodes) * np.pi)
    y = np.array([f(t) for t in x])
    w = np.array([weight(t) for t in x])
    basis = np.polynomial.chebyshev.chebvander((2 * x - lo - hi) / (hi - lo), degree)
    lam = np.ones(nodes) / nodes
    for _ in range(rounds):
        s = np.sqrt(lam) * w
        c = np.linalg.lstsq(basis * s[:, None], y * s, rcond=None)[0]
        err = np.abs((basis @ c - y) * w)
        lam = lam * (err + 1e-300)
        lam /= lam.sum()
    p = np.polynomial.chebyshev.Chebyshev(c, domain=[lo, hi])
    p = p.convert(kind=np.polynomial.Polynomial, domain=[-1, 1], window=[-1, 1])
    return p.coef, err.max(), x, y, w


def row(name, f, weight, lo, hi, degree, dtype=np.float32):
    c, err, x, y, w = fit(f, weight, lo, hi, degree)
    r = c.astype(dtype).astype(np.float64)
    rounded = np.abs((np.polynomial.polynomial.polyval(x, r) - y) * w).max()
    print(f"HOST_POLY({name}, {', '.join(float(v).hex() for v in r[::-1])})"
          f" /* fit {err:.1e}, rounded {rounded:.1e} */")


def series(coef, x):
    return sum(c * x**k for k, c in enumerate(coef))


def log_rest(f):
    if abs(f) < 0.05:
        return series([(-1)**k / (k + 3) for k in range(24)], f)
    return (math.log1p(f) - f + f * f / 2) / f**3


def atan_rest(z):
    if z < 0.02:
        return series([(-1)**(k + 1) / (2 * k + 3) for k in range(30)], z)
    t = math.sqrt(z)
    return (math.atan(t) - t) / t**3


def tanh_rest(z):
    if z < 0.01:
        return series([-1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925], z)
    x = math.sqrt(z)
    return (math.tanh(x) - x) / x**3


def erf_rest(z):
    s = series([(-1)**k / (math.factorial(k) * (2 * k + 1)) for k in range(40)], z)
    return s * 2 / math.sqrt(math.pi) - 1


def erfc_rest(v):
    t = 2 * (1 / v - 1)
    return math.erfc(t) * math.exp(t * t) / v


def over(f):
    """Weight z^(3/2) / f(sqrt z): the rest stands behind the cube of the argument."""
    return lambda z: z * math.sqrt(z) / f(math.sqrt(z)) if z else 0


if __name__ == "__main__":
    row("EXP", lambda r: series([1 / math.factorial(k + 2) for k in range(20)], r),
        lambda r: r * r / math.exp(r) + 1e-30, -0.3475, 0.3475, 4)
    row("LOG", log_rest, lambda f: abs(f**3 / math.log1p(f)) if f else 0,
        math.sqrt(.5) - 1, math.sqrt(2) - 1, 8)
    row("SIN", lambda z: series([(-1)**(k + 1) / math.factorial(2 * k + 3) for k in range(12)], z),
        over(math.sin), 0, 0.62, 3)
    row("COS", lambda z: series([(-1)**k / math.factorial(2 * k + 4) for k in range(12)], z),
        lambda z: z * z / math.cos(math.sqrt(z)), 0, 0.62, 3)
    row("ARCTAN", atan_rest, over(math.atan), 0, 1, 8)
    row("TANH", tanh_rest, over(math.tanh), 0, 0.625**2, 4)
    row("ERF", erf_rest, lambda z: math.sqrt(z) / math.erf(math.sqrt(z)) if z else .89, 0, 1, 7)
    row("ERFC", erfc_rest, lambda v: 1 / erfc_rest(v), 1 / 6.1, 1, 10)
    row("EXP2D", lambda f: 2.0**f, lambda f: 2.0**-f, -0.5, 0.5, 9, np.float64)

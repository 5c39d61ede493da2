"""Fits the polynomials of src/kernels/math-inl.h: float32 coefficients, smallest largest weighted error.

The Remez exchange in 60 digits; then the coefficients are rounded to float32 one after another, lowest power first, and
the rest is fitted again each time, so that the higher ones make up for the rounding of the lower ones.

Run: python3 tools/minimax.py     prints the polynomials with their errors, and says of each whether it is the one in
                                  math-inl.h; exit code 1 if one is not. About a minute; needs mpmath.
"""
import pathlib
import struct
import sys

from mpmath import cos, erf, erfc, log, lu_solve, matrix, mp, mpf, pi, sqrt, tanh

mp.dps = 60


def f32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def remez(target, weight, powers, lo, hi, rounds=30, grid=600):
    """min over c of max |weight(x) (sum c_j x^p_j - target(x))|, x in [lo, hi]."""
    n = len(powers)
    points = [(lo + hi) / 2 + (lo - hi) / 2 * cos(pi * i / n) for i in range(n + 1)]
    xs = [(lo + hi) / 2 + (lo - hi) / 2 * cos(pi * mpf(i) / grid) for i in range(grid + 1)]
    ts = [target(x) for x in xs]
    ws = [weight(x) for x in xs]
    best = None
    for _ in range(rounds):
        a, b = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for i, x in enumerate(points):
            for j, p in enumerate(powers):
                a[i, j] = x**p
            a[i, n] = (-1) ** i / weight(x)
            b[i] = target(x)
        c = lu_solve(a, b)
        errors = [w * (sum(c[j] * x**p for j, p in enumerate(powers)) - t) for x, t, w in zip(xs, ts, ws)]
        largest = max(abs(e) for e in errors)
        if best is None or largest < best[0]:
            best = (largest, [c[j] for j in range(n)])
        # one extremum from each run of equal sign; if there are too many, drop the smaller end
        runs = []
        for x, e in zip(xs, errors):
            if runs and (e >= 0) == (runs[-1][1] >= 0):
                if abs(e) > abs(runs[-1][1]):
                    runs[-1] = (x, e)
            else:
                runs.append((x, e))
        while len(runs) > n + 1:
            runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
        if len(runs) < n + 1:
            break
        new = [x for x, _ in runs]
        if max(abs(p - q) for p, q in zip(new, points)) < (hi - lo) / grid / 4:
            break
        points = new
    return best


def fit(target, weight, degree, lo, hi):
    lo, hi = mpf(lo), mpf(hi)
    known, left = [], list(range(degree + 1))
    while left:
        def rest(x):
            return target(x) - sum(c * x**p for p, c in known)

        _, c = remez(rest, weight, left, lo, hi)
        known.append((left[0], f32(c[0])))
        left = left[1:]
    xs = [lo + (hi - lo) * i / 4000 for i in range(4001)]
    error = max(abs(weight(x) * (sum(c * x**p for p, c in known) - target(x))) for x in xs)
    return error, [float(c) for _, c in known]


SMALL = mpf(10) ** -8


def log_rest(f):  # log(1 + f) = f + f^2 P(f)
    return (log(1 + f) - f) / f**2 if abs(f) > SMALL else -mpf(1) / 2 + f / 3


def log_weight(f):
    return abs(f * f / log(1 + f)) if abs(f) > SMALL else SMALL


# Each weight turns an error of the polynomial into a relative error of the function.
POLYNOMIALS = {
    # tanh a = a + a z P(z), z = a^2
    "tanh": lambda: fit(lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z, lambda z: z * sqrt(z) / tanh(sqrt(z)), 4,
                        1e-12, mpf("0.625") ** 2),
    # erf a = a + a P(z), z = a^2
    "erf, near 0": lambda: fit(lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: sqrt(z) / erf(sqrt(z)), 6,
                               1e-12, mpf("0.921875") ** 2),
    # erf a = 1 - e^(a R(a))
    "erf, beyond": lambda: fit(lambda t: log(erfc(t)) / t, lambda t: t * erfc(t) / erf(t), 6, mpf("0.921875"), 4),
    "log": lambda: fit(log_rest, log_weight, 8, -mpf(1) / 3, mpf(1) / 3),
}

if __name__ == "__main__":
    source = (pathlib.Path(__file__).parent.parent / "src/kernels/math-inl.h").read_text()
    missing = 0
    for name, make in POLYNOMIALS.items():
        error, coefficients = make()
        absent = [c for c in coefficients if repr(c) + "f" not in source]
        missing += len(absent)
        print(f"{name}: relative error {float(error):.2g} = 2^{float(log(error, 2)):.1f}, "
              f"{'in' if not absent else 'NOT in'} math-inl.h")
        for power, c in enumerate(coefficients):
            print(f"  x^{power}: {c!r}{'   missing' if c in absent else ''}")
    sys.exit(missing != 0)

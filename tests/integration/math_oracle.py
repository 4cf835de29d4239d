"""Math functions in long double, and the errors of others in units of the last place."""

from __future__ import annotations

from functools import cache

import numpy as np

LONG = np.longdouble
HAS_LONG_DOUBLE = np.finfo(LONG).nmant > 52
"""Whether long double is more precise than float64."""

INF, NAN = np.inf, np.nan


def erf(x):
    """The series without alternating signs (Abramowitz and Stegun, 7.1.6)."""
    size = np.minimum(np.abs(x), LONG(7))
    term = total = 2 / np.sqrt(np.arctan(LONG(1)) * 4) * size * np.exp(-size * size)
    for n in range(1, 200):
        term = term * (2 * size * size) / (2 * n + 1)
        total = total + term
    return np.where(np.isnan(x), x, np.copysign(total, x))


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


FUNCTIONS = {
    "exp": (np.exp, 1.0, 1.0), "exp2": (np.exp2, 1.0, 1.1), "expm1": (np.expm1, 0.51, 2.0),
    "log": (np.log, 0.51, 1.0), "log2": (np.log2, 0.51, 1.0), "log10": (np.log10, 0.51, 1.0),
    "log1p": (np.log1p, 0.51, 1.0), "tanh": (np.tanh, 0.51, 3.0), "erf": (erf, 0.51, 1.9),
    "sigmoid": (sigmoid, 0.51, 3.0), "sin": (np.sin, 0.51, 1.0), "cos": (np.cos, 0.51, 1.0),
    "sqrt": (np.sqrt, 0.5, 0.5), "rsqrt": (lambda x: 1 / np.sqrt(x), 1.51, 1.51),
}  # fmt: skip
"""The oracle, and the largest error of float32 and of float64."""


def tf32(x):
    """Ten bits of fraction, halves away from zero; subnormal numbers have those of the least normal one."""
    least = np.maximum(np.frexp(x)[1], np.finfo(x.dtype).minexp + 1) - 11
    with np.errstate(over="ignore"):
        size = np.ldexp(np.floor(np.ldexp(np.abs(x.astype(np.float64)), -least) + 0.5), least)
        return np.where(np.isfinite(x), np.copysign(size, x).astype(x.dtype), x)


EXACT = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "abs": np.abs,
    "tf32": tf32,
}  # fmt: skip


@cache
def numbers(dtype_name, count=20_000):
    """Numbers of every exponent, subnormal ones, ordinary ones, and those at the edges of cases, in an array
    that is not written."""
    rng = np.random.default_rng(5)
    dtype = np.dtype(dtype_name)
    info = np.finfo(dtype)
    bits = rng.integers(0, 2 ** (8 * dtype.itemsize), count, np.uint64, endpoint=False)
    any_bits = bits.astype(f"u{dtype.itemsize}").view(dtype)
    usual = [rng.normal(size=count) * scale for scale in (1e-3, 1, 10, 300)]
    special = [
        0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, INF, -INF, NAN, info.max, info.min,
        info.tiny, -info.tiny, info.smallest_subnormal, 88.72, 88.73, -87.4, -103.9, -104.1, 709.7,
        709.8, -708.5, -745.1, -745.2, 1023.9, 1024.0, -1074.0, -1075.5, np.pi, np.pi / 2, 2.0**20,
        2.0**20 * np.pi, 6381956970095103 * 2.0**797 if dtype.itemsize == 8 else 2.0**100,
        16367173 * 2.0**72, 5.9, 6.1, 22.1,
    ]  # fmt: skip
    near_one = 1 + rng.normal(size=count) * 1e-3
    with np.errstate(all="ignore"):
        mixed = np.concatenate([any_bits, *usual, near_one, special]).astype(dtype)
    result = np.resize(mixed, len(mixed) // 64 * 64 + 64)
    result.flags.writeable = False
    return result


def errors(actual, exact):
    """Errors in units of the last place; if the exact value rounds to infinity, only infinity is correct."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(actual.dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(actual.dtype).tiny))
        off = np.abs(actual.astype(LONG) - exact) / unit
    same = (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
    finite = np.isfinite(rounded) & np.isfinite(actual)
    return np.where(finite, off, np.where(same, 0, INF))

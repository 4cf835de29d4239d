"""Oracles of the small programs of the corpus: one function each, of the argument values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import numpy as np

from gossamer_support.arrays import Array
from gossamer_testkit.corpus.case import Expected, Options, Values

_REDUCERS: dict[str, Callable[..., Array]] = {
    "add": np.add.reduce,
    "mul": np.multiply.reduce,
    "min": np.minimum.reduce,
    "max": np.maximum.reduce,
    "and": np.logical_and.reduce,
    "or": np.logical_or.reduce,
}


def copied(values: Values, options: Options) -> dict[str, Expected]:
    """y = x."""
    return {"y": Expected(values["x"])}


def doubled(values: Values, options: Options) -> dict[str, Expected]:
    """y = x + x."""
    return {"y": Expected(values["x"] + values["x"])}


def scaled(values: Values, options: Options) -> dict[str, Expected]:
    """y = 3 x + 1 in the dtype of x."""
    x = values["x"]
    return {"y": Expected(x * x.dtype.type(3) + x.dtype.type(1))}


def reversed_order(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] = x[n - 1 - i]."""
    return {"y": Expected(values["x"][::-1])}


def gathered(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] = x[p[i]].

    >>> gathered({"x": np.array([5, 6, 7]), "p": np.array([2, 0])}, {})["y"].array
    array([7, 5])
    """
    return {"y": Expected(np.take(values["x"], values["p"]))}


def scattered(values: Values, options: Options) -> dict[str, Expected]:
    """y[p[i]] = x[i]."""
    y = values["y"].copy()
    y[values["p"]] = values["x"]
    return {"y": Expected(y)}


def combined(values: Values, options: Options) -> dict[str, Expected]:
    """Combine x[i] into y[i * i % 7] by the operation `op`."""
    y, x = values["y"].copy(), values["x"]
    ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum}[options["op"]]
    # `at` combines all elements of one place; a plain assignment would keep the last.
    ufunc.at(y, np.arange(x.size) ** 2 % 7, x)
    return {"y": Expected(y)}


def every_third(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] = x[3 i]."""
    return {"y": Expected(values["x"][::3])}


def every_third_stored(values: Values, options: Options) -> dict[str, Expected]:
    """y[3 i] = x[i]; other elements do not change."""
    y = values["y"].copy()
    y[::3] = values["x"]
    return {"y": Expected(y)}


def where_flagged(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] = x[i] where the flag is set; other elements do not change."""
    flags, y = values["flags"], values["y"].copy()
    y[flags] = values["x"][flags]
    return {"y": Expected(y)}


def flagged_or_minus_one(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] = x[p[i]] where the flag is set, else -1; p is arbitrary where the flag is not set."""
    flags, p = values["flags"], values["p"]
    y = np.full_like(values["y"], -1)
    y[flags] = values["x"][p[flags]]
    return {"y": Expected(y)}


def stored_where_flagged(values: Values, options: Options) -> dict[str, Expected]:
    """y[p[i]] = x[i] where the flag is set."""
    flags, y = values["flags"], values["y"].copy()
    y[values["p"][flags]] = values["x"][flags]
    return {"y": Expected(y)}


def negated_flags(values: Values, options: Options) -> dict[str, Expected]:
    """y = not flags."""
    return {"y": Expected(~values["flags"])}


def lane_reduced(values: Values, options: Options) -> dict[str, Expected]:
    """y[r, i] combines the `lanes` elements of row i of x by operation r of `ops`."""
    rows = values["x"].reshape(-1, options["lanes"])
    with np.errstate(all="ignore"):
        # In the dtype of the rows: NumPy would add small integers in a wider one, where they do not wrap.
        columns = [_REDUCERS[op](rows, axis=1, dtype=rows.dtype) for op in options["ops"]]
    return {"y": Expected(np.stack(columns))}


def rows_reduced(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] combines the `lanes` elements of row i of x by `op`."""
    rows = values["x"].reshape(-1, options["lanes"])
    with np.errstate(all="ignore"):
        return {"y": Expected(_REDUCERS[options["op"]](rows, axis=1, dtype=rows.dtype))}


def collatz(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] is the number of Collatz steps from p[i] to 1, the final value of p[i]."""
    counts = []
    for start in values["p"].tolist():
        count = 0
        while start > 1:
            start = start // 2 if start % 2 == 0 else 3 * start + 1
            count += 1
        counts.append(count)
    return {
        "y": Expected(np.array(counts, np.int64)),
        "p": Expected(np.minimum(values["p"], 1)),
    }


def prefix_sums(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] = x[0] + ... + x[i]."""
    return {"y": Expected(np.cumsum(values["x"], dtype=values["x"].dtype))}


def sign_classes(values: Values, options: Options) -> dict[str, Expected]:
    """y is the sign of x, or 2 where x > 5."""
    x = values["x"]
    return {"y": Expected(np.where(x > 5, 2, np.sign(x)).astype(values["y"].dtype))}


def triangle(values: Values, options: Options) -> dict[str, Expected]:
    """y[i, j] = i * n + j where j < i; other elements do not change."""
    n = values["n"]
    counted = np.arange(n * n, dtype=values["y"].dtype).reshape(n, n)
    below = np.tri(n, k=-1, dtype=bool)
    return {"y": Expected(np.where(below, counted, values["y"]))}


def unchanged(values: Values, options: Options) -> dict[str, Expected]:
    """Return no results: nothing is written."""
    return {}


def scalar_stored(values: Values, options: Options) -> dict[str, Expected]:
    """y[0] = s."""
    return {"y": Expected(np.array([values["s"]]).astype(values["y"].dtype))}


def counted(values: Values, options: Options) -> dict[str, Expected]:
    """out[i] = i + 1 for start <= i < start + n, zero elsewhere."""
    out, start = np.zeros_like(values["out"]), options["start"]
    out[start : start + values["n"]] = np.arange(start, start + values["n"]) + 1
    return {"out": Expected(out)}


def lower_positions(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] is the first position whose key is at least v[i]."""
    return {"y": Expected(_positions(values, "left"))}


def upper_positions(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] is the first position whose key is greater than v[i]."""
    return {"y": Expected(_positions(values, "right"))}


def exact_positions(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] is the first position whose key is v[i], -1 if there is none."""
    is_there = np.isin(values["v"], values["keys"])
    return {"y": Expected(np.where(is_there, _positions(values, "left"), -1))}


def _positions(values: Values, side: Literal["left", "right"]) -> Array:
    positions: Array = np.asarray(np.searchsorted(values["keys"], values["v"], side=side))
    return positions


def fused_multiply_add(values: Values, options: Options) -> dict[str, Expected]:
    """y = x z - 1, rounded once: the exact value for float32 operands fits a float64."""
    exact = [
        Fraction(x) * Fraction(z) - 1
        for x, z in zip(values["x"].tolist(), values["z"].tolist(), strict=True)
    ]
    # Fractions are exact, so that the only rounding is that of the result.
    y = np.array([float(value) for value in exact]).astype(values["y"].dtype)
    return {"y": Expected(y)}


_MATH: dict[str, Callable[..., float]] = {
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
    "erf": math.erf,
    "sin": math.sin,
    "cos": math.cos,
    "round": round,
    "pow": math.pow,
}
_LAST_BITS = 8
"""The largest error of a math function, in half units in the last place."""


def math_function(values: Values, options: Options) -> dict[str, Expected]:
    """y = function(x), or function(x, z) if there is a z."""
    columns = [values[name].astype(np.float64).tolist() for name in ("x", "z") if name in values]
    results = [_MATH[options["function"]](*row) for row in zip(*columns, strict=True)]
    y = np.array(results, np.float64)
    return {"y": Expected(y, np.abs(y) + np.finfo(values["y"].dtype).tiny, _LAST_BITS)}


RESULTS_OF_PROGRAMS = {
    function.__name__: function
    for function in (
        collatz, combined, copied, counted, doubled, every_third, every_third_stored, exact_positions,
        flagged_or_minus_one, fused_multiply_add, gathered, lane_reduced, lower_positions,
        math_function, negated_flags, prefix_sums, reversed_order, rows_reduced, scalar_stored, scaled,
        scattered, sign_classes, stored_where_flagged, triangle, unchanged, upper_positions,
        where_flagged,
    )
}  # fmt: skip

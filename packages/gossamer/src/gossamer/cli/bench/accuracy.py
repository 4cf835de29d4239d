"""Compare results with exact values, within the error bounds of rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gossamer.cli.bench.references import reference_of
from gossamer.cli.bench.references.reference import ReferencePart
from gossamer_formats import Array, SparseTensor


class Comparison(NamedTuple):
    """`max_relative_error` is the largest error relative to the sum of the absolute values of an element's
    terms; `tolerance` is the error bound of the longest sum; `is_within` is True if the error of each element
    is within the bound of its own sum."""

    max_relative_error: float
    tolerance: float
    is_within: bool


def compare(op: str, matrix: SparseTensor, dense: Sequence[Array], result: Array) -> Comparison:
    """Compare the result of an operator on a matrix and dense operands with that of its reference.

    The error of a sum of n products is at most n * eps times the sum of their absolute values, plus a
    denormal number for each product that underflows. If a product or a sum overflows the dtype, any result
    is accepted.
    """
    kind = np.finfo(result.dtype)
    worst, longest, is_within = 0.0, 0, True
    for part in reference_of(op).parts(matrix, *dense):
        error = _difference(result[part.at].astype(np.float64), part.exact)
        worst = max(worst, float(_ratio(error, part.magnitude).max(initial=0.0)))
        longest = max(longest, int(part.terms.max(initial=0)))
        is_within = is_within and _is_within(error, part, kind=kind)
    return Comparison(worst, float(kind.eps) * (longest + 2), is_within)


def _is_within(error: Array, part: ReferencePart, *, kind: Any) -> bool:
    bound = part.magnitude
    with np.errstate(all="ignore"):
        allowed = float(kind.eps) * (part.terms + 2) * bound + part.terms * float(kind.tiny)
    overflows = np.isfinite(bound) & (bound > float(kind.max))
    is_close = np.isfinite(error) & (error <= allowed)
    return bool(((error == 0.0) | is_close | overflows).all())


def _difference(found: Array, expected: Array) -> Array:
    """Return the absolute error: 0 if both are NaN or the same infinity, infinity if only one is."""
    with np.errstate(all="ignore"):
        error = np.abs(found - expected)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def _ratio(error: Array, bound: Array) -> Array:
    with np.errstate(all="ignore"):
        ratio = np.where(bound == 0.0, np.inf, error / bound)
    return np.where(error == 0.0, 0.0, np.where(np.isfinite(error), ratio, np.inf))

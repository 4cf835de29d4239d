"""Rows whose elements are added to several sums side by side: when that pays, for the rule that schedules
products of rows and for the model of their cost."""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine

MIN_TERMS = 16
"""Minimum mean number of elements of a row for partial sums to pay (measured: 1.1 to 1.4 times faster from 26
elements up, 0.75 to 0.95 at 7 elements and fewer, where the elements left over are mispredicted)."""

MAX_SUMMED_VECTORS = 2
"""Maximum number of vectors of features (measured with a packed operand: 1.3 to 2.4 times faster for one
vector, 1.15 to 1.6 for two, 0.9 to 1.2 for four). Two vectors keep the units half busy, so that partial sums
gain nothing unless the operand is packed."""


def has_partial_sums(
    features: int, dtype: str, machine: Machine, stats: Stats, *, is_packed: bool
) -> bool:
    """Return whether partial sums of rows pay: of whole vectors of features, from an operand that is packed
    or not.

    >>> matrix = Stats(rows=1000, columns=1000, nnz=32_000, longest_row=40, empty_rows=0)
    >>> operand = 32, "float32", Machine(), matrix
    >>> [has_partial_sums(*operand, is_packed=is_packed) for is_packed in (True, False)]
    [True, False]
    """
    vectors, rest = divmod(features, machine.lanes(dtype))
    most = MAX_SUMMED_VECTORS if is_packed else 1
    return stats.mean_row >= MIN_TERMS and not rest and 1 <= vectors <= most

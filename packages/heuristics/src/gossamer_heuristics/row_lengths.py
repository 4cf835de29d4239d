"""Decisions by the length of rows: scalar code, rows as lanes, several sums of a row, windows of sorted rows.

Rules schedule rows by it, a format sorts them, and the models of costs expect what these two do.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine

SHORT_ROW = 4
"""Maximum length of all rows for scalar code on contiguous elements: the branches of short rows of equal
length are predicted (measured in sums of rows: 2.5 times faster at 2 elements)."""

MEAN_ROW_IN_LANE = {"fast": 4, "moderate": 2, "slow": 0}
"""Maximum mean number of gathered terms of rows that are lanes of a vector, by the speed of gathers. A lane
gathers the column, the value and the operand of each term, where a vector along the row gathers operands only
(measured against these on Emerald Rapids: 1.2 to 1.5 times as fast at 2 and 4 terms, 0.85 at 6; on Zen 4
against scalar code: 1.15 to 1.35 at 2, 0.9 at 4)."""

WINDOW_BITS = 512
"""Minimum bits of vectors for rows in lanes where gathers are not fast: registers of such vectors hold the
columns and values of several rows, so that only operands are gathered."""

MAX_ROW_IN_LANE = 8
"""Maximum number of terms of a row in a lane: the lanes of shorter rows wait."""

SPREAD = 3
"""Maximum length of the longest row, in mean rows. If lengths vary more, most lanes wait for one of them
(measured: lanes lose if they take twice as many steps as there are terms; with rows of 2, at most 6, they
take 1.33 times as many)."""

MIN_TERMS = 16
"""Minimum mean number of elements of a row for partial sums to pay (measured: 1.1 to 1.4 times faster from 26
elements up, 0.75 to 0.95 at 7 elements and fewer, where the elements left over are mispredicted)."""

MAX_SUMMED_VECTORS = 2
"""Maximum number of vectors of features (measured with a packed operand: 1.3 to 2.4 times faster for one
vector, 1.15 to 1.6 for two, 0.9 to 1.2 for four). Two vectors keep the units half busy, so that partial sums
gain nothing unless the operand is packed."""

MIN_WINDOW, MAX_WINDOW, WINDOWS = 256, 4096, 16
"""Minimum and maximum number of rows of a window, and about how many windows there are.

Wide windows leave few slots of SELL unused (measured for products with vectors: up to 1.4 times as fast with
4096 rows as with 256). But threads that store results to rows of the same window take cache lines from each
other (measured on two threads: 1.7 times as slow if 2700 rows are one window), so that each has several.
"""


def are_lanes(machine: Machine, stats: Stats) -> bool:
    """Return whether several rows of gathered terms are lanes of a vector: no row is much longer than the
    others, and gathers are fast enough for rows of that length.

    >>> from msgspec.structs import replace
    >>> machine = Machine(gathers="fast")
    >>> roads = Stats(rows=1000, columns=1000, nnz=2000, longest_row=6, empty_rows=0)
    >>> are_lanes(machine, roads), are_lanes(machine, replace(roads, longest_row=7))
    (True, False)
    """
    most = MEAN_ROW_IN_LANE[machine.gathers]
    if machine.gathers != "fast" and machine.min_vector_bits < WINDOW_BITS:
        return False
    longest = min(MAX_ROW_IN_LANE, SPREAD * stats.mean_row)
    return stats.mean_row <= most and stats.longest_row <= longest


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


def window_rows(rows: int) -> int:
    """Return the number of rows of a window, a power of two, for a matrix with this many rows.

    >>> [window_rows(rows) for rows in (100, 20_000, 10**6)]
    [256, 1024, 4096]
    """
    return max(MIN_WINDOW, min(MAX_WINDOW, 1 << (rows // WINDOWS).bit_length() >> 1))

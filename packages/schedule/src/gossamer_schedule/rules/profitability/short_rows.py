"""Rows that are too short for vectors of their own elements."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_schedule.rules.profitability.verdict import Verdict, pays, pays_not

SHORT_ROW = 4
"""Maximum length of all rows for scalar code on contiguous elements: the branches of short rows of equal
length are predicted (measured in sums of rows: 2.5 times faster at 2 elements)."""

MEAN_ROW_IN_LANE = 4
"""Maximum mean number of gathered terms of rows that are lanes of a vector. A lane gathers the column, the
value and the operand of each term, where a vector along the row gathers operands only (measured against
these: 1.2 to 1.5 times as fast at 2 and 4 terms, 0.85 at 6)."""

MAX_ROW_IN_LANE = 8
"""Maximum number of terms of such a row: the lanes of shorter rows wait."""

PERMUTED_BITS = 512
"""Bits of vectors with an instruction that selects from two of them, by indices in a third one."""

WINDOW_ELEMENTS = 32
"""Elements of a window: two vectors of 32 bits (measured on rows of 2 and 4: 1.2 to 1.5 times as fast as
gathers of columns and values; with 16 elements, too short for many rows, 0.8 times)."""

ROWS_OF_WINDOW = 8
"""Maximum number of rows that share a window, which then have `MEAN_ROW_IN_LANE` elements (16 rows with a
window of 64: 0.9 times as fast)."""

SPREAD = 3
"""Maximum length of the longest row, in mean rows. If lengths vary more, most lanes wait for one of them
(measured: lanes lose if they take twice as many steps as there are terms; with rows of 2, at most 6, they
take 1.33 times as many)."""


def rows_in_lanes(hardware: HardwareParams, stats: Stats | None) -> Verdict:
    """Decide whether several rows of gathered terms are lanes of a vector."""
    if hardware.gathers != "fast" or stats is None:
        return pays_not("gathers are not known to be fast, or rows to be short")
    longest = min(MAX_ROW_IN_LANE, SPREAD * stats.mean_row)
    if stats.mean_row > MEAN_ROW_IN_LANE or stats.longest_row > longest:
        return pays_not("most lanes would wait for the longest row")
    return pays(
        f"no row has more than {MAX_ROW_IN_LANE} terms, nor {SPREAD} times as many as the mean, and "
        "gathers are fast on this machine: their masks replace the branches at the ends of rows"
    )


class RowGroup(NamedTuple):
    """Rows that are lanes of a vector, and the number of elements of a window from which the lanes read their
    columns and values (0: they gather them)."""

    rows: int
    window: int
    why: str


def row_group(hardware: HardwareParams, dtype: str) -> RowGroup:
    """Return the rows of a vector, and their window.

    Lanes read a window by instructions on registers of 512 bits.
    """
    lanes = hardware.lanes(dtype)
    if hardware.vector_bits < PERMUTED_BITS:
        return RowGroup(lanes, 0, "lanes gather their columns and values")
    rows = min(lanes, ROWS_OF_WINDOW)
    why = (
        f"{rows} rows have up to {WINDOW_ELEMENTS} elements in most cases, which registers hold: "
        "a permutation costs less than a gather"
    )
    return RowGroup(rows, WINDOW_ELEMENTS, why)

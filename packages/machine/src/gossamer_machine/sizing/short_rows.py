"""Short rows: when scalar code pays for them, and when several of them are lanes of a vector. For the rules
that schedule them and for the model of their cost."""

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
    if machine.gathers != "fast" and machine.vector_bits < WINDOW_BITS:
        return False
    longest = min(MAX_ROW_IN_LANE, SPREAD * stats.mean_row)
    return stats.mean_row <= most and stats.longest_row <= longest

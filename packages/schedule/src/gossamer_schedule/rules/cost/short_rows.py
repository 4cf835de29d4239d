"""Rows that are too short for vectors of their own elements."""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_schedule.rules.cost.verdict import Verdict, pays, pays_not

SHORT_ROW = 4
"""Maximum length of all rows for scalar code on contiguous elements: the branches of short rows of equal
length are predicted (measured in sums of rows: 2.5 times faster at 2 elements)."""

MEAN_ROW_IN_LANE = 4
"""Maximum mean number of gathered terms of rows that are lanes of a vector. A lane gathers the column, the
value and the operand of each term, where a vector along the row gathers operands only (measured against
these: 1.2 to 1.5 times as fast at 2 and 4 terms, 0.85 at 6)."""

LONGEST_ROW_IN_LANE = 8
"""Maximum number of terms of such a row: the lanes of shorter rows wait."""

SPREAD = 3
"""Maximum length of the longest row, in mean rows. If lengths vary more, most lanes wait for one of them
(measured: lanes lose if they take twice as many steps as there are terms; with rows of 2, at most 6, they
take 1.33 times as many)."""


def rows_in_lanes(hardware: HardwareParams, stats: Stats | None) -> Verdict:
    """Decide whether several rows of gathered terms are lanes of a vector."""
    if hardware.gathers != "fast" or stats is None:
        return pays_not("gathers are not known to be fast, or rows to be short")
    longest = min(LONGEST_ROW_IN_LANE, SPREAD * stats.mean_row)
    if stats.mean_row > MEAN_ROW_IN_LANE or stats.longest_row > longest:
        return pays_not("most lanes would wait for the longest row")
    return pays(
        f"no row has more than {LONGEST_ROW_IN_LANE} terms, nor {SPREAD} times as many as the mean, and "
        "gathers are fast on this machine: their masks replace the branches at the ends of rows"
    )

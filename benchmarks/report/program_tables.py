"""Tables of the programs of papers."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.records import ProgramTime
from benchmarks.report.text_tables import Sheet


def programs_sheet(times: Sequence[ProgramTime]) -> Sheet:
    """Return, for each case, the times of our programs and of the fastest baseline, and their ratio."""
    columns = (
        "program",
        "case",
        "thr",
        "ours",
        "ms",
        "fastest other",
        "ms",
        "ratio",
        "of the best",
    )
    sheet = Sheet(
        "programs of papers: time of the fastest other / time of gossamer", columns, words=2
    )
    for case in dict.fromkeys((one.program, one.case, one.threads) for one in times):
        here = [one for one in times if (one.program, one.case, one.threads) == case]
        others = [one for one in here if not one.is_ours]
        ours = sorted((one for one in here if one.is_ours), key=lambda one: one.median_ms)
        if not others or not ours:
            continue
        other = min(others, key=lambda one: one.median_ms)
        for one in ours:
            figures = (
                one.what,
                f"{one.median_ms:.3g}",
                other.what,
                f"{other.median_ms:.3g}",
                f"{other.median_ms / one.median_ms:.2f}",
                f"{ours[0].median_ms / one.median_ms:.2f}",
            )
            sheet.rows.append((one.program, one.case, str(one.threads), *figures))
    return sheet


def program_times_sheet(times: Sequence[ProgramTime]) -> Sheet:
    """Return the times of all programs and baselines, with the seconds of their preparation."""
    columns = ("program", "case", "contender", "thr", "ms", "prepare s")
    sheet = Sheet("programs of papers: median ms", columns, words=3)
    for one in times:
        figures = (str(one.threads), f"{one.median_ms:.3g}", f"{one.prepare_seconds:.2f}")
        sheet.rows.append((one.program, one.case, one.what, *figures))
    return sheet

"""The table of goals."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.goals import Goal, Outcome
from benchmarks.records import Cell
from benchmarks.text_tables import Sheet


def goals_sheet(cells: Sequence[Cell], ours: Sequence[str], goals: Sequence[Goal]) -> Sheet:
    """Return each goal, the result, and whether the goal is met."""
    columns = ("who", "op", "on", "best of", "cells", "mean", "wanted", "least", "wanted", "in", "")
    sheet = Sheet("goals", columns, words=4)
    for goal in goals:
        for name in ours if goal.who is None else (goal.who,):
            outcome = goal.outcome(cells, name)
            # The first one has each operator; others have some of them.
            if outcome is None and name != ours[0]:
                continue
            row = (name, goal.op, goal.on or "all", " ".join(goal.contenders))
            limits = (f"{goal.mean:.2f}", f"{goal.least:.2f}")
            if outcome is None:
                sheet.rows.append((*row, "0", "-", limits[0], "-", limits[1], "", "not measured"))
                continue
            mean, least = f"{outcome.mean:.2f}", f"{outcome.least:.2f}"
            figures = (str(len(outcome.cells)), mean, limits[0], least, limits[1])
            sheet.rows.append((*row, *figures, outcome.worst.name(), verdict_of(outcome)))
    return sheet


def verdict_of(outcome: Outcome) -> str:
    """Return a text as in `MISSED, 3 cells below, 1 disturbed, not measured: torch K=16`."""
    parts = ["met" if outcome.is_met else "MISSED"]
    if outcome.below:
        parts.append(f"{outcome.below} cell{'s' * (outcome.below > 1)} below")
    if outcome.disturbed:
        parts.append(f"{outcome.disturbed} disturbed")
    if outcome.absent:
        parts.append(f"not measured: {' '.join(outcome.absent)}")
    return ", ".join(parts)

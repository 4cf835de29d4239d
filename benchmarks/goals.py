"""Goals for the ratios of a run: the time of the fastest other contender over that of gossamer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from benchmarks.contenders import CHOSEN, OURS
from benchmarks.matrices import GENERATED, KINDS
from benchmarks.operators import PROBLEMS
from benchmarks.records import Cell

LIBRARIES = ("mkl", "scipy", "numba", "torch")
"""The contenders that are libraries of their own."""


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean.

    >>> geometric_mean([0.5, 2.0, 8.0])
    2.0
    """
    # `fsum` rounds once, so the mean does not depend on the order of the cells.
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


class Goal(msgspec.Struct, frozen=True):
    """A goal for the ratios over the cells of an operator."""

    op: str
    mean: float
    """The geometric mean of the ratios."""
    least: float
    """The least ratio."""
    contenders: tuple[str, ...] = LIBRARIES
    """The fastest of those that took part in a cell counts."""
    expected: tuple[str, ...] = LIBRARIES
    """The contenders without which the result is incomplete."""
    who: str | None = None
    """The contender of ours that the goal is for; None if it is for the fastest."""
    on: str | None = None
    """The name of the group of `matrices`."""
    matrices: tuple[str, ...] = ()
    """The matrices that the goal is about; all if there are none."""
    features: tuple[int, ...] = ()
    """The numbers of features that the goal is about; all if there are none."""
    vendor: str | None = None
    """The vendor of the processors that the goal is for; None if it is for all."""

    def is_about(self, cell: Cell) -> bool:
        """Return whether a cell counts."""
        return (
            cell.op == self.op
            and (not self.matrices or cell.matrix in self.matrices)
            and (not self.features or cell.features in self.features)
        )

    def ratio(self, cell: Cell, ours: str = OURS) -> float | None:
        """Return the time of the fastest other contender over ours, or None if either is missing."""
        ratios = (cell.ratio(other, ours) for other in self.contenders)
        return min((ratio for ratio in ratios if ratio is not None), default=None)

    def outcome(self, cells: Iterable[Cell], ours: str = OURS) -> Outcome | None:
        """Return the outcome over the cells of the operator, or None if none was measured. Disturbed cells
        count only if there are no others."""
        measured = [cell for cell in cells if self.is_about(cell) and self.ratio(cell, ours)]
        if not measured:
            return None
        # A disturbed cell says as much about the other processes as about the contenders.
        quiet = [cell for cell in measured if not cell.is_disturbed]
        return Outcome(self, tuple(quiet or measured), ours, disturbed=len(measured) - len(quiet))


class Outcome(msgspec.Struct, frozen=True):
    """The cells that count for a goal, and how many were disturbed."""

    goal: Goal
    cells: tuple[Cell, ...]
    ours: str
    disturbed: int

    @property
    def ratios(self) -> list[float]:
        """The ratio of each cell."""
        ratios = [self.goal.ratio(cell, self.ours) for cell in self.cells]
        return [ratio for ratio in ratios if ratio is not None]

    @property
    def mean(self) -> float:
        return geometric_mean(self.ratios)

    @property
    def least(self) -> float:
        return min(self.ratios)

    @property
    def worst(self) -> Cell:
        """The cell with the least ratio."""
        return self.cells[self.ratios.index(self.least)]

    @property
    def below(self) -> int:
        """The number of cells below the least ratio that is wanted."""
        return sum(ratio < self.goal.least for ratio in self.ratios)

    @property
    def absent(self) -> list[str]:
        """The parts of the goal that were not measured: contenders, features, dtypes, numbers of threads."""
        usual = PROBLEMS[self.goal.op]
        measured = {name for cell in self.cells for name in cell.figures}
        parts = (
            ("", self.goal.expected, measured),
            (
                "K=",
                # A goal about some numbers of features is complete with these.
                self.goal.features or usual.feature_sizes,
                {cell.features for cell in self.cells},
            ),
            ("", usual.dtypes, {cell.dtype for cell in self.cells}),
            ("threads=", usual.threads, {cell.threads for cell in self.cells}),
        )
        return [
            f"{label}{one}"
            for label, wanted, present in parts
            for one in wanted
            if one not in present
        ]

    @property
    def is_met(self) -> bool:
        return self.mean >= self.goal.mean and self.least >= self.goal.least


GOALS = (
    Goal("spmm", mean=1.15, least=0.9),
    Goal("spmv", mean=1.0, least=0.8),
    Goal(
        "sddmm", 1.5, 0.95, contenders=("numba", "torch", "taco_fast"), expected=("numba", "torch")
    ),
    Goal(
        "attention",
        mean=1.3,
        least=1.0,
        contenders=("scipy", "mkl_plain", "numba", "numba_fused", "torch"),
        expected=("scipy", "mkl_plain", "numba", "torch"),
    ),
    Goal("attention", mean=2.5, least=1.0, contenders=("torch",), expected=("torch",)),
    Goal(
        "bsr_spmm", 2.0, 2.0, contenders=("mkl_bsr", *LIBRARIES), expected=("mkl_bsr", *LIBRARIES)
    ),
)
"""The goals; the first one of an operator is about all its contenders."""

PRUNED = tuple(name for name in KINDS["weights"])
REAL_GRAPHS = tuple(name for name in KINDS["graph"] if name not in GENERATED)
IRREGULAR = (*KINDS["graph"], *KINDS["road"], *KINDS["circuit"])
FINITE_ELEMENTS = ("bcsstk16", "cavity14")
"""Matrices by what chosen formats can do for them: tiles for pruned weights, blocks for finite elements with
several unknowns in each node, slices of rows for rows of varied length."""

PRUNED_WEIGHTS = Goal(
    "spmm",
    mean=1.0,
    least=1.1,
    who=CHOSEN,
    on="pruned weights",
    matrices=PRUNED,
    features=(32, 64, 128, 256, 512),
)
"""The goal for pruned weights, but for its mean, which depends on the vendor of the processor."""

PREPARED_GOALS = (
    replace(PRUNED_WEIGHTS, mean=1.6, vendor="Intel"),
    replace(PRUNED_WEIGHTS, mean=2.5, vendor="AMD"),
    Goal("spmm", 1.7, 1.0, who=CHOSEN, on="finite elements", matrices=FINITE_ELEMENTS),
    Goal("spmm", 1.4, 1.0, who=CHOSEN, on="real graphs", matrices=REAL_GRAPHS),
    Goal("spmv", 1.2, 1.0, who=CHOSEN, on="rows of varied length", matrices=IRREGULAR),
    Goal("bsr_spmm", 2.5, 2.5, ("mkl",), ("mkl",), who=CHOSEN, on="blocks, found in CSR"),
)
"""The goals for a matrix in the format that `gossamer.prepare` chooses, by groups of matrices."""

INSTRUCTION_GOALS = {"spmv": 1.3, "spmm": 2.0, "sddmm": 2.0}
"""The goal: how many times fewer instructions than the better C loop, at every length of vectors."""


def goals_for(vendor: str) -> tuple[Goal, ...]:
    """Return the goals for processors of a vendor."""
    return tuple(goal for goal in (*GOALS, *PREPARED_GOALS) if goal.vendor in (None, vendor))


def misses_goal(cell: Cell, goals: Iterable[Goal]) -> bool:
    """Return whether a ratio of a cell is below the least one of a goal about it."""
    ratios = ((goal, goal.ratio(cell, goal.who or OURS)) for goal in goals if goal.is_about(cell))
    return any(ratio is not None and ratio < goal.least for goal, ratio in ratios)


def main_goal(op: str) -> Goal:
    """Return the goal about all contenders of an operator."""
    return next(goal for goal in GOALS if goal.op == op)

"""The problems of a run, and its estimated duration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.harness.rounds import WARM_SHARE, Plan
from benchmarks.matrices import Matrix, MissingMatrixError, load_matrix
from benchmarks.operators import OPERATORS
from benchmarks.operators.problem import Problem

GATHERED_BYTES_PER_SECOND = 20e9
"""Average speed at which contenders gather, used only to estimate the duration."""


@dataclass(frozen=True)
class Selection:
    """What to measure; None stands for the defaults of each operator."""

    ops: tuple[str, ...]
    threads: tuple[int, ...]
    dtypes: tuple[str, ...] = ("float32",)
    matrices: tuple[str, ...] | None = None
    features: tuple[int, ...] | None = None

    def matrices_of(self, op: str) -> tuple[str, ...]:
        """Returns the chosen matrices among those of the operator."""
        known = OPERATORS[op].matrices
        return known if self.matrices is None else tuple(n for n in known if n in self.matrices)

    def features_of(self, op: str) -> tuple[int, ...]:
        """The chosen sizes; an operator on vectors has none.

        >>> Selection(("spmm", "spmv"), threads=(2,), features=(8, 16)).features_of("spmv")
        (1,)
        """
        usual = OPERATORS[op].feature_sizes
        return usual if self.features is None or usual == (1,) else self.features


@dataclass(frozen=True)
class Task:
    """A problem, created once and measured with each number of threads."""

    op: str
    matrix: Matrix
    features: int
    threads: tuple[int, ...]

    def problem(self) -> Problem:
        return OPERATORS[self.op](self.matrix, self.features)

    def describe(self, threads: int) -> str:
        """As in `spmm cora K=32, 2 threads`."""
        size = f" K={self.features}" if self.features > 1 else ""
        return f"{self.op} {self.matrix.name}{size}, {threads} thread{'s' if threads > 1 else ''}"

    def estimated_seconds(self, contenders: int, plan: Plan) -> float:
        """How long a cell takes, roughly: the rounds, and about ten calls to get ready and verify."""
        gathered = self.matrix.csr.nnz * self.features * self.matrix.csr.dtype.itemsize
        call = gathered / GATHERED_BYTES_PER_SECOND
        sample = max(call, (1 + 1 / WARM_SHARE) * plan.sample_seconds) + plan.settle_seconds
        rounds = min(contenders * plan.rounds * sample, plan.budget_seconds)
        return rounds + 10 * contenders * call + 0.1


def plan_tasks(selection: Selection) -> tuple[list[Task], dict[str, str]]:
    """Returns the tasks in the order of measurement, and why matrices are missing."""
    tasks: list[Task] = []
    missing: dict[str, str] = {}
    for op, name, dtype in wanted(selection):
        try:
            matrix = load_matrix(name, dtype)
        except MissingMatrixError as error:
            missing[name] = str(error)
            continue
        sizes = selection.features_of(op)
        tasks += [Task(op, matrix, features, selection.threads) for features in sizes]
    return tasks, missing


def wanted(selection: Selection) -> Iterator[tuple[str, str, str]]:
    """The operators, matrices and dtypes of a selection."""
    for op in selection.ops:
        for name in selection.matrices_of(op):
            for dtype in selection.dtypes:
                yield op, name, dtype

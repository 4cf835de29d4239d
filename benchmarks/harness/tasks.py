"""The problems of a run, in batches that are measured together, and its estimated duration."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from benchmarks.contenders import CONTENDERS, OURS
from benchmarks.harness.rounds import WARM_SHARE, SamplingPlan
from benchmarks.matrices import RARE, BenchmarkMatrix, MissingMatrixError, load_matrix
from benchmarks.operators import PROBLEMS
from benchmarks.operators.problem import Problem

GATHERED_BYTES_PER_SECOND = 15e9
"""Average speed at which contenders gather, used only to estimate the duration."""

CASE_SECONDS = 0.05
"""Time to prepare and verify a case, used only to estimate the duration."""

MAX_CASE_BYTES = min(500 * 10**6, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 32)
"""Default limit of the arrays of a batch. Each contender holds a copy, and the harness some in float64."""

MAX_ENTRIES = 48
"""Cases of a batch, times numbers of threads: the turns of a batch take a second or two."""


class Selection(msgspec.Struct, frozen=True):
    """The cells to measure; None stands for the defaults of each operator."""

    ops: tuple[str, ...]
    threads: tuple[int, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    matrices: tuple[str, ...] | None = None
    features: tuple[int, ...] | None = None
    features_among: tuple[int, ...] | None = None
    contenders: tuple[str, ...] | None = None
    variants: tuple[str, ...] = ()

    def matrices_of(self, op: str) -> tuple[str, ...]:
        """Return the chosen matrices among those of the operator."""
        matrices = PROBLEMS[op].matrices
        if self.matrices is None:
            return tuple(name for name in matrices if name not in RARE)
        return tuple(name for name in matrices if name in self.matrices)

    def features_of(self, op: str) -> tuple[int, ...]:
        """Return the chosen sizes, or the usual ones (among some); an operator on vectors has none.

        >>> Selection(("spmm", "spmv"), features=(8, 16)).features_of("spmv")
        (1,)
        """
        usual = PROBLEMS[op].feature_sizes
        if usual == (1,):
            return usual
        if self.features is not None:
            return self.features
        among = self.features_among
        return usual if among is None else tuple(size for size in usual if size in among)

    def dtypes_of(self, op: str) -> tuple[str, ...]:
        return PROBLEMS[op].dtypes if self.dtypes is None else self.dtypes

    def threads_of(self, op: str) -> tuple[int, ...]:
        return PROBLEMS[op].threads if self.threads is None else self.threads

    def contenders_of(self, op: str) -> tuple[str, ...]:
        """Return the contenders that have the operator: the chosen ones, or the usual ones.

        >>> Selection(("spmm",)).contenders_of("spmm")
        ('gossamer', 'gossamer_prepared', 'scipy', 'mkl', 'numba', 'torch')
        >>> Selection(("spmm",), contenders=("mkl", "mkl_bsr")).contenders_of("spmm")
        ('mkl',)
        """
        if self.contenders is None:
            contenders = tuple(name for name, one in CONTENDERS.items() if one.takes_part(op))
        else:
            contenders = tuple(
                name
                for name in self.contenders
                if name in CONTENDERS and op in CONTENDERS[name].ops
            )
        return (*contenders, *(self.variants if op in CONTENDERS[OURS].ops else ()))


class Task(msgspec.Struct, frozen=True, dict=True):
    """A problem, created once and measured with each number of threads by each contender."""

    op: str
    matrix: BenchmarkMatrix
    features: int
    threads: tuple[int, ...]
    contenders: tuple[str, ...]

    @property
    def dtype(self) -> str:
        return str(self.matrix.csr.dtype)

    def problem(self) -> Problem:
        return PROBLEMS[self.op](self.matrix, self.features)

    def describe(self) -> str:
        """Return a text as in `spmm cora K=32 float32`."""
        size = f" K={self.features}" if self.features > 1 else ""
        return f"{self.op} {self.matrix.name}{size} {self.dtype}"

    @cached_property
    def bytes(self) -> int:
        """The estimated size of all arrays."""
        return PROBLEMS[self.op].estimated_bytes(self.matrix, self.features)

    def estimated_seconds(self, plan: SamplingPlan) -> float:
        """Return roughly how long it takes, besides pauses: rounds, preparation and verification."""
        gathered = self.matrix.csr.nnz * self.features * self.matrix.csr.dtype.itemsize
        call = gathered / GATHERED_BYTES_PER_SECOND
        sample = max(call, (1 + 1 / WARM_SHARE) * plan.sample_seconds)
        entries = len(self.contenders) * len(self.threads)
        ready = entries * (CASE_SECONDS + 5 * call + 4 * self.bytes / 1e9)
        return entries * plan.rounds * sample + ready


class Batch(msgspec.Struct, frozen=True):
    """Tasks that are measured together."""

    tasks: tuple[Task, ...]

    def describe(self) -> str:
        """Return a text as in `spmm cora K=16 float32 ... pubmed K=32 float64`."""
        first, last = self.tasks[0].describe(), self.tasks[-1].describe()
        return first if first == last else f"{first} ... {last.partition(' ')[2]}"

    def estimated_seconds(self, plan: SamplingPlan) -> float:
        """Return roughly how long it takes."""
        contenders = {name for task in self.tasks for name in task.contenders}
        pauses = len(contenders) * plan.rounds * plan.pause_seconds
        return pauses + sum(task.estimated_seconds(plan) for task in self.tasks)


def plan_batches(
    selection: Selection, max_bytes: int = MAX_CASE_BYTES
) -> tuple[list[Batch], dict[str, str]]:
    """Return the batches in the order of measurement, and why matrices and cases are missing."""
    tasks: list[Task] = []
    missing: dict[str, str] = {}
    for op, name, dtype in selected_problems(selection):
        try:
            matrix = load_matrix(name, dtype)
        except MissingMatrixError as error:
            missing[name] = str(error)
            continue
        common = (selection.threads_of(op), selection.contenders_of(op))
        tasks += [Task(op, matrix, size, *common) for size in selection.features_of(op)]
    missing |= too_large(tasks, max_bytes)
    fitting = [task for task in tasks if task.bytes <= max_bytes]
    return batches_of(fitting, max_bytes), missing


def too_large(tasks: Sequence[Task], max_bytes: int) -> Mapping[str, str]:
    """Return the cases that do not fit, by operator, matrix and dtype."""
    sizes_of: dict[str, list[int]] = {}
    for task in tasks:
        if task.bytes > max_bytes:
            name = f"{task.op} {task.matrix.name} {task.dtype}"
            sizes_of.setdefault(name, []).append(task.features)
    limit = f"the arrays would have more than {max_bytes / 1e6:.0f} MB (--max-mb)"
    return {f"{name} K={' '.join(map(str, sizes))}": limit for name, sizes in sizes_of.items()}


def batches_of(tasks: Sequence[Task], max_bytes: int) -> list[Batch]:
    """Group tasks of one operator, in their order, within the limits of a batch."""
    batches: list[list[Task]] = []
    entries, size = 0, 0
    for task in tasks:
        entries += len(task.threads)
        size += task.bytes
        fits = entries <= MAX_ENTRIES and size <= max_bytes
        if not (batches and fits and batches[-1][0].op == task.op):
            batches.append([])
            entries, size = len(task.threads), task.bytes
        batches[-1].append(task)
    return [Batch(tuple(batch)) for batch in batches]


def selected_problems(selection: Selection) -> Iterator[tuple[str, str, str]]:
    """Yield the operators, matrices and dtypes of a selection."""
    for op in selection.ops:
        for name in selection.matrices_of(op):
            for dtype in selection.dtypes_of(op):
                yield op, name, dtype

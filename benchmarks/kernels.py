"""Measures the kernels: every matrix, feature size and number of threads, all contenders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from scipy import sparse

from benchmarks.contenders import Prepare, Prepared, UnavailableError
from benchmarks.problem import Problem, allowed_error, least_work, make_problem, relative_error
from benchmarks.records import Cell, Figure
from benchmarks.roofline import Roofline
from benchmarks.rounds import Plan, measure


class WrongResultError(Exception):
    """A contender's result is not the product."""


@dataclass(frozen=True)
class Selection:
    """What to measure."""

    ops: tuple[str, ...]
    features: tuple[int, ...]
    threads: tuple[int, ...]

    def feature_sizes(self, op: str) -> tuple[int, ...]:
        """SpMV has one feature."""
        return (1,) if op == "spmv" else self.features

    def cells(self) -> int:
        """How many cells a matrix gives.

        >>> Selection(("spmm", "spmv"), (32, 64), (1, 2)).cells()
        6
        """
        return len(self.threads) * sum(len(self.feature_sizes(op)) for op in self.ops)


def measure_matrix(
    name: str,
    matrix: sparse.csr_matrix,
    selection: Selection,
    contenders: Mapping[str, Prepare],
    rooflines: Mapping[int, Roofline],
    plan: Plan,
    tick: Callable[[str], None],
) -> Iterator[Cell]:
    """The cells of one matrix; `tick` hears of each cell before it is measured."""
    for op in selection.ops:
        for features in selection.feature_sizes(op):
            problem = make_problem("spmv" if op == "spmv" else "spmm", name, matrix, features)
            for threads in selection.threads:
                tick(f"{op} {name} K={features} threads={threads}")
                yield measure_cell(problem, threads, contenders, rooflines.get(threads), plan)


def measure_cell(
    problem: Problem,
    threads: int,
    contenders: Mapping[str, Prepare],
    roofline: Roofline | None,
    plan: Plan,
) -> Cell:
    """One problem with one number of threads: prepare, verify, then time."""
    prepared, skipped = prepare_all(problem, threads, contenders)
    errors = {name: verify(problem, name, one) for name, one in prepared.items()}
    samples = measure({name: one.timed for name, one in prepared.items()}, plan)
    work = least_work(problem)
    figures = {
        name: Figure(tuple(float(f"{1e3 * second:.4g}") for second in seconds), errors[name])
        for name, seconds in samples.seconds.items()
    }
    rows, columns = problem.matrix.shape
    return Cell(
        op=problem.op,
        matrix=problem.name,
        shape=(rows, columns),
        nnz=problem.matrix.nnz,
        features=problem.features,
        threads=threads,
        least_bytes=work.bytes,
        operations=work.operations,
        bound_ms=None if roofline is None else 1e3 * roofline.bound_seconds(work),
        figures=figures,
        skipped=skipped,
        thrown_away=samples.thrown_away,
        is_disturbed=samples.is_disturbed,
    )


def prepare_all(
    problem: Problem, threads: int, contenders: Mapping[str, Prepare]
) -> tuple[dict[str, Prepared], dict[str, str]]:
    """Those that can take part, and why the others cannot."""
    prepared, skipped = {}, {}
    for name, prepare in contenders.items():
        try:
            prepared[name] = prepare(problem, threads)
        except UnavailableError as error:
            skipped[name] = str(error)
    return prepared, skipped


def verify(problem: Problem, name: str, prepared: Prepared) -> float:
    """The error of the contender's result; `WrongResultError` when rounding does not explain it."""
    prepared.timed.activate()
    prepared.timed.call()
    error, allowed = relative_error(problem, prepared.result()), allowed_error(problem)
    if not error <= allowed:
        raise WrongResultError(
            f"{name} is wrong on {problem.op} {problem.name} with {problem.features} features: "
            f"relative error {error:.2g}, {allowed:.2g} allowed"
        )
    return error

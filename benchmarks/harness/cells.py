"""Measures one problem with one number of threads: prepares and verifies all contenders, then times them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.harness.rounds import Plan, measure
from benchmarks.machine import cache_share
from benchmarks.operators.problem import Problem, Work
from benchmarks.peers.peer import Prepare, Prepared, UnavailableError
from benchmarks.records import Cell, Figure
from benchmarks.roofline import Roofline


class WrongResultError(Exception):
    """A contender's result differs from the oracle's."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of the machine for a problem: bytes per second, operations per second."""

    bandwidth: float
    peak: float

    def seconds(self, work: Work) -> float:
        """Returns the shortest time in which the machine can do `work`."""
        return max(work.bytes / self.bandwidth, work.operations / self.peak)


def measure_cell(
    problem: Problem,
    threads: int,
    contenders: Mapping[str, Prepare],
    roofline: Roofline | None,
    plan: Plan,
) -> Cell:
    """Times contenders with correct results, and records why others were not timed."""
    prepared, skipped = prepare_all(problem, threads, contenders)
    errors, wrong = verify_all(problem, prepared)
    samples = measure({name: prepared[name].timed for name in errors}, plan)
    work = problem.least_work()
    bounds = None if roofline is None else bounds_of(roofline, work, problem.dtype.name)
    rows, columns = problem.csr.shape
    return Cell(
        op=problem.op,
        matrix=problem.matrix.name,
        kind=problem.matrix.kind,
        shape=(rows, columns),
        nnz=problem.csr.nnz,
        features=problem.features,
        dtype=problem.dtype.name,
        threads=threads,
        least_bytes=work.bytes,
        operations=work.operations,
        working_bytes=problem.working_bytes(),
        cache_bytes=cache_share(threads),
        bound_ms=None if bounds is None else 1e3 * bounds.seconds(work),
        figures={
            name: figure(seconds, errors[name], work, bounds)
            for name, seconds in samples.seconds.items()
        },
        skipped=skipped,
        wrong=wrong,
        thrown_away=samples.thrown_away,
        is_disturbed=samples.is_disturbed,
    )


def bounds_of(roofline: Roofline, work: Work, dtype: str) -> Bounds:
    """Returns the bandwidth at the size of the touched working set, and the peak of the dtype."""
    return Bounds(
        1e9 * roofline.gb_per_s(work.bytes),
        1e9 * roofline.gflop_per_s[dtype],
    )


def figure(seconds: list[float], error: float, work: Work, bounds: Bounds | None) -> Figure:
    """Returns a contender's times and its share of the machine's bounds."""
    median = statistics.median(seconds)
    lower, _, upper = (
        statistics.quantiles(seconds, n=4, method="inclusive")
        if len(seconds) > 1
        else (median, median, median)
    )
    return Figure(
        median_ms=in_ms(median),
        quartiles_ms=(in_ms(lower), in_ms(upper)),
        samples_ms=tuple(map(in_ms, seconds)),
        max_rel_error=float(f"{error:.3g}"),
        of_bandwidth=None if bounds is None else work.bytes / median / bounds.bandwidth,
        of_peak=None if bounds is None else work.operations / median / bounds.peak,
    )


def in_ms(seconds: float) -> float:
    """Returns milliseconds with four digits.

    >>> in_ms(0.00123456)
    1.235
    """
    return float(f"{1e3 * seconds:.4g}")


def prepare_all(
    problem: Problem, threads: int, contenders: Mapping[str, Prepare]
) -> tuple[dict[str, Prepared], dict[str, str]]:
    """Returns the contenders that can take part, and why others cannot."""
    prepared, skipped = {}, {}
    for name, prepare in contenders.items():
        try:
            prepared[name] = prepare(problem, threads)
        except UnavailableError as error:
            skipped[name] = str(error)
    return prepared, skipped


def verify_all(
    problem: Problem, prepared: Mapping[str, Prepared]
) -> tuple[dict[str, float], dict[str, str]]:
    """Returns the errors of correct results, and messages about wrong ones."""
    errors, wrong = {}, {}
    for name, one in prepared.items():
        try:
            errors[name] = verify(problem, name, one)
        except WrongResultError as error:
            wrong[name] = str(error)
    return errors, wrong


def verify(problem: Problem, name: str, prepared: Prepared) -> float:
    """Returns the error of a contender's result. Raises `WrongResultError` if it exceeds rounding."""
    prepared.timed.activate()
    prepared.timed.seconds(1)
    result, expected = prepared.result(), problem.result_shape()
    if result.shape != expected or result.dtype != problem.dtype:
        raise WrongResultError(
            f"{name} gave {result.dtype} {result.shape} on {problem.op} {problem.matrix.name}; "
            f"expected {problem.dtype} {expected}"
        )
    error, allowed = problem.relative_error(result), problem.allowed_error()
    if not error <= allowed:
        raise WrongResultError(
            f"{name} is wrong on {problem.op} {problem.matrix.name} with {problem.features} "
            f"features: relative error {error:.2g}, {allowed:.2g} allowed"
        )
    return error

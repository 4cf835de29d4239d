"""The data of a run: the machine, cells of operators, and the results of other parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar

import msgspec

from benchmarks.machine.machine_description import MachineDescription
from benchmarks.machine.roofline import Roofline
from benchmarks.matrices import Kind

FAILED = "FAILED"
"""Prefix of names in `missing` that were requested but failed."""

Results: TypeAlias = list[Any]
"""The records that parts have yielded so far."""

R = TypeVar("R", bound=msgspec.Struct)


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One contender's median time in milliseconds, its largest error, its shares of the measured bandwidth
    and peak, and the time in which it converts the matrix from CSR once, before (None: it does not)."""

    median_ms: float
    max_rel_error: float
    of_bandwidth: float | None = None
    of_peak: float | None = None
    conversion_ms: float | None = None

    @property
    def bound_share(self) -> float | None:
        """The share of the roofline bound that is reached: the larger of both shares."""
        if self.of_bandwidth is None or self.of_peak is None:
            return None
        # The bound is the slower one of moving and computing, of which the share is the larger one.
        return max(self.of_bandwidth, self.of_peak)


class Cell(msgspec.Struct, frozen=True):
    """One problem with one number of threads, and the figures of all contenders."""

    op: str
    matrix: str
    kind: Kind
    shape: tuple[int, int]
    nnz: int
    features: int
    dtype: str
    threads: int
    least_bytes: int
    """The bytes that have to be moved at least."""
    operations: int
    working_bytes: int
    """The size of all arrays of a call."""
    cache_bytes: int
    """The size of the available caches."""
    bound_ms: float | None
    """The time that the machine needs at least to move `least_bytes` and do `operations`."""
    figures: dict[str, Figure]
    skipped: dict[str, str]
    wrong: dict[str, str]
    is_disturbed: bool
    is_measured_again: bool = False
    """True if the cell missed a goal in the first rounds; those and further ones count."""

    @property
    def fits_cache(self) -> bool:
        return self.working_bytes <= self.cache_bytes

    @property
    def intensity(self) -> float:
        """Operations per byte of the least work."""
        return self.operations / self.least_bytes

    def gflop_per_s(self, name: str) -> float:
        """Return the speed of a contender."""
        return self.operations / self.figures[name].median_ms / 1e6

    def ratio(self, other: str, ours: str) -> float | None:
        """Return the median of another contender over ours; above one, ours is faster."""
        if other not in self.figures or ours not in self.figures:
            return None
        return self.figures[other].median_ms / self.figures[ours].median_ms

    def name(self) -> str:
        """Return a text as in `cora K=32 float64, 2 threads`."""
        # A vector has one feature, and most cells are in float32: neither needs to be said.
        size = f" K={self.features}" if self.features > 1 else ""
        dtype = "" if self.dtype == "float32" else f" {self.dtype}"
        return f"{self.matrix}{size}{dtype}, {self.threads} thread{'s' * (self.threads > 1)}"


def results_of_type(results: Iterable[object], record: type[R]) -> tuple[R, ...]:
    """Return the results of a type in the order in which they were measured."""
    return tuple(one for one in results if isinstance(one, record))


class RunHeader(msgspec.Struct, frozen=True, kw_only=True):
    """When, where and with which options a run was. `name` is what the name of its file says besides that of
    the machine (None: nothing); `foreign` is the mean of processors that other processes used (None: not
    recorded)."""

    date: str
    machine: MachineDescription
    versions: dict[str, str]
    settings: dict[str, str]
    missing: dict[str, str] = {}
    name: str | None = None
    foreign: float | None = None


class Run(RunHeader, frozen=True, kw_only=True):
    """One run of the benchmark, with the records of all its parts."""

    results: tuple[Any, ...] = ()

    def results_of(self, record: type[R]) -> tuple[R, ...]:
        """Return the results of a type."""
        return results_of_type(self.results, record)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The results of the part `kernels`."""
        return self.results_of(Cell)

    @property
    def rooflines(self) -> tuple[Roofline, ...]:
        """The results of the part `roofline`."""
        return self.results_of(Roofline)

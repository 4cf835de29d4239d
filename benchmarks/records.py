"""The data of a run: what is stored, one file per run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from benchmarks.machine import Machine
from benchmarks.matrices import Kind
from benchmarks.roofline import Roofline

FAILED = "FAILED"
"""What is missing under a name that starts so was wanted."""

RESULTS = Path(__file__).parent / "results"


class Figure(msgspec.Struct, frozen=True):
    """One contender's times in milliseconds: median, quartiles and the samples of the rounds; its
    largest error; its share of the bandwidth and of the peak that were measured."""

    median_ms: float
    quartiles_ms: tuple[float, float]
    samples_ms: tuple[float, ...]
    max_rel_error: float
    of_bandwidth: float | None = None
    of_peak: float | None = None

    @property
    def of_bound(self) -> float | None:
        """How much of what the machine can do is reached: the larger share."""
        if self.of_bandwidth is None or self.of_peak is None:
            return None
        return max(self.of_bandwidth, self.of_peak)


class Cell(msgspec.Struct, frozen=True):
    """One problem with one number of threads, and everybody's figure.

    `least_bytes` must at least be moved and `operations` done, for which the machine needs
    `bound_ms`; `working_bytes` are all arrays of a call, `cache_bytes` what could hold them.
    """

    op: str
    matrix: str
    kind: Kind
    shape: tuple[int, int]
    nnz: int
    features: int
    dtype: str
    threads: int
    least_bytes: int
    operations: int
    working_bytes: int
    cache_bytes: int
    bound_ms: float | None
    figures: dict[str, Figure]
    skipped: dict[str, str]
    wrong: dict[str, str]
    thrown_away: int
    is_disturbed: bool

    @property
    def fits_cache(self) -> bool:
        return self.working_bytes <= self.cache_bytes

    @property
    def intensity(self) -> float:
        """Operations for each byte that must be moved."""
        return self.operations / self.least_bytes

    def gflop_per_s(self, name: str) -> float:
        """What a contender reaches."""
        return self.operations / self.figures[name].median_ms / 1e6

    def ratio(self, peer: str, ours: str) -> float | None:
        """The peer's median over ours: above one, ours is faster."""
        if peer not in self.figures or ours not in self.figures:
            return None
        return self.figures[peer].median_ms / self.figures[ours].median_ms


DoneBefore: TypeAlias = Literal["another kernel", "imports", "import gossamer"]
"""What a fresh process had done before the clock started."""


class CompileTime(msgspec.Struct, frozen=True):
    """Milliseconds from script to callable in fresh processes, medians: with nothing cached, what
    LLVM itself took of that (parsing, passes, code generation), and from the request cache.
    `before_ms` is what the process had spent before."""

    op: str
    features: int
    done_before: DoneBefore
    before_ms: float
    uncached_ms: float
    llvm_ms: float
    cached_ms: float


class PythonShare(msgspec.Struct, frozen=True):
    """Milliseconds of Python and of LLVM for a kernel, medians over fresh processes, and how many times
    LLVM's Python's may be."""

    what: str
    python_ms: float
    llvm_ms: float
    limit: float

    @property
    def ratio(self) -> float:
        return self.python_ms / self.llvm_ms

    @property
    def is_met(self) -> bool:
        return self.ratio <= self.limit


class Startup(msgspec.Struct, frozen=True):
    """Milliseconds in fresh processes until something is there, and what is wanted (None: nothing);
    whether LLVM was loaded for it, None where that is not known."""

    what: str
    median_ms: float
    samples_ms: tuple[float, ...]
    limit_ms: float | None
    loads_llvm: bool | None

    @property
    def is_met(self) -> bool:
        is_soon = self.limit_ms is None or self.median_ms < self.limit_ms
        return is_soon and not self.loads_llvm


class CallCost(msgspec.Struct, frozen=True):
    """Microseconds of a call that has next to nothing to do, and what is wanted (None: nothing)."""

    op: str
    what: str
    median_us: float
    limit_us: float | None

    @property
    def is_met(self) -> bool:
        return self.limit_us is None or self.median_us < self.limit_us


class Run(msgspec.Struct, frozen=True):
    """One run of the benchmark."""

    date: str
    machine: Machine
    versions: dict[str, str]
    settings: dict[str, str]
    rooflines: tuple[Roofline, ...]
    cells: tuple[Cell, ...] = ()
    compile_times: tuple[CompileTime, ...] = ()
    python_shares: tuple[PythonShare, ...] = ()
    startups: tuple[Startup, ...] = ()
    call_costs: tuple[CallCost, ...] = ()
    missing: dict[str, str] = {}


def file_name(run: Run) -> str:
    """The date and the machine, as in `2026-11-21-2115-amd-epyc.json`."""
    stamp = re.sub(r"[^0-9-]", "", run.date.replace("T", "-"))[:15]
    return f"{stamp}-{run.machine.name}.json"


def save(run: Run, folder: Path = RESULTS) -> Path:
    """Writes the run's file and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(run)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
    return path


def load(path: Path) -> Run:
    """A stored run."""
    return msgspec.json.decode(path.read_bytes(), type=Run)

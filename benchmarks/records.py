"""The stored data of a run, one file per run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from benchmarks.machine.machine_description import MachineDescription
from benchmarks.machine.roofline import Roofline
from benchmarks.matrices import Kind

FAILED = "FAILED"
"""Prefix of names in `missing` that were requested but failed."""

RESULTS = Path(__file__).parent / "results"


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One contender's median time in milliseconds, its largest error, its shares of the measured bandwidth
    and peak, and the time in which it converts the matrix from CSR once, before (None: it does not)."""

    median_ms: float
    max_rel_error: float
    of_bandwidth: float | None = None
    of_peak: float | None = None
    conversion_ms: float | None = None

    @property
    def of_bound(self) -> float | None:
        """The share of the roofline bound that is reached: the larger of both shares."""
        if self.of_bandwidth is None or self.of_peak is None:
            return None
        # The bound is the slower one of moving and computing, of which the share is the larger one.
        return max(self.of_bandwidth, self.of_peak)


class Cell(msgspec.Struct, frozen=True):
    """One problem with one number of threads, and the figures of all contenders.

    The machine needs at least `bound_ms` to move `least_bytes` and do `operations`. `working_bytes`
    is the size of all arrays of a call, `cache_bytes` that of the available caches.
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
    is_disturbed: bool

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


DoneBefore: TypeAlias = Literal["another kernel", "imports", "import gossamer"]
"""The state of a fresh process before the measurement."""


class CompileTime(msgspec.Struct, frozen=True):
    """Median milliseconds from script to callable in fresh processes: with an empty cache, the part of
    LLVM (parsing, passes, code generation), and from the request cache. `before_ms` is the time that the
    process took before."""

    op: str
    features: int
    done_before: DoneBefore
    before_ms: float
    uncached_ms: float
    llvm_ms: float
    cached_ms: float


FirstCallState: TypeAlias = Literal["first call", "second kernel"]
"""The call that is measured: the first one of a fresh process, or the first one of an operator after a call
of another."""


class FirstCall(msgspec.Struct, frozen=True):
    """Milliseconds of a call with nothing cached: the median over fresh processes, the least time of the CPU,
    and the limit of the latter (None: none). It includes imports in a first call."""

    op: str
    features: int
    state: FirstCallState
    median_ms: float
    least_cpu_ms: float
    limit_ms: float | None

    @property
    def is_met(self) -> bool:
        return self.limit_ms is None or self.least_cpu_ms <= self.limit_ms


class PythonShare(msgspec.Struct, frozen=True):
    """Median milliseconds of Python and of LLVM for a kernel in fresh processes, and the limit of their
    ratio."""

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
    """Median milliseconds of an import or command in fresh processes, its limit (None: none), and
    whether it loaded LLVM (None: unknown)."""

    what: str
    median_ms: float
    limit_ms: float | None
    loads_llvm: bool | None

    @property
    def is_met(self) -> bool:
        is_soon = self.limit_ms is None or self.median_ms < self.limit_ms
        # What compiles nothing must not load LLVM, even on a machine where that is quick.
        return is_soon and not self.loads_llvm


class CallCost(msgspec.Struct, frozen=True):
    """Microseconds of a call on one element, and its limit (None: none)."""

    op: str
    what: str
    median_us: float
    limit_us: float | None

    @property
    def is_met(self) -> bool:
        return self.limit_us is None or self.median_us < self.limit_us


class MiniBatches(msgspec.Struct, frozen=True):
    """Calls on many different matrices of `rows` rows of a graph in one process: the growth of its resident
    memory, the files written after the first hundred, the microseconds of a call besides its kernel, and
    those of SciPy's whole product."""

    graph: str
    batches: int
    rows: int
    grown_mb: float
    late_files: int
    overhead_us: float
    scipy_us: float

    @property
    def is_met(self) -> bool:
        return self.grown_mb < 5 and self.late_files == 0 and self.overhead_us <= 25


class ConversionTime(msgspec.Struct, frozen=True):
    """Median milliseconds of a conversion by gossamer and by SciPy, on one thread in turns."""

    matrix: str
    nnz: int
    source: str
    target: str
    gossamer_ms: float
    scipy_ms: float

    @property
    def ratio(self) -> float:
        """The time of SciPy over that of gossamer."""
        return self.scipy_ms / self.gossamer_ms


class FormatBuild(msgspec.Struct, frozen=True):
    """Seconds to store a matrix in CSR in another format on two threads: the median, and those of the first
    call, which may compile."""

    format: str
    nnz: int
    seconds: float
    first_seconds: float

    @property
    def is_met(self) -> bool:
        return self.seconds <= 0.3


class ProgramTime(msgspec.Struct, frozen=True):
    """Milliseconds of a program of a paper on real inputs: in one of our formats (`is_ours`), or without
    gossamer. `relative_error` is that of the result over the allowed one."""

    program: str
    case: str
    what: str
    is_ours: bool
    threads: int
    median_ms: float
    prepare_seconds: float
    relative_error: float


class ChoiceTime(msgspec.Struct, frozen=True):
    """Milliseconds of an operator with a matrix in each format, by the text of the format, the one that the
    model of `gossamer.prepare` chose, and the cycles that the model expected."""

    matrix: str
    op: str
    features: int
    dtype: str
    threads: int
    chosen: str
    expected_cycles: dict[str, float]
    times_ms: dict[str, float]

    @property
    def best(self) -> str:
        """The fastest format."""
        return min(self.times_ms, key=self.times_ms.__getitem__)

    @property
    def of_best(self) -> float:
        """The time of the fastest format over that of the chosen one."""
        return self.times_ms[self.best] / self.times_ms[self.chosen]

    @property
    def of_csr(self) -> float:
        """The time of CSR over that of the chosen format."""
        return self.times_ms["csr"] / self.times_ms[self.chosen]


class Run(msgspec.Struct, frozen=True):
    """One run of the benchmark. `name` is what the name of its file says besides that of the machine (None:
    nothing); `foreign` is the mean of processors that other processes used (None: not recorded)."""

    date: str
    machine: MachineDescription
    versions: dict[str, str]
    settings: dict[str, str]
    rooflines: tuple[Roofline, ...]
    cells: tuple[Cell, ...] = ()
    compile_times: tuple[CompileTime, ...] = ()
    first_calls: tuple[FirstCall, ...] = ()
    python_shares: tuple[PythonShare, ...] = ()
    startups: tuple[Startup, ...] = ()
    call_costs: tuple[CallCost, ...] = ()
    mini_batches: tuple[MiniBatches, ...] = ()
    conversion_times: tuple[ConversionTime, ...] = ()
    format_builds: tuple[FormatBuild, ...] = ()
    program_times: tuple[ProgramTime, ...] = ()
    choice_times: tuple[ChoiceTime, ...] = ()
    missing: dict[str, str] = {}
    name: str | None = None
    foreign: float | None = None


def file_name(run: Run) -> str:
    """Return a name of machine and run, so that a run replaces the last such one of the same CPU."""
    return "-".join(filter(None, (run.machine.name, run.name))) + ".json"


def save(run: Run, folder: Path = RESULTS) -> Path:
    """Write the run's file, in place of an older run with the same name, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(run)
    path.write_bytes(_lines(run))
    return path


def _lines(run: Run) -> bytes:
    """Return a run as JSON with a line for each cell and record, so that a difference shows what was
    measured anew."""
    fields = []
    for name, value in msgspec.to_builtins(run).items():
        separator, ends = (
            (b",\n  ", (b"[\n  ", b"\n ]")) if _is_records(value) else (b"", (b"", b""))
        )
        items = value if _is_records(value) else [value]
        text = separator.join(map(msgspec.json.encode, items))
        fields.append(msgspec.json.encode(name) + b": " + ends[0] + text + ends[1])
    return b"{\n " + b",\n ".join(fields) + b"\n}\n"


def _is_records(value: object) -> bool:
    return isinstance(value, (list, tuple)) and bool(value)


def load(path: Path) -> Run:
    """Load a stored run."""
    return msgspec.json.decode(path.read_bytes(), type=Run)


def stored_runs(folder: Path = RESULTS) -> dict[Path, Run]:
    """Return all stored runs in the order of vendors and names."""
    runs = ((path, load(path)) for path in folder.glob("*.json"))
    return dict(sorted(runs, key=lambda pair: (pair[1].machine.vendor, *_names(pair[1]))))


def _names(run: Run) -> tuple[str, bool, str]:
    """Return the key by which the runs of a vendor are sorted; the one without a name comes first."""
    return run.machine.name, run.name is not None, str(run.name)

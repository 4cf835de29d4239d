"""The data of a run: what is stored, one file per run."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from benchmarks.machine import Machine
from benchmarks.roofline import Roofline

RESULTS = Path(__file__).parent / "results"


class Figure(msgspec.Struct, frozen=True):
    """One contender's time: the samples of the rounds in milliseconds and the largest error."""

    samples_ms: tuple[float, ...]
    max_rel_error: float

    @property
    def median_ms(self) -> float:
        return statistics.median(self.samples_ms)


class Cell(msgspec.Struct, frozen=True):
    """One problem with one number of threads, and everybody's figure."""

    op: str
    matrix: str
    shape: tuple[int, int]
    nnz: int
    features: int
    threads: int
    least_bytes: int
    operations: int
    bound_ms: float | None
    figures: dict[str, Figure]
    skipped: dict[str, str]
    thrown_away: int
    is_disturbed: bool

    def ratio(self, peer: str, ours: str) -> float | None:
        """The peer's median over ours: above one, ours is faster."""
        if peer not in self.figures or ours not in self.figures:
            return None
        return self.figures[peer].median_ms / self.figures[ours].median_ms

    def fraction(self, name: str) -> float | None:
        """How much of what the machine can do the contender reaches."""
        return None if self.bound_ms is None else self.bound_ms / self.figures[name].median_ms


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


class Run(msgspec.Struct, frozen=True):
    """One run of the benchmark."""

    date: str
    machine: Machine
    versions: dict[str, str]
    settings: dict[str, str]
    rooflines: tuple[Roofline, ...]
    cells: tuple[Cell, ...] = ()
    compile_times: tuple[CompileTime, ...] = ()
    skipped_matrices: dict[str, str] = {}


def file_name(run: Run) -> str:
    """The date and the machine, as in `2026-11-21-2115-amd-epyc.json`."""
    stamp = re.sub(r"[^0-9-]", "", run.date.replace("T", "-"))[:15]
    machine = re.sub(r"[^a-z0-9]+", "-", run.machine.cpu.lower()).strip("-")
    return f"{stamp}-{machine}.json"


def save(run: Run, folder: Path = RESULTS) -> Path:
    """Writes the run's file and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(run)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
    return path


def load(path: Path) -> Run:
    """A stored run."""
    return msgspec.json.decode(path.read_bytes(), type=Run)

"""The data of a run on a GPU."""

from __future__ import annotations

import msgspec

CORRECT = "correct"


class GpuCheck(msgspec.Struct, frozen=True):
    """A program whose results were compared: a suite, its name, and `correct`, or what is wrong, or why it
    was not run."""

    suite: str
    name: str
    outcome: str
    is_wrong: bool = False


class GpuTime(msgspec.Struct, frozen=True):
    """The median milliseconds of each contender, with nothing in the second-level cache before a call, and
    why others are missing. `errors` are relative. `digest` is that of the code of gossamer's kernel."""

    op: str
    matrix: str
    shape: tuple[int, int]
    nnz: int
    features: int
    dtype: str
    medians: dict[str, float]
    missing: dict[str, str]
    errors: dict[str, float]
    digest: str | None = None


class GpuRun(msgspec.Struct, frozen=True, kw_only=True):
    """The date and the machine of a run, and its results."""

    date: str
    target: str
    gpu: str
    compute_capability: tuple[int, int]
    driver: str
    cuda: str
    versions: dict[str, str]
    checks: tuple[GpuCheck, ...]
    times: tuple[GpuTime, ...]

    @property
    def is_wrong(self) -> bool:
        """True if a result was wrong."""
        return any(check.is_wrong for check in self.checks)

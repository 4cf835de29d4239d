"""Goals for the ratios of a run on a GPU: the time of the fastest other contender over that of gossamer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.contenders import OURS
from benchmarks.goals import REAL_GRAPHS, geometric_mean
from benchmarks.gpu.gpu_contenders import MATMUL_24
from benchmarks.gpu.gpu_records import GpuTime
from benchmarks.text_tables import Sheet


class GpuGoal(NamedTuple):
    """A goal for the cases of an operator with a dtype."""

    op: str
    dtype: str
    contenders: tuple[str, ...]
    """The fastest of those that took part in a case counts."""
    mean: float
    """The geometric mean of the ratios."""
    least: float | None = None
    """The least ratio."""
    matrices: tuple[str, ...] = ()
    """The matrices that the goal is about; all if there are none."""
    features: tuple[int, ...] = ()
    """The numbers of features that the goal is about; all if there are none."""
    min_rows: int = 0
    """The rows and columns that a matrix must have."""

    @property
    def text(self) -> str:
        contenders = " or ".join(self.contenders)
        least = "" if self.least is None else f", never below {self.least:g}"
        return f"{self.op} {self.dtype} against {contenders}: {self.mean:g}{least}"

    def is_about(self, time: GpuTime) -> bool:
        """Return whether a case counts."""
        return (
            (time.op, time.dtype) == (self.op, self.dtype)
            and (not self.matrices or time.matrix in self.matrices)
            and (not self.features or time.features in self.features)
            and min(time.shape) >= self.min_rows
        )

    def ratio(self, time: GpuTime) -> float | None:
        """Return the time of the fastest other contender over that of gossamer, or None if either is
        missing."""
        others = [time.medians[name] for name in self.contenders if name in time.medians]
        if OURS not in time.medians or not others:
            return None
        return min(others) / time.medians[OURS]

    def ratios(self, times: Sequence[GpuTime]) -> list[float]:
        """Return the ratios of the cases that count."""
        ratios = (self.ratio(time) for time in times if self.is_about(time))
        return [ratio for ratio in ratios if ratio is not None]


CUSPARSE = ("cusparse", "torch", "cupy")
GPU_GOALS = (
    GpuGoal("spmm", "float32", CUSPARSE, 1.5, 0.9, REAL_GRAPHS, (32, 64, 128, 256, 512)),
    GpuGoal("sddmm", "float32", ("torch",), 1.5, matrices=REAL_GRAPHS),
    GpuGoal(MATMUL_24, "float16", ("cusparselt",), 1.0, 1.0, min_rows=4096),
    GpuGoal(MATMUL_24, "float16", ("torch",), 1.3, min_rows=4096),
)
"""The goals on an H200. PyTorch multiplies dense matrices by cuBLAS, and samples products by cuSPARSE."""


def gpu_goals_sheet(times: Sequence[GpuTime]) -> Sheet:
    """Return the ratios that are wanted beside those that were measured."""
    rows: list[tuple[str, ...]] = []
    for goal in GPU_GOALS:
        ratios = goal.ratios(times)
        if not ratios:
            rows.append((goal.text, "0", "-", "-", "not measured"))
            continue
        mean, least = geometric_mean(ratios), min(ratios)
        is_met = mean >= goal.mean and (goal.least is None or least >= goal.least)
        cells = (str(len(ratios)), f"{mean:.2f}", f"{least:.2f}")
        rows.append((goal.text, *cells, "met" if is_met else "missed"))
    return Sheet(
        "goals: time of the fastest other contender over that of gossamer",
        ("goal", "cases", "mean", "least", "outcome"),
        rows=rows,
    )

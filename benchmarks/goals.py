"""Goals for the ratios of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.peers import OURS
from benchmarks.records import Cell


def geometric_mean(values: Sequence[float]) -> float:
    """Returns the geometric mean.

    >>> geometric_mean([0.5, 2.0, 8.0])
    2.0
    """
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def anywhere(cell: Cell) -> bool:
    """True for all cells."""
    return True


def in_cache(cell: Cell) -> bool:
    """True if the arrays of a call fit the caches."""
    return cell.fits_cache


def on_graphs(cell: Cell) -> bool:
    """True for graphs whose arrays do not fit the caches."""
    return cell.kind == "graph" and not cell.fits_cache


def on_cora_128(cell: Cell) -> bool:
    """True for the small graph with 128 features."""
    return (cell.matrix, cell.features) == ("cora", 128)


@dataclass(frozen=True)
class Goal:
    """A goal for the ratios over the float32 cells of an operator with a number of threads. Of several
    peers, the fastest in each cell counts. Disturbed cells do not count."""

    op: str
    peers: tuple[str, ...]
    threads: int
    mean: float
    least: float = 0.0
    where: Callable[[Cell], bool] = anywhere
    ours: str = OURS

    def ratios(self, cells: Iterable[Cell], ours: str) -> list[float]:
        """Returns the peers' best time over ours, for each cell in which all peers took part."""
        found = []
        for cell in cells:
            ratios = [cell.ratio(peer, ours) for peer in self.peers]
            known = [ratio for ratio in ratios if ratio is not None]
            if self.is_about(cell) and not cell.is_disturbed and len(known) == len(ratios):
                found.append(min(known))
        return found

    def is_about(self, cell: Cell) -> bool:
        """True if the cell counts for the goal."""
        found = (cell.op, cell.threads, cell.dtype)
        return found == (self.op, self.threads, "float32") and self.where(cell)

    @property
    def place(self) -> str:
        """Describes the cells that count."""
        return "" if self.where is anywhere else self.where.__name__.replace("_", " ")


PYTHON_SHARES = {
    "spmm, all but LLVM": 1.0,
    "spmv, all but LLVM": 1.0,
    "sddmm, all but LLVM": 1.0,
    "200 nodes, lowering": 1.0,
    "spmm, replaying 30 steps": 2.0,
}
"""Goals for the time of Python divided by that of LLVM for the same kernel, by subject of `python_share`."""

ATTENTION_PEERS = ("scipy", "mkl_plain", "numba", "torch")
SDDMM_PEERS = ("torch", "numba", "taco_like")
GOALS = (
    Goal("spmm", ("mkl",), threads=2, mean=1.0, least=0.8),
    Goal("spmm", ("scipy",), threads=2, mean=3.0),
    Goal("spmm", ("mkl",), threads=2, mean=1.1, where=on_cora_128, ours="gossamer_op"),
    Goal("spmv", ("scipy", "numba", "mkl_plain"), threads=2, mean=1.0),
    Goal("spmv", ("scipy", "numba", "mkl_plain"), threads=1, mean=1.0),
    Goal("sddmm", SDDMM_PEERS, threads=2, mean=2.0, least=1.0, where=in_cache),
    Goal("sddmm", SDDMM_PEERS, threads=2, mean=1.3, least=1.0, where=on_graphs),
    Goal("attention", ATTENTION_PEERS, threads=2, mean=1.3, least=1.0),
    Goal("attention", ("torch",), threads=2, mean=2.5, least=1.0),
    Goal("bsr_spmm", ("mkl",), threads=2, mean=1.0, least=1.0),
    Goal("bsr_spmm", ("mkl_bsr",), threads=2, mean=2.0, least=2.0),
)

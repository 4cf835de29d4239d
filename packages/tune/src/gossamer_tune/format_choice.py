"""The choice of the format in which a matrix is multiplied fastest, with its conversion."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gossamer_tune.features.matrix_features import MatrixFeatures
from gossamer_tune.model.blocks_times_dense import blocks_times_dense
from gossamer_tune.model.csr_times_dense import csr_times_dense
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.tiles_times_dense import tiles_times_dense
from gossamer_tune.model.workload import Workload

MODELS: tuple[Callable[[MatrixFeatures, Workload], tuple[Estimate, ...]], ...] = (
    csr_times_dense,
    tiles_times_dense,
    blocks_times_dense,
)
"""The models of costs, one file each. The first one is that of CSR, which every matrix has."""

LEAST_GAIN = 1.05
"""Expected speedup over CSR from which another format is chosen: the model is not more exact than that."""


class FormatChoice(NamedTuple):
    """The chosen format for a number of calls, and the estimates for all formats, the best first."""

    chosen: Estimate
    estimates: tuple[Estimate, ...]
    calls: int

    @property
    def speedup(self) -> float:
        """The expected speedup of a call over CSR, without the conversion."""
        csr = next(found for found in self.estimates if found.format == "csr")
        return csr.cycles / self.chosen.cycles if self.chosen.cycles else 1.0

    @property
    def paying_calls(self) -> int | None:
        """The number of calls from which the conversion to the chosen format pays; None for CSR."""
        csr = next(found for found in self.estimates if found.format == "csr")
        gain = csr.cycles - self.chosen.cycles
        return None if gain <= 0 else int(self.chosen.conversion_cycles / gain) + 1

    def __str__(self) -> str:
        lines = [f"{self.chosen.text}: {self.chosen.reason}"]
        for found in self.estimates:
            lines.append(
                f"  {found.text}: {found.cycles:.3g} cycles a call, "
                f"{found.conversion_cycles:.3g} for the conversion; {found.reason}"
            )
        return "\n".join(lines)


def choose_format(features: MatrixFeatures, workload: Workload, *, calls: int) -> FormatChoice:
    """Return the format with the least expected time of its conversion and so many calls.

    >>> from scipy.sparse import block_diag
    >>> import numpy as np
    >>> from gossamer_tune import Workload, features_of
    >>> matrix = block_diag([np.ones((4, 4))] * 100, format="csr")
    >>> features = features_of(matrix.shape, matrix.indptr, matrix.indices)
    >>> choose_format(features, Workload("spmm", features=64), calls=10_000).chosen.text
    'bsr (block_rows=4, block_columns=4)'
    >>> choose_format(features, Workload("spmm", features=64), calls=1).chosen.text
    'csr'
    """
    found = [estimate for model in MODELS for estimate in model(features, workload)]
    best = min(found, key=lambda estimate: estimate.total(calls))
    csr = found[0]
    chosen = best if best.total(calls) * LEAST_GAIN <= csr.total(calls) else csr
    return FormatChoice(chosen, tuple(sorted(found, key=lambda each: each.cycles)), calls)

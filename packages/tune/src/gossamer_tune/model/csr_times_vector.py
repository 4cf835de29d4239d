"""The cost of CSR times a vector."""

from __future__ import annotations

from gossamer_tune.model.element_loads import EXPOSED_CYCLES, LATE_CYCLES, level_of
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

ELEMENT_CYCLES = 0.95
"""Cycles for an element: the loads of its column, of its value and of the vector's element (measured on long
rows: 0.95 to 1.05 on Sapphire Rapids, 1.1 on Zen 4)."""

ROW_CYCLES, MISPREDICTED_CYCLES = 3.0, 12.0
"""Cycles for a row, and for the end of its loop if the length of the row cannot be predicted (15 in all for
rows of 4 elements on average)."""


def csr_times_vector(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate of the matrix as it is."""
    if workload.columns > 1:
        return ()
    level = level_of(matrix.columns * workload.element_bytes, workload.hardware)
    varied = min(1.0, matrix.row_deviation)
    row = ROW_CYCLES + varied * (MISPREDICTED_CYCLES + EXPOSED_CYCLES[level])
    cycles = matrix.nnz * (ELEMENT_CYCLES + LATE_CYCLES[level]) + matrix.rows * row
    reason = (
        f"rows have {matrix.mean_row:.3g} elements on average (deviation "
        f"{matrix.row_deviation:.3g}), and the ends of {varied:.0%} are mispredicted"
    )
    return (Estimate("csr", {}, cycles, 0.0, reason),)

"""The cost of CSR times a vector."""

from __future__ import annotations

from gossamer_ir.sizing.short_rows import are_lanes
from gossamer_tune.model.element_loads import EXPOSED_CYCLES, LATE_CYCLES, level_of
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.streamed_values import COLUMN_BYTES, with_streamed
from gossamer_tune.model.thread_costs import on_threads
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties, scheduled_stats

ELEMENT_CYCLES = 0.95
"""Cycles for an element: the loads of its column, of its value and of the vector's element (measured on long
rows: 0.95 to 1.05 on Sapphire Rapids, 1.1 on Zen 4)."""

ROW_CYCLES, MISPREDICTED_CYCLES = 3.0, 12.0
"""Cycles for a row, and for the end of its loop if the length of the row cannot be predicted (15 in all for
rows of 4 elements on average)."""

LANE_ROW_CYCLES = 4.4
"""Cycles for a short row that is a lane of a vector (measured on rows of 2 and 4 elements on Emerald
Rapids)."""


def csr_times_vector(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate of the matrix as it is."""
    if workload.columns > 1:
        return ()
    level = level_of(matrix.columns * workload.element_bytes, workload.hardware)
    varied = min(1.0, matrix.row_deviation)
    row = ROW_CYCLES + varied * (MISPREDICTED_CYCLES + EXPOSED_CYCLES[level])
    ends = f"the ends of {varied:.0%} are mispredicted"
    if are_lanes(workload.hardware, scheduled_stats(matrix)):
        row, ends = LANE_ROW_CYCLES, "several are lanes of a vector"
    computed = matrix.nnz * (ELEMENT_CYCLES + LATE_CYCLES[level]) + matrix.rows * row
    stored = matrix.nnz * (workload.element_bytes + COLUMN_BYTES)
    cycles = on_threads(with_streamed(computed, stored, workload), workload)
    reason = (
        f"rows have {matrix.mean_row:.3g} elements on average (deviation "
        f"{matrix.row_deviation:.3g}), and {ends}"
    )
    return (Estimate("csr", {}, cycles, 0.0, reason),)

"""The cost of slices of rows (format `sell`) times a vector."""

from __future__ import annotations

from gossamer_tune.model.element_loads import LATE_CYCLES, level_of
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties
from gossamer_tune.properties.slices import HEIGHT

SLOT_CYCLES = 1.4
"""Cycles for a slot of a row (measured on long rows: 1.3 to 1.45 on Sapphire Rapids)."""

SLICE_CYCLES = 20.0
"""Cycles for a slice besides its slots: its results are stored to rows in any order, and the end of its loop
may be mispredicted."""

CONVERSION_CYCLES = 30.0
"""Cycles for a slot that is converted."""


def slices_times_vector(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate for slices of 8 rows, sorted by length in windows. Products with matrices of one
    column do not compute with slices."""
    if workload.features is not None:
        return ()
    slots = matrix.nnz / matrix.slice_fill
    level = level_of(matrix.columns * workload.element_bytes, workload.hardware)
    cycles = slots * SLOT_CYCLES + matrix.nnz * LATE_CYCLES[level]
    cycles += -(-matrix.rows // HEIGHT) * SLICE_CYCLES
    reason = (
        f"rows in lanes have no ends to predict, and slices are filled to {matrix.slice_fill:.0%}"
    )
    return (Estimate("sell", {"height": HEIGHT}, cycles, slots * CONVERSION_CYCLES, reason),)

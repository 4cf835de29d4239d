"""The cost of blocks (format `bsr`) times a dense matrix."""

from __future__ import annotations

from gossamer_tune.features.matrix_features import MatrixFeatures
from gossamer_tune.model.csr_times_dense import RESULT_CYCLES, ROW_CYCLES
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import load_cycles
from gossamer_tune.model.workload import Workload

LEAST_FILL = 0.3
"""Blocks with less elements than this fraction of their slots are not considered."""

SLOT_CYCLES = 1.1
"""Cycles for the multiply-add of a slot and a vector."""

CONVERSION_CYCLES = 120.0
"""Cycles for a slot that is converted."""


def blocks_times_dense(features: MatrixFeatures, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for square blocks that are filled well enough and divide the matrix."""
    if workload.features == 1:
        return ()
    return tuple(
        _estimate(features, workload, size, fill)
        for size, fill in features.block_fill.items()
        if fill >= LEAST_FILL and not features.rows % size and not features.columns % size
    )


def _estimate(features: MatrixFeatures, workload: Workload, size: int, fill: float) -> Estimate:
    slots = features.nnz / fill
    operand = features.columns * workload.features * workload.element_bytes
    # A row of the operand is loaded once for all rows of a block.
    load = max(load_cycles(operand, workload.hardware) - 1, 0.0) / size
    cycles = slots * workload.vectors * (SLOT_CYCLES + load)
    cycles += features.rows / size * ROW_CYCLES + features.rows * workload.vectors * RESULT_CYCLES
    reason = f"blocks of {size} by {size} are filled to {fill:.0%}"
    parameters = {"block_rows": size, "block_columns": size}
    return Estimate("bsr", parameters, cycles, slots * CONVERSION_CYCLES, reason)

"""The cost of blocks (format `bsr`) times a dense matrix."""

from __future__ import annotations

from gossamer_tune.model.csr_times_dense import RESULT_CYCLES
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import gather_cycles
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

MIN_FILL = 0.3
"""Blocks with less elements than this fraction of their slots are not considered."""

SLOT_CYCLES = 0.6
"""Cycles for the multiply-add of a slot and a vector in registers."""

BROADCAST_CYCLES, BROADCAST_VECTORS = 1.5, 4
"""Cycles to broadcast a slot, which is multiplied by so many vectors at most."""

BLOCK_ROW_CYCLES = 25.0
"""Cycles for a row of blocks, besides its blocks and its results."""

CONVERSION_CYCLES = 120.0
"""Cycles for a slot that is converted."""


def blocks_times_dense(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for square blocks that are filled well enough and divide the matrix."""
    if workload.columns == 1:
        return ()
    return tuple(
        _estimate(matrix, workload, size, fill)
        for size, fill in matrix.block_fill.items()
        if fill >= MIN_FILL and not matrix.rows % size and not matrix.columns % size
    )


def _estimate(matrix: MatrixProperties, workload: Workload, size: int, fill: float) -> Estimate:
    slots = matrix.nnz / fill
    row_bytes = workload.columns * workload.element_bytes
    # A vector of the operand is loaded once for all rows of a block.
    load = gather_cycles(matrix, row_bytes, workload.hardware) / size
    broadcasts = -(-workload.vectors // BROADCAST_VECTORS)
    cycles = slots * (workload.vectors * (SLOT_CYCLES + load) + broadcasts * BROADCAST_CYCLES)
    cycles += matrix.rows / size * BLOCK_ROW_CYCLES + matrix.rows * workload.vectors * RESULT_CYCLES
    reason = f"blocks of {size} by {size} are filled to {fill:.0%}"
    parameters = {"block_rows": size, "block_columns": size}
    return Estimate(
        "bsr", parameters, cycles, slots * CONVERSION_CYCLES, reason, adds_zeros=fill < 1
    )

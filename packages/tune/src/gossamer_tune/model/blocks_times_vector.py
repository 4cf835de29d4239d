"""The cost of blocks (format `bsr`) times a vector."""

from __future__ import annotations

from gossamer_machine.sizing.block_lanes import MIN_LANE_COLUMNS
from gossamer_tune.model.blocks_times_dense import CONVERSION_CYCLES, MIN_FILL
from gossamer_tune.model.element_loads import late_cycles
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.streamed_values import vector_product_cycles
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

VECTOR_CYCLES, MASKED_CYCLES = 0.68, 1.5
"""Cycles for a vector of a row of a block: a load and a multiply-add; and with a mask, if a row does not fill
the vector. The column of the block and the part of the vector are hidden beside them (fitted as
`csr_times_vector` says, as is the constant below)."""

LANE_SUM_CYCLES = 23.0
"""Cycles for a row of blocks: the sums of its lanes, and the end of its loop."""


def blocks_times_vector(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for square blocks that are filled well enough and divide the matrix. Products with
    matrices of one column do not compute with them."""
    if workload.features is not None:
        return ()
    return tuple(
        _estimate(matrix, workload, size, fill)
        for size, fill in matrix.block_fill.items()
        if size >= MIN_LANE_COLUMNS
        and fill >= MIN_FILL
        and not matrix.rows % size
        and not matrix.columns % size
    )


def _estimate(matrix: MatrixProperties, workload: Workload, size: int, fill: float) -> Estimate:
    slots = matrix.nnz / fill
    lanes = workload.machine.lanes(workload.dtype, holding=size)
    vector = VECTOR_CYCLES if size % lanes == 0 else MASKED_CYCLES
    block = late_cycles(matrix, workload) + size * -(-size // lanes) * vector
    computed = slots / size**2 * block + matrix.rows / size * LANE_SUM_CYCLES
    cycles = vector_product_cycles(computed, slots, workload, block=size)
    reason = (
        f"blocks of {size} by {size} are filled to {fill:.0%}, and share the loads of the vector"
    )
    parameters = {"block_rows": size, "block_columns": size}
    conversion = slots * CONVERSION_CYCLES
    return Estimate("bsr", parameters, cycles, conversion, reason, adds_zeros=fill < 1)

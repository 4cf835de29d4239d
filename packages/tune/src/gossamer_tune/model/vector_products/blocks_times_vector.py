"""The cost of blocks (format `bsr`) times a vector."""

from __future__ import annotations

from gossamer_heuristics.blocks import are_columns_lanes
from gossamer_tune.model.blocks_times_dense import CONVERSION_CYCLES
from gossamer_tune.model.element_loads import late_cycles
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.streamed_values import vector_product_cycles
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

MIN_FILL = 0.2
"""Blocks with less elements than this fraction of their slots are not considered. On Zen 4, which reads
matrices fast, blocks that are filled to 30 percent are 1.3 to 1.5 times as fast as CSR."""

VECTOR_CYCLES, MASKED_CYCLES = PerCpu(0.68, 1.8, 0.56), PerCpu(1.3, 6.2)
"""Cycles for a vector of a row of a block: a load and a multiply-add; and with a mask, if a row does not fill
the vector (fitted as `csr_times_vector` says, as are the constants below; those of Emerald Rapids again, all
together, to 48 cases of blocks of 3 to 16, so that the mean error of the speedup over CSR is 16 percent
instead of 19, and no size of blocks is expected to be faster than it is)."""

BLOCK_CYCLES = PerCpu(2.0, 0.0, 0.54)
"""Cycles for a block: its column, its part of the vector, and the end of the loop over its rows. On Zen 4
they are hidden beside the vectors."""

NARROW_PART = PerCpu(1.0, 0.2, 0.53)
"""Cycles for a vector of half of a register or less in proportion to those for a whole one, which Zen 4
computes in two halves."""

LANE_SUM_CYCLES = PerCpu(16.0, 23.0)
"""Cycles for a row of blocks: the sums of its lanes, and the end of its loop."""


def blocks_times_vector(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for square blocks that are filled well enough, divide the matrix and have
    registers for their sums. Products with matrices of one column do not compute with them."""
    if workload.features is not None:
        return ()
    return tuple(
        _estimate(matrix, workload, size, fill)
        for size, fill in matrix.block_fill.items()
        if are_columns_lanes(size, size, workload.machine)
        and fill >= MIN_FILL
        and not matrix.rows % size
        and not matrix.columns % size
    )


def _estimate(matrix: MatrixProperties, workload: Workload, size: int, fill: float) -> Estimate:
    machine, slots = workload.machine, matrix.nnz / fill
    lanes = machine.lanes(workload.dtype, holding=size)
    vector = (VECTOR_CYCLES if size % lanes == 0 else MASKED_CYCLES).on(machine)
    if 2 * lanes <= machine.lanes(workload.dtype):
        vector *= NARROW_PART.on(machine)
    vectors = size * -(-size // lanes) * vector
    block = BLOCK_CYCLES.on(machine) + late_cycles(matrix, workload) + vectors
    computed = slots / size**2 * block + matrix.rows / size * LANE_SUM_CYCLES.on(machine)
    cycles = vector_product_cycles(computed, slots, workload, block=size)
    reason = (
        f"blocks of {size} by {size} are filled to {fill:.0%}, and share the loads of the vector"
    )
    parameters = {"block_rows": size, "block_columns": size}
    conversion = slots * CONVERSION_CYCLES
    return Estimate("bsr", parameters, cycles, conversion, reason, adds_zeros=fill < 1)

"""The cost of slices of block rows (format `blocked_sell`) times a vector."""

from __future__ import annotations

from gossamer_tune.model.blocks_times_dense import MIN_FILL
from gossamer_tune.model.element_loads import late_cycles
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.streamed_values import vector_product_cycles
from gossamer_tune.model.vector_products.slices_times_vector import (
    SLOT_CYCLES,
    shared_row_cycles,
    slice_cycles,
)
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties
from gossamer_tune.properties.slices import HEIGHT

TERM_CYCLES = PerCpu(0.087, 0.087, 0.2)
"""Cycles for an element of a block: a load and a multiply-add of a vector for `HEIGHT` blocks (fitted as
`csr_times_vector` says; blocks of 3 by 3 take 3 to 3.3 cycles)."""

CONVERSION_CYCLES = 50.0
"""Cycles for a slot that is converted (measured on Emerald Rapids)."""


def blocked_slices_times_vector(
    matrix: MatrixProperties, workload: Workload
) -> tuple[Estimate, ...]:
    """Return the estimates for slices of 8 block rows, in square blocks that are filled well enough and whose
    columns divide those of the matrix. Products with matrices of one column do not compute with them."""
    if workload.features is not None:
        return ()
    return tuple(
        _estimate(matrix, workload, size, fill)
        for size, fill in matrix.block_fill.items()
        if 1 < size <= workload.machine.accumulators
        and fill >= MIN_FILL
        and not matrix.columns % size
    )


def _estimate(matrix: MatrixProperties, workload: Workload, size: int, fill: float) -> Estimate:
    machine, slots = workload.machine, matrix.nnz / fill / matrix.slice_fill[HEIGHT]
    block = size * (
        SLOT_CYCLES.on(machine) + late_cycles(matrix, workload)
    ) + size**2 * TERM_CYCLES.on(machine)
    slices = matrix.rows / size / HEIGHT
    computed = slots / size**2 * block + slices * size * slice_cycles(HEIGHT, machine)
    cycles = vector_product_cycles(computed, slots, workload, block=size)
    cycles += shared_row_cycles(matrix.rows, workload)
    reason = (
        f"blocks of {size} by {size} are filled to {fill:.0%}; block rows in lanes gather an element of the "
        "vector once for all rows of a block"
    )
    parameters = {"block_rows": size, "block_columns": size, "height": HEIGHT}
    conversion = slots * CONVERSION_CYCLES
    return Estimate("blocked_sell", parameters, cycles, conversion, reason, adds_zeros=fill < 1)

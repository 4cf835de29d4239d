"""The cost of diagonals in slices of rows (format `sliced_dia`) times a vector."""

from __future__ import annotations

from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.streamed_values import COLUMN_BYTES, with_streamed
from gossamer_tune.model.thread_costs import on_threads
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

DIAGONAL_HEIGHT = 32
"""Rows of a slice: the default of the format (C loops over stencils and bands in float32 on Emerald Rapids:
1.1 to 1.6 times as fast as slices of 16 rows on six of seven matrices, and 0.8 to 1.3 times as fast as those
of 64)."""

MIN_FILL = 0.75
"""Diagonals with less elements than this fraction of their slots are not considered: none was measured, and
the fill of slices of `DIAGONAL_HEIGHT` rows may be lower than that of the rows that are counted."""

VECTOR_CYCLES = PerCpu(5.0, 10.0)
"""Cycles for a vector of a diagonal: a load of the dense operand, whose lanes outside of it are masked, and a
multiply-add (estimated, not fitted, from the times of 7 stencils and bands on Emerald Rapids. Zen 4, where it
was not measured, computes vectors of 512 bits in two halves.)"""

SLICE_CYCLES = 20.0
"""Cycles for a slice besides its diagonals: its loop ends, and its results are stored."""

CONVERSION_CYCLES = 30.0
"""Cycles for a slot that is converted (measured on one thread of Emerald Rapids with three stencils: 19 to
30)."""


def sliced_diagonals_times_vector(
    matrix: MatrixProperties, workload: Workload
) -> tuple[Estimate, ...]:
    """Return the estimate for slices of 32 rows whose diagonals are filled well enough. Products with
    matrices of one column do not compute with them."""
    fill = matrix.diagonal_fill
    if workload.features is not None or fill < MIN_FILL:
        return ()
    machine, slots = workload.machine, matrix.nnz / fill
    vectors = slots / machine.lanes(workload.dtype)
    computed = vectors * VECTOR_CYCLES.on(machine) + matrix.rows / DIAGONAL_HEIGHT * SLICE_CYCLES
    stored = slots * (workload.element_bytes + COLUMN_BYTES / DIAGONAL_HEIGHT)
    cycles = on_threads(with_streamed(computed, stored, workload), workload)
    reason = (
        f"diagonals of neighboring rows are filled to {fill:.0%}; their columns are consecutive, so that "
        "vectors are loaded instead of gathered, and a diagonal has one index"
    )
    conversion = slots * CONVERSION_CYCLES
    return (
        Estimate(
            "sliced_dia",
            {"height": DIAGONAL_HEIGHT},
            cycles,
            conversion,
            reason,
            adds_zeros=fill < 1,
        ),
    )

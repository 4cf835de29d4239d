"""The cost of CSR times a vector."""

from __future__ import annotations

from gossamer_heuristics.row_lengths import are_lanes
from gossamer_tune.model.element_loads import late_cycles
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.streamed_values import vector_product_cycles
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties, scheduled_stats

ELEMENT_CYCLES = PerCpu(0.76, 0.53)
"""Cycles for an element: gathers of the vector's elements, beside which the loads of columns and values are
hidden (measured on Emerald Rapids, as all below: 0.72 for gathers of 8 elements from the first-level cache,
0.75 to 0.85 on rows of 200 elements and more)."""

ROW_CYCLES, MISPREDICTED_CYCLES = PerCpu(3.8, 9.1, 2.5), PerCpu(5.5, 15.0)
"""Cycles for a row, in which the last gather has half of its lanes and lanes are added; and for the end of
its loop, if lengths vary. Fitted, together with all costs of products with vectors, to 29 matrices in 2 to 9
formats on one thread and on two, in both precisions; the median error is 7 percent. Rows of 4 to 12 elements
take 6 to 12 cycles besides their elements, the more, the more rows there are to predict. (Slices of
rows are 1.01 times as fast in proportion to CSR as expected on Emerald Rapids, and 1.03 times with 4.7 cycles
for the end.)"""

PREDICTED_BRANCHES, PREDICTED_CYCLES = PerCpu(0, 0, 3 << 14), 3.75
"""Maximum number of elements and rows of a thread with which a processor predicts the ends of rows, if it
multiplies the same matrix again, and the cycles for an end then. (Measured on Zen 3 after 150 calls: rows of
6 random elements take 12 cycles with 35,000 elements and rows, 13 with 45,000, 17 with 50,000 and 26 with
56,000; those of a graph 11, 12 with 44,000, 13 with 55,000 and 18 with 72,000. Costs of the other kinds were
fitted without it.)"""

LANE_ROW_CYCLES = PerCpu(2.2, 12.0)
"""Cycles for a short row that is a lane of a vector (fitted to rows of 2 and 4 elements; on Zen 4 of 2, on
which lanes take 0.9 times as long as scalar code)."""


def csr_times_vector(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate of the matrix as it is."""
    if workload.columns > 1:
        return ()
    machine = workload.machine
    varied = min(1.0, matrix.lengths.deviation)
    branches = (matrix.nnz + matrix.rows) / workload.threads
    if branches <= PREDICTED_BRANCHES.on(machine):
        end, ends = PREDICTED_CYCLES, "their ends are few enough to be predicted"
    else:
        end = MISPREDICTED_CYCLES.on(machine)
        ends = f"the ends of {varied:.0%} are mispredicted"
    row = ROW_CYCLES.on(machine) + varied * end
    if are_lanes(machine, scheduled_stats(matrix)):
        row, ends = LANE_ROW_CYCLES.on(machine), "several are lanes of a vector"
    computed = (
        matrix.nnz * (ELEMENT_CYCLES.on(machine) + late_cycles(matrix, workload))
        + matrix.rows * row
    )
    cycles = vector_product_cycles(computed, matrix.nnz, workload)
    reason = (
        f"rows have {matrix.lengths.mean:.3g} elements on average (deviation "
        f"{matrix.lengths.deviation:.3g}), and {ends}"
    )
    return (Estimate("csr", {}, cycles, 0.0, reason),)

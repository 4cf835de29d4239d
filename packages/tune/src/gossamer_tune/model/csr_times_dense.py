"""The cost of CSR times a dense matrix."""

from __future__ import annotations

from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import gather_cycles
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

ELEMENT_CYCLES = 0.8
"""Cycles for the index and the value of an element, and for the addresses that follow."""

ROW_CYCLES, RESULT_CYCLES = 12.0, 6.0
"""Cycles for a row, most of them for the mispredicted end of its loop, and for a vector of its result."""


def csr_times_dense(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate of the matrix as it is."""
    if workload.columns == 1:
        return ()
    row_bytes = workload.columns * workload.element_bytes
    operand = matrix.columns * row_bytes
    # One more vector, because vectors are aligned to the cache lines of the operand.
    vectors = workload.vectors + 1
    load = gather_cycles(matrix, row_bytes, workload.hardware)
    cycles = matrix.nnz * (ELEMENT_CYCLES + vectors * load)
    cycles += matrix.rows * (ROW_CYCLES + RESULT_CYCLES * vectors)
    reason = (
        f"rows are selected from an operand of {operand / 1e6:.3g} MB, {matrix.fresh:.0%} of them not by "
        "neighboring rows"
    )
    return (Estimate("csr", {}, cycles, 0.0, reason),)

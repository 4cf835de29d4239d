"""The cost of CSR times a dense matrix, with the schedule that its sizes select.

The default schedule has one of three forms (`gossamer_schedule/rules/library/row_spmm.py`). Long rows of one
or two vectors are added to several sums, tiles of features of a large operand are packed, and in other cases
rows are selected from the operand where it is. Which one runs is decided here as there.
"""

from __future__ import annotations

from gossamer_ir.machine.packed_tiles import packed_vectors, tile_packing
from gossamer_ir.machine.packing import row_packing
from gossamer_ir.machine.partial_sums import summed_vectors
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import PACK_CYCLES, gather_cycles, load_cycles
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

ELEMENT_CYCLES = 0.8
"""Cycles for the index and the value of an element, and for the addresses that follow."""

ROW_CYCLES, RESULT_CYCLES = 12.0, 6.0
"""Cycles for a row, most of them for the mispredicted end of its loop, and for a vector of its result."""

SHORT_ROW_CYCLES, SHORT_RESULT_CYCLES = 6.0, 3.0
"""The same for at most a few vectors, whose registers are stored while the next row begins (fitted, as all
below, to pruned weights on Emerald Rapids)."""

TILE_ELEMENT_CYCLES = 1.1
"""Cycles for the index and the value of an element in each packed tile."""

SUMMED_PACK_CYCLES = 4.2
"""Cycles for a vector of an operand that is packed as a whole besides its load: its rows are adjacent."""

UNPACKED_SUM_LOADS = 2.7
"""Cost of a load from an operand that is not packed, of rows of one vector: nearly all cross a cache line."""


def csr_times_dense(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimate of the matrix as it is."""
    if workload.columns == 1:
        return ()
    found = _summed_rows(matrix, workload) or _packed_tiles(matrix, workload)
    return (found or _selected_rows(matrix, workload),)


def selected_rows_cycles(matrix: MatrixProperties, workload: Workload) -> float:
    """Return the cycles of a product in which rows are selected from the operand where it is."""
    # One more vector, because vectors are aligned to the cache lines of the operand.
    vectors = workload.vectors + 1
    load = gather_cycles(matrix, workload.row_bytes, workload.hardware)
    cycles = matrix.nnz * (ELEMENT_CYCLES + vectors * load)
    return cycles + matrix.rows * (ROW_CYCLES + RESULT_CYCLES * vectors)


def _selected_rows(matrix: MatrixProperties, workload: Workload) -> Estimate:
    operand = matrix.columns * workload.row_bytes
    reason = (
        f"rows are selected from an operand of {operand / 1e6:.3g} MB, {matrix.fresh:.0%} of them not by "
        "neighboring rows"
    )
    return Estimate("csr", {}, selected_rows_cycles(matrix, workload), 0.0, reason)


def _summed_rows(matrix: MatrixProperties, workload: Workload) -> Estimate | None:
    """Return the estimate if the elements of a row are added to several sums; otherwise None."""
    hardware, stats = workload.hardware, matrix.stats.rounded()
    is_packed = row_packing(workload.row_bytes, hardware, stats).pays
    vectors = summed_vectors(workload.columns, workload.dtype, hardware, stats, is_packed=is_packed)
    if vectors is None:
        return None
    load = gather_cycles(matrix, workload.row_bytes, hardware)
    cycles = 0.0
    if is_packed:
        operand = load_cycles(matrix.columns * workload.row_bytes, hardware)
        cycles += matrix.columns * vectors * (SUMMED_PACK_CYCLES + operand)
    else:
        load *= UNPACKED_SUM_LOADS
    cycles += matrix.nnz * (ELEMENT_CYCLES + vectors * load)
    cycles += matrix.rows * (SHORT_ROW_CYCLES + SHORT_RESULT_CYCLES * vectors)
    packed = "packed rows" if is_packed else "rows"
    reason = f"{packed} of few vectors are added to several sums"
    return Estimate("csr", {}, cycles, 0.0, reason)


def _packed_tiles(matrix: MatrixProperties, workload: Workload) -> Estimate | None:
    """Return the estimate if tiles of features are packed; otherwise None."""
    hardware, dtype = workload.hardware, workload.dtype
    packing = tile_packing(workload.columns, dtype, hardware, matrix.stats.rounded())
    if not packing.pays:
        return None
    vectors = packed_vectors(dtype, hardware)
    tiles = workload.vectors // vectors
    load = gather_cycles(matrix, workload.row_bytes / tiles, hardware)
    pack = PACK_CYCLES + load_cycles(matrix.columns * workload.row_bytes, hardware)
    cycles = matrix.columns * vectors * pack
    cycles += matrix.rows * (SHORT_ROW_CYCLES + SHORT_RESULT_CYCLES * vectors)
    cycles += matrix.nnz * (TILE_ELEMENT_CYCLES + vectors * load)
    copy = matrix.columns * workload.row_bytes / tiles
    reason = f"each tile of features is packed, and rows are selected from {copy / 1e6:.3g} MB"
    return Estimate("csr", {}, tiles * cycles, 0.0, reason)

"""The cost of tiles of columns times a dense matrix (format `tiled_csr`)."""

from __future__ import annotations

import math

from gossamer_heuristics.column_tiles import column_tiling, panel_rows
from gossamer_machine.machine import Machine
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import pack_cycles
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.thread_costs import on_threads
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

TILE_COLUMNS = (64, 128, 256, 512)
"""The numbers of columns of a tile that are considered."""

ELEMENT_CYCLES = PerCpu(1.9, 1.3, 0.7)
"""Cycles for the index and the value of an element (fitted, as all below, to 15 matrices of pruned weights
with 32 to 512 features on one thread and on two of Emerald Rapids: the ratio of the times of tiles and of CSR
has a median error of 9 percent; 0.8 on Zen 4, 2 on Sapphire Rapids)."""

NEAR_PACKED_BYTES = PerCpu(36 << 10, 24 << 10, 32 << 10)
"""Bytes of packed rows that stay in the first-level cache: three quarters of it (48 KB on Emerald Rapids,
32 KB on Zen 4), since the elements and the results pass through it, too. On Zen 3, with vectors of 256 bits,
all of its 32 KB fit the measured times."""

PACKED_LOAD_CYCLES, FAR_PACKED_LOAD_CYCLES = PerCpu(0.68, 0.86), PerCpu(1.09, 1.5, 2.8)
"""Cycles for the multiply-add of a vector from packed rows that stay in the first-level cache, and from those
beyond, each at random (1.25 and 1.6 on Zen 4, 0.75 on Sapphire Rapids). Fitted on Zen 4 to packed rows of 16,
32 and 64 KB: with 32 features, 32 KB take 1.05 to 1.14 times as long as 16 KB if rows are long, although rows
have half as many segments."""

SEGMENT_CYCLES, SEGMENT_VECTOR_CYCLES = PerCpu(8.0, 8.0, 16.0), 3.0
"""Cycles for a row in a tile, and for each vector of its sum, which is added to the result (3.1 and 2.9 on
Zen 4)."""

ZERO_CYCLES = PerCpu(8.0, 15.0)
"""Cycles for a vector of the result, which is set to zero before."""

MIN_SEGMENT = PerCpu(45.0, 20.0)
"""Minimum cycles for a row with elements in a tile: the latency of its sum and of the mispredicted end of its
loop, which shorter work does not hide."""

CONVERSION_CYCLES = 150.0
"""Cycles for an element that is converted."""


def tiles_times_dense(matrix: MatrixProperties, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for tiles of several numbers of columns of which the matrix has two at least."""
    if workload.columns == 1 or not matrix.rows:
        return ()
    return tuple(
        _estimate(matrix, workload, columns)
        for columns in TILE_COLUMNS
        if 2 * columns <= matrix.columns
    )


def _estimate(matrix: MatrixProperties, workload: Workload, columns: int) -> Estimate:
    machine = workload.machine
    vector_bytes = columns * machine.lanes(workload.dtype) * workload.element_bytes
    tiling = column_tiling(workload.vectors, vector_bytes=vector_bytes, rows=matrix.rows)
    vectors, packed = tiling.vectors, tiling.vectors * vector_bytes
    tiles = -(-matrix.columns // columns)
    # The costs were fitted to times of as many panels, also where there are now fewer and wider ones.
    panels = -(-matrix.rows // panel_rows(matrix.rows))
    segments = matrix.rows * tiles
    mean = matrix.lengths.mean / tiles
    load = packed_load_cycles(packed, machine)
    work = matrix.nnz * (ELEMENT_CYCLES.on(machine) + load * vectors)
    # A segment is the part of a row in a tile; its sum is added to the result even if it is empty.
    work += segments * (SEGMENT_CYCLES.on(machine) + SEGMENT_VECTOR_CYCLES * vectors)
    # Elements at random leave this fraction of segments empty.
    latency = segments * (1 - math.exp(-mean)) * MIN_SEGMENT.on(machine)
    packing = panels * matrix.columns * vectors * pack_cycles(matrix, workload)
    zeroing = matrix.rows * workload.vectors * ZERO_CYCLES.on(machine)
    # Threads take whole panels.
    busy = panels / workload.threads / -(-panels // workload.threads)
    cycles = tiling.feature_tiles * (max(work, latency) + packing) / busy + zeroing
    reason = f"a row has {mean:.3g} elements in a tile on average, whose rows stay in {packed / 1024:.3g} KB"
    return Estimate(
        "tiled_csr",
        {"tile_columns": columns},
        on_threads(cycles, workload, launches=2),
        matrix.nnz * CONVERSION_CYCLES,
        reason,
    )


def packed_load_cycles(packed: int, machine: Machine) -> float:
    """Return the mean cycles for the multiply-add of a vector from packed rows of this many bytes.

    >>> [round(packed_load_cycles(size, Machine()), 2) for size in (16 << 10, 32 << 10, 64 << 10)]
    [0.86, 1.02, 1.26]
    """
    near, far = PACKED_LOAD_CYCLES.on(machine), FAR_PACKED_LOAD_CYCLES.on(machine)
    return near + max(0.0, 1 - NEAR_PACKED_BYTES.on(machine) / packed) * (far - near)

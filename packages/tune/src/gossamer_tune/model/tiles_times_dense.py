"""The cost of tiles of columns times a dense matrix (format `tiled_csr`)."""

from __future__ import annotations

import math

from gossamer_tune.features.matrix_features import MatrixFeatures
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import FIRST_CACHE, load_cycles
from gossamer_tune.model.workload import Workload

TILE_COLUMNS = (64, 128, 256, 512)
"""The numbers of columns of a tile that are considered."""

PACKED_BYTES = 64 << 10
"""The size of the packed rows of a tile, to which the schedule limits the features that it packs at once."""

LEAST_PANEL, LARGEST_PANEL = 64, 512
"""Limits of the rows for which a tile is packed once: half of the rows, so that two threads have some."""

ELEMENT_CYCLES = 1.7
"""Cycles for the index and the value of an element (fitted to pruned weights: 0.8 on Zen 4, 2 on Sapphire
Rapids)."""

LOAD_CYCLES, FAR_LOAD_CYCLES = 0.95, 1.15
"""Cycles for the multiply-add of a vector that is loaded from the packed rows, if these fit the first-level
cache and if they do not (1.25 and 1.6 on Zen 4, 0.75 on Sapphire Rapids)."""

SEGMENT_CYCLES, SEGMENT_VECTOR_CYCLES = 4.0, 3.0
"""Cycles for a row in a tile, and for each vector of its sum, which is added to the result (3.1 and 2.9)."""

SHORTEST_SEGMENT = 40.0
"""Minimum cycles for a row with elements in a tile: the latency of its sum and of the mispredicted end of its
loop, which shorter work does not hide."""

PACK_CYCLES = 9.0
"""Cycles for a vector that is packed besides its load from the operand (6 in all on Zen 4, 13 to 20 on
Sapphire Rapids)."""

CONVERSION_CYCLES = 150.0
"""Cycles for an element that is converted."""


def tiles_times_dense(features: MatrixFeatures, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for tiles of several numbers of columns of which the matrix has two at least."""
    if workload.features == 1 or not features.rows:
        return ()
    return tuple(
        _estimate(features, workload, columns)
        for columns in TILE_COLUMNS
        if 2 * columns <= features.columns
    )


def _estimate(features: MatrixFeatures, workload: Workload, columns: int) -> Estimate:
    lanes = workload.hardware.lanes(workload.dtype)
    fitting = PACKED_BYTES // (columns * workload.element_bytes * lanes)
    per_tile = max(1, min(workload.vectors, 8, fitting))
    passes = -(-workload.vectors // per_tile)
    packed = columns * per_tile * lanes * workload.element_bytes
    tiles = -(-features.columns // columns)
    panels = -(-features.rows // min(max(features.rows // 2, LEAST_PANEL), LARGEST_PANEL))
    segments = features.rows * tiles
    mean = features.mean_row / tiles
    load = LOAD_CYCLES if packed <= FIRST_CACHE else FAR_LOAD_CYCLES
    work = features.nnz * (ELEMENT_CYCLES + load * per_tile)
    work += segments * (SEGMENT_CYCLES + SEGMENT_VECTOR_CYCLES * per_tile)
    # Elements at random leave this fraction of segments empty.
    latency = segments * (1 - math.exp(-mean)) * SHORTEST_SEGMENT
    operand = features.columns * workload.features * workload.element_bytes
    pack = PACK_CYCLES + load_cycles(operand, workload.hardware)
    packing = panels * features.columns * per_tile * pack
    reason = f"a row has {mean:.3g} elements in a tile on average, whose rows stay in {packed / 1024:.3g} KB"
    return Estimate(
        "tiled_csr",
        {"tile_columns": columns},
        passes * (max(work, latency) + packing),
        features.nnz * CONVERSION_CYCLES,
        reason,
    )

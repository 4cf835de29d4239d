"""The cost of tiles of columns times a dense matrix (format `tiled_csr`)."""

from __future__ import annotations

from gossamer_tune.features.matrix_features import MatrixFeatures
from gossamer_tune.model.csr_times_dense import ELEMENT_CYCLES
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.operand_loads import load_cycles
from gossamer_tune.model.workload import Workload

TILE_COLUMNS = (64, 128, 256, 512)
"""The numbers of columns of a tile that are considered."""

PACKED_BYTES = 64 << 10
"""The size of the packed rows of a tile, to which the schedule limits the features that it packs at once."""

PANEL = 512
"""The rows for which a tile is packed once, at most."""

SEGMENT_CYCLES, SEGMENT_VECTOR_CYCLES = 4.0, 3.1
"""Cycles for a row in a tile, and for each vector of its sum, which is added to the result."""

PACK_CYCLES = 6.0
"""Cycles for a vector that is packed: its load from the operand, and the store."""

CONVERSION_CYCLES = 150.0
"""Cycles for an element that is converted."""


def tiles_times_dense(features: MatrixFeatures, workload: Workload) -> tuple[Estimate, ...]:
    """Return the estimates for tiles of several numbers of columns that the matrix has."""
    if workload.features == 1 or not features.rows:
        return ()
    return tuple(
        _estimate(features, workload, columns)
        for columns in TILE_COLUMNS
        if columns <= features.columns
    )


def _estimate(features: MatrixFeatures, workload: Workload, columns: int) -> Estimate:
    lanes = workload.hardware.lanes(workload.dtype)
    fitting = PACKED_BYTES // (columns * workload.element_bytes * lanes)
    per_tile = max(1, min(workload.vectors, 8, fitting))
    passes = -(-workload.vectors // per_tile)
    packed = columns * per_tile * lanes * workload.element_bytes
    tiles = -(-features.columns // columns)
    panels = -(-features.rows // PANEL)
    elements = features.nnz * (ELEMENT_CYCLES + per_tile * load_cycles(packed, workload.hardware))
    segments = features.rows * tiles * (SEGMENT_CYCLES + SEGMENT_VECTOR_CYCLES * per_tile)
    packing = panels * features.columns * per_tile * PACK_CYCLES
    mean = features.mean_row / tiles
    reason = f"a row has {mean:.3g} elements in a tile on average, whose rows stay in {packed / 1024:.3g} KB"
    return Estimate(
        "tiled_csr",
        {"tile_columns": columns},
        passes * (elements + segments + packing),
        features.nnz * CONVERSION_CYCLES,
        reason,
    )

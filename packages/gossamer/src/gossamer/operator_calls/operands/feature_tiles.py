"""Tiles of the features of dense matrices whose rows are read in any order.

Each row is read for several elements. The rows of a wide matrix do not fit the private cache of a core; those
of a tile do, which has some of the columns in an array of its own. Without a copy they would not: rows at
distances of a power of two share few sets of the cache.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.dense_operands import output_array
from gossamer.operator_calls.operands.matrix_operand import MatrixOperand
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import machine_for
from gossamer_formats import Array
from gossamer_ir.interchange.records import Target

MIN_BYTES = 512
"""The least bytes of a row of a tile: shorter rows have too little work for each element."""

MIN_USES = 16
"""The elements for each row of the dense matrices from which it pays to copy these rows."""

CACHE_FRACTION = 0.75
"""The fraction of the private cache that a tile may take."""


def dense_feature_tiles(
    operands: Operands[MatrixOperand], *, target: str | Target | None = None
) -> list[slice]:
    """Return the tiles for products of rows of dense matrices at the elements of a matrix; one of all
    features if others do not pay, such as on a machine that runs grids of threads.

    The last dense matrix is the one whose rows are read in any order. Products of 768 by 4096 features at
    20% of 3072 rows took 89 ms in tiles of 512, and 507 ms without (Intel Xeon, one thread).
    """
    *_, gathered = operands.dense.values()
    columns, features = gathered.shape
    whole = [slice(0, features)]
    rows = sum(len(array) for array in operands.dense.values())
    if not operands.products or operands.matrix.value_count < MIN_USES * rows:
        return whole
    machine = machine_for(target or DEFAULT_TARGET)
    if machine.grid is not None:
        return whole
    cached = int(CACHE_FRACTION * machine.private_cache)
    unit = MIN_BYTES // gathered.itemsize
    widest = cached // (columns * MIN_BYTES) * unit
    if not 0 < widest < features:
        return whole
    # Tiles of equal width, in whole units.
    count = -(-features // widest)
    width = -(-features // (count * unit)) * unit
    return [slice(begin, min(begin + width, features)) for begin in range(0, features, width)]


def add_feature_tiles(
    operands: Operands[MatrixOperand],
    tiles: list[slice],
    run: Callable[[Operands[MatrixOperand], Array | None], Array],
    *,
    out: Array | None,
) -> Array:
    """Return the sum of the results of a function for each tile of the dense operands, in `out` if it is
    given."""
    result, total = output_array(
        out, dtype=operands.result_dtype, shape=operands.shape, inputs=operands.inputs
    )
    for tile in tiles:
        dense = {
            name: np.ascontiguousarray(array[:, tile]) for name, array in operands.dense.items()
        }
        part = operands._replace(dense=dense, features=tile.stop - tile.start)
        if tile.start == 0:
            run(part, total)
        else:
            sums = run(part, None)
            # Kernels do not warn of infinite sums and NaN, either.
            with np.errstate(all="ignore"):
                total += sums
    return result

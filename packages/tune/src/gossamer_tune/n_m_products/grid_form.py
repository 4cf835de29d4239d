"""The form of a product with an N:M matrix on a GPU: by sparse tensor cores or in dense blocks.

Sparse tensor cores skip half of the operations. A product of dense blocks has all of them, in tiles that are
staged in shared memory. The model of bytes and operations is that by which rules choose the tile of the
kernel for N:M (`gossamer_heuristics.n_m_tiles`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from gossamer_heuristics.n_m_tiles import (
    INSTRUCTION_FEATURES,
    INSTRUCTION_ROWS,
    ProductSizes,
    TileWork,
    choose_n_m_tile,
    dense_bytes,
    instruction_depth,
)
from gossamer_ir.core.dtypes import SCALARS
from gossamer_machine import Machine
from gossamer_tune.n_m_products.product_form import FormChoice

BLOCK_ROWS = (64, 32, 16)
"""The rows of blocks, if they divide all, and the features of their tiles."""


class BlockSize(NamedTuple):
    """The rows and the columns of a block."""

    rows: int
    columns: int


def choose_grid_form(
    dtype: str,
    sizes: ProductSizes | None,
    *,
    is_tensor: bool,
    machine: Machine,
    block_dtypes: Collection[str],
) -> FormChoice:
    """Return the form that the model expects to be the fastest on a machine with grids of threads: "kernel",
    or "blocks" for a product of dense blocks. Sizes may be unknown (None). `block_dtypes` are those of which
    formats store blocks.

    >>> from gossamer_machine import Grid
    >>> grid = Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108)
    >>> products = (("float16", "dense"),), (("float16", "sparse"),)
    >>> gpu = Machine(grid=grid, block_products=products[0], n_m_products=products[1])
    >>> large, narrow = ProductSizes(4096, 4096, 4096), ProductSizes(4096, 4096, 16)
    >>> for sizes in (large, narrow):
    ...     choose_grid_form(
    ...         "float16", sizes, is_tensor=True, machine=gpu, block_dtypes=["float16"]
    ...     ).form
    'blocks'
    'kernel'
    """
    grid = machine.grid
    assert grid is not None, "the machine has grids of threads"
    if dtype not in dict(machine.block_products) or dtype not in block_dtypes:
        return FormChoice(
            "kernel", f"no program multiplies blocks of {dtype} by dense tensor cores"
        )
    if dtype not in dict(machine.n_m_products):
        return FormChoice("blocks", f"the machine has no sparse tensor cores for {dtype}")
    if not is_tensor:
        return FormChoice(
            "kernel", "a matrix that is not a tensor would be stored in blocks at each call"
        )
    if sizes is None:
        return FormChoice("kernel", "the sizes are unknown, and blocks must divide them")
    block = block_size(dtype, sizes)
    if block is None:
        return FormChoice(
            "kernel",
            f"no blocks divide {sizes.rows} rows, {sizes.columns} columns and {sizes.features} features",
        )
    sparse = choose_n_m_tile(machine, dtype, sizes)
    assert sparse is not None, "the machine has an intrinsic"
    kernel = f"the kernel for N:M in tiles of {sparse.tile.rows} by {sparse.tile.features}"
    costs = {
        kernel: sparse.cycles,
        "dense blocks": dense_work(dtype, sizes, block).cycles(grid),
    }
    return _cheaper(costs)


def _cheaper(costs: Mapping[str, Mapping[str, int]]) -> FormChoice:
    """Return the choice between the kernel for N:M, which comes first, and blocks."""
    slowest = [max(cycles.values()) for cycles in costs.values()]
    listed = "; ".join(
        f"{name} {', '.join(f'{kind} {cycles}' for kind, cycles in costs[name].items())}"
        for name in costs
    )
    return FormChoice(
        "kernel" if slowest[0] <= slowest[1] else "blocks",
        f"the slowest of memory, cache, shared memory and operations decides; cycles: {listed}",
    )


def block_size(dtype: str, sizes: ProductSizes) -> BlockSize | None:
    """Return the size of blocks that fill tiles of instructions; None if none divides the sizes.

    >>> block_size("int8", ProductSizes(96, 64, 16)), block_size("int8", ProductSizes(96, 64, 8))
    (BlockSize(rows=32, columns=64), None)
    """
    rows = next((rows for rows in BLOCK_ROWS if sizes.rows % rows == 0), None)
    depth = instruction_depth(dtype)
    columns = next((width for width in (2 * depth, depth) if sizes.columns % width == 0), None)
    if rows is None or columns is None or sizes.features % BLOCK_ROWS[-1] or 0 in sizes:
        return None
    return BlockSize(rows, columns)


def dense_work(dtype: str, sizes: ProductSizes, block: BlockSize) -> TileWork:
    """Return the work of the product of blocks, in tiles of the rows of a block and as many features."""
    size = SCALARS[dtype].bits // 8
    width = next(width for width in BLOCK_ROWS if sizes.features % width == 0)
    tiles = sizes.rows // block.rows * (sizes.features // width)
    per_tile = block.rows // INSTRUCTION_ROWS * (width // INSTRUCTION_FEATURES)
    steps = sizes.columns // instruction_depth(dtype)
    memory = sizes.rows * sizes.columns * size + dense_bytes(dtype, sizes)
    loaded = (block.rows + width) * sizes.columns * size
    # A warp has the whole tile, and loads what is staged once.
    return TileWork(memory, tiles * loaded, tiles * per_tile * steps, tiles, shared=tiles * loaded)

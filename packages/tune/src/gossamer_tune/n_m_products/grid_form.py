"""The form of a product with an N:M matrix on a GPU, by a model of bytes and operations.

Sparse tensor cores skip half of the operations. The kernel for N:M loads its operands from global memory for
each tile of a warp, and also an index of a byte for each slot. A product of dense blocks has all operations,
but stages larger tiles in shared memory, so fewer bytes reach a multiprocessor. The model takes the slowest
of three, in cycles of all multiprocessors that have work:

* memory: each operand and the result once, at 10 bytes a cycle of each multiprocessor
* cache: what tiles load, at 47 bytes a cycle of each multiprocessor
* operations: 2 cycles for an instruction, which multiplies 16 by 8 elements of the result, of 256 bits of
  dense columns or twice as many sparse ones; warpgroups take 1 cycle for as much

The machine says which tile of the result a block of the kernel computes: 32 by 32 for a warp, 128 by 128 for
two warpgroups.

The rates are those that NVIDIA states for the A100 (1555 GB/s, 5120 bytes a cycle from the second-level
cache, 1024 multiply-adds of float16 a cycle of each of 108 multiprocessors); later GPUs have about the same
ratios. Neither kernel was measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from gossamer_ir.core.dtypes import SCALARS, SUM_DTYPES
from gossamer_machine import Grid, Machine, ProductTile
from gossamer_tune.n_m_products.product_form import FormChoice

MEMORY_BYTES, CACHE_BYTES, INSTRUCTION_CYCLES = 10, 47, 2
INSTRUCTION_ROWS, INSTRUCTION_FEATURES, INSTRUCTION_BITS = 16, 8, 256
LEAST_TILE = ProductTile(32, 32)
"""The tile of a kernel for N:M if the machine does not say which it is."""
WARPGROUP_CYCLES = 1
"""The cycles of warpgroups for as many elements as an instruction multiplies."""
BLOCK_ROWS = (64, 32, 16)
"""The rows of blocks, if they divide all, and the features of their tiles."""


class ProductSizes(NamedTuple):
    """The rows and columns of a sparse matrix, and the features of a dense one."""

    rows: int
    columns: int
    features: int


class BlockSize(NamedTuple):
    """The rows and the columns of a block."""

    rows: int
    columns: int


class TileWork(NamedTuple):
    """The bytes from memory and from the cache, the instructions and the tiles of a kernel."""

    memory: int
    cache: int
    instructions: int
    tiles: int
    instruction_cycles: int = INSTRUCTION_CYCLES

    def cycles(self, grid: Grid) -> dict[str, int]:
        """Return the cycles for each kind of work, which overlap."""
        busy = max(1, min(self.tiles, grid.multiprocessors))
        return {
            "memory": self.memory // (MEMORY_BYTES * grid.multiprocessors),
            "cache": self.cache // (CACHE_BYTES * busy),
            "operations": self.instructions * self.instruction_cycles // busy,
        }


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

    >>> grid = Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108)
    >>> products = (("float16", "dense"),), (("float16", "sparse"),)
    >>> tiles = (("float16", ProductTile(32, 32)),)
    >>> gpu = Machine(
    ...     grid=grid, block_products=products[0], n_m_products=products[1], n_m_tiles=tiles
    ... )
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
    tile = dict(machine.n_m_tiles).get(dtype, LEAST_TILE)
    kernel = f"the kernel for N:M in tiles of {tile.rows} by {tile.features}"
    costs = {
        kernel: sparse_work(dtype, sizes, tile).cycles(grid),
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
        f"the slowest of memory, cache and operations decides; cycles: {listed}",
    )


def block_size(dtype: str, sizes: ProductSizes) -> BlockSize | None:
    """Return the size of blocks that fill tiles of instructions; None if none divides the sizes.

    >>> block_size("int8", ProductSizes(96, 64, 16)), block_size("int8", ProductSizes(96, 64, 8))
    (BlockSize(rows=32, columns=64), None)
    """
    rows = next((rows for rows in BLOCK_ROWS if sizes.rows % rows == 0), None)
    depth = _depth(dtype)
    columns = next((width for width in (2 * depth, depth) if sizes.columns % width == 0), None)
    if rows is None or columns is None or sizes.features % BLOCK_ROWS[-1] or 0 in sizes:
        return None
    return BlockSize(rows, columns)


def sparse_work(dtype: str, sizes: ProductSizes, tile: ProductTile) -> TileWork:
    """Return the work of the kernel for 2:4, in tiles of the result."""
    size = SCALARS[dtype].bits // 8
    # Half of the elements are stored, each with an index of a byte.
    stored = sizes.columns * (size + 1) // 2
    tiles = -(-sizes.rows // tile.rows) * -(-sizes.features // tile.features)
    rows, features = min(tile.rows, sizes.rows), min(tile.features, sizes.features)
    loaded = rows * stored + features * sizes.columns * size
    per_tile = tile.rows // INSTRUCTION_ROWS * (tile.features // INSTRUCTION_FEATURES)
    steps = -(-sizes.columns // (2 * _depth(dtype)))
    memory = sizes.rows * stored + _dense_bytes(dtype, sizes)
    cycles = WARPGROUP_CYCLES if tile.is_of_warpgroups else INSTRUCTION_CYCLES
    return TileWork(memory, tiles * loaded, tiles * per_tile * steps, tiles, cycles)


def dense_work(dtype: str, sizes: ProductSizes, block: BlockSize) -> TileWork:
    """Return the work of the product of blocks, in tiles of the rows of a block and as many features."""
    size = SCALARS[dtype].bits // 8
    width = next(width for width in BLOCK_ROWS if sizes.features % width == 0)
    tiles = sizes.rows // block.rows * (sizes.features // width)
    per_tile = block.rows // INSTRUCTION_ROWS * (width // INSTRUCTION_FEATURES)
    steps = sizes.columns // _depth(dtype)
    memory = sizes.rows * sizes.columns * size + _dense_bytes(dtype, sizes)
    loaded = (block.rows + width) * sizes.columns * size
    return TileWork(memory, tiles * loaded, tiles * per_tile * steps, tiles)


def _depth(dtype: str) -> int:
    """Return the dense columns that an instruction multiplies."""
    return INSTRUCTION_BITS // SCALARS[dtype].bits


def _dense_bytes(dtype: str, sizes: ProductSizes) -> int:
    """Return the bytes of the dense operand and of the result."""
    operand = sizes.columns * SCALARS[dtype].bits // 8
    return sizes.features * (operand + sizes.rows * SCALARS[SUM_DTYPES[dtype]].bits // 8)

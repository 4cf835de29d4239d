"""The tile of the result that a block of threads computes of a product with an N:M matrix, by sparse tensor
cores: a model of bytes and operations.

A machine may have several intrinsics for a dtype, with tiles of other sizes. Large tiles load fewer bytes for
a product, and small ones waste less of what is beyond its rows and features, and keep more multiprocessors
busy. The model takes the slowest of four, in cycles of all multiprocessors that have work:

* memory: each operand and the result once, at 10 bytes a cycle of each multiprocessor
* cache: what tiles load, at 47 bytes a cycle of each multiprocessor
* shared: what warps load from the operands in shared memory, at 128 bytes a cycle of each multiprocessor;
  lanes load several indices of a row at once, but some rows are in the same banks, so that a byte takes the
  time of 2
* operations: 2 cycles for an instruction, which multiplies 16 by 8 elements of the result, of 256 bits of
  dense columns or twice as many sparse ones; warpgroups take 1 cycle for as much, and read shared memory
  themselves

The rates are those that NVIDIA states for the A100 (1555 GB/s, 5120 bytes a cycle from the second-level
cache, 1024 multiply-adds of float16 a cycle of each of 108 multiprocessors); later GPUs have about the same
ratios. No kernel was measured.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.dtypes import SCALARS
from gossamer_machine.intrinsics.n_m_operands import n_m_operands
from gossamer_machine.machine import Grid, Machine, ProductTile

MEMORY_BYTES, CACHE_BYTES, SHARED_BYTES, INSTRUCTION_CYCLES = 10, 47, 128, 2
INSTRUCTION_ROWS, INSTRUCTION_FEATURES, INSTRUCTION_BITS = 16, 8, 256
DEFAULT_TILE = ProductTile(32, 32)
"""The tile of a kernel for N:M if the machine does not say which it is."""
WARPGROUP_CYCLES = 1
"""The cycles of warpgroups for as many elements as an instruction multiplies."""
INDEX_FACTOR = 2
"""The bytes that warps could load from shared memory in the time that an index takes. For float16, the
machine code of the kernel has 2 loads of 8 bytes in each lane for the 256 indices of an instruction. A load
takes two cycles: 16 lanes load from four rows, which have all banks."""
USUAL_SIZE = 4096
"""The rows, columns and features that are assumed where they are unknown."""


class ProductSizes(NamedTuple):
    """The rows and columns of a sparse matrix, and the features of a dense one."""

    rows: int
    columns: int
    features: int


class TileWork(NamedTuple):
    """The bytes from memory, from the cache and from shared memory, the instructions and the tiles of a
    kernel."""

    memory: int
    cache: int
    instructions: int
    tiles: int
    instruction_cycles: int = INSTRUCTION_CYCLES
    shared: int = 0

    def cycles(self, grid: Grid) -> dict[str, int]:
        """Return the cycles for each kind of work, which overlap."""
        busy = max(1, min(self.tiles, grid.multiprocessors))
        return {
            "memory": self.memory // (MEMORY_BYTES * grid.multiprocessors),
            "cache": self.cache // (CACHE_BYTES * busy),
            "shared": self.shared // (SHARED_BYTES * busy),
            "operations": self.instructions * self.instruction_cycles // busy,
        }


class NMTileChoice(NamedTuple):
    """The intrinsic for a product, its tile, and the cycles for each kind of work."""

    intrinsic: str
    tile: ProductTile
    cycles: dict[str, int]


def choose_n_m_tile(machine: Machine, operands: str, sizes: ProductSizes) -> NMTileChoice | None:
    """Return the intrinsic of a machine with grids of threads that the model expects to be the fastest for a
    product; None if there is none for the operands. The first of equal ones is returned.

    >>> grid = Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108)
    >>> names = (("float16", "small"), ("float16", "large"))
    >>> tiles = (("small", ProductTile(32, 32)), ("large", ProductTile(128, 128)))
    >>> gpu = Machine(grid=grid, n_m_products=names, n_m_tiles=tiles)
    >>> for sizes in (ProductSizes(4096, 4096, 4096), ProductSizes(4096, 4096, 16)):
    ...     choose_n_m_tile(gpu, "float16", sizes).intrinsic
    'large'
    'small'
    """
    grid, tiles = machine.grid, dict(machine.n_m_tiles)
    assert grid is not None, "the machine has grids of threads"
    choices = [
        NMTileChoice(name, tile, sparse_work(operands, sizes, tile).cycles(grid))
        for dtype, name in machine.n_m_products
        if dtype == operands
        for tile in (tiles.get(name, DEFAULT_TILE),)
    ]
    return min(choices, key=lambda choice: max(choice.cycles.values()), default=None)


def sparse_work(dtype: str, sizes: ProductSizes, tile: ProductTile) -> TileWork:
    """Return the work of a product with an N:M matrix, in tiles of the result.

    >>> sparse_work("float16", ProductSizes(64, 64, 32), ProductTile(32, 32)).tiles
    2
    """
    read, size = n_m_operands(dtype), _element_bytes(dtype)
    # The elements of the slots of each group, and an index of a byte for each slot.
    indices = sizes.columns * read.slots // read.group
    stored = indices * (read.unit_columns * size + 1)
    tiles = -(-sizes.rows // tile.rows) * -(-sizes.features // tile.features)
    rows, features = min(tile.rows, sizes.rows), min(tile.features, sizes.features)
    loaded = rows * stored + features * sizes.columns * size
    per_tile = tile.rows // INSTRUCTION_ROWS * (tile.features // INSTRUCTION_FEATURES)
    steps = -(-sizes.columns // (2 * instruction_depth(dtype)))
    memory = sizes.rows * stored + dense_bytes(dtype, sizes)
    cycles = WARPGROUP_CYCLES if tile.is_of_warpgroups else INSTRUCTION_CYCLES
    row = stored + (INDEX_FACTOR - 1) * indices
    shared = tiles * _bytes_of_warps(tile, row, sizes.columns * size)
    return TileWork(memory, tiles * loaded, tiles * per_tile * steps, tiles, cycles, shared)


def _bytes_of_warps(tile: ProductTile, row: int, column: int) -> int:
    """Return the bytes that the warps of a tile load from shared memory, of which rows of the sparse matrix
    and columns of the dense one have as many."""
    if tile.warp_part is None:
        return 0
    rows, features = tile.warp_part
    warps = tile.rows * tile.features // (rows * features)
    return warps * (rows * row + features * column)


def instruction_depth(dtype: str) -> int:
    """Return the dense columns that an instruction multiplies.

    >>> instruction_depth("float16"), instruction_depth("int8")
    (16, 32)
    """
    read = n_m_operands(dtype)
    bits = SCALARS[read.stored_as].bits
    if read.limits is not None:
        least, most = read.limits
        bits = (most - least).bit_length()
    return INSTRUCTION_BITS // bits


def dense_bytes(dtype: str, sizes: ProductSizes) -> int:
    """Return the bytes of the dense operand and of the result.

    >>> dense_bytes("float16", ProductSizes(8, 16, 4))
    256
    """
    operand = sizes.columns * _element_bytes(dtype)
    return sizes.features * (operand + sizes.rows * SCALARS[n_m_operands(dtype).sums].bits // 8)


def _element_bytes(dtype: str) -> int:
    return SCALARS[n_m_operands(dtype).stored_as].bits // 8

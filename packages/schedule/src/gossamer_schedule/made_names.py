"""Names that primitives give to the loops, blocks and buffers that they make.

Both who makes a name and who needs it before it exists call the function here, and have names that are taken
numbered by a `Namer`: primitives, and the `TraceBuilder` of rules (docs/decisions/0019).

Users of TVM's schedules know the suffixes: `_0`, `_1` for the loops of a split, `_fused`, `_init`, `_rf`
(rfactor), `_o` (the outer block of blockize) and the scope of a cache. `_c` is short for "copy".
"""

from __future__ import annotations

INIT_SUFFIX = "init"
"""The suffix of the loops, block and iterators that `decompose_reduction` makes."""


def split_loop_names(loop_name: str, count: int) -> tuple[str, ...]:
    """Return the names of the loops that a loop is split into, outermost first.

    >>> split_loop_names("k", 2)
    ('k_0', 'k_1')
    """
    return tuple(f"{loop_name}_{position}" for position in range(count))


def part_name(name: str, part: int) -> str:
    """Return the name of one of the parts into which a loop is cut, or of a copy of a name in it.

    >>> part_name("k", 1)
    'k_1'
    """
    return f"{name}_{part}"


def init_name(name: str, *, suffix: str = INIT_SUFFIX) -> str:
    """Return the name of the init's copy of a block, a loop or an iterator."""
    return f"{name}_{suffix}"


def partial_name(name: str) -> str:
    """Return the name of the block or the buffer of partial results of a reduction (`rfactor`)."""
    return f"{name}_rf"


def cache_name(buffer_name: str, scope: str) -> str:
    """Return the name of the cache of a buffer in a scope."""
    return f"{buffer_name}_{scope}"


def horizontally_fused_name(loop_name: str) -> str:
    """Return the name of the loop into which `horizontal_fuse` fuses a loop and those after it."""
    return f"{loop_name}_fused"


def unit_loop_name(name: str) -> str:
    """Return the name of the loop of one iteration around a loop or block (`add_unit_loop`)."""
    return f"{name}_unit"


def outer_block_name(block_name: str) -> str:
    """Return the name of the block around a loop that becomes part of a block."""
    return f"{block_name}_o"


def extent_name(loop_name: str) -> str:
    """Return the name of the buffer with the extent of a loop (`uniform_extent`)."""
    return f"{loop_name}_extent"


def longest_block_name(loop_name: str) -> str:
    """Return the name of the block that computes the largest extent of a loop (`uniform_extent`)."""
    return f"{loop_name}_longest"


def region_loop_name(buffer_name: str, dimension: int) -> str:
    """Return the name of the loop over a dimension in the copy of a region (`cache_region`).

    >>> region_loop_name("X", 0)
    'X_0_c'
    """
    return copy_name(dimension_name(buffer_name, dimension))


def dimension_name(buffer_name: str, dimension: int) -> str:
    """Return the name of a dimension of a buffer, by which the loops of a copied region are named."""
    return f"{buffer_name}_{dimension}"


def copy_block_name(block_name: str, cache: str) -> str:
    """Return the name of the block that copies between a buffer and its cache."""
    return f"{block_name}_{cache}"


def copy_name(name: str) -> str:
    """Return the name of a loop or iterator of a block that copies."""
    return f"{name}_c"

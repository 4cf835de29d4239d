"""Loads of the rows that a matrix selects from a dense operand: from aligned addresses, or with prefetches.

The rules that schedule such loads and the model of the cost of CSR agree on it.
"""

from __future__ import annotations

import msgspec

from gossamer_heuristics.operand_copies import is_used_often
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Stats
from gossamer_machine.cache_line import LINE_BYTES
from gossamer_machine.machine import Machine

MASKED_VECTORS, MASK_OPERATIONS = 2, 2
"""Vectors of an aligned row that are masked, the first and the last, and the operations that a mask in a
vector register adds to each: a load that is not an operand of the multiply-add, and its part of a store by
the mask (measured on Zen 3: 3.7 ns, six times as long as a plain store)."""

MANY_ALIGNED_LOADS, LONG_ROW_VECTORS = 24, 8
"""Minimum mean number of elements of a row for few stores by masks, and the vectors of features from which
aligned loads then pay if the operand exceeds the private cache (measured on Zen 3 with 8 and 10 vectors:
1.08 to 1.55 times as fast on rows of 29 to 60 elements; 0.9 to 1.05 if the operand fits, 0.6 to 0.9 on rows
of 4 to 15 elements; with 4 vectors 0.9 to 1.3)."""

ALIGNED_DIVISOR = 4
"""Aligned loads pay for an operand of at most a quarter of the shared cache, or the whole cache if its rows
are used often. Masked loads take longer if they wait for memory (measured: 0.6 to 0.9 times as fast on graphs
with 21 MB and more)."""

PREFETCHED_VECTORS = 8
"""Maximum number of vectors of a tile if rows are prefetched. With more, the prefetches of one nonzero take
most of the buffers that wait for lines (measured at 16 vectors: 0.75 to 0.9 times as fast)."""


class PrefetchThresholds(msgspec.Struct, frozen=True):
    """Limits of prefetching: the minimum bytes of a row, the minimum size of the operand as a multiple of a
    core's private cache, and whether it pays for rows to which vectors are aligned, too."""

    min_row: int
    min_operand: float
    has_alignment: bool = False

    def operand_bytes(self, machine: Machine) -> int:
        """Return the minimum bytes of the operand on some machine."""
        return int(self.min_operand * machine.private_cache)


PREFETCH = PrefetchThresholds(min_row=128, min_operand=2)
"""Limits of prefetching: an operand of this size exceeds the private caches of a core (measured in products
with a dense matrix: 1.1 to 1.6 times faster from there to beyond the shared cache, and 0.85 below; in SDDMM
on graphs: 1.1 to 1.4 times faster). Rows of a single cache line are found without (0.9 to 1.2 times as
fast)."""


class RowLoads(msgspec.Struct, frozen=True):
    """The loads of a row that is gathered."""

    is_aligned: bool
    """True if vectors begin at aligned addresses, one vector more than the features fill."""
    prefetched_tiles: int
    """The number of tiles of features in which rows are prefetched; 0 if they are not."""


def row_loads(
    features: int, dtype: str, machine: Machine, stats: Stats, *, rows: int = 1
) -> RowLoads:
    """Return how the default schedule loads rows of this many features that are gathered where they are, each
    for `rows` rows of the result.

    >>> machine = Machine(private_cache=2 << 20, shared_cache=16 << 20)
    >>> matrix = Stats(rows=4096, columns=8192, nnz=16 * 4096, longest_row=48, empty_rows=0)
    >>> row_loads(128, "float32", machine, matrix)
    RowLoads(is_aligned=True, prefetched_tiles=0)
    >>> row_loads(512, "float32", machine, matrix)
    RowLoads(is_aligned=False, prefetched_tiles=4)
    """
    vectors, rest = divmod(features, machine.lanes(dtype))
    row_bytes = features * DType.parse(dtype).bits // 8
    operand = stats.columns * row_bytes
    least = min_aligned_for_rows(machine, rows=rows, operand=operand, stats=stats)
    is_whole = not rest and least is not None and vectors >= least and not machine.is_scalable
    if is_whole and operand <= largest_aligned(machine, stats):
        return RowLoads(is_aligned=True, prefetched_tiles=0)
    if row_bytes < PREFETCH.min_row or operand < PREFETCH.operand_bytes(machine):
        return RowLoads(is_aligned=False, prefetched_tiles=0)
    return RowLoads(is_aligned=False, prefetched_tiles=-(-vectors // PREFETCHED_VECTORS))


def min_aligned_for_rows(
    machine: Machine, *, rows: int, operand: int, stats: Stats | None
) -> int | None:
    """Return the minimum number of feature vectors for aligned loads to pay in sums of `rows` rows that share
    the gathered row of an operand with this many bytes; None if they never do.

    >>> [min_aligned_for_rows(Machine(), rows=rows, operand=1 << 20, stats=None) for rows in (1, 2)]
    [1, 2]
    >>> matrix = Stats(rows=4096, columns=4096, nnz=56 * 4096, longest_row=64, empty_rows=0)
    >>> narrow = Machine(min_vector_bits=256, private_cache=1 << 19)
    >>> [min_aligned_for_rows(narrow, rows=1, operand=size, stats=matrix) for size in (1 << 18, 1 << 19)]
    [11, 8]
    """
    if rows > 1:
        return min_aligned(machine)
    least = min_aligned_in_sums(machine)
    is_long = stats is not None and stats.mean_row >= MANY_ALIGNED_LOADS
    if least is None or not is_long or operand < machine.private_cache:
        return least
    return min(least, LONG_ROW_VECTORS)


def min_aligned(machine: Machine) -> int | None:
    """Return the minimum number of feature vectors for aligned loads to pay; None if they never do.

    One vector more is loaded, and the first and the last are masked, but no load crosses a cache line, which
    costs a second access. NumPy's arrays begin 16 bytes after the start of a line, so that all vectors of 512
    bits cross one (measured: 1.1 times faster with 2 vectors), and half of those of 256 bits. For these,
    masks are in vector registers. (Measured on Zen 3, times as fast as without, on 6 matrices: with 2 vectors
    0.3 to 1.1 in products with a dense matrix, 0.65 to 0.9 in SDDMM; with 4 vectors 0.64 to 1.03 and 0.73 to
    0.92; with 8 vectors 0.76 to 1.45 and 1.0; with 12 and 16 vectors 0.87 to 1.46 and 0.83 to 1.02.) In
    narrower vectors each masked lane would be a branch.

    >>> [min_aligned(Machine(min_vector_bits=bits)) for bits in (512, 256, 128)]
    [2, 11, None]
    """
    if not machine.has_masked_loads:
        return None
    added = 1 if machine.has_mask_registers else 1 + MASKED_VECTORS * MASK_OPERATIONS
    vectors_in_line = max(1, LINE_BYTES * 8 // machine.min_vector_bits)
    return added * vectors_in_line + 1


def min_aligned_in_sums(machine: Machine) -> int | None:
    """Return the minimum number of feature vectors for aligned loads to pay in sums of gathered rows; None if
    they never do.

    A vector that fills a line crosses one wherever the array begins, except at a line, so that one is enough
    (measured on Emerald Rapids: 1.05 to 1.25 times faster on rows of 4 elements, 1.25 to 1.4 on rows of 30
    and 80; products of gathered rows, as in SDDMM, 0.9 to 1.0).
    """
    return 1 if machine.min_vector_bits == LINE_BYTES * 8 else min_aligned(machine)


def largest_aligned(machine: Machine, stats: Stats | None) -> int:
    """Return the maximum bytes of an operand for aligned loads of its rows to pay.

    >>> matrix = Stats(rows=100, columns=10, nnz=160, longest_row=2, empty_rows=0)
    >>> [largest_aligned(Machine(shared_cache=4096), stats) for stats in (matrix, None)]
    [4096, 1024]
    """
    is_reused = stats is not None and is_used_often(stats)
    return machine.shared_cache // (1 if is_reused else ALIGNED_DIVISOR)

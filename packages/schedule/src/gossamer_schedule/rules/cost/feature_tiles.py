"""Rows of features that are accumulated in tiles of vectors: alignment, the loop over tiles, and stores."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Arg, Decision, Stats, Step
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.support.byte_sizes import size_in_words
from gossamer_schedule.rules.cost.gathered_rows import PrefetchThresholds, aligned_to_rows
from gossamer_schedule.rules.cost.vector_tiles import Tiling
from gossamer_schedule.rules.patterns.gathers import Gather

UNROLLED_TILES = 4
"""Maximum number of tiles that are unrolled if the last one is partial; this is fewer than 64 vectors of
code. The alternative, a loop over whole tiles and a peeled last tile, is 0.9 to 1 times as fast (measured on
rows of 4 and of 100 elements: each tile finds the row anew). It is 1.1 to 1.4 times as fast as a loop in
which all tiles are masked."""

PREFETCH = PrefetchThresholds(least_row=128, least_operand=2)
"""When prefetching pays: an operand of this size exceeds the private caches of a core (measured: 1.1 to 1.6
times faster from there to beyond the shared cache, and 0.85 below). Rows of a single cache line are found
without (0.9 to 1.2 times as fast)."""

LARGE_PART = 2
"""Non-temporal stores pay for a result from half of the shared cache. An ordinary store reads the line first,
and the line displaces rows of the dense operand (measured: 1.1 to 1.5 times faster, most on short rows)."""

WORK_PER_ROW = 4
"""Cost of a row besides its nonzeros, in nonzeros."""


class Result(NamedTuple):
    """The buffer of a result, its features (None: symbolic), and its dtype."""

    buffer: str
    features: int | None
    dtype: str


def alignment(
    gather: Gather, hardware: HardwareParams, stats: Stats | None, *, has_rows: bool
) -> Decision:
    """Decide whether vectors are aligned. Then the accumulators are a cache over the iterators of the block,
    which must include the row of the output and begin at the identity of the reduction."""
    if not has_rows:
        why = "the accumulators of a row cannot be indexed by the iterators of the block alone"
        return Decision("vectors begin at the first feature", why)
    return aligned_to_rows(gather, hardware, stats)


def several_tiles(tiling: Tiling, tile: str) -> tuple[Decision, ...]:
    """Decide how the loop over tiles runs, if there is one."""
    if tiling.tiles == 1:
        return ()
    if tiling.exact or tiling.tiles is None:
        why = "all tiles are alike, so unrolling would only add code"
        return (Decision("a loop over tiles", why),)
    if tiling.tiles > UNROLLED_TILES:
        args: dict[str, Arg] = {"name": tile, "key": "peel", "value": "last"}
        why = f"only the last tile needs masks, and more than {UNROLLED_TILES} copies are too much code"
        return (
            Decision(
                "a loop over whole tiles, with the last tile peeled", why, (Step("annotate", args),)
            ),
        )
    why = f"then only the last tile needs masks, and up to {UNROLLED_TILES} tiles are little code"
    return (Decision("tiles unrolled", why, (Step("unroll", {"loop": tile}),)),)


def around_caches(
    result: Result, copy_block: str, hardware: HardwareParams, stats: Stats | None
) -> tuple[Decision, ...]:
    """Decide whether the result is stored around the caches."""
    if stats is None or result.features is None:
        return ()
    size = stats.rows * result.features * DType.parse(result.dtype).bits // 8
    large = hardware.shared_cache // LARGE_PART
    # A smaller result stays in the cache for its next reader.
    if size < large:
        return ()
    args: dict[str, Arg] = {"block": copy_block, "buffer": result.buffer}
    why = (
        f"{result.buffer} has {size_in_words(size)}, and from {size_in_words(large)}, half of the shared "
        "cache, its lines would displace the gathered rows and be evicted before they are read"
    )
    return (
        Decision(
            f"{result.buffer} is stored around the caches", why, (Step("store_nontemporal", args),)
        ),
    )

"""The features of gathered rows as tiles of vectors, which are accumulated in registers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from gossamer_heuristics.gathered_rows import (
    PREFETCH,
    PREFETCHED_VECTORS,
    PrefetchThresholds,
    min_aligned_for_rows,
)
from gossamer_heuristics.summed_tiles import max_group_vectors, number_of_tiles
from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.decisions.alignment import row_alignment_verdict
from gossamer_schedule.rules.decisions.prefetching.row_prefetching import row_prefetching_verdict
from gossamer_schedule.rules.decisions.verdict import Verdict, unprofitable_verdict
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorTiles
from gossamer_support.message_texts import amount

SYMBOLIC_VECTORS = 4
"""Vectors per tile if the number of features is known at run time only. All of them are masked."""

MAX_TILE = 256
"""Maximum number of features of a tile: 16 vectors of 512 bits in float32."""

GOVERNING_PREDICATES = 7
"""Maximum number of scalable vectors of a tile with masks. Only the first eight predicate registers of SVE
can govern loads and multiply-adds, and one of them is true in all lanes (counted with 8 masks: 1.35 times as
many instructions as with 4, since masks are spilled)."""

LONG_VECTORS = 4
"""Multiple of the least vector length up to which no vector of a tile of scalable vectors is empty."""

MAX_UNIT_LANES = 32
"""Maximum number of lanes of a tile for each unit of vscale: two tiles of more lanes are not proved to have
different features."""


class GatherTiling(msgspec.Struct, frozen=True):
    """Tiles of features, the maximum number of vectors of a tile with its reason, whether vectors are aligned
    to the gathered rows, and whether these are prefetched."""

    tiles: VectorTiles
    limit: str
    aligning: Verdict
    prefetching: Verdict


def gather_tiling(
    gather: Gather,
    machine: Machine,
    *,
    stats: Stats | None,
    thresholds: PrefetchThresholds = PREFETCH,
    has_cacheable_accumulators: bool,
    rows: int = 1,
) -> GatherTiling:
    """Return the tiles of gathered rows, each of which is added to `rows` rows in registers.

    Accumulators of aligned vectors are a cache over the iterators of the block. They are cacheable if these
    iterators include the row of the output, and the accumulators begin at the identity of the reduction.
    """
    aligning = unprofitable_verdict(
        "the accumulators of a row cannot be indexed by the iterators of the block alone"
    )
    if machine.is_scalable:
        aligning = unprofitable_verdict(
            "vectors have no fixed length that could be aligned to cache lines"
        )
    elif has_cacheable_accumulators:
        least = min_aligned_for_rows(
            machine, rows=rows, operand=gather.operand_bytes(stats), stats=stats
        )
        aligning = row_alignment_verdict(gather, machine, stats=stats, least=least)
    prefetching = row_prefetching_verdict(
        gather, machine, stats=stats, thresholds=thresholds, is_aligned=aligning.is_profitable
    )
    tiles, limit = tiles_of(
        gather.features,
        gather.dtype,
        machine=machine,
        is_aligned=aligning.is_profitable,
        is_prefetched=prefetching.is_profitable,
        rows=rows,
    )
    return GatherTiling(tiles, limit, aligning, prefetching)


def tiles_of(
    features: int | None,
    dtype: str,
    *,
    machine: Machine,
    is_aligned: bool,
    is_prefetched: bool,
    rows: int = 1,
) -> tuple[VectorTiles, str]:
    """Return the fewest tiles that hold all features, all of the same size, and the reason for their size.

    Aligned vectors are one more than the features fill; a tile may hold one more, too. Tiles of rows that are
    prefetched are smaller, and so are tiles of several rows.

    >>> wide = Machine()
    >>> tiles, _ = tiles_of(512, "float32", machine=wide, is_aligned=False, is_prefetched=True)
    >>> tiles.tiles, tiles.vectors, tiles.lanes
    (4, 8, 16)
    """
    if machine.is_scalable:
        return _scalable_tiles(features, dtype, machine=machine)
    lanes = machine.lanes(dtype, holding=features)
    if features is None:
        return VectorTiles(None, SYMBOLIC_VECTORS, lanes, is_exact=False), ""
    # The first and the last of aligned vectors are partial.
    vectors = -(-features // lanes) + is_aligned
    most = min(machine.accumulators, MAX_TILE // lanes)
    limit = f"{most} at most, half of the registers and {MAX_TILE} features"
    if rows > 1:
        most = max_group_vectors(rows, machine)
        limit = (
            f"{most} at most, since registers hold them for {rows} rows and for the row they select"
        )
    elif is_aligned:
        most += 1
        limit += ", and one more because vectors are aligned"
    elif is_prefetched and most > PREFETCHED_VECTORS:
        most = PREFETCHED_VECTORS
        limit = f"{most} at most, because rows are prefetched"
    tiles = number_of_tiles(vectors, most)
    per_tile = -(-vectors // tiles)
    is_exact = tiles * per_tile * lanes == features + is_aligned * lanes
    return VectorTiles(tiles, per_tile, lanes, is_exact), limit


def _scalable_tiles(
    features: int | None, dtype: str, *, machine: Machine
) -> tuple[VectorTiles, str]:
    """Return tiles of scalable vectors, whose number follows from the length of vectors at run time.

    >>> tiles, _ = _scalable_tiles(128, "float32", machine=Machine(min_vector_bits=128, is_scalable=True))
    >>> tiles.vectors, tiles.lane_factor
    (4, '4 * T.vscale()')
    """
    lanes = machine.unit_lanes(dtype)
    most = min(machine.accumulators, GOVERNING_PREDICATES, MAX_UNIT_LANES // lanes)
    wanted = SYMBOLIC_VECTORS
    if features is not None:
        wanted = -(-features // (machine.lanes(dtype) * LONG_VECTORS))
    limit = (
        f"{most} vectors at most, each with a predicate register that governs it, and no empty one in "
        f"vectors of up to {machine.min_vector_bits * LONG_VECTORS} bits"
    )
    # Halves of the features that the longest of these vectors hold: a third would leave empty vectors.
    while wanted > most:
        wanted = -(-wanted // 2)
    return VectorTiles(None, wanted, lanes, is_exact=False, is_scalable=True), limit


def choose_tiles(
    trace: TraceBuilder, gather: Gather, *, tiling: GatherTiling, machine: Machine
) -> GatherTiling:
    """Return tiles of the chosen number of vectors: that of a tiling, half of it, or twice as many if
    accumulators hold them."""
    prior = tiling.tiles
    vectors = trace.choose(
        f"{gather.block}.tile_vectors", prior.vectors, *_other_vectors(prior, machine)
    )
    if vectors == prior.vectors:
        return tiling
    tiles = replace(prior, vectors=vectors)
    if prior.tiles is not None and gather.features is not None:
        elements = gather.features + tiling.aligning.is_profitable * prior.lanes
        number = -(-elements // tiles.lanes // vectors)
        is_exact = number * vectors * tiles.lanes == elements
        tiles = replace(tiles, tiles=number, is_exact=is_exact)
    return replace(tiling, tiles=tiles, limit=f"{amount(vectors, 'vector')}, as was chosen")


def _other_vectors(tiles: VectorTiles, machine: Machine) -> Iterator[int]:
    if tiles.vectors > 1:
        yield tiles.vectors // 2
    if tiles.tiles != 1 and 2 * tiles.vectors <= _max_vectors(tiles, machine):
        yield 2 * tiles.vectors


def _max_vectors(tiles: VectorTiles, machine: Machine) -> int:
    """Return the number of vectors of a tile that accumulators and, for masks of scalable vectors, predicate
    registers hold."""
    if not tiles.is_scalable:
        return machine.accumulators
    return min(machine.accumulators, GOVERNING_PREDICATES, MAX_UNIT_LANES // tiles.lanes)

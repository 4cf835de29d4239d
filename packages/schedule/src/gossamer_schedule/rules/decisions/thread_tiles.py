"""Tiles of features in parallel, each with its part of the dense operand packed by its thread."""

from __future__ import annotations

import msgspec

from gossamer_heuristics.thread_copies import packed_vectors, thread_tile_packing
from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.decisions.packing import (
    not_one_operand_verdict,
    pack_operand,
    packing_refusal_verdict,
)
from gossamer_schedule.rules.decisions.row_tiles import accumulate_row_tile
from gossamer_schedule.rules.decisions.tiles_in_vectors import run_tile_in_vectors
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    profitable_verdict,
    unknown_size_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.register_tiles import TileNests, tile_around
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorTiles, tiles_holding
from gossamer_support.message_texts import amount, readable_size


class ThreadTiles(msgspec.Struct, frozen=True):
    """Tiles of the features of gathered rows, and whether each thread packs its tile of the operand."""

    tiles: VectorTiles
    packing: Verdict


def thread_tiles(gather: Gather, machine: Machine, *, stats: Stats | None) -> ThreadTiles:
    """Return the tiles of gathered rows that threads would pack, and whether that pays."""
    tiles = _packed_tiles(gather, machine)
    return ThreadTiles(tiles, _thread_tile_verdict(gather, tiles, machine=machine, stats=stats))


def are_whole_tiles(gather: Gather, machine: Machine) -> bool:
    """Return whether features are several whole tiles of one operand, which threads can pack."""
    tiles = _packed_tiles(gather, machine)
    return bool(gather.operand) and tiles.is_exact and (tiles.tiles or 1) > 1


def _packed_tiles(gather: Gather, machine: Machine) -> VectorTiles:
    vectors, lanes = packed_vectors(gather.dtype, machine), machine.lanes(gather.dtype)
    return tiles_holding(gather.features, vectors=vectors, lanes=lanes)


def _thread_tile_verdict(
    gather: Gather, tiles: VectorTiles, *, machine: Machine, stats: Stats | None
) -> Verdict:
    """Decide whether each thread packs the tile of features that it computes with."""
    operand = gather.operand
    if not operand:
        return not_one_operand_verdict()
    if stats is None:
        return unknown_size_verdict(operand)
    packing = thread_tile_packing(gather.features or 0, gather.dtype, machine, stats)
    size = readable_size(packing.operand)
    match packing.obstacle:
        case None:
            return profitable_verdict(
                f"{operand} has {size}, the copy of a tile {readable_size(packing.copy)}; each row of it is "
                f"used {packing.uses} times or more on average, from a cache nearer to the core"
            )
        case "partial tiles":
            return unprofitable_verdict("there are not several whole tiles of features")
        case "idle cores":
            cores = amount(machine.cores, "core")
            return unprofitable_verdict(
                f"{amount(tiles.tiles or 0, 'tile')} would not keep {cores} busy"
            )
        case "small operand":
            return unprofitable_verdict(
                f"{operand} has {size}, and rows of {stats.mean_row:.3g} elements pay for packing from "
                f"{readable_size(packing.least)}"
            )
        case _:
            return packing_refusal_verdict(
                packing, operand, copy="the copy of a tile", cache="shared cache"
            )


def run_thread_tiles(
    trace: TraceBuilder, pattern: RowReduction, *, packed: ThreadTiles
) -> TileNests:
    """Run tiles of features in parallel. Each packs its part of the operand, and then computes all rows.
    Return the nests of a tile."""
    inner, operand = (pattern.row, *pattern.words, pattern.position), pattern.gather.operand
    loops = tile_around(trace, pattern.feature, packed.tiles, inner=inner)
    assert loops.tile is not None, "packing pays for several tiles only"
    assert operand is not None, "packing pays for one operand only"
    trace.decide(
        f"features in {packed.tiles.text}, around the rows {pattern.row}",
        "all rows are computed with a packed tile of the operand before the next one is packed",
    )
    nests = accumulate_row_tile(trace, pattern, tiles=packed.tiles, loops=loops, holder=pattern.row)
    run_tile_in_vectors(trace, nests.all)
    pack_operand(
        trace,
        pattern.block,
        tiles=packed.tiles,
        operand=operand,
        loop_name=loops.tile,
        ndim=2,
        is_shared=False,
    )
    trace.decide(f"{operand} packed for each tile of features", packed.packing.why)
    trace.record.parallel(loop=loops.tile, grain=1)
    trace.decide(
        "tiles of features in parallel",
        "each thread reads only the tile that it has packed; there are enough tiles for all cores, and each "
        "is more work than waking a thread",
    )
    return nests

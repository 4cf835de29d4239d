"""The decision to pack tiles of features of gathered rows, each by the thread that computes with it."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Stats
from gossamer_ir.machine.hardware_params import HardwareParams
from gossamer_ir.machine.packed_tiles import packed_vectors, tile_packing
from gossamer_ir.support.byte_sizes import size_in_words
from gossamer_ir.support.counted import counted
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.profitability.packing import not_one_operand, refusal
from gossamer_schedule.rules.profitability.verdict import Verdict, pays, pays_not, unknown_size
from gossamer_schedule.rules.steps.vector_loops import VectorTiles, tiles_holding


class PackedTiles(NamedTuple):
    """Tiles of features of an operand (empty: there is not exactly one), and whether they are packed."""

    operand: str
    tiles: VectorTiles
    packing: Verdict


def packed_tiles(gather: Gather, hardware: HardwareParams, stats: Stats | None) -> PackedTiles:
    """Return the tiles of gathered rows that would be packed, and whether that pays."""
    vectors, lanes = packed_vectors(gather.dtype, hardware), hardware.lanes(gather.dtype)
    tiles = tiles_holding(gather.features, vectors=vectors, lanes=lanes)
    packing = _packing(gather, tiles, hardware, stats)
    return PackedTiles(gather.operand or "", tiles, packing)


def _packing(
    gather: Gather, tiles: VectorTiles, hardware: HardwareParams, stats: Stats | None
) -> Verdict:
    """Decide whether tiles are packed."""
    operand = gather.operand
    if not operand:
        return not_one_operand()
    if stats is None:
        return unknown_size(operand)
    found = tile_packing(gather.features or 0, gather.dtype, hardware, stats)
    size = size_in_words(found.operand)
    match found.obstacle:
        case None:
            return pays(
                f"{operand} has {size}, the copy of a tile {size_in_words(found.copy)}; each row of it is "
                f"used {found.uses} times or more on average, from a cache nearer to the core"
            )
        case "partial tiles":
            return pays_not("there are not several whole tiles of features")
        case "idle cores":
            cores = counted(hardware.cores, "core")
            return pays_not(f"{counted(tiles.tiles or 0, 'tile')} would not keep {cores} busy")
        case "small operand":
            return pays_not(
                f"{operand} has {size}, and rows of {stats.mean_row:.3g} elements pay for packing from "
                f"{size_in_words(found.least)}"
            )
        case _:
            return refusal(found, operand, copy="the copy of a tile", cache="shared cache")

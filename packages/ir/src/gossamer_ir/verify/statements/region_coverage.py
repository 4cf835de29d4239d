"""Checks of the regions that a block declares with `T.reads` and `T.writes`."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import Access, accesses_of_block
from gossamer_ir.arith.affine import distance
from gossamer_ir.core.build import add
from gossamer_ir.nodes import Block, Expr, Range, Region
from gossamer_ir.verify.context import NodePlace, VerifyContext


def check_regions(context: VerifyContext, block: Block, place: NodePlace) -> None:
    """Report accesses that are outside of the declared region by a constant distance.

    Buffers without a region are accepted: published programs omit those of index arrays, and passes
    derive the regions that they need (`gossamer_ir.analysis.regions`).
    """
    for field, count in uncovered_regions(block):
        name = getattr(block, field)[count].buffer
        context.report(
            "verify.block.region",
            f"The block '{block.name}' accesses '{name}' outside of the region in its T.{field}.",
            place.down(field, count),
            hint="Remove the region: regions are derived from the body.",
        )


def uncovered_regions(block: Block) -> Iterator[tuple[str, int]]:
    """Yield the declared regions, as field and index, that provably do not cover an access of the block.

    If a buffer has several regions, and none covers the access, the last one is returned.
    """
    declared = [
        (field, number, region)
        for field in ("reads", "writes")
        for number, region in enumerate(getattr(block, field) or ())
    ]
    for access in accesses_of_block(block) if declared else ():
        mine = "writes" if access.is_store else "reads"
        candidates = [
            (number, region)
            for field, number, region in declared
            if field == mine and region.buffer == access.buffer
        ]
        if candidates and all(_is_outside(access, region) for _, region in candidates):
            yield mine, candidates[-1][0]


def without_false_regions(block: Block) -> Block:
    """Return the block without the regions that provably do not cover an access."""
    false = list(uncovered_regions(block))
    if not false:
        return block
    kept = {
        field: tuple(
            region
            for number, region in enumerate(getattr(block, field))
            if (field, number) not in false
        )
        for field in {field for field, _ in false}
    }
    return without_false_regions(replace(block, **kept))


def _is_outside(access: Access, region: Region) -> bool:
    if len(access.indices) != len(region.ranges):
        return False
    return any(
        not isinstance(index, Range) and _is_beyond(index, bounds)
        for index, bounds in zip(access.indices, region.ranges, strict=True)
    )


def _is_beyond(index: Expr, bounds: Range) -> bool:
    before = distance(index, bounds.start)
    after = distance(index, add(bounds.start, bounds.extent))
    return (before is not None and before < 0) or (after is not None and after >= 0)

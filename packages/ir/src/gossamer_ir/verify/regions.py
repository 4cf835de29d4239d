"""Regions that a block declares: none of its accesses may lie outside of them by what can be seen."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gossamer_ir.analysis.accesses import Access, accesses_of_block
from gossamer_ir.arith.affine import distance
from gossamer_ir.core.build import add
from gossamer_ir.nodes import Block, Expr, Range, Region
from gossamer_ir.verify.context import At, Context


def check_regions(ctx: Context, block: Block, at: At) -> None:
    """An access that is a constant distance outside of the region of its buffer is reported. A
    buffer without a region is not: published programs leave out index arrays, and whoever needs
    regions derives them (`gossamer_ir.analysis.regions`)."""
    for field, count in outside(block):
        name = getattr(block, field)[count].buffer
        ctx.report(
            "verify.block.region",
            f"The block '{block.name}' touches '{name}' outside of the region in its T.{field}.",
            at.down(field, count),
            hint="Leave it out: regions follow from the body.",
        )


def outside(block: Block) -> Iterator[tuple[str, int]]:
    """The declared regions, by field and number, that plainly leave out an access of the block; the
    last one of a buffer that has several."""
    declared = [
        (field, count, region)
        for field in ("reads", "writes")
        for count, region in enumerate(getattr(block, field) or ())
    ]
    for access in accesses_of_block(block) if declared else ():
        mine = "writes" if access.is_store else "reads"
        found = [row for row in declared if row[0] == mine and row[2].buffer == access.buffer]
        if found and all(_is_outside(access, region) for _, _, region in found):
            yield mine, found[-1][1]


def without_false_regions(block: Block) -> Block:
    """The block without the regions that plainly leave out one of its accesses."""
    false = list(outside(block))
    if not false:
        return block
    kept = {
        field: tuple(
            region
            for count, region in enumerate(getattr(block, field))
            if (field, count) not in false
        )
        for field in {field for field, _ in false}
    }
    return without_false_regions(replace(block, **kept))


def _is_outside(access: Access, region: Region) -> bool:
    if len(access.indices) != len(region.ranges):
        return False
    return any(
        not isinstance(index, Range) and _is_beyond(index, found)
        for index, found in zip(access.indices, region.ranges, strict=True)
    )


def _is_beyond(index: Expr, found: Range) -> bool:
    before = distance(index, found.start)
    behind = distance(index, add(found.start, found.extent))
    return (before is not None and before < 0) or (behind is not None and behind >= 0)

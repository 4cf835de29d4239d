"""`hide_buffer_access`: remove buffers from the regions that a block declares."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.regions import block_regions
from gossamer_ir.nodes import Block, Function, Region
from gossamer_ir.verify.statements.region_coverage import uncovered_regions
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import listing, schedule_error

AccessKind: TypeAlias = Literal["read", "write"]
"""The kinds of access for which blocks declare regions."""


@primitive(stages=LOOP_STAGES)
def hide_buffer_access(
    root: Cursor[Function],
    block: str,
    *,
    access: AccessKind,
    buffers: tuple[str, ...],
    function: str | None = None,
) -> Change:
    """Remove buffers from the regions that a block declares to read or write.

    `access` is "read" or "write". A block without such a declaration gets the regions that follow from its
    body, except those of `buffers`. Declared regions are documentation: legality checks and the matching
    of intrinsics use the body, so the step hides nothing from them. The result's name is that of the block.

    Raises `ScheduleError` with a code `schedule.hide_buffer_access.*`:

    * `.access`: neither "read" nor "write"
    * `.region`: the block has no region of a buffer, or a remaining region may not contain its accesses

    >>> from gossamer_testkit.examples import GATHER
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(GATHER))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
    >>> result = hide_buffer_access(GATHER, "gather", access="read", buffers=("P",))
    >>> print(body_text(result.module))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            T.reads(X[P[vi]])
            Y[vi] = X[P[vi]]
    """
    cursor = find_block(root, block=block)

    regions = _regions_of_block(root.function, cursor.node, access)
    _require_regions(cursor.node, regions, buffers, access=access)
    remaining = tuple(region for region in regions if region.buffer not in buffers)

    changed: Block = replace(cursor.node, **{f"{access}s": remaining})
    _require_containing_regions(changed)
    return Change(cursor.replace_with((changed,)), (block,))


def _regions_of_block(owner: Function, block: Block, access: AccessKind) -> tuple[Region, ...]:
    """Return the regions that a block declares, or else those that follow from its body."""
    declared: tuple[Region, ...] | None = block.reads if access == "read" else block.writes
    if declared is not None:
        return declared
    derived = block_regions(owner, block)
    return tuple(item.region for item in (derived.reads if access == "read" else derived.writes))


def _require_regions(
    block: Block, regions: tuple[Region, ...], buffers: tuple[str, ...], *, access: AccessKind
) -> None:
    """Refuse a buffer without a region, such as a misspelled one: the step would hide nothing."""
    with_regions = [region.buffer for region in regions]
    missing = [name for name in buffers if name not in with_regions]
    if missing:
        raise schedule_error(
            "hide_buffer_access.region",
            f"Block '{block.name}' has no {access} region of '{missing[0]}'.",
            hint=listing(f"buffers with {access} regions", with_regions),
        )


def _require_containing_regions(block: Block) -> None:
    """Refuse regions that may not contain the accesses of the block.

    Regions that follow from the body end with the buffer, and an access may lie beyond it.
    """
    for field, count in uncovered_regions(block):
        raise schedule_error(
            "hide_buffer_access.region",
            f"No region of '{getattr(block, field)[count].buffer}' is known that contains all accesses of "
            f"block '{block.name}'.",
        )

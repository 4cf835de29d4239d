"""`hide_buffer_access`: buffers are left out of the regions that a block declares."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.regions import block_regions
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Block, Function, Module, Region
from gossamer_ir.verify.regions import outside
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_block, find_function, require_stage
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "hide_buffer_access"


@primitive
def hide_buffer_access(
    module: Module,
    block: str,
    *,
    access: str,
    buffers: tuple[str, ...],
    function: str | None = None,
) -> Result:
    """Leaves some buffers out of the regions that a block declares to "read" or "write" (`access`). A block
    that declares none gets the regions that follow from its body, without these buffers.

    Declared regions are for readers: whether a step is legal, and what an intrinsic matches, always
    follows from the body. The program means the same, and the step hides nothing from a proof.

    Raises `ScheduleError`: `schedule.hide_buffer_access.access` (neither "read" nor "write"), `.region` (the
    block has no region of a buffer, or one that does not hold what it touches), `.no_block`,
    `.no_function`, `.stage`.

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
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    cursor = find_block(root, block=block)

    _require_access(access)
    regions = _regions(root.function, cursor.node, access)
    _require_regions(cursor.node, regions, buffers)
    left = tuple(found for found in regions if found.buffer not in buffers)

    changed: Block = replace(cursor.node, **{f"{access}s": left})
    _require_within(changed)
    rewritten = cursor.replaced_by((changed,)).module

    taken = step(block=block, access=access, buffers=buffers, function=function)
    return Result(rewritten, (block,), Step(_NAME, taken))


def _require_access(access: str) -> None:
    if access not in ("read", "write"):
        raise schedule_error(
            f"{_NAME}.access", f"'{access}' is not an access.", hint="Expected 'read' or 'write'."
        )


def _regions(owner: Function, block: Block, access: str) -> tuple[Region, ...]:
    """The regions that a block declares, else those that follow from its body."""
    declared: tuple[Region, ...] | None = block.reads if access == "read" else block.writes
    if declared is not None:
        return declared
    found = block_regions(owner, block)
    return tuple(item.region for item in (found.reads if access == "read" else found.writes))


def _require_regions(block: Block, regions: tuple[Region, ...], buffers: tuple[str, ...]) -> None:
    known = [found.buffer for found in regions]
    missing = [name for name in buffers if name not in known]
    if missing:
        raise schedule_error(
            f"{_NAME}.region",
            f"Block '{block.name}' has no such region of '{missing[0]}'.",
            hint=listing("buffers", known),
        )


def _require_within(block: Block) -> None:
    """Regions that follow from the body lie in the buffer, and hold no access beyond it."""
    for field, count in outside(block):
        raise schedule_error(
            f"{_NAME}.region",
            f"No region that holds what block '{block.name}' touches of "
            f"'{getattr(block, field)[count].buffer}' is known.",
        )

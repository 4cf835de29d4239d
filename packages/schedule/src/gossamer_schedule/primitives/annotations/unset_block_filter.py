"""`unset_block_filter`: remove the block filter, so that look-ups return all blocks."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Module
from gossamer_schedule.cursor.filters import without_filter
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_function, require_stage
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "unset_block_filter"


@primitive
def unset_block_filter(module: Module, *, function: str | None = None) -> Result:
    """Remove the filter of `set_block_filter`: look-ups return all blocks again. The result has no names.

    Raises `ScheduleError`: `schedule.unset_block_filter.no_filter` (no filter is set), `.no_function`,
    `.stage`.

    >>> from gossamer_schedule import get_blocks, set_block_filter
    >>> from gossamer_testkit.examples import STAGED
    >>> filtered = set_block_filter(STAGED, "group_0").module
    >>> get_blocks(filtered)
    ()
    >>> get_blocks(unset_block_filter(filtered).module)
    ('fetch', 'scale')
    """
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)

    remaining = without_filter(root.function)
    if remaining == root.function.annotations:
        raise schedule_error(
            f"{_NAME}.no_filter",
            f"Function '{root.function.name}' has no block filter.",
            hint="Apply set_block_filter before.",
        )

    rewritten = root.with_function(replace(root.function, annotations=remaining)).module

    return Result(rewritten, (), Step(_NAME, step(function=function)))

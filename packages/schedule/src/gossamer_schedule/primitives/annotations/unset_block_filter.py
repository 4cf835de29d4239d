"""`unset_block_filter`: remove the block filter, so that look-ups return all blocks."""

from __future__ import annotations

from gossamer_ir.core.annotations import BLOCK_FILTER, without_annotation
from gossamer_ir.nodes import Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error


@primitive(stages=LOOP_STAGES)
def unset_block_filter(root: Cursor[Function], *, function: str | None = None) -> Change:
    """Remove the filter of `set_block_filter`: look-ups return all blocks again. The result has no names.

    Raises `ScheduleError` with a code `schedule.unset_block_filter.*`:

    * `.no_filter`: no filter is set

    >>> from gossamer_schedule import get_blocks, set_block_filter
    >>> from gossamer_testkit.examples import STAGED
    >>> filtered = set_block_filter(STAGED, "group_0").module
    >>> get_blocks(filtered)
    ()
    >>> get_blocks(unset_block_filter(filtered).module)
    ('fetch', 'scale')
    """
    unfiltered = without_annotation(root.function, BLOCK_FILTER)
    if unfiltered is root.function:
        raise schedule_error(
            "unset_block_filter.no_filter",
            f"Function '{root.function.name}' has no block filter.",
            hint="Apply set_block_filter before.",
        )

    return Change(root.with_function(unfiltered), ())

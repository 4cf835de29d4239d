"""`set_block_filter`: restrict look-ups to blocks with an annotation."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Module
from gossamer_ir.traversal.names import is_identifier
from gossamer_schedule.cursor.filters import BLOCK_FILTER, without_filter
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_function, require_stage
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "set_block_filter"


@primitive
def set_block_filter(module: Module, key: str, *, function: str | None = None) -> Result:
    """Restrict look-ups to the blocks that have an annotation `key` (see `annotate`).

    From this step on, `get_blocks`, `get_child_blocks`, `get_producers` and `get_consumers` return only
    these blocks, and `unsafe_match_to_alloc` redirects only their accesses. Other primitives apply to the
    block that they are given; their checks consider all blocks of the function. A new filter replaces the
    previous one; `unset_block_filter` removes it. The result has no names.

    Raises `ScheduleError`: `schedule.set_block_filter.key` (not an identifier), `.no_function`, `.stage`.

    >>> from gossamer_schedule import annotate, get_blocks
    >>> from gossamer_testkit.examples import STAGED
    >>> get_blocks(STAGED)
    ('fetch', 'scale')
    >>> noted = annotate(STAGED, "scale", key="group_0", value=1).module
    >>> get_blocks(set_block_filter(noted, "group_0").module)
    ('scale',)
    """
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)

    if not is_identifier(key):
        raise schedule_error(
            f"{_NAME}.key",
            f"'{key}' cannot be the key of an annotation.",
            hint="Expected an identifier.",
        )
    annotations = (*without_filter(root.function), (BLOCK_FILTER, key))

    rewritten = root.with_function(replace(root.function, annotations=annotations)).module

    return Result(rewritten, (), Step(_NAME, step(key=key, function=function)))

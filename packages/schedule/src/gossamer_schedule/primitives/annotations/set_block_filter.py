"""`set_block_filter`: restrict look-ups to blocks with an annotation."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.annotations import BLOCK_FILTER, without_annotation
from gossamer_ir.nodes import Function
from gossamer_ir.traversal.names import is_identifier
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error


@primitive(stages=LOOP_STAGES)
def set_block_filter(root: Cursor[Function], key: str, *, function: str | None = None) -> Change:
    """Restrict look-ups to the blocks that have an annotation `key` (see `annotate`).

    From this step on, `get_blocks`, `get_child_blocks`, `get_producers` and `get_consumers` return only
    these blocks, and `unsafe_match_to_alloc` redirects only their accesses. Other primitives apply to the
    block that they are given; their checks consider all blocks of the function. A new filter replaces the
    previous one; `unset_block_filter` removes it. The result has no names.

    Raises `ScheduleError` with a code `schedule.set_block_filter.*`:

    * `.key`: not an identifier

    >>> from gossamer_schedule import annotate, get_blocks
    >>> from gossamer_testkit.examples import STAGED
    >>> get_blocks(STAGED)
    ('fetch', 'scale')
    >>> noted = annotate(STAGED, "scale", key="group_0", value=1).module
    >>> get_blocks(set_block_filter(noted, "group_0").module)
    ('scale',)
    """
    if not is_identifier(key):
        raise schedule_error(
            "set_block_filter.key",
            f"'{key}' cannot be the key of an annotation.",
            hint="Expected an identifier.",
        )
    others = without_annotation(root.function, BLOCK_FILTER).annotations
    annotations = (*others, (BLOCK_FILTER, key))

    return Change(root.with_function(replace(root.function, annotations=annotations)), ())

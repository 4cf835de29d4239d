"""`unsafe_match_to_alloc`: replace an array of the caller by an allocated buffer, without a proof."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.nodes import AnyBuffer, Block, Function, Node
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.buffer_uses import outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite, rewrite_body
from gossamer_schedule.cursor.block_filter import filter_of, is_selected
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block, find_buffer
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.unsafe_mark import marked_unsafe
from gossamer_schedule.errors import schedule_error


@primitive(stages=LOOP_STAGES)
def unsafe_match_to_alloc(
    root: Cursor[Function], block: str, *, buffer: str, function: str | None = None
) -> Change:
    """Replace a buffer of the caller, to which a block stores, by one that the function allocates.

    Accesses of `buffer` go to the new buffer `<buffer>_alloc`, which has the same shape: those of all
    statements or, if `set_block_filter` set a filter, those of the blocks that have its annotation.
    Primitives that need an allocated buffer, such as `set_scope` and `compute_at`, then apply to it.

    The caller's array is no longer written. If the caller reads it afterward, or a statement reads an
    element that was not written before, results are undefined. The function is annotated `unsafe`. The
    result's name is that of the new buffer.

    Raises `ScheduleError` with a code `schedule.unsafe_match_to_alloc.*`:

    * `.allocated`: the function allocates the buffer already
    * `.stores`: the block does not store to it
    * `.filter`: the block does not have the annotation

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> result = unsafe_match_to_alloc(SCALE, "scale", buffer="Y")
    >>> print(body_text(result.module))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y_alloc[vi] = X[vi] * 2.0
    >>> result.module.functions[0].annotations
    (('unsafe', 'match_to_alloc(Y_alloc)'),)
    """
    cursor = find_block(root, block=block)
    old = find_buffer(root, buffer=buffer)

    _require_parameter(old)
    _require_written(cursor.node, old.name)
    _require_selected(cursor.node, root.function)

    new = replace(old, name=namer_of(root.function).fresh(f"{buffer}_alloc"), handle=None)
    changed = replace(
        _function_with_redirected(root.function, buffer, to=new.name),
        buffers=(*root.function.buffers, new),
    )
    return marked_unsafe(Change(root.with_function(changed), (new.name,)))


def _require_parameter(buffer: AnyBuffer) -> None:
    """Refuse an allocated buffer: there is no array of the caller to replace."""
    if buffer.handle is None:
        raise schedule_error(
            "unsafe_match_to_alloc.allocated",
            f"Buffer '{buffer.name}' is allocated by the function already.",
            hint="Choose a buffer that the caller passes.",
        )


def _require_written(block: Block, buffer_name: str) -> None:
    """Refuse a buffer that the block only reads: it may hold an input, which the new buffer lacks."""
    if buffer_name not in outer_writes((block,)):
        raise schedule_error(
            "unsafe_match_to_alloc.stores",
            f"Block '{block.name}' does not store to '{buffer_name}'.",
        )


def _require_selected(block: Block, owner: Function) -> None:
    """Refuse a block that the filter leaves out: its stores would still go to the array of the caller."""
    if not is_selected(block, owner):
        raise schedule_error(
            "unsafe_match_to_alloc.filter",
            f"Block '{block.name}' does not have the annotation '{filter_of(owner)}' of the block filter.",
            hint="Apply annotate before, or unset_block_filter.",
        )


def _function_with_redirected(owner: Function, buffer_name: str, *, to: str) -> Function:
    """Return the function with accesses moved to another buffer: all, or those of the filtered blocks."""

    def use(node: Any) -> Any | None:
        if type(node) in BUFFER_NODES and node.buffer == buffer_name:
            return replace(node, buffer=to)
        return None

    def choose(node: Node) -> Any | None:
        if isinstance(node, Block) and is_selected(node, owner):
            return rewrite(replace(node, reads=None, writes=None), use)
        return None

    rule = use if filter_of(owner) is None else choose
    return replace(owner, body=rewrite_body(owner.body, rule))

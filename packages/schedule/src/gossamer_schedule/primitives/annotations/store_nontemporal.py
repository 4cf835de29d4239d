"""`store_nontemporal`: write a buffer around the caches."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.nodes import Block, Function, Node, Store
from gossamer_ir.traversal.buffer_uses import buffers_read_in
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import listing, schedule_error


@primitive(stages=LOOP_STAGES)
def store_nontemporal(
    root: Cursor[Function], block: str, *, buffer: str, function: str | None = None
) -> Change:
    """Give the stores of a block to a buffer the hint that their elements will not be read soon.

    Such a store writes whole vectors to memory without reading the cache lines first and without displacing
    others from the caches. It pays for results that are larger than the caches. Vectors that do not begin at
    a multiple of their size are stored as usual, as are single elements and masked vectors. Results do not
    change. The result's name is that of the block.

    Raises `ScheduleError` with a code `schedule.store_nontemporal.*`:

    * `.no_store`: the body of the block does not store to the buffer
    * `.read`: the block also reads the buffer, or updates it by a reducer of the function, which would then
      wait for memory

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> print(body_text(store_nontemporal(SCALE, "scale", buffer="Y").module))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            T.store(Y, vi, value=X[vi] * 2.0, nontemporal=True)
    """
    cursor = find_block(root, block=block)
    body = rewrite_body(cursor.node.body, lambda node: _with_hint(node, buffer))
    _require_written(cursor, buffer)
    _require_unread(cursor, buffer)
    return Change(cursor.replace_with((replace(cursor.node, body=body),)), (block,))


def _require_written(cursor: Cursor[Block], buffer_name: str) -> None:
    stored = sorted({node.buffer for node in collect(Store, *cursor.node.body)})
    if buffer_name not in stored:
        raise schedule_error(
            "store_nontemporal.no_store",
            f"Block '{cursor.node.name}' does not store to '{buffer_name}'.",
            hint=listing("buffers to which it stores", stored),
            place=cursor.place,
        )


def _require_unread(cursor: Cursor[Block], buffer_name: str) -> None:
    if buffer_name in buffers_read_in(cursor.node.body):
        raise schedule_error(
            "store_nontemporal.read",
            f"Block '{cursor.node.name}' also reads '{buffer_name}', and each read would wait for memory.",
            hint="Accumulate in a local buffer with cache_write, and apply this to the block that copies it.",
            place=cursor.place,
        )


def _with_hint(node: Node, buffer_name: str) -> Store | None:
    if isinstance(node, Store) and node.buffer == buffer_name and not node.nontemporal:
        return replace(node, nontemporal=True)
    return None

"""Steps that the primitives which create a cache share."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.nodes import AnyBuffer, Block, Function, Scope, Stmt
from gossamer_ir.traversal.names import Namer
from gossamer_schedule.cursor.cursor_at import Cursor, function_with_replaced
from gossamer_schedule.cursor.find import find_block, find_buffer
from gossamer_schedule.legality.races import require_no_race_on_new
from gossamer_schedule.made_names import cache_name
from gossamer_schedule.nests.block_nest import BlockNest


class ReindexedBuffer(msgspec.Struct, frozen=True):
    """A buffer over a block's iterators, for the elements of another buffer that the block accesses.

    `order` names the iterators in the order of the dimensions (empty: as in the block).
    """

    name: str
    scope: Scope
    elements_of: str
    order: tuple[str, ...] = ()


def required_block_and_buffer(
    root: Cursor[Function], *, block_name: str, buffer_name: str
) -> tuple[Cursor[Block], AnyBuffer]:
    """Return the cursor at a block and the buffer to cache for it.

    Raises `.no_block` and `.no_buffer`.
    """
    cursor = find_block(root, block=block_name)
    old = find_buffer(root, buffer=buffer_name)
    return cursor, old


def cache_of(old: AnyBuffer, scope: Scope, *, namer: Namer) -> AnyBuffer:
    """Return a new buffer of the same shape in a scope."""
    return replace(old, name=namer.fresh(cache_name(old.name, scope)), handle=None, scope=scope)


def with_cache(
    cache: AnyBuffer,
    *,
    nest: BlockNest,
    block: Block,
    before: tuple[Stmt, ...] = (),
    after: tuple[Stmt, ...] = (),
) -> Cursor[Function]:
    """Return the cursor at the function with a cache: the block of a nest is replaced by `block`, which uses
    the cache, and the copies `before` and `after` are added around the nest.

    Raises `.race` and `.not_proved` if concurrent iterations around the nest would share the cache.
    """
    replacing = find_block(nest.block.replace_with((block,)), block=block.name)
    top = BlockNest(replacing, nest.enclosing).top
    changed = function_with_replaced(top, (*before, top.node, *after))
    changed = replace(changed, buffers=(*changed.buffers, cache))
    rewritten = replacing.with_function(changed)
    require_no_race_on_new(nest.top, rewritten, buffers={cache.name})
    return rewritten

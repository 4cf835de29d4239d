"""Checks of buffers that get a cache, and of the elements that are copied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gossamer_ir.analysis.invariants import buffers_written_in, changing_buffers
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import AnyBuffer, Block, BlockIter, Buffer, Node
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.nests.block_nest import BlockNest


def require_allocated_outside(nest: BlockNest, buffer_name: str) -> None:
    """Refuse a buffer that is allocated inside the nest of a block; it will be used outside, too.

    Raises `.inner`.
    """
    if buffer_name in buffers_allocated((nest.top.node,)):
        raise schedule_error(
            f"{nest.block.primitive}.inner",
            f"Buffer '{buffer_name}' is allocated inside the loop nest of block '{nest.name}', and "
            f"{nest.block.primitive} would use it outside of the nest.",
            hint=f"Apply {nest.block.primitive} before moving the writer of '{buffer_name}' into the nest.",
        )


def selecting_iters(block: Block, selectors: Iterable[Node]) -> tuple[BlockIter, ...]:
    """Return the iterators that expressions use, and those that the domains of these depend on."""
    needed = {name for selector in selectors for name in free_vars(selector)}
    for iterator in reversed(block.iters):
        if iterator.var in needed:
            needed |= free_vars(iterator.domain)
    return tuple(iterator for iterator in block.iters if iterator.var in needed)


def require_invariant_selectors(
    nest: BlockNest, iters: Sequence[BlockIter], selectors: Sequence[Node]
) -> None:
    """Refuse selectors of elements whose values may differ outside of the nest.

    They may depend on iterators, on variables bound around the nest, and on buffers that the nest neither
    writes nor allocates. The domains of the iterators must start at 0.
    """
    domains = [iterator.domain for iterator in iters]
    needed = {name for node in (*selectors, *domains) for name in free_vars(node)}
    available = {iterator.var for iterator in iters} | nest.known_above
    inside = (nest.top.node,)
    reads = buffers_read(*selectors, *domains)
    changing = buffers_written_in(inside, nest.block.function) | buffers_allocated(inside)
    if (
        needed - available
        or reads & changing
        or any(integer_value(iterator.domain.start) != 0 for iterator in iters)
    ):
        raise schedule_error(
            f"{nest.block.primitive}.domain",
            f"The elements that block '{nest.name}' selects depend on more than its iterators, variables "
            "bound around its nest, and buffers that the nest does not write.",
        )


def require_constant_size(buffer: AnyBuffer, cursor: Cursor[object]) -> None:
    """Refuse a buffer whose size is not constant in the function, where a buffer of this size is added.

    Raises `.inner`.
    """
    function = cursor.function
    if buffer in function.buffers or not isinstance(buffer, Buffer):
        return
    params = {param.name for param in function.params}
    changed = changing_buffers(function.body, *buffer.shape, function=function)
    others = free_vars(*buffer.shape) - params | changed
    if others:
        raise schedule_error(
            f"{cursor.primitive}.inner",
            f"The size of buffer '{buffer.name}' depends on {', '.join(sorted(others))}, which is not "
            "constant in the function; a buffer that the function declares cannot have this size.",
        )

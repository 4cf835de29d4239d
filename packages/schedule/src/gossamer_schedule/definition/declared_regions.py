"""Removes declared regions of blocks that a step has invalidated."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.nodes import Block, Function, Module, Region
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.verify.statements.region_coverage import without_false_regions
from gossamer_schedule.cursor.cursor_at import (
    ADDRESSABLE_BODIES,
    Cursor,
    addressable_stmts_of,
    cursor_at,
)


def with_true_regions(module: Module) -> Module:
    """Return the module without declared regions that are no longer true.

    A region is removed if its buffer is now allocated inside the block, or if it does not contain all
    accesses of the block. Declared regions are for readers only: proofs derive their own.

    >>> from gossamer_testkit.examples import SCALE
    >>> with_true_regions(SCALE) is SCALE
    True
    """
    functions = tuple(
        _function_with_true_regions(cursor_at(module, function)) for function in module.functions
    )
    is_same = all(new is old for new, old in zip(functions, module.functions, strict=True))
    return module if is_same else replace(module, functions=functions)


def _function_with_true_regions(top: Cursor[object]) -> Function:
    function = top.function
    blocks = (stmt for stmt in addressable_stmts_of(function) if isinstance(stmt, Block))
    if not any(block.reads or block.writes for block in blocks):
        return function
    for cursor in top.below():
        block = cursor.node
        if isinstance(block, Block) and (block.reads or block.writes):
            valid = _with_valid_regions(block, _visible_buffers(cursor))
            if valid != block:
                return _function_with_true_regions(cursor.replace_with((valid,)))
    return function


def _with_valid_regions(block: Block, visible: set[str]) -> Block:
    def remaining_regions(field: str) -> tuple[Region, ...] | None:
        declared: tuple[Region, ...] | None = getattr(block, field)
        return (
            None
            if declared is None
            else tuple(
                region for region in declared if {region.buffer, *buffers_read(region)} <= visible
            )
        )

    return without_false_regions(
        replace(block, reads=remaining_regions("reads"), writes=remaining_regions("writes"))
    )


def _visible_buffers(cursor: Cursor[object]) -> set[str]:
    """Return the names of the buffers that are in scope at a cursor."""
    names = {buffer.name for buffer in cursor.function.buffers}
    for parent in cursor.parents:
        bodies = (getattr(parent, field) for field in ADDRESSABLE_BODIES[type(parent)])
        names |= {buffer.name for body in bodies for buffer in allocations(body)}
    return names

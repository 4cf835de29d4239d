"""Queries for the names of loops, blocks and iterations.

If a function has a block filter (see `set_block_filter`), only blocks that pass it are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gossamer_ir.nodes import Block, For, Function, Iteration, Module, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_read_in, outer_writes
from gossamer_schedule.cursor.block_filter import is_selected
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_block, find_function, find_named
from gossamer_support.typed_calls import typed


@typed
def get_loops(
    module: Module, block: str | None = None, *, function: str | None = None
) -> tuple[str, ...]:
    """Return the loops around a block, outermost first, or all loops in program order.

    Raises `ScheduleError`: `schedule.get_loops.no_block`, `.no_function`.

    >>> from gossamer_testkit.examples import SPMM
    >>> get_loops(SPMM)
    ('i', 'j', 'k')
    >>> get_loops(SPMM, "csrmm")
    ('i', 'j', 'k')
    """
    root = find_function(module, "get_loops", function=function)
    if block is not None:
        return tuple(loop.var for loop in find_block(root, block=block).loops)
    return tuple(
        stmt.var for stmt in addressable_stmts(root.function.body) if isinstance(stmt, For)
    )


@typed
def get_blocks(module: Module, *, function: str | None = None) -> tuple[str, ...]:
    """Return the blocks in program order.

    Raises `ScheduleError`: `schedule.get_blocks.no_function`.

    >>> from gossamer_testkit.examples import SPMM
    >>> get_blocks(SPMM)
    ('csrmm',)
    """
    root = find_function(module, "get_blocks", function=function)
    return _selected_block_names(addressable_stmts(root.function.body), root.function)


@typed
def get_iterations(module: Module, *, function: str | None = None) -> tuple[str, ...]:
    """Return the sparse iterations in program order.

    Raises `ScheduleError`: `schedule.get_iterations.no_function`.

    >>> from gossamer_ir.script import parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def fill(y: T.handle, m: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 2})
    ...     I = T.sp.dense_fixed(m)
    ...     Y = T.sp.match_buffer(y, (I,), "float32")
    ...     with T.sp.iteration([I], "S", "fill") as [i]:
    ...         Y[i] = 1.0
    ... ''')
    >>> get_iterations(module)
    ('fill',)
    """
    root = find_function(module, "get_iterations", function=function)
    return tuple(
        stmt.name for stmt in addressable_stmts(root.function.body) if isinstance(stmt, Iteration)
    )


@typed
def get_child_blocks(module: Module, name: str, *, function: str | None = None) -> tuple[str, ...]:
    """Return the blocks below a loop or block, in program order.

    Raises `ScheduleError`: `schedule.get_child_blocks.no_name`, `.no_function`.

    >>> from gossamer_testkit.examples import STAGED
    >>> get_child_blocks(STAGED, "i")
    ('fetch', 'scale')
    """
    root = find_function(module, "get_child_blocks", function=function)
    cursor = find_named(root, name=name)
    return _selected_block_names(addressable_stmts(cursor.node.body), root.function)


@typed
def get_producers(module: Module, block: str, *, function: str | None = None) -> tuple[str, ...]:
    """Return the other blocks that write buffers that a block reads, in program order.

    Raises `ScheduleError`: `schedule.get_producers.no_block`, `.no_function`.

    >>> from gossamer_testkit.examples import STAGED
    >>> get_producers(STAGED, "scale")
    ('fetch',)
    """
    root = find_function(module, "get_producers", function=function)
    cursor = find_block(root, block=block)
    read = buffers_read_in((cursor.node,))
    return _selected_block_names(
        (other for other in _other_blocks(cursor) if outer_writes((other,)) & read),
        root.function,
    )


@typed
def get_consumers(module: Module, block: str, *, function: str | None = None) -> tuple[str, ...]:
    """Return the other blocks that read buffers that a block writes, in program order.

    Raises `ScheduleError`: `schedule.get_consumers.no_block`, `.no_function`.

    >>> from gossamer_testkit.examples import STAGED
    >>> get_consumers(STAGED, "fetch")
    ('scale',)
    """
    root = find_function(module, "get_consumers", function=function)
    cursor = find_block(root, block=block)
    written = outer_writes((cursor.node,))
    return _selected_block_names(
        (other for other in _other_blocks(cursor) if buffers_read_in((other,)) & written),
        root.function,
    )


def _selected_block_names(among: Iterable[Any], function: Function) -> tuple[str, ...]:
    """Return the names of the blocks among statements that pass the block filter of a function."""
    blocks = (stmt for stmt in among if isinstance(stmt, Block))
    return tuple(block.name for block in blocks if is_selected(block, function))


def _other_blocks(cursor: Cursor[Stmt]) -> Iterator[Block]:
    """Yield the blocks that neither contain a block nor are contained in it."""
    # By identity: comparing blocks would compare all that they contain.
    related = set(map(id, (*cursor.parents, cursor.node, *addressable_stmts((cursor.node,)))))
    for stmt in addressable_stmts(cursor.function.body):
        if isinstance(stmt, Block) and id(stmt) not in related:
            yield stmt

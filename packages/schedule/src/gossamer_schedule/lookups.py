"""What a module holds that a schedule can address."""

from __future__ import annotations

from gossamer_ir.nodes import Block, For, Iteration, Module
from gossamer_schedule.resolve import find_block, find_function
from gossamer_schedule.sites import statements


def get_loops(
    module: Module, block: str | None = None, *, function: str | None = None
) -> tuple[str, ...]:
    """The loops around a block, outermost first, or all loops in program order.

    Raises `ScheduleError`: `schedule.get_loops.no_block`, `.no_function`.

    >>> from gossamer_schedule.examples import SPMM
    >>> get_loops(SPMM)
    ('i', 'j', 'k')
    >>> get_loops(SPMM, "csrmm")
    ('i', 'j', 'k')
    """
    owner = find_function(module, "get_loops", function=function)
    if block is not None:
        return tuple(found.var for found in find_block(owner, "get_loops", block=block).loops)
    return tuple(found.var for found in statements(owner.body) if isinstance(found, For))


def get_blocks(module: Module, *, function: str | None = None) -> tuple[str, ...]:
    """The blocks in program order.

    Raises `ScheduleError`: `schedule.get_blocks.no_function`.

    >>> from gossamer_schedule.examples import SPMM
    >>> get_blocks(SPMM)
    ('csrmm',)
    """
    owner = find_function(module, "get_blocks", function=function)
    return tuple(found.name for found in statements(owner.body) if isinstance(found, Block))


def get_iterations(module: Module, *, function: str | None = None) -> tuple[str, ...]:
    """The sparse iterations in program order.

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
    owner = find_function(module, "get_iterations", function=function)
    return tuple(found.name for found in statements(owner.body) if isinstance(found, Iteration))

"""Unrolls the loops of a program that is loops already that count how often indices occur.

Conversions of formats count the elements of each fiber before they store them. An iteration is one addition
to a counter in memory, so that the loop around it takes as long as the addition.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Binary, For, Let, Load, Module, Stmt, Store
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import contains
from gossamer_schedule.conversion_loops.outermost_loops import outermost_loops
from gossamer_schedule.errors import text_of
from gossamer_schedule.primitives.loops.loop_partition import loop_partition
from gossamer_schedule.primitives.loops.split import split
from gossamer_schedule.primitives.loops.unroll import unroll
from gossamer_support.typed_calls import typed

COPIES = 4
"""The iterations of a group: measured on Zen 4, where counting takes two thirds of the time of a loop that is
not unrolled."""


@typed
def unroll_counting_loops(module: Module) -> Module:
    """Return a module of the loop stage in which outermost serial loops that only add to elements selected by
    an index array run in groups of iterations. The last iterations are a loop of their own.

    >>> from gossamer_ir import parse_module
    >>> from gossamer_testkit.show import body_text
    >>> program = parse_module('''
    ... @T.prim_func
    ... def count(x: T.handle, c: T.handle, n: T.int64, nnz: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 0})
    ...     X = T.match_buffer(x, (nnz,), "int32")
    ...     C = T.match_buffer(c, (n,), "int32")
    ...     for e in T.serial(nnz):
    ...         C[T.int64(X[e])] = C[T.int64(X[e])] + 1
    ... ''')
    >>> print(body_text(unroll_counting_loops(program)))
    for e_0_0 in T.serial(nnz // 4):
        for e_0_1 in T.unroll(4):
            C[T.int64(X[e_0_0 * 4 + e_0_1])] = C[T.int64(X[e_0_0 * 4 + e_0_1])] + 1
    for e_1 in T.serial(nnz - nnz // 4 * 4):
        C[T.int64(X[e_1 + nnz // 4 * 4])] = C[T.int64(X[e_1 + nnz // 4 * 4])] + 1
    """
    (function,) = module.functions
    for loop in outermost_loops(function.body):
        if _only_counts(loop.body):
            module = _in_groups(module, loop)
    return module


# Other statements: nothing is concluded from them.
# Other expressions: not optimized.
def _only_counts(body: Sequence[Stmt]) -> bool:
    """Return whether a body binds variables, and adds to one element that an index array selects."""
    *bindings, last = body
    values = {let.var.name: let.value for let in bindings if isinstance(let, Let)}
    if not isinstance(last, Store) or len(values) < len(bindings):
        return False
    match last.value:
        case Binary("add", Load(buffer, indices), _) if (buffer, indices) == (
            last.buffer,
            last.indices,
        ):
            return any(contains(Load, resolve(index, values)) for index in indices)
    return False


def _in_groups(module: Module, loop: For) -> Module:
    whole = f"({text_of(loop.extent)}) // {COPIES} * {COPIES}"
    try:
        parts = loop_partition(module, loop.var, points=(whole,))
    except ScheduleError:
        # The number of iterations may change.
        return module
    groups = split(parts.module, parts.names[0], factors=(None, COPIES))
    return unroll(groups.module, groups.names[1]).module

"""Sparse iterations as loops over coordinates, for proofs about the order of their points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.core.iteration_axes import all_axis_names
from gossamer_ir.nodes import Axis, For, Iteration, Let, Load, Stmt, Var
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_support.items_by_name import items_by_name


def loops_over_coordinates(cursor: Cursor[Iteration]) -> tuple[Cursor[Any], tuple[For, ...]]:
    """Return a sparse iteration as loops, one for each variable, and the cursor at the outermost one.

    The cursor is in a copy of the function that is otherwise the same. Each loop runs over all coordinates
    of its axis, stored or not: a property of any two of these points also holds for the visited ones.
    Coordinates that may occur twice in a fiber are loaded from the axis. The init, which runs before all
    points, is left out; the inits of inner iterations become ordinary statements.

    >>> from gossamer_testkit.examples import SPMM_COORDINATE
    >>> from gossamer_schedule.cursor.find import find_iteration
    >>> from gossamer_schedule.cursor.cursor_at import cursor_at
    >>> top = cursor_at(SPMM_COORDINATE, SPMM_COORDINATE.functions[0])
    >>> found = find_iteration(top, iteration="csrmm")
    >>> [loop.var for loop in loops_over_coordinates(found)[1]]
    ['i', 'j', 'k']
    """
    axes = items_by_name(cursor.function.axes)
    namer = namer_of(cursor.function)
    chain = _nested_loops(cursor.node, axes, namer=namer, init=())
    return find_loop(cursor.replace_with((chain[0],)), loop=chain[0].var), chain


def _nested_loops(
    node: Iteration, by_name: Mapping[str, Axis], *, namer: Namer, init: tuple[Stmt, ...]
) -> tuple[For, ...]:
    """Return the loops of an iteration, outermost first, with iterations inside made loops as well."""

    def inside(stmt: Stmt) -> For | None:
        if not isinstance(stmt, Iteration):
            return None
        return _nested_loops(stmt, by_name, namer=namer, init=stmt.init)[0]

    names = all_axis_names(node.axes)
    # Inner inits run within each point of this iteration, so their stores count as part of its body.
    body: tuple[Stmt, ...] = (*init, *rewrite_body(node.body, inside, leaves=False))
    chain: list[For] = []
    for name, var in reversed([*zip(names, node.vars, strict=True)]):
        loop, coordinate = _loop_over(by_name[name], var, namer)
        body = (For(loop, ZERO, by_name[name].length, (*coordinate, *body)),)
        chain.insert(0, body[0])
    return tuple(chain)


def _loop_over(axis: Axis, var_name: str, namer: Namer) -> tuple[str, tuple[Stmt, ...]]:
    """Return the variable of the loop over an axis, and the let of the coordinate if that is another one."""
    indices = indices_of(axis)
    if indices is None or indices.unique:
        return var_name, ()
    slot = namer.fresh(f"{var_name}_slot")
    coordinate = Load(indices.handle, (index_var(slot),), "int64")
    return slot, (Let(Var(var_name, "int64"), coordinate),)

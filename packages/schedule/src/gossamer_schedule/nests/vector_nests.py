"""Vectorized loops below a loop over vectors, which may also contain other loops around them.

The loops directly around lanes may number the vectors of one iteration of the outer loop: with `k_1` in
`k_0 * 64 + k_1 * 16 + k_2`, an iteration of `k_0` has four vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import by_vars
from gossamer_ir.arith.affine import Affine, affine_of, times
from gossamer_ir.core.build import product
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, Expr, For, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import schedule_error


class VectorNest(msgspec.Struct, frozen=True):
    """A vectorized loop over lanes, and the loops directly around it that number its vectors."""

    numbering: tuple[For, ...]
    lanes: For

    @property
    def loops(self) -> tuple[For, ...]:
        """All loops, outermost first."""
        return (*self.numbering, self.lanes)

    @property
    def elements(self) -> Expr:
        """The number of elements of one iteration of the outer loop."""
        return product(loop.extent for loop in self.loops)


NestChange: TypeAlias = Callable[[VectorNest], tuple[Stmt, ...]]
"""Returns the statements that replace a nest."""


def vector_nest_at(stmt: For) -> VectorNest | None:
    """Return the nest whose outermost loop is a given one; None if it does not number vectors."""
    loops = list(_perfect_nest(stmt))
    *numbering, lanes = loops
    if lanes.kind != "vectorized":
        return None
    if not all(
        _numbers_vectors(loop, inner=tuple(loops[depth + 1 :]))
        for depth, loop in enumerate(numbering)
    ):
        return None
    return VectorNest(tuple(numbering), lanes)


def _perfect_nest(stmt: For) -> Iterator[For]:
    """Yield a loop and those inside of it, as long as each contains only the next one."""
    yield stmt
    while stmt.kind != "vectorized" and len(stmt.body) == 1 and isinstance(stmt.body[0], For):
        stmt = stmt.body[0]
        yield stmt


def _numbers_vectors(loop: For, *, inner: tuple[For, ...]) -> bool:
    """Return whether an iterator is a number whose digits are a loop and those inside of it."""
    span, lane = affine_of(product(loop.extent for loop in inner)), inner[-1]
    return any(
        is_next_digit(affine_of(iterator.value), loop.var, lane=lane.var, span=span)
        for block in lane.body
        if isinstance(block, Block)
        for iterator in block.iters
    )


def is_next_digit(value: Affine, loop_name: str, *, lane: str, span: Affine) -> bool:
    """Return whether one iteration more of a loop adds as much to a value as `span` lanes.

    >>> from gossamer_ir.script import parse_expr
    >>> value = affine_of(parse_expr("a * 24 + b * 3", {"a": "int64", "b": "int64"}))
    >>> is_next_digit(value, "a", lane="b", span=Affine({}, 8))
    True
    """
    form = by_vars(value, (loop_name, lane))
    step = form.terms.get(lane)
    return step is not None and form.terms.get(loop_name) == times(step, span)


def required_vector_nests(outer: Cursor[For]) -> list[VectorNest]:
    """Return the nests below a loop; refuse a loop that contains anything else.

    Loops around nests must not depend on it: lanes of one vector run them together.
    """
    return [nest for part in _body_of(outer) for nest in _required_nests(part, outer=outer)]


def _body_of(cursor: Cursor[Any]) -> Iterator[Cursor[Any]]:
    return (cursor.down("body", number) for number in range(len(cursor.node.body)))


def _required_nests(cursor: Cursor[Any], *, outer: Cursor[For]) -> list[VectorNest]:
    stmt = cursor.node
    if not isinstance(stmt, For):
        raise _outside_error(cursor, outer=outer)
    nest = vector_nest_at(stmt)
    if nest is not None:
        return [nest]
    if outer.node.var in free_vars(stmt.start) | free_vars(stmt.extent):
        raise schedule_error(
            f"{outer.primitive}.index",
            f"The bounds of loop '{stmt.var}' depend on loop '{outer.node.var}', so that they differ from "
            "vector to vector.",
            hint="Only the elements of vectors may depend on the loop over vectors.",
            place=cursor.place,
        )
    return [nest for part in _body_of(cursor) for nest in _required_nests(part, outer=outer)]


def _outside_error(cursor: Cursor[object], *, outer: Cursor[For]) -> ScheduleError:
    stmt = cursor.node
    name = f"block '{stmt.name}'" if isinstance(stmt, Block) else "a statement"
    return schedule_error(
        f"{outer.primitive}.not_nested",
        f"Loop '{outer.node.var}' contains {name} outside of vectorized loops, which would run another "
        "number of times.",
        hint="Vectorize its loop, or convert lanes before it moves into the loop over vectors.",
        place=cursor.place,
    )


def with_nests_replaced(body: tuple[Stmt, ...], change: NestChange) -> tuple[Stmt, ...]:
    """Return a body of loops in which the nests are replaced."""
    changed: list[Stmt] = []
    for stmt in body:
        nest = vector_nest_at(stmt) if isinstance(stmt, For) else None
        if nest is not None:
            changed += change(nest)
        elif isinstance(stmt, For):
            changed.append(replace(stmt, body=with_nests_replaced(stmt.body, change)))
        else:
            changed.append(stmt)
    return tuple(changed)

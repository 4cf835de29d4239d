"""Conditions that must hold in all iterations of loops, without the variables of the loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import ONE, ZERO, index_var, integer_value, sub
from gossamer_ir.core.conditions import (
    ShortCircuit,
    as_short_circuit,
    conjuncts,
    short_circuit_conjunction,
)
from gossamer_ir.nodes import Compare, Expr, For
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute
from gossamer_schedule.predicates.block_predicates import less_than


def for_all_iterations(
    conditions: Iterable[Expr], loops: Sequence[For], *, point: ProgramPoint
) -> list[Expr] | None:
    """Return conditions, free of the loops' variables, under which `conditions` hold in all iterations.

    The loops start at 0, and `point` is inside them. The result implies that each loop has an iteration.
    None if the iteration in which one of the conditions is hardest to satisfy is not known.

    >>> from gossamer_ir.core.build import add, index
    >>> from gossamer_ir.script import print_expr
    >>> from gossamer_ir.nodes import Function
    >>> function = Function("f", (), (), (), (), ())
    >>> rows, tile = (For(name, ZERO, index(8), ()) for name in "ij")
    >>> point = ProgramPoint(function)
    >>> point.assume_loop(rows)
    >>> point.assume_loop(tile)
    >>> condition = less_than(add(index_var("i"), index_var("j")), index_var("n"))
    >>> print_expr(*for_all_iterations([condition], [tile], point=point))
    'i + 7 < n'
    """
    last = {loop.var: sub(loop.extent, ONE) for loop in loops}
    nonempty = [less_than(ZERO, loop.extent) for loop in loops if not _is_positive(loop)]
    strongest = [_strongest_condition(condition, last, point) for condition in conditions]
    determined = [condition for condition in strongest if condition is not None]
    return [*nonempty, *determined] if len(determined) == len(strongest) else None


def _is_positive(loop: For) -> bool:
    return (integer_value(loop.extent) or 0) > 0


def _strongest_condition(
    condition: Expr, last: Mapping[str, Expr], point: ProgramPoint
) -> Expr | None:
    """Return a condition at the iteration in which it is hardest to satisfy; None if that is not known."""
    if free_vars(condition).isdisjoint(last):
        return condition
    match condition:
        case Compare(op="lt" | "le" as op, lhs=lhs, rhs=rhs) if free_vars(rhs).isdisjoint(last):
            # A sum that wraps in the last iteration may be small there, and large in one before.
            largest = _largest_value(lhs, last) if point.is_exact(lhs) else None
            return None if largest is None else Compare(op, largest, rhs)
    match as_short_circuit(condition):
        case ShortCircuit("and", first, second):
            parts = [
                _strongest_condition(part, last, point) for part in (*conjuncts(first), second)
            ]
            determined = [part for part in parts if part is not None]
            return short_circuit_conjunction(*determined) if len(determined) == len(parts) else None
    return None


def _largest_value(value: Expr, last: Mapping[str, Expr]) -> Expr | None:
    """Return the largest value over all iterations; None unless it is affine in the loops' variables."""
    form = affine_of(value)
    loop_vars = {index_var(name) for name in last}
    inside = free_vars(*(atom for atom in form.terms if atom not in loop_vars))
    if not inside.isdisjoint(last):
        return None
    ends = {
        name: end if form.terms.get(index_var(name), 0) > 0 else ZERO for name, end in last.items()
    }
    largest: Expr = substitute(value, ends)
    return largest

"""Conditions: constants, conjunctions and disjunctions, and how they are taken apart.

The language has two forms of "and" and of "or". The operands of `a and b` (`Binary`) are all evaluated. A
*short-circuit* evaluates its second operand only if that decides the result, which matters where it reads
memory that exists only under the first: `if_then_else(a, b, False)` is "and", `if_then_else(a, True, b)` is
"or". Passes and primitives build and match both by the functions of this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from gossamer_ir.core.build import ZERO, widen
from gossamer_ir.nodes import Binary, Broadcast, Compare, Const, Expr, IfThenElse

TRUE = Const("bool", "True")
FALSE = Const("bool", "False")


def is_true(condition: Expr | None) -> bool:
    """Return whether a condition is the constant true, in every lane; None stands for true."""
    if isinstance(condition, Broadcast):
        condition = condition.value
    return condition is None or condition == TRUE


def is_false(condition: Expr | None) -> bool:
    """Return whether a condition is the constant false, in every lane."""
    if isinstance(condition, Broadcast):
        condition = condition.value
    return condition == FALSE


def in_range(index: Expr, extent: Expr) -> tuple[Compare, Compare]:
    """Return the conditions 0 <= index and index < extent, compared as int64.

    >>> from gossamer_ir.core.build import index_var
    >>> first, second = in_range(index_var("i"), index_var("n"))
    >>> first.op, first.rhs == ZERO, second.op, second.rhs.name
    ('ge', True, 'lt', 'n')
    """
    wide = widen(index)
    return Compare("ge", wide, ZERO), Compare("lt", wide, extent)


# --- operands that are all evaluated


def conjunction(*conditions: Expr | None) -> Expr | None:
    """Return the conjunction of conditions; None stands for true.

    >>> a, b = in_range(ZERO, ZERO)
    >>> conjunction(a, None, b) == Binary("and", a, b), conjunction(a, a) == a, conjunction()
    (True, True, None)
    """
    result: Expr | None = None
    for condition in conditions:
        if result is None:
            result = condition
        elif condition is not None and condition != result:
            result = Binary("and", result, condition)
    return result


def conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """Yield the operands of a conjunction, in order; none for None, which stands for true. A short-circuit
    is one operand.

    >>> a, b, c = *in_range(ZERO, ZERO), TRUE
    >>> list(conjuncts(conjunction(a, b, c))) == [a, b, c]
    True
    """
    if isinstance(condition, Binary) and condition.op == "and":
        yield from conjuncts(condition.lhs)
        yield from conjuncts(condition.rhs)
    elif condition is not None:
        yield condition


# --- short-circuits


class ShortCircuit(NamedTuple):
    """A condition whose second operand is evaluated only if the first one does not decide the result."""

    # Other operations: none occurs; this makes the operations itself.
    op: Literal["and", "or"]
    first: Expr
    second: Expr


def short_circuit_and(first: Expr | None, second: Expr) -> Expr:
    """Return the conjunction that evaluates `second` only if `first` holds; None stands for true.

    >>> a, b = in_range(ZERO, ZERO)
    >>> short_circuit_and(a, b) == IfThenElse(a, b, FALSE), short_circuit_and(None, b) == b
    (True, True)
    """
    return second if first is None else IfThenElse(first, second, FALSE)


def short_circuit_or(first: Expr | None, second: Expr) -> Expr:
    """Return the disjunction that evaluates `second` only if `first` does not hold; None stands for false.

    >>> a, b = in_range(ZERO, ZERO)
    >>> short_circuit_or(a, b) == IfThenElse(a, TRUE, b), short_circuit_or(None, b) == b
    (True, True)
    """
    return second if first is None else IfThenElse(first, TRUE, second)


def short_circuit_implication(premise: Expr, conclusion: Expr) -> Expr:
    """Return the implication, which evaluates `conclusion` only if `premise` holds.

    >>> a, b = in_range(ZERO, ZERO)
    >>> short_circuit_implication(a, b) == IfThenElse(a, b, TRUE)
    True
    """
    return IfThenElse(premise, conclusion, TRUE)


def short_circuit_conjunction(*conditions: Expr) -> Expr | None:
    """Return the conjunction that evaluates each condition only if those before it hold; None, which
    stands for true, if there are none.

    >>> a, b, c = *in_range(ZERO, ZERO), TRUE
    >>> short_circuit_conjunction(a, b, c) == short_circuit_and(a, short_circuit_and(b, c))
    True
    """
    result: Expr | None = None
    # From the last: each condition encloses those that are evaluated after it.
    for condition in reversed(conditions):
        result = condition if result is None else short_circuit_and(condition, result)
    return result


def as_short_circuit(condition: Expr | None) -> ShortCircuit | None:
    """Return the operator and the operands of a short-circuit; None for any other condition.

    >>> a, b = in_range(ZERO, ZERO)
    >>> match as_short_circuit(short_circuit_or(a, b)):
    ...     case ShortCircuit("or", first, second):
    ...         print(first == a, second == b)
    True True
    >>> as_short_circuit(conjunction(a, b)) is None
    True
    """
    if not isinstance(condition, IfThenElse):
        return None
    if condition.if_false == FALSE:
        return ShortCircuit("and", condition.condition, condition.if_true)
    if condition.if_true == TRUE:
        return ShortCircuit("or", condition.condition, condition.if_false)
    return None


def short_circuit_conjuncts(condition: Expr | None) -> Iterator[Expr]:
    """Yield the operands of conjunctions of both forms, in order: what holds if the condition does.

    >>> a, b, c = *in_range(ZERO, ZERO), TRUE
    >>> list(short_circuit_conjuncts(conjunction(short_circuit_and(a, b), c))) == [a, b, c]
    True
    """
    for part in conjuncts(condition):
        match as_short_circuit(part):
            case ShortCircuit("and", first, second):
                yield from short_circuit_conjuncts(first)
                yield from short_circuit_conjuncts(second)
            case _:
                yield part


def with_operators(condition: Expr) -> Expr:
    """Return a condition whose value is the same, with `and` or `or` for a short-circuit. Proofs need not
    distinguish the two forms.

    >>> a, b = in_range(ZERO, ZERO)
    >>> with_operators(short_circuit_or(a, b)) == Binary("or", a, b)
    True
    """
    operation = as_short_circuit(condition)
    return condition if operation is None else Binary(*operation)

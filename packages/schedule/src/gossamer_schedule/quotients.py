"""Quotients and remainders of a loop's variable, as of a loop that was fused, where the loop is split: they
are said by the new loops, so that it is seen along which of them elements are next to each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gossamer_ir.build import ZERO, add, floordiv, index, index_var, integer_value, mul
from gossamer_ir.linear import Product, to_expr
from gossamer_ir.nodes import Binary, Expr, Stmt, Var
from gossamer_ir.walk import rewrite_body, substitute_body


def split_variable(
    body: tuple[Stmt, ...], loop: str, names: Sequence[str], steps: Sequence[Product]
) -> tuple[Stmt, ...]:
    """The body with the sum of the new loops times their steps, outermost first, in the place of the loop.

    >>> from gossamer_ir.script import parse_expr, print_expr
    >>> from gossamer_ir.nodes import Store
    >>> at = [parse_expr(text, {"f": "int64"}) for text in ("f // 8", "f % 8")]
    >>> body = (Store("Y", tuple(at), parse_expr("f", {"f": "int64"})),)
    >>> (found,) = split_variable(body, "f", ("f_0", "f_1"), ((4, ()), (1, ())))
    >>> [print_expr(part) for part in (*found.indices, found.value)]
    ['f_0 // 2', 'f_0 % 2 * 4 + f_1', 'f_0 * 4 + f_1']
    """

    def rule(node: Any) -> Expr | None:
        match node:
            case Binary(op="floordiv" | "floormod", lhs=Var(name=name), rhs=rhs) if name == loop:
                divisor = integer_value(rhs)
                return _digit(node.op, divisor, names, steps) if divisor else None
        return None

    return substitute_body(rewrite_body(body, rule), {loop: _sum(names, steps)})


def _digit(op: str, divisor: int, names: Sequence[str], steps: Sequence[Product]) -> Expr | None:
    """The quotient or remainder, where the divisor is a multiple of the range of the inner loops."""
    for position, (span, atoms) in enumerate(steps[:-1], start=1):
        if not atoms and divisor > 0 and span > 0 and divisor % span == 0:
            outer = [(count // span, atoms) for count, atoms in steps[:position]]
            high, rest = _sum(names[:position], outer), divisor // span
            if op == "floordiv":
                return floordiv(high, index(rest))
            left = ZERO if rest == 1 else mul(Binary("floormod", high, index(rest)), index(span))
            return add(left, _sum(names[position:], steps[position:]))
    return None


def _sum(names: Sequence[str], steps: Sequence[Product]) -> Expr:
    value: Expr = ZERO
    for name, by in zip(names, steps, strict=True):
        value = add(value, mul(index_var(name), to_expr(by)))
    return value

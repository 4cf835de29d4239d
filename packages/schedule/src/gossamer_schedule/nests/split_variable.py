"""Replaces the variable of a loop that is split, and simplifies its quotients and remainders.

A fused loop's variable occurs in quotients and remainders. In terms of the new loops, these show along which
of them elements are consecutive.
"""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_ir.core.build import ZERO, add, floordiv, index, integer_value, mul
from gossamer_ir.dependence.mixed_radix import Digit, number_from_digits, split_digits
from gossamer_ir.nodes import Binary, Expr, Node, Stmt, Var
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.substitute import substitute_body


# Other expressions and operations: nothing is concluded from them.
def split_variable(
    body: tuple[Stmt, ...], loop_name: str, digits: Mapping[str, Digit]
) -> tuple[Stmt, ...]:
    """Return a body in which a loop's variable is replaced by the number whose digits, outermost first, are
    the new loops.

    >>> from gossamer_ir.dependence.mixed_radix import digits_from_counts
    >>> from gossamer_ir.script import parse_expr, print_expr
    >>> from gossamer_ir.nodes import Store
    >>> at = [parse_expr(text, {"f": "int64"}) for text in ("f // 8", "f % 8")]
    >>> body = (Store("Y", tuple(at), parse_expr("f", {"f": "int64"})),)
    >>> digits = dict(zip(("f_0", "f_1"), digits_from_counts([index(6), index(4)])))
    >>> (found,) = split_variable(body, "f", digits)
    >>> [print_expr(part) for part in (*found.indices, found.value)]
    ['f_0 // 2', 'f_0 % 2 * 4 + f_1', 'f_0 * 4 + f_1']
    """

    def rule(node: Node) -> Expr | None:
        match node:
            case Binary(op="floordiv" | "floormod", lhs=Var(name=name), rhs=rhs) if (
                name == loop_name
            ):
                divisor = integer_value(rhs)
                return _quotient_or_remainder(node.op, divisor, digits) if divisor else None
        return None

    return substitute_body(rewrite_body(body, rule), {loop_name: number_from_digits(digits)})


def _quotient_or_remainder(op: str, divisor: int, digits: Mapping[str, Digit]) -> Expr | None:
    """Return the quotient or remainder if the divisor is a multiple of the range of the inner loops."""
    parts = split_digits(digits, divisor)
    if parts is None:
        return None
    high, span, low = parts
    upper, rest = number_from_digits(high), divisor // span
    if op == "floordiv":
        return floordiv(upper, index(rest))
    scaled = ZERO if rest == 1 else mul(Binary("floormod", upper, index(rest)), index(span))
    return add(scaled, number_from_digits(low))

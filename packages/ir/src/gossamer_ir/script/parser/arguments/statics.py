"""Evaluates numbers, captured numbers and arithmetic on them while parsing. It runs no user code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gossamer_ir.script.parser.state.context import ParserContext

StaticValue: TypeAlias = bool | int | float

# Twice the word: sums and products of 64-bit constants may be intermediate results, and 2**128 is
# still a cheap number. Without a limit, `9**9**9` would run forever.
_MAX_BITS = 128

_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}


def static_value(context: ParserContext, node: ast.expr) -> StaticValue | None:
    """Return the number or bool that an expression evaluates to in Python, None if it is not constant."""
    match node:
        case ast.Constant(value=value):
            return value if isinstance(value, (bool, int, float)) else None
        case ast.Name(id=name):
            return _captured_number(context, name)
        case ast.UnaryOp(op=op, operand=operand):
            inner = static_value(context, operand)
            return None if inner is None else _apply(context, node, _UNARY[type(op)], (inner,))
        case ast.BinOp(left=left, op=op, right=right):
            lhs = static_value(context, left)
            rhs = None if lhs is None else static_value(context, right)
            if lhs is None or rhs is None or type(op) not in _BINARY:
                return None
            return _apply(context, node, _BINARY[type(op)], (lhs, rhs))
    return None


def static_text(context: ParserContext, node: ast.expr) -> str | None:
    """Return the string that an expression evaluates to in Python, None if it is not one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name) and context.lookup(node.id) is None:
        value = context.captured.get(node.id)
        return value if isinstance(value, str) else None
    return None


def required_text(context: ParserContext, node: ast.expr, what: str) -> str:
    """Return a constant string; raises `parse.string` for anything else."""
    text = static_text(context, node)
    if text is None:
        raise context.error("string", f"Expected {what} as a string.", node)
    return text


def required_int(context: ParserContext, node: ast.expr, what: str) -> int:
    """Return a constant integer; raises `parse.integer` for anything else."""
    value = static_value(context, node)
    if type(value) is not int:
        raise context.error("integer", f"Expected {what} as an integer.", node)
    return value


def required_bool(context: ParserContext, node: ast.expr, what: str) -> bool:
    """Return a constant bool; raises `parse.bool` for anything else."""
    value = static_value(context, node)
    if not isinstance(value, bool):
        raise context.error("bool", f"Expected {what} as True or False.", node)
    return value


def _captured_number(context: ParserContext, name: str) -> StaticValue | None:
    if context.lookup(name) is not None:
        return None
    value = context.captured.get(name)
    return value if isinstance(value, (bool, int, float)) else None


def _apply(
    context: ParserContext,
    node: ast.expr,
    function: Callable[..., Any],
    args: tuple[StaticValue, ...],
) -> StaticValue:
    # These can make huge numbers, so that operands are checked before the result is computed.
    grows = function in (operator.pow, operator.lshift)
    if grows and (abs(args[1]) > _MAX_BITS or _bits(args[0]) > _MAX_BITS):
        raise context.error("arithmetic", "The number is out of range.", node)
    try:
        result = function(*args)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise context.error(
            "arithmetic", f"The number cannot be computed: {error}.", node
        ) from None
    if not isinstance(result, (bool, int, float)) or _bits(result) > _MAX_BITS:
        raise context.error("arithmetic", "The number is out of range.", node)
    return result


def _bits(value: StaticValue) -> int:
    return value.bit_length() if isinstance(value, int) else 0

"""Writes expressions, with no more parentheses than Python's precedence requires.

`expected` is the dtype that the parser will expect for the expression: constants of that dtype are written
as bare literals, others with their dtype. With `EXPLICIT` all constants are written with their dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    LaneReduce,
    Lanes,
    Load,
    Ramp,
    Reinterpret,
    Search,
    Select,
    TransposeReduce,
    Unary,
    Var,
    VScale,
)
from gossamer_ir.script.printer.writer import Writer

EXPLICIT = ""
# Above every level of `_INFIX`: names, calls and literals need no parentheses.
_ATOM_PRECEDENCE = 20

# Levels of precedence, those of Python.
_INFIX: Mapping[str, tuple[str, int]] = {
    "or": ("or", 1), "and": ("and", 2), "bitor": ("|", 5), "bitxor": ("^", 6), "bitand": ("&", 7),
    "shl": ("<<", 8), "shr": (">>", 8), "add": ("+", 9), "sub": ("-", 9), "mul": ("*", 10),
    "div": ("/", 10), "floordiv": ("//", 10), "floormod": ("%", 10),
}  # fmt: skip
_COMPARE: Mapping[str, str] = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_COMPARE_LEVEL = 4
_UNARY: Mapping[str, tuple[str, int]] = {"neg": ("-", 11), "not": ("not ", 3), "bitnot": ("~", 11)}


def write_expr(
    w: Writer, node: Expr, step: str, *, expected: str | None = None, level: int = 0, item: int = -1
) -> None:
    """Write an expression that is the field `step` (and its item `item`) of the current place."""
    with w.at(step, item) if item >= 0 else w.at(step):
        EXPR_PRINTERS[type(node)](w, node, expected, level)


def write_index(w: Writer, node: Expr, step: str, *, item: int = -1) -> None:
    """Write an int64 expression."""
    write_expr(w, node, step, expected="int64", item=item)


def write_indices(w: Writer, nodes: Sequence[Expr], step: str) -> None:
    """Write indices separated by commas; `()` if there are none."""
    if not nodes:
        w.put("()")
    for number, node in enumerate(nodes):
        if number:
            w.put(", ")
        write_index(w, node, step, item=number)


def operand_dtypes(
    nodes: Sequence[Expr], expected: str | None, *, folds: bool = False
) -> list[str | None]:
    """Return the dtype that the parser expects for each of several operands of one dtype.

    `folds`: the parser would evaluate the operator if all operands were bare literals.
    """
    firm = [node for node in nodes if not isinstance(node, Const)]
    if firm:
        dtype = dtype_of(firm[0])
        return [dtype if isinstance(node, Const) else expected for node in nodes]
    if folds:
        return [EXPLICIT, *(dtype_of(nodes[0]) for _ in nodes[1:])]
    return [expected for _ in nodes]


def lanes_text(lanes: Lanes) -> str:
    """Return `16` or `4 * T.vscale()`."""
    return f"{lanes.count} * T.vscale()" if lanes.scalable else str(lanes.count)


def string_literal(text: str) -> str:
    """Return a string literal, in double quotes where it needs no escapes."""
    plain = text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)


def _write_const(w: Writer, node: Const, expected: str | None, level: int) -> None:
    is_default = expected is None and node.dtype in ("int64", "bool")
    is_word = node.text.lstrip("-") in ("nan", "inf")
    if (node.dtype == expected or is_default) and not is_word:
        return w.put(node.text)
    return w.put(f'T.{node.dtype}("{node.text}")' if is_word else f"T.{node.dtype}({node.text})")


def _write_var(w: Writer, node: Var, expected: str | None, level: int) -> None:
    w.put(node.name)


def _write_unary(w: Writer, node: Unary, expected: str | None, level: int) -> None:
    sign, precedence = _UNARY[node.op]
    w.put(f"({sign}" if precedence < level else sign)
    explicit = EXPLICIT if isinstance(node.operand, Const) else expected
    write_expr(w, node.operand, "operand", expected=explicit, level=precedence)
    if precedence < level:
        w.put(")")


def _write_binary(w: Writer, node: Binary, expected: str | None, level: int) -> None:
    if node.op in ("and", "or"):
        expected = expected or "bool"
    sign, precedence = _INFIX.get(node.op, (f"T.{node.op}", _ATOM_PRECEDENCE))
    lhs, rhs = operand_dtypes((node.lhs, node.rhs), expected, folds=precedence != _ATOM_PRECEDENCE)
    if precedence == _ATOM_PRECEDENCE:
        w.put(f"{sign}(")
        write_expr(w, node.lhs, "lhs", expected=lhs)
        w.put(", ")
        write_expr(w, node.rhs, "rhs", expected=rhs)
        return w.put(")")
    if precedence < level:
        w.put("(")
    write_expr(w, node.lhs, "lhs", expected=lhs, level=precedence)
    w.put(f" {sign} ")
    write_expr(w, node.rhs, "rhs", expected=rhs, level=precedence + 1)
    if precedence < level:
        w.put(")")
    return None


def _write_compare(w: Writer, node: Compare, expected: str | None, level: int) -> None:
    lhs, rhs = operand_dtypes((node.lhs, node.rhs), None, folds=True)
    w.put("(" if level > _COMPARE_LEVEL else "")
    write_expr(w, node.lhs, "lhs", expected=lhs, level=_COMPARE_LEVEL + 1)
    w.put(f" {_COMPARE[node.op]} ")
    write_expr(w, node.rhs, "rhs", expected=rhs, level=_COMPARE_LEVEL + 1)
    w.put(")" if level > _COMPARE_LEVEL else "")


def _write_cast(w: Writer, node: Cast, expected: str | None, level: int) -> None:
    is_scalar = not DType.parse(node.dtype).is_vector
    w.put(f"T.{node.dtype}(" if is_scalar else "T.cast(")
    write_expr(w, node.value, "value", expected=EXPLICIT if is_scalar else None)
    w.put(")" if is_scalar else f', "{node.dtype}")')


def _write_reinterpret(w: Writer, node: Reinterpret, expected: str | None, level: int) -> None:
    w.put("T.reinterpret(")
    write_expr(w, node.value, "value")
    w.put(f', "{node.dtype}")')


def _write_choice(w: Writer, node: Select | IfThenElse, expected: str | None, level: int) -> None:
    w.put("T.Select(" if isinstance(node, Select) else "T.if_then_else(")
    write_expr(w, node.condition, "condition", expected="bool")
    arms = operand_dtypes((node.if_true, node.if_false), expected)
    w.put(", ")
    write_expr(w, node.if_true, "if_true", expected=arms[0])
    w.put(", ")
    write_expr(w, node.if_false, "if_false", expected=arms[1])
    w.put(")")


def _write_call(w: Writer, node: Call, expected: str | None, level: int) -> None:
    w.put(f"T.{node.function}(")
    for number, dtype in enumerate(operand_dtypes(node.args, expected)):
        if number:
            w.put(", ")
        write_expr(w, node.args[number], "args", expected=dtype, item=number)
    w.put(")")


def _write_load(w: Writer, node: Load, expected: str | None, level: int) -> None:
    if node.predicate is None or node.passthrough is None:
        w.put(f"{node.buffer}[")
        write_indices(w, node.indices, "indices")
        return w.put("]")
    write_access(w, "load", node.buffer, node.indices)
    w.put(", predicate=")
    write_expr(w, node.predicate, "predicate", expected="bool")
    w.put(", passthrough=")
    write_expr(w, node.passthrough, "passthrough", expected=node.dtype)
    return w.put(")")


def write_access(w: Writer, name: str, buffer_name: str, indices: Sequence[Expr]) -> None:
    """Write `T.load(A, i, j`. The caller closes the bracket, so that a node needs only one."""
    w.put(f"T.{name}({buffer_name}")
    for number, index in enumerate(indices):
        w.put(", ")
        write_index(w, index, "indices", item=number)


def _write_search(w: Writer, node: Search, expected: str | None, level: int) -> None:
    w.put(f'T.search("{node.kind}", {node.buffer}')
    for number, index in enumerate(node.prefix):
        w.put(", ")
        write_index(w, index, "prefix", item=number)
    for name in ("begin", "end", "value"):
        w.put(f", {name}=")
        write_index(w, getattr(node, name), name)
    w.put(")")


def _write_vscale(w: Writer, node: VScale, expected: str | None, level: int) -> None:
    w.put("T.vscale()")


def _write_ramp(w: Writer, node: Ramp, expected: str | None, level: int) -> None:
    scalar = DType.parse(expected).scalar if expected else None
    base, stride = operand_dtypes((node.base, node.stride), scalar)
    w.put("T.ramp(")
    write_expr(w, node.base, "base", expected=base)
    w.put(", ")
    write_expr(w, node.stride, "stride", expected=stride)
    w.put(f", {lanes_text(node.lanes)})")


def _write_broadcast(w: Writer, node: Broadcast, expected: str | None, level: int) -> None:
    scalar = DType.parse(expected).scalar if expected else None
    w.put("T.broadcast(")
    write_expr(w, node.value, "value", expected=scalar)
    w.put(f", {lanes_text(node.lanes)})")


def _write_lane_reduce(w: Writer, node: LaneReduce, expected: str | None, level: int) -> None:
    w.put(f'T.lane_reduce("{node.op}", ')
    write_expr(w, node.value, "value")
    w.put(")")


def _write_transpose_reduce(
    w: Writer, node: TransposeReduce, expected: str | None, level: int
) -> None:
    w.put(f'T.transpose_reduce("{node.op}"')
    for number, value in enumerate(node.values):
        w.put(", ")
        write_expr(w, value, "values", item=number)
    w.put(")")


EXPR_PRINTERS: Mapping[type, Callable[[Writer, Any, str | None, int], None]] = {
    Const: _write_const,
    Var: _write_var,
    Unary: _write_unary,
    Binary: _write_binary,
    Compare: _write_compare,
    Cast: _write_cast,
    Reinterpret: _write_reinterpret,
    Select: _write_choice,
    IfThenElse: _write_choice,
    Call: _write_call,
    Load: _write_load,
    Search: _write_search,
    VScale: _write_vscale,
    Ramp: _write_ramp,
    Broadcast: _write_broadcast,
    LaneReduce: _write_lane_reduce,
    TransposeReduce: _write_transpose_reduce,
}
"""The writers of expressions, by node type."""

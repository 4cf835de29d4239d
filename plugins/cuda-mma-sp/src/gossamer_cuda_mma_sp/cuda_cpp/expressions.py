"""Expressions in CUDA C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from gossamer_cuda_mma_sp.cuda_cpp.cpp_types import cpp_constant, cpp_type, unprintable_error
from gossamer_cuda_mma_sp.cuda_cpp.printed_function import PrintedFunction
from gossamer_ir.core.build import ZERO, add, integer_value, mul
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.math_functions import INSTRUCTIONS
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
    Name,
    Ramp,
    Reinterpret,
    Select,
    TransposeReduce,
    Unary,
    Var,
)

CPP_NAMES = {
    "and": "and_",
    "or": "or_",
    "not": "not_",
    "bitand": "bitand_",
    "bitor": "bitor_",
}
"""The functions of the prelude for operations whose names are keywords of C++."""

_INTEGER_OPERATORS = {"add": "+", "sub": "-", "mul": "*"}
_FLOAT_OPERATORS = {**_INTEGER_OPERATORS, "div": "/"}
_COMPARISON_OPERATORS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BOOL_OPERATORS = {"and": "&&", "or": "||"}
_PRECEDENCE = {
    "||": 0,
    "&&": 1,
    **dict.fromkeys(_COMPARISON_OPERATORS.values(), 2),
    **dict.fromkeys("+-", 3),
    **dict.fromkeys("*/", 4),
}
"""The precedences of operators: a higher one binds tighter."""

_NATIVE_FLOATS = ("float32", "float64")


def cpp_expr(function: PrintedFunction, expr: Expr) -> str:
    """Return an expression of the flat stage; raise `UnsupportedError` (`cuda.cpp`) for one that is not
    printed.

    >>> from gossamer_ir.core.build import add, index, index_var
    >>> cpp_expr(PrintedFunction(), add(index_var("i"), index(1)))
    'gs::add(i, int64_t(1))'
    """
    printer = CPP_EXPRS.get(type(expr))
    if printer is None:
        raise unprintable_error(f"'{type(expr).__name__}'")
    return printer(function, expr)


def operand(function: PrintedFunction, expr: Expr) -> str:
    """Return an expression where C++ converts integers: an int64 constant is a plain number."""
    value = integer_value(expr) if dtype_of(expr) == "int64" else None
    is_int = value is not None and abs(value) < 2**31
    return str(value) if is_int else cpp_expr(function, expr)


def element_position(
    function: PrintedFunction, buffer_name: Name, indices: tuple[Expr, ...]
) -> str:
    """Return the number of an element in its buffer, in row-major order: an integer, or a vector of them."""
    number: Expr = ZERO
    for at, extent in zip(indices, function.buffers[buffer_name].shape, strict=True):
        number = _in_lanes("add", _in_lanes("mul", number, extent), at)
    return operand(function, number)


def _in_lanes(op: Literal["add", "mul"], lhs: Expr, rhs: Expr) -> Expr:
    """Return a sum or product of integers, in each lane if one is a vector."""
    lanes = max(DType.parse(dtype_of(side)).lanes for side in (lhs, rhs))
    if lanes == 1:
        return add(lhs, rhs) if op == "add" else mul(lhs, rhs)
    sides = (
        side if DType.parse(dtype_of(side)).is_vector else Broadcast(side, Lanes(lanes))
        for side in (lhs, rhs)
    )
    return Binary(op, *sides)


def _call(function: PrintedFunction, name: str, *args: Expr) -> str:
    texts = ", ".join(cpp_expr(function, arg) for arg in args)
    return f"gs::{CPP_NAMES.get(name, name)}({texts})"


def _var(function: PrintedFunction, node: Var) -> str:
    return function.name(node.name)


def _unary(function: PrintedFunction, node: Unary) -> str:
    return _call(function, node.op, node.operand)


def _operation(function: PrintedFunction, node: Binary | Compare) -> str:
    operator = _infix_operator(function, node)
    if operator is None:
        return _call(function, node.op, node.lhs, node.rhs)
    binding = _PRECEDENCE[operator]
    lhs = _operand_of(function, node.lhs, binding)
    # Floats are not associative, and neither is -.
    return f"{lhs} {operator} {_operand_of(function, node.rhs, binding + 1)}"


def _operand_of(function: PrintedFunction, expr: Expr, binding: int) -> str:
    """Return an operand, in parentheses if its operator binds less."""
    text = operand(function, expr)
    operator = _infix_operator(function, expr) if isinstance(expr, Binary | Compare) else None
    return f"({text})" if operator is not None and _PRECEDENCE[operator] < binding else text


def _infix_operator(function: PrintedFunction, node: Binary | Compare) -> str | None:
    """Return the operator of C++ that does what an operation does, whatever its operands are; None if there
    is none."""
    dtype = dtype_of(node.lhs)
    is_native = dtype in _NATIVE_FLOATS or not DType.parse(dtype).is_float
    if isinstance(node, Compare):
        is_scalar = not DType.parse(dtype).is_vector
        return _COMPARISON_OPERATORS[node.op] if is_scalar and is_native else None
    if dtype == "bool":
        return _BOOL_OPERATORS.get(node.op)
    # Signed integers of C++ must not overflow, and narrow ones become int.
    if dtype == "int64":
        return _INTEGER_OPERATORS.get(node.op) if function.is_exact(node) else None
    return _FLOAT_OPERATORS.get(node.op) if dtype in _NATIVE_FLOATS else None


def _cast(function: PrintedFunction, node: Cast) -> str:
    dtype = DType.parse(node.dtype)
    scalar = cpp_type(dtype.scalar)
    if not dtype.is_vector and dtype.is_integer and DType.parse(dtype_of(node.value)).is_integer:
        return f"{scalar}({cpp_expr(function, node.value)})"
    return f"gs::cast<{scalar}>({cpp_expr(function, node.value)})"


def _reinterpret(function: PrintedFunction, node: Reinterpret) -> str:
    scalar = cpp_type(DType.parse(node.dtype).scalar)
    return f"gs::bits<{scalar}>({cpp_expr(function, node.value)})"


def _select(function: PrintedFunction, node: Select) -> str:
    return _call(function, "select", node.condition, node.if_true, node.if_false)


def _if_then_else(function: PrintedFunction, node: IfThenElse) -> str:
    condition, if_true, if_false = (
        cpp_expr(function, operand_expr)
        for operand_expr in (node.condition, node.if_true, node.if_false)
    )
    return f"({condition} ? {if_true} : {if_false})"


def _math(function: PrintedFunction, node: Call) -> str:
    if node.function not in INSTRUCTIONS:
        raise unprintable_error(f"The function '{node.function}'")
    return _call(function, node.function, *node.args)


def _load(function: PrintedFunction, node: Load) -> str:
    name, at = function.name(node.buffer), element_position(function, node.buffer, node.indices)
    is_vector = DType.parse(node.dtype).is_vector
    if node.predicate is None or node.passthrough is None:
        return f"gs::gather({name}, {at})" if is_vector else f"{name}[{at}]"
    predicate, passthrough = (
        cpp_expr(function, operand_expr) for operand_expr in (node.predicate, node.passthrough)
    )
    if is_vector:
        return f"gs::gather({name}, {at}, {predicate}, {passthrough})"
    return f"({predicate} ? {name}[{at}] : {passthrough})"


def _ramp(function: PrintedFunction, node: Ramp) -> str:
    base, stride = cpp_expr(function, node.base), cpp_expr(function, node.stride)
    return f"gs::ramp<{_lanes(node)}>({base}, {stride})"


def _broadcast(function: PrintedFunction, node: Broadcast) -> str:
    return f"gs::broadcast<{_lanes(node)}>({cpp_expr(function, node.value)})"


def _lanes(node: Ramp | Broadcast) -> int:
    if node.lanes.scalable:
        raise unprintable_error("A scalable vector")
    return node.lanes.count


def _lane_reduce(function: PrintedFunction, node: LaneReduce) -> str:
    name = CPP_NAMES.get(node.op, node.op)
    return f"gs::reduce_{name}({cpp_expr(function, node.value)})"


def _transpose_reduce(function: PrintedFunction, node: TransposeReduce) -> str:
    name = CPP_NAMES.get(node.op, node.op)
    lanes = ", ".join(f"gs::reduce_{name}({cpp_expr(function, value)})" for value in node.values)
    return f"{cpp_type(dtype_of(node))}{{{lanes}}}"


_Printer: TypeAlias = Callable[[PrintedFunction, Any], str]

CPP_EXPRS: dict[type, _Printer] = {
    Const: lambda function, node: cpp_constant(node),
    Var: _var,
    Unary: _unary,
    Binary: _operation,
    Compare: _operation,
    Cast: _cast,
    Reinterpret: _reinterpret,
    Select: _select,
    IfThenElse: _if_then_else,
    Call: _math,
    Load: _load,
    Ramp: _ramp,
    Broadcast: _broadcast,
    LaneReduce: _lane_reduce,
    TransposeReduce: _transpose_reduce,
}
"""The printer of each type of expression. Those that earlier passes replace have none."""

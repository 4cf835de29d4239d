"""Changes the dtypes of buffers, and propagates them to loads, literals, lets and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import identity
from gossamer_ir.core.constants import constant, value_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import EXPR_KINDS, dtype_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import (
    Atomic,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Combine,
    Const,
    Expr,
    Function,
    Let,
    Load,
    Node,
    ReduceOp,
    Reducer,
    SparseBuffer,
    Store,
    Unary,
    Var,
)
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.walk import stmts
from gossamer_support.items_by_name import items_by_name


def retype_function(
    function: Function, dtypes: Mapping[str, str], *, casts_loads: bool = False
) -> Function:
    """Return the function with other dtypes of buffers, by name.

    Constants that are combined with a retyped load take its dtype, and so do lets of retyped values.
    Casts that become redundant are removed. If `casts_loads`, each load is cast to the dtype that it had
    instead, so that nothing else changes. Raises `ArgumentError` (`specialize.dtype`) if a retyped value
    is combined with an expression of another dtype that is not a constant.

    >>> from gossamer_ir.core.build import ONE, ZERO, index
    >>> from gossamer_ir.core.constants import constant
    >>> double = Binary("mul", Load("X", (ZERO,), "float32"), constant(2, "float32"))
    >>> buffers = tuple(Buffer(name, (ONE,), "float32", name.lower()) for name in "XY")
    >>> function = Function("f", (), (Store("Y", (ZERO,), double),), buffers=buffers)
    >>> (store,) = retype_function(function, {"X": "float64", "Y": "float64"}).body
    >>> store.value.lhs.dtype, store.value.rhs.dtype
    ('float64', 'float64')
    """
    retyper = _Retyper(dtypes, casts_loads=casts_loads)
    retyper.lets |= _components(function, dtypes)
    result: Function = retyper.visit(function)
    return result


def _components(function: Function, dtypes: Mapping[str, str]) -> dict[str, str]:
    """Return the new dtypes of the operands of reducers, which are those of the buffers that they combine."""
    reducers = items_by_name(function.reducers)
    new: dict[str, str] = {}
    for node in stmts(function.body):
        for store, pair in _reducer_operands(node, reducers):
            dtype = dtypes.get(store.buffer, pair[0].dtype)
            if new.setdefault(pair[0].name, dtype) != dtype:
                raise ArgumentError(
                    "specialize.dtype",
                    f"One reducer combines elements of dtype '{new[pair[0].name]}' and of '{dtype}'.",
                    hint="Declare a reducer for each dtype.",
                )
            new[pair[1].name] = dtype
    return new


def _reducer_operands(
    node: Node, reducers: Mapping[str, Reducer]
) -> Iterable[tuple[Store, tuple[Var, Var]]]:
    if not isinstance(node, Combine) or node.reducer not in reducers:
        return ()
    reducer = reducers[node.reducer]
    return zip(node.stores, zip(reducer.lhs, reducer.rhs, strict=True), strict=True)


class _Retyper:
    """Rewrites bottom-up and in program order, so that a let is retyped before its uses are visited."""

    def __init__(self, buffers: Mapping[str, str], *, casts_loads: bool) -> None:
        self.buffers = buffers
        self.casts_loads = casts_loads
        self.lets: dict[str, str] = {}

    def visit(self, node: Node) -> Any:
        # Operands first: the dtype of an expression follows from theirs.
        inner = map_children(node, self.visit)
        rule = _RULES.get(type(inner))
        if rule is not None:
            return rule(self, inner)
        kind = EXPR_KINDS.get(type(inner))
        fields = () if kind is None else kind.operands_of_one_dtype
        return _with_operands_of_one_dtype(inner, fields) if fields else inner

    def buffer(self, node: SparseBuffer | Buffer) -> SparseBuffer | Buffer:
        dtype = self.buffers.get(node.name)
        if dtype is None or dtype == node.dtype:
            return node
        if isinstance(node, SparseBuffer) and node.fill is not None:
            return replace(node, dtype=dtype, fill=constant(value_of(node.fill), dtype))
        return replace(node, dtype=dtype)

    def load(self, node: Load) -> Expr:
        scalar = self.buffers.get(node.buffer)
        if scalar is None:
            return node
        dtype = DType.parse(node.dtype).with_scalar(scalar).text
        passthrough = (
            None if node.passthrough is None else _convert_to_scalar(node.passthrough, dtype)
        )
        retyped = replace(node, dtype=dtype, passthrough=passthrough)
        return Cast(node.dtype, retyped) if self.casts_loads and dtype != node.dtype else retyped

    def var(self, node: Var) -> Expr:
        dtype = self.lets.get(node.name, node.dtype)
        return node if dtype == node.dtype else Var(node.name, dtype)

    def let(self, node: Let) -> Let:
        dtype = dtype_of(node.value)
        if dtype == node.var.dtype:
            return node
        # Statements are visited in program order, so the uses of the variable follow.
        self.lets[node.var.name] = dtype
        return Let(Var(node.var.name, dtype), node.value)

    def store(self, node: Store | Atomic) -> Store | Atomic:
        scalar = self.buffers.get(node.buffer)
        if scalar is None:
            return node
        dtype = DType.parse(dtype_of(node.value)).with_scalar(scalar).text
        value = _convert_to_scalar(node.value, dtype)
        return node if value is node.value else replace(node, value=value)

    def reducer(self, node: Reducer) -> Reducer:
        dtypes = [var.dtype for var in node.lhs]
        if dtypes == [value.dtype for value in node.identity]:
            return node
        pairs = zip(node.identity, node.results, dtypes, strict=True)
        followed = [
            (_limit(value, dtype), _convert_to_scalar(result, dtype))
            for value, result, dtype in pairs
        ]
        identity, results = zip(*followed, strict=True)
        return replace(node, identity=identity, results=results)

    def cast(self, node: Cast) -> Expr:
        # Only casts of retyped loads: another cast to its own dtype was written by the user.
        is_index = isinstance(node.value, Load) and node.value.buffer in self.buffers
        return node.value if is_index and dtype_of(node.value) == node.dtype else node


_RULES: Mapping[type, Callable[[_Retyper, Any], Any]] = {
    SparseBuffer: _Retyper.buffer,
    Buffer: _Retyper.buffer,
    Load: _Retyper.load,
    Var: _Retyper.var,
    Let: _Retyper.let,
    Store: _Retyper.store,
    Atomic: _Retyper.store,
    Reducer: _Retyper.reducer,
    Cast: _Retyper.cast,
}
"""The nodes whose dtypes depend on more than their operands; `EXPR_KINDS` says which operands of other
expressions have one dtype."""


def _limit(value: Const, dtype: str) -> Const:
    """Return a constant in another dtype. The least or greatest value of its dtype becomes that of the other
    one, since it is the identity of a minimum or maximum."""
    for op in _LIMITS:
        if value == identity(op, value.dtype):
            return identity(op, dtype)
    return constant(value_of(value), dtype)


def _with_operands_of_one_dtype(node: Node, fields: Sequence[str]) -> Node:
    """Return the expression with one dtype for the operands in these fields, which its declared dtype
    follows."""
    changes: dict[str, Any] = {}
    values = [getattr(node, field) for field in fields]
    if isinstance(values[0], tuple):
        operands = _with_one_dtype(list(values[0]))
        changes[fields[0]] = tuple(operands)
    else:
        operands = _with_one_dtype(values)
        changes |= zip(fields, operands, strict=True)
    if operands and "dtype" in node.__struct_fields__:
        changes["dtype"] = dtype_of(operands[0])
    changed = {
        name: value
        for name, value in changes.items()
        # Unchanged operands are the same objects, which need no comparison of what is in them.
        if value is not (old := getattr(node, name)) and value != old
    }
    return replace(node, **changed) if changed else node


def _with_one_dtype(nodes: list[Expr]) -> list[Expr]:
    """Return the operands with one dtype: expressions of constants are converted to that of the others."""
    firm = [dtype_of(node) for node in nodes if not _is_literal(node)]
    # Constants alone have the dtype that they were given.
    if not firm:
        return nodes
    return [_convert_to_scalar(node, firm[0]) for node in nodes]


# Other operations: none occurs; this makes the operations itself.
_LIMITS: tuple[ReduceOp, ...] = ("min", "max")


def _is_literal(node: Expr) -> bool:
    match node:
        case Const():
            return True
        case Unary(operand=inner) | Broadcast(value=inner):
            return _is_literal(inner)
        case Binary():
            return _is_literal(node.lhs) and _is_literal(node.rhs)
    return False


def _convert_to_scalar(node: Expr, dtype: str) -> Expr:
    if dtype_of(node) == dtype:
        return node
    # A conversion that the program does not state could lose digits, so it is not inserted.
    if not _is_literal(node):
        raise ArgumentError(
            "specialize.dtype",
            f"A value of dtype '{dtype_of(node)}' is combined with one of dtype '{dtype}'.",
            hint="Give the new dtypes of all buffers whose values are combined.",
        )
    scalar = DType.parse(dtype).scalar
    return _convert_expr(node, scalar)


def _convert_expr(node: Expr, scalar: str) -> Expr:
    if isinstance(node, Const):
        return constant(value_of(node), scalar)
    return cast(Expr, map_children(node, lambda child: _convert_expr(child, scalar)))

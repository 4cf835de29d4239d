"""Checks of user-declared reducers and of the statements that use them."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.analysis.statements.reductions import reads_buffer
from gossamer_ir.nodes import Combine, Const, Expr, Reducer, Var
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.walk import contains
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.expressions.buffer_accesses import check_store
from gossamer_ir.verify.expressions.check_expr import check_expr
from gossamer_ir.verify.expressions.dtype_queries import is_vector, parse_dtype
from gossamer_support.message_texts import amount


def check_reducers(context: VerifyContext, reducers: tuple[Reducer, ...], place: NodePlace) -> None:
    """Check that each reducer has, for every component, a left and a right operand, a result and an identity
    constant of one dtype, and that results use only the operands."""
    for number, reducer in enumerate(reducers):
        inner = place.down("reducers", number)
        context.define_name(reducer.name, inner)
        context.reducers.setdefault(reducer.name, reducer)
        # The results are a function of the operands alone, so no variable around is visible.
        outer, context.vars = context.vars, {}
        with context.scope():
            _check_reducer(context, reducer, inner)
        context.vars = outer


def _check_reducer(context: VerifyContext, reducer: Reducer, place: NodePlace) -> None:
    sides = (reducer.lhs, reducer.rhs, reducer.results, reducer.identity)
    if len({len(side) for side in sides}) != 1 or not reducer.lhs:
        context.report(
            "verify.reducer.arity",
            f"The reducer '{reducer.name}' has {', '.join(str(len(side)) for side in sides)} left "
            "operands, right operands, results and constants; expected the same number of each, and "
            "at least one.",
            place,
        )
    for field, var in _operands(reducer):
        if parse_dtype(var.dtype) is None or is_vector(var.dtype):
            context.report(
                "verify.dtype.unknown", f"'{var.dtype}' is not a dtype of scalars.", place
            )
        context.define(var.name, var.dtype, place.down(field))
    for number, result in enumerate(reducer.results):
        _check_part(context, reducer, result, place=place.down("results", number), component=number)
        _check_purity(context, reducer, result, place=place.down("results", number))
    for number, value in enumerate(reducer.identity):
        _check_part(context, reducer, value, place=place.down("identity", number), component=number)
    for number, var in enumerate(reducer.rhs):
        _check_part(context, reducer, var, place=place.down("rhs", number), component=number)


def _operands(reducer: Reducer) -> Iterator[tuple[str, Var]]:
    yield from (("lhs", var) for var in reducer.lhs)
    yield from (("rhs", var) for var in reducer.rhs)


def _check_part(
    context: VerifyContext, reducer: Reducer, part: Expr, *, place: NodePlace, component: int
) -> None:
    dtype = check_expr(context, part, place)
    if component >= len(reducer.lhs) or dtype is None:
        return
    expected = reducer.lhs[component].dtype
    if dtype != expected:
        what = "constant" if isinstance(part, Const) else "value"
        context.report(
            "verify.reducer.dtype",
            f"Component {component} of the reducer '{reducer.name}' has a {what} of dtype {dtype}; "
            f"expected {expected}.",
            place,
        )


def _check_purity(
    context: VerifyContext, reducer: Reducer, result: Expr, *, place: NodePlace
) -> None:
    if contains(READS, result):
        context.report(
            "verify.reducer.impure",
            f"The reducer '{reducer.name}' reads memory, but its results may use only its operands.",
            place,
            hint="Add a component, and read its value where elements are combined.",
        )


def check_combine(context: VerifyContext, node: Combine, place: NodePlace) -> None:
    """Check that a combination stores each component of the reducer to a buffer of its own, and that no index
    or value reads these buffers."""
    for number, store in enumerate(node.stores):
        check_store(context, store, place.down("stores", number))
    reducer = context.reducers.get(node.reducer)
    if reducer is None:
        context.report(
            "verify.combine.reducer",
            f"There is no reducer '{node.reducer}'.",
            place,
            hint=f"Declared are: {', '.join(context.reducers) or 'none'}.",
        )
    elif len(reducer.lhs) != len(node.stores):
        context.report(
            "verify.combine.arity",
            f"'{node.reducer}' has {amount(len(reducer.lhs), 'component')}, but combines "
            f"{amount(len(node.stores), 'element')}.",
            place,
        )
    else:
        _check_components(context, node, reducer, place)
    _check_aliases(context, node, place)


def _check_components(
    context: VerifyContext, node: Combine, reducer: Reducer, place: NodePlace
) -> None:
    for number, (store, var) in enumerate(zip(node.stores, reducer.lhs, strict=True)):
        buffer = context.buffers.get(store.buffer)
        if buffer is not None and buffer.dtype != var.dtype:
            context.report(
                "verify.combine.dtype",
                f"Component {number} of '{node.reducer}' is of dtype {var.dtype}, but "
                f"'{store.buffer}' holds {buffer.dtype}.",
                place.down("stores", number),
            )
        if store.predicate is not None or store.nontemporal:
            context.report(
                "verify.combine.predicate",
                f"The store to '{store.buffer}' in a combination has a predicate or a hint.",
                place.down("stores", number),
                hint="Put the whole combination inside an if.",
            )


def _check_aliases(context: VerifyContext, node: Combine, place: NodePlace) -> None:
    buffers = {store.buffer for store in node.stores}
    # All components are combined at once, from their old values.
    parts = [part for store in node.stores for part in (store.value, *store.indices)]
    is_read = any(reads_buffer(part, buffer) for part in parts for buffer in buffers)
    if is_read or len(buffers) < len(node.stores):
        context.report(
            "verify.combine.alias",
            f"'{node.reducer}' combines two elements of one buffer, or reads a buffer that it combines "
            "into, so that the result would depend on the order.",
            place,
        )

"""Translates the combination of elements by a user-declared reducer."""

from __future__ import annotations

from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.interpret.frame import Exec, Frame
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.interpret.memory.values import constant_value
from gossamer_ir.interpret.translator import Translator
from gossamer_ir.nodes import Combine, Expr, Load, Reducer, Store, Var


def combine_elements(node: Combine, translator: Translator) -> Exec:
    """Return a combination: reads all elements and values, computes all results, then stores them.

    Raises `InterpreterError` if combining the reducer's identity with itself gives another value.
    """
    reducer = next(
        declared for declared in translator.function.reducers if declared.name == node.reducer
    )
    _require_identity(reducer, translator)
    loads = tuple(
        Load(store.buffer, store.indices, var.dtype)
        for store, var in zip(node.stores, reducer.lhs, strict=True)
    )
    operands = _simultaneous_assignment(
        (*reducer.lhs, *reducer.rhs), (*loads, *_values(node)), translator
    )
    results = _simultaneous_assignment(reducer.lhs, reducer.results, translator)
    stores = translator.body(
        tuple(
            Store(store.buffer, store.indices, var)
            for store, var in zip(node.stores, reducer.lhs, strict=True)
        )
    )

    def run(frame: Frame) -> None:
        operands(frame)
        results(frame)
        stores(frame)

    return run


def _values(node: Combine) -> tuple[Expr, ...]:
    return tuple(store.value for store in node.stores)


def _simultaneous_assignment(
    targets: tuple[Var, ...], values: tuple[Expr, ...], translator: Translator
) -> Exec:
    """Evaluate all values before it binds any of them."""
    names, parts = tuple(var.name for var in targets), translator.exprs(values)

    def run(frame: Frame) -> None:
        frame.values.update(zip(names, parts(frame), strict=True))

    return run


def _require_identity(reducer: Reducer, translator: Translator) -> None:
    """Check that the identity combined with itself is itself, a necessary condition that needs no data.

    A sum with the identity 1 fails, as does one whose result is NaN. A maximum with the identity 0 passes.
    """
    frame = Frame({}, {})
    for operands in (reducer.lhs, reducer.rhs):
        for var, value in zip(operands, reducer.identity, strict=True):
            frame.values[var.name] = constant_value(value)
    results = translator.exprs(reducer.results)(frame)
    for value, identity in zip(results, reducer.identity, strict=True):
        expected = constant_value(identity)
        if value != expected and not (value != value and expected != expected):
            raise InterpreterError(
                f"The identity of the reducer '{reducer.name}' combined with itself is {value} of "
                f"dtype {dtype_of(identity)}; expected {identity.text}."
            )

"""Index maps that are written as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Any

from gossamer_ir.core.build import binary, index, index_var
from gossamer_ir.nodes import BinaryOp, Expr, IndexMap
from gossamer_schedule.errors import schedule_error
from gossamer_support.as_tuple import as_tuple
from gossamer_support.message_texts import amount


class TracedIndex:
    """An index in a function that is traced: arithmetic builds the expression `expr`."""

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __add__(self, other: Any) -> Any:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> Any:
        return self._binary("add", other, is_right=True)

    def __sub__(self, other: Any) -> Any:
        return self._binary("sub", other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("sub", other, is_right=True)

    def __mul__(self, other: Any) -> Any:
        return self._binary("mul", other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("mul", other, is_right=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", other, is_right=True)

    def __mod__(self, other: Any) -> Any:
        return self._binary("floormod", other)

    def __rmod__(self, other: Any) -> Any:
        return self._binary("floormod", other, is_right=True)

    def __bool__(self) -> bool:
        # A branch would be taken once, while the function is traced, and not for each index.
        raise schedule_error(
            "format_rewrite_rule.map",
            "A map of indices cannot depend on a condition; it may use +, -, *, // and %.",
        )

    def _binary(self, op: BinaryOp, other: Any, *, is_right: bool = False) -> Any:
        operand = _expr_of(other)
        if operand is None:
            return NotImplemented
        lhs, rhs = (operand, self.expr) if is_right else (self.expr, operand)
        return TracedIndex(binary(op, lhs, rhs))


def index_map_of(
    function: IndexMap | Callable[..., Any],
    vars: Sequence[str],
    *,
    sizes: Sequence[str],
    results: int,
    name: str,
) -> IndexMap:
    """Return the map of a function of one index for each of `variables`.

    Further parameters of the function have the names of `sizes`, which stay symbolic. `name` is that of the
    map in errors. Raises `ScheduleError` (`schedule.format_rewrite_rule.map`) unless it has as many `results`
    as expected.

    >>> from gossamer_ir.script import print_expr
    >>> found = index_map_of(
    ...     lambda i, j, side: (i // side, j), ("i", "j"), sizes=("side",), results=2, name="idx_map"
    ... )
    >>> [print_expr(result) for result in found.results]
    ['i // side', 'j']
    """
    if isinstance(function, IndexMap):
        index_map = function
    elif callable(function):
        index_map = IndexMap(tuple(vars), _trace(function, vars, sizes, name))
    else:
        raise schedule_error(
            "format_rewrite_rule.map", f"{name} is {function!r}; expected a function."
        )
    if len(index_map.vars) != len(vars) or len(index_map.results) != results:
        raise schedule_error(
            "format_rewrite_rule.map",
            f"{name} takes {amount(len(index_map.vars), 'index', 'indices')} and returns "
            f"{len(index_map.results)}; expected {len(vars)} and {results}.",
        )
    return index_map


def _trace(
    function: Callable[..., Any], vars: Sequence[str], sizes: Sequence[str], name: str
) -> tuple[Expr, ...]:
    declared = list(signature(function).parameters.values())
    is_variadic = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in declared)
    extra = [parameter.name for parameter in declared[len(vars) :]]
    unknown = [parameter for parameter in extra if parameter not in sizes]
    if not is_variadic and (len(declared) < len(vars) or unknown):
        raise schedule_error(
            "format_rewrite_rule.map",
            f"{name} has the parameters ({', '.join(parameter.name for parameter in declared)}); expected "
            f"{amount(len(vars), 'index', 'indices')}, and then only sizes of the format.",
            hint=f"The sizes are: {', '.join(sizes) or 'none'}.",
        )
    indices = [TracedIndex(index_var(var)) for var in vars]
    size_indices = {} if is_variadic else {size: TracedIndex(index_var(size)) for size in extra}
    returned = function(*indices, **size_indices)
    traced = [_expr_of(item) for item in as_tuple(returned)]
    exprs = tuple(expr for expr in traced if expr is not None)
    if len(exprs) != len(traced):
        raise schedule_error(
            "format_rewrite_rule.map",
            f"{name} returns {returned!r}; expected indices, made with +, -, *, // and %.",
        )
    return exprs


def _expr_of(value: Any) -> Expr | None:
    """Return the expression of an index or an integer; None for other objects."""
    if isinstance(value, TracedIndex):
        return value.expr
    if isinstance(value, int) and not isinstance(value, bool):
        return index(value)
    return None

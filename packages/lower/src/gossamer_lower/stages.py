"""What every pass shares: from which stage to which, and the names in a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from gossamer_ir.errors import InternalError
from gossamer_ir.nodes import (
    Allocate,
    Block,
    For,
    Function,
    Iteration,
    Let,
    Module,
    ParallelFor,
    StageName,
    Stmt,
)  # fmt: skip
from gossamer_ir.walk import statements


def map_functions(
    module: Module, before: StageName, after: StageName, function: Callable[[Function], Function]
) -> Module:
    """Applies a pass to every function of a module that is at the stage it expects."""
    require_stage(module, before)
    functions = tuple(function(found) for found in module.functions)
    return msgspec.structs.replace(module, stage=after, functions=functions)


def require_stage(module: Module, stage: StageName) -> None:
    """A pass was called on a module of another stage: a bug of the caller."""
    if module.stage != stage:
        raise InternalError(f"expected a module of stage {stage}, got one of {module.stage}")


def names_of(function: Function) -> Iterator[str]:
    """Every name that is taken in a function."""
    yield function.name
    for declared in (*function.params, *function.axes, *function.buffers, *function.reducers):
        yield declared.name
    for reducer in function.reducers:
        yield from (var.name for var in (*reducer.lhs, *reducer.rhs))
    for stmt in statements(function.body):
        names = _BINDING.get(type(stmt))
        if names is not None:
            yield from names(stmt)


_BINDING: dict[type[Any], Callable[[Any], tuple[str, ...]]] = {
    **dict.fromkeys((For, ParallelFor), lambda stmt: (stmt.var,)),
    Let: lambda stmt: (stmt.var.name,),
    Allocate: lambda stmt: (stmt.buffer.name,),
    Block: lambda stmt: (stmt.name, *(found.var for found in stmt.iters)),
    Iteration: lambda stmt: (stmt.name, *stmt.vars),
}
"""The names that each kind of statement binds."""


def bound_variables(body: tuple[Stmt, ...]) -> set[str]:
    """The names of all variables that statements bind."""
    binding = (stmt for stmt in statements(body) if type(stmt) in (For, Let))
    return {name for stmt in binding for name in _BINDING[type(stmt)](stmt)}

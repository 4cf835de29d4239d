"""Combinations by reducers that the program declares become lets and stores."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gossamer_ir.nodes import (
    Combine,
    Expr,
    Function,
    Let,
    Load,
    Module,
    Node,
    Reducer,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.substitute import substitute
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_support.items_by_name import items_by_name


@lowering_pass(
    takes=("loop",),
    acts_on="declared reducers",
    removes=("reducers",),
    before={"lower_blocks": "no other pass has a case for `Combine`"},
)
def expand_reducers(module: Module) -> Module:
    """Expand the combinations by declared reducers, and remove the reducers.

    All elements and values are read before the first result is stored: a result may depend on each.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ...     f = T.comm_reducer(lambda a, b: (T.max(a, T.abs(b)),), (T.float32(0),))
    ...     for i in T.serial(n):
    ...         Y[0] = f(Y[0], X[i])
    ... ''')
    >>> print(body_text(before))
    for i in T.serial(n):
        Y[0] = f(Y[0], X[i])
    >>> print(body_text(expand_reducers(before)))
    for i in T.serial(n):
        a: T.float32 = Y[0]
        b: T.float32 = X[i]
        Y[0] = T.max(a, T.abs(b))
    """
    return map_functions(module, _expand_function)


# Other statements: none applies a declared reducer but `Combine`.
def _expand_function(function: Function) -> Function:
    if not function.reducers:
        return function
    reducers = items_by_name(function.reducers)
    bare = replace(function, reducers=())
    namer = namer_of(bare)

    def rule(node: Node) -> tuple[Stmt, ...] | None:
        return _expand_reducer(node, reducers, namer) if isinstance(node, Combine) else None

    return replace(bare, body=rewrite_body(function.body, rule))


def _expand_reducer(
    node: Combine, reducers: Mapping[str, Reducer], namer: Namer
) -> tuple[Stmt, ...]:
    reducer = reducers[node.reducer]
    old = [
        Load(s.buffer, s.indices, v.dtype) for s, v in zip(node.stores, reducer.lhs, strict=True)
    ]
    operands = [*old, *(store.value for store in node.stores)]
    lets = [
        Let(Var(namer.fresh(var.name), var.dtype), value)
        for var, value in zip((*reducer.lhs, *reducer.rhs), operands, strict=True)
    ]
    names: dict[str, Expr] = {
        var.name: let.var for var, let in zip((*reducer.lhs, *reducer.rhs), lets, strict=True)
    }
    results = [substitute(result, names) for result in reducer.results]
    stores = [
        Store(store.buffer, store.indices, result)
        for store, result in zip(node.stores, results, strict=True)
    ]
    return (*lets, *stores)

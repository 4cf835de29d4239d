"""Reduces a failing program while it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    EXPRS,
    STMTS,
    Block,
    Const,
    For,
    Function,
    FuseAxes,
    Guard,
    If,
    Iteration,
    Load,
    Module,
    Node,
    OverAxis,
    Prefetch,
    Search,
    SparseBuffer,
    Store,
    Var,
    While,
)
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import children, walk
from gossamer_ir.verify import diagnostics
from tests.fuzzing.programs.program import Program

USERS = (Load, Store, Prefetch, Search, Guard)
"""The nodes that name a buffer."""
MAX_CANDIDATES = 600
"""The maximum number of candidates."""


def shrunk(
    program: Program, is_wrong: Callable[[Program], bool], *, most: int = MAX_CANDIDATES
) -> Program:
    """A smaller program that fails, too: removes statements and parts of expressions one by one, then unused
    declarations."""
    tried = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in candidates(program):
            tried += 1
            if tried > most:
                return program
            if _is_usable(candidate) and is_wrong(candidate):
                program, is_smaller = candidate, True
                break
    return program


def _is_usable(program: Program) -> bool:
    return not diagnostics(program.module) and program.has_meaning


def candidates(program: Program) -> Iterator[Program]:
    """The programs with one part removed."""
    (function,) = program.module.functions
    changed = partial(msgspec.structs.replace, function)
    cleaned = _without_unused(program)
    if cleaned is not None:
        yield cleaned
    for smaller in _bodies(function.body):
        yield _with(program, changed(body=smaller))
    for name in ("relations", "facts"):
        for left in _without_one(getattr(function, name)):
            yield _with(program, changed(**{name: left}))


def _with(program: Program, function: Function) -> Program:
    module = Module(program.module.stage, (function,), program.module.entry)
    return replace(program, module=module)


def _without_one(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for at in range(len(items)):
        yield items[:at] + items[at + 1 :]


def _bodies(stmts: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The bodies with one statement removed or replaced by a smaller one."""
    for number, stmt in enumerate(stmts):
        yield stmts[:number] + stmts[number + 1 :]
        for inner in _unwrapped(stmt):
            yield stmts[:number] + inner + stmts[number + 1 :]
    for number, stmt in enumerate(stmts):
        for smaller in _smaller(stmt):
            yield (*stmts[:number], smaller, *stmts[number + 1 :])


def _unwrapped(stmt: Any) -> Iterator[tuple[Any, ...]]:
    """The statements of a body without the enclosing statement."""
    match stmt:
        case If():
            yield stmt.then_body
            if stmt.else_body:
                yield stmt.else_body
        case For():
            yield tuple(substitute(inner, {stmt.var: stmt.start}) for inner in stmt.body)
        case While():
            yield stmt.body
        case Block():
            values = {iterator.var: iterator.value for iterator in stmt.iters}
            yield tuple(substitute(inner, values) for inner in stmt.body)
            if stmt.init:
                yield (msgspec.structs.replace(stmt, init=()),)
            if stmt.predicate is not None:
                yield (msgspec.structs.replace(stmt, predicate=None),)


def _smaller(node: Node) -> Iterator[Node]:
    """The node with one part removed."""
    if isinstance(node, EXPRS) and not isinstance(node, Const | Var):
        yield from _simpler(node)
    if isinstance(node, FuseAxes):
        return
    if isinstance(node, Iteration):
        yield from _unfused(node)
    for name in node.__struct_fields__:
        part = getattr(node, name)
        if isinstance(part, Node) and not (isinstance(node, Store) and name == "buffer"):
            for smaller in _smaller(part):
                yield msgspec.structs.replace(node, **{name: smaller})
        elif isinstance(part, tuple) and part and isinstance(part[0], STMTS):
            for body in _bodies(part):
                yield msgspec.structs.replace(node, **{name: body})
        elif isinstance(part, tuple) and part and isinstance(part[0], EXPRS):
            for number, inner in enumerate(part):
                for smaller in _smaller(inner):
                    parts = (*part[:number], smaller, *part[number + 1 :])
                    yield msgspec.structs.replace(node, **{name: parts})


def _simpler(node: Any) -> Iterator[Node]:
    """Simpler expressions of the same dtype: constants and operands."""
    dtype = dtype_of(node)
    if not DType.parse(dtype).is_vector:
        yield constant(1, dtype)
        yield constant(0, dtype)
    for part in children(node):
        if isinstance(part, EXPRS) and dtype_of(part) == dtype and not isinstance(node, Load):
            yield part


def _unfused(node: Iteration) -> Iterator[Node]:
    for number, item in enumerate(node.axes):
        if isinstance(item, FuseAxes):
            apart = tuple(OverAxis(axis) for axis in item.axes)
            axes = (*node.axes[:number], *apart, *node.axes[number + 1 :])
            yield msgspec.structs.replace(node, axes=axes)


def _without_unused(program: Program) -> Program | None:
    """Removes unused buffers, reducers, axes and parameters; None if all are used."""
    (function,) = program.module.functions
    nodes = [node for stmt in function.body for node in walk(stmt)]
    touched = {node.buffer for node in nodes if isinstance(node, USERS)}
    buffers = tuple(buffer for buffer in function.buffers if buffer.name in touched)
    reducers = tuple(
        reducer
        for reducer in function.reducers
        if any(getattr(node, "reducer", None) == reducer.name for node in nodes)
    )
    named = {axis for buffer in buffers if isinstance(buffer, SparseBuffer) for axis in buffer.axes}
    for node in nodes:
        named |= {getattr(node, "axis", ""), getattr(node, "parent", "")}
        named |= set(node.axes) if isinstance(node, FuseAxes) else set()
    for axis in reversed(function.axes):
        named |= {axis.parent} if axis.name in named and axis.parent else set()
    axes = tuple(axis for axis in function.axes if axis.name in named)
    relations = tuple(
        relation for relation in function.relations if {relation.left, relation.right} <= named
    )
    kept = {buffer.name for buffer in buffers}
    facts = tuple(fact for fact in function.facts if fact.buffer in kept)
    smaller = msgspec.structs.replace(
        function, buffers=buffers, reducers=reducers, axes=axes, relations=relations, facts=facts,
        params=(),
    )  # fmt: skip
    mentioned = {
        text for node in walk(smaller) for text in map(_text, node.__struct_fields__, [node] * 99)
    }
    params = tuple(param for param in function.params if param.name in mentioned)
    if len(params) == len(function.params) and smaller.buffers == function.buffers:
        return None
    kept = {param.name for param in params}
    changed = _with(program, msgspec.structs.replace(smaller, params=params))
    return replace(
        changed,
        arrays={name: array for name, array in program.arrays.items() if name in kept},
        sizes={name: value for name, value in program.sizes.items() if name in kept},
    )


def _text(field: str, node: Node) -> str:
    value = getattr(node, field)
    return value if isinstance(value, str) else ""

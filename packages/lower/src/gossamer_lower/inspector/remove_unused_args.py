"""Removes unused parameters, the buffers bound to them, and the facts about these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import index_handles
from gossamer_ir.core.build import is_handle
from gossamer_ir.core.statement_kinds import CALLING_STMTS
from gossamer_ir.facts.fact_kinds import buffers_of_fact
from gossamer_ir.nodes import FACTS, Function, Module, Node, ParallelFor, Param, Stmt, Var
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.walk import collect, walk
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_support.items_by_name import items_by_name

_RANGE_PARAMS = 2
"""The number of parameters of a parallel function that give its part of the range; they stay."""


@lowering_pass(
    pipeline=None,
    after={"substitute_buffer": "the substitution leaves arguments unused"},
)
def remove_unused_args(module: Module) -> Module:
    """Remove unused parameters and buffers from each function, and the arguments for them from calls.

    The index arrays of declared axes stay.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_ir.script import print_module
    >>> before = program("for i in T.serial(n): Y[i] = 0")
    >>> print(print_module(remove_unused_args(before)))
    @T.prim_func
    def f(
        y: T.handle,
        n: T.int64,
    ) -> None:
        T.func_attr({"sparse_tir_level": 0})
        Y = T.match_buffer(y, (n,), "float32")
        for i in T.serial(n):
            Y[i] = 0.0
    <BLANKLINE>
    """
    remover = _ArgumentRemover(module)
    functions = tuple(remover.function(function.name) for function in module.functions)
    return replace(module, functions=functions)


class _ArgumentRemover:
    """Prunes the functions of a module, callees first."""

    def __init__(self, module: Module) -> None:
        self._old = items_by_name(module.functions)
        self._new: dict[str, Function] = {}

    def function(self, name: str) -> Function:
        """Return the function without unused parameters; those that it calls are pruned before."""
        if name not in self._new:
            old = self._old[name]
            body = tuple(self._node(stmt) for stmt in old.body)
            is_chunk = name in self._run_in_parallel()
            kept = old.params[:_RANGE_PARAMS] if is_chunk else ()
            self._new[name] = _prune_arguments(replace(old, body=body), kept)
        return self._new[name]

    def _run_in_parallel(self) -> set[str]:
        nodes = (node for function in self._old.values() for node in walk(function))
        return {node.function for node in nodes if isinstance(node, ParallelFor)}

    def _node(self, node: Node) -> Node:
        if isinstance(node, CALLING_STMTS):
            first = _RANGE_PARAMS if isinstance(node, ParallelFor) else 0
            params = self._old[node.function].params[first:]
            kept = set(self.function(node.function).params)
            pairs = zip(node.args, params, strict=True)
            return replace(node, args=tuple(arg for arg, p in pairs if p in kept))
        return map_children(node, self._node)


def _prune_arguments(function: Function, kept: tuple[Param, ...]) -> Function:
    named = set(_buffers_named(function.body))
    axis_handles = {handle for axis in function.axes for handle in index_handles(axis)}
    pointed = {var.name for stmt in function.body for var in _pointers(stmt)}
    buffers = tuple(
        buffer
        for buffer in function.buffers
        if buffer.name in named
        or buffer.name in pointed
        or buffer.handle in pointed
        or buffer.handle in axis_handles
    )
    names = {buffer.name for buffer in buffers}
    facts = tuple(fact for fact in function.facts if set(_buffers_named((fact,))) <= names)
    bare = replace(function, params=(), buffers=buffers, facts=facts)
    used = pointed | {node.name for node in collect(Var, bare)}
    used |= {buffer.handle for buffer in buffers if buffer.handle is not None}
    used |= axis_handles
    used |= {buffer.offsets for buffer in sparse_buffers(buffers) if buffer.offsets is not None}
    params = tuple(p for p in function.params if p in kept or p.name in used)
    return replace(bare, params=params)


def _buffers_named(nodes: Iterable[Node]) -> Iterator[str]:
    """Yield the buffers that nodes read, write or name."""
    for top in nodes:
        for node in walk(top):
            if isinstance(node, FACTS):
                yield from buffers_of_fact(node)
            elif isinstance(buffer := getattr(node, "buffer", None), str):
                yield buffer


def _pointers(stmt: Stmt) -> Iterator[Var]:
    for node in walk(stmt):
        if is_handle(node):
            yield node

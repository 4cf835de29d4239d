"""Pipelines loops over tiles: asynchronous copies fill the shared memory of later iterations.

Each buffer gets a copy for each stage. Before the loop, the copies for the first iterations begin; each
iteration waits for its own ones, and begins those that are `stages - 1` iterations ahead. A group is
committed in every iteration, also if nothing is left to be copied, so that the number of groups that a wait
leaves pending is the same in the last iterations. A stage that an earlier iteration may still read
(`pending`) is not filled: copies are then that many iterations less ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.async_copies import COPIED_BYTES, contiguous_copy
from gossamer_ir.analysis.statements.software_pipelining import copies_ahead, is_pipelined
from gossamer_ir.core.annotations import PENDING, PIPELINE, without_annotation
from gossamer_ir.core.build import add, binary, index, index_var, sub
from gossamer_ir.nodes import (
    Allocate,
    AsyncCopy,
    Barrier,
    Buffer,
    CommitGroup,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Let,
    Module,
    Node,
    Stmt,
    Store,
    Var,
    WaitGroup,
)
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.traversal.access_types import ELEMENT_NODES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.buffer_uses import buffers_read_in, outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import stmts
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import with_bodies, with_body


@lowering_pass(takes=("flat",), pipeline="device")
def pipeline_loops(module: Module) -> Module:
    """Return a module for a device, whose loops with the annotation `pipeline` overlap iterations.

    The copies at the start of such a loop fill buffers in shared memory that it allocates. A copy of 4, 8 or
    16 bytes becomes asynchronous, any other one is made early. A loop without such copies loses the
    annotation.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_testkit.show import body_text
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def reverse(x: T.handle, y: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n, 32), "float32")
    ...     Y = T.match_buffer(y, (n, 32), "float32")
    ...     for i in T.serial(n, annotations={"pipeline": 2}):
    ...         S = T.alloc_buffer((32,), "float32", scope="shared")
    ...         for t in T.thread_binding(32, thread="threadIdx.x"):
    ...             S[t] = X[i, t]
    ...         for u in T.thread_binding(32, thread="threadIdx.x"):
    ...             Y[i, u] = S[31 - u]
    ... ''')
    >>> print(body_text(pipeline_loops(flat)))
    S = T.alloc_buffer((2, 32), "float32", scope="shared")
    if 0 < n:
        for t_1 in T.thread_binding(32, thread="threadIdx.x"):
            with T.async_copy():
                S[0, t_1] = X[0, t_1]
    T.commit_group()
    for i in T.serial(n):
        T.wait_group(0)
        T.barrier()
        if i + 1 < n:
            for t_2 in T.thread_binding(32, thread="threadIdx.x"):
                with T.async_copy():
                    S[(i + 1) % 2, t_2] = X[i + 1, t_2]
        T.commit_group()
        for u in T.thread_binding(32, thread="threadIdx.x"):
            Y[i, u] = S[i % 2, 31 - u]
    """
    return map_functions(module, _pipeline_function)


def _pipeline_function(function: Function) -> Function:
    return with_body(function, _Injector(function).body(function.body))


class _Stages(msgspec.Struct, frozen=True):
    """A pipelined loop: its copies and the rest of its body, how many stages there are, and the buffers that
    have an element for each stage."""

    loop: For
    copies: tuple[Stmt, ...]
    rest: tuple[Stmt, ...]
    count: int
    buffers: Mapping[str, Buffer]

    @property
    def ahead(self) -> int:
        """The iterations that copies are ahead of the rest."""
        return self.count - 1 - int(dict(self.loop.annotations).get(PENDING, 0))


class _Injector:
    def __init__(self, function: Function) -> None:
        self._function, self._namer = function, namer_of(function)
        self._allocated = {buffer.name for buffer in allocations(stmts(function.body))}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return statements whose pipelined loops overlap iterations."""
        return tuple([new for stmt in body for new in self._stmt(stmt)])

    def _stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        inner = with_bodies(stmt, self.body)
        if not isinstance(inner, For) or not is_pipelined(inner):
            return (inner,)
        stages = _stages_of(inner, self._function)
        if stages is None:
            return (without_annotation(without_annotation(inner, PIPELINE), PENDING),)
        return self._pipeline_loop(stages)

    def _pipeline_loop(self, stages: _Stages) -> tuple[Stmt, ...]:
        loop = stages.loop
        lets = [self._let_of(expr) for expr in (loop.start, loop.extent)]
        start, extent = (
            expr if let is None else let.var
            for expr, let in zip((loop.start, loop.extent), lets, strict=True)
        )
        loop = replace(without_annotation(loop, PIPELINE), start=start, extent=extent)
        number = sub(index_var(loop.var), start)
        last = stages.ahead
        first = [
            stmt
            for ahead in map(index, range(last))
            for stmt in (self._issue_copies(stages, start, ahead, extent), CommitGroup())
        ]
        later = add(number, index(last))
        body = (
            WaitGroup(last - 1),
            Barrier(),
            self._issue_copies(stages, start, later, extent),
            CommitGroup(),
            *_in_stage(stages.rest, stages, number),
        )
        allocated = [
            Allocate(replace(buffer, shape=(index(stages.count), *buffer.shape)))
            for buffer in stages.buffers.values()
        ]
        return (*filter(None, lets), *allocated, *first, replace(loop, body=body))

    # Other expressions: evaluated once, into a variable.
    def _let_of(self, expr: Expr) -> Let | None:
        """Return the variable of a bound that is evaluated once; None if it is a constant or a variable."""
        if isinstance(expr, Const | Var):
            return None
        return Let(index_var(self._namer.fresh("bound")), expr)

    def _issue_copies(self, stages: _Stages, start: Expr, number: Expr, extent: Expr) -> Stmt:
        """Return the copies of an iteration, if there is one with this number."""
        values = {stages.loop.var: add(start, number)}
        copies = with_fresh_names(stages.copies, self._namer, values=values)
        staged = rewrite_body(_in_stage(copies, stages, number), self._asynchronous)
        return If(Compare("lt", number, extent), staged)

    def _asynchronous(self, node: Node) -> AsyncCopy | None:
        """Return an asynchronous copy for the store of what was loaded from global memory."""
        copy = contiguous_copy(node) if isinstance(node, Store) else None
        if copy is None or copy.size not in COPIED_BYTES or copy.load.buffer in self._allocated:
            return None
        return AsyncCopy((copy.store,))


# Other statements: copies if they fill shared memory; only a let is needed by both parts.
def _stages_of(loop: For, function: Function) -> _Stages | None:
    """Return the stages of a pipelined loop; None if it does not begin with copies to shared memory."""
    ahead = copies_ahead(loop, function)
    filled = {buffer.name: buffer for buffer in allocations(ahead) if buffer.scope == "shared"}
    count = 0
    for number, stmt in enumerate(ahead):
        # Registers would have to be addressed by the number of a stage.
        if outer_writes((stmt,)) - filled.keys() or _allocates_other(stmt):
            break
        if outer_writes((stmt,)):
            count = number + 1
    copies, rest = loop.body[:count], loop.body[count:]
    written = {name for stmt in copies for name in outer_writes((stmt,))}
    if not written or not written <= buffers_read_in(rest):
        return None
    lets = tuple(stmt for stmt in copies if isinstance(stmt, Let))
    return _Stages(
        loop,
        tuple(stmt for stmt in copies if not isinstance(stmt, Allocate)),
        (*lets, *rest),
        int(dict(loop.annotations)[PIPELINE]),
        {name: filled[name] for name in filled if name in written},
    )


# Other statements: allocate nothing.
def _allocates_other(stmt: Stmt) -> bool:
    return isinstance(stmt, Allocate) and stmt.buffer.scope != "shared"


def _in_stage(body: tuple[Stmt, ...], stages: _Stages, number: Expr) -> tuple[Stmt, ...]:
    """Return statements that access the elements of the stage of an iteration."""
    stage = binary("floormod", number, index(stages.count))

    def rule(node: Node) -> Any | None:
        if isinstance(node, ELEMENT_NODES) and node.buffer in stages.buffers:
            return replace(node, indices=(stage, *node.indices))
        return None

    return rewrite_body(body, rule)

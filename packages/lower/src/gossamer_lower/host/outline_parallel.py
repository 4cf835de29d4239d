"""Outlines parallel loops: each body becomes a function, which `ParallelFor` calls for chunks of the range.

The result is at the flat stage: one entry function and the functions that it launches. Only the outermost
of nested parallel loops is distributed; an inner loop runs serially on the thread of its iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.annotations import ATOMIC, without_annotation
from gossamer_ir.core.build import handle, index_var, sub
from gossamer_ir.facts.fact_kinds import buffers_of_fact
from gossamer_ir.nodes import Buffer, Fact, For, Function, Module, ParallelFor, Param, Stmt, Var
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer, bound_vars, names_in
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.statements.rebuild import map_stmts, with_bodies, with_body
from gossamer_support.items_by_name import items_by_name


@lowering_pass(
    takes=("loop",),
    gives="flat",
    without=("blocks", "vectorized loops", "unrolled loops", "searches"),
    removes=("parallel loops",),
    is_stable=True,
)
def outline_parallel(module: Module) -> Module:
    """Outline parallel loops into functions, which are called for chunks of the range.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_ir.script import print_module
    >>> before = program('''
    ... for i in T.parallel(n, grain=1000):
    ...     Y[i] = X[i] * 2.0
    ... ''')
    >>> print(print_module(outline_parallel(before)))
    @T.prim_func(entry=True)
    def f(
        x: T.handle,
        y: T.handle,
        p: T.handle,
        n: T.int64,
    ) -> None:
        T.stage("flat")
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        P = T.match_buffer(p, (n,), "int64")
        T.parallel_for("f_i", "i", n, args=[y, x, n], grain=1000)
    <BLANKLINE>
    <BLANKLINE>
    @T.prim_func
    def f_i(
        begin: T.int64,
        end: T.int64,
        y: T.handle,
        x: T.handle,
        n: T.int64,
    ) -> None:
        T.stage("flat")
        Y = T.match_buffer(y, (n,), "float32")
        X = T.match_buffer(x, (n,), "float32")
        for i in T.serial(begin, end):
            Y[i] = X[i] * 2.0
    <BLANKLINE>
    """
    # Names of functions and of variables share one namer, as outlined functions are named after loops.
    used = {function.name for function in module.functions}
    functions: list[Function] = []
    for function in module.functions:
        outliner = _LoopOutliner(function, Namer(used | set(names_in(function))))
        body = tuple(outliner.stmt(stmt) for stmt in function.body)
        functions += [replace(function, body=body), *outliner.functions]
    outlined = Module("flat", tuple(functions), module.entry)
    _require_bound_pointers(outlined)
    return outlined


def _require_bound_pointers(module: Module) -> None:
    """Raise `VerifyError` if a pointer parameter has no buffer: earlier stages accept that, but a flat
    function must declare what each pointer points to."""
    for function in module.functions:
        bound = {buffer.handle for buffer in function.buffers}
        if any(param.dtype == "handle" and param.name not in bound for param in function.params):
            verify(module)


class _LoopOutliner:
    """Outlines the loops of one function, and tracks the buffers that they may capture."""

    def __init__(self, function: Function, namer: Namer) -> None:
        self.functions: list[Function] = []
        self._function = function
        self._namer = namer
        self._buffers = {
            buffer.name: buffer for buffer in function.buffers if isinstance(buffer, Buffer)
        }

    def stmt(self, stmt: Stmt) -> Stmt:
        # Allocations before the loop may be captured; those inside belong to the outlined function.
        self._buffers |= items_by_name(allocations((stmt,)))
        if isinstance(stmt, For) and stmt.kind == "parallel":
            return self._outline(stmt)
        return with_bodies(stmt, self.body)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return map_stmts(body, lambda stmt: (self.stmt(stmt),))

    def _outline(self, loop: For) -> ParallelFor:
        # First: what an inner parallel loop captures is then simply part of the body.
        loop = _with_serial_loops(loop)
        begin, end = self._namer.fresh("begin"), self._namer.fresh("end")
        inside = collect((Var, *BUFFER_NODES), *loop.body)
        buffers = self._captured_buffers(inside)
        vars = _captured_vars(loop, inside, buffers)
        handles = [
            buffer.handle or self._namer.fresh(f"{buffer.name}_handle") for buffer in buffers
        ]
        bound = [_bind_to_pointer(*pair) for pair in zip(buffers, handles, strict=True)]
        params = (
            Param(begin, "int64"),
            Param(end, "int64"),
            *(Param(name, "handle") for name in handles),
            *(Param(var.name, var.dtype) for var in vars),
        )
        name = self._namer.fresh(f"{self._function.name}_{loop.var}")
        extent = sub(index_var(end), index_var(begin))
        serial = For(loop.var, index_var(begin), extent, loop.body, annotations=loop.annotations)
        facts = _facts_about(self._function, bound, params)
        self.functions.append(Function(name, params, (serial,), buffers=tuple(bound), facts=facts))
        passed = tuple(handle(buffer.handle or buffer.name) for buffer in buffers)
        return ParallelFor(
            name, loop.var, loop.start, loop.extent, (*passed, *vars), loop.weight, loop.grain
        )

    def _captured_buffers(self, inside: Sequence[Any]) -> list[Buffer]:
        """Return the buffers that the nodes access, each after those from which its shape is read."""
        captured: dict[str, Buffer] = {}

        def add(names: Iterable[str]) -> None:
            for name in names:
                if name in self._buffers and name not in captured:
                    # A shape may read another buffer, which must be declared before it.
                    add(buffers_read(*self._buffers[name].shape))
                    captured[name] = self._buffers[name]

        add(captured.buffer for captured in inside if not isinstance(captured, Var))
        return list(captured.values())


def _bind_to_pointer(buffer: Buffer, handle_name: str) -> Buffer:
    """Return the buffer as the outlined function declares it: bound to a pointer parameter."""
    if buffer.handle is not None:
        return buffer
    # The buffer of another function is memory behind a pointer, whatever scope it had there.
    return replace(buffer, handle=handle_name, scope="global")


def _captured_vars(loop: For, inside: Sequence[Any], buffers: Sequence[Buffer]) -> tuple[Var, ...]:
    """Return the free variables of the body and of the shapes of captured buffers; also handles whose
    address is used without their buffer."""
    bound = {*bound_vars((loop,)), *(buffer.handle for buffer in buffers)}
    shapes = collect(Var, *(extent for buffer in buffers for extent in buffer.shape))
    used = {node.name: node for node in chain(shapes, inside) if isinstance(node, Var)}
    return tuple(var for name, var in used.items() if name not in bound)


def _facts_about(
    function: Function, buffers: list[Buffer], params: tuple[Param, ...]
) -> tuple[Fact, ...]:
    """Return the facts about these buffers that use the parameters only."""
    names = {buffer.name for buffer in buffers}
    param_names = {param.name for param in params}
    return tuple(
        fact
        for fact in function.facts
        if names.issuperset(buffers_of_fact(fact)) and free_vars(fact) <= param_names
    )


def _with_serial_loops(loop: For) -> For:
    """Return the loop with the parallel loops inside made serial. Their iterations then run on one thread,
    so they need atomic accumulations only if those of the loop itself do."""
    return with_body(loop, _with_all_serial(loop.body))


def _with_all_serial(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return map_stmts(body, lambda stmt: (_serial(with_bodies(stmt, _with_all_serial)),))


def _serial(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, For) or stmt.kind != "parallel":
        return stmt
    # No weight or grain either: a serial loop distributes nothing.
    return replace(without_annotation(stmt, ATOMIC), kind="serial", weight=None, grain=None)

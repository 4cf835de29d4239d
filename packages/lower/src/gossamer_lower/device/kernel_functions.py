"""Statements of an entry as kernels: functions that threads of a device run, and their launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_ir.core.build import ONE, ZERO, add, ceildiv, handle, index, index_var, mul
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    If,
    Launch,
    Let,
    Module,
    ParallelFor,
    Param,
    Stmt,
    ThreadExtent,
    Var,
)
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer, bound_vars
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_lower.lowering_pass import map_functions

BLOCK_THREADS = 128
"""The threads of a block of a loop whose iterations are distributed without a schedule for threads."""

BuffersByName: TypeAlias = Mapping[str, Buffer]


def bound_kernel(
    name: str, body: Sequence[Stmt], buffers: BuffersByName
) -> tuple[Function, Launch]:
    """Return statements with loops bound to threads as a kernel, and its launch.

    The buffers that the statements use but do not allocate become parameters, as do their free variables.
    """
    inside = [node.buffer for node in collect(BUFFER_NODES, *body)]
    allocated = {buffer.name for buffer in allocations(stmts(body))}
    used = _used_buffers(inside, buffers, allocated)
    bound = tuple(replace(buffer, handle=_handle(buffer), scope="global") for buffer in used)
    shapes = [extent for buffer in used for extent in buffer.shape]
    names = bound_vars(body) | {_handle(buffer) for buffer in used}
    every = (*collect(Var, *shapes), *collect(Var, *body))
    free = {var.name: var for var in every if var.name not in names}
    params = (
        *(Param(_handle(buffer), "handle") for buffer in used),
        *(Param(var.name, var.dtype) for var in free.values()),
    )
    function = Function(name, params, tuple(body), buffers=bound)
    args = (
        *(handle(buffer.handle or buffer.name) for buffer in used),
        *(Var(var.name, var.dtype) for var in free.values()),
    )
    return function, Launch(name, args, _thread_extents(function))


def iteration_kernel(
    name: str, loop: ParallelFor, function: Function, namer: Namer
) -> tuple[Function, Launch]:
    """Return the function of a parallel loop as a kernel with a thread for each iteration, and its launch."""
    begin, end = function.params[:2]
    start, extent = index_var(namer.fresh("start")), index_var(namer.fresh("extent"))
    block, thread = namer.fresh("block"), namer.fresh("thread")
    number = add(mul(index_var(block), index(BLOCK_THREADS)), index_var(thread))
    lets = (
        Let(index_var(begin.name), add(start, number)),
        Let(index_var(end.name), add(index_var(begin.name), ONE)),
    )
    guarded = If(Compare("lt", number, extent), (*lets, *function.body))
    body = _thread_loops(
        (guarded,),
        {"threadIdx.x": (thread, index(BLOCK_THREADS)), "blockIdx.x": (block, _blocks(extent))},
    )
    params = (Param(start.name, "int64"), Param(extent.name, "int64"), *function.params[2:])
    kernel = replace(function, name=name, params=params, body=body)
    threads = (
        ThreadExtent("blockIdx.x", _blocks(loop.extent)),
        ThreadExtent("threadIdx.x", index(BLOCK_THREADS)),
    )
    return kernel, Launch(name, (loop.start, loop.extent, *loop.args), threads)


def single_kernel(
    name: str, body: Sequence[Stmt], buffers: BuffersByName
) -> tuple[Function, Launch]:
    """Return statements as a kernel that one thread runs, and its launch."""
    function, launch = bound_kernel(name, body, buffers)
    return function, replace(launch, threads=(ThreadExtent("blockIdx.x", ONE),))


def _blocks(extent: Expr) -> Expr:
    return ceildiv(extent, BLOCK_THREADS)


def _thread_loops(
    body: tuple[Stmt, ...], bindings: Mapping[str, tuple[str, Expr]]
) -> tuple[Stmt, ...]:
    """Return a body in loops bound to axes, the first of them innermost."""
    for axis, (var, extent) in bindings.items():
        body = (For(var, ZERO, extent, body, kind="thread_binding", thread=axis),)  # type: ignore[arg-type]  # a tag
    return body


def map_kernels(module: Module, function: Callable[[Function], Function]) -> Module:
    """Return a module with its kernels replaced, which are the functions that others launch.

    >>> from gossamer_testkit.examples import SCALE
    >>> map_kernels(SCALE, lambda kernel: kernel) == SCALE
    True
    """
    launched = {launch.function for f in module.functions for launch in nodes_of_type(f, Launch)}
    return map_functions(module, lambda f: function(f) if f.name in launched else f)


def thread_loops(body: Iterable[Stmt]) -> Iterator[For]:
    """Yield the loops in statements that are bound to threads, or to blocks of them."""
    for stmt in stmts(body):
        if isinstance(stmt, For) and stmt.thread is not None:
            yield stmt


def outermost_thread_loops(body: Iterable[Stmt]) -> Iterator[For]:
    """Yield the loops in statements that are bound to threads, but those inside of others: the kernels.

    >>> inner = For("t", ZERO, ONE, (), kind="thread_binding", thread="threadIdx.x")
    >>> outer = For("b", ZERO, ONE, (inner,), kind="thread_binding", thread="blockIdx.x")
    >>> [loop.var for loop in outermost_thread_loops((For("i", ZERO, ONE, (outer,)),))]
    ['b']
    """
    for stmt in body:
        if isinstance(stmt, For) and stmt.thread is not None:
            yield stmt
        else:
            for inner in effects_of(stmt).bodies:
                yield from outermost_thread_loops(inner.stmts)


def _thread_extents(function: Function) -> tuple[ThreadExtent, ...]:
    """Return the extents of the loops of a kernel that are bound to threads; raise `UnsupportedError`
    (`lower.split_host_device.extent`) for one that is not known when the kernel is launched."""
    inside = bound_vars(function.body)
    extents: dict[str, ThreadExtent] = {}
    for loop in thread_loops(function.body):
        if free_vars(loop.extent) & inside or collect(BUFFER_NODES, loop.extent):
            raise UnsupportedError(
                "lower.split_host_device.extent",
                f"The extent of loop '{loop.var}', which is bound to '{loop.thread}', is not known when the "
                "kernel is launched.",
                hint="Bind a loop whose extent is arithmetic on the parameters.",
            )
        assert loop.thread is not None
        extents[loop.thread] = ThreadExtent(loop.thread, loop.extent)
    return tuple(extents.values())


def _used_buffers(
    inside: Sequence[str], buffers: BuffersByName, allocated: set[str]
) -> list[Buffer]:
    """Return the buffers of these names that are not allocated; those that a shape reads come first."""
    used: dict[str, Buffer] = {}

    def use(names: Sequence[str]) -> None:
        for name in names:
            if name in buffers and name not in used and name not in allocated:
                use([node.buffer for node in collect(BUFFER_NODES, *buffers[name].shape)])
                used[name] = buffers[name]

    use(inside)
    return list(used.values())


def _handle(buffer: Buffer) -> str:
    return buffer.handle or f"{buffer.name}_handle"


def is_on_host(*exprs: Expr) -> bool:
    """Return whether the host can evaluate expressions: they are integers and read no array."""
    return not collect(BUFFER_NODES, *exprs) and all(
        dtype_of(expr) in ("int64", "bool") for expr in exprs
    )


# Other statements: none starts a grid of threads but these.
def has_grid(stmt: Stmt) -> bool:
    """Return whether a statement has loops for a grid of threads, or parallel ones."""
    return any(
        isinstance(inner, ParallelFor | Launch)
        or (isinstance(inner, For) and inner.thread is not None)
        for inner in stmts((stmt,))
    )


# Other statements: none makes memory of a block or a thread but an allocation.
def is_private(stmt: Stmt) -> bool:
    """Return whether a statement allocates memory of a block or a thread."""
    return isinstance(stmt, Allocate) and stmt.buffer.scope != "global"

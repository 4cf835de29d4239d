"""Reductions over the threads of a block: each thread accumulates, then partial results are combined."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import identity
from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.core.build import ONE, ZERO, index, index_var, integer_value
from gossamer_ir.core.conditions import conjunction, short_circuit_conjunction
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    If,
    IfThenElse,
    Let,
    Load,
    Module,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_ir.traversal.walk import stmts
from gossamer_lower.device.kernel_functions import thread_loops
from gossamer_lower.device.thread_combinations import (
    ThreadCombination,
    ThreadCombiner,
    ThreadGroup,
    allocation,
    linear_number,
)
from gossamer_lower.device.thread_context import ThreadContext, UniformValues
from gossamer_lower.device.thread_reductions import ThreadReduction, ThreadSum, thread_reduction
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import with_bodies


class _KernelContext(ThreadContext, frozen=True):
    """The context of a statement, with the extents of all axes of the kernel."""

    extents: Mapping[str, int] = {}


@lowering_pass(
    takes=("flat",),
    pipeline="device",
    after={"pipeline_loops": "reductions in pipelined loops read the copies that it makes"},
)
def lower_cross_thread_reduction(module: Module) -> Module:
    """Lower reductions over the threads of a block, which `bind` makes of the loops of reductions.

    Each thread accumulates into a register. Threads combine their registers by shuffles if they are a part
    of a warp, otherwise also in shared memory, and the first of them updates the element. Any number of
    threads, any operation of a reduction, and any dtype are possible.

    Raises `UnsupportedError` (`lower.lower_cross_thread_reduction.barrier`) if they would have to wait for
    each other where not all threads of a block get.

    >>> from gossamer_ir.script import parse_module, print_module
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def add_up(x: T.handle, y: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     Y = T.match_buffer(y, (1,), "float32")
    ...     for t in T.thread_binding(2, thread="threadIdx.x"):
    ...         Y[0] = Y[0] + X[t]
    ... ''')
    >>> print(print_module(lower_cross_thread_reduction(flat)).partition("Y = ")[2].partition("for")[2])
     t in T.thread_binding(2, thread="threadIdx.x"):
            Y_partial = T.alloc_buffer((1,), "float32", scope="local")
            Y_partial[0] = 0.0
            Y_partial[0] = Y_partial[0] + X[t]
            other: T.float32 = T.shuffle_xor(Y_partial[0], 1, width=2)
            total: T.float32 = Y_partial[0] + other
            if t == 0:
                Y[0] = Y[0] + total
    <BLANKLINE>
    """
    return map_functions(module, _lower_function)


def _lower_function(function: Function) -> Function:
    if not any(thread_loops(function.body)):
        return function
    return replace(function, body=_Lowerer(function).body(function.body, _KernelContext()))


class _Lowerer:
    """Lowers the reductions of a function. `_shared` are allocations for the statement outside of loops over
    threads that is being lowered."""

    def __init__(self, function: Function) -> None:
        self._name, self._namer = function.name, namer_of(function)
        allocated = allocations(stmts(function.body))
        self._scopes = {buffer.name: buffer.scope for buffer in allocated}
        self._uniform = UniformValues(function)
        self._shared: list[Stmt] = []

    def body(self, body: tuple[Stmt, ...], context: _KernelContext) -> tuple[Stmt, ...]:
        """Return the statements of a body, with reductions lowered."""
        new: list[Stmt] = []
        for stmt in body:
            lowered = self._stmt(stmt, context)
            if not context.threads:
                new += self._shared
                self._shared = []
            new += lowered
        return tuple(new)

    def _stmt(self, stmt: Stmt, context: _KernelContext) -> tuple[Stmt, ...]:
        if not context.extents:
            context = replace(context, extents=_extents_of(stmt))
        reduction = thread_reduction(stmt)
        if reduction is not None:
            return self._lower_reduction(reduction, context)
        if isinstance(stmt, For) and stmt.thread is not None:
            inner = replace(context, bound={**context.bound, stmt.thread: stmt.var})
        else:
            control = effects_of(stmt).evaluates
            is_uniform = context.is_uniform and self._uniform.are_uniform(context, *control)
            inner = replace(context, is_uniform=is_uniform)
        return (with_bodies(stmt, lambda body: self.body(body, inner)),)

    def _lower_reduction(
        self, reduction: ThreadReduction, context: _KernelContext
    ) -> tuple[Stmt, ...]:
        """Return the loops over the threads of a reduction, in which each accumulates on its own."""
        names = {str(loop.thread): loop.var for loop in thread_loops((reduction.stmt,))}
        first = {str(axis): index_var(names[axis]) for axis in reduction.extents}
        names |= context.threads
        group = _group(reduction, context, names)
        partials = {part.store.buffer: self._partial(part) for part in reduction.sums}
        body: list[Stmt] = []
        for thread_sum in reduction.sums:
            partial = partials[thread_sum.store.buffer]
            start = identity(thread_sum.reduction.op, partial.dtype)
            body += [Allocate(partial), Store(partial.name, (ZERO,), start)]
        body += _by_each_thread(reduction, partials, names)
        before: list[Stmt] = []
        for thread_sum in reduction.sums:
            partial = partials[thread_sum.store.buffer]
            combination = self._combination(thread_sum, partial, group, context)
            outside, stored = self._store_result(thread_sum, combination.result, [*first.values()])
            before += outside
            body += [*combination.stmts, *stored]
        nest = tuple(body)
        for axis, extent in sorted(reduction.extents.items()):
            loop = For(names[axis], ZERO, index(extent), nest, kind="thread_binding", thread=axis)
            nest = (loop,)
        return (*before, *nest)

    def _partial(self, thread_sum: ThreadSum) -> Buffer:
        name = self._namer.fresh(f"{thread_sum.store.buffer}_partial")
        return Buffer(name, (ONE,), dtype_of(thread_sum.store.value), scope="local")

    def _combination(
        self, thread_sum: ThreadSum, partial: Buffer, group: ThreadGroup, context: _KernelContext
    ) -> ThreadCombination:
        combiner = ThreadCombiner(group, thread_sum.reduction.op, partial.dtype, self._namer)
        combination = combiner.combination(Load(partial.name, (ZERO,), partial.dtype))
        if combination.shared is not None and not context.is_uniform:
            raise UnsupportedError(
                "lower.lower_cross_thread_reduction.barrier",
                f"{group.threads} threads of '{self._name}' combine parts of '{thread_sum.store.buffer}' in "
                "code that not all threads of a block run the same number of times.",
                hint="Bind the loop to threadIdx.x with 2, 4, 8, 16 or 32 threads, which need not wait.",
            )
        self._shared += allocation(combination)
        return combination

    def _store_result(
        self, thread_sum: ThreadSum, total: Expr, threads: list[Var]
    ) -> tuple[list[Stmt], list[Stmt]]:
        """Return the statements before the loops over threads, and the update of the element in them."""
        store, op = thread_sum.store, thread_sum.reduction.op
        old: Expr = Load(store.buffer, store.indices, dtype_of(store.value))
        # A condition may read an element that exists only if those before it hold.
        condition = short_circuit_conjunction(*thread_sum.conditions)
        if self._scopes.get(store.buffer, "global") in ("global", "shared"):
            is_first = conjunction(*[Compare("eq", var, ZERO) for var in threads])
            assert is_first is not None
            update: Stmt = replace(store, value=Binary(op, old, total))
            stored = update if condition is None else If(condition, (update,))
            return [], [If(is_first, (stored,))]
        # Each thread has such an element, whose value was the same before.
        before = Var(self._namer.fresh(f"{store.buffer}_before"), dtype_of(store.value))
        update = replace(store, value=Binary(op, before, total))
        if condition is None:
            return [Let(before, old)], [update]
        guarded = IfThenElse(condition, old, identity(op, before.dtype))
        return [Let(before, guarded)], [If(condition, (update,))]


def _extents_of(stmt: Stmt) -> dict[str, int]:
    """Return the extents of the loops over threads of a kernel; none for other statements."""
    if not isinstance(stmt, For) or stmt.thread is None:
        return {}
    return _block_extents(stmt)


def _block_extents(stmt: Stmt) -> dict[str, int]:
    loops = [loop for loop in thread_loops((stmt,)) if is_thread_axis(loop.thread)]
    return {
        loop.thread: integer_value(loop.extent) or 0 for loop in loops if loop.thread is not None
    }


def _group(
    reduction: ThreadReduction, context: _KernelContext, names: Mapping[str, str]
) -> ThreadGroup:
    """Return the threads of a reduction as a group."""
    extents = {**_block_extents(reduction.stmt), **context.extents}
    reduced_axes = sorted(reduction.extents.items())
    others = sorted((axis, extents.get(axis, 1)) for axis in context.threads)
    used = [axis for axis, extent in sorted(extents.items()) if extent != 1]
    reduced = [axis for axis, extent in reduced_axes if extent != 1]
    threads = rows = 1
    for _, extent in reduced_axes:
        threads *= extent
    for _, extent in others:
        rows *= extent
    return ThreadGroup(
        threads=threads,
        number=linear_number([(index_var(names[axis]), extent) for axis, extent in reduced_axes]),
        rows=rows,
        row=linear_number([(index_var(names[axis]), extent) for axis, extent in others]),
        is_consecutive=used[: len(reduced)] == reduced,
        is_alone=used == reduced,
    )


def _by_each_thread(
    reduction: ThreadReduction,
    partials: Mapping[str, Buffer],
    names: Mapping[str, str],
) -> tuple[Stmt, ...]:
    """Return a reduction without loops over threads, in which one thread accumulates into its register."""

    def register(node: object) -> object | None:
        if not isinstance(node, Store):
            return None
        partial = partials[node.buffer]
        value = next(e.reduction for e in reduction.sums if e.store == node)
        old = Load(partial.name, (ZERO,), partial.dtype)
        return Store(partial.name, (ZERO,), Binary(value.op, old, value.value))

    body = rewrite_body((reduction.stmt,), register)
    return _without_thread_loops(body, names)


def _without_thread_loops(body: tuple[Stmt, ...], names: Mapping[str, str]) -> tuple[Stmt, ...]:
    new: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and stmt.thread is not None:
            inner = substitute_body(stmt.body, {stmt.var: index_var(names[str(stmt.thread)])})
            new += _without_thread_loops(inner, names)
        else:
            new.append(with_bodies(stmt, lambda inner: _without_thread_loops(inner, names)))
    return tuple(new)

"""Inserts barriers before threads of a block use data of others; one thread runs statements of a block."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.core.statement_kinds import CHECKING_STMTS, SYNCHRONIZING_STMTS, effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Barrier, Compare, Const, Expr, For, Function, If, Module, Stmt, While
from gossamer_ir.traversal.names import bound_vars, namer_of
from gossamer_ir.traversal.statement_queries import threads_of
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import contains
from gossamer_lower.device.copy_waits import require_waits_after_copies
from gossamer_lower.device.kernel_functions import map_kernels, thread_loops
from gossamer_lower.device.shared_access_collector import SharedAccessCollector
from gossamer_lower.device.shared_accesses import SharedAccess, may_conflict
from gossamer_lower.device.thread_context import ThreadContext, UniformValues
from gossamer_lower.device.uniform_barriers import require_uniform_barriers
from gossamer_lower.lowering_pass import lowering_pass


@lowering_pass(
    takes=("flat",),
    pipeline="device",
    after={
        "split_host_device": "it inserts barriers into kernels",
        "verify_stores": "it makes one thread run stores outside of loops over threads",
        "merge_shared_memory": "threads may still read the buffer that was in the same memory before",
    },
)
def insert_sync(module: Module) -> Module:
    """Return a module whose kernels have barriers; one thread runs statements outside of loops over threads.

    A barrier stands before a statement that accesses an element of global or shared memory which another
    thread of the block may have accessed since the last one, if one of them writes. Statements outside of a
    loop over threads are executed by all threads of the block, but stores by the first one only.

    Raises `UnsupportedError`: `lower.insert_sync.grid` for a store outside of a loop over blocks,
    `lower.insert_sync.barrier` for a barrier that not all threads of a block reach, `lower.insert_sync.wait`
    for a wait in a loop over threads for asynchronous copies that began before it.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_lower import split_host_device
    >>> from gossamer_testkit.show import body_text
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def reverse(x: T.handle) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (64,), "float32")
    ...     for b in T.thread_binding(1, thread="blockIdx.x"):
    ...         S = T.alloc_buffer((64,), "float32", scope="shared")
    ...         for t in T.thread_binding(64, thread="threadIdx.x"):
    ...             S[t] = X[t]
    ...         for u in T.thread_binding(64, thread="threadIdx.x"):
    ...             X[u] = S[63 - u]
    ... ''')
    >>> _, kernel = insert_sync(split_host_device(flat)).functions
    >>> print(body_text(Module("flat", (kernel,), kernel.name)))
    for b in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer((64,), "float32", scope="shared")
        for t in T.thread_binding(64, thread="threadIdx.x"):
            S[t] = X[t]
        T.barrier()
        for u in T.thread_binding(64, thread="threadIdx.x"):
            X[u] = S[63 - u]
    """
    return map_kernels(module, _insert_barriers)


def _insert_barriers(function: Function) -> Function:
    require_uniform_barriers(function)
    require_waits_after_copies(function)
    inserter = _Inserter(function)
    body = inserter.body(function.body, ThreadContext())
    if contains(SYNCHRONIZING_STMTS, *body) and contains(CHECKING_STMTS, *body):
        raise UnsupportedError(
            "lower.insert_sync.barrier",
            f"A thread of '{function.name}' that fails a bounds check would not reach the barriers of its "
            "block.",
            hint="Declare facts that prove the accesses in bounds.",
        )
    return replace(function, body=body)


class _Inserter:
    """Inserts barriers into the body of a kernel. `pending` are the accesses since the last barrier."""

    def __init__(self, function: Function) -> None:
        self._name, self._namer = function.name, namer_of(function)
        self._axes: dict[str, Expr] = {
            str(loop.thread): loop.extent for loop in thread_loops(function.body)
        }
        self._accesses = SharedAccessCollector(function, self._axes)
        self._uniform = UniformValues(function)
        self._pending: set[SharedAccess] = set()

    def body(self, body: tuple[Stmt, ...], context: ThreadContext) -> tuple[Stmt, ...]:
        """Return the statements of a body, with the barriers between them."""
        return tuple([new for stmt in body for new in self._stmt(stmt, context)])

    # Other statements: refused as code is emitted; only these bind threads, select them or store.
    def _stmt(self, stmt: Stmt, context: ThreadContext) -> tuple[Stmt, ...]:
        if not self._missing(context, ""):
            return (stmt,)
        threads = threads_of(stmt)
        # A barrier that orders only the threads of a warp leaves all accesses pending.
        if threads.waits_for == "block":
            self._pending = set()
            return (stmt,)
        if threads.pending_groups is not None:
            # After the wait, copies of the thread count as its stores, whenever they were begun.
            self._pending |= self._accesses.copied
            return (stmt,)
        if threads.is_async:
            return self._by_one_thread(stmt, context)
        match stmt:
            case For() if stmt.thread is not None:
                return self._thread_loop(stmt, context)
            case For():
                return self._synchronize_loop(stmt, context, (stmt.start, stmt.extent))
            case While():
                return self._synchronize_loop(stmt, context, (stmt.condition,))
            case If():
                return self._synchronize_if(stmt, context)
            case _ if any(
                not self._accesses.is_private(write) for write in effects_of(stmt).writes
            ):
                self._require_blocks(context)
                return self._by_one_thread(stmt, context)
        return (*self._before(self._accesses.collect(context, stmt), context), stmt)

    def _missing(self, context: ThreadContext, kind: str) -> list[str]:
        """Return the axes of a kind without a loop around a statement; all kinds, if empty."""
        return [axis for axis in self._axes if axis.startswith(kind) and axis not in context.bound]

    def _thread_loop(self, loop: For, context: ThreadContext) -> tuple[Stmt, ...]:
        inner = ThreadContext({**context.bound, str(loop.thread): loop.var}, context.is_uniform)
        if self._missing(inner, ""):
            return (replace(loop, body=self.body(loop.body, inner)),)
        # The iterations of the loops are independent: nothing inside has to wait.
        return (*self._before(self._accesses.collect(context, loop), context), loop)

    def _require_blocks(self, context: ThreadContext) -> None:
        """Refuse a store outside of a loop over blocks: other blocks would have to wait for it."""
        missing = self._missing(context, "blockIdx")
        if missing:
            raise UnsupportedError(
                "lower.insert_sync.grid",
                f"A store of '{self._name}' is outside of the loop that is bound to '{missing[0]}', and "
                "blocks cannot wait for each other.",
                hint="Put the loop over blocks outermost, or compute this in a kernel of its own.",
            )

    def _by_one_thread(self, stmt: Stmt, context: ThreadContext) -> tuple[Stmt, ...]:
        """Return a store in loops over the missing threads, of which the first executes it."""
        axes = self._missing(context, "threadIdx")
        names = [self._namer.fresh("thread") for _ in axes]
        first = [Compare("eq", index_var(name), ZERO) for name in names]
        new: Stmt = If(conjunction(*first) or Const("bool", "True"), (stmt,))
        accesses = self._accesses.collect(context, stmt, first=frozenset(axes))
        for axis, name in zip(axes, names, strict=True):
            new = For(name, ZERO, self._axes[axis], (new,), kind="thread_binding", thread=axis)  # type: ignore[arg-type]  # a tag
        return (*self._before(accesses, context), new)

    def _synchronize_loop(
        self, loop: For | While, context: ThreadContext, control: tuple[Expr, ...]
    ) -> tuple[Stmt, ...]:
        """Return a loop around barriers: an iteration begins with the accesses of the one before pending."""
        before = self._before(self._accesses.collect(context, *control), context)
        uniform = context.is_uniform and self._uniform.are_uniform(context, *control)
        inner = ThreadContext(context.bound, uniform)
        varying = bound_vars((loop,))
        earlier = {name: index_var(f"earlier {name}") for name in varying}
        for access in self._accesses.collect(inner, loop):
            indices = tuple(substitute(index, earlier) for index in access.indices)
            self._pending.add(replace(access, indices=indices))
        return (*before, replace(loop, body=self.body(loop.body, inner)))

    def _synchronize_if(self, stmt: If, context: ThreadContext) -> tuple[Stmt, ...]:
        before = self._before(self._accesses.collect(context, stmt.condition), context)
        uniform = context.is_uniform and self._uniform.are_uniform(context, stmt.condition)
        inner = ThreadContext(context.bound, uniform)
        pending = set(self._pending)
        then_body = self.body(stmt.then_body, inner)
        after, self._pending = self._pending, pending
        else_body = self.body(stmt.else_body, inner)
        self._pending = self._pending | after
        return (*before, If(stmt.condition, then_body, else_body))

    def _before(self, accesses: set[SharedAccess], context: ThreadContext) -> tuple[Stmt, ...]:
        """Return the barrier before accesses that conflict with pending ones, and make them pending."""
        if not any(may_conflict(new, old) for new in accesses for old in self._pending):
            self._pending |= accesses
            return ()
        if not context.is_uniform:
            raise UnsupportedError(
                "lower.insert_sync.barrier",
                f"Threads of '{self._name}' exchange values in code that not all threads of a block run the "
                "same number of times.",
                hint="Make the number of iterations around it the same for all threads.",
            )
        self._pending = set(accesses)
        return (Barrier(),)

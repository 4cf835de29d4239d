"""Inserts barriers where threads of a block use what others wrote; one thread does what a block does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import ZERO, index_var, integer_value
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.core.statement_kinds import CHECKING_STMTS, SYNCHRONIZING_STMTS, effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    STMTS,
    AsyncCopy,
    Atomic,
    Barrier,
    Binary,
    Compare,
    Const,
    Expr,
    For,
    Function,
    If,
    Let,
    Load,
    Module,
    Search,
    Stmt,
    Store,
    Var,
    WaitGroup,
    While,
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.names import bound_vars, namer_of
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import collect, contains, stmts
from gossamer_lower.device.kernel_functions import map_kernels, thread_loops
from gossamer_lower.device.let_dependences import let_dependences
from gossamer_lower.device.thread_context import ThreadContext, are_uniform
from gossamer_lower.lowering_pass import lowering_pass


class _SharedAccess(msgspec.Struct, frozen=True):
    """An access of memory that threads share. The numbers of threads in the indices are the names of their
    axes. `first` are the axes along which only the first thread makes it. `is_by_one`: these and the indices
    determine the thread."""

    buffer: str
    indices: tuple[Expr, ...]
    is_write: bool
    first: frozenset[str]
    is_by_one: bool


@lowering_pass(
    takes=("flat",),
    pipeline="device",
    after={
        "split_host_device": "it inserts barriers into kernels",
        "check_stores": "it makes one thread store what stands outside of loops over threads",
        "merge_shared_memory": "threads may still read the buffer that was in the same memory before",
    },
)
def insert_sync(module: Module) -> Module:
    """Return a module whose kernels have barriers; one thread does what stands outside of loops over threads.

    A barrier stands before a statement that accesses an element of global or shared memory which another
    thread of the block may have accessed since the last one, if one of them writes. Statements outside of a
    loop over threads are executed by all threads of the block, but stores by the first one only.

    Raises `UnsupportedError`: `lower.insert_sync.grid` for a store outside of a loop over blocks,
    `lower.insert_sync.barrier` for a barrier that not all threads of a block reach.

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
    return map_kernels(module, _synchronized)


def _synchronized(function: Function) -> Function:
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

    # Other statements: ignored; only lets give names to values.
    def __init__(self, function: Function) -> None:
        self._name, self._namer = function.name, namer_of(function)
        self._axes: dict[str, Expr] = {
            str(loop.thread): loop.extent for loop in thread_loops(function.body)
        }
        allocated = allocations(stmts(function.body))
        self._private = {buffer.name for buffer in allocated if buffer.scope != "shared"}
        lets = (stmt for stmt in stmts(function.body) if isinstance(stmt, Let))
        self._lets = {stmt.var.name: stmt.value for stmt in lets}
        self._block_axes = {
            axis
            for axis, extent in self._axes.items()
            if is_thread_axis(axis) and integer_value(extent) != 1
        }
        self._pending: set[_SharedAccess] = set()
        self._copied: set[_SharedAccess] = set()

    def body(self, body: tuple[Stmt, ...], context: ThreadContext) -> tuple[Stmt, ...]:
        """Return the statements of a body, with the barriers between them."""
        return tuple([new for stmt in body for new in self._stmt(stmt, context)])

    # Other statements: refused as code is emitted; only these bind threads, select them or store.
    def _stmt(self, stmt: Stmt, context: ThreadContext) -> tuple[Stmt, ...]:
        if not self._missing(context, ""):
            return (stmt,)
        match stmt:
            case For() if stmt.thread is not None:
                return self._thread_loop(stmt, context)
            case For():
                return self._repeated(stmt, context, (stmt.start, stmt.extent))
            case While():
                return self._repeated(stmt, context, (stmt.condition,))
            case If():
                return self._choice(stmt, context)
            case _ if isinstance(stmt, SYNCHRONIZING_STMTS):
                self._pending = set()
                return (stmt,)
            case WaitGroup():
                # What a thread has copied by now is written for the others, whenever it began to.
                self._pending |= self._copied
                return (stmt,)
            case AsyncCopy():
                return self._by_one_thread(stmt, context)
            case _ if any(not self._is_private(write) for write in effects_of(stmt).writes):
                self._require_blocks(context)
                return self._by_one_thread(stmt, context)
        return (*self._before(self._accesses(context, stmt), context), stmt)

    def _are_uniform(self, context: ThreadContext, *exprs: Expr) -> bool:
        return are_uniform(context, *exprs, lets=self._lets.keys())

    def _missing(self, context: ThreadContext, kind: str) -> list[str]:
        """Return the axes of a kind without a loop around a statement; all kinds, if empty."""
        return [axis for axis in self._axes if axis.startswith(kind) and axis not in context.bound]

    def _thread_loop(self, loop: For, context: ThreadContext) -> tuple[Stmt, ...]:
        inner = ThreadContext({**context.bound, str(loop.thread): loop.var}, context.is_uniform)
        if self._missing(inner, ""):
            return (replace(loop, body=self.body(loop.body, inner)),)
        # The iterations of the loops are independent: nothing inside has to wait.
        return (*self._before(self._accesses(context, loop), context), loop)

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
        accesses = self._accesses(context, stmt, first=frozenset(axes))
        for axis, name in zip(axes, names, strict=True):
            new = For(name, ZERO, self._axes[axis], (new,), kind="thread_binding", thread=axis)  # type: ignore[arg-type]  # a tag
        return (*self._before(accesses, context), new)

    def _repeated(
        self, loop: For | While, context: ThreadContext, control: tuple[Expr, ...]
    ) -> tuple[Stmt, ...]:
        """Return a loop around barriers: an iteration begins with the accesses of the one before pending."""
        before = self._before(self._accesses(context, *control), context)
        uniform = context.is_uniform and self._are_uniform(context, *control)
        inner = ThreadContext(context.bound, uniform)
        varying = bound_vars((loop,))
        earlier = {name: index_var(f"earlier {name}") for name in varying}
        for access in self._accesses(inner, loop):
            indices = tuple(substitute(index, earlier) for index in access.indices)
            self._pending.add(replace(access, indices=indices))
        return (*before, replace(loop, body=self.body(loop.body, inner)))

    def _choice(self, stmt: If, context: ThreadContext) -> tuple[Stmt, ...]:
        before = self._before(self._accesses(context, stmt.condition), context)
        uniform = context.is_uniform and self._are_uniform(context, stmt.condition)
        inner = ThreadContext(context.bound, uniform)
        pending = set(self._pending)
        then_body = self.body(stmt.then_body, inner)
        after, self._pending = self._pending, pending
        else_body = self.body(stmt.else_body, inner)
        self._pending = self._pending | after
        return (*before, If(stmt.condition, then_body, else_body))

    def _before(self, accesses: set[_SharedAccess], context: ThreadContext) -> tuple[Stmt, ...]:
        """Return the barrier before accesses that conflict with pending ones, and make them pending."""
        if not any(_conflict(new, old) for new in accesses for old in self._pending):
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

    def _accesses(
        self, context: ThreadContext, *nodes: Stmt | Expr, first: frozenset[str] = frozenset()
    ) -> set[_SharedAccess]:
        collected: set[_SharedAccess] = set()
        if any(is_thread_axis(axis) for axis in self._axes):
            for node in nodes:
                collected.update(self._accesses_of(node, context.bound, first))
        return collected

    # Other statements: what they write is written when they have run.
    def _accesses_of(
        self, node: Stmt | Expr, bound: Mapping[str, str], first: frozenset[str]
    ) -> Iterator[_SharedAccess]:
        if not isinstance(node, STMTS):
            yield from self._shared_accesses(collect(READS, node), bound, first, is_write=False)
            return
        if isinstance(node, For) and node.thread is not None:
            bound = {**bound, node.thread: node.var}
        effects = effects_of(node)
        reads = (*effects.reads, *collect(READS, *effects.evaluates))
        yield from self._shared_accesses(reads, bound, first, is_write=False)
        yield from self._shared_accesses(effects.writes, bound, first, is_write=True)
        if isinstance(node, AsyncCopy):
            stores = [stmt for stmt in node.body if isinstance(stmt, Store)]
            for access in self._shared_accesses(stores, bound, first, is_write=True):
                self._copied.add(replace(access, indices=(), is_by_one=False))
        for body in effects.bodies:
            selected = first | _axes_of_first(body.conditions, bound)
            for inner in body.stmts:
                yield from self._accesses_of(inner, bound, selected)

    def _shared_accesses(
        self,
        nodes: Sequence[Load | Search | Store | Atomic],
        bound: Mapping[str, str],
        first: frozenset[str],
        *,
        is_write: bool,
    ) -> Iterator[_SharedAccess]:
        by_var = {var: index_var(axis) for axis, var in bound.items()}
        for node in nodes:
            if not self._is_private(node):
                indices = tuple(substitute(index, by_var) for index in getattr(node, "indices", ()))
                used = let_dependences(*indices, value_of=partial(self._value_of, by_var=by_var))
                is_by_one = self._block_axes <= {*first, *used}
                yield _SharedAccess(node.buffer, indices, is_write, first, is_by_one)

    def _value_of(self, name: str, by_var: Mapping[str, Var]) -> Expr | None:
        return substitute(self._lets[name], by_var) if name in self._lets else None

    def _is_private(self, node: Load | Search | Store | Atomic) -> bool:
        return node.buffer in self._private


def _conflict(new: _SharedAccess, old: _SharedAccess) -> bool:
    """Return whether two threads of a block may access one element, and one of them writes.

    Stores of different threads are to different elements, and so are, then, accesses by the same indices that
    determine the thread.
    """
    if new.buffer != old.buffer or not (new.is_write or old.is_write):
        return False
    is_by_same = new.is_by_one and old.is_by_one and new.first == old.first
    return not (
        (is_by_same and new.indices == old.indices)
        or _are_of_other_stages(new.indices, old.indices)
    )


def _are_of_other_stages(one: tuple[Expr, ...], other: tuple[Expr, ...]) -> bool:
    """Return whether indices are those of different stages of a pipeline: along a dimension, constants, or
    numbers that differ by a constant, modulo the number of stages."""
    return any(map(_is_other_stage, one, other))


# Other expressions: nothing is concluded from them.
def _is_other_stage(one: Expr, other: Expr) -> bool:
    match one, other:
        case Const(), Const():
            return one != other
        case Binary(op="floormod", lhs=lhs, rhs=rhs), Binary(op="floormod", lhs=other_lhs):
            count = integer_value(rhs)
            apart = affine_of(lhs) - affine_of(other_lhs)
            is_known = rhs == other.rhs and not apart.terms
            return is_known and bool(count) and apart.constant % (count or 1) != 0
    return False


def _axes_of_first(conditions: Iterable[Expr], bound: Mapping[str, str]) -> frozenset[str]:
    """Return the axes of which conditions select the first thread."""
    equalities = [test for test in conditions if isinstance(test, Compare) and test.op == "eq"]
    first = {test.lhs for test in equalities if test.rhs == ZERO}
    return frozenset(axis for axis, var in bound.items() if index_var(var) in first)

"""Refuses stores of several threads to one element that are not reductions over them."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_ir.analysis.statements.thread_axes import is_block_axis, is_thread_axis
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Expr, For, Function, Let, Load, Module, Stmt, Store
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.statement_queries import allocation_of
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_lower.device.kernel_functions import map_kernels
from gossamer_lower.device.let_dependences import let_dependences
from gossamer_lower.lowering_pass import lowering_pass


@lowering_pass(
    takes=("flat",),
    pipeline="device",
    after={
        "split_host_device": "it checks kernels",
        "lower_cross_thread_reduction": "a reduction over threads stores to one element until it is lowered",
    },
)
def check_stores(module: Module) -> Module:
    """Return a module with kernels unchanged, if no two threads store to one element.

    Raises `UnsupportedError`: `lower.check_stores.reduction` for a kernel in which the threads of a loop
    store to one element of global or shared memory, `lower.check_stores.shared` for shared memory that each
    thread would allocate.

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_lower import split_host_device
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def last(x: T.handle, y: T.handle) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (32,), "float32")
    ...     Y = T.match_buffer(y, (1,), "float32")
    ...     for t in T.thread_binding(32, thread="threadIdx.x"):
    ...         Y[0] = X[t]
    ... ''')
    >>> check_stores(split_host_device(flat))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.UnsupportedError: The threads of loop 't' of 'last_t' store to one element of 'Y', ...
    """
    return map_kernels(module, _checked)


def _checked(kernel: Function) -> Function:
    checker = _StoreChecker(kernel)
    for stmt in kernel.body:
        checker.check(stmt, {}, around=())
    return kernel


class _StoreChecker:
    """Checks the statements of one kernel. `threads` are the axes of the enclosing loops over threads, by
    their variables."""

    # Other statements: ignored; only lets give names to values.
    def __init__(self, function: Function) -> None:
        every = tuple(stmts(function.body))
        self._name = function.name
        self._scopes = {buffer.name: buffer.scope for buffer in allocations(every)}
        self._lets = {stmt.var.name: stmt for stmt in every if isinstance(stmt, Let)}

    # Other statements: refused as code is emitted; only these bind threads, select them or store.
    def check(self, stmt: Stmt, threads: Mapping[str, str], *, around: tuple[str, ...]) -> None:
        """Check a statement; `around` are the loops over threads of the block, selected or not."""
        if isinstance(stmt, For) and stmt.thread is not None and integer_value(stmt.extent) != 1:
            threads = {**threads, stmt.var: stmt.thread}
            around = (*around, stmt.var) if is_thread_axis(stmt.thread) else around
        self._require_one_for_block(stmt, around)
        effects = effects_of(stmt)
        for write in effects.writes:
            if isinstance(write, Store) and self._is_shared(write.buffer):
                self._require_own_element(write, threads)
        for body in effects.bodies:
            # A condition on the number of a thread selects the one that stores.
            selecting = let_dependences(*body.conditions, value_of=self._value_of)
            selected = {var: axis for var, axis in threads.items() if var not in selecting}
            for inner in body.stmts:
                # A condition may select several threads, each of which would allocate memory.
                self.check(inner, selected, around=around)

    def _is_shared(self, buffer_name: str) -> bool:
        """Return whether threads share a buffer. Those that the kernel does not allocate are global."""
        return self._scopes.get(buffer_name, "shared") == "shared"

    def _require_one_for_block(self, stmt: Stmt, around: tuple[str, ...]) -> None:
        """Refuse shared memory of a thread: all threads of a block would have the same."""
        buffer = allocation_of(stmt)
        if buffer is not None and buffer.scope == "shared" and around:
            raise UnsupportedError(
                "lower.check_stores.shared",
                f"'{self._name}' allocates '{buffer.name}', memory of a block, in the loop '{around[0]}' "
                "over the block's threads.",
                hint="Allocate it outside of the loop, or give it the scope 'local'.",
            )

    def _require_own_element(self, store: Store, threads: Mapping[str, str]) -> None:
        used = [*store.indices, *([store.predicate] if store.predicate is not None else [])]
        names = let_dependences(*used, value_of=self._value_of)
        values = (self._lets[var].value for var in names if var in self._lets)
        # What a thread keeps for itself may be computed from its number.
        if not all(self._is_shared(load.buffer) for load in collect(Load, *used, *values)):
            return
        # Each block has its own shared memory.
        is_global = store.buffer not in self._scopes
        shared = [
            var
            for var, axis in threads.items()
            if var not in names and (is_thread_axis(axis) or (is_global and is_block_axis(axis)))
        ]
        if shared:
            raise UnsupportedError(
                "lower.check_stores.reduction",
                f"The threads of loop '{shared[0]}' of '{self._name}' store to one element of "
                f"'{store.buffer}', and do more than to combine values there.",
                hint="Bind a loop that selects the element, or separate the reduction from other statements.",
            )

    def _value_of(self, name: str) -> Expr | None:
        return self._lets[name].value if name in self._lets else None

"""Refuses accesses of several threads to one element that nothing orders, if one of them is a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from gossamer_ir.analysis.statements.thread_axes import is_block_axis, is_thread_axis
from gossamer_ir.core.build import index_var
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Atomic, For, Function, Module, Search, Stmt, Store
from gossamer_ir.traversal.buffer_definitions import allocations, buffers_allocated
from gossamer_ir.traversal.statement_queries import allocation_of
from gossamer_ir.traversal.walk import stmts
from gossamer_lower.device.kernel_functions import outermost_thread_loops, thread_loops
from gossamer_lower.device.let_dependences import let_dependences, values_of_vars
from gossamer_lower.device.stores.access_sites import AccessSite, SiteContext
from gossamer_lower.device.stores.concurrent_sites import (
    ConcurrentSites,
    axes_of_outer_loops,
    loops_of_axes,
)
from gossamer_lower.device.stores.own_elements import OwnElements
from gossamer_lower.device.stores.unordered_accesses import (
    UnorderedAccesses,
    first_unordered,
    loops_of_several,
    synchronized_loops,
)
from gossamer_lower.lowering_pass import lowering_pass


@lowering_pass(
    takes=("flat",),
    pipeline="device",
    after={
        "lower_cross_thread_reduction": "a reduction over threads stores to one element until it is lowered",
    },
    before={
        "split_host_device": "kernels are without the facts about arrays, and iterations of parallel loops, "
        "which are independent, become those of loops over threads",
    },
)
def verify_stores(module: Module) -> Module:
    """Return a module unchanged, if no two threads access an element to which one of them stores, unless a
    barrier is between the accesses.

    Raises `UnsupportedError`:

    - `lower.verify_stores.reduction`: the threads of a loop store to one element of global or shared memory
    - `lower.verify_stores.condition`: they do so under a condition that may select several of them
    - `lower.verify_stores.not_proved`: their indices may be equal
    - `lower.verify_stores.shared`: each thread would allocate shared memory
    - `lower.verify_stores.unordered`: the indices of accesses by different statements may be equal

    >>> from gossamer_ir.script import parse_module
    >>> flat = parse_module('''
    ... @T.prim_func
    ... def last(x: T.handle, y: T.handle) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (32,), "float32")
    ...     Y = T.match_buffer(y, (1,), "float32")
    ...     for t in T.thread_binding(32, thread="threadIdx.x"):
    ...         Y[0] = X[t]
    ... ''')
    >>> verify_stores(flat)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.UnsupportedError: The threads of loop 't' of 'last' store to one element of 'Y', ...
    """
    for function in module.functions:
        if any(thread_loops(function.body)):
            _verify_function(function)
    return module


def _verify_function(function: Function) -> None:
    checker = _StoreChecker(function)
    for stmt in function.body:
        checker.require_exclusive_stores(stmt, SiteContext())
    for kernel in outermost_thread_loops(function.body):
        checker.require_order(kernel)


class _StoreChecker:
    """Checks the statements of one function."""

    def __init__(self, function: Function) -> None:
        self._name = function.name
        scopes = {buffer.name: buffer.scope for buffer in allocations(stmts(function.body))}
        self._of_block = {name for name, scope in scopes.items() if scope == "shared"}
        # Buffers that a thread allocates are its own, whatever their scope.
        thread_buffers = {name for name, scope in scopes.items() if scope != "global"}
        thread_buffers |= buffers_allocated((*thread_loops(function.body),))
        self._of_thread = thread_buffers - self._of_block
        self._values = values_of_vars(function)
        self._own = OwnElements(function, self._values)
        self._function = function

    def require_order(self, kernel: For) -> None:
        """Refuse accesses by different statements of a kernel to one element that nothing orders."""
        values = self._values | {
            var: index_var(first.var)
            for var, first in loops_of_axes(kernel).items()
            if var != first.var
        }
        prover = OwnElements(self._function, values)
        sites = ConcurrentSites(kernel, values, private=self._of_thread)
        in_global = [site for site in sites.every if site.node.buffer not in self._of_block]
        self._require_order_of(in_global, prover, is_block_axis)
        for interval in sites.intervals:
            self._require_order_of(interval, prover, is_thread_axis)
        for tags in axes_of_outer_loops(kernel):
            sites = ConcurrentSites(kernel, values, private=self._of_thread, tags=tags)
            for interval in sites.intervals:
                self._require_order_of(interval, prover, tags.__contains__)

    def _require_order_of(
        self,
        sites: Iterable[AccessSite],
        prover: OwnElements,
        is_axis: Callable[[str | None], bool],
    ) -> None:
        unordered = first_unordered(sites, prover, is_axis=is_axis)
        if unordered is not None:
            raise self._unordered_error(unordered)

    # Other statements: refused as code is emitted; only these bind threads or store.
    def require_exclusive_stores(self, stmt: Stmt, context: SiteContext) -> None:
        """Refuse stores of several threads to one element by a statement in a context."""
        if isinstance(stmt, For) and (context.loops or stmt.thread is not None):
            context = replace(context, loops=(*context.loops, stmt))
        self._require_one_for_block(stmt, context)
        effects = effects_of(stmt)
        for write in effects.writes:
            if isinstance(write, Store) and write.buffer not in self._of_thread:
                self._require_own_element(write, context)
        for body in effects.bodies:
            inside = replace(context, conditions=(*context.conditions, *body.conditions))
            for inner in body.stmts:
                self.require_exclusive_stores(inner, inside)

    def _require_one_for_block(self, stmt: Stmt, context: SiteContext) -> None:
        """Refuse shared memory of a thread: all threads of a block would have the same."""
        buffer = allocation_of(stmt)
        around = [loop.var for loop in loops_of_several(context.loops, is_thread_axis)]
        if buffer is not None and buffer.scope == "shared" and around:
            raise UnsupportedError(
                "lower.verify_stores.shared",
                f"'{self._name}' allocates '{buffer.name}', memory of a block, in the loop '{around[0]}' "
                "over the block's threads.",
                hint="Allocate it outside of the loop, or give it the scope 'local'.",
            )

    def _require_own_element(self, store: Store, context: SiteContext) -> None:
        predicates = () if store.predicate is None else (store.predicate,)
        site = AccessSite(store, context.loops, (*context.conditions, *predicates))
        blocks, threads = (
            loops_of_several(context.loops, is_axis) for is_axis in (is_block_axis, is_thread_axis)
        )
        shared = None
        if store.buffer not in self._of_block:
            shared = self._own.first_shared([site], loops=blocks)
        # Outer loops first: their iterations do not run those of loops inside of them together.
        for number in range(1, len(threads) + 1):
            outer = threads[:number]
            axes = {loop.thread for loop in outer}
            equal = (*blocks, *synchronized_loops(context.loops, axes.__contains__))
            shared = shared or self._own.first_shared([site], loops=outer, equal=equal)
        if shared is not None:
            raise self._shared_element_error(site, shared)

    def _shared_element_error(self, site: AccessSite, loop: For) -> UnsupportedError:
        store = site.node
        if loop.var in let_dependences(*site.indices, value_of=self._values.get):
            return UnsupportedError(
                "lower.verify_stores.not_proved",
                f"Cannot prove that the threads of loop '{loop.var}' of '{self._name}' store to different "
                f"elements of '{store.buffer}', at the index '{_index_text(site)}'.",
                hint="Accumulate atomically, or declare that the array that the index is read from has no "
                "duplicates.",
            )
        if loop.var not in let_dependences(*site.conditions, value_of=self._values.get):
            return UnsupportedError(
                "lower.verify_stores.reduction",
                f"The threads of loop '{loop.var}' of '{self._name}' store to one element of "
                f"'{store.buffer}', and do more than to combine values there.",
                hint="Bind a loop that selects the element, or separate the reduction from other statements.",
            )
        return UnsupportedError(
            "lower.verify_stores.condition",
            f"Several threads of loop '{loop.var}' of '{self._name}' may store to one element of "
            f"'{store.buffer}': the conditions around the store are not proved to select one of them.",
            hint=f"Compare '{loop.var}' with a constant, such as in 'if {loop.var} == 0'.",
        )

    def _unordered_error(self, unordered: UnorderedAccesses) -> UnsupportedError:
        one, other, loop = unordered
        kind, hint = (
            "threads",
            "Put 'T.barrier()' between them, or end the loops over threads there.",
        )
        if is_block_axis(loop.thread):
            kind = "blocks"
            hint = "Blocks cannot wait for each other: put one of them into a kernel of its own."
        return UnsupportedError(
            "lower.verify_stores.unordered",
            f"Cannot prove that the {kind} of loop '{loop.var}' of '{self._name}' access different elements "
            f"of '{one.node.buffer}' by {_access_text(one)} and by {_access_text(other)}, and no barrier is "
            "between them.",
            hint=hint,
        )


# Other statements: their reads are loads.
def _access_text(site: AccessSite) -> str:
    match site.node:
        case Store():
            kind = "the store"
        case Atomic():
            kind = "the atomic operation"
        case Search():
            return "a search"
        case _:
            kind = "the load"
    return f"{kind} at the index '{_index_text(site)}'"


def _index_text(site: AccessSite) -> str:
    from gossamer_ir.script import print_expr  # the printer is for errors only

    return ", ".join(map(print_expr, site.indices))

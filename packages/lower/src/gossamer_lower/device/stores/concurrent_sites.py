"""Finds the accesses that threads of a kernel may make at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.statements.thread_axes import is_block_axis, is_thread_axis
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.core.statement_kinds import BLOCK_BARRIERS, WRITES, Body, effects_of
from gossamer_ir.nodes import Atomic, Expr, For, Stmt, Store, ThreadTag
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.statement_queries import threads_of
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_ir.traversal.walk import collect, contains
from gossamer_lower.device.kernel_functions import outermost_thread_loops, thread_loops
from gossamer_lower.device.stores.access_sites import AccessNode, AccessSite, SiteContext

Sites: TypeAlias = tuple[AccessSite, ...]
ThreadTags: TypeAlias = frozenset[ThreadTag | None]
"""Axes of threads; those of loops may be None."""


def loops_of_axes(kernel: For) -> dict[str, For]:
    """Return, for the variable of each loop that is bound to threads, the first loop over the same threads.

    >>> from gossamer_ir.core.build import ZERO, index
    >>> t, u = (For(name, ZERO, index(8), (), kind="thread_binding", thread="threadIdx.x") for name in "tu")
    >>> block = For("b", ZERO, index(2), (t, u), kind="thread_binding", thread="blockIdx.x")
    >>> loops_of_axes(block)["u"] is t
    True
    """
    loops = {}
    firsts: dict[tuple[object, ...], For] = {}
    for loop in thread_loops((kernel,)):
        loops[loop.var] = firsts.setdefault((loop.thread, loop.start, loop.extent), loop)
    return loops


def axes_of_outer_loops(kernel: For) -> tuple[ThreadTags, ...]:
    """Return the axes of threads of loops with other statements than one loop over further threads.

    Their iterations are not ordered, whatever waits for each other inside of them.

    >>> from gossamer_ir.core.build import ONE, ZERO, index
    >>> t, s = (For(name, ZERO, index(8), (), kind="thread_binding", thread="threadIdx.x") for name in "ts")
    >>> u = For("u", ZERO, index(2), (t, s), kind="thread_binding", thread="threadIdx.y")
    >>> axes_of_outer_loops(u), axes_of_outer_loops(replace(u, body=(t,)))
    ((frozenset({'threadIdx.y'}),), ())
    """
    return tuple(dict.fromkeys(_axes_of_outer_loops((kernel,), frozenset())))


def _axes_of_outer_loops(body: Iterable[Stmt], around: ThreadTags) -> Iterator[ThreadTags]:
    for loop in outermost_thread_loops(body):
        axes = around | {loop.thread} if is_thread_axis(loop.thread) else around
        is_around_one = len(loop.body) == 1 and (*outermost_thread_loops(loop.body),) == loop.body
        has_more_threads = any(is_thread_axis(inner.thread) for inner in thread_loops(loop.body))
        if axes and has_more_threads and not is_around_one:
            yield axes
        yield from _axes_of_outer_loops(loop.body, axes)


class ConcurrentSites:
    """The accesses of a kernel to what threads share: `every` one, and the `intervals`, each with those that
    threads of a block may make between two barriers in loops over all axes, or in outermost loops over the
    axes `tags` of threads. Elsewhere, threads wait for each other where they have to (`insert_sync`).
    `values` are those of variables.

    >>> from gossamer_ir.core.build import ONE, ZERO, index
    >>> from gossamer_ir.nodes import Barrier
    >>> stores = [Store(name, (index_var("t"),), ONE) for name in "ABC"]
    >>> body = (stores[0], Barrier(), *stores[1:])
    >>> loop = For("t", ZERO, index(8), body, kind="thread_binding", thread="threadIdx.x")
    >>> sites = ConcurrentSites(loop, {}, private=set())
    >>> [[site.node.buffer for site in interval] for interval in sites.intervals]
    [['A'], ['B', 'C']]
    """

    def __init__(
        self,
        kernel: For,
        values: Mapping[str, Expr],
        *,
        private: Set[str],
        tags: ThreadTags | None = None,
    ) -> None:
        self.every: dict[AccessSite, None] = {}
        self.intervals: list[Sites] = []
        self._values, self._private = values, private
        self._loops = loops_of_axes(kernel)
        every = {loop.thread for loop in self._loops.values()}
        self._block_axes = {axis for axis in every if is_block_axis(axis)}
        self._thread_axes = every - self._block_axes if tags is None else tags
        self._add(kernel, SiteContext(), ())

    def _add(self, stmt: Stmt, context: SiteContext, pending: Sites) -> Sites:
        """Add the accesses of a statement; return those since the last barrier, with the `pending` ones."""
        threads = threads_of(stmt)
        if threads.waits_for == "block":
            return self._end_interval(pending)
        if threads.commits:
            return tuple([replace(site, is_committed=site.is_copy) for site in pending])
        if threads.pending_groups is not None and threads.pending_groups(stmt) == 0:
            return tuple(
                [replace(site, is_copy=False) if site.is_committed else site for site in pending]
            )
        new = tuple(self._sites(stmt, context))
        self.every |= dict.fromkeys(new)
        is_inside = self._is_inside(context)
        pending = (*pending, *new) if is_inside else ()
        inner = context
        if isinstance(stmt, For):
            inner = replace(context, loops=(*context.loops, self._loops.get(stmt.var, stmt)))
        inner = replace(inner, is_copy=context.is_copy or threads.is_async)
        bodies = effects_of(stmt).bodies
        ends = [self._add_body(stmt, body, inner, pending) for body in bodies]
        if self._is_inside(inner) and not is_inside:
            for end in ends:
                self.intervals.append(end)
            return ()
        # A condition has two bodies, one of which runs; a loop may have no iteration.
        if len(bodies) < 2 and not any(body.runs_always for body in bodies):
            ends.append(pending)
        return tuple(dict.fromkeys(site for end in ends for site in end))

    def _add_body(self, stmt: Stmt, body: Body, context: SiteContext, pending: Sites) -> Sites:
        parts = (resolve(part, self._values) for part in body.conditions)
        context = replace(context, conditions=(*context.conditions, *parts))
        end = self._add_all(body.stmts, context, pending)
        is_of_threads = isinstance(stmt, For) and stmt.thread is not None
        if body.repeats and not is_of_threads and contains(BLOCK_BARRIERS, *body.stmts):
            # The next iteration begins before all threads have ended this one.
            outside = len(context.loops) - isinstance(stmt, For)
            earlier = tuple([_in_earlier_iteration(site, outside) for site in end])
            end = (*end, *self._add_all(body.stmts, context, earlier))
        return end

    def _add_all(self, body: Iterable[Stmt], context: SiteContext, pending: Sites) -> Sites:
        for stmt in body:
            pending = self._add(stmt, context, pending)
        return pending

    def _is_inside(self, context: SiteContext) -> bool:
        """Return whether loops over all blocks are around a statement, and the outermost ones over threads
        are over the axes."""
        around = [loop.thread for loop in context.loops if loop.thread is not None]
        threads = [axis for axis in around if is_thread_axis(axis)]
        outer = threads[: len(self._thread_axes)]
        return self._block_axes <= {*around} and {*outer} == self._thread_axes

    def _end_interval(self, pending: Sites) -> Sites:
        """End an interval at a barrier; return the copies that go on."""
        self.intervals.append(pending)
        return tuple([site for site in pending if site.is_copy])

    # Other statements: their reads and writes are different accesses.
    def _sites(self, stmt: Stmt, context: SiteContext) -> Iterator[AccessSite]:
        effects = effects_of(stmt)
        # An atomic operation reads and writes its element at once.
        olds = () if isinstance(stmt, Atomic) else effects.reads
        nodes: tuple[AccessNode, ...] = (
            *olds,
            *collect(READS, *effects.evaluates),
            *effects.writes,
        )
        for node in nodes:
            if node.buffer not in self._private:
                predicate = getattr(node, "predicate", None)
                conditions = context.conditions
                if predicate is not None:
                    conditions = (*conditions, resolve(predicate, self._values))
                is_copy = context.is_copy and isinstance(node, Store)
                resolved = resolve(_element_of(node), self._values)
                yield AccessSite(resolved, context.loops, conditions, is_copy)


def _element_of(node: AccessNode) -> AccessNode:
    """Return an access without the value that it stores: accesses of one element are compared once."""
    return replace(node, value=ZERO) if isinstance(node, WRITES) else node


def _in_earlier_iteration(site: AccessSite, outside: int) -> AccessSite:
    """Return an access with other variables for its loops, but the first ones and those over threads."""
    names = {
        loop.var: index_var(f"earlier {loop.var}")
        for loop in site.loops[outside:]
        if loop.thread is None
    }
    loops = [
        replace(
            loop,
            var=names[loop.var].name if loop.var in names else loop.var,
            start=substitute(loop.start, names),
            extent=substitute(loop.extent, names),
        )
        for loop in site.loops
    ]
    conditions = tuple(substitute(condition, names) for condition in site.conditions)
    return replace(
        site, node=substitute(site.node, names), loops=tuple(loops), conditions=conditions
    )

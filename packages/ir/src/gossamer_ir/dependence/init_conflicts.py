"""Detects points of a block whose inits conflict: they write the same element.

A block initializes each element once. Its init may run in every iteration of a loop only if different
iterations initialize different elements; otherwise it must run before the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import (
    Access,
    EnclosingContext,
    accesses,
    context_at_init,
)
from gossamer_ir.analysis.accesses.init_nests import (
    LoopOrCondition,
    ValuesOfVars,
    reduction_loops,
    spatial_loops,
)
from gossamer_ir.analysis.axes.determined_variables import DeterminedVars
from gossamer_ir.analysis.invariants import buffers_written_in
from gossamer_ir.dependence.independence import are_unshared
from gossamer_ir.nodes import Block, For, Function, Store
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.statement_queries import values_bound_in
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import stmts


def inits_may_conflict(
    loop: For,
    block: Block,
    between: Iterable[LoopOrCondition],
    *,
    values: ValuesOfVars,
    function: Function,
) -> bool:
    """Return whether different iterations of a loop around a block may initialize the same element.

    False if it is proved that they initialize different elements. False also for a loop that feeds no
    spatial iterator, or that allocates what is initialized: each of its iterations initializes the elements
    again. `between` are the loops and conditions between the loop and the block; `values` are the values of
    block variables and of enclosing lets.

    >>> from gossamer_ir.core.build import index, index_var, zero_of
    >>> from gossamer_ir.nodes import BlockIter, Range
    >>> vi, vj = (BlockIter(f"v{x}", "S", Range(index(0), index(8)), index_var(x)) for x in "ij")
    >>> start = Store("Y", (index_var("vi"),), zero_of("float32"))
    >>> block = Block("b", (vi, vj), (), init=(start,))
    >>> nest = For("i", index(0), index(8), (For("j", index(0), index(8), (block,)),))
    >>> values = {iterator.var: iterator.value for iterator in block.iters}
    >>> function = Function("f", (), (nest,))
    >>> [inits_may_conflict(nest, block, nest.body, values=values, function=function),
    ...  inits_may_conflict(nest.body[0], block, [], values=values, function=function)]
    [False, True]
    """
    targets = buffers_written(block.init)
    # A loop that feeds only the reduction repeats the init on purpose: it is hoisted before that loop.
    if loop.var not in spatial_loops(block, values) or targets <= buffers_allocated(loop.body):
        return False
    stores = list(_stores(block, (loop, *between), values))
    changing = buffers_written_in(loop.body, function)
    return not all(
        are_unshared(
            [store for store in stores if store.buffer == buffer],
            loop,
            changing=changing,
            function=function,
        )
        for buffer in sorted({store.buffer for store in stores})
    )


def _stores(
    block: Block, around: Iterable[LoopOrCondition], values: ValuesOfVars
) -> Iterator[Access]:
    """Yield the stores of an init, each with its context in terms of the loops around the block."""
    parts = tuple(around)
    loops = tuple(
        For(part.var, resolve(part.start, values), resolve(part.extent, values), ())
        for part in parts
        if isinstance(part, For)
    )
    conditions = tuple(resolve(part, values) for part in parts if not isinstance(part, For))
    context = context_at_init(EnclosingContext(loops, conditions), block, values)
    fed = reduction_loops(block, values)
    # The init runs outside the reduction loops, so conditions on their variables do not apply.
    kept = tuple(part for part in context.conditions if free_vars(part).isdisjoint(fed))
    allocated = buffers_allocated(block.init)
    for access in accesses(block.init, values=values, context=replace(context, conditions=kept)):
        if access.is_store and access.buffer not in allocated:
            yield access


def is_determined_by_element(block: Block, loops: Iterable[For]) -> bool:
    """Return whether points of some loops around a block that share an element initialize it to the same
    value.

    >>> from gossamer_ir.core.build import index, index_var
    >>> from gossamer_ir.nodes import Load
    >>> i = For("i", index(0), index(8), ())
    >>> at = Load("P", (index_var("i"),), "int64")
    >>> inits = (Store("Y", (at,), value) for value in (at, index_var("i")))
    >>> [is_determined_by_element(Block("b", (), (), init=(init,)), [i]) for init in inits]
    [True, False]
    """
    bound = values_bound_in((block,))
    names = {loop.var for loop in loops} | bound.keys()
    names |= set(bound_vars(block.init))
    stores = [stmt for stmt in stmts(block.init) if isinstance(stmt, Store)]
    return not any(
        True
        for store in stores
        for _ in DeterminedVars(store.indices, names, bound).missing(store.value)
    )

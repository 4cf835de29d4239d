"""`compute_inline`: inline a producer block into the blocks that read its elements."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.nodes import Block, Function, Load, Store
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.allocations import require_allocated
from gossamer_schedule.cursor.cursor_at import Cursor, function_with_replaced
from gossamer_schedule.cursor.find import find_block, find_buffer
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error
from gossamer_schedule.legality.covered_elements import require_covered
from gossamer_schedule.motion.inline import (
    own_nest,
    require_only_iters,
    required_assignment,
    required_writer,
    without_block,
    without_buffer,
)
from gossamer_schedule.motion.load_inliner import LoadInliner
from gossamer_schedule.nests.block_nest import loop_nest


@primitive(stages=LOOP_STAGES)
def compute_inline(root: Cursor[Function], block: str, *, function: str | None = None) -> Change:
    """Replace each load of a block's result by the expression that the block stores, and remove the block.

    The buffer of the result is removed, too. If it cannot be proved that the block computes a loaded element,
    the expression is guarded by the conditions under which it does. Elsewhere the load had no defined
    value, and it is replaced by 0. If the buffer is allocated outside a loop in which the block runs again,
    the element may have a value from an earlier iteration, so the proof is required there.

    Elements that are never loaded are no longer computed. A program that stopped only because computing
    such an element read out of bounds therefore no longer stops.

    Raises `ScheduleError` with a code `schedule.compute_inline.*`:

    * `.form`: the block is not a single assignment
    * `.parameter`: it writes a parameter
    * `.writers`: another statement also writes the buffer
    * `.predicate`: the block uses variables of its loops, not only its iterators
    * `.changed`: a buffer that it reads is written later
    * `.other_access`: the buffer is searched, prefetched, read in vectors, or used elsewhere than after the
      block
    * `.not_proved`: the loops may not visit a whole domain, the point that computes a loaded element is not
      known, or the element may be left from an earlier iteration

    >>> from gossamer_testkit.examples import GATHER
    >>> from gossamer_schedule.primitives.buffers.cache_read import cache_read
    >>> from gossamer_testkit.show import body_text
    >>> cached = cache_read(GATHER, "gather", buffer="P", scope="local").module
    >>> print(body_text(cached))
    for i_c in T.serial(n):
        with T.block("gather_P_local"):
            vi_c = T.axis.spatial(n, i_c)
            P_local[vi_c] = P[vi_c]
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P_local[vi]]
    >>> print(body_text(compute_inline(cached, "gather_P_local").module))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
    """
    cursor = find_block(root, block=block)

    store = required_assignment(cursor)
    require_allocated(find_buffer(root, buffer=store.buffer), root)
    required_writer(root, store.buffer)
    require_only_iters(cursor)
    require_covered(cursor, cursor.node.iters, loops=loop_nest(cursor).loops)
    without = without_block(cursor)
    _require_only_loads(without, store)
    _require_uses_after(cursor, store)
    _require_unchanged_inputs(cursor)

    inlined = replace(without, body=LoadInliner(cursor, store).body(without.body))
    return Change(root.with_function(without_buffer(inlined, store.buffer)), ())


def _require_unchanged_inputs(cursor: Cursor[Block]) -> None:
    """Refuse a block if a buffer that it reads is written later, since it is then read later."""
    nest = own_nest(cursor)
    changed = buffers_accessed(cursor.node) & outer_writes(nest.body[nest.index + 1 :])
    if changed:
        raise schedule_error(
            "compute_inline.changed",
            f"Block '{cursor.node.name}' reads {quote(changed)}, which may be written before the result of "
            "the block is used.",
        )


def _require_only_loads(function: Function, store: Store) -> None:
    """Refuse accesses of the buffer that an expression cannot replace."""
    for node in collect(BUFFER_NODES, *function.body):
        if node.buffer == store.buffer and not isinstance(node, (Load, Store)):
            raise schedule_error(
                "compute_inline.other_access",
                f"Buffer '{store.buffer}' is searched, prefetched or guarded, and an expression can only "
                "replace loads.",
            )
    for load in collect(Load, *function.body):
        if load.buffer == store.buffer and (
            load.predicate is not None or any(map(has_lanes, load.indices))
        ):
            raise schedule_error(
                "compute_inline.other_access",
                f"Buffer '{store.buffer}' is loaded in vectors or under a predicate, and the block computes "
                "one element at a time.",
            )


def _require_uses_after(cursor: Cursor[Block], store: Store) -> None:
    """Refuse uses of the buffer that do not follow the block in the same body, each time that it runs."""
    nest = own_nest(cursor)
    # A use before the block sees values from an earlier run, or none.
    above = function_with_replaced(nest, (), count=len(nest.body) - nest.index)
    if store.buffer in buffers_accessed(*above.body):
        raise schedule_error(
            "compute_inline.other_access",
            f"Buffer '{store.buffer}' is also used before block '{cursor.node.name}' or outside the "
            "enclosing body.",
        )

"""`reverse_compute_at`: move a consumer block into the loop that produces the elements it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec.structs import replace

from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.dependence.access_forms import AccessForm, access_forms
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, For, Function, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_block, find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.cursor.used_buffers import conflicting_buffers
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error
from gossamer_schedule.legality.distinct_stores import require_distinct_stores
from gossamer_schedule.motion.move_block import (
    buffer_shared_by_iterations,
    is_recurrence,
    moved_nest,
    path_between,
    require_bound_before,
    require_plain_loops,
    required_nest_beside,
    required_own_loops,
)
from gossamer_schedule.reductions.reassociation import is_reduction
from gossamer_schedule.regions.consumer_ranges import ConsumerMove, required_consumer_ranges
from gossamer_schedule.regions.produced import ProducedRange


@primitive(stages=LOOP_STAGES)
def reverse_compute_at(
    root: Cursor[Function], block: str, *, loop: str, function: str | None = None
) -> Change:
    """Move a consumer block to the end of a loop's body, restricted to what one iteration produces.

    The block must be in loops of its own after the nest of `loop`, with one iterator bound to each of them.
    If it is a reduction, one iteration of `loop` must produce all values that it combines into one element.
    A reduction without an init may also be continued in each iteration of one loop, if its terms keep their
    order.
    Each loop of the moved block runs over the region that one iteration produces (the product of the
    producer's inner loops), and keeps its name. A loop with one iteration is removed. The result's names
    are those of the remaining loops.

    Raises `ScheduleError` with a code `schedule.reverse_compute_at.*`:

    * `.reduction`: the block reads other elements of its buffer, or combines spatial points into one element
    * `.kind`: the loop or a loop around it is neither serial nor unrolled
    * `.binding`: its iterators are not bound one to one to its loops, over their whole domains
    * `.scope`: it is not after the loop's nest in the same body, or uses a name that is bound in between
    * `.other_access`: a statement in between, or another iteration of the nest, conflicts with its accesses
    * `.no_producer`: the loop does not contain all stores that produce what the block reads
    * `.not_proved`: an element may be produced by several iterations or incompletely, or points that store to
      one element may change their order

    >>> from gossamer_testkit.examples import ROW_SUM
    >>> from gossamer_schedule.primitives.buffers.cache_write import cache_write
    >>> from gossamer_testkit.show import body_text
    >>> cached = cache_write(ROW_SUM, "row_sum", buffer="Y", scope="local").module
    >>> print(body_text(cached))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y_local[vi] = 0.0
                Y_local[vi] = Y_local[vi] + A[indptr_data[vi] + vj]
    for i_c in T.serial(m):
        with T.block("row_sum_Y_local"):
            vi_c = T.axis.spatial(m, i_c)
            Y[vi_c] = Y_local[vi_c]
    >>> print(body_text(reverse_compute_at(cached, "row_sum_Y_local", loop="i").module))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y_local[vi] = 0.0
                Y_local[vi] = Y_local[vi] + A[indptr_data[vi] + vj]
        with T.block("row_sum_Y_local"):
            vi_c = T.axis.spatial(m, i)
            Y[vi_c] = Y_local[vi_c]
    """
    cursor = find_block(root, block=block)
    target = find_loop(root, loop=loop)

    # A point that uses what other points have written would find it incomplete.
    _require_own_elements(cursor)
    require_plain_loops(target)
    own_loops = required_own_loops(cursor)
    top = required_nest_beside(cursor, target, own_loops, side="after")
    # The block moves up, to before what stands between the two nests.
    require_bound_before(cursor.up(len(own_loops)), top)
    path = path_between(target, top)
    shared = _required_shared_buffers(cursor, top, own_loops=own_loops)
    produced = _required_producers(cursor, top, target=target)
    ranges = required_consumer_ranges(ConsumerMove(cursor, own_loops, target, path), produced)
    # Points of one element now run in the order of the producer's loops.
    _require_same_order(cursor, own_loops, path, ranges=ranges)

    nest, names = moved_nest(cursor, own_loops, ranges)
    inside = find_loop(cursor.up(len(own_loops)).replace_with(()), loop=loop)
    extended = replace(inside.node, body=(*inside.node.body, nest))
    changed = inside.replace_with((extended,))
    # Checked in the changed function: the block is then one of the statements of the nest.
    joined = find_loop(changed, loop=path[0].var)
    if conflict := buffer_shared_by_iterations(joined, path, buffers=shared):
        raise _conflict_error(block, {conflict})
    return Change(changed, names)


def _require_own_elements(cursor: Cursor[Block]) -> None:
    """Refuse a block unless each of its points, or each of its reductions, has an element of its own."""
    block = cursor.node
    is_reducing = block.init or any(iterator.kind == "R" for iterator in block.iters)
    stores = [stmt for stmt in addressable_stmts(block.body) if isinstance(stmt, Store)]
    if is_recurrence(block) or (is_reducing and not _are_own_values(cursor, stores)):
        raise schedule_error(
            "reverse_compute_at.reduction",
            f"Block '{block.name}' uses other elements of the buffer that it writes, or combines several "
            "spatial points into one element, and reverse_compute_at moves neither.",
            place=cursor.place,
        )


def _are_own_values(cursor: Cursor[Block], stores: Sequence[Store]) -> bool:
    """Return whether each spatial point of a block that reduces stores to an element of its own."""
    # Imported late: blocks that copy a result do not reduce.
    from gossamer_schedule.legality.stored_values import is_own_value
    from gossamer_schedule.regions.iterator_dimensions import determined_iters

    return all(
        is_own_value(cursor.node, store, determined=determined_iters(cursor, store))
        for store in stores
    )


def _required_shared_buffers(
    cursor: Cursor[Block], top: Cursor[Stmt], *, own_loops: Sequence[For]
) -> Set[str]:
    """Refuse to move the block past conflicting accesses between the nest and the block.

    Return the buffers that the block writes and the nest uses, too.
    """
    consumer = cursor.up(len(own_loops))
    conflicts = conflicting_buffers((consumer.node,), top.siblings_until(consumer))
    if conflicts:
        raise _conflict_error(cursor.node.name, conflicts)
    return outer_writes((cursor.node,)) & buffers_accessed(top.node)


def _conflict_error(block_name: str, buffers: Set[str]) -> ScheduleError:
    return schedule_error(
        "reverse_compute_at.other_access",
        f"Block '{block_name}' cannot move past other uses of {quote(buffers)}.",
    )


def _required_producers(
    cursor: Cursor[Block], top: Cursor[Stmt], *, target: Cursor[For]
) -> dict[str, list[AccessForm]]:
    """Return the stores in the loop to each buffer that the block reads and the nest writes.

    Refuse the loop if it contains none of them, or if there are others in the nest.
    """
    reads = buffers_accessed(cursor.node) - outer_writes((cursor.node,))
    buffers = reads & outer_writes((top.node,))
    inside = _stores_to(target.node.body, buffers, target)
    is_all = top.node is target.node or len(inside) == len(_stores_to((top.node,), buffers, top))
    if not inside or not is_all:
        raise schedule_error(
            "reverse_compute_at.no_producer",
            f"Loop '{target.node.var}' does not contain all stores that produce what block "
            f"'{cursor.node.name}' reads.",
            hint="Choose a loop around all producers of the block.",
        )
    produced: dict[str, list[AccessForm]] = {name: [] for name in buffers}
    for store in inside:
        produced[store.buffer].append(store)
    return produced


def _stores_to(
    body: tuple[Stmt, ...], buffers: Set[str], cursor: Cursor[object]
) -> list[AccessForm]:
    accesses = access_forms(body, buffers, values=values_at(cursor), function=cursor.function)
    return [access for access in accesses if access.is_store]


def _require_same_order(
    cursor: Cursor[Block],
    own_loops: Sequence[For],
    path: Sequence[For],
    *,
    ranges: Mapping[str, ProducedRange],
) -> None:
    """Refuse a new order of points that may store to one element: the last store determines its value.

    The order does not change if only one loop of the path has several iterations, and selects ranges of the
    outermost loop of the block.
    """
    block = cursor.node
    selected = {
        iterator.value
        for iterator in block.iters
        if iterator.var in ranges and ranges[iterator.var].count is not None
    }
    selecting = [loop for loop in path if integer_value(loop.extent) != 1]
    is_kept = len(selecting) <= 1 and selected <= {index_var(loop.var) for loop in own_loops[:1]}
    if is_kept or is_reduction(block):
        return
    for buffer in sorted(outer_writes((block,))):
        require_distinct_stores(cursor, buffer, nest=own_loops)

"""`rfactor`: factor a reduction into partial results and their combination."""

from __future__ import annotations

from collections.abc import Set

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops, spatial_loops
from gossamer_ir.analysis.bounds.loops_by_name import loops_of
from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import AnyBuffer, Block, For, Function, Load, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_schedule.cursor.cursor_at import Cursor, function_with_replaced
from gossamer_schedule.cursor.find import find_block, find_buffer, find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_between
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error, text_of
from gossamer_schedule.legality.races import require_no_race_on_new
from gossamer_schedule.nests.block_nest import BlockNest, reduction_nest
from gossamer_schedule.nests.copy_nest import copy_nest, names_of_nest
from gossamer_schedule.nests.init_checks import require_init_of_nest
from gossamer_schedule.reductions.factored_block import (
    PartialBuffers,
    factored_block,
    fed_iters,
    part_iterator,
    partial_buffers,
    preceding_iters,
)
from gossamer_schedule.reductions.reassociation import with_reassociation_marks
from gossamer_schedule.reductions.term_reduction import TermReduction, term_reduction_of
from gossamer_schedule.regions.iterator_dimensions import determined_iters
from gossamer_schedule.staging.cache_checks import require_constant_size
from gossamer_schedule.staging.written_element import (
    WrittenElement,
    require_element_exists,
    required_element,
)
from gossamer_schedule.tensorization.outer_block import required_single_block


@primitive(stages=LOOP_STAGES)
def rfactor(
    root: Cursor[Function], loop: str, *, axis: int = 0, function: str | None = None
) -> Change:
    """Factor a reduction: each iteration of a loop computes a partial result; another block combines them.

    The new buffer `<buffer>_rf` has one more dimension than the buffer that the block writes, at `axis`,
    over the iterations of the loop. Block `<block>_rf` replaces the block and reduces into this buffer. The
    loop is spatial there, and an iterator that it fed is replaced by an iterator for each loop that fed it.
    All partial results start at the identity of the reducer, even those without terms.

    The block of the old name then combines the partial results, starting from the old init, directly after
    the outermost loop around the new block. It has a loop for each iterator that selects an element, `i_c`
    for iterator `vi`, and a loop over the partial results, `j_c` for loop `j`. Both blocks are annotated
    `reassociates`, since terms are combined in another order. The result's names are the new buffers, the
    new block, and the old block with its loops.

    Raises `ScheduleError` with a code `schedule.rfactor.*`:

    * `.body`: the loop contains more than loops around one block
    * `.not_reducer`: the block is not a reduction by a known reducer
    * `.spatial`: the loop feeds a spatial iterator, or no reduction iterator
    * `.mixed`: its iterator is also fed by a spatial loop, or a loop outside the nest feeds the reduction
    * `.extent`: the loop does not start at 0, or its extent is not known before the function runs
    * `.axis`: there is no such dimension
    * `.init`: the init depends on more than the element
    * `.reads`, `.element`, `.domain`, `.predicate`, `.other_access`: as for `cache_write`
    * `.not_proved`: as for `cache_write`; or points may share an element, a partial result may be initialized
      twice, or an element without an init may not exist

    >>> from gossamer_testkit.examples import ROW_SUM
    >>> from gossamer_schedule.primitives.loops.split import split
    >>> from gossamer_testkit.show import body_text
    >>> fours = split(ROW_SUM, "j", factors=(None, 4)).module
    >>> print(body_text(rfactor(fours, "j_1").module))
    for i in T.serial(m):
        for j_0 in T.serial((indptr_data[i + 1] - indptr_data[i] + 3) // 4):
            for j_1 in T.serial(4):
                with T.block("row_sum_rf"):
                    vi, vj_0, vj_1 = T.axis.remap("SRS", [i, j_0, j_1])
                    T.where(vj_0 * 4 + vj_1 < indptr_data[vi + 1] - indptr_data[vi])
                    T.block_attr({"reassociates": True})
                    with T.init():
                        Y_rf[vj_1, vi] = 0.0
                    Y_rf[vj_1, vi] = Y_rf[vj_1, vi] + A[indptr_data[vi] + (vj_0 * 4 + vj_1)]
    for i_c in T.serial(m):
        for j_1_c in T.serial(4):
            with T.block("row_sum"):
                vi_c, vj_1_c = T.axis.remap("SR", [i_c, j_1_c])
                T.block_attr({"reassociates": True})
                with T.init():
                    Y[vi_c] = 0.0
                Y[vi_c] = Y[vi_c] + Y_rf[vj_1_c, vi_c]
    """
    top = find_loop(root, loop=loop)
    cursor = required_single_block(top)
    reduction, element = _required_reduction(cursor, top, axis=axis)
    results = _required_results(root, reduction)

    namer = namer_of(root.function)
    parts = partial_buffers(top.node, results, axis=axis, namer=namer)
    partial, part = factored_block(cursor, reduction, parts, namer=namer)
    changed = root.with_function(
        parts.add_buffers(function_with_replaced(cursor, with_reassociation_marks((partial,))))
    )
    nest = BlockNest(find_block(changed, block=partial.name), reduction_nest(cursor).enclosing)
    # The partial results must be initialized in the new nest itself, not before a loop around it.
    require_init_of_nest(nest)
    combination = _combination_nest(
        nest, cursor, element, reduction=reduction, parts=parts, part=part
    )
    rewritten = nest.top.replace_with((nest.top.node, combination))

    buffers = tuple(buffer.name for buffer in parts.buffers)
    # Last, because a partial result exists only in the rewritten function.
    require_no_race_on_new(nest.top, rewritten, buffers=set(buffers))
    return Change(rewritten, (*buffers, partial.name, *names_of_nest(combination)))


def _required_reduction(
    cursor: Cursor[Block], top: Cursor[For], *, axis: int
) -> tuple[TermReduction, WrittenElement]:
    """Return the reduction of a block, and the first element that it updates."""
    _require_kind(top)
    _require_reduction_loop(cursor, top)
    _require_extent(top)
    reduction = _required_reducer(cursor)
    element = _required_first_element(cursor, reduction)
    _require_parts_initialized_once(cursor, top, element)
    # Each result gets the new dimension at the same axis, so the one with the fewest dimensions limits it.
    require_between(cursor, "axis", axis, 0, min(len(term.indices) for term in reduction.terms))
    return reduction, element


def _required_results(root: Cursor[Function], reduction: TermReduction) -> list[AnyBuffer]:
    """Return the buffers that a reduction updates, whose sizes must be constant."""
    results = [find_buffer(root, buffer=term.buffer) for term in reduction.terms]
    for buffer in results:
        require_constant_size(buffer, root)
    return results


def _require_kind(top: Cursor[For]) -> None:
    """Refuse a loop of another kind: it is legal for a reduction loop, and this one becomes spatial."""
    if top.node.kind not in ("serial", "unrolled"):
        raise schedule_error(
            "rfactor.kind",
            f"Loop '{top.node.var}' is {top.node.kind}, and rfactor needs a serial or unrolled loop.",
            hint=f"Apply rfactor before the loop is made {top.node.kind}.",
            place=top.place,
        )


def _require_reduction_loop(cursor: Cursor[Block], top: Cursor[For]) -> None:
    """Refuse a loop unless it feeds only reduction iterators, and so do all loops that feed the same ones."""
    loop, values = top.node.var, values_at(cursor)
    spatial = spatial_loops(cursor.node, values)
    if loop in spatial or loop not in reduction_loops(cursor.node, values):
        raise schedule_error(
            "rfactor.spatial",
            f"Loop '{loop}' is not a reduction loop of block '{cursor.node.name}': it feeds a spatial "
            "iterator, or no reduction iterator.",
            hint="Split a loop that feeds both kinds of iterators.",
            place=top.place,
        )
    inside = {inner.var for inner in reduction_nest(cursor).loops}
    outside = (
        reduction_loops(cursor.node, values)
        & {outer.var for outer in cursor.loops_in_block} - inside
    )
    # Partial results are combined after the nest, so no reduction loop may be outside of it.
    if outside:
        raise schedule_error(
            "rfactor.mixed",
            f"Loop '{min(outside)}' also feeds the reduction, and a statement other than a loop or condition "
            f"is between it and block '{cursor.node.name}'.",
            place=top.place,
        )
    _require_own_iters(cursor, top, others=spatial | (loops_of(cursor.function).keys() - inside))


def _require_own_iters(cursor: Cursor[Block], top: Cursor[For], *, others: Set[str]) -> None:
    """Refuse a loop that determines an iterator together with one of the `others`."""
    loop = top.node.var
    fed = fed_iters(cursor.node, loop)
    feeding = {name for item in fed for name in free_vars(item.value)}
    are_constant = is_constant(*(item.value for item in fed), function=top.function)
    # A loop over rows may determine how long the reduction is without being a part of it.
    feeding -= preceding_iters(cursor.node, loop).keys() if fed and are_constant else set()
    wrong = feeding & others
    if wrong or loop not in feeding:
        raise schedule_error(
            "rfactor.mixed",
            f"Loop '{loop}' and {quote(wrong) or 'a let'} determine the same iterator of block "
            f"'{cursor.node.name}'; expected only reduction loops.",
            place=top.place,
        )


def _require_extent(top: Cursor[For]) -> None:
    """Refuse a loop whose iterations cannot be the indices of a dimension.

    The function allocates the partial results, one for each iteration, so their number must be known before
    anything runs; indices start at 0.
    """
    param_names = {param.name for param in top.function.params}
    extent = top.node.extent
    # A buffer that the function declares is allocated before its first statement.
    is_known = free_vars(extent) <= param_names and not buffers_accessed(extent)
    if not is_known or integer_value(top.node.start) != 0:
        raise schedule_error(
            "rfactor.extent",
            f"Loop '{top.node.var}' starts at {text_of(top.node.start)} and has extent {text_of(extent)}; "
            "expected start 0 and an extent that is known before the function runs.",
            hint=f"Split '{top.node.var}', and apply rfactor to the inner loop.",
            place=top.place,
        )


def _required_reducer(cursor: Cursor[Block]) -> TermReduction:
    """Return the reduction of the block; refuse a block that is not a reduction.

    Partial results start at the identity of the reducer and are combined by its operation.
    """
    reduction = term_reduction_of(cursor.node, cursor.function)
    if reduction is None:
        raise schedule_error(
            "rfactor.not_reducer",
            f"Block '{cursor.node.name}' is not a reduction X[...] = X[...] op value by a known reducer.",
            place=cursor.place,
        )
    return reduction


def _required_first_element(cursor: Cursor[Block], reduction: TermReduction) -> WrittenElement:
    """Return the first element that the block updates; its iterators select the others, too.

    Refuse the block unless different points select different elements.
    """
    elements = [required_element(cursor, term.buffer) for term in reduction.terms]
    for element in elements:
        missing = {iterator.var for iterator in element.points.iters} - determined_iters(
            cursor, element.store
        )
        if missing or element.points.iters != elements[0].points.iters:
            at = ", ".join(map(text_of, element.store.indices))
            raise schedule_error(
                "rfactor.not_proved",
                f"Cannot prove that the points of block '{cursor.node.name}' select different "
                f"elements of '{element.store.buffer}'.",
                needs=f"[{at}] determines {quote(missing)}",
                place=cursor.place,
            )
    available = {iterator.var for iterator in elements[0].points.iters}
    available |= {param.name for param in cursor.function.params}
    others = outer_writes(cursor.node.init) - {term.buffer for term in reduction.terms}
    if others or any(free_vars(stmt) - available for stmt in cursor.node.init):
        raise schedule_error(
            "rfactor.init",
            f"The init of block '{cursor.node.name}' writes other buffers than the reduction, or uses "
            "iterators that do not select the element.",
            place=cursor.place,
        )
    # Without an init, the combination reads the old element, which the block might never have touched.
    if not cursor.node.init:
        for element in elements:
            require_element_exists(cursor, element)
    return elements[0]


def _require_parts_initialized_once(
    cursor: Cursor[Block], top: Cursor[For], element: WrittenElement
) -> None:
    """Refuse a nest in which partial results may be initialized more than once.

    Their init runs outside the remaining reduction loops, so each loop there must select an element.
    """
    part_vars = {top.node.var, *preceding_iters(cursor.node, top.node.var)}
    reducing = reduction_loops(cursor.node, values_at(cursor)) - part_vars
    selecting = {name for iterator in element.points.iters for name in free_vars(iterator.value)}
    for loop in reduction_nest(cursor).loops:
        # Loops inside of a remaining reduction loop do not repeat the init, which runs before that one.
        if loop.var in reducing:
            return
        if loop.var not in selecting | {top.node.var} and integer_value(loop.extent) != 1:
            raise schedule_error(
                "rfactor.not_proved",
                f"Cannot prove that each partial result of block '{cursor.node.name}' is initialized "
                "once.",
                needs=f"loop '{loop.var}' selects an element, or is inside a loop of the reduction",
                hint="Change the order of the loops with reorder.",
                place=top.place,
            )


def _combination_nest(
    nest: BlockNest,
    cursor: Cursor[Block],
    element: WrittenElement,
    *,
    reduction: TermReduction,
    parts: PartialBuffers,
    part: str,
) -> Stmt:
    """Return the nest of the block at a cursor, which combines the partial results that `nest` computes."""
    dtypes = [identity.dtype for identity in reduction.identities]
    terms = [
        replace(term, value=Load(buffer.name, parts.element(term.indices, part), dtype))
        for term, buffer, dtype in zip(reduction.terms, parts.buffers, dtypes, strict=True)
    ]
    iters = (*element.points.iters, part_iterator(parts, part))
    combination = copy_nest(
        cursor.node.name,
        replace(element.points, iters=iters),
        (reduction.stmt(terms),),
        init=cursor.node.init,
        reduced=part,
        namer=namer_of(nest.block.function),
    )
    named = rewrite(
        combination,
        lambda node: replace(node, name=cursor.node.name) if isinstance(node, Block) else None,
    )
    return with_reassociation_marks((named,))[0]

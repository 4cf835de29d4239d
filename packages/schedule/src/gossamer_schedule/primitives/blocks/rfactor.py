"""`rfactor`: a reduction in two stages, each iteration of a loop having a part of its own."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import reduction_loops, spatial_loops
from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.analysis.loops import loops_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Block, Function, Load, Module, Stmt
from gossamer_ir.traversal.effects import outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import free_vars, rewrite
from gossamer_schedule.cursor.cursor import Cursor, replaced
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_block,
    find_buffer,
    find_function,
    find_loop,
    require_stage,
)
from gossamer_schedule.dependence.access import mentioned, values_at
from gossamer_schedule.dependence.races import require_unshared
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.nests.block_nest import BlockNest, reduction_nest
from gossamer_schedule.nests.init_places import require_init_of_nest
from gossamer_schedule.reductions.combining import Combining, combining_of
from gossamer_schedule.reductions.reassociation import reassociating
from gossamer_schedule.reductions.rfactor import (
    PartialBuffers,
    factored,
    fed_iterators,
    part_iterator,
    partial_buffers,
    selected_by,
)
from gossamer_schedule.regions.iterator_dimensions import determined_by
from gossamer_schedule.result import Result
from gossamer_schedule.staging.copies import copy_nest, names_of_nest, require_lasting_size
from gossamer_schedule.staging.stores import Element, require_existing, required_element
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step
from gossamer_schedule.tensorization.blockize import require_one_block

_NAME = "rfactor"


@primitive
def rfactor(module: Module, loop: str, *, axis: int = 0, function: str | None = None) -> Result:
    """Lets each iteration of a reduction loop combine what it has in elements of its own, which are
    combined afterwards.

    The new buffer `<buffer>_rf` has one more dimension than the one that the block writes, over the
    iterations of the loop, at `axis`. Block `<block>_rf` takes the block's place and reduces into it; the
    loop selects elements there, and an iterator that it fed becomes one for each loop that did. All
    parts start at the identity of the reducer, also those that nothing is combined in. The block of the
    old name then combines the parts, after the old init, directly after the outermost loop around: in
    one loop for each iterator that selects an element, `i_c` for iterator `vi`, and one over the parts,
    `j_c` for loop `j`. Both blocks are annotated `reassociates`. The result's names are the new buffers,
    the new block, and the old one with its loops.

    Raises `ScheduleError`: `schedule.rfactor.body` (the loop holds more than loops around one block),
    `.not_reducer` (the block is no reduction by a known reducer), `.spatial` (the loop feeds a spatial
    iterator, or no iterator of a reduction), `.mixed` (an iterator that it feeds is also fed by a spatial
    loop, or one of the reduction by a loop that is not in the nest), `.extent` (it does not start at 0,
    or runs a number of times that is not known before the function runs), `.axis` (there is no such
    dimension), `.init` (the init is about more than the element), `.reads`, `.element`, `.domain`,
    `.predicate`, `.other_access` (as for `cache_write`), `.not_proved` (the same, several points may meet
    in one element, its part may start more than once, or what it goes on from may not exist), `.kind`,
    `.no_loop`, `.no_function`, `.stage`.

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
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    top = find_loop(root, loop=loop)

    cursor = require_one_block(top)
    _require_kind(top)
    _require_reduction_loop(cursor, top)
    _require_extent(top)
    found = _require_reducer(cursor)
    element = _require_elements(cursor, found)
    _require_one_start(cursor, top, element)
    _require_axis(found, axis)

    namer = namer_of(root.function)
    olds = [find_buffer(root, buffer=term.buffer) for term in found.terms]
    for old in olds:
        require_lasting_size(old, root)
    parts = partial_buffers(top.node, olds, axis=axis, namer=namer)
    inner, part = factored(cursor, found, parts, namer=namer)
    changed = parts.added(replaced(cursor, reassociating((inner,))))
    outer = _combined(changed, cursor, element, found=found, parts=parts, part=part)
    nest = BlockNest(
        find_block(root.with_function(changed), block=inner.name), reduction_nest(cursor).around
    )
    require_init_of_nest(nest)
    rewritten = nest.top.replaced_by((nest.top.node, outer)).module
    made = {new.name for new in parts.buffers}
    require_unshared(nest.top, rewritten, buffers=made)

    taken = step(loop=loop, axis=axis or None, function=function)
    names = (*(new.name for new in parts.buffers), inner.name, *names_of_nest(outer))
    return Result(rewritten, names, Step(_NAME, taken))


def _require_kind(top: Cursor) -> None:
    if top.node.kind not in ("serial", "unrolled"):
        raise schedule_error(
            f"{_NAME}.kind",
            f"Loop '{top.node.var}' is {top.node.kind}, and {_NAME} needs a serial or unrolled loop.",
            hint=f"Apply {_NAME} before the loop is made {top.node.kind}.",
            place=top.place,
        )


def _require_reduction_loop(cursor: Cursor, top: Cursor) -> None:
    """The loop feeds iterators of the reduction, and loops that feed the same are like it."""
    loop, values = top.node.var, values_at(cursor)
    fed = fed_iterators(cursor.node, loop)
    spatial = spatial_loops(cursor.node, values)
    if loop in spatial or loop not in reduction_loops(cursor.node, values):
        raise schedule_error(
            f"{_NAME}.spatial",
            f"Loop '{loop}' is none of the reduction in block '{cursor.node.name}': it feeds a spatial "
            "iterator, or none of a reduction.",
            hint="Split a loop that feeds both.",
            place=top.place,
        )
    inside = {found.var for found in reduction_nest(cursor).loops}
    outside = reduction_loops(cursor.node, values) & {found.var for found in cursor.scope} - inside
    if outside:
        raise schedule_error(
            f"{_NAME}.mixed",
            f"Loop '{min(outside)}' feeds the reduction, too, and something other than loops and conditions "
            f"stands between it and block '{cursor.node.name}'.",
            place=top.place,
        )
    feeding = {name for item in fed for name in free_vars(item.value)}
    is_lasting = is_constant(*(item.value for item in fed), function=top.function)
    feeding -= selected_by(cursor.node, loop).keys() if fed and is_lasting else set()
    wrong = feeding & (spatial | (loops_of(cursor.function).keys() - inside))
    if wrong or loop not in feeding:
        raise schedule_error(
            f"{_NAME}.mixed",
            f"What loop '{loop}' feeds in block '{cursor.node.name}' is also fed by "
            f"{', '.join(sorted(wrong)) or 'a let'}, which is no loop of its reduction.",
            place=top.place,
        )


def _require_extent(top: Cursor) -> None:
    known = {param.name for param in top.function.params}
    extent = top.node.extent
    is_known = free_vars(extent) <= known and not mentioned((extent,))
    if not is_known or integer_value(top.node.start) != 0:
        raise schedule_error(
            f"{_NAME}.extent",
            f"Loop '{top.node.var}' runs from {text_of(top.node.start)} on {text_of(extent)} times, "
            "for which no buffer can have a dimension.",
            hint=f"Split '{top.node.var}', and apply {_NAME} to the inner loop.",
            place=top.place,
        )


def _require_reducer(cursor: Cursor) -> Combining:
    found = combining_of(cursor.node, cursor.function)
    if found is None:
        raise schedule_error(
            f"{_NAME}.not_reducer",
            f"Block '{cursor.node.name}' is no reduction X[...] = X[...] op value by a known reducer.",
            place=cursor.place,
        )
    return found


def _require_elements(cursor: Cursor, found: Combining) -> Element:
    """What selects the elements that the block combines, each one point of its own."""
    elements = [required_element(cursor, term.buffer) for term in found.terms]
    for element in elements:
        missing = {item.var for item in element.iters} - determined_by(cursor, element.store)
        if missing or element.iters != elements[0].iters:
            at = ", ".join(map(text_of, element.store.indices))
            raise schedule_error(
                f"{_NAME}.not_proved",
                f"It is not proved that the points of block '{cursor.node.name}' select different "
                f"elements of '{element.store.buffer}'.",
                needs=f"{', '.join(sorted(missing))} follow from [{at}]",
                place=cursor.place,
            )
    known = {item.var for item in elements[0].iters}
    known |= {param.name for param in cursor.function.params}
    others = outer_writes(cursor.node.init) - {term.buffer for term in found.terms}
    if others or any(free_vars(stmt) - known for stmt in cursor.node.init):
        raise schedule_error(
            f"{_NAME}.init",
            f"The init of block '{cursor.node.name}' is about more than the element.",
            place=cursor.place,
        )
    if not cursor.node.init:
        for element in elements:
            require_existing(cursor, element)
    return elements[0]


def _require_one_start(cursor: Cursor, top: Cursor, element: Element) -> None:
    """The parts start once: outside of what is left of the reduction, loops select elements."""
    own = {top.node.var, *selected_by(cursor.node, top.node.var)}
    reducing = reduction_loops(cursor.node, values_at(cursor)) - own
    selecting = {name for item in element.iters for name in free_vars(item.value)}
    for found in reduction_nest(cursor).loops:
        if found.var in reducing:
            return
        if found.var not in selecting | {top.node.var} and integer_value(found.extent) != 1:
            raise schedule_error(
                f"{_NAME}.not_proved",
                f"It is not proved that the parts of block '{cursor.node.name}' start once.",
                needs=f"loop '{found.var}' selects an element, or runs inside of a loop of the reduction",
                hint="reorder moves loops.",
                place=top.place,
            )


def _require_axis(found: Combining, axis: int) -> None:
    most = min(len(term.indices) for term in found.terms)
    if not 0 <= axis <= most:
        raise schedule_error(
            f"{_NAME}.axis",
            f"The parts cannot be dimension {axis} of '{found.terms[0].buffer}'.",
            hint=f"Expected 0 to {most}.",
        )


def _combined(
    function: Function,
    cursor: Cursor,
    element: Element,
    *,
    found: Combining,
    parts: PartialBuffers,
    part: str,
) -> Stmt:
    """The nest that combines the parts."""
    dtypes = [identity.dtype for identity in found.identities]
    terms = [
        replace(term, value=Load(buffer.name, parts.element(term.indices, part), dtype))
        for term, buffer, dtype in zip(found.terms, parts.buffers, dtypes, strict=True)
    ]
    nest = copy_nest(
        cursor.node.name,
        (*element.iters, part_iterator(parts, part)),
        (found.statement(terms),),
        conditions=element.conditions,
        tiles=element.tiles,
        init=cursor.node.init,
        reduced=part,
        namer=namer_of(function),
    )
    named = rewrite(
        nest, lambda node: replace(node, name=cursor.node.name) if isinstance(node, Block) else None
    )
    return reassociating((named,))[0]

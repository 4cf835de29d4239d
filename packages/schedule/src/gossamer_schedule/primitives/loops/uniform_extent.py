"""`uniform_extent`: let a loop run equally often in all iterations of a loop around it."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import loops_outside_init
from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ONE, ZERO, index, index_var, integer_value
from gossamer_ir.core.conditions import TRUE
from gossamer_ir.nodes import (
    Binary,
    Block,
    BlockIter,
    Buffer,
    Expr,
    For,
    Function,
    Load,
    Range,
    Stmt,
    Store,
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.program_points import point_in_function
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial, require_zero_start
from gossamer_schedule.cursor.variable_values import values_in_block
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error, text_of
from gossamer_schedule.legality.loop_invariance import require_unchanged
from gossamer_schedule.legality.races import require_no_race_on_new
from gossamer_schedule.made_names import extent_name, longest_block_name
from gossamer_schedule.nests.copy_nest import IterationDomain, copy_nest, names_of_nest
from gossamer_schedule.nests.init_checks import blocks_with_init
from gossamer_schedule.predicates.block_predicates import less_than
from gossamer_schedule.predicates.bounded_body import with_bounded_iterations

MAX_INLINE = 8
"""The maximum number of iterations whose extents are operands of an expression."""


@primitive(stages=LOOP_STAGES)
def uniform_extent(
    root: Cursor[Function],
    loop: str,
    *,
    over: str,
    inline: bool = False,
    function: str | None = None,
) -> Change:
    """Let a loop run equally often in all iterations of loop `over` around it: as often as in the longest.

    The blocks inside get a predicate that skips the iterations past the old end, unless theirs does already.
    The loops can then be reordered, which lets lanes work on rows of different lengths: all lanes run until
    the longest row ends.

    The extent is computed before loop `over`, by block `<loop>_longest`, into buffer `<loop>_extent` in local
    memory. The buffer has one dimension for each loop outside of `over` on which the old extent depends. The
    result's names are the buffer, the block and its loop.

    With `inline`, the extent is an expression instead, the maximum of the extents in the iterations of
    `over`, which are at most 8. Facts about their sizes then hold for it. The result's name is
    that of the loop.

    Raises `ScheduleError` with a code `schedule.uniform_extent.*`:

    * `.kind`, `.start`: a loop is not serial, or does not start at 0
    * `.not_nested`: there is more than loops between `over` and the loop
    * `.uniform`: the extent does not depend on `over`
    * `.dependence`: the extent depends on a loop between, or on more than loops
    * `.extent`: a loop outside on which it depends does not start at 0, or its extent is not known before the
      function runs
    * `.inline`: with `inline`, the number of iterations of `over` is not a constant from 1 to 8
    * `.init`: an init runs before a loop outside of `over`, where the extent is not known yet
    * `.not_proved`: the extent may change while `over` runs, or concurrent iterations would share the buffer

    >>> from gossamer_testkit.examples import ROW_SUM
    >>> from gossamer_schedule.primitives.loops.reorder import reorder
    >>> from gossamer_schedule.primitives.loops.split import split
    >>> from gossamer_testkit.show import body_text
    >>> rows = split(ROW_SUM, "i", factors=(None, 8)).module
    >>> result = uniform_extent(rows, "j", over="i_1")
    >>> result.names
    ('j_extent', 'j_longest', 'i_1_c')
    >>> print(body_text(reorder(result.module, "j", "i_1").module))
    for i_0 in T.serial((m + 7) // 8):
        for i_1_c in T.serial(8):
            with T.block("j_longest"):
                vi_0_c, vi_1_c = T.axis.remap("SR", [i_0, i_1_c])
                with T.init():
                    j_extent[vi_0_c] = 0
                j_extent[vi_0_c] = T.max(j_extent[vi_0_c], T.if_then_else(vi_0_c * 8 + vi_1_c < m, indptr_data[vi_0_c * 8 + vi_1_c + 1] - indptr_data[vi_0_c * 8 + vi_1_c], 0))
        for j in T.serial(j_extent[i_0]):
            for i_1 in T.serial(8):
                with T.block("row_sum"):
                    vi = T.axis.spatial(m, i_0 * 8 + i_1)
                    vj = T.axis.reduce(indptr_data[vi + 1] - indptr_data[vi], j)
                    T.where(vi < m and T.if_then_else(vi < m, vj < indptr_data[vi + 1] - indptr_data[vi], False))
                    with T.init():
                        Y[vi] = 0.0
                    Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    """  # noqa: E501  (the script has no line breaks inside an expression)
    inner, outer = find_loop(root, loop=loop), find_loop(root, loop=over)

    require_serial(inner)
    require_zero_start(inner)
    require_serial(outer)
    require_zero_start(outer)
    _require_nest(outer, inner)
    around = _required_dependences(outer, inner)
    # All extents are now read before the loop, whose stores have not happened there.
    require_unchanged(outer.node, (inner.node.extent,), cursor=outer)
    _require_inits_inside(outer, inner)

    body = inner.node.body if _is_bound_implied(inner) else _bounded_body(inner.node)
    if inline:
        uniform = replace(inner.node, extent=_longest_extent(outer, inner), body=body)
        return Change(inner.replace_with((uniform,)), (loop,))
    return _with_extent_before(outer, inner, around, body=body)


def _longest_extent(outer: Cursor[For], inner: Cursor[For]) -> Expr:
    """Return the maximum of the extents of the inner loop in the iterations of the outer one."""
    over = outer.node
    count = integer_value(over.extent) or 0
    if not 1 <= count <= MAX_INLINE:
        raise schedule_error(
            "uniform_extent.inline",
            f"Loop '{over.var}' has {text_of(over.extent)} iterations; expected a constant from 1 to "
            f"{MAX_INLINE}, since the extent of each is an operand of the new one.",
            hint="Leave out inline, or split the loop.",
            place=outer.place,
        )
    longest = _extent_at(inner.node, over, iteration=0)
    for iteration in range(1, count):
        longest = Binary("max", longest, _extent_at(inner.node, over, iteration=iteration))
    return longest


def _extent_at(inner: For, over: For, *, iteration: int) -> Expr:
    """Return the extent of the inner loop in an iteration of the outer one."""
    extent: Expr = simplify(substitute(inner.extent, {over.var: index(iteration)}))
    return extent


def _with_extent_before(
    outer: Cursor[For], inner: Cursor[For], around: tuple[For, ...], *, body: tuple[Stmt, ...]
) -> Change:
    """Return the change to a loop with this body, whose extent is computed before the outer loop."""
    namer = namer_of(outer.function)
    name = inner.node.var
    buffer = Buffer(namer.fresh(extent_name(name)), _shape_of(around), "int64", scope="local")
    longest = _longest_nest(outer.node, inner.node, around, buffer=buffer, namer=namer)
    extent = Load(buffer.name, _indices_of(around), "int64")
    changed = inner.replace_with((replace(inner.node, extent=extent, body=body),))
    top = find_loop(changed, loop=outer.node.var)
    changed = top.replace_with((longest, top.node))
    function_with_buffer = replace(changed.node, buffers=(*changed.node.buffers, buffer))
    rewritten = changed.with_function(function_with_buffer)
    # In the changed function, since the buffer does not exist before.
    require_no_race_on_new(outer, rewritten, buffers={buffer.name})

    return Change(rewritten, (buffer.name, *names_of_nest(longest)))


def _require_nest(outer: Cursor[For], inner: Cursor[For]) -> None:
    """Refuse other statements between the loops: they could guard what the extent reads, or change it."""
    between = [step.parent for step in inner.steps_from(outer)]
    is_inside = outer.node in inner.loops
    if not is_inside or any(not isinstance(node, For) or len(node.body) != 1 for node in between):
        raise schedule_error(
            "uniform_extent.not_nested",
            f"Loop '{outer.node.var}' is not around loop '{inner.node.var}' with only loops between them.",
            place=inner.place,
        )


def _bounded_body(loop: For) -> tuple[Stmt, ...]:
    """Return the body of a loop, restricted to the iterations before its old end."""
    return with_bounded_iterations(loop.body, loop.var, extent=loop.extent, is_always_reached=True)


# Other statements: no bound is implied around them.
def _is_bound_implied(inner: Cursor[For]) -> bool:
    """Return whether the predicate of the block in a loop is proved to skip all iterations past its end, as
    after a split of the terms of a row. Nothing is read there that need not exist."""
    block, loops = inner.down("body", 0), []
    while isinstance(block.node, For):
        loops.append(block.node)
        block = block.down("body", 0)
    if not isinstance(block.node, Block) or any(
        len(loop.body) > 1 for loop in (inner.node, *loops)
    ):
        return False
    name, values = inner.node.var, values_in_block(block)
    predicate = resolve(block.node.predicate or TRUE, values)
    evaluated = [resolve(iterator.value, values) for iterator in block.node.iters]
    reads = collect(READS, predicate, *evaluated)
    bounds = [bound for loop in loops for bound in (loop.start, loop.extent)]
    if any(name in free_vars(expr) for expr in (*reads, *bounds)):
        return False
    point = point_in_function(inner.function)
    # Not the loop itself, whose new range is longer.
    for loop in loops:
        point.assume_range(loop, loop.extent)
    point.assume(predicate)
    return point.proves(less_than(index_var(name), inner.node.extent))


def _require_inits_inside(outer: Cursor[object], inner: Cursor[For]) -> None:
    """Refuse a block whose init runs before a loop outside of `outer`: it runs in copies of the loops around
    the block, before the extent is computed."""
    around = {loop.var for loop in outer.loops_in_block}
    for block in blocks_with_init(inner):
        if earlier := loops_outside_init(enclosed_block(block)) & around:
            raise schedule_error(
                "uniform_extent.init",
                f"The init of block '{block.node.name}' runs before loop '{min(earlier)}', and the extent of "
                f"loop '{inner.node.var}' would be computed inside it.",
                hint="Apply decompose_reduction before.",
                place=inner.place,
            )


def _required_dependences(outer: Cursor[For], inner: Cursor[For]) -> tuple[For, ...]:
    """Return the loops outside of `outer` on which the extent of the inner loop depends.

    Refuse an extent that does not depend on `outer`, or depends on anything but these loops and parameters.
    """
    extent = inner.node.extent
    used = free_vars(extent)
    if outer.node.var not in used:
        raise schedule_error(
            "uniform_extent.uniform",
            f"The extent {text_of(extent)} of loop '{inner.node.var}' does not depend on loop "
            f"'{outer.node.var}'.",
            place=inner.place,
        )
    around = tuple(item for item in outer.loops if item.var in used)
    param_names = {param.name for param in inner.function.params}
    others = used - param_names - {item.var for item in around} - {outer.node.var}
    if others:
        raise schedule_error(
            "uniform_extent.dependence",
            f"The extent {text_of(extent)} of loop '{inner.node.var}' also depends on {quote(others)}; "
            f"expected loop '{outer.node.var}' and loops outside of it.",
            place=inner.place,
        )
    for item in around:
        _require_dimension(item, outer)
    return around


def _require_dimension(loop: For, outer: Cursor[object]) -> None:
    """Refuse a loop whose iterations cannot be the indices of a dimension of the new buffer."""
    param_names = {param.name for param in outer.function.params}
    is_known = free_vars(loop.extent) <= param_names and is_constant(
        loop.extent, function=outer.function
    )
    if integer_value(loop.start) != 0 or not is_known:
        raise schedule_error(
            "uniform_extent.extent",
            f"Loop '{loop.var}' starts at {text_of(loop.start)} and has extent {text_of(loop.extent)}; "
            "expected start 0 and an extent that is known before the function runs.",
            place=outer.place,
        )


def _shape_of(around: tuple[For, ...]) -> tuple[Expr, ...]:
    return tuple(loop.extent for loop in around) or (ONE,)


def _indices_of(around: tuple[For, ...]) -> tuple[Expr, ...]:
    return tuple(index_var(loop.var) for loop in around) or (ZERO,)


def _longest_nest(
    over: For, inner: For, around: tuple[For, ...], *, buffer: Buffer, namer: Namer
) -> Stmt:
    """Return the nest that computes the largest extent of the inner loop over the iterations of `over`."""
    iter_names = {loop.var: f"v{loop.var}" for loop in (*around, over)}
    values: dict[str, Expr] = {loop: index_var(name) for loop, name in iter_names.items()}
    iters = tuple(
        BlockIter(iter_names[loop.var], "S", Range(ZERO, loop.extent), index_var(loop.var))
        for loop in (*around, over)
    )
    tiles = {iter_names[loop.var]: Range(index_var(loop.var), ONE) for loop in around}
    indices = tuple(substitute(index, values) for index in _indices_of(around))
    longest = Load(buffer.name, indices, "int64")
    # From 0, as a loop of negative extent has no iteration either.
    init = (Store(buffer.name, indices, ZERO),)
    update = Store(buffer.name, indices, Binary("max", longest, substitute(inner.extent, values)))
    return copy_nest(
        longest_block_name(inner.var),
        IterationDomain(iters, tiles=tiles),
        (update,),
        namer=namer,
        init=init,
        reduced=iter_names[over.var],
    )

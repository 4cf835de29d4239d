"""`convert_lanes`: make fixed vectors scalable, or scalable vectors fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.annotations import REMAINDER
from gossamer_ir.core.build import ZERO, index_var, integer_value
from gossamer_ir.nodes import Expr, For, Function, Stmt
from gossamer_ir.traversal.buffer_uses import outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_zero_start
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.races import require_no_race
from gossamer_schedule.nests.vector_nests import (
    VectorNest,
    required_vector_nests,
    with_nests_replaced,
)
from gossamer_schedule.nests.whole_loops import WholeLoop, required_whole_loop
from gossamer_schedule.primitives.loops.split import split_by
from gossamer_schedule.primitives.loops.vectorize import required_lanes, vectorize_loop
from gossamer_schedule.reductions.reassociation import combiner_of

CONVERTED_KINDS = ("serial", "parallel", "unrolled")
"""The kinds of loops over vectors."""


@primitive(stages=LOOP_STAGES)
def convert_lanes(
    root: Cursor[Function], outer: str, loop: str, *, lanes: int | str, function: str | None = None
) -> Change:
    """Give the vectors of a vectorized loop another number of lanes: fixed ones become scalable, or back.

    `loop` is vectorized, and `outer` is the loop over its vectors; where there is none, `add_unit_loop` makes
    one. `lanes` is that of `vectorize`: a number for fixed vectors, a text such as "4 * T.vscale()" or
    "native" for scalable ones. The result is that of splitting the loop over all elements by `lanes` in the
    first place. All loops keep their names; the result's names are those of the two loops.

    `outer` may contain several vectorized loops, also below other loops: the init of a tile, its update below
    a loop over a reduction, its copy. All get these lanes. Loops directly around lanes may number the vectors
    of one iteration of `outer`, as `k_1` does in `k_0 * 64 + k_1 * 16 + k_2`: they keep their extents, so
    that an iteration has as many vectors as before. An unrolled `outer` becomes serial if its extent is not a
    constant any longer.

    Raises `ScheduleError` with a code `schedule.convert_lanes.*`:

    * `.not_vectorized`: `loop` is not vectorized
    * `.not_nested`: `outer` does not contain `loop`, or contains more than vectorized loops and loops around
      them
    * `.kind`: `outer` is vectorized or bound to threads, or has a weight
    * `.index`: a block uses the loops otherwise than by `outer * lanes + loop`, or a loop in between depends
      on `outer`
    * `.start`: a loop does not start at 0
    * `.lanes`, `.text`, `.race`, `.not_reducer`, `.not_proved`: as for `vectorize`; `.lanes` also if the
      vectorized loops below `outer` have different numbers of lanes

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_schedule.primitives.loops.vectorize import vectorize
    >>> from gossamer_testkit.show import body_text
    >>> fixed = vectorize(SCALE, "i", lanes=16).module
    >>> print(body_text(fixed))
    for i_0 in T.serial((n + 15) // 16):
        for i_1 in T.vectorized(16):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 16 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    >>> scalable = convert_lanes(fixed, "i_0", "i_1", lanes="native").module
    >>> print(body_text(scalable))
    for i_0 in T.serial((n + (4 * T.vscale() - 1)) // (4 * T.vscale())):
        for i_1 in T.vectorized(4 * T.vscale()):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * (4 * T.vscale()) + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    >>> convert_lanes(scalable, "i_0", "i_1", lanes=16).module == fixed
    True
    """
    vectors, cursor = find_loop(root, loop=outer), find_loop(root, loop=loop)

    _require_vectors(vectors, cursor)
    require_zero_start(vectors)
    require_zero_start(cursor)
    nests = required_vector_nests(vectors)
    _require_same_lanes(vectors, nests)
    count = required_lanes(vectors if lanes == "native" else cursor, lanes)

    changed = _convert_nests(vectors, nests, count)

    return Change(changed, (outer, loop))


def _require_vectors(vectors: Cursor[For], cursor: Cursor[For]) -> None:
    """Refuse loops that are not one over vectors and one over their lanes."""
    outer, loop = vectors.node, cursor.node
    if loop.kind != "vectorized":
        raise schedule_error(
            "convert_lanes.not_vectorized",
            f"Loop '{loop.var}' is {loop.kind}, not vectorized.",
            hint="Use vectorize(lanes=).",
            place=cursor.place,
        )
    if outer.kind not in CONVERTED_KINDS or outer.weight is not None:
        what = "has a weight" if outer.weight is not None else f"is {outer.kind}"
        raise schedule_error(
            "convert_lanes.kind",
            f"Loop '{outer.var}' {what}, so its iterations cannot become vectors of other lanes.",
            hint=f"Expected a loop without a weight that is {', '.join(CONVERTED_KINDS[:-1])} or "
            f"{CONVERTED_KINDS[-1]}.",
            place=vectors.place,
        )
    if not any(parent is outer for parent in cursor.parents):
        raise schedule_error(
            "convert_lanes.not_nested",
            f"Loop '{outer.var}' does not contain loop '{loop.var}'.",
            hint="Give the loop over vectors first, then that over lanes.",
            place=vectors.place,
        )


def _require_same_lanes(vectors: Cursor[For], nests: list[VectorNest]) -> None:
    """Refuse nests of different numbers of elements: an iteration of the outer loop is for those of all."""
    first, *others = nests
    for nest in others:
        if affine_of(nest.elements) != affine_of(first.elements):
            raise schedule_error(
                "convert_lanes.lanes",
                f"In an iteration of loop '{vectors.node.var}', loop '{first.lanes.var}' is for "
                f"{text_of(first.elements)} elements, and '{nest.lanes.var}' for {text_of(nest.elements)}.",
                hint="Only vectorized loops over the same elements can be converted together.",
                place=vectors.place,
            )


def _convert_nests(
    vectors: Cursor[For], nests: list[VectorNest], count: Affine
) -> Cursor[Function]:
    """Split the elements of each nest by other lanes, below one loop over vectors.

    In between, each nest is a loop over all elements, without the outer loop. Other loops are around it then:
    where vectors are independent of each other, it does not matter which of them run first.
    """
    wholes = _whole_loops(vectors, nests)
    bounds = {whole.bound for whole in wholes.values()}
    bound = bounds.pop() if len(bounds) == 1 else None
    outer = vectors.node
    loops = {
        nest.lanes.var: wholes[nest.lanes.var].loop(outer, nest, bound=bound) for nest in nests
    }
    if outer.body != (nests[0].loops[0],) or outer.kind == "parallel":
        _require_independent(vectors, loops)
    body = with_nests_replaced(outer.body, lambda nest: (loops[nest.lanes.var],))
    root: Cursor[Function] = vectors.replace_run(1, body)
    numbers = namer_of(root.function)
    made = {numbers.fresh(f"{nest.lanes.var}_vector"): nest for nest in nests}
    for name, nest in made.items():
        root = _split_elements(root, nest, names=(name, loops[nest.lanes.var].var), count=count)

    return _below_one_loop(root, vectors, made)


def _whole_loops(vectors: Cursor[For], nests: list[VectorNest]) -> dict[str, WholeLoop]:
    """Return the loop over the elements of each nest, by its loop over lanes."""
    namer = namer_of(vectors.function)
    return {
        nest.lanes.var: required_whole_loop(
            find_loop(vectors.top, loop=nest.lanes.var),
            vectors.node,
            nest,
            namer.fresh(f"{nest.lanes.var}_element"),
        )
        for nest in nests
    }


def _require_independent(vectors: Cursor[For], loops: Mapping[str, For]) -> None:
    """Refuse elements that use each other's results: their order may change. Those that are only combined
    may be in any order."""
    name = vectors.node.var

    def element_body(nest: VectorNest) -> tuple[Stmt, ...]:
        loop = loops[nest.lanes.var]
        return substitute_body(loop.body, {loop.var: index_var(name)})

    extent = next(iter(loops.values())).extent
    body = with_nests_replaced(vectors.node.body, element_body)
    merged = vectors.replace_with((For(name, ZERO, extent, body),))
    if any(combiner_of(body, buffer) is None for buffer in outer_writes(body)):
        require_no_race(find_loop(merged, loop=name))


def _split_elements(
    root: Cursor[Function], nest: VectorNest, *, names: tuple[str, str], count: Affine
) -> Cursor[Function]:
    """Split a loop over elements into a loop of the first name over vectors, those that number them, and
    lanes."""
    vector, element = names
    extents = tuple(affine_of(loop.extent) for loop in nest.numbering)
    made = (vector, *(loop.var for loop in nest.loops))
    parts = split_by(find_loop(root, loop=element), (None, *extents, count), names=made)
    remainder: Any = dict(nest.lanes.annotations).get(REMAINDER, "scalar")
    root = vectorize_loop(
        parts.root, nest.lanes.var, remainder=remainder, require=require_no_race
    ).root
    for loop in nest.numbering:
        at = find_loop(root, loop=loop.var)
        kept = replace(at.node, kind=loop.kind, annotations=loop.annotations)
        root = at.replace_with((kept,))
    return root


def _below_one_loop(
    root: Cursor[Function], vectors: Cursor[For], made: Mapping[str, VectorNest]
) -> Cursor[Function]:
    """Return the program with one loop over vectors instead of that of each nest."""
    at: Cursor[object] = root
    for step in vectors.path:
        at = at.down(step.field, step.index)
    size = len(vectors.node.body)
    outer = vectors.node
    extents: list[Expr] = []

    def without(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For) and stmt.var in made:
                extents.append(stmt.extent)
                result += substitute_body(stmt.body, {stmt.var: index_var(outer.var)})
            elif isinstance(stmt, For):
                result.append(replace(stmt, body=without(stmt.body)))
            else:
                result.append(stmt)
        return tuple(result)

    body = without(at.body[at.index : at.index + size])
    is_constant = integer_value(extents[0]) is not None
    kind = "serial" if outer.kind == "unrolled" and not is_constant else outer.kind
    loop: For = replace(outer, extent=extents[0], kind=kind, body=body)
    return at.replace_run(size, (loop,))

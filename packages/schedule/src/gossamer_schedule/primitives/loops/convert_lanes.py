"""`convert_lanes`: make fixed vectors scalable, or scalable vectors fixed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import by_vars
from gossamer_ir.arith.affine import affine_of, expr_of, times
from gossamer_ir.core.annotations import REST
from gossamer_ir.core.build import index_var, mul
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.dependence.mixed_radix import ceildiv_by
from gossamer_ir.nodes import Block, BlockIter, Compare, Expr, For, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial, require_zero_start
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.races import require_no_race
from gossamer_schedule.primitives.loops.split import split_by
from gossamer_schedule.primitives.loops.vectorize import required_lanes, vectorize_loop


@primitive(stages=LOOP_STAGES)
def convert_lanes(
    root: Cursor, outer: str, loop: str, *, lanes: int | str, function: str | None = None
) -> Change:
    """Give the vectors of a vectorized loop another number of lanes: fixed ones become scalable, or back.

    `loop` is vectorized, and `outer` is the serial loop over its vectors, which contains nothing else.
    `lanes` is that of `vectorize`: a number for fixed vectors, a text such as "4 * T.vscale()" or "native"
    for scalable ones. The result is that of splitting the loop over all elements by `lanes` in the first
    place; both loops keep their names, which are the result's.

    Raises `ScheduleError` with a code `schedule.convert_lanes.*`:

    * `.not_vectorized`: `loop` is not vectorized
    * `.not_nested`: `outer` contains more than `loop`
    * `.index`: a block uses the loops otherwise than by `outer * lanes + loop`
    * `.start`: a loop does not start at 0
    * `.lanes`, `.text`, `.race`, `.not_reducer`, `.not_proved`: as for `vectorize`

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

    require_serial(vectors)
    _require_vectors(vectors, cursor)
    for each in (vectors, cursor):
        require_zero_start(each)
    count = required_lanes(cursor, lanes)
    whole = _required_whole_loop(vectors, cursor)

    merged = find_loop(vectors.replaced_by((whole,)), loop=whole.var)
    parts = split_by(merged, (None, count), names=(outer, loop))
    rest: Any = dict(cursor.node.annotations).get(REST, "scalar")
    change = vectorize_loop(parts.root, loop, rest, require=require_no_race)

    return Change(change.root, (outer, loop))


def _require_vectors(vectors: Cursor, cursor: Cursor) -> None:
    """Refuse loops that are not one over vectors and one over their lanes."""
    loop = cursor.node
    if loop.kind != "vectorized":
        raise schedule_error(
            "convert_lanes.not_vectorized",
            f"Loop '{loop.var}' is {loop.kind}, not vectorized.",
            hint="Use vectorize(lanes=).",
            place=cursor.place,
        )
    if vectors.node.body != (loop,):
        raise schedule_error(
            "convert_lanes.not_nested",
            f"Loop '{vectors.node.var}' does not contain loop '{loop.var}' and nothing else.",
            hint="Convert lanes before other statements move into the loop over vectors.",
            place=vectors.place,
        )


def _required_whole_loop(vectors: Cursor, cursor: Cursor) -> For:
    """Return the loop over all elements, which a split by the old lanes turns into the two loops."""
    outer, inner = vectors.node, cursor.node
    element = namer_of(cursor.function).fresh(f"{inner.var}_element")
    blocks = tuple(
        _required_block(stmt, element, outer=vectors, inner=cursor) for stmt in inner.body
    )
    lanes = affine_of(inner.extent)
    # Lanes past a bound did nothing, and there is no vector of such lanes only.
    bounded = [_bounds_in(block, element)[:1] for block in blocks]
    bounds = {bound for found in bounded for _, bound in found}
    bound = bounds.pop() if all(bounded) and len(bounds) == 1 else None
    extent = mul(outer.extent, inner.extent)
    if bound is not None and outer.extent == ceildiv_by(bound, lanes):
        extent = bound
        blocks = tuple(
            _without(block, part) for block, ((part, _),) in zip(blocks, bounded, strict=True)
        )
    whole: For = replace(outer, var=element, extent=extent, body=blocks)
    return whole


def _required_block(stmt: Stmt, element: str, *, outer: Cursor, inner: Cursor) -> Block:
    """Return a block with its iterators in terms of the loop over all elements."""
    names = {outer.node.var, inner.node.var}
    if isinstance(stmt, Block):
        iters = [
            _with_element(iterator, element, outer.node, inner.node) for iterator in stmt.iters
        ]
        kept = [iterator for iterator in iters if iterator is not None]
        changed = replace(stmt, iters=tuple(kept))
        if len(kept) == len(iters) and not names & free_vars(changed):
            return changed
    raise schedule_error(
        "convert_lanes.index",
        f"Loop '{inner.node.var}' contains something that is not a block in which the loops only "
        f"occur as {outer.node.var} * lanes + {inner.node.var}.",
        hint="Convert lanes before other primitives change what the lanes compute.",
        place=inner.place,
    )


def _with_element(iterator: BlockIter, element: str, outer: For, inner: For) -> BlockIter | None:
    """Return an iterator with `element` for `outer * lanes + inner`; None if its value is not linear in
    that."""
    names = (outer.var, inner.var)
    form = by_vars(affine_of(iterator.value), names)
    if not form.terms and not form.opaque:
        return iterator
    step = form.terms.get(inner.var)
    if form.opaque or step is None:
        return None
    if form.terms.get(outer.var) != times(step, affine_of(inner.extent)):
        return None
    total = form.base + times(step, affine_of(index_var(element)))
    return replace(iterator, value=expr_of(total))


def _bounds_in(block: Block, element: str) -> list[tuple[Expr, Expr]]:
    """Return the conditions of a block that the element is below a bound, each with the bound."""
    values = {iterator.var: iterator.value for iterator in block.iters}
    parts = [part for part in conjuncts(block.predicate) if isinstance(part, Compare)]
    sides = [(part, resolve(part.lhs, values), resolve(part.rhs, values)) for part in parts]
    return [
        (part, bound)
        for part, below, bound in sides
        if part.op == "lt" and below == index_var(element) and element not in free_vars(bound)
    ]


def _without(block: Block, condition: Expr) -> Block:
    """Return a block without a part of its predicate."""
    parts = [part for part in conjuncts(block.predicate) if part != condition]
    return replace(block, predicate=conjunction(*parts))

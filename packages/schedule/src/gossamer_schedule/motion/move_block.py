"""Moves a block, with the loops that contain nothing else, into another loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import Values
from gossamer_ir.analysis.loops_by_name import loops_of, loops_within
from gossamer_ir.arith.affine import UNIT, affine_of, product_of
from gossamer_ir.core.build import add, index_var, integer_value, without_guard
from gossamer_ir.dependence.disjointness import verdict, written_accesses
from gossamer_ir.nodes import (
    Allocate,
    Block,
    BlockIter,
    Expr,
    For,
    Let,
    Load,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.effects import outer_writes
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.bounds.predicates import bounded_by_domain, guarded
from gossamer_schedule.cursor.cursor import Cursor, name_of
from gossamer_schedule.dependence.access import buffers_named, values_at, values_within
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.regions.produced import ProducedRange


def is_recurrence(block: Block) -> bool:
    """Return whether the block accesses several elements of a buffer that it writes."""
    stored = outer_writes((block,))
    used = {
        (found.buffer, found.indices)
        for found in collect((Load, Store), block)
        if found.buffer in stored
    }
    return len(used) > len(stored)


def require_plain_loops(target: Cursor) -> None:
    """Refuse a target loop, or a loop around it, that is neither serial nor unrolled."""
    for found in (*target.loops, target.node):
        if found.kind not in ("serial", "unrolled"):
            raise schedule_error(
                f"{target.primitive}.kind",
                f"Loop '{found.var}' is {found.kind}; {target.primitive} moves blocks only into serial and "
                "unrolled loops.",
                hint=f"Apply {target.primitive} before '{found.var}' is made {found.kind}.",
                place=target.place,
            )


def require_own_loops(cursor: Cursor) -> tuple[For, ...]:
    """Return the loops that contain nothing but the block, or refuse the block.

    One iterator must be bound to each of them, and the loop must run over the domain of the iterator.
    """
    own: list[For] = []
    for found in reversed(cursor.nest):
        if len(found.body) != 1:
            break
        own.insert(0, found)
    bound = [_bound(iterator) for iterator in cursor.node.iters]
    is_plain = all(
        found.kind == "serial" and integer_value(found.start) == 0 and bound.count(found.var) == 1
        for found in own
    )
    if not is_plain or any(not isinstance(iterator.value, Var) for iterator in cursor.node.iters):
        raise schedule_error(
            f"{cursor.primitive}.binding",
            f"The iterators of block '{cursor.node.name}' do not correspond to its loops one to one.",
            hint=f"Apply {cursor.primitive} before its loops are split or get another kind.",
            place=cursor.place,
        )
    loops = {found.var: found for found in own}
    for found in cursor.node.iters:
        loop = loops.get(_bound(found))
        if loop is not None and not _is_domain(loop, found, values_within(cursor)):
            raise schedule_error(
                f"{cursor.primitive}.binding",
                f"Loop '{loop.var}' does not run over the whole domain of iterator '{found.var}' of block "
                f"'{cursor.node.name}'.",
                place=cursor.place,
            )
    return tuple(own)


def _is_domain(loop: For, item: BlockIter, values: Values) -> bool:
    """Return whether a loop runs over the domain of an iterator."""
    extents = (without_guard(loop.extent), item.domain.extent)
    own, whole = (affine_of(resolve(extent, values)) for extent in extents)
    return integer_value(item.domain.start) == 0 and own == whole


def nest_beside(target: Cursor, moving: Cursor) -> Cursor | None:
    """Return the cursor at the nest around a target loop in the body that contains the moving nest.

    None if the target is not below that body, or if other statements than loops are between.
    """
    parent, name, _ = moving.path[-1]
    for at, (above, field, _) in enumerate(target.path):
        if above is parent and field == name:
            between = [found for found, _, _ in target.path[at + 1 :]]
            is_nest = all(isinstance(found, For) for found in between)
            return target.up(len(target.path) - at - 1) if is_nest else None
    return None


def position(cursor: Cursor) -> int:
    """Return the index of a statement in its body."""
    return cursor.path[-1][2]


def path_between(target: Cursor, top: Cursor) -> tuple[For, ...]:
    """Return the loops from the one at `top` down to the one at `target`."""
    inner = tuple(found for found, _, _ in target.path[len(top.path) :])
    return (*inner, target.node)


def require_bound_before(moving: Cursor, top: Cursor) -> None:
    """Refuse to move a statement before something that it uses is bound or allocated.

    The statement moves to the nest at `top`, which precedes it in the same body.

    Raises `.scope`.
    """
    between = top.siblings[position(top) + 1 : position(moving)]
    bound = {found.var.name for found in between if isinstance(found, Let)}
    bound |= {found.buffer.name for found in between if isinstance(found, Allocate)}
    late = bound & (free_vars(moving.node) | buffers_named((moving.node,)))
    if late:
        raise schedule_error(
            f"{moving.primitive}.scope",
            f"The moved nest uses {', '.join(sorted(late))}, which is defined only after loop nest "
            f"'{name_of(top.node)}'.",
        )


def conflicting_buffer(top: Cursor, path: Sequence[For], *, buffers: Set[str]) -> str:
    """Return the first of some buffers of which iterations of a loop on the path may share an element.

    Only buffers that the nest at `top` writes can conflict; the result is empty if there is none.
    """
    if not buffers:
        return ""
    loops = loops_of(top.function)
    written = written_accesses((top.node,), values=values_at(top), function=top.function)
    for loop in path:
        varying = loops_within((loops[loop.var],))
        for name in sorted(buffers & written.keys()):
            found = verdict(loop.var, written[name], varying=varying, function=top.function)
            if found != "disjoint":
                return name
    return ""


def moved_nest(
    cursor: Cursor, own: Sequence[For], ranges: Mapping[str, ProducedRange]
) -> tuple[Stmt, tuple[str, ...]]:
    """Return the block restricted to the ranges of its iterators, in the loops that remain, and their names.

    A loop whose range has one value is removed. A range that may exceed the domain gets a condition.
    """
    block: Block = cursor.node
    bound = {_bound(iterator): (iterator, ranges.get(iterator.var)) for iterator in block.iters}
    values: dict[str, Expr] = {}
    kept: list[For] = []
    for loop in own:
        found, part = bound[loop.var]
        extent = loop.extent
        for name in reversed(values):  # an extent may depend on the loops outside
            extent = _at(extent, name, values[name], bound=bound[name], iters=block.iters)
        if part is None or part.count is None:
            kept.append(replace(loop, extent=extent))
        elif part.count == UNIT:
            values[loop.var] = part.base
        else:
            kept.append(replace(loop, extent=product_of(part.count)))
            values[loop.var] = add(part.base, index_var(loop.var))
        if part is not None and not part.is_within:
            block = bounded_by_domain(block, found)
    nest: Stmt = substitute(block, values)
    for loop in reversed(kept):
        nest = replace(loop, body=(nest,))
    return nest, tuple(loop.var for loop in kept)


def _at(
    extent: Expr,
    loop: str,
    value: Expr,
    *,
    bound: tuple[BlockIter, ProducedRange | None],
    iters: Sequence[BlockIter],
) -> Expr:
    """Return the extent of an inner loop at the new value of an outer loop's variable."""
    found, part = bound
    if part is not None and not part.is_within:
        whole = substitute(found.domain.extent, {item.var: item.value for item in iters})
        extent = guarded(extent, loop, extent=whole)
    placed: Expr = substitute(extent, {loop: value})
    return placed


def _bound(found: BlockIter) -> str:
    """Return the variable of the loop that an iterator is bound to; empty if there is none."""
    return found.value.name if isinstance(found.value, Var) else ""

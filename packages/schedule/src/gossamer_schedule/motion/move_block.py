"""Moves a block, with the loops that contain nothing else, into another loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import ValuesOfVars
from gossamer_ir.analysis.bounds.loops_by_name import loops_of, loops_within
from gossamer_ir.arith.affine import ONE_FORM, affine_of, product_of
from gossamer_ir.core.build import add, index_var, integer_value, unconditional_extent, var_name
from gossamer_ir.dependence.disjointness import disjointness, written_accesses
from gossamer_ir.nodes import Block, BlockIter, Expr, For, Stmt, Var
from gossamer_ir.traversal.access_types import ACCESSES, ELEMENT_ACCESSES
from gossamer_ir.traversal.buffer_uses import buffers_named, buffers_read_in, outer_writes
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import names_after
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor, name_of
from gossamer_schedule.cursor.variable_values import values_at, values_in_block
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.predicates.block_predicates import with_domain_bound, zero_beyond_end
from gossamer_schedule.regions.produced import ProducedRange


def updates_old_values(block: Block) -> bool:
    """Return whether the block updates elements that already have a value.

    It computes them from scratch if it only assigns them, or is a reduction with an init.
    """
    stored = outer_writes((block,))
    is_reading = bool(stored & buffers_read_in(block.body))
    has_reduction = any(iterator.kind == "R" for iterator in block.iters)
    return is_recurrence(block) or ((is_reading or has_reduction) and not block.init)


def is_recurrence(block: Block) -> bool:
    """Return whether the block accesses several elements of a buffer that it writes."""
    stored = outer_writes((block,))
    accesses = [access for access in collect(ACCESSES, block) if access.buffer in stored]
    if not all(isinstance(access, ELEMENT_ACCESSES) for access in accesses):
        return True  # a search reads several elements
    return len({(access.buffer, access.indices) for access in accesses}) > len(stored)


def require_plain_loops(target: Cursor[For]) -> None:
    """Refuse a target loop, or a loop around it, that is neither serial nor unrolled."""
    for loop in (*target.loops, target.node):
        if loop.kind not in ("serial", "unrolled"):
            raise schedule_error(
                f"{target.primitive}.kind",
                f"Loop '{loop.var}' is {loop.kind}; {target.primitive} moves blocks only into serial and "
                "unrolled loops.",
                hint=f"Apply {target.primitive} before '{loop.var}' is made {loop.kind}.",
                place=target.place,
            )


def required_own_loops(cursor: Cursor[Block]) -> tuple[For, ...]:
    """Return the loops that contain nothing but the block, or refuse the block.

    One iterator must be bound to each of them, and the loop must run over the domain of the iterator.
    """
    own_loops: list[For] = []
    for loop in reversed(cursor.nest):
        # Other statements of this loop would move, too.
        if len(loop.body) != 1:
            break
        own_loops.insert(0, loop)
    bound = [var_name(iterator.value) for iterator in cursor.node.iters]
    is_plain = all(
        loop.kind == "serial" and integer_value(loop.start) == 0 and bound.count(loop.var) == 1
        for loop in own_loops
    )
    if not is_plain or any(not isinstance(iterator.value, Var) for iterator in cursor.node.iters):
        raise schedule_error(
            f"{cursor.primitive}.binding",
            f"The iterators of block '{cursor.node.name}' do not correspond to its loops one to one.",
            hint=f"Apply {cursor.primitive} before its loops are split or get another kind.",
            place=cursor.place,
        )
    by_name: dict[str | None, For] = {loop.var: loop for loop in own_loops}
    for iterator in cursor.node.iters:
        bound_loop = by_name.get(var_name(iterator.value))
        if bound_loop is not None and not _covers_domain(
            bound_loop, iterator, values_in_block(cursor)
        ):
            raise schedule_error(
                f"{cursor.primitive}.binding",
                f"Loop '{bound_loop.var}' does not run over the whole domain of iterator '{iterator.var}' of "
                f"block '{cursor.node.name}'.",
                place=cursor.place,
            )
    return tuple(own_loops)


def _covers_domain(loop: For, iterator: BlockIter, values: ValuesOfVars) -> bool:
    """Return whether a loop runs over the domain of an iterator."""
    extents = (unconditional_extent(loop.extent), iterator.domain.extent)
    # The extent is in terms of loops, the domain in terms of iterators: both are compared by their values.
    loop_extent, domain_extent = (affine_of(resolve(extent, values)) for extent in extents)
    return integer_value(iterator.domain.start) == 0 and loop_extent == domain_extent


def nest_beside(target: Cursor[object], moving: Cursor[object]) -> Cursor[Any] | None:
    """Return the cursor at the nest around a target loop in the body that contains the moving nest.

    None if the target is not below that body, or if other statements than loops are between.
    """
    for nest in map(target.up, reversed(range(len(target.path)))):
        if nest.is_beside(moving):
            # Under a condition the block would run only where the condition holds,
            # or where it did not before.
            is_nest = all(isinstance(step.parent, For) for step in target.steps_from(nest))
            return nest if is_nest else None
    return None


def required_nest_beside(
    cursor: Cursor[Block],
    target: Cursor[For],
    own_loops: Sequence[For],
    *,
    side: Literal["before", "after"],
) -> Cursor[Stmt]:
    """Return the cursor at the nest around a target loop, in the body that contains the block's nest.

    The block, whose nest has the loops `own_loops`, must be on the given side of the other nest.

    Raises `.scope`.
    """
    moving = cursor.up(len(own_loops))
    top = nest_beside(target, moving)
    if top is not None and (moving.precedes(top) if side == "before" else top.precedes(moving)):
        return top
    raise schedule_error(
        f"{cursor.primitive}.scope",
        f"Block '{cursor.node.name}' is not {side} the nest of loop '{target.node.var}', in the same body.",
        hint=f"Choose a loop of a nest that {'follows' if side == 'before' else 'precedes'} the block.",
        place=cursor.place,
    )


def path_between(target: Cursor[object], top: Cursor[object]) -> tuple[For, ...]:
    """Return the loops from the one at `top` down to the one at `target`."""
    inner = tuple(step.parent for step in target.steps_from(top))
    return (*inner, target.node)


def require_bound_before(moving: Cursor[Stmt], top: Cursor[Stmt]) -> None:
    """Refuse to move a statement before something that it uses is bound or allocated.

    The statement moves to the nest at `top`, which precedes it in the same body.

    Raises `.scope`.
    """
    between = top.siblings_until(moving)
    bound = {name for stmt in between for name in names_after(stmt)}
    # Names are visible from their binding to the end of the body.
    late = bound & (free_vars(moving.node) | buffers_named(moving.node))
    if late:
        raise schedule_error(
            f"{moving.primitive}.scope",
            f"The moved nest uses {', '.join(sorted(late))}, which is defined only after loop nest "
            f"'{name_of(top.node)}'.",
        )


def buffer_shared_by_iterations(
    top: Cursor[Stmt], path: Sequence[For], *, buffers: Set[str]
) -> str | None:
    """Return the first of some buffers of which iterations of a loop on the path may share an element.

    Only buffers that the nest at `top` writes can conflict; None if there is none.
    """
    if not buffers:
        return None
    loops = loops_of(top.function)
    written = written_accesses((top.node,), values=values_at(top), function=top.function)
    for loop in path:
        varying = loops_within((loops[loop.var],))
        for name in sorted(buffers & written.keys()):
            accesses = written[name]
            if (
                disjointness(loop.var, accesses, varying=varying, function=top.function)
                != "disjoint"
            ):
                return name
    return None


def moved_nest(
    cursor: Cursor[Block], own_loops: Sequence[For], ranges: Mapping[str, ProducedRange]
) -> tuple[Stmt, tuple[str, ...]]:
    """Return the block restricted to the ranges of its iterators, in the loops that remain, and their names.

    A loop whose range has one value is removed. A range that may exceed the domain gets a condition.
    """
    block = cursor.node
    bound = {
        var_name(iterator.value): (iterator, ranges.get(iterator.var)) for iterator in block.iters
    }
    values: dict[str, Expr] = {}
    kept: list[For] = []
    for loop in own_loops:
        iterator, part = bound[loop.var]
        extent = loop.extent
        for name in reversed(values):  # an extent may depend on the loops outside
            extent = _extent_at(extent, name, values[name], bound=bound[name], iters=block.iters)
        if part is None or part.count is None:
            kept.append(replace(loop, extent=extent))
        elif part.count == ONE_FORM:
            # One value: no loop is left, and the value stands for its variable.
            values[loop.var] = part.base
        else:
            kept.append(replace(loop, extent=product_of(part.count)))
            values[loop.var] = add(part.base, index_var(loop.var))
        # The last range may end beyond the domain, since ranges have one length.
        if part is not None and not part.is_within:
            block = with_domain_bound(block, iterator)
    nest: Stmt = substitute(block, values)
    for loop in reversed(kept):
        nest = replace(loop, body=(nest,))
    return nest, tuple(loop.var for loop in kept)


def _extent_at(
    extent: Expr,
    loop_name: str,
    value: Expr,
    *,
    bound: tuple[BlockIter, ProducedRange | None],
    iters: Sequence[BlockIter],
) -> Expr:
    """Return the extent of an inner loop at the new value of an outer loop's variable."""
    bound_iterator, part = bound
    if part is not None and not part.is_within:
        whole = substitute(
            bound_iterator.domain.extent, {iterator.var: iterator.value for iterator in iters}
        )
        extent = zero_beyond_end(extent, loop_name, extent=whole)
    extent_at_value: Expr = substitute(extent, {loop_name: value})
    return extent_at_value

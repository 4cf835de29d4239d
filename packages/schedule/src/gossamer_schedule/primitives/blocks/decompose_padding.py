"""`decompose_padding`: split a padding block into one that fills and one that stores the values."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.invariants import buffers_written_in, changing_buffers
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.nodes import Block, Expr, For, Function, IfThenElse, Select, Stmt, Store
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import contains
from gossamer_schedule.cursor.cursor_at import Cursor, function_with_replaced
from gossamer_schedule.cursor.find import find_block, find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.cursor.used_buffers import buffers_used_by, stmts_beside
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error
from gossamer_schedule.legality.distinct_stores import require_distinct_stores
from gossamer_schedule.nests.block_nest import BlockNest, required_enclosing_nest
from gossamer_schedule.nests.init_nest import init_nest
from gossamer_schedule.predicates.block_predicates import conjunction_with_inner
from gossamer_schedule.predicates.loop_bounds import loop_bound_of, shortened_loop


@primitive(stages=LOOP_STAGES)
def decompose_padding(
    root: Cursor[Function], block: str, *, loop: str, function: str | None = None
) -> Change:
    """Split a block that stores `if_then_else(inside, value, padding)` into a fill and a store of the value.

    Block `<block>_pad` stores the padding to all elements, in loops `<l>_pad` directly before `loop`, a
    loop around the block. The block then stores the value where the condition `inside` holds. Loops that
    contain only the block are shortened if the condition bounds their iterators. The result's names are
    the new block and its loops.

    A `Select` evaluates both operands; afterward the value is computed only inside. A program that
    stopped only because computing the value elsewhere read out of bounds therefore no longer stops.

    Raises `ScheduleError` with a code `schedule.decompose_padding.*`:

    * `.pattern`: the block does something else, or the padding is read from a buffer
    * `.not_enclosing`: the loop is not around the block, or other statements are in between
    * `.other_access`: the value, or another statement in the loop, uses the buffer
    * `.not_proved`: two points may store to one element, or a bound or condition in between may change

    >>> from gossamer_testkit.examples import PADDED
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(PADDED))
    for i in T.serial(16):
        with T.block("pad"):
            vi = T.axis.spatial(16, i)
            Y[vi] = T.if_then_else(vi >= 2 and vi < 14, X[vi - 2], 0.0)
    >>> print(body_text(decompose_padding(PADDED, "pad", loop="i").module))
    for i_pad in T.serial(16):
        with T.block("pad_pad"):
            vi_pad = T.axis.spatial(16, i_pad)
            Y[vi_pad] = 0.0
    for i in T.serial(12):
        with T.block("pad"):
            vi = T.axis.spatial(16, i + 2)
            Y[vi] = X[vi - 2]
    """
    cursor = find_block(root, block=block)
    top = find_loop(root, loop=loop)

    # The form of the store first: the other checks need its parts.
    padded = _required_padded_store(cursor)
    nest = required_enclosing_nest(cursor, top)
    _require_no_other_use(nest, padded)
    _require_unchanged_conditions(nest, padded)
    require_distinct_stores(cursor, padded.buffer, nest=nest.loops)

    # As an init, the padding gets a nest over all elements that the block stores, without its other loops.
    filled = replace(cursor.node, init=(Store(padded.buffer, padded.indices, padded.padding),))
    fill, names = init_nest(
        replace(cursor, node=filled), nest.enclosing, namer=namer_of(root.function), suffix="pad"
    )
    copy = _interior_nest(nest, padded)

    changed = function_with_replaced(top, (*fill, copy))
    return Change(root.with_function(changed), names)


class _PaddedStore(msgspec.Struct, frozen=True):
    """A store to an element: `value` where the condition `inside` holds, otherwise `padding`."""

    buffer: str
    indices: tuple[Expr, ...]
    inside: Expr
    value: Expr
    padding: Expr


# Other expressions: refused.
def _required_padded_store(cursor: Cursor[Block]) -> _PaddedStore:
    """Return the parts of the padded store; refuse other blocks.

    The fill replaces an init and runs before the whole loop. Elements that a padding reads may have
    other values there. If several points of a reduction stored to one element, the last one might store the
    padding.
    """
    block = cursor.node
    match block.body:
        case (Store(value=IfThenElse() | Select() as choice, predicate=None) as store,) if (
            not block.init
            and all(iterator.kind == "S" for iterator in block.iters)
            and not contains(READS, choice.if_false)
        ):
            return _PaddedStore(
                store.buffer, store.indices, choice.condition, choice.if_true, choice.if_false
            )
    raise schedule_error(
        "decompose_padding.pattern",
        f"Block '{block.name}' is not a single store of T.if_then_else(inside, value, padding).",
        hint="Expected one store, only spatial iterators, no init, and padding that reads no buffer.",
        place=cursor.place,
    )


def _require_no_other_use(nest: BlockNest, padded: _PaddedStore) -> None:
    """Refuse other uses of the buffer in the loop: its padding is then stored before the loop."""
    block, others = nest.block.node, stmts_beside(nest.block, nest.top)
    conditions = tuple(part for part in (block.predicate, padded.inside) if part is not None)
    used = buffers_accessed(*padded.indices, padded.value, *conditions).union(
        *map(buffers_used_by, others)
    )
    if used & buffers_written_in((block,), nest.block.function):
        raise schedule_error(
            "decompose_padding.other_access",
            f"Buffer '{padded.buffer}' has other uses in loop '{nest.top.node.var}' than the store of block "
            f"'{block.name}'.",
            hint="Choose a loop that contains only the block.",
            place=nest.block.place,
        )


def _require_unchanged_conditions(nest: BlockNest, padded: _PaddedStore) -> None:
    """Refuse loops and conditions that may change: they are evaluated before the loop and again in it."""
    bounds = (part for loop in nest.loops for part in (loop.start, loop.extent))
    conditions = (*nest.conditions, *conjuncts(nest.block.node.predicate))
    iters = nest.block.node.iters
    evaluated = (*bounds, *conditions, *iters, *padded.indices)
    changed = changing_buffers((nest.top.node,), *evaluated, function=nest.block.function)
    if changed or nest.has_let:
        needs = [f"{quote(changed)} is not written in the loop"] if changed else []
        needs += ["no let is between the loop and the block"] if nest.has_let else []
        raise schedule_error(
            "decompose_padding.not_proved",
            f"Cannot prove that the padding of block '{nest.name}' may be stored before loop "
            f"'{nest.top.node.var}'.",
            needs=" and ".join(needs),
            place=nest.block.place,
        )


def _interior_nest(nest: BlockNest, padded: _PaddedStore) -> Stmt:
    """Return the nest that stores the value, its loops shortened to the bounds that the condition gives."""
    block = nest.block.node
    loops = _own_loops(nest)
    parts = [(part, loop_bound_of(part, block, loops)) for part in conjuncts(padded.inside)]
    remaining = [part for part, bound in parts if bound is None]
    predicate = conjunction_with_inner(block.predicate, remaining)
    store = Store(padded.buffer, padded.indices, padded.value)
    interior: Stmt = replace(block, body=(store,), predicate=predicate)
    for loop in reversed(loops):
        bounds = [bound for _, bound in parts if bound is not None and bound.loop == loop.var]
        interior = shortened_loop(loop, bounds, interior)
    return _with_stmt(nest, nest.block.up(len(loops)), interior)


def _with_stmt(nest: BlockNest, replaced_at: Cursor[object], stmt: Stmt) -> Stmt:
    """Return the outermost loop of a nest with the statement at a cursor replaced."""
    for step in reversed(replaced_at.steps_from(nest.top)):
        body = (*step.earlier, stmt, *step.body[step.index + 1 :])
        stmt = replace(step.parent, **{step.field: body})
    return stmt


def _own_loops(nest: BlockNest) -> tuple[For, ...]:
    """Return the innermost loops that contain only the block, outermost first."""
    own_loops: list[For] = []
    for loop in reversed(nest.block.nest[-len(nest.loops) :]):
        if len(loop.body) != 1 or not any(loop is inside for inside in nest.loops):
            break
        own_loops.insert(0, loop)
    return tuple(own_loops)

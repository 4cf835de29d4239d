"""`decompose_padding`: a block that pads becomes one that fills and one that copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gossamer_ir.analysis.invariants import changed_in, written_in
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import (
    ONE,
    ZERO,
    add,
    conjoined,
    conjuncts,
    index_var,
    integer_value,
    sub,
)
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import (
    Binary,
    Block,
    Compare,
    Expr,
    For,
    IfThenElse,
    Module,
    Select,
    Stmt,
    Store,
    Var,
)  # fmt: skip
from gossamer_ir.traversal.effects import READS
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import contains, free_vars, substitute_body
from gossamer_schedule.cursor.cursor import Cursor, replaced
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_block,
    find_function,
    find_loop,
    require_stage,
)
from gossamer_schedule.dependence.access import mentioned, statements_beside, used_by
from gossamer_schedule.dependence.distinct_stores import require_distinct
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.nests.block_nest import BlockNest, around
from gossamer_schedule.nests.init_nest import init_nest
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "decompose_padding"


@primitive
def decompose_padding(
    module: Module, block: str, *, loop: str, function: str | None = None
) -> Result:
    """Takes a block that stores `if_then_else(inside, value, padding)` apart: block `<block>_pad` stores
    the padding everywhere, in loops `<loop>_pad` directly before a loop around the block, and the block
    stores the value inside. Loops that only hold the block run over the inside, where the condition
    bounds their iterators.

    The operands of a `Select` are both evaluated, yet the value is computed only inside afterwards: where
    only its evaluation outside stops the program, by a read out of bounds, the program goes on.

    Raises `ScheduleError`: `schedule.decompose_padding.pattern` (the block does something else, or the
    padding is read from a buffer), `.not_enclosing` (the loop is not around the block, or something other
    than loops and conditions is between), `.other_access` (the value, or another statement under the
    loop, uses the buffer), `.not_proved` (two points may be one element, or the bounds and conditions
    between may change), `.no_block`, `.no_loop`, `.no_function`, `.stage`.

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
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    cursor = find_block(root, block=block)
    top = find_loop(root, loop=loop)

    padded = _require_pattern(cursor)
    nest = _require_enclosing(cursor, top)
    _require_sole_user(nest, padded)
    _require_unchanged(nest, padded)
    require_distinct(cursor, padded.buffer, nest=nest.loops)

    filled = replace(cursor.node, init=(Store(padded.buffer, padded.indices, padded.padding),))
    fill, names = init_nest(
        replace(cursor, node=filled), nest.around, namer=namer_of(root.function), suffix="pad"
    )
    copy = _interior(nest, padded)

    changed = replaced(top, (*fill, copy))
    rewritten = root.with_function(changed).module

    taken = step(block=block, loop=loop, function=function)
    return Result(rewritten, names, Step(_NAME, taken))


class _Padded(NamedTuple):
    """What a block stores: a value where a condition holds, else padding."""

    buffer: str
    indices: tuple[Expr, ...]
    inside: Expr
    value: Expr
    padding: Expr


def _require_pattern(cursor: Cursor) -> _Padded:
    block: Block = cursor.node
    match block.body:
        case (Store(value=IfThenElse() | Select() as choice, predicate=None) as store,) if (
            not block.init
            and all(item.kind == "S" for item in block.iters)
            and not contains(READS, choice.if_false)
        ):
            return _Padded(
                store.buffer, store.indices, choice.condition, choice.if_true, choice.if_false
            )
    raise schedule_error(
        f"{_NAME}.pattern",
        f"Block '{block.name}' does not only store T.if_then_else(inside, value, padding).",
        hint="Expected one store, spatial iterators, no init, and padding that reads no buffer.",
        place=cursor.place,
    )


def _require_enclosing(cursor: Cursor, top: Cursor) -> BlockNest:
    """The loops and conditions from `top` down to the block."""
    found = around(cursor)
    at = next((at for at, part in enumerate(found) if part is top.node), None)
    if at is None:
        names = ", ".join(part.var for part in found if isinstance(part, For))
        raise schedule_error(
            f"{_NAME}.not_enclosing",
            f"Loop '{top.node.var}' is not a loop around block '{cursor.node.name}'.",
            hint=f"The loops around it are {names}." if names else "There is none.",
            place=cursor.place,
        )
    return BlockNest(cursor, found[at:])


def _require_sole_user(nest: BlockNest, padded: _Padded) -> None:
    block, others = nest.block.node, statements_beside(nest.block, nest.top)
    asked = tuple(part for part in (block.predicate, padded.inside) if part is not None)
    used = mentioned((*padded.indices, padded.value, *asked)).union(*map(used_by, others))
    if used & written_in((block,), nest.block.function):
        raise schedule_error(
            f"{_NAME}.other_access",
            f"'{padded.buffer}' is used under loop '{nest.top.node.var}' by more than the store of block "
            f"'{block.name}'.",
            hint="Choose a loop that holds only the block.",
            place=nest.block.place,
        )


def _require_unchanged(nest: BlockNest, padded: _Padded) -> None:
    """The loops and conditions are asked for the padding before the loop, and again in it."""
    bounds = (part for loop in nest.loops for part in (loop.start, loop.extent))
    conditions = (*nest.conditions, *conjuncts(nest.block.node.predicate))
    iters = nest.block.node.iters
    asked = (*bounds, *conditions, *iters, *padded.indices)
    clash = changed_in((nest.top.node,), *asked, function=nest.block.function)
    if clash or nest.has_let:
        raise schedule_error(
            f"{_NAME}.not_proved",
            f"It is not proved that the padding of block '{nest.name}' may be stored before loop "
            f"'{nest.top.node.var}'.",
            needs=f"{', '.join(sorted(clash)) or 'what the lets in it read'} is not written there, and no "
            "let stands between",
            place=nest.block.place,
        )


def _interior(nest: BlockNest, padded: _Padded) -> Stmt:
    """The loops around the block that stores the value, as short as the condition says."""
    block: Block = nest.block.node
    loops = _own_loops(nest)
    bounds = {loop.var: _Ends() for loop in loops}
    rest = [part for part in conjuncts(padded.inside) if not _is_bound(part, block, loops, bounds)]
    predicate = conjoined((*conjuncts(block.predicate), *rest))
    store = Store(padded.buffer, padded.indices, padded.value)
    made: Stmt = replace(block, body=(store,), predicate=predicate)
    for loop in reversed(loops):
        made = _shortened(loop, bounds[loop.var], made)
    above = nest.block.up(len(loops))
    return _from(nest, above, made)


def _from(nest: BlockNest, above: Cursor, made: Stmt) -> Stmt:
    """The loop of a nest with another statement in place of one in it."""
    depth = len(nest.top.path)
    for parent, name, index in reversed(above.path[depth:]):
        body = getattr(parent, name)
        made = replace(parent, **{name: (*body[:index], made, *body[index + 1 :])})
    return made


def _own_loops(nest: BlockNest) -> tuple[For, ...]:
    """The innermost loops that hold nothing but the block, outermost first."""
    own: list[For] = []
    for loop in reversed(nest.block.nest[-len(nest.loops) :]):
        if len(loop.body) != 1 or not any(loop is found for found in nest.loops):
            break
        own.insert(0, loop)
    return tuple(own)


class _Ends:
    """The range that conditions leave of a loop: the other sides of comparisons with its variable, as they
    are written. The shorter loop computes them, so no terms are moved, which might wrap (`slack_of`)."""

    def __init__(self) -> None:
        self.low: list[Expr] = []
        self.end: list[Expr] = []


_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _is_bound(part: Expr, block: Block, loops: Sequence[For], bounds: dict[str, _Ends]) -> bool:
    """Whether a condition only bounds a loop, which it is noted for then."""
    if not isinstance(part, Compare) or part.op not in _TURNED:
        return False
    op: str = part.op
    var, bound = part.lhs, part.rhs
    if isinstance(bound, Var) and any(item.var == bound.name for item in block.iters):
        op, var, bound = _TURNED[op], part.rhs, part.lhs
    loop = _loop_of(var, block, loops)
    end = _end_of(op, bound)
    if loop is None or end is None or _depends(end, block, loops):
        return False
    (bounds[loop].low if op in ("gt", "ge") else bounds[loop].end).append(end)
    return True


def _loop_of(var: Expr, block: Block, loops: Sequence[For]) -> str | None:
    """The serial loop from 0 that an iterator of the block is."""
    for item in block.iters:
        if isinstance(var, Var) and item.var == var.name and isinstance(item.value, Var):
            for loop in loops:
                is_plain = loop.kind == "serial" and integer_value(loop.start) == 0
                if loop.var == item.value.name and is_plain:
                    return loop.var
    return None


def _end_of(op: str, bound: Expr) -> Expr | None:
    """The first value that `>= bound` or `> bound` allows, or that `< bound` or `<= bound` does not; None
    where it may overflow."""
    if op in ("ge", "lt"):
        return bound
    value = integer_value(bound)
    return None if value is None or value == 2**63 - 1 else add(bound, ONE)


def _depends(bound: Expr, block: Block, loops: Sequence[For]) -> bool:
    """Whether a bound is not known before the loops."""
    names = {item.var for item in block.iters} | {loop.var for loop in loops}
    return bool(free_vars(bound) & names) or contains(READS, bound)


def _shortened(loop: For, bounds: _Ends, body: Stmt) -> For:
    """The loop over what is within bounds, from 0. No difference overflows: all are in [0, extent]."""
    low, end = ZERO, loop.extent
    for found in bounds.low:
        low = simplify(Binary("max", low, _within(found, loop.extent)))
    for found in bounds.end:
        end = simplify(Binary("min", end, _within(found, loop.extent)))
    shifted = substitute_body(
        (body,), {} if low == ZERO else {loop.var: add(index_var(loop.var), low)}
    )
    return replace(loop, extent=simplify(sub(end, low)), body=shifted)


def _within(bound: Expr, extent: Expr) -> Expr:
    found: Expr = simplify(Binary("max", Binary("min", bound, extent), ZERO))
    return found

"""Values that stay in a buffer from an earlier iteration of a loop around the statement that fills it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec.structs import replace

from gossamer_ir.analysis.accesses import Access, accesses
from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.core.build import ZERO, conjoined, integer_value
from gossamer_ir.dependence.access_forms import with_two_names
from gossamer_ir.nodes import (
    Allocate,
    Block,
    Expr,
    For,
    Function,
    Load,
    Range,
    Stmt,
    Store,
    Var,
    While,
)
from gossamer_ir.traversal.walk import collect, free_vars, resolve
from gossamer_schedule.bounds.prover import point_in
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.dependence.access import values_at
from gossamer_schedule.dependence.definite_assignment import gives_value
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.motion.inline import conditions_at
from gossamer_schedule.nests.init_nest import conditions_of_init
from gossamer_schedule.regions.match_indices import match_all


def is_kept(cursor: Cursor, buffer: str) -> bool:
    """Return whether the statement at a cursor may run again while a buffer that it fills lives on.

    An element that it does not store the next time then has the value that it stored before, where it
    would otherwise be undefined.
    """
    for parent, name, index in reversed(cursor.path):
        if any(_allocates(found, buffer) for found in getattr(parent, name)[:index]):
            return False
        if isinstance(parent, While):
            return True
        if isinstance(parent, For) and integer_value(parent.extent) not in (0, 1):
            return True
    return False


def _allocates(statement: Stmt, buffer: str) -> bool:
    return isinstance(statement, Allocate) and statement.buffer.name == buffer


def is_lasting(value: Expr, function: Function) -> bool:
    """Return whether an expression in parameters and the unnamed variable has one value all through a
    function for each value of that variable, whatever loops run."""
    params = {param.name for param in function.params}
    return free_vars(value) <= params | {""} and is_constant(value, function=function)


def require_made_again(
    cursor: Cursor, own: Sequence[For], target: Cursor, *, made: Set[str]
) -> None:
    """What the body of a loop reads of the buffers that a block makes, and that outlive its nest, must be
    made each time that the nest runs: the block makes it in the loop instead.

    Raises `.not_proved`.
    """
    kept = {name for name in made if is_kept(cursor.up(len(own)), name)}
    if not kept:
        return
    for access in accesses(target.node.body, values=values_at(target), buffers=kept):
        if not access.is_store and not _is_made(cursor, own, access, target=target):
            raise schedule_error(
                f"{cursor.primitive}.not_proved",
                f"It is not proved that block '{cursor.node.name}' makes all that loop "
                f"'{target.node.var}' reads of '{access.buffer}' each time that it runs, so an element may "
                "be left from an earlier iteration of a loop around both.",
                needs=f"what is read of '{access.buffer}' is in the domains of the block and under its "
                "conditions",
                hint=f"Allocate '{access.buffer}' in that loop.",
            )


def _is_made(cursor: Cursor, own: Sequence[For], access: Access, *, target: Cursor) -> bool:
    """Whether the block makes the element of a touch each time that its nest runs."""
    block: Block = cursor.node
    if access.buffer in with_two_names(cursor.function):
        return False
    point = _point(cursor, own, access)
    if point is None or not gives_value(block.init or block.body, access.buffer):
        return False
    known = _place(access, target)
    predicate = conjoined(conditions_of_init(cursor)) if block.init else block.predicate
    visited = (item for item in block.iters if item.kind == "S")
    asked = conditions_at(replace(block, iters=tuple(visited), predicate=predicate), point)
    return all(known.proves(resolve(part, point)) for part in asked)


def _place(access: Access, target: Cursor) -> ProgramPoint:
    """The place where something in a loop is touched."""
    place = point_in(target.function)
    for loop in (*target.loops, target.node):
        if loop.var not in access.held.idle:
            place.assume_loop(loop)
    place.assume_held(access.held)
    return place


def _point(cursor: Cursor, own: Sequence[For], access: Access) -> dict[str, Expr] | None:
    """A point at which the block makes what is touched, by iterators and loops of the block, and what
    else stands for something there; None where none is known."""
    block: Block = cursor.node
    removed = {loop.var: loop for loop in own}
    bound = {item.var: item.value for item in block.iters if isinstance(item.value, Var)}
    free = {name for name, value in bound.items() if value.name in removed}
    values = values_at(cursor)
    fixed = {item.var: resolve(item.value, values) for item in block.iters if item.var not in free}
    stores = [found for found in collect(Store, block) if found.buffer == access.buffer]
    if len({found.indices for found in stores}) != 1:
        return None
    points = tuple(at for at in access.indices if not isinstance(at, Range))
    patterns = tuple(resolve(at, values | fixed) for at in stores[0].indices)
    found = match_all(patterns, points, free=free)
    if found is None:
        return None
    point = _completed(block, values | fixed | found)
    if point is None:
        return None
    return point | {bound[name].name: point[name] for name in free & point.keys()}


def _completed(block: Block, point: Mapping[str, Expr]) -> dict[str, Expr] | None:
    """A point with some value of each spatial iterator that it leaves open; None where there may be none."""
    completed = dict(point)
    for item in block.iters:
        if item.kind == "S" and item.var not in point:
            if (
                integer_value(item.domain.start) != 0
                or (integer_value(item.domain.extent) or 0) < 1
            ):
                return None
            completed[item.var] = ZERO
    return completed


def is_made_for(reader: Cursor, load: Load, maker: Cursor, store: Store) -> bool:
    """Return whether a block makes what another one reads at each of its points, where both run over all
    of their domains."""
    free = {item.var for item in maker.node.iters}
    found = match_all(store.indices, load.indices, free=free)
    point = None if found is None else _completed(maker.node, found)
    if point is None:
        return False
    known = point_in(reader.function)
    for item in reader.node.iters:
        known.assume_domain(item)
    if reader.node.predicate is not None:
        known.assume(reader.node.predicate)
    return all(map(known.proves, conditions_at(maker.node, point)))

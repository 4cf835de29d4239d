"""`reverse_compute_inline`: what a block computes of another's results is computed where these are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from gossamer_ir.core.build import conjoined, conjuncts
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Block, Expr, Load, Module, Store, Var
from gossamer_ir.traversal.effects import READS, all_buffers, outer_writes
from gossamer_ir.traversal.walk import collect, substitute
from gossamer_schedule.bounds.predicates import in_turn
from gossamer_schedule.bounds.prover import point_in
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_block,
    find_function,
    require_stage,
)
from gossamer_schedule.dependence.access import mentioned, named
from gossamer_schedule.dependence.distinct_stores import require_distinct
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.motion.inline import (
    domain_conditions,
    require_no_loops,
    required_assignment,
    required_writer,
    without_block,
    without_buffer,
)
from gossamer_schedule.motion.kept_values import is_kept, is_made_for
from gossamer_schedule.motion.move_block import position, require_bound_before
from gossamer_schedule.nests.block_nest import loop_nest
from gossamer_schedule.nests.coverage import require_covered
from gossamer_schedule.regions.required import with_parts
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "reverse_compute_inline"


@primitive
def reverse_compute_inline(module: Module, block: str, *, function: str | None = None) -> Result:
    """Lets the block that makes what another block reads store what the other block computes of it, and
    removes the other block and the buffer between them.

    The other block reads the element of its iterators, `X[vi, vj]`, of a buffer that the function
    allocates and that nothing else reads; it stores to another element for each. Where the maker may
    make more than is read, it gets the condition as a predicate.

    Raises `ScheduleError`: `schedule.reverse_compute_inline.form` (one of the blocks is not one
    assignment), `.element` (the block does not read one element, that of its iterators, of one
    buffer that the function allocates), `.writers` (that is not written by one block),
    `.other_access` (it is used elsewhere, or something on the way uses what the block writes or
    writes what it reads), `.predicate` (the block uses its loops other than by iterators), `.scope` (the
    block does not stand behind the nest of the maker in a nest of its own, or uses what is bound between
    them), `.kind` (a loop around the maker is vectorized, and it gets a condition),
    `.not_proved` (its loops may not visit the whole domain of an iterator, two points may store to one
    element, also of the maker where conditions ask for its value, or an element may be left from an
    earlier iteration of a loop), `.no_block`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_schedule.primitives.buffers.cache_write import cache_write
    >>> from gossamer_testkit.show import body_text
    >>> cached = cache_write(SCALE, "scale", buffer="Y", scope="local").module
    >>> print(body_text(cached))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y_local[vi] = X[vi] * 2.0
    for i_c in T.serial(n):
        with T.block("scale_Y_local"):
            vi_c = T.axis.spatial(n, i_c)
            Y[vi_c] = Y_local[vi_c]
    >>> print(body_text(reverse_compute_inline(cached, "scale_Y_local").module))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    """
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    cursor = find_block(root, block=block)

    store = required_assignment(cursor)
    load = _require_own_element(cursor, store)
    maker = required_writer(root, load.buffer)
    made = required_assignment(maker)
    _require_free_way(cursor, maker, between=load.buffer)
    require_bound_before(cursor.up(len(cursor.nest)), maker.up(len(maker.nest)))
    require_no_loops(cursor)
    require_covered(loop_nest(cursor), cursor.node.iters)
    require_distinct(cursor, store.buffer)
    if _is_told_by_value(cursor, store, load):
        require_distinct(maker, load.buffer)
    _require_made(cursor, maker, load, made=made)

    iters = [at.name for at in load.indices if isinstance(at, Var)]
    point = dict(zip(iters, made.indices, strict=True))
    inlined = _stored(store, load, value=made.value, point=point)
    conditions = list(_unproved(cursor, maker, load, value=made.value, point=point))
    _require_scalar(maker, conditions)
    making = replace(
        maker.node,
        body=(inlined,),
        predicate=_predicate(maker.node, conditions),
        reads=None,
        writes=None,
    )
    bare = without_block(find_block(maker.replaced_by((making,)), block=block))
    rewritten = root.with_function(without_buffer(bare, load.buffer)).module

    taken = step(block=block, function=function)
    return Result(rewritten, (), Step(_NAME, taken))


def _require_own_element(cursor: Cursor, store: Store) -> Load:
    """The one load of a buffer of the function's, at the iterators of the block."""
    allocated = {found.name for found in all_buffers(cursor.function) if found.handle is None}
    block: Block = cursor.node
    every = [found for found in collect(Load, block) if found.buffer in allocated]
    loads = {found for found in collect(Load, store) if found.buffer in allocated}
    own = sorted(item.var for item in block.iters)
    for load in loads:
        names = sorted(at.name for at in load.indices if isinstance(at, Var))
        is_same = all(other == load for other in every if other.buffer == load.buffer)
        if names == own and len(load.indices) == len(own) and is_same:
            return load
    raise schedule_error(
        f"{_NAME}.element",
        f"Block '{block.name}' does not read the one element at its iterators of a buffer that the "
        "function allocates.",
    )


def _require_free_way(cursor: Cursor, maker: Cursor, *, between: str) -> None:
    """The block must stand in a nest of its own behind the maker's, with nothing in the way."""
    moving, top = cursor.up(len(cursor.nest)), maker.up(len(maker.nest))
    is_beside = moving.path[-1][0] is top.path[-1][0] and moving.path[-1][1] == top.path[-1][1]
    is_behind = is_beside and position(top) < position(moving)
    if not is_behind or any(len(loop.body) != 1 for loop in cursor.nest):
        raise schedule_error(
            f"{_NAME}.scope",
            f"Block '{cursor.node.name}' does not stand in a nest of its own behind that of block "
            f"'{maker.node.name}'.",
            place=cursor.place,
        )
    passed = top.siblings[position(top) : position(moving)]
    writes, reads = outer_writes((moving.node,)), mentioned((moving.node,)) - {between}
    others = named(without_block(find_block(maker.replaced_by(()), block=cursor.node.name)).body)
    clash = (writes & mentioned(passed)) | (reads & outer_writes(passed)) | ({between} & others)
    if clash:
        raise schedule_error(
            f"{_NAME}.other_access",
            f"Block '{cursor.node.name}' cannot be computed in block '{maker.node.name}' because of other "
            f"uses of {', '.join(sorted(clash))}.",
        )


def _is_told_by_value(cursor: Cursor, store: Store, load: Load) -> bool:
    """Whether the value that is read tells if and where the block stores, or what else it reads: it must
    not do so for values that are replaced before the block runs."""
    asked = [*conjuncts(cursor.node.predicate), *store.indices]
    asked += [found for found in collect(READS, store.value) if found != load]
    return bool(collect(Load, *asked)) and load.buffer in mentioned(asked)


def _require_made(cursor: Cursor, maker: Cursor, load: Load, *, made: Store) -> None:
    """Where elements may be left from an earlier iteration of a loop around both, all that are read must
    be made in this one."""
    if not is_kept(maker.up(len(maker.nest)), load.buffer):
        return
    require_covered(loop_nest(maker), maker.node.iters)
    if not is_made_for(cursor, load, maker, made):
        raise schedule_error(
            f"{_NAME}.not_proved",
            f"It is not proved that block '{maker.node.name}' makes all that block "
            f"'{cursor.node.name}' reads of '{load.buffer}' each time that it runs, so an "
            "element may be left from an earlier iteration of a loop around both.",
            needs=f"the points of '{cursor.node.name}' are some of '{maker.node.name}'",
            hint=f"Allocate '{load.buffer}' in that loop.",
        )


def _stored(store: Store, load: Load, *, value: Expr, point: Mapping[str, Expr]) -> Store:
    """The store at a point where the load has a value."""
    return replace(
        store,
        indices=tuple(_at_point(at, load, value=value, point=point) for at in store.indices),
        value=_at_point(store.value, load, value=value, point=point),
    )


def _at_point(expr: Expr, load: Load, *, value: Expr, point: Mapping[str, Expr]) -> Expr:
    placed: Expr = substitute(with_parts(expr, {load: value}), point)
    return placed


def _unproved(
    cursor: Cursor, maker: Cursor, load: Load, *, value: Expr, point: Mapping[str, Expr]
) -> Iterator[Expr]:
    """The conditions under which the block reads what is made at a point, but for those that hold."""
    place = point_in(cursor.function)
    for item in maker.node.iters:
        place.assume_domain(item)
    if maker.node.predicate is not None:
        place.assume(maker.node.predicate)
    parts = [
        part
        for item in cursor.node.iters
        for part in domain_conditions(item, point[item.var], point)
    ]
    for part in conjuncts(cursor.node.predicate):
        parts.append(_at_point(part, load, value=value, point=point))
    for part in parts:
        if not place.proves(part):
            yield part


def _require_scalar(maker: Cursor, conditions: Sequence[Expr]) -> None:
    """New conditions are not of lanes."""
    for loop in maker.loops:
        if conditions and loop.kind == "vectorized":
            raise schedule_error(
                f"{_NAME}.kind",
                f"Loop '{loop.var}' around block '{maker.node.name}' is vectorized, and the block gets "
                "conditions that are not those of its lanes.",
                hint=f"Apply {_NAME} before '{loop.var}' is made vectorized.",
            )


def _predicate(block: Block, conditions: Sequence[Expr]) -> Expr | None:
    """The conditions of a block and more, which are not evaluated where the block does nothing."""
    every = (*conjuncts(block.predicate), *conditions)
    return in_turn(every) if mentioned(conditions) else conjoined(every)

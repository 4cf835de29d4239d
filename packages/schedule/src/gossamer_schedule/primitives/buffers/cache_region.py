"""`cache_region`: copy the region of a buffer that an iteration reads, and make a block read the copy."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gossamer_ir.analysis.regions import regions_of
from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.build import ZERO, add, index_var
from gossamer_ir.nodes import (
    Allocate,
    AnyBuffer,
    Block,
    BlockIter,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    Range,
    Scope,
)
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.made_names import cache_name, copy_block_name, dimension_name
from gossamer_schedule.nests.block_nest import required_enclosing_nest
from gossamer_schedule.nests.copy_nest import IterationDomain, copy_nest, names_of_nest
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe_in_loops
from gossamer_schedule.staging.cache import required_block_and_buffer
from gossamer_schedule.staging.cache_checks import require_constant_size
from gossamer_schedule.staging.loads import ConditionalLoad
from gossamer_schedule.staging.read_elements import ReadElements, copy_stmts, require_loads
from gossamer_schedule.staging.redirected_accesses import with_redirected_loads


@primitive(stages=LOOP_STAGES)
def cache_region(
    root: Cursor[Function],
    block: str,
    *,
    buffer: str,
    loop: str,
    scope: Scope,
    function: str | None = None,
) -> Change:
    """Copy the region of a buffer that one iteration of a loop reads, and make a block read the copy.

    The region is the smallest box that is known to contain the elements, from the bounds of loops and the
    facts about index arrays. A dimension is copied as a whole if its bounds are unknown, or if they load
    elements that may not exist. Block `<block>_<buffer>_<scope>` copies the region to a new buffer
    `<buffer>_<scope>` at the beginning of each iteration, with a loop `<buffer>_<d>_c` for each dimension d.
    The pass `contract_buffers` reduces the new buffer to the region.

    `cache_read` instead copies the elements that the block reads, once for each time that it reads them. A
    region pays off if the block gathers: a tile of a dense operand is packed once for all rows that select
    from it. The result's names are the buffer, the copy block and its loops.

    Raises `ScheduleError` with a code `schedule.cache_region.*`:

    * `.sparse`: the buffer has sparse axes, so it is not an array of elements with a shape
    * `.not_enclosing`: the loop is not around the block, or more than loops and conditions are in between
    * `.kind`: the iterations of the loop are lanes
    * `.scope`, `.inner`, `.loads`, `.written`, `.domain`: as for `cache_read`

    >>> from gossamer_testkit.examples import GATHER_TILES
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(GATHER_TILES))
    for t in T.serial(tiles):
        for i in T.serial(4):
            with T.block("gather"):
                vt, vi = T.axis.remap("SS", [t, i])
                Y[vt, vi] = X[vt * 16 + T.int64(P[vt, vi])]
    >>> cached = cache_region(GATHER_TILES, "gather", buffer="X", loop="t", scope="local")
    >>> print(body_text(cached.module))
    for t in T.serial(tiles):
        X_local = T.alloc_buffer((m,), "float32", scope="local")
        for X_0_c in T.serial(16):
            with T.block("gather_X_local"):
                vX_0_c = T.axis.spatial(m, t * 16 + X_0_c)
                T.where(vX_0_c < m)
                X_local[vX_0_c] = X[vX_0_c]
        for i in T.serial(4):
            with T.block("gather"):
                vt, vi = T.axis.remap("SS", [t, i])
                Y[vt, vi] = X_local[vt * 16 + T.int64(P[vt, vi])]
    """
    cursor, old = required_block_and_buffer(root, block_name=block, buffer_name=buffer)
    target = find_loop(root, loop=loop)

    plain = _required_plain(old, cursor)
    _require_iterations(target)
    require_loads(required_enclosing_nest(cursor, target), buffer)
    require_constant_size(old, cursor)

    namer = namer_of(cursor.function)
    cache = replace(plain, name=namer.fresh(cache_name(buffer, scope)), handle=None, scope=scope)
    region = _region(target, plain)
    copies = copy_stmts(region, buffer, to=cache.name, cache_indices=[region.reads[0].indices])
    name = copy_block_name(block, cache.name)
    copy = copy_nest(name, region.points, copies, namer=namer)
    reading = with_redirected_loads(cursor.node, buffer, to=cache.name)
    inside = find_loop(cursor.replace_with((reading,)), loop=loop)
    # Allocated inside the loop: concurrent iterations of loops around it have copies of their own.
    filled = replace(inside.node, body=(Allocate(cache), copy, *inside.node.body))
    return Change(inside.replace_with((filled,)), (cache.name, *names_of_nest(copy)))


def _required_plain(buffer: AnyBuffer, cursor: Cursor[object]) -> Buffer:
    """Return the buffer, unless it has axes: then it may have slots without an element."""
    if isinstance(buffer, Buffer):
        return buffer
    raise schedule_error(
        f"{cursor.primitive}.sparse",
        f"Buffer '{buffer.name}' has the axes {', '.join(buffer.axes)}, and cannot be copied as an array.",
        hint="Lower to the loop stage, where buffers are arrays.",
    )


def _require_iterations(target: Cursor[For]) -> None:
    """Refuse a loop whose iterations are lanes: they run together, and would share the copy."""
    if target.node.kind not in ("serial", "parallel", "unrolled"):
        raise schedule_error(
            f"{target.primitive}.kind",
            f"Loop '{target.node.var}' is {target.node.kind}, so its iterations have no copies of their own.",
            place=target.place,
        )


def _region(target: Cursor[For], buffer: Buffer) -> ReadElements:
    """Return the elements of the region that one iteration of a loop reads of a buffer, with an iterator for
    each dimension. A region may extend beyond the buffer, where nothing is copied."""
    tiles: dict[str, Range] = {}
    iters: list[BlockIter] = []
    conditions: list[Expr] = []
    for dimension, (tile, clamped) in enumerate(_ranges(target, buffer)):
        name = f"v{dimension_name(buffer.name, dimension)}"
        domain = Range(ZERO, buffer.shape[dimension])
        iterator = BlockIter(name, "S", domain, index_var(name))
        iters.append(iterator)
        # The copy evaluates the ends of a tile also where the block reads nothing.
        if are_loads_safe_in_loops(target.function, tile, (*target.loops, target.node)):
            tiles[name] = tile
            conditions += _conditions_within(iterator, tile, clamped=clamped)
    load = ConditionalLoad(tuple(index_var(iterator.var) for iterator in iters), buffer.dtype, None)
    return ReadElements((load,), IterationDomain(tuple(iters), tuple(conditions), tiles))


def _ranges(target: Cursor[Block | For], buffer: Buffer) -> Iterator[tuple[Range, Range]]:
    """Yield the range that one iteration of a loop reads along each dimension of a buffer, and this range
    clamped to the buffer."""
    body = target.node.body
    clamped = regions_of(target.function, body).read_region(buffer.name)
    whole = regions_of(target.function, body, is_clamped=False).read_region(buffer.name)
    # A block in the body loads from the buffer.
    assert clamped is not None
    assert whole is not None
    yield from zip(whole.region.ranges, clamped.region.ranges, strict=True)


def _conditions_within(iterator: BlockIter, tile: Range, *, clamped: Range) -> Iterator[Expr]:
    """Yield the conditions that the values of a tile are in the domain of the iterator. Where clamping the
    tile to the domain leaves an end as it is, that end is proved to be inside."""
    if tile.start != clamped.start:
        yield Compare("ge", index_var(iterator.var), ZERO)
    if _end(tile) != _end(clamped):
        yield Compare("lt", index_var(iterator.var), iterator.domain.extent)


def _end(part: Range) -> Affine:
    return affine_of(add(part.start, part.extent))

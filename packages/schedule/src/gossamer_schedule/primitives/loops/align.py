"""`align`: start a loop early, so that its vectors begin at aligned addresses."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.core.build import add, floordiv, handle, index, index_var, integer_value, sub
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.core.operations import DIVISIONS
from gossamer_ir.nodes import Binary, Block, Buffer, Expr, For, Function, Range, Reinterpret
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_buffer, find_loop
from gossamer_schedule.cursor.requirements import (
    require_between,
    require_serial,
    require_zero_start,
)
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.loop_invariance import require_unchanged_bounds
from gossamer_schedule.predicates.block_predicates import with_range_condition


@primitive(stages=("loop",))
def align(
    root: Cursor[Function], loop: str, *, buffer: str, lanes: int, function: str | None = None
) -> Change:
    """Start an innermost loop early, so that vectors of `lanes` iterations begin at aligned addresses.

    Takes a module of the loop stage. The loop is serial, starts at 0 and contains only blocks. It starts
    as many iterations early as the first element of `buffer` lies after an address that is a multiple of
    `lanes` elements, and runs `lanes` iterations longer. Predicates mask the iterations outside of the old
    range. If the loop runs along the rows of the buffer, vectors of `lanes` iterations are then aligned
    in all rows; one that fills a cache line loads one line instead of two. The lane in which a term is
    added, and so the rounding of sums over the loop, depends on the address of the buffer. An iterator that
    is bound to the loop follows it, so that a cache over the iterators (`reindex_cache_write`) is aligned,
    too. The result's name is that of the loop.

    Raises `ScheduleError` with a code `schedule.align.*`:

    * `.lanes`: fewer than two, or too many
    * `.rows`: rows of the buffer may not be multiples of `lanes` long
    * `.buffer`: not a parameter
    * `.innermost`: the loop contains more than blocks
    * `.start`: the loop does not start at 0
    * `.not_proved`: the extent may change or overflow, or an iterator may be undefined in the added
      iterations

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> aligned = align(SCALE, "i", buffer="X", lanes=16).module
    >>> print(body_text(aligned).replace('T.reinterpret(x, "int64") // 4 % 16', "shift"))
    for i in T.serial(n + 16):
        with T.block("scale"):
            vi = T.axis.spatial(n + 16, i)
            T.where(vi - shift >= 0 and vi - shift < n)
            Y[vi - shift] = X[vi - shift] * 2.0
    """
    cursor = find_loop(root, loop=loop)
    target = find_buffer(root, buffer=buffer)
    assert isinstance(target, Buffer), "the loop stage has no other buffers"

    require_serial(cursor)
    require_zero_start(cursor)  # the predicate masks iterations outside of [0, extent)
    # Every address is aligned to a single lane; index arithmetic may overflow with more than the maximum.
    require_between(cursor, "lanes", lanes, 2, MAX_SIZE)
    _require_rows(target, lanes)
    _require_extent(cursor, lanes)
    shift = _required_misalignment(target, lanes)

    blocks = _required_blocks(cursor)
    require_unchanged_bounds((cursor.node,), cursor=root)
    _require_plain_values(blocks, cursor)

    extent = cursor.node.extent
    # First the condition on the old range, then the shift, which moves the condition as well.
    bounded = tuple(with_range_condition(block, loop, extent=extent) for block in blocks)
    shifted = tuple(_shifted_block(block, loop, shift=shift, lanes=lanes) for block in bounded)
    aligned = replace(cursor.node, extent=add(extent, index(lanes)), body=shifted)

    return Change(cursor.replace_with((aligned,)), (loop,))


def _required_blocks(cursor: Cursor[For]) -> tuple[Block, ...]:
    """Return the body of the loop, refused unless all statements are blocks: only these have predicates,
    which mask the added iterations."""
    blocks = tuple(stmt for stmt in cursor.node.body if isinstance(stmt, Block))
    if len(blocks) != len(cursor.node.body):
        raise schedule_error(
            "align.innermost",
            f"Loop '{cursor.node.var}' contains statements other than blocks.",
            hint="Align the innermost loop, before it is split.",
            place=cursor.place,
        )
    return blocks


def _require_plain_values(blocks: Sequence[Block], cursor: Cursor[For]) -> None:
    """Refuse iterator values that may be undefined in the added iterations, by a load or a division."""
    values = [iterator.value for block in blocks for iterator in block.iters]
    divided = [division for division in collect(Binary, *values) if division.op in DIVISIONS]
    divisors = [division.rhs for division in divided]
    if buffers_accessed(*values) or any(integer_value(divisor) is None for divisor in divisors):
        raise schedule_error(
            "align.not_proved",
            f"Cannot prove that the iterators of the blocks in loop '{cursor.node.var}' are defined "
            "before its first iteration and after its last one.",
            needs="their values read no buffer and divide by constants only",
            hint="Align the loop before it is split or fused.",
            place=cursor.place,
        )


def _require_extent(cursor: Cursor[For], lanes: int) -> None:
    """Refuse an extent that may overflow: it would be negative, and the loop would not run at all."""
    extent = add(cursor.node.extent, index(lanes))
    if not overflow_of(cursor.function).is_exact(extent):
        raise schedule_error(
            "align.not_proved",
            f"Cannot prove that loop '{cursor.node.var}' can have {lanes} more iterations.",
            needs=f"{text_of(extent)} does not overflow int64",
            hint="Extents that are sizes of arrays are known not to be as large.",
            place=cursor.place,
        )


def _require_rows(buffer: Buffer, lanes: int) -> None:
    """Refuse rows of other lengths: all of them start early by the misalignment of the first row, so vectors
    of the others would not be aligned."""
    length = integer_value(buffer.shape[-1]) if buffer.shape else None
    # Rows share an alignment only if their length is a multiple of the vectors.
    if len(buffer.shape) != 1 and (length is None or length % lanes):
        raise schedule_error(
            "align.rows",
            f"Cannot prove that rows of '{buffer.name}' are multiples of {lanes} elements long.",
            hint="All rows must have the same alignment: choose lanes that divide the length of a row.",
        )


def _required_misalignment(buffer: Buffer, lanes: int) -> Expr:
    """Return the number of elements by which a buffer begins after a multiple of `lanes` elements."""
    if buffer.handle is None:
        raise schedule_error(
            "align.buffer",
            f"Buffer '{buffer.name}' is not a parameter, so its address is not known.",
            hint="Align the loop to a buffer that the caller passes.",
        )
    address = Reinterpret("int64", handle(buffer.handle))
    # At least 1 byte: elements of bool have one bit in `DType`.
    elements = floordiv(address, index(max(DType.parse(buffer.dtype).bits // 8, 1)))
    return Binary("floormod", elements, index(lanes))


def _shifted_block(block: Block, loop_name: str, *, shift: Expr, lanes: int) -> Block:
    """Return a block whose loop runs `shift` iterations ahead of the values that it had.

    An iterator that is bound to the loop itself follows it, and what uses the iterator is shifted: then a
    buffer that is indexed by the iterator, as by `reindex_cache_write`, is aligned in the same way. In other
    values the loop is shifted.
    """
    followers = {iterator.var for iterator in block.iters if iterator.value == index_var(loop_name)}
    # Followers keep the loop as their value, so what uses them is shifted in the same way as the loop.
    early: dict[str, Expr] = {var: sub(index_var(var), shift) for var in (loop_name, *followers)}
    moved: Block = substitute(block, early)
    iters = tuple(
        replace(
            iterator, value=index_var(loop_name), domain=_extended_domain(iterator.domain, lanes)
        )
        if iterator.var in followers
        else iterator
        for iterator in moved.iters
    )
    return replace(moved, iters=iters)


def _extended_domain(domain: Range, lanes: int) -> Range:
    return replace(domain, extent=add(domain.extent, index(lanes)))

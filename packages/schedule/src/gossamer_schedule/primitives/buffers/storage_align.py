"""`storage_align`: pad the rows of a buffer."""

from __future__ import annotations

from math import gcd, prod

from msgspec.structs import replace

from gossamer_ir.core.build import add, ceildiv, index, integer_value, mul
from gossamer_ir.nodes import Binary, Buffer, Expr, Function
from gossamer_schedule.cursor.allocations import require_allocated, with_buffer
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_buffer
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.counts import COUNT_RANGE, is_count
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.safe_accesses.moved_accesses import body_with_moved_accesses
from gossamer_support.message_texts import amount


@primitive(stages=LOOP_STAGES)
def storage_align(
    root: Cursor[Function],
    buffer: str,
    *,
    axis: int,
    factor: int,
    offset: int = 0,
    function: str | None = None,
) -> Change:
    """Pad a buffer so that its stride along `axis` is a multiple of `factor`, plus `offset`.

    The stride is the distance in elements between consecutive indices of the axis. With `offset=0` rows
    can start on cache lines; with `offset=1` they do not all fall on one memory bank. The function must
    allocate the buffer. The padding is never accessed. The result's name is the buffer.

    Raises `ScheduleError` with a code `schedule.storage_align.*`:

    * `.axis`: there is no later dimension that could be padded
    * `.factor`: not positive or too large, or the offset is not in [0, factor)
    * `.shape`: no padding gives such a stride
    * `.sparse`: the buffer is sparse
    * `.parameter`: the buffer is a parameter
    * `.not_proved`: vector accesses or searches of the buffer may be out of bounds

    >>> from gossamer_ir.script import print_expr
    >>> from gossamer_testkit.examples import STAGED
    >>> def shape(module): return [print_expr(at) for at in module.functions[0].buffers[-1].shape]
    >>> shape(STAGED)
    ['m', '8']
    >>> shape(storage_align(STAGED, "X_shared", axis=0, factor=16).module)
    ['m', '16']
    >>> shape(storage_align(STAGED, "X_shared", axis=0, factor=32, offset=1).module)
    ['m', '33']
    """
    old = find_buffer(root, buffer=buffer)

    require_allocated(old, root)
    # The rows of a sparse buffer have the lengths that its axes give them.
    if not isinstance(old, Buffer):
        raise schedule_error(
            "storage_align.sparse",
            f"Buffer '{buffer}' is sparse, and only dense buffers can be padded.",
        )
    _require_axis(old, axis)
    _require_factor(factor, offset)
    padded = _required_padded_extent(old, axis + 1, factor=factor, offset=offset)

    shape = (*old.shape[: axis + 1], padded, *old.shape[axis + 2 :])
    lost = {axis + 1: old.shape[axis + 1]} if padded != old.shape[axis + 1] else {}
    body = body_with_moved_accesses(root, buffer, tuple, lost=lost)
    aligned = with_buffer(replace(root.function, body=body), replace(old, shape=shape))

    return Change(root.with_function(aligned), (buffer,))


def _require_axis(buffer: Buffer, axis: int) -> None:
    """Refuse the last axis: padding a later dimension is what changes the stride of an axis."""
    if not 0 <= axis < len(buffer.shape) - 1:
        raise schedule_error(
            "storage_align.axis",
            f"Buffer '{buffer.name}' with {amount(len(buffer.shape), 'dimension')} has no dimension to pad "
            f"after axis {axis}.",
            hint="Expected an axis, counted from 0, before the last one.",
        )


def _require_factor(factor: int, offset: int) -> None:
    """Refuse factors and offsets that describe no stride.

    A stride is the offset modulo the factor, so the offset must be a remainder. Index arithmetic may overflow
    with larger factors.
    """
    if not is_count(factor) or not 0 <= offset < factor:
        raise schedule_error(
            "storage_align.factor",
            f"Factor {factor} and offset {offset} are invalid; expected a factor {COUNT_RANGE} and "
            "0 <= offset < factor.",
        )


def _required_padded_extent(buffer: Buffer, dimension: int, *, factor: int, offset: int) -> Expr:
    """Return the smallest extent of a dimension that gives the dimension before it such a stride."""
    extent, later = buffer.shape[dimension], buffer.shape[dimension + 1 :]
    inner = [integer_value(size) for size in later]
    constant_product = prod(size for size in inner if size is not None)
    count = integer_value(extent)
    if count is not None and None not in inner:
        padding = _min_padding(count, constant_product, factor=factor, offset=offset)
        if padding is not None:
            return index(count + padding)
    # With a symbolic extent the padding depends on it, so that the new extent is rounded up at run time.
    elif constant_product == 1 and not later:
        return add(
            mul(ceildiv(Binary("sub", extent, index(offset)), factor), index(factor)), index(offset)
        )
    elif offset == 0:
        return mul(ceildiv(extent, factor), index(factor))
    raise schedule_error(
        "storage_align.shape",
        f"No padding of dimension {dimension} of buffer '{buffer.name}' gives dimension {dimension - 1} "
        f"a stride that is a multiple of {factor}, plus {offset}.",
    )


def _min_padding(count: int, size: int, *, factor: int, offset: int) -> int | None:
    """Return the smallest n such that `(count + n) * size` is a multiple of `factor`, plus `offset`.

    None if this linear congruence has no solution.

    >>> _min_padding(30, 4, factor=16, offset=8), _min_padding(30, 4, factor=16, offset=1)
    (0, None)
    """
    shared = gcd(size, factor)
    missing = (offset - count * size) % factor
    if missing % shared:
        return None
    period = factor // shared
    # The least solution of n * size = missing (mod factor), by the inverse of size / gcd.
    return missing // shared * pow(size // shared, -1, period) % period

"""`storage_align`: the rows of a buffer begin at multiples."""

from __future__ import annotations

from math import gcd, prod

from msgspec.structs import replace

from gossamer_ir.core.build import add, ceildiv, index, integer_value, mul
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Binary, Buffer, Expr, Module
from gossamer_schedule.bounds.in_bounds import moved_accesses
from gossamer_schedule.bounds.sizes import COUNTS, is_count
from gossamer_schedule.cursor.allocations import require_allocated, with_buffer
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_buffer, find_function, require_stage
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step


@primitive
def storage_align(
    module: Module,
    buffer: str,
    *,
    axis: int,
    factor: int,
    offset: int = 0,
    function: str | None = None,
) -> Result:
    """Pads a buffer that the function allocates so that consecutive elements along `axis` lie a
    multiple of `factor`, plus `offset`, elements apart: rows that begin on cache lines (`offset=0`), or
    that do not all fall on one memory bank (`offset=1`). What is padded is never touched.

    Raises `ScheduleError`: `schedule.storage_align.axis` (it has no dimension behind it that could be
    padded), `.factor` (not 1 or more, too large, or the offset is not below it), `.shape` (no padding
    gives that distance), `.sparse` (a sparse buffer), `.not_proved` (vectors or searches of it may be out
    of bounds), `.parameter` (the caller's buffer), `.no_buffer`, `.no_function`, `.stage`.

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
    require_stage(module, "storage_align", stages=LOOP_STAGES)
    root = find_function(module, "storage_align", function=function)
    found = find_buffer(root, buffer=buffer)

    require_allocated(found, root)
    if not isinstance(found, Buffer):
        raise schedule_error(
            "storage_align.sparse", f"Buffer '{buffer}' is sparse, and has no rows of one length."
        )
    _require_axis(found, axis)
    _require_factor(factor, offset)
    padded = _require_padding(found, axis + 1, factor=factor, offset=offset)

    shape = (*found.shape[: axis + 1], padded, *found.shape[axis + 2 :])
    lost = {axis + 1: found.shape[axis + 1]} if padded != found.shape[axis + 1] else {}
    body = moved_accesses(root, buffer, tuple, lost=lost)
    aligned = with_buffer(replace(root.function, body=body), replace(found, shape=shape))

    rewritten = root.with_function(aligned).module

    taken = step(buffer=buffer, axis=axis, factor=factor, offset=offset or None, function=function)
    return Result(rewritten, (buffer,), Step("storage_align", taken))


def _require_axis(buffer: Buffer, axis: int) -> None:
    if not 0 <= axis < len(buffer.shape) - 1:
        raise schedule_error(
            "storage_align.axis",
            f"Buffer '{buffer.name}' of {len(buffer.shape)} dimensions cannot be padded behind "
            f"dimension {axis}.",
            hint="Expected a dimension, counted from 0, before the last one.",
        )


def _require_factor(factor: int, offset: int) -> None:
    if not is_count(factor) or not 0 <= offset < factor:
        raise schedule_error(
            "storage_align.factor",
            f"Elements cannot be a multiple of {factor} plus {offset} apart.",
            hint=f"Expected a factor {COUNTS}, and an offset from 0 to below it.",
        )


def _require_padding(buffer: Buffer, dim: int, *, factor: int, offset: int) -> Expr:
    """The least extent of a dimension with which what is before it is far enough apart."""
    extent, behind = buffer.shape[dim], buffer.shape[dim + 1 :]
    inner = [integer_value(found) for found in behind]
    known = prod(found for found in inner if found is not None)
    count = integer_value(extent)
    if count is not None and None not in inner:
        padding = _least_padding(count, known, factor=factor, offset=offset)
        if padding is not None:
            return index(count + padding)
    elif known == 1 and not behind:
        return add(
            mul(ceildiv(Binary("sub", extent, index(offset)), factor), index(factor)), index(offset)
        )
    elif offset == 0:
        return mul(ceildiv(extent, factor), index(factor))
    raise schedule_error(
        "storage_align.shape",
        f"No padding of dimension {dim} of buffer '{buffer.name}' puts what is before it a multiple of "
        f"{factor} plus {offset} elements apart.",
    )


def _least_padding(count: int, size: int, *, factor: int, offset: int) -> int | None:
    """The least number of elements of a size by which `count` of them come to lie a multiple of `factor`,
    plus `offset`, apart; a linear congruence, which may have no solution.

    >>> _least_padding(30, 4, factor=16, offset=8), _least_padding(30, 4, factor=16, offset=1)
    (0, None)
    """
    shared = gcd(size, factor)
    missing = (offset - count * size) % factor
    if missing % shared:
        return None
    period = factor // shared
    return missing // shared * pow(size // shared, -1, period) % period

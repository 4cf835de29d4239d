"""Conversion between the extent of a range and its stop, so that ranges survive printing and parsing."""

from __future__ import annotations

from gossamer_ir.core.build import ZERO, index, integer_value
from gossamer_ir.nodes import Binary, Const, Expr, Range

# A stop beyond int64 could not be printed as a constant that parses.
_INT64_END = 2**63


def extent_between(start: Expr, stop: Expr) -> Expr:
    """Return the extent of `start:stop`.

    This is `stop` if the start is 0, `e` for `start:start + e`, the difference of two constants, and the
    expression `stop - start` otherwise.
    """
    if start == ZERO:
        return stop
    low, high = integer_value(start), integer_value(stop)
    if low is not None and high is not None:
        # Not `index`, which wraps: the verifier must see a difference that does not fit int64.
        return Const("int64", str(high - low))
    if isinstance(stop, Binary) and stop.op == "add" and stop.lhs == start:
        return stop.rhs
    return Binary("sub", stop, start)


def stop_of(bounds: Range) -> Expr | None:
    """Return a stop for which `extent_between` gives exactly this extent; None if there is none."""
    for stop in _candidates(bounds.start, bounds.extent):
        if extent_between(bounds.start, stop) == bounds.extent:
            return stop
    return None


def _candidates(start: Expr, extent: Expr) -> tuple[Expr, ...]:
    if start == ZERO:
        return (extent,)
    low, length = integer_value(start), integer_value(extent)
    if low is not None and length is not None:
        stop = low + length
        return (index(stop),) if -_INT64_END <= stop < _INT64_END else ()
    if isinstance(extent, Binary) and extent.op == "sub" and extent.rhs == start:
        return (extent.lhs, Binary("add", start, extent))
    return (Binary("add", start, extent),)

"""Writes ranges and regions, so that the parser gives exactly the same."""

from __future__ import annotations

from gossamer_ir.core.build import ONE, ZERO
from gossamer_ir.nodes import Binary, Expr, Range, Region
from gossamer_ir.script.parser.state.range_stops import stop_of
from gossamer_ir.script.printer.expressions import write_index
from gossamer_ir.script.printer.writer import Writer


def write_bounds(w: Writer, start: Expr, extent: Expr, *, separator: str = ", ") -> None:
    """Write `extent` if the start is zero (except in slices), else start and stop."""
    stop = stop_of(Range(start, extent))
    if stop is None:
        w.put("T.from_extent(")
        write_index(w, start, "start")
        w.put(", ")
        write_index(w, extent, "extent")
        return w.put(")")
    if start != ZERO or separator != ", ":
        write_index(w, start, "start")
        w.put(separator)
    if isinstance(stop, Binary) and stop.op == "add" and stop.rhs is extent:
        return _write_sum(w, start, extent)
    return write_index(w, stop, "extent")


def write_region(w: Writer, node: Region) -> None:
    """Write `A[vi, 0:n]`."""
    w.put(f"{node.buffer}[")
    if not node.ranges:
        w.put("()")
    for number, bounds in w.separate_by_commas(node.ranges):
        with w.at("ranges", number):
            if bounds.extent == ONE:
                write_index(w, bounds.start, "start")
            else:
                write_bounds(w, bounds.start, bounds.extent, separator=":")
    w.put("]")


def _write_sum(w: Writer, start: Expr, extent: Expr) -> None:
    """Write the stop `start + extent`, of which the right operand is at the place of the extent."""
    write_index(w, Binary("add", start, extent), "extent")

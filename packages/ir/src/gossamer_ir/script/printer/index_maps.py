"""Writes the map of a format and the logical shape: `T.sp.map(lambda io, ii: (io * 4 + ii,), shape=(n,))`."""

from __future__ import annotations

from gossamer_ir.nodes import Expr, IndexMap
from gossamer_ir.script.printer.expressions import write_indices
from gossamer_ir.script.printer.writer import Writer


def write_map(w: Writer, index_map: IndexMap) -> None:
    """Write the lambda of coordinates."""
    w.put(f"lambda {', '.join(index_map.vars)}: " if index_map.vars else "lambda: ")
    _write_tuple(w, index_map.results, "results")


def write_shape(w: Writer, shape: tuple[Expr, ...]) -> None:
    """Write the tuple of logical sizes."""
    _write_tuple(w, shape, "shape")


def _write_tuple(w: Writer, items: tuple[Expr, ...], field: str) -> None:
    if not items:
        w.put("()")
        return
    w.put("(")
    write_indices(w, items, field)
    w.put(",)" if len(items) == 1 else ")")

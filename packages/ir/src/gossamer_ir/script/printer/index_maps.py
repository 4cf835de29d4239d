"""Writes the map of a format: `T.sp.map(lambda io, ii: (io * 4 + ii,))`."""

from __future__ import annotations

from gossamer_ir.nodes import IndexMap
from gossamer_ir.script.printer.expressions import write_index
from gossamer_ir.script.printer.writer import Writer


def write_map(w: Writer, index_map: IndexMap) -> None:
    """Write the call that `declare_map` reads."""
    w.put(
        f"T.sp.map(lambda {', '.join(index_map.vars)}: ("
        if index_map.vars
        else "T.sp.map(lambda: ("
    )
    for number, result in enumerate(index_map.results):
        w.put(", " if number else "")
        write_index(w, result, "results", item=number)
    w.put(",))" if len(index_map.results) == 1 else "))")

"""Sizes of what the caller passes, which are never negative."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.nodes import Buffer, Expr, Function


def sizes_of(function: Function) -> Iterator[Expr]:
    """The extents of the buffers that are parameters."""
    lengths = {axis.name: axis.length for axis in function.axes}
    for found in function.buffers:
        if found.handle is None:
            continue
        if isinstance(found, Buffer):
            yield from found.shape
        else:
            yield from (lengths[name] for name in found.axes)

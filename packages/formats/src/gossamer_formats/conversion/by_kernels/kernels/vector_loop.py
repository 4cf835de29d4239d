"""Nests whose innermost loop is over a dense axis, in vectors.

The elements of a fiber of a dense axis of constant width, as the columns of a block, go to consecutive slots
if they are appended. Their slots are counted once for all of them, so that vectors are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gossamer_formats.conversion.by_kernels.kernels.loop_nest import depth_of_loops
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import For, Let, Stmt
from gossamer_ir.traversal.free_vars import free_vars

WIDTHS = (2, 4, 8, 16)
"""The possible numbers of lanes."""


class VectorLoop(NamedTuple):
    """A nest `outer` around a loop with lanes and the bindings of what differs between lanes; `outer` has
    those of what is the same in all lanes."""

    outer: tuple[Stmt, ...]
    loop: For
    bindings: tuple[Let, ...]

    @property
    def depth(self) -> int:
        """The number of levels outside of the loop."""
        return depth_of_loops(self.outer)

    def with_body(self, body: Sequence[Stmt]) -> For:
        """Return the loop with a body."""
        return replace(self.loop, kind="vectorized", body=(*self.bindings, *body))


def vector_loop(nest: Sequence[Stmt], bindings: Sequence[Stmt]) -> VectorLoop | None:
    """Return a nest with bindings in it as one around a vector loop.

    None if the innermost level is not a loop over a dense axis of a suitable width, or does more than to bind
    variables.
    """
    depth_of_loop = max(
        (depth for depth, level in enumerate(nest) if isinstance(level, For)), default=None
    )
    inner = (*nest[depth_of_loop + 1 :], *bindings) if depth_of_loop is not None else ()
    innermost = nest[depth_of_loop] if depth_of_loop is not None else None
    if not isinstance(innermost, For) or not all(isinstance(binding, Let) for binding in inner):
        return None
    if innermost.start != ZERO or integer_value(innermost.extent) not in WIDTHS:
        return None
    varying = {innermost.var}
    same, others = [], []
    for binding in inner:
        assert isinstance(binding, Let)
        if varying.isdisjoint(free_vars(binding.value)):
            same.append(binding)
        else:
            varying.add(binding.var.name)
            others.append(binding)
    return VectorLoop((*nest[:depth_of_loop], *same), innermost, tuple(others))

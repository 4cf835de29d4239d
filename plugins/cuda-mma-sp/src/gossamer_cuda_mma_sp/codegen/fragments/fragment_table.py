"""The table of the fragments of a function: how lanes hold them, and which products they
are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gossamer_cuda_mma_sp.codegen.fragments.fragment_layouts import (
    FragmentLayout,
    TileCounts,
    TiledInstruction,
)
from gossamer_cuda_mma_sp.codegen.fragments.matrix_products import MatrixProduct
from gossamer_ir.core.build import ZERO, index, index_var
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Buffer, For, Node, Stmt, ThreadTag, Var
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import collect

LANE_AXIS: ThreadTag = "threadIdx.x"
"""The axis along which the threads of a block are the lanes that hold fragments."""


class FragmentTable(msgspec.Struct, frozen=True):
    """The fragments of a function."""

    buffers: Mapping[str, Buffer]
    """The buffers in fragments, by their names."""
    shared: Mapping[str, Buffer]
    """The buffers in shared memory, by their names."""
    arrays: Mapping[str, Buffer]
    """The arrays that callers pass, by their names."""
    layouts: Mapping[str, FragmentLayout]
    """The elements of each fragment that a lane holds."""
    instructions: Mapping[MatrixProduct, TiledInstruction]
    """The instruction for each product."""
    tiles: Mapping[MatrixProduct, TileCounts]
    """The tiles of each product."""
    lane: Var
    """The number of a lane in layouts and in statements before `run_by_lanes`."""
    namer: Namer

    @property
    def lanes(self) -> int:
        """The threads that hold a fragment: those of a warp, or of warpgroups."""
        return WARP_LANES * max((tiles.warps for tiles in self.tiles.values()), default=1)


def run_by_lanes(table: FragmentTable, body: Sequence[Any]) -> tuple[Stmt, ...]:
    """Return statements in a loop over the lanes that hold fragments, with a variable of its own."""
    lane = table.namer.fresh("lane")
    renamed = tuple(substitute(stmt, {table.lane.name: index_var(lane)}) for stmt in body)
    return (For(lane, ZERO, index(table.lanes), renamed, kind="thread_binding", thread=LANE_AXIS),)


def accesses_fragment(table: FragmentTable, node: Node) -> bool:
    """Return whether a node reads or writes elements of fragments."""
    return any(access.buffer in table.buffers for access in collect(BUFFER_NODES, node))


def fragment_access_error(table: FragmentTable, stmt: Stmt) -> UnsupportedError:
    """Return the error for a statement that accesses elements of fragments in another way than by one loop
    over each dimension."""
    names = {access.buffer for access in collect(BUFFER_NODES, stmt)} & table.buffers.keys()
    return UnsupportedError(
        "cuda.fragment.access",
        f"The elements of {', '.join(sorted(names))} are not accessed one by one in loops over fragments "
        "of one layout.",
        hint="Fill and store a fragment in loops over all its indices, as in X[i, p] = A[i, p].",
    )

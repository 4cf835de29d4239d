"""Swizzles tiles in shared memory that matrix loads read, so that their rows are in different banks.

The 8 rows of a matrix have 16 bytes each, and shared memory has 8 banks of 16 bytes. In a tile with an even
number of such chunks in a row, some of the rows of a matrix are in one bank, and are loaded one after the
other. The number of the chunk is therefore combined with that of the row by an exclusive or: rows have the
same elements as before, in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import add, binary, floordiv, index, integer_value, mul
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Buffer, Expr, For, Node, Ramp, Stmt
from gossamer_ir.traversal.access_types import BUFFER_NODES, ELEMENT_NODES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_llvm import WarpgroupProduct, WarpLoad, warp_instruction_of

_BANKS = 8
"""The banks of a chunk, as many as a matrix has rows."""
_CHUNK_BYTES = 16


def swizzle_shared(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return statements with the tiles swizzled that matrix loads read with conflicts, or that products of
    warpgroups read: their descriptors say that it is.

    All accesses of such a tile are to single elements, or to consecutive ones within a chunk. Raises
    `UnsupportedError` (`cuda.fragment.access`) for others to a tile of a warpgroup.
    """
    loaded = _buffers_read(body, WarpLoad)
    multiplied = _buffers_read(body, WarpgroupProduct)
    tiles = {}
    for buffer in allocations(stmts(body)):
        if buffer.name in loaded | multiplied and _chunks(buffer):
            if _can_swizzle(buffer, body):
                tiles[buffer.name] = buffer
            elif buffer.name in multiplied:
                raise UnsupportedError(
                    "cuda.fragment.access",
                    f"The tile '{buffer.name}' in shared memory is not accessed in parts of its chunks of "
                    f"{_CHUNK_BYTES} bytes, which change places for the product that reads it.",
                    hint="Store its elements one by one, or in aligned vectors of at most 16 bytes.",
                )

    def rule(node: Node) -> Any | None:
        if isinstance(node, ELEMENT_NODES) and node.buffer in tiles:
            return replace(node, indices=_swizzle(node.indices, tiles[node.buffer]))
        return None

    return rewrite_body(body, rule) if tiles else body


def _buffers_read(body: tuple[Stmt, ...], kind: type[WarpLoad | WarpgroupProduct]) -> set[str]:
    """Return the buffers that instructions of a kind name."""
    return {
        node.buffer
        for loop in stmts(body)
        if isinstance(loop, For) and isinstance(warp_instruction_of(loop), kind)
        for store in loop.body
        for node in collect(BUFFER_NODES, store)
    }


def _chunks(buffer: Buffer) -> int:
    """Return the number of chunks of a row if it is a power of two, above 1; else 0."""
    pitch = integer_value(buffer.shape[-1])
    if buffer.scope != "shared" or pitch is None or len(buffer.shape) < 2:
        return 0
    chunks, rest = divmod(pitch, _chunk_elements(buffer))
    return chunks if not rest and chunks > 1 and chunks & (chunks - 1) == 0 else 0


def _chunk_elements(buffer: Buffer) -> int:
    return _CHUNK_BYTES * 8 // DType.parse(buffer.dtype).bits


def _can_swizzle(buffer: Buffer, body: tuple[Stmt, ...]) -> bool:
    return all(
        isinstance(node, ELEMENT_NODES) and all(_stays_in_chunk(node.indices, buffer))
        for node in collect(BUFFER_NODES, *body)
        if node.buffer == buffer.name
    )


def _stays_in_chunk(indices: tuple[Expr, ...], buffer: Buffer) -> Iterator[bool]:
    """Yield whether each index selects one element or, of the last dimension, a part of a chunk."""
    *outer, last = indices
    yield not any(map(has_lanes, outer))
    if isinstance(last, Ramp):
        count = last.lanes.count
        base = affine_of(last.base)
        is_aligned = all(by % count == 0 for by in (*base.terms.values(), base.constant))
        is_part = _chunk_elements(buffer) % count == 0 and not last.lanes.scalable
        yield is_aligned and is_part and integer_value(last.stride) == 1
    else:
        yield not has_lanes(last)


def _swizzle(indices: tuple[Expr, ...], buffer: Buffer) -> tuple[Expr, ...]:
    *outer, row, last = indices
    if isinstance(last, Ramp):
        return (*outer, row, replace(last, base=_column(row, last.base, buffer)))
    return (*outer, row, _column(row, last, buffer))


def _column(row: Expr, column: Expr, buffer: Buffer) -> Expr:
    """Return the column of an element in its row: chunks change places, by the number of the row."""
    elements = _chunk_elements(buffer)
    ways = min(_chunks(buffer), _BANKS)
    # As many rows as fit into all banks have no conflicts, and change places together.
    way = binary("floormod", floordiv(row, index(_BANKS // ways)), index(ways))
    chunk = binary("bitxor", floordiv(column, index(elements)), way)
    return add(mul(chunk, index(elements)), binary("floormod", column, index(elements)))

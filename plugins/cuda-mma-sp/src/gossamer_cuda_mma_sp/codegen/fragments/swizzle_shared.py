"""Swizzles tiles in shared memory that matrix loads read, so that their rows are in different banks.

The 8 rows of a matrix have 16 bytes each, and shared memory has 8 banks of 16 bytes. In a tile with an even
number of such chunks in a row, some of the rows of a matrix are in one bank, and are loaded one after the
other. The number of the chunk is therefore combined with that of the row by an exclusive or: rows have the
same elements as before, in another order.

Products of warpgroups read spans of up to 128 bytes. Longer rows are divided: first all rows have their first
span, then all their second one, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from gossamer_cuda_mma_sp.instructions.matrix_descriptors import CHUNK_BYTES, MatrixDescriptor
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import add, binary, floordiv, index, integer_value, mul
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Allocate, Buffer, Expr, For, Load, Node, Ramp, Stmt
from gossamer_ir.traversal.access_types import BUFFER_NODES, ELEMENT_NODES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_llvm import WarpgroupProduct, WarpLoad, warp_instruction_of

K = TypeVar("K", WarpgroupProduct, WarpLoad)

_BANKS = 8
"""The banks of a chunk, as many as a matrix has rows."""


class _SwizzledTile(msgspec.Struct, frozen=True):
    """A tile: the elements of a chunk, the chunks of a span, and the spans of a row."""

    buffer: Buffer
    chunk: int
    chunks: int
    spans: int

    @property
    def stored(self) -> Buffer:
        """The buffer with a dimension of spans, if a row has several."""
        if self.spans == 1:
            return self.buffer
        *outer, rows, _ = self.buffer.shape
        shape = (*outer, index(self.spans), rows, index(self.chunks * self.chunk))
        return replace(self.buffer, shape=shape)


def swizzle_shared(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return statements with the tiles swizzled that matrix loads read with conflicts, or that products of
    warpgroups read: their descriptors say that it is.

    All accesses of such a tile are to single elements, or to consecutive ones within a chunk. Raises
    `UnsupportedError` (`cuda.fragment.access`) for others to a tile of a warpgroup.
    """
    spans = _spans_of_products(body)
    loaded = {load.buffer for _, loads in _operands(body, WarpLoad) for load in loads}
    tiles = {}
    for buffer in allocations(stmts(body)):
        if buffer.name in spans:
            _require_chunks(buffer, body)
            tiles[buffer.name] = _tile(buffer, spans[buffer.name])
        elif buffer.name in loaded and _chunks(buffer) and _can_swizzle(buffer, body):
            tiles[buffer.name] = _SwizzledTile(buffer, _chunk_elements(buffer), _chunks(buffer), 1)

    def rule(node: Node) -> Any | None:
        if isinstance(node, ELEMENT_NODES) and node.buffer in tiles:
            return replace(node, indices=_swizzle(node.indices, tiles[node.buffer]))
        if isinstance(node, Allocate) and node.buffer.name in tiles:
            return Allocate(tiles[node.buffer.name].stored)
        return None

    return rewrite_body(body, rule) if tiles else body


def _operands(body: tuple[Stmt, ...], kind: type[K]) -> Iterator[tuple[K, list[Load]]]:
    """Yield the instructions of a kind, with what they read."""
    for loop in stmts(body):
        instruction = warp_instruction_of(loop) if isinstance(loop, For) else None
        if isinstance(loop, For) and isinstance(instruction, kind):
            yield instruction, collect(Load, *loop.body)


def _spans_of_products(body: tuple[Stmt, ...]) -> Mapping[str, int]:
    """Return the bytes of a span of each tile that products of warpgroups read: the last operand is B, and
    the one before it is A if that is in shared memory."""
    spans = {}
    for product, loads in _operands(body, WarpgroupProduct):
        for descriptor, load in (
            (product.descriptor, loads[-1]),
            (product.a_descriptor, loads[-2]),
        ):
            if descriptor is not None:
                spans[load.buffer] = MatrixDescriptor.decode(descriptor).span
    return spans


def _tile(buffer: Buffer, span: int) -> _SwizzledTile:
    chunk, pitch = _chunk_elements(buffer), integer_value(buffer.shape[-1])
    assert pitch is not None, "products have constant shapes"
    chunks = span // CHUNK_BYTES
    return _SwizzledTile(buffer, chunk, chunks, pitch // (chunks * chunk))


def _require_chunks(buffer: Buffer, body: tuple[Stmt, ...]) -> None:
    if not _can_swizzle(buffer, body):
        raise UnsupportedError(
            "cuda.fragment.access",
            f"The tile '{buffer.name}' in shared memory is not accessed in parts of its chunks of "
            f"{CHUNK_BYTES} bytes, which change places for the product that reads it.",
            hint="Store its elements one by one, or in aligned vectors of at most 16 bytes.",
        )


def _chunks(buffer: Buffer) -> int:
    """Return the number of chunks of a row if it is a power of two, above 1; else 0."""
    pitch = integer_value(buffer.shape[-1])
    if buffer.scope != "shared" or pitch is None or len(buffer.shape) < 2:
        return 0
    chunks, rest = divmod(pitch, _chunk_elements(buffer))
    return chunks if not rest and chunks > 1 and chunks & (chunks - 1) == 0 else 0


def _chunk_elements(buffer: Buffer) -> int:
    return CHUNK_BYTES * 8 // DType.parse(buffer.dtype).bits


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


def _swizzle(indices: tuple[Expr, ...], tile: _SwizzledTile) -> tuple[Expr, ...]:
    *outer, row, last = indices
    column = last.base if isinstance(last, Ramp) else last
    if tile.spans > 1:
        span = index(tile.chunks * tile.chunk)
        outer.append(floordiv(column, span))
        column = binary("floormod", column, span)
    column = _column(row, column, tile)
    return (*outer, row, replace(last, base=column) if isinstance(last, Ramp) else column)


def _column(row: Expr, column: Expr, tile: _SwizzledTile) -> Expr:
    """Return the column of an element in its span: chunks change places, by the number of the row."""
    ways = min(tile.chunks, _BANKS)
    if ways == 1:
        return column
    # As many rows as fit into all banks have no conflicts, and change places together.
    way = binary("floormod", floordiv(row, index(_BANKS // ways)), index(ways))
    chunk = binary("bitxor", floordiv(column, index(tile.chunk)), way)
    return add(mul(chunk, index(tile.chunk)), binary("floormod", column, index(tile.chunk)))

"""Buffers of the scope `fragment`: they are in matrix registers, whose rows are read and written as vectors.

A matrix register is a tile of Arm SME. Its rows are scalable vectors, and it has a row for each element of 32
bits of a vector. A buffer is one tile, or as many as its first dimension says if it has three.
"""

from __future__ import annotations

from functools import partial

import msgspec

from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.core.dtypes import DType, vscale_factor
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Allocate, Buffer, Expr, Load, Ramp, Store, VScale
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import intrinsic_suffix
from gossamer_llvm.values.masks import OFF, ON, emit_predicate

MATRIX_REGISTERS = 4
"""The tiles of elements of 32 bits into which the storage ZA of SME is divided."""

FRAGMENT_ROWS = vscale_factor("float32")
"""The rows of a tile for each unit of vscale."""

ALL_WORDS = "<vscale x 4 x i1> splat (i1 true)"
"""The mask of all elements of 32 bits."""

_ROW_TYPES = {"float32": "<vscale x 4 x float>", "float16": "<vscale x 4 x i32>"}
"""The type of a row by the dtype of its elements: a pair of float16 is one element of 32 bits."""


class _Row(msgspec.Struct, frozen=True):
    """A row of a tile: its type, the number of the tile, and the row as an operand."""

    type: str
    tile: int
    slice: str


class Fragment(msgspec.Struct, frozen=True, gc=False):
    """A buffer in matrix registers, and the number of its first one."""

    buffer: Buffer
    first: int


class MatrixRegisters(msgspec.Struct):
    """The matrix registers of a function: the buffers in them, and how many are taken."""

    fragments: dict[str, Fragment] = {}
    used: int = 0


def fragments_of(emitter: FunctionEmitter) -> dict[str, Fragment]:
    """Return the buffers in matrix registers, by name."""
    return emitter.state(MatrixRegisters).fragments


def emit_fragment(emitter: FunctionEmitter, node: Allocate) -> bool:
    """Reserve matrix registers for a buffer to the end of the enclosing body, and clear them; return False
    for a buffer of another scope."""
    buffer, registers = node.buffer, emitter.state(MatrixRegisters)
    if buffer.scope != "fragment":
        return False
    emitter.module.require_dtype(buffer.dtype)
    first, count = registers.used, _tiles(buffer)
    if first + count > MATRIX_REGISTERS:
        raise UnsupportedError(
            "llvm.fragment.registers",
            f"Buffer '{buffer.name}' needs {count} matrix registers; {MATRIX_REGISTERS - first} of "
            f"{MATRIX_REGISTERS} are free.",
        )
    registers.used += count
    emitter.body_ends.append(partial(_release, registers, count))
    registers.fragments[buffer.name] = Fragment(buffer, first)
    # A bit stands for the tile of elements of 64 bits; two of these make one of 32 bits.
    mask = sum(0b10001 << tile for tile in range(first, first + count))
    emitter.call_void("llvm.aarch64.sme.zero", f"i32 {mask}")
    return True


def _release(registers: MatrixRegisters, count: int) -> None:
    registers.used -= count


def _tiles(buffer: Buffer) -> int:
    """Return the number of tiles of a buffer; refuse a buffer that does not consist of whole tiles."""
    *outer, rows, columns = (ZERO, ZERO, *buffer.shape)
    sizes = [Affine({VScale(): lanes}, 0) for lanes in (FRAGMENT_ROWS, vscale_factor(buffer.dtype))]
    counts = [integer_value(extent) for extent in outer[2:]]
    is_tile = buffer.dtype in _ROW_TYPES and [affine_of(rows), affine_of(columns)] == sizes
    match counts:
        case [] if is_tile:
            return 1
        case [int(count)] if is_tile:
            return count
    raise UnsupportedError(
        "llvm.fragment.shape",
        f"Buffer '{buffer.name}' does not consist of whole matrix registers.",
        hint=f"Expected {FRAGMENT_ROWS} * T.vscale() rows of one vector of float32 or float16, or a constant "
        "number of these.",
    )


def emit_row_load(emitter: FunctionEmitter, node: Load) -> Value | None:
    """Emit the load of a row. Where its mask is false, it has the value of its passthrough. Return None for a
    buffer that is not in matrix registers."""
    if node.buffer not in fragments_of(emitter):
        return None
    row = _required_row(emitter, node, node.dtype)
    mask, rest = word_mask(emitter, node), f"{row.type} poison"
    if node.passthrough is not None:
        rest = emitter.expr(node.passthrough).typed
    name = f"llvm.aarch64.sme.read.horiz.{intrinsic_suffix(row.type)}"
    loaded = emitter.call_in_place(row.type, name, f"{rest}, {mask}, i32 {row.tile}, {row.slice}")
    return Value(loaded, node.dtype)


def emit_row_store(emitter: FunctionEmitter, node: Store) -> bool:
    """Emit the store of a row. Where its mask is false, the row stays as it is. Return False for a buffer
    that is not in matrix registers."""
    if node.buffer not in fragments_of(emitter):
        return False
    row = _required_row(emitter, node, dtype_of(node.value))
    mask, value = word_mask(emitter, node), _as_words(emitter, emitter.expr(node.value))
    name = f"llvm.aarch64.sme.write.horiz.{intrinsic_suffix(row.type)}"
    emitter.call_void(name, f"i32 {row.tile}, {row.slice}, {mask}, {row.type} {value}")
    return True


def _as_words(emitter: FunctionEmitter, value: Value) -> str:
    """Return a vector of a whole register as elements of 32 bits."""
    if DType.parse(value.dtype).scalar == "float32":
        return value.text
    return emitter.builder.value(f"bitcast {value.typed} to <vscale x 4 x i32>")


def emit_column(emitter: FunctionEmitter, element: Load, column: Expr) -> str:
    """Return a column of the tile of an element, of words of 32 bits."""
    kind, tile = _ROW_TYPES[element.dtype], tile_of(emitter, element)
    name = f"llvm.aarch64.sme.read.vert.{intrinsic_suffix(kind)}"
    slice_ = _slice(emitter, column)
    return emitter.call_in_place(kind, name, f"{kind} poison, {ALL_WORDS}, i32 {tile}, {slice_}")


def tile_of(emitter: FunctionEmitter, node: Load | Store) -> int:
    """Return the number of the tile that is accessed; refuse one that is not known."""
    fragment, outer = fragments_of(emitter)[node.buffer], node.indices[:-2]
    number = integer_value(outer[0]) if outer else 0
    if number is None:
        raise _access_error(node, "at a constant matrix register")
    return fragment.first + number


# Other expressions: refused.
def _required_row(emitter: FunctionEmitter, node: Load | Store, dtype: str) -> _Row:
    """Return the row that is accessed; refuse any other part of a buffer."""
    buffer = fragments_of(emitter)[node.buffer].buffer
    last, lanes = node.indices[-1], DType(buffer.dtype, vscale_factor(buffer.dtype), scalable=True)
    is_whole = isinstance(last, Ramp) and last.base == ZERO and integer_value(last.stride) == 1
    if not is_whole or dtype != lanes.text:
        raise _access_error(node, "by whole rows")
    if buffer.dtype != "float32" and isinstance(node, Load):
        raise _access_error(node, "as an operand of outer products")
    tile, at = tile_of(emitter, node), node.indices[-2]
    return _Row(_ROW_TYPES[buffer.dtype], tile, _slice(emitter, at))


def _access_error(node: Load | Store, how: str) -> UnsupportedError:
    return UnsupportedError(
        "llvm.fragment.access",
        f"Buffer '{node.buffer}' is in matrix registers, and can only be accessed {how}.",
        hint="A loop over all rows that adds products of elements of a column with one vector to the rows "
        "of another buffer is an outer product.",
    )


def _slice(emitter: FunctionEmitter, at: Expr) -> str:
    """Return the number of a row or column as an operand.

    It passes through an instruction that LLVM does not know: LLVM 22 ends the process if it is constant.
    """
    index = emitter.expr(at)
    narrow = emitter.builder.value(f"trunc {index.typed} to i32")
    return "i32 " + emitter.builder.value(f'call i32 asm "", "=r,0"(i32 {narrow})')


def word_mask(emitter: FunctionEmitter, node: Load | Store) -> str:
    """Return the mask of the words of a row."""
    mask = emit_predicate(emitter, node.predicate)
    if mask is ON:
        return ALL_WORDS
    if mask is OFF:
        return "<vscale x 4 x i1> zeroinitializer"
    if DType.parse(mask.dtype).lanes != FRAGMENT_ROWS or not DType.parse(mask.dtype).scalable:
        raise _access_error(node, "without a mask unless its elements are float32")
    return mask.typed

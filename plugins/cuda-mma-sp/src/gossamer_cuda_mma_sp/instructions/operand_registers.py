"""The registers of the lanes of a warp that hold the operands and the result of `mma.sp`.

Lane 4 * g + t is lane t of the quad g. A register has 32 bits, so p elements of 32 / p bits, the first in
its lowest bits. Tiles come first: an array of registers has the shape (tiles, tiles, 32 lanes, registers),
and each `[tile, tile]` is what one instruction takes. All layouts are those of the PTX ISA ("Matrix
fragments for sparse mma.m16n8k16" and the following sections); that of A is the one of the dense
instruction with half of the depth.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer_cuda_mma_sp.instructions.sparse_instructions import (
    MMA_COLUMNS,
    MMA_ROWS,
    SparseInstruction,
)
from gossamer_cuda_mma_sp.n_m.compressed_matrix import CompressedMatrix
from gossamer_cuda_mma_sp.n_m.metadata_words import (
    nibbles_of_words,
    pad_matrix,
    require_two_dimensions,
)
from gossamer_cuda_mma_sp.n_m.operand_dtypes import (
    OperandDType,
    dtype_of_operand,
    operand_dtype_named,
)
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed

ACCUMULATOR_DTYPES = ("float16", "float32", "int32")
"""The dtypes of results."""


@typed
def pack_a(matrix: CompressedMatrix, instruction: SparseInstruction) -> Array:
    """Return the registers of the sparse operand: uint32, row tiles by depth tiles by lanes by registers.

    Register r of a lane holds the elements `t * p` to `t * p + p - 1`, plus `4 * p * (r // 2)`, of the
    compressed row `g + 8 * (r % 2)`. Rows are padded to a multiple of 16, and columns to one of the depth,
    with zeros.

    Raises `ArgumentError` (`n_m.operand`) if the instruction is for other dtypes.

    >>> from gossamer_cuda_mma_sp.n_m.compress import compress
    >>> from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
    >>> ones = compress(np.array([[1, 1, 0, 0]], np.float16))
    >>> [hex(register) for register in pack_a(ones, sparse_instruction("m16n8k16", "float16"))[0, 0, 0]]
    ['0x3c003c00', '0x0']
    """
    require_operand(matrix.dtype, instruction)
    p, depth = instruction.element.register_elements, instruction.depth // 2
    padded = pad_matrix(matrix.values, rows=MMA_ROWS, columns=depth)
    row_tiles, depth_tiles = padded.shape[0] // MMA_ROWS, padded.shape[1] // depth
    tiles = padded.reshape(row_tiles, 2, 8, depth_tiles, instruction.operand_registers // 2, 4, p)
    return _registers_of(tiles.transpose(0, 3, 2, 5, 4, 1, 6), instruction.element)


@typed
def unpack_a(registers: Array, instruction: SparseInstruction, dtype: str) -> Array:
    """Return the values that the registers of the sparse operand hold: the inverse of `pack_a`.

    The result has the rows and half of the columns of all tiles, in the dtype in which `dtype` is stored.

    Raises `ArgumentError`: `n_m.operand`, `n_m.registers` (a wrong shape or dtype).

    >>> from gossamer_cuda_mma_sp.n_m.compress import compress
    >>> from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
    >>> k16 = sparse_instruction("m16n8k16", "float16")
    >>> unpack_a(pack_a(compress(np.array([[0, 7, 0, 9]], np.float16)), k16), k16, "float16")[0, :3]
    array([7., 9., 0.], dtype=float16)
    """
    require_operand(dtype, instruction)
    require_registers(registers, instruction.operand_registers)
    p, depth = instruction.element.register_elements, instruction.depth // 2
    row_tiles, depth_tiles = registers.shape[:2]
    elements = _elements_of(registers, operand_dtype_named(dtype))
    tiles = elements.reshape(row_tiles, depth_tiles, 8, 4, instruction.operand_registers // 2, 2, p)
    rows = tiles.transpose(0, 5, 2, 1, 4, 3, 6)
    return rows.reshape(row_tiles * MMA_ROWS, depth_tiles * depth)


@typed
def pack_b(matrix: Array, instruction: SparseInstruction, dtype: str | None = None) -> Array:
    """Return the registers of the dense operand: uint32, depth tiles by column tiles by lanes by registers.

    `matrix` has rows by columns, in the dtype of NumPy in which `dtype` is stored (`compress`). Register r
    of a lane holds the elements `r * 4 * p + t * p` to `r * 4 * p + t * p + p - 1` of column g. Rows are
    padded to a multiple of the depth, and columns to one of 8, with zeros.

    Raises `ArgumentError`: `n_m.dimensions`, `n_m.dtype`, `n_m.range`, `n_m.operand`.

    >>> from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
    >>> column = np.arange(16, dtype=np.int8)[:, None]
    >>> [hex(register) for register in pack_b(column, sparse_instruction("m16n8k32", "int8"))[0, 0, 1]]
    ['0x7060504', '0x0']
    """
    require_two_dimensions("matrix", matrix)
    operand = dtype_of_operand(matrix, dtype)
    require_operand(operand.name, instruction)
    p = operand.register_elements
    padded = pad_matrix(matrix, rows=instruction.depth, columns=MMA_COLUMNS)
    depth_tiles = padded.shape[0] // instruction.depth
    column_tiles = padded.shape[1] // MMA_COLUMNS
    tiles = padded.reshape(
        depth_tiles, instruction.operand_registers, 4, p, column_tiles, MMA_COLUMNS
    )
    return _registers_of(tiles.transpose(0, 4, 5, 2, 1, 3), operand)


@typed
def unpack_b(registers: Array, instruction: SparseInstruction, dtype: str) -> Array:
    """Return the dense operand that registers hold: the inverse of `pack_b`.

    The result has the rows and columns of all tiles, in the dtype in which `dtype` is stored.

    Raises `ArgumentError`: `n_m.operand`, `n_m.registers` (a wrong shape or dtype).

    >>> from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
    >>> k32 = sparse_instruction("m16n8k32", "int8")
    >>> unpack_b(pack_b(np.array([[1, 2], [3, 4]], np.int8), k32), k32, "int8")[:2, :3]
    array([[1, 2, 0],
           [3, 4, 0]], dtype=int8)
    """
    require_operand(dtype, instruction)
    require_registers(registers, instruction.operand_registers)
    depth_tiles, column_tiles = registers.shape[:2]
    elements = _elements_of(registers, operand_dtype_named(dtype))
    p = instruction.element.register_elements
    tiles = elements.reshape(depth_tiles, column_tiles, 8, 4, instruction.operand_registers, p)
    rows = tiles.transpose(0, 4, 3, 5, 1, 2)
    return rows.reshape(depth_tiles * instruction.depth, column_tiles * MMA_COLUMNS)


@typed
def pack_accumulator(matrix: Array) -> Array:
    """Return the registers of an accumulator: uint32, row tiles by column tiles by lanes by registers.

    `matrix` is float16, float32 or int32, rows by columns. Element i of a lane is in row `g + 8 * (i // 2)`
    and column `2 * t + i % 2` of its tile. A lane has 4 registers, or 2 of two elements each for float16.
    Rows are padded to a multiple of 16, and columns to one of 8, with zeros.

    Raises `ArgumentError`: `n_m.dimensions`, `n_m.accumulator` (another dtype).

    >>> pack_accumulator(np.arange(16, dtype=np.int32).reshape(2, 8))[0, 0, 5].tolist()
    [10, 11, 0, 0]
    """
    require_two_dimensions("matrix", matrix)
    _require_accumulator(matrix.dtype.name)
    padded = pad_matrix(matrix, rows=MMA_ROWS, columns=MMA_COLUMNS)
    row_tiles, column_tiles = padded.shape[0] // MMA_ROWS, padded.shape[1] // MMA_COLUMNS
    tiles = padded.reshape(row_tiles, 2, 8, column_tiles, 4, 2)
    lanes = np.ascontiguousarray(tiles.transpose(0, 3, 2, 4, 1, 5))
    return lanes.reshape(*lanes.shape[:2], WARP_LANES, 4).view(np.uint32)


@typed
def unpack_accumulator(registers: Array, dtype: str) -> Array:
    """Return the matrix that the registers of an accumulator hold: the inverse of `pack_accumulator`.

    `dtype` is float16, float32 or int32. The result has the rows and columns of all tiles.

    Raises `ArgumentError`: `n_m.accumulator` (another dtype), `n_m.registers` (a wrong shape or
    dtype).

    >>> unpack_accumulator(pack_accumulator(np.eye(2, 3, dtype=np.float16)), "float16")[:2, :3]
    array([[1., 0., 0.],
           [0., 1., 0.]], dtype=float16)
    """
    _require_accumulator(dtype)
    require_registers(registers, 2 if dtype == "float16" else 4)
    row_tiles, column_tiles = registers.shape[:2]
    lanes = np.ascontiguousarray(registers).view(dtype).reshape(row_tiles, column_tiles, 8, 4, 2, 2)
    rows = lanes.transpose(0, 4, 2, 1, 3, 5)
    return rows.reshape(row_tiles * MMA_ROWS, column_tiles * MMA_COLUMNS)


def require_operand(dtype: str, instruction: SparseInstruction) -> None:
    """Raise an `ArgumentError` (`n_m.operand`) unless a dtype is one of an instruction's operands."""
    if dtype not in instruction.operands:
        raise ArgumentError(
            "n_m.operand",
            f"The operand is {dtype}; this instruction of the shape {instruction.shape} takes "
            f"{' or '.join(instruction.operands)}.",
        )


def require_registers(registers: Array, count: int) -> None:
    """Raise an `ArgumentError` (`n_m.registers`) unless an array has `count` registers for each lane of
    tiles in two dimensions."""
    is_shaped = registers.ndim == 4 and registers.shape[2:] == (WARP_LANES, count)
    if not is_shaped or registers.dtype.name != "uint32":
        raise ArgumentError(
            "n_m.registers",
            f"The registers are {registers.dtype.name} of shape {registers.shape}; expected uint32 of shape "
            f"(tiles, tiles, {WARP_LANES}, {count}).",
        )


def _require_accumulator(dtype: str) -> None:
    if dtype not in ACCUMULATOR_DTYPES:
        raise ArgumentError(
            "n_m.accumulator",
            f"The accumulator is {dtype}; expected {', '.join(ACCUMULATOR_DTYPES[:-1])} or "
            f"{ACCUMULATOR_DTYPES[-1]}.",
        )


def _registers_of(elements: Array, operand: OperandDType) -> Array:
    """Return elements (tiles, tiles, g, t, ..., p) as registers."""
    lanes = np.ascontiguousarray(elements)
    if operand.bits == 4:
        bits = lanes.view(np.uint8)
        lanes = bits[..., 0::2] & 15 | bits[..., 1::2] << 4
    lane_elements = math.prod(lanes.shape[4:])
    return lanes.reshape(*lanes.shape[:2], WARP_LANES, lane_elements).view(np.uint32)


def _elements_of(registers: Array, operand: OperandDType) -> Array:
    """Return the elements of registers, in their order in the last dimension."""
    if operand.bits != 4:
        return np.ascontiguousarray(registers).view(operand.stored_as)
    # Shifting a nibble up and down again extends its sign, if the dtype has one.
    high = nibbles_of_words(registers) << 4
    return np.asarray(high.view(operand.stored_as) >> 4)

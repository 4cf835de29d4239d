"""`mma` and `mma.sp` for the warps of a grid, through the tables of registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from gossamer_cuda_mma_sp.instructions.matrix_instructions import (
    MATRIX_INSTRUCTIONS,
    PTX_TYPES,
    MatrixInstruction,
)
from gossamer_cuda_mma_sp.instructions.metadata_registers import supplying_lanes, unpack_metadata
from gossamer_cuda_mma_sp.instructions.operand_registers import (
    unpack_a,
    unpack_accumulator,
    unpack_b,
)
from gossamer_cuda_mma_sp.instructions.sparse_instructions import (
    MMA_COLUMNS,
    MMA_ROWS,
    SparseInstruction,
)
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import WarpgroupInstruction
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError, LaneNumbers
from gossamer_cuda_mma_sp.interpreter.operations import LaneValues
from gossamer_cuda_mma_sp.n_m.compress import decompress
from gossamer_cuda_mma_sp.n_m.compressed_matrix import compressed_matrix
from gossamer_cuda_mma_sp.n_m.metadata_words import words_of_nibbles
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.errors import FormatError, InternalError
from gossamer_support.arrays import Array

_WORD = np.dtype(np.uint32)
_LEGAL_WORD = 0x44444444
_FLOAT8 = {"float8_e4m3": (4, 3), "float8_e5m2": (5, 2)}
"""The bits of the exponent and of the significand."""


class HasRegisters(Protocol):
    """Threads whose registers are read and written by name."""

    def read(self, text: str, dtype: np.dtype[np.uint32], lanes: LaneNumbers, /) -> LaneValues:
        """Return an operand in each thread."""

    def write(self, register: str, value: LaneValues, lanes: LaneNumbers, /) -> None:
        """Set a register of each thread."""


def in_whole_warps(lanes: Array, block_threads: int, *, size: int = WARP_LANES) -> Array:
    """Return which of the threads of blocks are in warps, or in groups of `size` threads, all of whose lanes
    are selected.

    >>> [int(in_whole_warps(np.arange(96) > 31, threads).sum()) for threads in (48, 96)]
    [32, 64]
    """
    blocks = lanes.reshape(-1, block_threads)
    warps = -(-block_threads // size)
    # The last warp of a block may have fewer threads than lanes, and never executes a matrix instruction.
    padded = np.zeros((blocks.shape[0], warps * size), np.bool_)
    padded[:, :block_threads] = blocks
    whole = padded.reshape(blocks.shape[0], warps, size).all(axis=2)
    every = np.repeat(whole, size, axis=1)[:, :block_threads]
    return np.asarray(every.reshape(-1))


def multiply_in_warps(
    threads: HasRegisters,
    suffixes: tuple[str, ...],
    registers: Sequence[Sequence[str]],
    lanes: LaneNumbers,
) -> None:
    """Execute an instruction in whole warps, of these lanes.

    `registers` are those of D, A, B and C, and for a sparse one the metadata and the selector. Raises
    `DeviceFaultError` if metadata is illegal.
    """
    instruction = _instruction(suffixes)
    warps = lanes.size // WARP_LANES

    def read(names: Sequence[str]) -> Array:
        words = [threads.read(name, _WORD, lanes) for name in names]
        return np.stack(words, axis=-1).reshape(warps, 1, WARP_LANES, len(names))

    d, a, b, c, *metadata = registers
    if instruction.is_sparse:
        (word,), (selector,) = metadata
        stored = unpack_a(read(a), _as_sparse(instruction, 1), instruction.a)
        left = sparse_values(instruction, stored, read((word,))[..., 0], selector=int(selector))
    else:
        left = element_values(
            unpack_a(read(a), _as_sparse(instruction, 2), instruction.a), instruction.a
        )
    right_registers = read(b).transpose(1, 0, 2, 3)
    right = element_values(
        unpack_b(right_registers, _as_sparse(instruction, 1), instruction.b), instruction.b
    )
    old = unpack_accumulator(read(c), instruction.accumulator)
    rows = left.reshape(warps, MMA_ROWS, instruction.depth)
    columns = right.reshape(instruction.depth, warps, MMA_COLUMNS).transpose(1, 0, 2)
    sums = rows @ columns + old.reshape(warps, MMA_ROWS, MMA_COLUMNS)
    _write(threads, d, stored_sums(sums, instruction), lanes)


def stored_sums(sums: Array, instruction: MatrixInstruction | WarpgroupInstruction) -> Array:
    """Return exact sums in the dtype of the accumulator: integers wrap, or saturate."""
    if instruction.saturates:
        limits = np.iinfo(instruction.accumulator)
        sums = sums.clip(limits.min, limits.max)
    return sums.astype(instruction.accumulator)


def _instruction(suffixes: tuple[str, ...]) -> MatrixInstruction:
    """Return the instruction of the table; `InternalError` for one that is not in it."""
    is_sparse = suffixes[0] == "sp::ordered_metadata"
    shape, *layouts, d, a, b, c = suffixes[is_sparse + 2 :]
    names = {text: name for name, text in PTX_TYPES.items()}
    for instruction in MATRIX_INSTRUCTIONS:
        parts = (
            f"m{MMA_ROWS}n{MMA_COLUMNS}k{instruction.depth}",
            instruction.a,
            instruction.b,
            instruction.accumulator,
        )
        modifiers = ["row", "col", *["satfinite"] * instruction.saturates]
        if parts == (shape, names.get(a), names.get(b), names.get(c)) and (
            instruction.is_sparse == is_sparse and layouts == modifiers and c == d
        ):
            return instruction
    raise InternalError(f"The interpreter does not know 'mma.{'.'.join(suffixes)}'.")


def _as_sparse(
    instruction: MatrixInstruction | WarpgroupInstruction, factor: int
) -> SparseInstruction:
    """Return an instruction whose operand is stored as that of a dense one: a sparse A is the dense one of
    half the depth."""
    depth = instruction.depth if instruction.is_sparse else factor * instruction.depth
    operands = tuple({instruction.a, instruction.b})
    return SparseInstruction(
        depth, operands, (instruction.accumulator,), instruction.selectors or (0,), 80
    )


def sparse_values(
    instruction: MatrixInstruction | WarpgroupInstruction,
    stored: Array,
    words: Array,
    *,
    selector: int,
) -> Array:
    """Return the values of a sparse operand, as the dense matrix, from its stored elements and the words of
    metadata of warps. Raises `DeviceFaultError` if metadata is illegal."""
    table = _as_sparse(instruction, 1)
    # Only the lanes of the selector supply metadata; the words of others may be anything.
    supplied = np.full(words.shape, _LEGAL_WORD, np.uint32)
    suppliers = list(supplying_lanes(table, selector))
    supplied[..., suppliers] = words[..., suppliers]
    try:
        every = unpack_metadata(supplied, table)
    except FormatError as error:
        raise DeviceFaultError(
            f"the metadata of a matrix instruction is illegal: {error}"
        ) from None
    groups = every.reshape(-1, len(table.selectors), MMA_ROWS, every.shape[1])[:, selector]
    nibbles = np.ascontiguousarray(groups.reshape(-1, every.shape[1]))
    matrix = compressed_matrix(stored, words_of_nibbles(nibbles, "int16"), dtype=instruction.a)
    return element_values(decompress(matrix), instruction.a)


def element_values(stored: Array, dtype: str) -> Array:
    """Return elements as float64, or as int64 if they are integers."""
    if dtype == "bfloat16":
        words = stored.astype(np.uint32) << np.uint32(16)
        return words.view(np.float32).astype(np.float64)
    if dtype == "tfloat32":
        # The instruction reads 10 bits of the significand.
        bits = np.ascontiguousarray(stored).view(np.uint32) & np.uint32(0xFFFFE000)
        return bits.view(np.float32).astype(np.float64)
    if dtype in _FLOAT8:
        return _float8_values(*_FLOAT8[dtype])[stored]
    return stored.astype(np.float64 if stored.dtype.kind == "f" else np.int64)


def _float8_values(exponent_bits: int, significand_bits: int) -> Array:
    """Return the values of all bytes: those of e4m3 have no infinity, and one NaN for each sign."""
    byte = np.arange(256)
    exponent = (byte >> significand_bits) & ((1 << exponent_bits) - 1)
    fraction = (byte & ((1 << significand_bits) - 1)) / (1 << significand_bits)
    bias = (1 << (exponent_bits - 1)) - 1
    magnitude = np.where(
        exponent == 0,
        np.ldexp(fraction, 1 - bias),
        np.ldexp(1 + fraction, exponent - bias),
    )
    last = exponent == (1 << exponent_bits) - 1
    if exponent_bits == 5:
        magnitude = np.where(last, np.where(fraction == 0, np.inf, np.nan), magnitude)
    else:
        magnitude = np.where(last & (byte & 7 == 7), np.nan, magnitude)
    return np.where(byte & 0x80, -magnitude, magnitude)


def _write(threads: HasRegisters, names: Sequence[str], sums: Array, lanes: LaneNumbers) -> None:
    tiles = sums.reshape(-1, 2, 8, 4, 2)
    elements = np.ascontiguousarray(tiles.transpose(0, 2, 3, 1, 4))
    words = elements.reshape(lanes.size, 4).view(np.uint32)
    for number, name in enumerate(names):
        threads.write(name, np.ascontiguousarray(words[:, number]), lanes)

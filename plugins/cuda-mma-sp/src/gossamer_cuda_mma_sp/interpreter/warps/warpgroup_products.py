"""`wgmma.mma_async.sp` for the warpgroups of a grid, and the instructions that order it with others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from gossamer_cuda_mma_sp.instructions.matrix_descriptors import MatrixDescriptor, element_addresses
from gossamer_cuda_mma_sp.instructions.operand_registers import (
    pack_accumulator,
    unpack_a,
    unpack_accumulator,
)
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import (
    WARPGROUP_INSTRUCTIONS,
    WARPGROUP_LANES,
    WARPGROUP_ROWS,
    WARPS,
    WarpgroupInstruction,
)
from gossamer_cuda_mma_sp.interpreter.grid_threads import GridThreads, items_of
from gossamer_cuda_mma_sp.interpreter.memory import DeviceFaultError, LaneNumbers
from gossamer_cuda_mma_sp.interpreter.program import Instruction
from gossamer_cuda_mma_sp.interpreter.warps.warp_products import (
    element_values,
    sparse_values,
    stored_sums,
)
from gossamer_cuda_mma_sp.n_m.operand_dtypes import operand_dtype_named
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_support.arrays import Array

_WORD, _WORD_PAIR = np.dtype(np.uint32), np.dtype(np.uint64)
_BY_NAME = {instruction.ptx_name: instruction for instruction in WARPGROUP_INSTRUCTIONS}


class _Operands(msgspec.Struct, frozen=True):
    """The operands of an instruction, as text."""

    sums: tuple[str, ...]
    a: tuple[str, ...]
    b: str
    metadata: str
    selector: int
    is_added: str
    signs: tuple[int, ...]
    ways: tuple[bool, ...]
    """True if elements along K are contiguous, of A if it is in shared memory, and of B."""


class _SharedMatrix(msgspec.Struct, frozen=True):
    """A matrix in shared memory: the register of its descriptor, rows by columns along K, the dtype, and
    whether elements along K are contiguous."""

    descriptor: str
    shape: tuple[int, int]
    dtype: str
    is_k_major: bool


def execute_in_warpgroups(
    threads: GridThreads, instruction: Instruction, lanes: LaneNumbers
) -> None:
    """Begin products of whole warpgroups, make a group of those that warps have begun, wait for groups, or
    order the registers of warps with what follows."""
    match instruction.suffixes[0]:
        case "fence":
            threads.registers.fence(lanes)
        case "commit_group":
            threads.products.commit(lanes)
        case "wait_group":
            pending = int(instruction.operands[0])
            threads.products.wait(lanes, pending, threads.registers, threads.memory.shared)
        case _:
            _multiply(threads, instruction, lanes)


def fence_proxy(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Let what threads stored to shared memory be read by products, after a barrier."""
    if instruction.suffixes[:2] != ("proxy", "async"):
        raise InternalError(
            f"The interpreter does not know 'fence.{'.'.join(instruction.suffixes)}'."
        )
    threads.memory.shared.fence_stores(threads.memory.owners(lanes))


def _multiply(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    name = f"wgmma.{'.'.join(instruction.suffixes)}"
    product = _BY_NAME.get(name)
    if product is None:
        raise InternalError(f"The interpreter does not know '{name}'.")
    operands = _operands(instruction.operands, product)
    inputs = operands.a if len(operands.a) > 1 else ()
    registers = (*operands.sums, *inputs)
    for group in lanes.reshape(-1, WARPGROUP_LANES):
        threads.registers.begin_product(operands.sums, inputs, group)
        sums, addresses = _product(threads, product, operands, group)
        for number, register in enumerate(operands.sums):
            threads.registers.write(register, np.ascontiguousarray(sums[:, number]), group)
        threads.registers.hold(registers, operands.sums, group)
        threads.memory.shared.keep_async_read(addresses)
        threads.products.begin(group, registers, operands.sums, addresses)


def _operands(texts: Sequence[str], product: WarpgroupInstruction) -> _Operands:
    d, a, b, metadata, selector, is_added, *immediates = texts
    numbers = [int(text) for text in immediates]
    is_float = product.accumulator != "int32"
    ways = tuple(not way for way in numbers[2:]) if product.can_transpose else (True, True)
    if int(selector) not in product.selectors:
        raise DeviceFaultError(f"the sparsity selector {selector} of a product is undefined")
    return _Operands(
        items_of(d),
        items_of(a),
        b,
        metadata,
        int(selector),
        is_added,
        tuple(numbers[:2]) if is_float else (1, 1),
        ways,
    )


def _product(
    threads: GridThreads, product: WarpgroupInstruction, operands: _Operands, group: LaneNumbers
) -> tuple[Array, LaneNumbers]:
    """Return the registers of the result, lanes by registers, and the bytes of shared memory that were
    read."""

    def read(names: Sequence[str]) -> Array:
        words = [threads.registers.read(name, _WORD, group) for name in names]
        return np.stack(words, axis=-1).reshape(WARPS, 1, WARP_LANES, len(names))

    pieces: list[LaneNumbers] = []
    if len(operands.a) > 1:
        stored = unpack_a(read(operands.a), product.warp_instruction, product.a)
    else:
        shape = (WARPGROUP_ROWS, product.stored_depth)
        left_operand = _SharedMatrix(operands.a[0], shape, product.a, operands.ways[0])
        stored = _read_matrix(threads, left_operand, group, pieces)
    words = read((operands.metadata,))[..., 0]
    left = sparse_values(product, stored, words, selector=operands.selector)
    shape = (product.columns, product.depth)
    right_operand = _SharedMatrix(operands.b, shape, product.b, operands.ways[-1])
    right = _read_matrix(threads, right_operand, group, pieces)
    sign = operands.signs[0] * operands.signs[1]
    result = sign * (left @ element_values(right, product.b).T)
    if _uniform(threads, operands.is_added, np.dtype(np.bool_), group):
        result = result + _sums(read(operands.sums), product)
    return _sum_registers(result, product), np.unique(np.concatenate(pieces))


def _read_matrix(
    threads: GridThreads, matrix: _SharedMatrix, group: LaneNumbers, pieces: list[LaneNumbers]
) -> Array:
    """Return the elements of a matrix in shared memory, rows by columns, and note their bytes."""
    stored = np.dtype(operand_dtype_named(matrix.dtype).stored_as)
    bits = int(_uniform(threads, matrix.descriptor, _WORD_PAIR, group))
    try:
        addresses = element_addresses(
            MatrixDescriptor.decode(bits),
            matrix.shape,
            element_bytes=stored.itemsize,
            is_k_major=matrix.is_k_major,
        )
    except ArgumentError as error:
        raise DeviceFaultError(f"a product cannot read a matrix: {error}") from None
    every = (addresses[..., None] + np.arange(stored.itemsize)).ravel()
    offsets = threads.memory.shared_offsets(every, group)
    pieces.append(offsets)
    data = threads.memory.shared.read_asynchronously(offsets, threads.memory.owners(group[:1]))
    return np.asarray(data.view(stored).reshape(matrix.shape))


def _uniform(
    threads: GridThreads,
    register: str,
    dtype: np.dtype[np.uint64] | np.dtype[np.bool_],
    group: LaneNumbers,
) -> np.uint64 | np.bool_:
    values = threads.registers.read(register, dtype, group)
    if (values != values[0]).any():
        raise DeviceFaultError(f"the lanes of a warpgroup have different values of {register}")
    first: np.uint64 | np.bool_ = values[0]
    return first


def _sums(registers: Array, product: WarpgroupInstruction) -> Array:
    """Return the accumulator of registers (warps, 1, lanes, registers) as a matrix."""
    tiles = registers.reshape(WARPS, WARP_LANES, product.columns // 8, -1)
    return unpack_accumulator(tiles.transpose(0, 2, 1, 3), product.accumulator)


def _sum_registers(result: Array, product: WarpgroupInstruction) -> Array:
    """Return a matrix as registers of the accumulator, lanes by registers."""
    tiles = pack_accumulator(stored_sums(result, product))
    return tiles.transpose(0, 2, 1, 3).reshape(WARPGROUP_LANES, product.sum_registers)

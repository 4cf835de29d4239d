"""Instructions of the lanes of a warp together: shuffles, and those on matrices."""

from __future__ import annotations

import numpy as np

from gossamer_cuda_mma_sp.interpreter.grid_threads import GridThreads, items_of
from gossamer_cuda_mma_sp.interpreter.memory import LaneNumbers
from gossamer_cuda_mma_sp.interpreter.program import Instruction
from gossamer_cuda_mma_sp.interpreter.warps.warp_loads import (
    ROW_BYTES,
    addressing_lanes,
    bank_conflicts,
    loaded_registers,
)
from gossamer_cuda_mma_sp.interpreter.warps.warp_products import multiply_in_warps
from gossamer_ir.core.limits import WARP_LANES

_UNDEFINED = 0xA5A5A5A5


def lanes_with_masks(
    threads: GridThreads, instruction: Instruction, lanes: LaneNumbers
) -> LaneNumbers:
    """Return those lanes at a shuffle that have all lanes of their masks there, too."""
    mask = threads.registers.read(instruction.operands[4], np.dtype(np.uint32), lanes)
    first = lanes - lanes % threads.block_threads % WARP_LANES
    is_complete = np.ones(lanes.size, np.bool_)
    # A lane of the mask is one of the same warp of the same block.
    for number in range(WARP_LANES):
        is_named = ((mask >> np.uint32(number)) & 1).astype(np.bool_)
        is_complete &= ~is_named | np.isin(first + number, lanes)
    return lanes[is_complete]


def shuffle_registers(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Read a register of another lane of the warp. All lanes of the masks are there."""
    word = np.dtype(np.uint32)
    target = instruction.operands[0].partition("|")[0]
    value, offset, clamp, mask = (
        threads.registers.read(operand, word, lanes) for operand in instruction.operands[1:5]
    )
    thread = lanes % threads.block_threads
    lane, first = thread % WARP_LANES, lanes - thread % WARP_LANES
    segment = (clamp >> np.uint32(8)) & np.uint32(31)
    last = (lane & segment) | (clamp & np.uint32(31) & ~segment)
    source = (lane ^ offset) if "bfly" in instruction.suffixes else (lane + offset)
    source = np.where(source <= last, source, lane)
    # The value that a lane reads of one that is not in the mask is undefined.
    every = np.full(int(lanes.max()) + WARP_LANES, _UNDEFINED, word)
    every[lanes] = value
    is_named = (mask >> source.astype(np.uint32)) & 1 != 0
    threads.registers.write(
        target, np.where(is_named, every[first + source], word.type(_UNDEFINED)), lanes
    )


def multiply_matrices(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Multiply the matrices of warps."""
    registers = [items_of(operand) for operand in instruction.operands]
    multiply_in_warps(threads.registers, instruction.suffixes, registers, lanes)


def load_matrices(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> int:
    """Load the rows that lanes address, for the lanes that get their elements; return how many of them are in
    the banks of others."""
    names = items_of(instruction.operands[0])
    addressing = addressing_lanes(lanes, len(names))
    memory, addresses = threads.memory.place(instruction.operands[1], "shared", addressing)
    rows = memory.load(addresses, ROW_BYTES, threads.memory.owners(addressing))
    is_transposed = "trans" in instruction.suffixes
    words = loaded_registers(rows, len(names), is_transposed=is_transposed)
    for name, word in zip(names, words, strict=True):
        threads.registers.write(name, word, lanes)
    return bank_conflicts(addresses)

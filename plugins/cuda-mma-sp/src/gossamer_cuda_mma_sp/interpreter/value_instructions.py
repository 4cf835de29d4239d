"""Instructions on the registers of each thread alone."""

from __future__ import annotations

import numpy as np

from gossamer_cuda_mma_sp.interpreter.grid_threads import GridThreads, items_of
from gossamer_cuda_mma_sp.interpreter.memory import LOCAL_BASE, SHARED_BASE, LaneNumbers
from gossamer_cuda_mma_sp.interpreter.operations import (
    BINARY_OPERATIONS,
    PTX_DTYPES,
    LaneValues,
    compare_values,
    convert_values,
    fused_multiply_add,
    min_or_max,
    round_values_to_tf32,
)
from gossamer_cuda_mma_sp.interpreter.program import Instruction

_BOOL, _WORD = np.dtype(np.bool_), np.dtype(np.uint32)


def _inputs(
    threads: GridThreads, instruction: Instruction, lanes: LaneNumbers, *, count: int
) -> list[LaneValues]:
    """Return the operands after the result that have the dtype of the instruction."""
    dtype = PTX_DTYPES[instruction.suffixes[-1]]
    operands = instruction.operands[1 : 1 + count]
    return [threads.registers.read(operand, dtype, lanes) for operand in operands]


def move_registers(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Copy a register, or divide it into several, or combine several into one."""
    registers, (target, source) = threads.registers, instruction.operands
    dtype = PTX_DTYPES[instruction.suffixes[-1]]
    if target.startswith("{"):
        names = items_of(target)
        part = np.dtype(f"u{dtype.itemsize // len(names)}")
        value = registers.read(source, dtype, lanes)
        for number, name in enumerate(names):
            shifted = value >> dtype.type(8 * part.itemsize * number)
            registers.write(name, shifted.astype(part), lanes)
    elif source.startswith("{"):
        names = items_of(source)
        part = np.dtype(f"u{dtype.itemsize // len(names)}")
        value = np.zeros(lanes.size, dtype)
        for number, name in enumerate(names):
            bits = registers.read(name, part, lanes).astype(dtype)
            value |= bits << dtype.type(8 * part.itemsize * number)
        registers.write(target, value, lanes)
    else:
        registers.write(target, registers.read(source, dtype, lanes), lanes)


def convert_address(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Convert an address of a space to a generic one, or a generic one to it."""
    result, operand = instruction.operands
    address = threads.registers.read(operand, np.dtype(np.uint64), lanes)
    bases = {"global": 0, "param": 0, "shared": SHARED_BASE, "local": LOCAL_BASE}
    (base,) = (np.uint64(bases[suffix]) for suffix in instruction.suffixes if suffix in bases)
    is_from_generic = "to" in instruction.suffixes
    threads.registers.write(result, address - base if is_from_generic else address + base, lanes)


def convert_registers(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Convert a register to another dtype."""
    result, operand = instruction.operands
    *modes, to, source = instruction.suffixes
    if to == "tf32":
        value = threads.registers.read(operand, PTX_DTYPES[source], lanes)
        threads.registers.write(result, round_values_to_tf32(value).view(np.uint32), lanes)
        return
    value = threads.registers.read(operand, PTX_DTYPES[source], lanes)
    threads.registers.write(result, convert_values(value, PTX_DTYPES[to], tuple(modes)), lanes)


def multiply_registers(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Multiply, and add a third operand if there is one."""
    dtype = PTX_DTYPES[instruction.suffixes[-1]]
    a, b = _inputs(threads, instruction, lanes, count=2)
    if "wide" in instruction.suffixes:
        wide = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        product = a.astype(wide) * b.astype(wide)
    elif "hi" in instruction.suffixes:
        product = BINARY_OPERATIONS["hi"](a, b)
    else:
        product = a * b
    result, _, _, *added = instruction.operands
    if added:
        product = product + threads.registers.read(added[0], product.dtype, lanes)
    threads.registers.write(result, product, lanes)


def fuse_registers(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Multiply and add with one rounding."""
    value = fused_multiply_add(*_inputs(threads, instruction, lanes, count=3))
    threads.registers.write(instruction.operands[0], value, lanes)


def keep_extreme(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Keep the less or the greater of two operands."""
    a, b = _inputs(threads, instruction, lanes, count=2)
    keeps_nan = "NaN" in instruction.suffixes
    value = min_or_max(instruction.name, a, b, keeps_nan=keeps_nan)
    threads.registers.write(instruction.operands[0], value, lanes)


def compare_registers(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Compare two operands, and combine the result with a predicate if there is one."""
    result, _, _, *predicate = instruction.operands
    comparison, combination, *_ = (*instruction.suffixes, "")
    a, b = _inputs(threads, instruction, lanes, count=2)
    value = compare_values(comparison, a, b)
    if len(instruction.suffixes) > 2 and combination in ("and", "or", "xor"):
        (text,) = predicate
        other = threads.registers.read(text.removeprefix("!"), _BOOL, lanes)
        value = BINARY_OPERATIONS[combination](value, other != text.startswith("!"))
    threads.registers.write(result, value, lanes)


def select_registers(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Select one of two operands by a predicate."""
    result, _, _, predicate = instruction.operands
    a, b = _inputs(threads, instruction, lanes, count=2)
    condition = threads.registers.read(predicate, _BOOL, lanes)
    threads.registers.write(result, np.where(condition, a, b), lanes)


def extract_bits(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Extract a field of bits, with the sign of a signed dtype."""
    result, _, *places = instruction.operands
    (value,) = _inputs(threads, instruction, lanes, count=1)
    start, size = (threads.registers.read(operand, _WORD, lanes) for operand in places)
    bits = 8 * value.dtype.itemsize
    left = (bits - np.minimum(start + size, bits)).astype(np.uint32)
    shifted = BINARY_OPERATIONS["shl"](value, left)
    threads.registers.write(result, BINARY_OPERATIONS["shr"](shifted, left + start), lanes)


def insert_bits(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Replace bits of the second operand by the low bits of the first."""
    result, _, _, *places = instruction.operands
    field, value = _inputs(threads, instruction, lanes, count=2)
    start, size = (
        threads.registers.read(operand, _WORD, lanes) & np.uint32(255) for operand in places
    )
    ones = np.full(lanes.size, ~value.dtype.type(0))
    low = ~BINARY_OPERATIONS["shl"](ones, size)
    mask = BINARY_OPERATIONS["shl"](low, start)
    moved = BINARY_OPERATIONS["shl"](field, start)
    threads.registers.write(result, (value & ~mask) | (moved & mask), lanes)


def permute_bytes(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Select bytes of two registers."""
    result, *inputs = instruction.operands
    a, b, selector = (threads.registers.read(operand, _WORD, lanes) for operand in inputs)
    both = np.concatenate([word[:, None].view(np.uint8) for word in (a, b)], axis=1)
    chosen = np.empty((lanes.size, 4), np.uint8)
    for number in range(4):
        nibble = (selector >> np.uint32(4 * number)) & np.uint32(15)
        byte = both[np.arange(lanes.size), nibble & 7]
        sign = np.where(byte & 0x80, np.uint8(0xFF), np.uint8(0))
        chosen[:, number] = np.where(nibble & 8, sign, byte)
    threads.registers.write(result, chosen.view(_WORD)[:, 0], lanes)

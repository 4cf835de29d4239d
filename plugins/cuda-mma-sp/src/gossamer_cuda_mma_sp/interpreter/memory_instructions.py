"""Instructions that access memory: loads, stores, atomic updates and asynchronous copies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from gossamer_cuda_mma_sp.interpreter.grid_threads import GridThreads, items_of
from gossamer_cuda_mma_sp.interpreter.memory import LaneNumbers
from gossamer_cuda_mma_sp.interpreter.operations import PTX_DTYPES
from gossamer_cuda_mma_sp.interpreter.program import Instruction
from gossamer_cuda_mma_sp.interpreter.thread_memory import parameter_name
from gossamer_cuda_mma_sp.interpreter.thread_registers import ptx_literal

_ATOMICS: Mapping[str, Any] = {
    "add": lambda old, value: old + value,
    "min": lambda old, value: np.minimum(old, value),
    "max": lambda old, value: np.maximum(old, value),
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "exch": lambda old, value: value,
    "cas": lambda old, expected, value: np.where(old == expected, value, old),
}


def load_registers(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Load one or several registers, or a parameter of the kernel."""
    result, address = instruction.operands
    dtype, targets = PTX_DTYPES[instruction.suffixes[-1]], items_of(result)
    if instruction.suffixes[0] == "param":
        argument = threads.arguments[parameter_name(address)]
        value = np.full(lanes.size, _as_bits(argument, dtype))
        threads.registers.write(targets[0], value, lanes)
        return
    memory, offsets = threads.memory.place(address, _space(instruction.suffixes), lanes)
    owners = threads.memory.owners(lanes)
    if "relaxed" in instruction.suffixes:
        (target,) = targets
        elements = memory.exchange(offsets, dtype, owners)
        threads.registers.write(target, elements[offsets // dtype.itemsize], lanes)
        return
    raw = memory.load(offsets, dtype.itemsize * len(targets), owners)
    values = np.ascontiguousarray(raw).view(dtype)
    for number, target in enumerate(targets):
        threads.registers.write(target, values[:, number], lanes)


def store_registers(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Store one or several registers."""
    address, stored = instruction.operands
    dtype, sources = PTX_DTYPES[instruction.suffixes[-1]], items_of(stored)
    memory, offsets = threads.memory.place(address, _space(instruction.suffixes), lanes)
    owners = threads.memory.owners(lanes)
    values = [threads.registers.read(source, dtype, lanes) for source in sources]
    if "relaxed" in instruction.suffixes:
        (value,) = values
        elements = memory.exchange(offsets, dtype, owners)
        elements[offsets // dtype.itemsize] = value
        return
    memory.store(offsets, np.array(values).T.copy().view(np.uint8), owners)


def update_atomically(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Update elements one thread after the other; the result is what each thread had before."""
    operands, suffixes = instruction.operands, instruction.suffixes
    has_result = len(operands) > 2 or "exch" in suffixes
    result, address, *inputs = operands if has_result else ("_", *operands)
    (operation,) = (_ATOMICS[suffix] for suffix in suffixes if suffix in _ATOMICS)
    dtype = PTX_DTYPES[suffixes[-1]]
    memory, offsets = threads.memory.place(address, _space(suffixes), lanes)
    values = [threads.registers.read(operand, dtype, lanes) for operand in inputs]
    elements = memory.exchange(offsets, dtype, threads.memory.owners(lanes))
    old = np.empty(lanes.size, dtype)
    for lane, place in enumerate((offsets // dtype.itemsize).tolist()):
        one = slice(lane, lane + 1)
        old[lane] = elements[place]
        elements[place] = operation(old[one], *(value[one] for value in values))[0]
    threads.registers.write(result, old, lanes)


def copy_asynchronously(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Begin a copy to shared memory, end a group of copies, or wait for groups."""
    if "commit_group" in instruction.suffixes:
        threads.copies.commit(lanes)
        return
    if "wait_group" in instruction.suffixes:
        for copy in threads.copies.wait(lanes, int(instruction.operands[0])):
            threads.memory.shared.complete_copy(
                copy.offsets, copy.data, threads.memory.owners(copy.lanes)
            )
        return
    size = int(instruction.operands[2])
    memory, target = threads.memory.place(instruction.operands[0], "shared", lanes)
    source_memory, source = threads.memory.place(instruction.operands[1], "global", lanes)
    data = source_memory.load(source, size, threads.memory.owners(lanes))
    memory.begin_copy(target, size, threads.memory.owners(lanes))
    threads.copies.begin(lanes, target, data)


@lru_cache(1024)
def _space(suffixes: tuple[str, ...]) -> str:
    spaces = [suffix for suffix in suffixes if suffix in ("global", "shared", "local")]
    return spaces[0] if spaces else "generic"


def _as_bits(value: int | float, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, float):
        return np.array([value], f"f{dtype.itemsize}").view(f"u{dtype.itemsize}")[0]
    return ptx_literal(str(int(value)), dtype)

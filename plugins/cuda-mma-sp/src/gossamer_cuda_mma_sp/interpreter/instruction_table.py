"""The table of the instructions that each thread executes when it gets there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from gossamer_cuda_mma_sp.interpreter.grid_threads import GridThreads
from gossamer_cuda_mma_sp.interpreter.memory import LaneNumbers
from gossamer_cuda_mma_sp.interpreter.memory_instructions import (
    copy_asynchronously,
    load_registers,
    store_registers,
    update_atomically,
)
from gossamer_cuda_mma_sp.interpreter.operations import (
    BINARY_OPERATIONS,
    PTX_DTYPES,
    UNARY_OPERATIONS,
)
from gossamer_cuda_mma_sp.interpreter.program import Instruction
from gossamer_cuda_mma_sp.interpreter.value_instructions import (
    compare_registers,
    convert_address,
    convert_registers,
    extract_bits,
    fuse_registers,
    insert_bits,
    keep_extreme,
    move_registers,
    multiply_registers,
    permute_bytes,
    select_registers,
)
from gossamer_cuda_mma_sp.interpreter.warps.warp_instructions import shuffle_registers
from gossamer_cuda_mma_sp.interpreter.warps.warpgroup_products import fence_proxy
from gossamer_ir.errors import InternalError

Execute: TypeAlias = Callable[[GridThreads, Instruction, LaneNumbers], None]

EXECUTED: Mapping[str, Execute] = {
    "ld": load_registers,
    "ldu": load_registers,
    "st": store_registers,
    "atom": update_atomically,
    "red": update_atomically,
    "mov": move_registers,
    "cvta": convert_address,
    "cvt": convert_registers,
    "mul": multiply_registers,
    "mad": multiply_registers,
    "fma": fuse_registers,
    "min": keep_extreme,
    "max": keep_extreme,
    "setp": compare_registers,
    "selp": select_registers,
    "bfe": extract_bits,
    "bfi": insert_bits,
    "prmt": permute_bytes,
    "shfl": shuffle_registers,
    "cp": copy_asynchronously,
    "fence": fence_proxy,
}
"""The instructions with rules of their own, by name. All others apply an operation to registers."""


def execute(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    """Execute an instruction in some threads; raise `InternalError` for one that is not known."""
    EXECUTED.get(instruction.name, _apply_operation)(threads, instruction, lanes)


def _apply_operation(threads: GridThreads, instruction: Instruction, lanes: LaneNumbers) -> None:
    name, suffixes, operands = instruction.name, instruction.suffixes, instruction.operands
    read = threads.registers.read
    dtype = PTX_DTYPES.get(suffixes[-1]) if suffixes else None
    if dtype is None or not (name in UNARY_OPERATIONS or name in BINARY_OPERATIONS):
        raise InternalError(f"The interpreter does not know '{name}.{'.'.join(suffixes)}'.")
    if name in UNARY_OPERATIONS:
        result = UNARY_OPERATIONS[name](read(operands[1], dtype, lanes))
    else:
        right = np.dtype(np.uint32) if name in ("shl", "shr") else dtype
        values = (read(operands[1], dtype, lanes), read(operands[2], right, lanes))
        result = BINARY_OPERATIONS[name](*values)
    if "ftz" in suffixes:
        raise InternalError("The interpreter does not flush subnormal numbers.")
    threads.registers.write(operands[0], result, lanes)

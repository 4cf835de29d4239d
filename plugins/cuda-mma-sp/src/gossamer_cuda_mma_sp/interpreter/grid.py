"""Runs a kernel on a grid: all threads are lanes of arrays, and those furthest behind run first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gossamer_cuda_mma_sp.device_code import GridShape
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import WARPGROUP_LANES
from gossamer_cuda_mma_sp.interpreter.async_copies import AsyncCopies
from gossamer_cuda_mma_sp.interpreter.async_products import AsyncProducts
from gossamer_cuda_mma_sp.interpreter.grid_threads import GridThreads
from gossamer_cuda_mma_sp.interpreter.instruction_table import execute
from gossamer_cuda_mma_sp.interpreter.memory import (
    NOBODY,
    DeviceFaultError,
    GlobalMemory,
    LaneNumbers,
    TrackedMemory,
)
from gossamer_cuda_mma_sp.interpreter.program import Instruction, KernelProgram
from gossamer_cuda_mma_sp.interpreter.thread_memory import ThreadMemory
from gossamer_cuda_mma_sp.interpreter.thread_registers import ThreadRegisters, special_registers
from gossamer_cuda_mma_sp.interpreter.warps.warp_instructions import (
    lanes_with_masks,
    load_matrices,
    multiply_matrices,
)
from gossamer_cuda_mma_sp.interpreter.warps.warp_products import in_whole_warps
from gossamer_cuda_mma_sp.interpreter.warps.warpgroup_products import execute_in_warpgroups
from gossamer_ir.core.limits import WARP_LANES

_IN_WARPS = frozenset(("mma", "ldmatrix", "shfl", "wgmma"))
"""The instructions that all lanes of a warp, or those of a mask, execute together."""
_CONTROL = _IN_WARPS | {"bra", "ret", "exit", "bar", "barrier"}
"""The instructions after which threads go on elsewhere, end or wait."""
_GRID_INSTRUCTIONS = _CONTROL | {"trap"}
"""The instructions that this module executes."""
_MAX_LANES = 1 << 16
"""The most threads that run at the same time; of a larger grid, groups of blocks run one after another."""


def run_grid(
    program: KernelProgram,
    memory: GlobalMemory,
    *,
    grid: GridShape,
    block: GridShape,
    arguments: Sequence[int | float],
) -> int:
    """Run a kernel with all threads of a grid, and return the bank conflicts of its matrix loads; raise
    `DeviceFaultError` for what a device may not survive."""
    per_block, blocks = int(np.prod(block)), int(np.prod(grid))
    tracked = TrackedMemory("global", memory.bytes, memory.is_allocated, memory.is_written)
    at_once, conflicts = max(1, _MAX_LANES // per_block), 0
    with np.errstate(all="ignore"):
        for first in range(0, blocks, at_once):
            chosen = np.arange(first, min(first + at_once, blocks))
            group = _Group(program, tracked, chosen, grid=grid, block=block, arguments=arguments)
            group.run()
            conflicts += group.bank_conflicts
    return conflicts


class _Group:
    """Blocks of a grid that run at the same time, and where their threads are in the program."""

    def __init__(
        self,
        program: KernelProgram,
        memory: TrackedMemory,
        blocks: LaneNumbers,
        *,
        grid: GridShape,
        block: GridShape,
        arguments: Sequence[int | float],
    ) -> None:
        self._program, self._per_block = program, int(np.prod(block))
        count = blocks.size * self._per_block
        thread = np.tile(np.arange(self._per_block), blocks.size)
        number = np.repeat(blocks, self._per_block)
        special = special_registers(thread, number, grid=grid, block=block)
        registers = ThreadRegisters(program, count, special)
        self._threads = GridThreads(
            registers,
            ThreadMemory(program, registers, memory, blocks=blocks, block_threads=self._per_block),
            AsyncCopies(count),
            AsyncProducts(count),
            dict(zip(program.params, arguments, strict=True)),
            self._per_block,
        )
        self._pc = np.zeros(count, np.int64)
        self._live = np.ones(count, np.bool_)
        self._waits = np.zeros(count, np.bool_)
        self._waits_for_warp = np.zeros(count, np.bool_)
        self.bank_conflicts = 0

    def run(self) -> None:
        while True:
            ready = self._live & ~self._waits & ~self._waits_for_warp
            if not ready.any():
                if not self._live.any():
                    return
                if self._waits_for_warp.any():
                    raise self._missing_lanes_error()
                self._release()
                continue
            self._run_furthest_behind(ready)

    def _run_furthest_behind(self, ready: npt.NDArray[np.bool_]) -> None:
        """Run the threads that are furthest behind, up to the next instruction after which they may be
        anywhere, or to the place of the next threads, which go on with them."""
        number = int(self._pc[ready].min())
        lanes = np.flatnonzero(ready & (self._pc == number))
        places = self._pc[ready & (self._pc > number)]
        meeting = int(places.min()) if places.size else len(self._program.instructions)
        while number < meeting:
            instruction = self._program.instructions[number]
            if instruction.name in _CONTROL:
                self._pc[lanes] = number + 1
                self._step(instruction, number, lanes)
                return
            self._step(instruction, number, lanes)
            number += 1
        self._pc[lanes] = number

    def _release(self) -> None:
        """Let the threads of blocks whose threads all wait go on. They must wait at one barrier."""
        places = np.where(self._waits, self._pc, NOBODY).reshape(-1, self._per_block)
        is_waiting = (places != NOBODY).any(axis=1)
        if (places.min(axis=1) != places.max(axis=1))[is_waiting].any():
            raise DeviceFaultError("some threads of a block reach a barrier, and others do not")
        self._threads.memory.pass_barrier(self._waits)
        self._waits[:] = False

    def _step(self, instruction: Instruction, number: int, lanes: LaneNumbers) -> None:
        if instruction.predicate is not None:
            holds = self._threads.registers.read(instruction.predicate, np.dtype(np.bool_), lanes)
            lanes = lanes[holds != instruction.is_negated]
            if not lanes.size:
                return
        if instruction.name not in _GRID_INSTRUCTIONS:
            execute(self._threads, instruction, lanes)
            return
        match instruction.name:
            case "bra":
                self._pc[lanes] = self._program.labels[instruction.operands[0]]
            case "ret" | "exit":
                self._live[lanes] = False
            case "bar" | "barrier":
                self._waits[lanes] = True
            case "trap":
                raise DeviceFaultError("a thread reached a trap")
            case _:
                self._execute_in_warps(instruction, number, lanes)

    def _missing_lanes_error(self) -> DeviceFaultError:
        number = int(self._pc[self._waits_for_warp].min())
        if self._program.instructions[number].name == "shfl":
            return DeviceFaultError("some lanes of a warp reach a shuffle, and others do not")
        together = "warp" if self._together(number) == WARP_LANES else "warpgroup"
        return DeviceFaultError(f"not all lanes of a {together} execute a matrix instruction")

    def _together(self, number: int) -> int:
        """Return how many threads execute an instruction on matrices together."""
        instruction = self._program.instructions[number]
        is_product = instruction.name == "wgmma" and instruction.suffixes[0] == "mma_async"
        return WARPGROUP_LANES if is_product else WARP_LANES

    def _execute_in_warps(self, instruction: Instruction, number: int, lanes: LaneNumbers) -> None:
        """Execute an instruction of a warp for the lanes that have all others there; others wait."""
        self._pc[lanes] = number
        self._waits_for_warp[lanes] = True
        together = self._waits_for_warp & (self._pc == number)
        if instruction.name == "shfl":
            ready = lanes_with_masks(self._threads, instruction, np.flatnonzero(together))
        else:
            size = self._together(number)
            ready = np.flatnonzero(in_whole_warps(together, self._per_block, size=size))
        if not ready.size:
            return
        self._waits_for_warp[ready] = False
        self._pc[ready] = number + 1
        match instruction.name:
            case "ldmatrix":
                self.bank_conflicts += load_matrices(self._threads, instruction, ready)
            case "mma":
                multiply_matrices(self._threads, instruction, ready)
            case "wgmma":
                execute_in_warpgroups(self._threads, instruction, ready)
            case _:
                execute(self._threads, instruction, ready)

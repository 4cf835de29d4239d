"""The process that executes matrix instructions of a GPU on small integers, for which results are exact.

It is started as `python -m benchmarks.gpu.instruction_checks TARGET FIRST COUNT`, and prints a line of JSON
for each instruction and selector: its name, and what is wrong.

The places of elements in registers are those of the figures of the PTX ISA ("Matrix fragments for
mma.m16n8k16", and for the other shapes). They are written again here, so that a defect of the package shows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import cache

import numpy as np

from benchmarks.gpu.encoded_integers import UNSIGNED_DTYPES, encoded_integers
from benchmarks.gpu.instruction_kernels.warp_kernels import instruction_kernels_ptx, operand_counts
from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice, gpu_device
from gossamer_cuda_mma_sp.driver.cuda_driver import DEFAULT_STREAM
from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver
from gossamer_cuda_mma_sp.instructions.matrix_instructions import (
    MATRIX_INSTRUCTIONS,
    MatrixInstruction,
)
from gossamer_cuda_mma_sp.instructions.metadata_registers import pack_metadata
from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
from gossamer_cuda_mma_sp.n_m.compress import compress
from gossamer_cuda_mma_sp.n_m.compressed_matrix import CompressedMatrix
from gossamer_cuda_mma_sp.target.gpu import Gpu, gpu_of
from gossamer_ir.errors import GossamerError
from gossamer_ir.interchange.records import Target
from gossamer_support.arrays import Array

LANES, ROWS, COLUMNS = 32, 16, 8
MAX_OPERAND = 4
"""The largest absolute value of the elements of A and B: sums stay exact in float16."""


@cache
def checked_instructions(gpu: Gpu) -> tuple[tuple[MatrixInstruction, int], ...]:
    """Return the instructions that a GPU has, each with every selector; 0 for a dense one."""
    return tuple(
        (each, selector)
        for each in MATRIX_INSTRUCTIONS
        if each.is_on(gpu)
        for selector in each.selectors or (0,)
    )


def instruction_name(instruction: MatrixInstruction, selector: int) -> str:
    """Return the name of an instruction with a selector.

    >>> instruction_name(MatrixInstruction(8, "float16", "float16", "float32"), 0)
    'mma m16n8k8 float16 float16 float32'
    """
    dtypes = f"{instruction.a} {instruction.b} {instruction.accumulator}"
    kind = "mma.sp" if instruction.is_sparse else "mma"
    chosen = f" selector {selector}" if instruction.is_sparse else ""
    limited = " satfinite" if instruction.saturates else ""
    return f"{kind} m16n8k{instruction.depth} {dtypes}{limited}{chosen}"


def check_instructions(target: str, first: int, count: int) -> None:
    """Execute the instructions from a number on."""
    gpu = gpu_of(Target.parse(target))
    device = device_of(gpu)
    for number in range(first, first + count):
        instruction, selector = checked_instructions(gpu)[number]
        row = {"name": instruction_name(instruction, selector), "wrong": None, "skipped": None}
        try:
            row["wrong"] = wrong_result(instruction, selector, gpu, device, seed=number)
        except GossamerError as error:
            row["wrong"] = str(error)
        print(json.dumps(row), flush=True)


def device_of(gpu: Gpu) -> GpuDevice:
    """Return the device that executes the kernels of a target."""
    if gpu.is_interpreted:
        return GpuDevice(InterpreterDriver())
    return gpu_device(gpu.driver, gpu.number)


def wrong_result(
    instruction: MatrixInstruction, selector: int, gpu: Gpu, device: GpuDevice, *, seed: int
) -> str | None:
    """Execute an instruction on random integers. Return the difference to NumPy, or None."""
    random = np.random.default_rng(seed)
    left = random_integers(random, instruction.a, (ROWS, instruction.depth))
    if instruction.is_sparse:
        left = structured_matrix(random, left, instruction.bits)
    right = random_integers(random, instruction.b, (instruction.depth, COLUMNS))
    sums = random.integers(-MAX_OPERAND, MAX_OPERAND + 1, (ROWS, COLUMNS))
    words = operand_words(instruction, selector, left, right, sums)
    ptx = instruction_kernels_ptx([(instruction, selector)], gpu)
    result = sums_of(execute_ptx(device, ptx, words), instruction)
    return difference_of(result, left @ right + sums)


def difference_of(result: Array, expected: Array) -> str | None:
    """Return how sums differ from the expected ones; None if they do not."""
    different = np.argwhere(result != expected)
    if not len(different):
        return None
    row, column = different[0]
    return (
        f"{len(different)} of {result.size} sums are wrong: that of row {row} and column {column} is "
        f"{result[row, column]}, expected {expected[row, column]}"
    )


def execute_ptx(device: GpuDevice, ptx: str, words: Array) -> Array:
    """Return registers after a kernel has run."""
    result = np.empty_like(words)
    driver = device.driver
    with device.calling("The matrix instruction"):
        module = driver.load_module(ptx)
        address = driver.allocate(words.nbytes)
        driver.copy_to_device(address, words, stream=DEFAULT_STREAM)
        driver.launch(
            driver.get_function(module, "instruction_0"),
            grid=(1, 1, 1),
            block=(LANES, 1, 1),
            arguments=[np.uint64(address)],
            stream=DEFAULT_STREAM,
        )
        driver.copy_to_host(result, address, stream=DEFAULT_STREAM)
        driver.free(address)
        driver.unload_module(module)
    return result


def random_integers(random: np.random.Generator, dtype: str, shape: tuple[int, int]) -> Array:
    """Return small integers that a dtype has."""
    return random.integers(0 if dtype in UNSIGNED_DTYPES else -MAX_OPERAND, MAX_OPERAND + 1, shape)


def structured_matrix(random: np.random.Generator, matrix: Array, bits: int) -> Array:
    """Return a matrix with zeros, so that it is 1:2 for 32 bits, 4:8 in pairs for 4 bits, else 2:4."""
    units, unit = (2, 1) if bits == 32 else (4, 2 if bits == 4 else 1)
    groups = matrix.reshape(len(matrix), -1, units, unit).copy()
    order = random.random(groups.shape[:3]).argsort(axis=2)
    groups[order < units // 2] = 0
    return groups.reshape(matrix.shape)


def operand_words(
    instruction: MatrixInstruction, selector: int, left: Array, right: Array, sums: Array
) -> Array:
    """Return the registers of all operands, one row of lanes for each."""
    left_elements, metadata = encoded_integers(left, instruction.a), []
    if instruction.is_sparse:
        compressed = compress(left_elements, instruction.a, metadata_dtype="int8")
        left_elements = compressed.values
        metadata = [metadata_words(compressed, instruction, selector)]
    a, b, c, _ = operand_counts(instruction)
    p = instruction.register_elements
    g, t, j = np.arange(LANES)[:, None] // 4, np.arange(LANES)[:, None] % 4, np.arange(p)
    rows = [
        packed_elements(left_elements[g + 8 * (r % 2), r // 2 * 4 * p + t * p + j], instruction.a)
        for r in range(a)
    ]
    right_elements = encoded_integers(right, instruction.b)
    rows += [
        packed_elements(right_elements[r * 4 * p + t * p + j, g], instruction.b) for r in range(b)
    ]
    in_lanes = np.ascontiguousarray(sums.astype(instruction.accumulator)[sum_places()])
    rows += list(in_lanes.view(np.uint32).reshape(LANES, c).T)
    return np.stack([*rows, *metadata]).astype(np.uint32)


def metadata_words(
    compressed: CompressedMatrix, instruction: MatrixInstruction, selector: int
) -> Array:
    """Return the metadata in the lanes that supply it; others have what is illegal there."""
    lanes_of_selector = 4 // len(instruction.selectors)
    shape = sparse_instruction(f"m16n8k{instruction.depth}", instruction.a)
    # It is packed for the selector 0.
    moved = np.roll(pack_metadata(compressed, shape)[0, 0], selector * lanes_of_selector)
    is_supplied = np.arange(LANES) % 4 // lanes_of_selector == selector
    words: Array = np.where(is_supplied, moved, np.uint32(0xFFFFFFFF))
    return words


def sum_places() -> tuple[Array, Array]:
    """Return the row and the column of each element of the accumulator, by lanes."""
    lane, i = np.arange(LANES)[:, None], np.arange(4)
    return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2


def sums_of(words: Array, instruction: MatrixInstruction) -> Array:
    """Return the accumulator of registers as a matrix."""
    a, b, c, _ = operand_counts(instruction)
    in_lanes = np.ascontiguousarray(words[a + b : a + b + c].T).view(instruction.accumulator)
    result = np.empty((ROWS, COLUMNS), instruction.accumulator)
    result[sum_places()] = in_lanes
    return result


def packed_elements(elements: Array, dtype: str) -> Array:
    """Return the registers of elements, one row of them for each lane."""
    lanes = np.ascontiguousarray(elements)
    if dtype.endswith("int4"):
        bits = lanes.view(np.uint8)
        lanes = np.ascontiguousarray(bits[:, 0::2] & 15 | bits[:, 1::2] << 4)
    words: Array = lanes.view(np.uint32)[:, 0]
    return words


def main(arguments: Sequence[str]) -> None:
    """Check the instructions that the command line names."""
    target, first, count = arguments
    check_instructions(target, int(first), int(count))


if __name__ == "__main__":
    main(sys.argv[1:])

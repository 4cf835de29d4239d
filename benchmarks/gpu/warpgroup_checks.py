"""The process that executes instructions of warpgroups on small integers, for which results are exact.

It is started as `python -m benchmarks.gpu.warpgroup_checks TARGET FIRST COUNT`, and prints a line of JSON for
each instruction with a sparsity selector, a place of A, and orders of A and B: its name, and what is wrong.

The places of elements in registers and in shared memory are those of the figures of the PTX ISA ("Register
fragments for wgmma.mma_async.m64nNk16", "Shared memory matrix layout"). They are written again here, so that
a defect of the package shows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import cache

import numpy as np

from benchmarks.gpu.encoded_integers import encoded_integers
from benchmarks.gpu.instruction_checks import (
    MAX_OPERAND,
    device_of,
    difference_of,
    packed_elements,
    random_integers,
    structured_matrix,
)
from benchmarks.gpu.instruction_kernels.warpgroup_kernels import (
    IMAGE_BYTES,
    WarpgroupUse,
    warpgroup_kernels_ptx,
    warpgroup_uses,
)
from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice
from gossamer_cuda_mma_sp.driver.cuda_driver import DEFAULT_STREAM
from gossamer_cuda_mma_sp.instructions.metadata_registers import pack_metadata
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import (
    A_REGISTERS,
    WARPGROUP_INSTRUCTIONS,
)
from gossamer_cuda_mma_sp.n_m.compress import compress
from gossamer_cuda_mma_sp.target.gpu import Gpu, gpu_of
from gossamer_ir.errors import GossamerError
from gossamer_ir.interchange.records import Target
from gossamer_support.arrays import Array

LANES, ROWS = 128, 64
SPANS = {128: 1, 64: 2, 32: 3, 16: 0}
"""The mode of swizzling in a descriptor, by the bytes of a span."""
START_OF_B = 8192
"""The address of B in shared memory; A begins at 0."""


@cache
def checked_uses(gpu: Gpu) -> tuple[WarpgroupUse, ...]:
    """Return the instructions that a GPU has, each as it may be used."""
    return tuple(
        use
        for instruction in WARPGROUP_INSTRUCTIONS
        if instruction.is_on(gpu)
        for use in warpgroup_uses(instruction)
    )


def use_name(use: WarpgroupUse) -> str:
    """Return the name of an instruction as it is used.

    >>> use_name(WarpgroupUse(WARPGROUP_INSTRUCTIONS[0]))
    'wgmma.sp m64n8k32 float16 float16 float16 selector 0, A in registers, B by k'
    """
    product = use.instruction
    shape = f"m64n{product.columns}k{product.depth}"
    dtypes = f"{product.a} {product.b} {product.accumulator}"
    place = (
        f"in shared memory by {_order(by_k=use.a_is_by_k)}" if use.a_is_shared else "in registers"
    )
    order = _order(by_k=use.b_is_by_k)
    limited = " satfinite" if product.saturates else ""
    return f"wgmma.sp {shape} {dtypes}{limited} selector {use.selector}, A {place}, B by {order}"


def _order(*, by_k: bool) -> str:
    return "k" if by_k else "rows and columns"


def check_uses(target: str, first: int, count: int) -> None:
    """Execute the instructions from a number on."""
    gpu = gpu_of(Target.parse(target))
    device = device_of(gpu)
    for number in range(first, first + count):
        use = checked_uses(gpu)[number]
        row = {"name": use_name(use), "wrong": None, "skipped": None}
        try:
            row["wrong"] = wrong_sums(use, gpu, device, seed=number)
        except GossamerError as error:
            row["wrong"] = str(error)
        print(json.dumps(row), flush=True)


def wrong_sums(use: WarpgroupUse, gpu: Gpu, device: GpuDevice, *, seed: int) -> str | None:
    """Execute an instruction on random integers. Return the difference to NumPy, or None."""
    random, product = np.random.default_rng(seed), use.instruction
    left = random_integers(random, product.a, (ROWS, product.depth))
    left = structured_matrix(random, left, product.bits)
    right = random_integers(random, product.b, (product.depth, product.columns))
    sums = random.integers(-MAX_OPERAND, MAX_OPERAND + 1, (ROWS, product.columns))
    image = np.zeros(IMAGE_BYTES, np.uint8)
    compressed = compress(encoded_integers(left, product.a), product.a, metadata_dtype="int8")
    stored, a = compressed.values, 0
    rows = []
    if use.a_is_shared:
        a = store_matrix(image, 0, stored, is_by_k=use.a_is_by_k)
    else:
        rows = a_registers(stored, product.a, product.register_elements)
    b = store_matrix(image, START_OF_B, encoded_integers(right, product.b).T, is_by_k=use.b_is_by_k)
    in_lanes = np.ascontiguousarray(
        sums.astype(product.accumulator)[warpgroup_sum_places(product.columns)]
    )
    rows += list(in_lanes.view(np.uint32).T)
    rows.append(warpgroup_metadata(encoded_integers(left, product.a), use))
    words = np.stack(rows).astype(np.uint32)
    ptx = warpgroup_kernels_ptx([use], gpu)
    registers = execute_warpgroup(device, ptx, words, image, (a, b))[
        -1 - product.sum_registers : -1
    ]
    result = np.empty((ROWS, product.columns), product.accumulator)
    result[warpgroup_sum_places(product.columns)] = np.ascontiguousarray(registers.T).view(
        product.accumulator
    )
    return difference_of(result, left @ right + sums)


def a_registers(stored: Array, dtype: str, p: int) -> list[Array]:
    """Return the registers of A, with a lane in each column: p elements of a row in each."""
    lane = np.arange(LANES)[:, None]
    row, t = lane // 32 * 16 + lane % 32 // 4, lane % 4
    return [
        packed_elements(stored[row + 8 * (r % 2), r // 2 * 4 * p + t * p + np.arange(p)], dtype)
        for r in range(A_REGISTERS)
    ]


def warpgroup_sum_places(columns: int) -> tuple[Array, Array]:
    """Return the row and the column of each element of the accumulator, by lanes."""
    lane, i = np.arange(LANES)[:, None], np.arange(columns // 2)
    return lane // 32 * 16 + lane % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2


def warpgroup_metadata(elements: Array, use: WarpgroupUse) -> Array:
    """Return the metadata in the lanes that supply it, those of 16 rows in each warp; others have what is
    illegal there."""
    product = use.instruction
    parts = [
        compress(elements[first : first + 16], product.a, metadata_dtype="int8")
        for first in range(0, ROWS, 16)
    ]
    packed = np.concatenate([pack_metadata(part, product.warp_instruction)[0, 0] for part in parts])
    # It is packed for the selector 0.
    lanes_of_selector = 4 // len(product.selectors)
    is_supplied = np.arange(LANES) % 4 // lanes_of_selector == use.selector
    moved = np.roll(packed, use.selector * lanes_of_selector)
    words: Array = np.where(is_supplied, moved, np.uint32(0xFFFFFFFF))
    return words


def store_matrix(image: Array, start: int, elements: Array, *, is_by_k: bool) -> int:
    """Store a matrix, rows by columns along K, in an image of shared memory, and return its descriptor. Atoms
    of eight spans are stored first along the dimension that is not contiguous."""
    row, column = np.indices(elements.shape)
    along, across = (column, row) if is_by_k else (row, column)
    size = elements.dtype.itemsize
    count, length = across.max() // 8 + 1, int(along.max() + 1) * size
    span = next(span for span in SPANS if length % span == 0)
    atom = along * size // span * count + across // 8
    # The rows of 128 bytes in which chunks change places contain 1, 2, 4 or 8 spans.
    chunk = along * size % span // 16 ^ across % 8 * span // 128 % (span // 16)
    byte_offset = start + atom * 8 * span + across % 8 * span + chunk * 16 + along * size % 16
    data = np.ascontiguousarray(elements).view(np.uint8).reshape(*elements.shape, size)
    image[byte_offset[..., None] + np.arange(size)] = data
    leading, stride = int(count) * 8 * span, 8 * span
    if span == 16 and not is_by_k:
        leading, stride = stride, leading
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | SPANS[span] << 62


def execute_warpgroup(
    device: GpuDevice, ptx: str, words: Array, image: Array, descriptors: tuple[int, int]
) -> Array:
    """Return registers after a kernel has run."""
    result, driver = np.empty_like(words), device.driver
    with device.calling("The instruction of a warpgroup"):
        module = driver.load_module(ptx)
        addresses = [driver.allocate(data.nbytes) for data in (words, image)]
        for address, data in zip(addresses, (words, image), strict=True):
            driver.copy_to_device(address, data, stream=DEFAULT_STREAM)
        driver.launch(
            driver.get_function(module, "warpgroup_0"),
            grid=(1, 1, 1),
            block=(LANES, 1, 1),
            arguments=[np.uint64(argument) for argument in (*addresses, *descriptors)],
            stream=DEFAULT_STREAM,
        )
        driver.copy_to_host(result, addresses[0], stream=DEFAULT_STREAM)
        for address in addresses:
            driver.free(address)
        driver.unload_module(module)
    return result


def main(arguments: Sequence[str]) -> None:
    """Check the instructions that the command line names."""
    target, first, count = arguments
    check_uses(target, int(first), int(count))


if __name__ == "__main__":
    main(sys.argv[1:])

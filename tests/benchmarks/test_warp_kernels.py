"""Kernels of one instruction. `benchmarks.gpu.instruction_checks` compares all of them with NumPy."""

import numpy as np
import pytest

from benchmarks.gpu.instruction_kernels.warp_kernels import instruction_kernels_ptx, operand_counts
from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver
from gossamer_cuda_mma_sp.instructions.matrix_instructions import MatrixInstruction
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.interchange.records import Target

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

PAIR_OF_ONES = 0x3C003C00
DENSE = MatrixInstruction(16, "float16", "float16", "float32")
SPARSE = MatrixInstruction(32, "float16", "float16", "float16", selectors=(0, 1))


@pytest.mark.parametrize(("number", "instruction"), [(0, DENSE), (1, SPARSE)])
def test_registers_of_lanes_are_multiplied(number, instruction):
    """All elements are one, so that each sum is the number of products."""
    gpu = gpu_of(Target.parse("cuda-mma-sp:arch=sm_90"))
    ptx = instruction_kernels_ptx([(DENSE, 0), (SPARSE, 1)], gpu)
    a, b, sums, metadata = operand_counts(instruction)
    words = np.zeros((a + b + sums + metadata, 32), np.uint32)
    words[: a + b] = PAIR_OF_ONES
    words[a + b + sums :] = 0x44444444
    driver = InterpreterDriver()
    address = driver.allocate(words.nbytes)
    driver.copy_to_device(address, words, stream=0)
    driver.launch(
        driver.get_function(driver.load_module(ptx), f"instruction_{number}"),
        grid=(1, 1, 1),
        block=(32, 1, 1),
        arguments=[np.uint64(address)],
        stream=0,
    )
    driver.copy_to_host(words, address, stream=0)
    result = words[a + b : a + b + sums].view(instruction.accumulator)
    assert (result == 16).all()

"""Kernels of one instruction of a warpgroup; the interpreter's tests run them on operands of all dtypes."""

import numpy as np
import pytest
from assembler import assembled
from disassembler import assembled_without_spills
from msgspec.structs import replace
from warpgroup_operands import GPU, WarpgroupProblem

from benchmarks.gpu.instruction_kernels.warpgroup_kernels import WarpgroupUse, warpgroup_kernels_ptx
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import warpgroup_instruction

WIDEST = warpgroup_instruction(256, "float16", "float16", "float32")
NARROW = warpgroup_instruction(8, "int8", "int8", "int32")


def test_the_kernel_of_the_widest_instruction_has_no_spills(tmp_path):
    uses = [WarpgroupUse(WIDEST), WarpgroupUse(NARROW, a_is_shared=True)]
    assembled_without_spills(warpgroup_kernels_ptx(uses, GPU), "sm_90a", tmp_path)


def test_ptxas_does_not_serialize_the_products(tmp_path):
    said = assembled(warpgroup_kernels_ptx([WarpgroupUse(WIDEST)], GPU), "sm_90a", tmp_path)
    assert "serialized" not in said


@pytest.mark.parametrize("saturates", [False, True])
def test_sums_of_integers_saturate_or_wrap(saturates):
    limits = np.iinfo(np.int32)
    sums = np.tile([limits.min + 3, limits.max - 3], (64, 4))
    use = WarpgroupUse(replace(NARROW, saturates=saturates))
    problem = WarpgroupProblem(use, sums=sums)
    exact = problem.expected
    assert (exact < limits.min).any()
    assert (exact > limits.max).any()
    expected = exact.clip(limits.min, limits.max) if saturates else exact.astype(np.int32)
    np.testing.assert_array_equal(problem.run(), expected)


@pytest.mark.parametrize("selector", [0, 1])
def test_sums_of_many_columns_are_in_their_registers(selector):
    use = WarpgroupUse(WIDEST, b_is_by_k=False, selector=selector)
    problem = WarpgroupProblem(use, b_span=128)
    np.testing.assert_array_equal(problem.run(), problem.expected)

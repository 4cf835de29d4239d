"""Tiles in shared memory are swizzled: matrix loads have no bank conflicts, and the same results."""

import numpy as np
import pytest
from matrix_load_programs import problem, program

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.codegen.fragments import lower_fragments
from gossamer_cuda_mma_sp.device.copying_kernel import copying_kernel
from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice
from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver
from gossamer_ir.interchange.records import Target

INTERPRETER = Target.parse("cuda-mma-sp:driver=interpreter")
TILES = [(16, 16, 16), (32, 32, 32), (16, 64, 64), (16, 128, 128)]


def conflicts(tile, ways, padding=0):
    """Multiply, compare the result, and return the bank conflicts."""
    module = program(tile, ways=ways, padding=padding)
    arguments, expected = problem(tile, ways=ways)
    driver = InterpreterDriver()
    copying_kernel(CudaBackend().compile(module, INTERPRETER), GpuDevice(driver))(**arguments)
    np.testing.assert_array_equal(arguments["c"], expected)
    return driver.bank_conflicts


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("ways", ["", "ab"])
def test_rows_of_a_matrix_are_in_different_banks(tile, ways, monkeypatch):
    assert conflicts(tile, ways) == 0
    monkeypatch.setattr(lower_fragments, "swizzle_shared", lambda body: body)
    assert conflicts(tile, ways) > 0


def test_rows_that_are_apart_are_not_swizzled(monkeypatch):
    """With a chunk of padding, rows are in different banks."""
    assert conflicts((16, 64, 64), "", padding=8) == 0
    monkeypatch.setattr(lower_fragments, "swizzle_shared", lambda body: body)
    assert conflicts((16, 64, 64), "", padding=8) == 0

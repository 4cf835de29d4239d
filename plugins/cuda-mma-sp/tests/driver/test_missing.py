"""What a machine lacks to run kernels."""

import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.driver.missing import System, missing_parts
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

LOOP = ("for i in T.serial(n):", "    Y[i] = X[i] * 2.0")
BACKEND = CudaBackend()


def test_a_machine_without_a_gpu_says_what_it_lacks():
    nothing = System(has_file=lambda path: False, library=lambda name: None)
    driver, device = missing_parts(nothing)
    assert "libcuda.so.1" in driver
    assert "/dev/nvidiactl" in device
    everything = System(has_file=lambda path: True, library=lambda name: name)
    assert missing_parts(everything) == ()


def test_kernels_are_not_loaded_yet(flat):
    artifact = BACKEND.compile(flat(*LOOP), Target("cuda-mma-sp"))
    with pytest.raises(ArgumentError, match="does not load them yet") as caught:
        BACKEND.load(artifact)
    assert caught.value.code == "cuda.load"
    probe = BACKEND.probe(Target("cuda-mma-sp"))
    assert probe.resolved == artifact.target == "cuda-mma-sp:arch=sm_80,ptx=8.5,multiprocessors=108"
    assert probe.reason in str(caught.value)

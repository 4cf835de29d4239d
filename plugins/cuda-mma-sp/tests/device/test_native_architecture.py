"""Targets whose architecture is that of the GPU of this machine."""

import sys

import pytest
from fake_drivers import installed_drivers

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device.gpu_device import gpu_device
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

BACKEND = CudaBackend()
LOOP = ("for i in T.serial(n):", "    Y[i] = X[i] * 2.0")
NATIVE = "cuda-mma-sp:arch=native"


@pytest.mark.parametrize(
    ("capability", "version", "options", "resolved"),
    [
        ((9, 0), 13000, "", "arch=sm_90a,ptx=8.5,multiprocessors=40"),
        ((8, 6), 13000, "", "arch=sm_86,ptx=8.5,multiprocessors=40"),
        ((8, 6), 12010, "", "arch=sm_86,ptx=8.0,multiprocessors=40"),
        ((8, 6), 12010, ",ptx=7.8,multiprocessors=7", "arch=sm_86,ptx=7.8,multiprocessors=7"),
        ((12, 5), 13000, "", "arch=sm_120,ptx=8.7,multiprocessors=40"),
    ],
)
def test_the_driver_says_what_the_gpu_is(capability, version, options, resolved, monkeypatch, flat):
    with installed_drivers(monkeypatch) as gpu:
        gpu.version = version
        gpu.attributes |= {"MULTIPROCESSOR_COUNT": 40, **dict(
            zip(("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR"), capability, strict=True)
        )}  # fmt: skip
        target = Target.parse(NATIVE + options)
        probe = BACKEND.probe(target)
        assert (probe.is_usable, probe.resolved) == (True, f"cuda-mma-sp:{resolved}")
        assert BACKEND.machine(target) == BACKEND.machine(Target.parse(probe.resolved))
        artifact = BACKEND.compile(flat(*LOOP), target)
        assert artifact.target == probe.resolved
        assert BACKEND.texts(flat(*LOOP), target)["ptx"]


def test_a_gpu_that_is_too_old_is_refused(monkeypatch):
    with installed_drivers(monkeypatch) as gpu:
        gpu.attributes |= {"COMPUTE_CAPABILITY_MAJOR": 6, "COMPUTE_CAPABILITY_MINOR": 1}
        assert "has the compute capability 6.1" in BACKEND.probe(Target.parse(NATIVE)).reason


def test_without_a_gpu_the_error_says_what_is_missing_and_what_to_write(monkeypatch, flat):
    gpu_device.cache_clear()
    for name in ("pycuda", "cuda"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(
        "gossamer_cuda_mma_sp.driver.library_calls.CtypesCalls.__init__.__defaults__",
        ("libcuda-of-nothing.so",),
    )
    for target, reason in (
        (NATIVE, "NVIDIA's driver (libcuda.so.1) cannot be loaded"),
        (f"{NATIVE},driver=interpreter", "the interpreter of PTX runs kernels for any"),
    ):
        with pytest.raises(ArgumentError) as caught:
            BACKEND.compile(flat(*LOOP), Target.parse(target))
        assert caught.value.code == "cuda.native"
        assert reason in str(caught.value)
        assert "Name one: arch= with one of sm_70" in str(caught.value)
        assert reason in BACKEND.probe(Target.parse(target)).reason


def test_other_options_are_checked_before_a_driver_is_opened(flat):
    with pytest.raises(ArgumentError) as caught:
        BACKEND.compile(flat(*LOOP), Target.parse(f"{NATIVE},driver=cuda"))
    assert caught.value.code == "cuda.option_value"

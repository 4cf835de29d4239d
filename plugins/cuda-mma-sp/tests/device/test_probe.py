"""Reasons for which a machine cannot run kernels, by the probe of a target and the error of a load."""

import sys
import types

import pytest
from fake_drivers import installed_drivers

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device.gpu_device import gpu_device
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

BACKEND = CudaBackend()
LOOP = ("for i in T.serial(n):", "    Y[i] = X[i] * 2.0")
DRIVERS = ("pycuda", "cuda-bindings", "ctypes")


def refusal(text, code, flat):
    """The reason of the probe, which is that of the error of a load."""
    target = Target.parse(text)
    probe = BACKEND.probe(target)
    assert not probe.is_usable
    with pytest.raises(ArgumentError) as caught:
        BACKEND.load(BACKEND.compile(flat(*LOOP), target))
    assert caught.value.code == code
    assert caught.value.diagnostics[0].message in probe.reason
    return probe.reason


@pytest.fixture
def bare(monkeypatch):
    """A machine with neither packages nor a library."""
    gpu_device.cache_clear()
    for name in ("pycuda", "cuda"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(
        "gossamer_cuda_mma_sp.driver.library_calls.CtypesCalls.__init__.__defaults__",
        ("libcuda-of-nothing.so",),
    )


@pytest.mark.parametrize("name", DRIVERS)
def test_a_machine_with_a_gpu_lacks_nothing(name, fake_gpu):
    probe = BACKEND.probe(Target.parse(f"cuda-mma-sp:arch=sm_90,driver={name}"))
    assert (probe.is_usable, probe.reason) == (True, None)
    assert probe.resolved == f"cuda-mma-sp:arch=sm_90,ptx=8.5,multiprocessors=132,driver={name}"


@pytest.mark.parametrize(
    ("packages", "name"),
    [
        (("pycuda", "cuda-bindings"), "PyCUDA"),
        (("cuda-bindings",), "cuda.bindings"),
        ((), "ctypes"),
    ],
)
def test_the_default_driver_is_the_first_that_is_installed(packages, name, monkeypatch):
    with installed_drivers(monkeypatch, packages=packages):
        assert BACKEND.probe(Target("cuda-mma-sp")).is_usable
        assert gpu_device(None, 0).driver.name == name


@pytest.mark.parametrize(
    ("name", "package"), [("pycuda", "'pycuda'"), ("cuda-bindings", "'cuda.bindings'")]
)
def test_a_package_that_is_not_installed(name, package, bare, flat):
    reason = refusal(f"cuda-mma-sp:driver={name}", "cuda.driver", flat)
    assert f"needs the package {package}, which is not installed" in reason
    assert f"gossamer-cuda-mma-sp[{name}]" in reason


def test_a_library_that_is_not_there(bare, flat):
    reason = refusal("cuda-mma-sp", "cuda.driver", flat)
    assert "The library of NVIDIA's driver (libcuda.so.1) cannot be loaded" in reason


def test_a_package_that_does_not_find_the_library(fake_gpu, flat, monkeypatch):
    package = types.ModuleType("pycuda")
    package.__path__ = []
    package.__spec__ = types.SimpleNamespace(name="pycuda")
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.delitem(sys.modules, "pycuda.driver")
    reason = refusal("cuda-mma-sp:driver=pycuda", "cuda.driver", flat)
    assert "The package 'pycuda' cannot be imported" in reason


def test_a_reason_of_the_driver_that_is_a_sentence_ends_with_one_full_stop(
    fake_gpu, flat, monkeypatch
):
    def refuse(flags):
        raise RuntimeError("Failed to dlopen libcuda.so.1.")

    monkeypatch.setattr(sys.modules["cuda.bindings.driver"], "cuInit", refuse)
    reason = refusal("cuda-mma-sp:driver=cuda-bindings", "cuda.driver", flat)
    assert "cannot be loaded: Failed to dlopen libcuda.so.1. Install the driver" in reason


@pytest.mark.parametrize("name", DRIVERS)
def test_a_machine_without_a_gpu(name, fake_gpu, flat):
    fake_gpu.count = 0
    reason = refusal(f"cuda-mma-sp:driver={name}", "cuda.driver", flat)
    assert "finds no GPU" in reason
    assert "no CUDA-capable device" in reason


@pytest.mark.parametrize("name", DRIVERS)
def test_a_number_that_no_gpu_has(name, fake_gpu, flat):
    reason = refusal(f"cuda-mma-sp:driver={name},device=3", "cuda.device", flat)
    assert "There is no GPU 3; this machine has 1" in reason


def test_a_driver_that_is_too_old_for_the_code(fake_gpu, flat):
    fake_gpu.version = 12020
    reason = refusal("cuda-mma-sp:arch=sm_90,ptx=8.5", "cuda.driver", flat)
    assert (
        "PTX 8.5 needs the driver of CUDA 12.5, and that of this machine is of CUDA 12.2" in reason
    )
    assert "ptx=8.0" in reason
    assert BACKEND.probe(Target.parse("cuda-mma-sp:arch=sm_90,ptx=8.0")).is_usable


@pytest.mark.parametrize(
    ("name", "fits"),
    [("sm_80", True), ("sm_90", True), ("sm_90a", True), ("sm_100", False), ("sm_120", False)],
)
def test_code_for_a_later_gpu(name, fits, fake_gpu, flat):
    target = f"cuda-mma-sp:arch={name}"
    if fits:
        assert BACKEND.probe(Target.parse(target)).is_usable
    else:
        assert "('Fake GPU') has 9.0" in refusal(target, "cuda.device", flat)


def test_code_for_one_architecture_only(fake_gpu, flat):
    fake_gpu.attributes["COMPUTE_CAPABILITY_MAJOR"] = 10
    assert "of compute capability 9.0, and" in refusal(
        "cuda-mma-sp:arch=sm_90a", "cuda.device", flat
    )


def test_the_plugin_needs_no_driver(bare, flat):
    assert BACKEND.compile(flat(*LOOP), Target("cuda-mma-sp")).code
    assert BACKEND.probe(Target.parse("cuda-mma-sp:driver=interpreter")).is_usable


def test_a_driver_that_does_not_start(fake_gpu, flat):
    fake_gpu.refuse("cuInit", "CUDA_ERROR_INVALID_VALUE")
    probe = BACKEND.probe(Target.parse("cuda-mma-sp:driver=ctypes"))
    assert "does not start: cuInit failed with CUDA_ERROR_INVALID_VALUE" in probe.reason

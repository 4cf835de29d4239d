"""Kernels in a process of AArch64 or RISC-V, and what a machine lacks to run them."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_backend import Artifact
from gossamer_host_runtime import host, scalable_vector_bits
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Signature, Target
from gossamer_llvm_sve.backend import ScalableBackend
from gossamer_llvm_sve.machine import cpu_of
from gossamer_llvm_sve.native import reason_against_cpu
from gossamer_llvm_sve.vector_extension import EXTENSIONS

GRAVITON3 = cpu_of(Target.parse("llvm-sve:cpu=neoverse-v1")).required_features
NATIVE = next((extension for extension in EXTENSIONS.values() if extension.is_native), None)
here = pytest.mark.skipif(
    NATIVE is None or scalable_vector_bits() is None,
    reason="this machine has no scalable vectors",
)


@pytest.fixture
def backend():
    """The backend whose kernels this machine loads."""
    return ScalableBackend(NATIVE)


@pytest.mark.parametrize("target", ["", ":min_vector_bits=256", ":cpu=a64fx", ":vector_bits=2048"])
def test_a_machine_runs_code_that_needs_no_more_than_it_has(target):
    cpu = cpu_of(Target.parse(f"llvm-sve{target}"))
    assert reason_against_cpu(cpu, vector_bits=256, features=GRAVITON3) is None


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (
            ":min_vector_bits=512",
            "have 256 bits, and the code relies on 512 (min_vector_bits=512)",
        ),
        (":features=sve2", "lacks sve2."),
        (":features=sme", "lacks sme."),
        (":cpu=neoverse-v2", "lacks altnzcv, fptoint, sve2."),
    ],
)
def test_what_a_machine_lacks_is_named(target, reason):
    cpu = cpu_of(Target.parse(f"llvm-sve{target}"))
    assert reason in reason_against_cpu(cpu, vector_bits=256, features=GRAVITON3)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (
            "llvm-rvv:min_vector_bits=512",
            "have 256 bits, and the code relies on 512 (min_vector_bits=512)",
        ),
        ("llvm-rvv:features=zba+zvfh", "lacks zba, zvfh."),
        ("llvm-rvv:cpu=spacemit-x60", "lacks zba, zbb, zbs, zicond, zvfh."),
    ],
)
def test_what_a_machine_of_riscv_lacks_is_named(target, reason):
    cpu = cpu_of(Target.parse(target))
    assert reason in reason_against_cpu(cpu, vector_bits=256, features={"v"})


@pytest.mark.parametrize("extension", EXTENSIONS.values(), ids=EXTENSIONS)
def test_a_machine_of_the_architecture_without_the_extension_says_so(extension, monkeypatch):
    name = extension.backend
    monkeypatch.setattr(
        "gossamer_llvm_sve.vector_extension.architecture", lambda: extension.architecture.name
    )
    monkeypatch.setattr("gossamer_llvm_sve.native.scalable_vector_bits", lambda: None)
    backend = ScalableBackend(extension)
    probe = backend.probe(Target(name))
    assert not probe.is_usable
    assert f"no vectors of {extension.title}" in probe.reason
    with pytest.raises(ArgumentError, match=f"no vectors of {extension.title}") as caught:
        backend.load(Artifact(name, "", name, Signature("f", (), (), ()), b""))
    assert caught.value.code == "scalable_cpu.load"


@here
def test_a_kernel_runs_in_this_process(flat, load):
    kernel = load(flat("for i in T.serial(n):", "    Y[i] = X[i] + X[i]"), NATIVE.backend)
    assert kernel.emulator is None
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    kernel(x, y)
    assert (y == 2 * x).all()


@here
def test_scalable_lanes_have_the_length_of_this_machine(flat, load):
    kernel = load(flat("Y[0] = T.vscale()", dtype="int64"), NATIVE.backend)
    x, y = np.zeros((2, 1), np.int64)
    kernel(x, y)
    assert y.tolist() == [scalable_vector_bits() // 128]


@here
def test_a_minimum_above_the_vectors_of_this_machine_is_refused(backend, flat):
    target = Target.parse(f"{backend.name}:min_vector_bits={2 * scalable_vector_bits()}")
    assert f"min_vector_bits={2 * scalable_vector_bits()}" in backend.probe(target).reason
    artifact = backend.compile(flat("Y[0] = X[0]"), target)
    with pytest.raises(ArgumentError, match="min_vector_bits") as caught:
        backend.load(artifact)
    assert caught.value.code == "scalable_cpu.load"


@here
def test_a_target_has_the_caches_and_cores_of_this_machine(backend):
    resolved = Target.parse(backend.probe(Target(backend.name)).resolved)
    assert resolved.option("cores") == host().options["cores"]
    assert backend.machine(resolved).cores == int(host().options["cores"])

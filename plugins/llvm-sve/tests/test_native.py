"""Kernels in a process of AArch64, and what a machine lacks to run them."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_backend import Artifact
from gossamer_host_runtime import host, sve_vector_bits
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Signature, Target
from gossamer_llvm_sve.backend import ScalableBackend
from gossamer_llvm_sve.machine import cpu_of
from gossamer_llvm_sve.native import is_native, reason_against_cpu
from gossamer_llvm_sve.vector_extension import SVE

BACKEND = ScalableBackend(SVE)
GRAVITON3 = cpu_of(Target.parse("llvm-sve:cpu=neoverse-v1")).required
on_aarch64 = pytest.mark.skipif(
    not is_native(SVE) or sve_vector_bits() is None, reason="another machine than AArch64 with SVE"
)


@pytest.mark.parametrize("target", ["", ":vl_min=256", ":cpu=a64fx", ":vector_bits=2048"])
def test_a_machine_runs_code_that_needs_no_more_than_it_has(target):
    cpu = cpu_of(Target.parse(f"llvm-sve{target}"))
    assert reason_against_cpu(cpu, vector_bits=256, features=GRAVITON3) is None


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (":vl_min=512", "have 256 bits, and the code relies on 512 (vl_min=512)"),
        (":features=sve2", "lacks sve2."),
        (":features=sme", "lacks sme."),
        (":cpu=neoverse-v2", "lacks altnzcv, fptoint, sve2."),
    ],
)
def test_what_a_machine_lacks_is_named(target, reason):
    cpu = cpu_of(Target.parse(f"llvm-sve{target}"))
    assert reason in reason_against_cpu(cpu, vector_bits=256, features=GRAVITON3)


def test_a_machine_of_aarch64_without_sve_says_so(monkeypatch):
    monkeypatch.setattr("gossamer_llvm_sve.native.architecture", lambda: "aarch64")
    monkeypatch.setattr("gossamer_llvm_sve.native.sve_vector_bits", lambda: None)
    probe = BACKEND.probe(Target("llvm-sve"))
    assert not probe.usable
    assert "no vectors of SVE" in probe.reason
    with pytest.raises(ArgumentError, match="no vectors of SVE") as caught:
        BACKEND.load(Artifact("llvm-sve", "", "llvm-sve", Signature("f", (), (), ()), b""))
    assert caught.value.code == "scalable_cpu.load"


@on_aarch64
def test_a_kernel_runs_in_this_process(flat, load):
    kernel = load(flat("for i in T.serial(n):", "    Y[i] = X[i] + X[i]"), "llvm-sve")
    assert kernel.emulator is None
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    kernel(x, y)
    assert (y == 2 * x).all()


@on_aarch64
def test_a_minimum_above_the_vectors_of_this_machine_is_refused(flat):
    target = Target.parse(f"llvm-sve:vl_min={2 * sve_vector_bits()}")
    assert f"vl_min={2 * sve_vector_bits()}" in BACKEND.probe(target).reason
    artifact = BACKEND.compile(flat("Y[0] = X[0]"), target)
    with pytest.raises(ArgumentError, match="vl_min") as caught:
        BACKEND.load(artifact)
    assert caught.value.code == "scalable_cpu.load"


@on_aarch64
def test_a_target_has_the_caches_and_cores_of_this_machine():
    resolved = Target.parse(BACKEND.probe(Target("llvm-sve")).resolved)
    assert resolved.option("cores") == host().options["cores"]
    assert BACKEND.machine(resolved).cores == int(host().options["cores"])

"""Features of RISC-V in the auxiliary vector and in the answers of the system call."""

from __future__ import annotations

import sys

import pytest

from gossamer_host_runtime import architecture, host, host_cpu, scalable_vector_bits
from gossamer_host_runtime.detection.riscv64 import RISCV64_BASE, riscv64_features, riscv64_identity

LONGER = {3: "zba", 4: "zbb", 5: "zbs", 17: "zvbb", 30: "zvfh", 35: "zicond"}


def features_of(letters="", extensions=0):
    bits = sum(1 << ord(letter) - ord("a") for letter in letters)
    features = riscv64_features(bits, {4: extensions}.get)
    return {name for name, is_present in features.items() if is_present}


def test_each_bit_is_the_feature_of_that_name():
    assert features_of("imafdcv") == RISCV64_BASE | {"v"}
    added = {bit: features_of(extensions=1 << bit) - RISCV64_BASE for bit in range(64)}
    assert {bit: names for bit, names in added.items() if names} == {
        bit: {name} for bit, name in LONGER.items()
    }


def test_the_base_is_there_on_systems_that_tell_nothing():
    assert features_of() == RISCV64_BASE


def test_the_identity_of_a_machine_has_the_numbers_that_linux_tells():
    assert riscv64_identity({0: 0x489, 1: 7, 2: 3}.get) == "0x489 0x7 0x3"


@pytest.mark.skipif(
    sys.platform != "linux" or architecture() != "riscv64", reason="another machine than RISC-V"
)
def test_this_machine_has_the_features_that_linux_tells():
    features = riscv64_features()
    assert features["v"] == (scalable_vector_bits() is not None)
    present = {name for name, is_present in features.items() if is_present}
    assert host_cpu().required == host().features == present


@pytest.mark.skipif(architecture() == "riscv64", reason="this machine is one of RISC-V")
def test_another_machine_has_none_of_the_features():
    assert riscv64_features() is None

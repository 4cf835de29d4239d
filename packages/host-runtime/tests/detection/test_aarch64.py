"""Features of AArch64 in the auxiliary vector, and vectors of SVE."""

from __future__ import annotations

import sys

import pytest

from gossamer_host_runtime import architecture, host, host_cpu, scalable_vector_bits
from gossamer_host_runtime.detection.aarch64 import aarch64_features, aarch64_identity

GRAVITON3 = {16: 0xEFFFFFFF, 26: 0x1F080 | 1 << 13 | 1 << 14}
"""AT_HWCAP and AT_HWCAP2: all of the first but bit 28, and of the second none of SVE2."""


def test_each_bit_is_the_feature_of_that_name():
    assert not any(aarch64_features(lambda entry: 0).values())
    assert all(aarch64_features(lambda entry: 2**64 - 1).values())
    bits = {
        name
        for entry in (16, 26)
        for bit in range(64)
        for name, is_present in aarch64_features({16: 0, 26: 0, entry: 1 << bit}.get).items()
        if is_present
    }
    # Both need two bits.
    assert aarch64_features(lambda entry: 0).keys() - bits == {"fullfp16", "sha3"}


def test_a_neoverse_v1_has_sve_and_not_sve2():
    features = aarch64_features(GRAVITON3.get)
    names = ("lse", "dotprod", "sve", "bf16", "i8mm", "fullfp16")
    assert all(features[name] for name in names)
    assert not features["sve2"]
    assert not features["sme"]


def test_the_identity_of_a_machine_is_what_linux_shows(tmp_path):
    assert aarch64_identity(tmp_path / "midr_el1") is None
    (tmp_path / "midr_el1").write_text("0x00000000411fd401\n")
    assert aarch64_identity(tmp_path / "midr_el1") == "0x00000000411fd401"


@pytest.mark.skipif(
    sys.platform != "linux" or architecture() != "aarch64", reason="another machine than AArch64"
)
def test_this_machine_has_the_features_of_its_auxiliary_vector():
    features = aarch64_features()
    assert features["neon"]
    assert features["sve"] == (scalable_vector_bits() is not None)
    present = {name for name, is_present in features.items() if is_present}
    assert host_cpu().required == host().features == present


@pytest.mark.skipif(architecture() == "aarch64", reason="this machine is one of AArch64")
def test_another_machine_has_none_of_the_features():
    assert aarch64_features() is None

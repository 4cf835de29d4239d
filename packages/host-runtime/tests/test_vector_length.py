"""The length of scalable vectors."""

import pytest

from gossamer_host_runtime import architecture, host, scalable_vector_bits
from gossamer_host_runtime.vector_length import _riscv_bytes

FEATURES = {"aarch64": "sve", "riscv64": "v"}


def test_a_machine_with_scalable_vectors_has_a_length_of_them():
    has_vectors = FEATURES.get(architecture()) in host().features
    assert (scalable_vector_bits() is not None) is has_vectors
    assert scalable_vector_bits() in {None, *(128 << power for power in range(10))}


@pytest.mark.parametrize("features", [None, {"v": False}])
def test_the_register_is_not_read_where_it_does_not_exist(monkeypatch, features):
    """Reading it would end the process."""
    monkeypatch.setattr("gossamer_host_runtime.vector_length.riscv64_features", lambda: features)
    monkeypatch.setattr("gossamer_host_runtime.vector_length.make_executable", pytest.fail)
    assert _riscv_bytes() is None

"""The model that chooses how products with N:M matrices are computed on CPUs."""

from __future__ import annotations

import pytest

from gossamer_machine import Machine
from gossamer_tune.internal_api import choose_cpu_form

MACHINE = Machine(min_vector_bits=512, private_cache=2 << 20)


def form(dtype="float32", *, columns=1024, features=200, is_tensor=True):
    return choose_cpu_form(
        dtype, columns=columns, features=features, is_tensor=is_tensor, machine=MACHINE
    ).form


def test_a_dense_operand_that_is_near_is_gathered_from():
    assert form(columns=512, features=32) == "csr"
    assert form(columns=512, features=33) == "dense"
    assert form("float64", columns=512, features=16) == "csr"
    assert form("float64", columns=512, features=17) == "dense"
    # Kernels convert float16 to float32.
    assert form("float16", columns=512, features=32) == "csr"
    assert form("float16", columns=512, features=33) == "dense"


def test_features_that_do_not_fill_a_vector_are_dense():
    assert form(columns=16, features=15) == "dense"
    assert form(columns=16, features=16) == "csr"
    assert form("float64", columns=16, features=8) == "csr"


def test_other_matrices_than_tensors_are_not_converted():
    assert form(columns=64, features=64, is_tensor=False) == "dense"


@pytest.mark.parametrize("is_tensor", [True, False])
def test_int8_has_no_library(is_tensor):
    assert form("int8", is_tensor=is_tensor) == "kernel"

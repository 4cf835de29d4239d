"""Products with N:M matrices on CPUs, by the kernel and by libraries."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import gossamer as gs
from gossamer.targets.parse_target import is_default_target
from gossamer_tune.internal_api import FormChoice

MODULE = importlib.import_module("gossamer.operators.n_m_products.library_products")


def test_only_the_default_target_is_that_of_libraries():
    assert [*map(is_default_target, (None, "generic-cpu", "generic-cpu:vector_bits=256"))] == [
        True, True, False,
    ]  # fmt: skip


def n_m_array(dtype):
    dense = np.random.default_rng(1).integers(-4, 5, (9, 18))
    dense[:, 2::4] = dense[:, 3::4] = 0
    return dense.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("chosen", ["dense", "csr", "kernel"])
def test_all_forms_of_a_tensor_have_the_same_product(chosen, dtype, monkeypatch):
    choice = FormChoice(chosen, "all are tested")
    monkeypatch.setattr(MODULE, "choose_form_here", lambda *_, **__: choice)
    dense = n_m_array(dtype)
    A = gs.prune(dense, "2:4")
    B = np.random.default_rng(2).integers(-4, 5, (18, 20)).astype(dtype)
    out = np.empty((9, 20), dtype)
    for _ in range(2):
        assert gs.matmul_24(A, B, out=out) is out
        np.testing.assert_array_equal(out, dense @ B)


def test_arrays_of_float16_are_added_in_float32():
    dense = np.full((1, 8192), 0, np.float16)
    dense[:, ::2] = 1
    product = gs.matmul_24(dense, np.ones((8192, 3), np.float16))
    # In float16, sums would end at 2048.
    np.testing.assert_array_equal(product, np.full((1, 3), 4096, np.float32))


def test_explain_says_which_form_and_why():
    sizes = {"groups": 1 << 20, "feat_size": 64}
    decision = gs.explain("matmul_24", specialize=sizes).decisions[0]
    assert decision.what == "the dense product of NumPy"
    assert f"has {(1 << 22) * 64 * 4} bytes" in decision.why
    assert "the kernel for N:M 3.0" in decision.why
    whole = gs.explain("matmul_24", dtypes={"A": "int8", "B": "int8"}).decisions[0]
    assert whole.what == "the kernel for N:M"
    for precision in ("tfloat32", "int4", "uint4"):
        special = gs.explain("matmul_24", dtypes={"A": precision, "B": precision}).decisions[0]
        assert special.why.startswith(f"no library multiplies {precision} with sums in")
    named = gs.explain("matmul_24", target="generic-cpu:vector_bits=256").decisions[0]
    assert named.what != decision.what

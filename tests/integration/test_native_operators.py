"""Operators with default schedules on two threads of a process of AArch64 or RISC-V, compared with SciPy and
NumPy. `nox -s aarch64 riscv64` runs them on other machines."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_host_runtime import architecture
from gossamer_testkit.matrices.oracles import attention

BACKENDS = {"aarch64": "llvm-sve", "riscv64": "llvm-rvv"}
"""The backend for scalable vectors of each architecture."""

pytestmark = [
    pytest.mark.unserialized,
    pytest.mark.skipif(
        architecture() not in BACKENDS, reason="another machine than AArch64 and RISC-V"
    ),
]
TARGETS = tuple(
    f"{name}:threads=2" for name in (BACKENDS.get(architecture(), "llvm-sve"), "generic-cpu")
)
DTYPE = "float32"


def integers(*shape):
    return np.random.default_rng(shape).integers(-4, 5, shape).astype(DTYPE)


@pytest.fixture
def matrix():
    """A matrix with empty rows at both ends and a dense one."""
    rows, columns = 211, 157
    dense = integers(rows, columns) * (np.random.default_rng(1).random((rows, columns)) < 0.05)
    dense[7] = 1
    dense[:2] = dense[-3:] = 0
    return sparse.csr_array(dense)


@pytest.mark.parametrize("target", TARGETS)
def test_products_are_those_of_scipy(matrix, target):
    b, x = integers(matrix.shape[1], 33), integers(matrix.shape[1])
    np.testing.assert_array_equal(gs.spmm(matrix, b, target=target), matrix @ b)
    np.testing.assert_array_equal(gs.spmv(matrix, x, target=target), matrix @ x)


@pytest.mark.parametrize("target", TARGETS)
def test_sampled_products_and_attention_are_those_of_numpy(matrix, target):
    x, y = integers(matrix.shape[0], 20), integers(matrix.shape[1], 20)
    pattern = matrix.tocoo()
    result = gs.sddmm(matrix, x, y, target=target)
    np.testing.assert_array_equal(result, np.einsum("ek,ek->e", x[pattern.row], y[pattern.col]))
    q, k, v = x / 8, y / 8, integers(matrix.shape[1], 20)
    weighted = gs.attention(matrix, q, k, v, target=target)
    np.testing.assert_allclose(weighted, attention(matrix, q, k, v), rtol=0, atol=2e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_a_call_starts_a_thread_of_the_pool(target):
    """Twelve million products are shared, and the result is the same as on one."""
    large, b = sparse.csr_array(np.ones((2000, 100), DTYPE)), integers(100, 64)
    result = gs.spmm(large, b, target=target)
    assert len(os.listdir("/proc/self/task")) > 1
    np.testing.assert_array_equal(result, large @ b)

"""Products that are pending while a loop goes on: when there are any, and what they compute."""

import re

import numpy as np
import pytest
from warpgroup_programs import PIPELINED, compiled, ptx_of

from gossamer_cuda_mma_sp.backend import CudaBackend


def pipelined(stages):
    return PIPELINED.replace("STAGES", str(stages))


def waits(text):
    """The numbers of pending groups of the waits for copies and for products."""
    groups = re.findall(r"(wgmma|cp\.async)\.wait_group(?:\.sync\.aligned)?\s+(\d+)", text)
    return sorted((name, int(pending)) for name, pending in groups)


def require_sums(text, count):
    artifact = compiled(text)
    rng = np.random.default_rng(count)
    A = rng.integers(-4, 5, (64, 8 * count, 2))
    E = np.sort(rng.random((64, 8 * count, 4)).argsort(axis=2)[..., :2], axis=2)
    dense = np.zeros((64, 8 * count, 4), np.int64)
    np.put_along_axis(dense, E, A, axis=2)
    B = rng.integers(-4, 5, (32 * count, 16))
    C = rng.integers(-9, 9, (64, 16)).astype(np.float32)
    expected = dense.reshape(64, -1) @ B + C
    CudaBackend().load(artifact)(
        a=A.astype(np.float16), e=E.astype(np.uint8), b=B.astype(np.float16), c=C, n=count
    )
    np.testing.assert_array_equal(C, expected)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_pending_products_have_the_same_sums(stages, count):
    require_sums(pipelined(stages), count)


@pytest.mark.parametrize("place", ["before the loop", "in the loop"])
def test_no_product_is_pending_while_the_next_iteration_fills_the_same_operand(place):
    """A is copied once more, from the stage of an iteration to a buffer without stages."""
    allocated = 'X = T.alloc_buffer((64, 16), "float16", scope="shared")\n'
    text = pipelined(4).replace(allocated, allocated.replace("X", "Z", 1))
    text = text.replace("X[t // 2, t % 2 * 8 + v] =", "Z[t // 2, t % 2 * 8 + v] =")
    copy = (
        '            for u in T.thread_binding(128, thread="threadIdx.x"):\n'
        "                for w in T.serial(8):\n"
        "                    X[u // 2, u % 2 * 8 + w] = Z[u // 2, u % 2 * 8 + w]\n"
    )
    inside = " " * 12 + allocated if place == "in the loop" else ""
    text = text.replace("            M = T.alloc", f"{inside}{copy}            M = T.alloc")
    if not inside:
        text = text.replace("        for k in", f"        {allocated}        for k in")
    assert waits(ptx_of(compiled(text))) == [("cp.async", 2), ("wgmma", 0)]
    require_sums(text, 3)


def test_a_product_is_pending_in_a_loop_with_stages_enough():
    """The copies for the iteration after the next one are begun, as with one stage less and no product
    pending: the other stage may still be read."""
    assert waits(ptx_of(compiled(pipelined(4)))) == [("cp.async", 1), ("wgmma", 0), ("wgmma", 1)]
    assert waits(ptx_of(compiled(pipelined(3)))) == [("cp.async", 0), ("wgmma", 0), ("wgmma", 1)]
    assert waits(ptx_of(compiled(pipelined(2)))) == [("cp.async", 0), ("wgmma", 0)]


def test_no_product_is_pending_where_the_loop_uses_the_sums():
    read = pipelined(4).replace(
        "            M = T.alloc_buffer",
        "            for i_5, j_5 in T.grid(64, 16):\n"
        "                S[i_5, j_5] = S[i_5, j_5] * T.float32(2)\n            M = T.alloc_buffer",
    )
    assert waits(ptx_of(compiled(read))) == [("cp.async", 2), ("wgmma", 0)]


def test_no_product_is_pending_while_its_a_is_in_registers():
    held = pipelined(4).replace(
        "            for i_2, q_2",
        '            Z = T.alloc_buffer((64, 8, 2), "float16", scope="fragment")\n'
        "            for i_6, q_6, s_6 in T.grid(64, 8, 2):\n"
        "                Z[i_6, q_6, s_6] = X[i_6, 2 * q_6 + s_6]\n            for i_2, q_2",
    )
    held = held.replace("T.float32(X[i_3, 2 * q_3 + s_3])", "T.float32(Z[i_3, q_3, s_3])")
    assert waits(ptx_of(compiled(held))) == [("cp.async", 2), ("wgmma", 0)]

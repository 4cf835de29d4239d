"""Blocks with the pattern 2:4 on sparse tensor cores, in the interpreter of PTX, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer as gs
from examples import pruned_blocks_on_gpu
from tests.integration.gpu_programs import ARCHITECTURES, INTERPRETED, ptx_of, require_assembled


def problem(lengths, features, *, height=16, groups=8, dtype="float16"):
    matrix = pruned_blocks_on_gpu.random_blocks(
        lengths, block_columns=4, height=height, groups=groups, dtype=dtype
    )
    b = np.random.default_rng(features).integers(-4, 5, (16 * groups, features)).astype(dtype)
    return matrix, b


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize(
    ("lengths", "features", "size"),
    [
        ((2, 0, 3), 32, {}),
        ((1, 4), 9, {"height": 7, "groups": 5}),
        ((0,), 8, {}),
        ((), 8, {}),
    ],
    ids=str,
)
def test_blocks_are_multiplied_exactly(lengths, features, size, dtype):
    matrix, b = problem(lengths, features, dtype=dtype, **size)
    result = pruned_blocks_on_gpu.prepare(matrix, b, target=INTERPRETED)()
    expected = matrix.toarray() @ b.astype(np.float64)
    np.testing.assert_array_equal(result.reshape(expected.shape), expected)


def scheduled(dtype):
    text = pruned_blocks_on_gpu.script(dtype, height=16, groups=8, features=9)
    return pruned_blocks_on_gpu.schedule(text, dtype, "cuda-mma-sp")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_sparse_tensor_cores_multiply_blocks_of_all_block_rows(dtype):
    text = ptx_of(scheduled(dtype).module)
    assert "mma.sp::ordered_metadata" in text
    assert "%ctaid.z" in text
    assert text.count(".entry") == 1


def test_without_the_schedule_each_element_has_a_thread():
    text = pruned_blocks_on_gpu.script("float16", height=16, groups=8, features=9)
    assert gs.explain(text, target=INTERPRETED).rule == "grid_dense_rows"
    matrix, b = problem((2, 0, 3), 9)
    kernel = gs.compile(text, target=INTERPRETED)
    result = np.zeros((3, 16, 9), np.float32)
    kernel(
        a=matrix.values, e=matrix.columns, b=b.reshape(4, 32, 9), c=result, indptr=matrix.indptr,
        indices=matrix.indices, block_rows=3, block_columns=4, blocks=5,
    )  # fmt: skip
    np.testing.assert_array_equal(result.reshape(48, 9), matrix.toarray() @ b.astype(np.float64))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ptxas_assembles_the_kernel(architecture, tmp_path):
    require_assembled(scheduled("float16").module, architecture, tmp_path)

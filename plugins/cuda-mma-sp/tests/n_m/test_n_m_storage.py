"""Compressed N:M matrices from and to the arrays of the formats `n_m` and `v_n_m`."""

from __future__ import annotations

import numpy as np
import pytest
from n_m_matrices import random_n_m

from gossamer_cuda_mma_sp.n_m.compress import compress, decompress
from gossamer_cuda_mma_sp.n_m.n_m_storage import from_n_m, from_v_n_m, to_n_m
from gossamer_ir.errors import ArgumentError, FormatError

DTYPES = ("float16", "bfloat16", "tfloat32", "int8", "uint8", "int4", "uint4")


def n_m_sizes(shape, arrays):
    return {"m": shape[0], "n": shape[1], "group": arrays["group"], "slots": arrays["slots"]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 9), (3, 0), (1, 1), (9, 37)])
def test_arrays_of_n_m_are_made_and_read(dtype, shape):
    matrix, numbers = random_n_m(np.random.default_rng(1), shape, dtype)
    compressed = compress(matrix, dtype)
    pattern, tensor = compressed.operand.pattern, to_n_m(compressed)
    assert (tensor["group"], tensor["slots"]) == (pattern.group, pattern.group // 2)
    sizes = (shape[0], -(-shape[1] // pattern.group), tensor["slots"])
    indices, data = tensor["indices"].reshape(sizes).astype(int), tensor["data"].reshape(sizes)
    dense = np.zeros((*sizes[:2], pattern.group + 1))
    np.put_along_axis(dense, indices, data, axis=2)
    assert not dense[..., pattern.group].any()
    rows = dense[..., : pattern.group].reshape(shape[0], sizes[1] * pattern.group)
    assert (rows[:, : shape[1]] == numbers).all()
    # Used slots come first, and their indices increase.
    assert (np.diff(indices, axis=2) >= 0).all()
    back = from_n_m(tensor["indices"], tensor["data"], **n_m_sizes(shape, tensor), dtype=dtype)
    assert (back.shape, back.dtype) == (shape, dtype)
    assert (back.metadata == compressed.metadata).all()
    assert (back.values == compressed.values).all()


SIZES = {"m": 1, "n": 4, "group": 4, "slots": 2}


def test_elements_are_rounded_once():
    indices = np.array([0, 4], np.uint8)
    for dtype, value, expected in (
        ("float16", 1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-10),
        ("bfloat16", 1.0 + 2.0**-8 + 2.0**-30, 0x3F81),
    ):
        data = np.array([value, 0.0])
        assert from_n_m(indices, data, **SIZES, dtype=dtype).values[0, 0] == expected


def test_v_n_m_is_two_of_four_over_the_chosen_columns():
    rng, (blocks, groups, rows, group) = np.random.default_rng(5), (3, 2, 4, 10)
    columns = rng.random((blocks, groups, group)).argsort(axis=2)[..., :4].astype(np.int32)
    indices = np.sort(rng.random((blocks, groups, rows, 4)).argsort(axis=3)[..., :2], axis=3)
    data = rng.integers(1, 9, indices.shape).astype(np.float32)
    shape = (blocks * rows - 1, groups * group - 1)
    # Nothing is stored in the column after the last one.
    data[:, 1][np.take_along_axis(columns[:, 1, None], indices[:, 1], 2) == group - 1] = 0
    sizes = {"m": shape[0], "n": shape[1], "rows": rows, "group": group, "chosen": 4, "slots": 2}
    flat = columns.reshape(-1), indices.astype(np.uint8).reshape(-1), data.reshape(-1)
    matrix, gathered = from_v_n_m(*flat, **sizes, dtype="float16")
    dense = np.zeros((blocks * rows, groups * group))
    for block, part, row, slot in np.ndindex(indices.shape):
        column = columns[block, part, indices[block, part, row, slot]]
        dense[block * rows + row, part * group + column] += data[block, part, row, slot]
    dense = dense[: shape[0], : shape[1]]
    operand = rng.integers(-4, 5, (shape[1], 3))
    condensed = decompress(matrix).astype(np.float64)
    for row in range(shape[0]):
        product = condensed[row] @ operand[gathered[row // rows]]
        assert (product == dense[row] @ operand).all()


INDICES, DATA = np.array([0, 1], np.uint8), np.ones(2, np.float32)
COLUMNS = np.arange(4, dtype=np.int32)


def call(indices=INDICES, data=DATA, *, dtype="float16", **sizes):
    return from_n_m(indices, data, **SIZES | sizes, dtype=dtype)


def tensor_of_chosen(columns=COLUMNS, **sizes):
    tensor_sizes = {"m": 1, "n": 8, "rows": 1, "group": 8, "chosen": 4, "slots": 2} | sizes
    return from_v_n_m(columns, INDICES, DATA, **tensor_sizes, dtype="int8")


@pytest.mark.parametrize(
    ("code", "function"),
    [
        ("n_m.arrays", lambda: call(n=5)),
        ("n_m.arrays", lambda: call(m=2)),
        ("n_m.arrays", lambda: call(m=-1, slots=-2)),
        ("n_m.arrays", lambda: call(group=8)),
        ("n_m.arrays", lambda: call(dtype="tfloat32")),
        ("n_m.arrays", lambda: call(data=DATA[:1])),
        ("n_m.arrays", lambda: call(indices=INDICES.astype(np.int64))),
        ("n_m.arrays", lambda: call(data=DATA.astype(np.float16))),
        ("n_m.arrays", lambda: call(indices=INDICES + np.uint8(4))),
        ("n_m.dtype", lambda: call(dtype="float8_e4m3")),
        ("n_m.dtype", lambda: to_n_m(compress(np.zeros((1, 4), np.uint8), "float8_e5m2"))),
        ("n_m.range", lambda: call(data=DATA / 2, dtype="int8")),
        ("n_m.range", lambda: call(data=DATA * 200, dtype="int8")),
        ("n_m.range", lambda: call(data=DATA * np.nan, dtype="int8")),
        ("n_m.arrays", lambda: tensor_of_chosen(COLUMNS[:3])),
        ("n_m.arrays", lambda: tensor_of_chosen(chosen=2)),
        ("n_m.arrays", lambda: tensor_of_chosen(rows=0)),
        ("n_m.arrays", lambda: tensor_of_chosen(group=2)),
        ("n_m.arrays", lambda: tensor_of_chosen(n=9)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(code, function):
    with pytest.raises(ArgumentError) as caught:
        function()
    assert caught.value.code == code


def test_groups_with_more_elements_than_the_pattern_are_refused():
    with pytest.raises(FormatError, match="Row 0 has 3 elements") as caught:
        call(np.array([0, 1, 3], np.uint8), np.ones(3, np.float32), slots=3)
    assert caught.value.code == "n_m.group"

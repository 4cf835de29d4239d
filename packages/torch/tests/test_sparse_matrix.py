"""The matrix of torch's tensors."""

from __future__ import annotations

import pytest
import torch

import gossamer_torch as gt
from gossamer_ir.errors import ArgumentError, FormatError


@pytest.mark.parametrize(
    ("error", "code", "crow", "col", "values"),
    [
        (ArgumentError, "operand.shape", [0, 1], [0], None),
        (ArgumentError, "operand.shape", [0, 1, 1], [0], [1.0, 2.0]),
        (ArgumentError, "operand.dtype", [0.0, 1, 1], [0], None),
        (ArgumentError, "operand.dtype", [0, 1, 1], [0], [1]),
        (FormatError, "format.range", [0, 1, 1], [2], None),
        (FormatError, "format.range", [0, 1, 1], [1 << 40], None),
        (FormatError, "format.monotone", [0, 2, 1], [0], None),
    ],
)
def test_arrays_that_are_refused(error, code, crow, col, values):
    with pytest.raises(error) as caught:
        gt.SparseMatrix(
            torch.tensor(crow),
            torch.tensor(col),
            None if values is None else torch.tensor(values),
            shape=(2, 2),
        )
    assert caught.value.code == code

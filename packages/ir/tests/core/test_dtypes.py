"""The parts of dtypes."""

from __future__ import annotations

import pytest

from gossamer_ir.core.dtypes import vscale_factor
from gossamer_ir.errors import ArgumentError


@pytest.mark.parametrize(
    ("dtype", "factor"),
    [
        ("float64", 2), ("float32", 4), ("bfloat16", 8), ("int8", 16), ("bool", 16),
        ("float64xvscalex8", 8), ("boolxvscalex1", 1),
    ],
)  # fmt: skip
def test_the_factor_of_vscale_fills_a_register_unless_the_dtype_has_one(dtype, factor):
    assert vscale_factor(dtype) == factor


@pytest.mark.parametrize(
    ("dtype", "code"), [("float32x4", "dtype.not_scalable"), ("handle", "dtype.not_scalable")]
)
def test_other_dtypes_have_no_factor(dtype, code):
    with pytest.raises(ArgumentError) as caught:
        vscale_factor(dtype)
    assert caught.value.code == code

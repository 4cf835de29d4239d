"""Scalar arguments: each is checked against the dtype of its parameter."""

import numpy as np
import pytest

from gossamer_backend.arguments.argument_checker import ArgumentChecker
from gossamer_backend.arguments.scalar_checks import require_size
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import ScalarParam, Signature


def test_the_largest_size_is_accepted_and_one_more_is_not():
    require_size(ScalarParam("n", "int64"), MAX_SIZE)
    with pytest.raises(ArgumentError, match="expected at most") as caught:
        require_size(ScalarParam("n", "int64"), MAX_SIZE + 1)
    assert caught.value.code == "kernel.large_size"


SCALARS = {
    "int8": (-128, 127, 128),
    "int32": (-(2**31), np.int64(2**31 - 1), 2**31),
    "int64": (-(2**63), 2**63 - 1, -(2**63) - 1),
    "uint8": (0, 255, -1),
    "uint64": (0, 2**63 - 1, 2**63),
    "float32": (float("inf"), 3.4e38, 1e39),
    "float64": (float("nan"), 1, 10**400),
}


@pytest.mark.parametrize(("dtype", "values"), SCALARS.items())
def test_scalars_are_checked_against_their_dtype(dtype, values):
    checker = ArgumentChecker(Signature("f", (), (ScalarParam("s", dtype),), ("s",)))
    *fitting, too_much = values
    for value in fitting:
        np.testing.assert_equal(checker.check((value,), {}).values["s"], value)
    with pytest.raises(ArgumentError, match=f"'s' is .* {dtype}") as caught:
        checker.check((too_much,), {})
    assert caught.value.code == "kernel.scalar_range"


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int64", "3"), ("float32", "x"), ("float32", 1j), ("bool", 1), ("int64", np.array([3]))],
)
def test_scalars_of_other_types_are_refused(dtype, value):
    checker = ArgumentChecker(Signature("f", (), (ScalarParam("s", dtype),), ("s",)))
    with pytest.raises(ArgumentError) as caught:
        checker.check((value,), {})
    assert caught.value.code == "kernel.scalar"


def test_bools_are_accepted():
    checker = ArgumentChecker(Signature("f", (), (ScalarParam("s", "bool"),), ("s",)))
    assert checker.check((np.True_,), {}).values == {"s": True}

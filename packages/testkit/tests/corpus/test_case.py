"""Cases of programs: their calls, and the comparison of results."""

import numpy as np
import pytest

from gossamer_testkit import Case, Expected
from gossamer_testkit.corpus.case import call, differences

X = np.array([1.0, 2.0], np.float32)
DIFFERENCES = {
    "right": ([3.0, 4.0], Expected(np.array([3, 4])), ""),
    "wrong": ([3.0, 5.0], Expected(np.array([3, 4])), "y[1] is 5.0; expected 4."),
    "all wrong": ([0.0, 5.0], Expected(np.array([3, 4])), "and 1 more element is wrong"),
    "within rounding": ([3.0000002, 4.0], Expected(np.array([3, 4]), np.array([3, 4]), 2), ""),
    "beyond rounding": ([3.000002, 4.0], Expected(np.array([3, 4]), np.array([3, 4]), 2), "y[0] is 3.0"),
    "NaN where it should be": ([np.nan, 4.0], Expected(np.array([np.nan, 4])), ""),
    "NaN where it should not be": ([np.nan, 4.0], Expected(np.array([3, 4])), "y[0] is nan"),
    "a NaN that is missing": ([3.0, 4.0], Expected(np.array([np.nan, 4])), "expected nan"),
    "infinity within rounding": (
        [np.inf, 4.0], Expected(np.array([3, 4]), np.array([3, 4]), 2), "y[0] is inf",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENCES)
def test_differences_are_found_and_told(case):
    actual, expected, message = DIFFERENCES[case]
    called = Case("a case", {"x": X, "y": np.zeros(2, np.float32)})
    lines = differences(called, {"x": X, "y": np.array(actual, np.float32)}, {"y": expected})
    assert bool(lines) == bool(message)
    assert message in "".join(lines)


def test_an_input_that_was_written_is_a_difference():
    called = Case("a case", {"x": X, "y": X})
    assert differences(called, {"x": X + 1, "y": X}, {"y": Expected(X)}) == [
        "x[0] is 2.0; expected 1.0, and 1 more element is wrong."
    ]


def test_a_case_is_called_with_arrays_of_its_own():
    case = Case("a case", {"x": X, "n": 2})

    def kernel(x, n):
        x[:n] = 7

    assert call(kernel, case)["x"].tolist() == [7, 7]
    assert case.values["x"].tolist() == [1, 2]

"""Matrices shared by the tests of formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

Arrays: TypeAlias = dict[str, Any]


@pytest.fixture
def arrays() -> Arrays:
    """A 4 by 5 matrix: an empty first row, columns unsorted in the second, a duplicate in the last."""
    return {
        "indptr": np.array([0, 0, 3, 4, 6], dtype=np.int32),
        "indices": np.array([4, 0, 2, 3, 1, 1], dtype=np.int32),
        "data": np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=np.float32),
    }


@pytest.fixture
def dense() -> Any:
    """The dense matrix of `arrays`."""
    matrix = np.zeros((4, 5))
    for row, column, value in ((1, 4, 1), (1, 0, 2), (1, 2, 3), (2, 3, 4), (3, 1, 11)):
        matrix[row, column] = value
    return matrix


@pytest.fixture
def changed(arrays: Arrays) -> Callable[..., Arrays]:
    """`arrays` with some of them replaced, or elements of them: changed(indptr={0: 1})."""

    def change(**changes: Any) -> Arrays:
        result = {name: array.copy() for name, array in arrays.items()}
        for name, change in changes.items():
            if isinstance(change, dict):
                for at, value in change.items():
                    result[name][at] = value
            else:
                result[name] = change
        return result

    return change


@pytest.fixture(params=["numpy", "kernels"])
def converted_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who converts: NumPy, or kernels, which the reference interpreter runs here."""
    from interpreted_kernel import InterpretedKernel

    from gossamer_formats.conversion import convert_storage as convert_module

    if request.param == "kernels":
        monkeypatch.setattr(convert_module, "MIN_COMPILED", 0)
        monkeypatch.setattr(convert_module, "find_compiler", lambda: InterpretedKernel)

"""The table of CSR matrices with edge cases that every kernel must handle."""

from __future__ import annotations

import numpy as np

from gossamer_support.arrays import Array
from gossamer_testkit.matrices.csr_matrix import Csr, from_mask, from_rows

INF, NAN = float("inf"), float("nan")


def csr_cases(*, dtype: str = "float32", index_dtype: str = "int32") -> tuple[Csr, ...]:
    """Return matrices with 0 rows, 0 columns, 0 nonzeros, empty rows at both ends, a dense row, ...

    Values are small integers, so that products with integers are exact, except in `nan and infinity`.
    The columns of each row increase, except in `unsorted` and `duplicates`.

    >>> [case.name for case in csr_cases() if not case.is_canonical]
    ['unsorted', 'duplicates']
    """
    masks = tuple(
        from_mask(name, mask, dtype=dtype, index_dtype=index_dtype) for name, mask in _masks()
    )
    return masks + tuple(
        from_rows(name, 4, rows=rows, dtype=dtype, index_dtype=index_dtype)
        for name, rows in _ROWS.items()
    )


_ROWS: dict[str, list[list[tuple[int, float]]]] = {
    "explicit zeros": [[(0, 0.0), (2, 1.0)], [(1, -0.0)], [(3, 0.0)]],
    "nan and infinity": [
        [(0, NAN)],
        [(1, INF), (2, 1.0)],
        [],
        [(0, INF), (3, -INF)],
        [(2, -INF)],
    ],
    "unsorted": [[(3, 1.0), (0, 2.0)], [], [(2, 3.0), (1, -1.0), (3, 2.0)]],
    "duplicates": [[(1, 1.0), (1, 2.0)], [(0, -1.0), (0, 1.0), (3, 2.0)]],
}


def _masks() -> tuple[tuple[str, Array], ...]:
    return (
        ("0 rows", np.zeros((0, 5), bool)),
        ("0 columns", np.zeros((5, 0), bool)),
        ("0 rows and columns", np.zeros((0, 0), bool)),
        ("0 nonzeros", np.zeros((4, 6), bool)),
        ("1 element", np.ones((1, 1), bool)),
        ("empty rows at both ends", _only_rows(9, 7, rows=range(3, 6))),
        ("every other row empty", _only_rows(17, 13, rows=range(1, 17, 2))),
        ("1 dense row", _only_rows(33, 101, rows=(20,))),
        ("1 dense column", _only_rows(101, 33, rows=(20,), transposed=True)),
        ("dense", np.ones((19, 23), bool)),
        ("diagonal", np.eye(37, dtype=bool)),
        ("row lengths 0 to 40", np.arange(40) < np.arange(41)[:, None]),
        ("a power law", _power_law(67, 129)),
    )


def _only_rows(
    height: int, width: int, *, rows: range | tuple[int, ...], transposed: bool = False
) -> Array:
    mask = np.zeros((width, height) if transposed else (height, width), bool)
    mask[list(rows)] = True
    return np.ascontiguousarray(mask.T) if transposed else mask


def _power_law(height: int, width: int) -> Array:
    # A fixed seed: each run tests the same matrix.
    random = np.random.default_rng(2026)
    lengths = np.minimum(random.zipf(1.8, height), width)
    return random.random((height, width)).argsort(axis=1) < lengths[:, None]

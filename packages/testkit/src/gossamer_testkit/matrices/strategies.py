"""Hypothesis strategies for small matrices and operands with edge cases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed
from gossamer_testkit.matrices.csr_matrix import Csr, from_rows

FLOAT_DTYPES = ("float32", "float64")
INDICES = ("int32", "int64")

_PLAIN = st.integers(-8, 8).map(float)
_SPECIAL = st.sampled_from((float("nan"), float("inf"), float("-inf"), -0.0, 0.0))


@st.composite
def csr_matrices(
    draw: st.DrawFn,
    *,
    dtypes: Sequence[str] = FLOAT_DTYPES,
    index_dtypes: Sequence[str] = INDICES,
    special: bool = True,
    largest: int = 12,
) -> Csr:
    """Return canonical CSR matrices of up to `largest` rows and columns.

    They include matrices without rows, columns or nonzeros, with empty rows at both ends, with a dense
    row or column, with explicit zeros and, with `special`, with NaN and infinity. All other values are
    small integers.

    >>> from hypothesis import find
    >>> find(csr_matrices(dtypes=["float64"]), lambda matrix: matrix.nnz > 0).shape
    (1, 1)
    """
    height, width = draw(_sizes(largest)), draw(_sizes(largest))
    pattern = np.zeros((height, width), bool)
    if pattern.size:
        cells = draw(st.sets(st.integers(0, pattern.size - 1)))
        pattern.reshape(-1)[list(cells)] = True
        _draw_extremes(draw, pattern)
    values = draw(
        st.lists(_values(special=special), min_size=int(pattern.sum()), max_size=int(pattern.sum()))
    )
    remaining = iter(values)
    rows = [[(int(column), next(remaining)) for column in np.flatnonzero(row)] for row in pattern]
    return from_rows(
        "drawn",
        width,
        rows=rows,
        dtype=draw(st.sampled_from(dtypes)),
        index_dtype=draw(st.sampled_from(index_dtypes)),
    )


@typed
def dense_operands(
    shape: tuple[int, ...], *, dtype: str, special: bool = False
) -> st.SearchStrategy[Array]:
    """Return arrays of small integers and, with `special`, of NaN and infinity.

    >>> from hypothesis import find
    >>> find(dense_operands((2, 1), dtype="float32"), lambda array: array.sum() > 0)
    array([[0.],
           [1.]], dtype=float32)
    """
    size = int(np.prod(shape))
    return st.lists(_values(special=special), min_size=size, max_size=size).map(
        lambda values: np.array(values, dtype=dtype).reshape(shape)
    )


def _sizes(largest: int) -> st.SearchStrategy[int]:
    # 0 and 1 are drawn more often than among all sizes, since loops are special there.
    return st.one_of(st.just(0), st.just(1), st.integers(0, largest))


def _values(*, special: bool) -> st.SearchStrategy[float]:
    return st.one_of(_PLAIN, _SPECIAL) if special else _PLAIN


def _draw_extremes(draw: st.DrawFn, pattern: Array) -> None:
    height, width = pattern.shape
    extremes = draw(st.sets(st.sampled_from(("row", "column", "first", "last"))))
    if "row" in extremes:
        pattern[draw(st.integers(0, height - 1))] = True
    if "column" in extremes:
        pattern[:, draw(st.integers(0, width - 1))] = True
    if "first" in extremes:
        pattern[: draw(st.integers(1, height))] = False
    if "last" in extremes:
        pattern[draw(st.integers(0, height - 1)) :] = False

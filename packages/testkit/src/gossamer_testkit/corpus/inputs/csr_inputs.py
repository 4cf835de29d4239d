"""The table of CSR matrices as arguments of products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gossamer_support.arrays import Array
from gossamer_testkit.corpus.case import Case, Options
from gossamer_testkit.matrices.cases import csr_cases
from gossamer_testkit.matrices.csr_matrix import Csr

UNTOUCHED = 77


def spmm_cases(options: Options) -> Iterator[Case]:
    """Yield each matrix with a dense operand for each number of columns in `features`.

    With `symbolic`, the number of columns is a parameter of the program.
    """
    dtype = options["dtype"]
    for matrix in csr_cases(dtype=dtype, index_dtype=options["index_dtype"]):
        for features in options["features"]:
            dense = integers((matrix.shape[1], features), dtype)
            c = np.full((matrix.shape[0], features), UNTOUCHED, dtype)
            values = {**random_values(matrix), "b": dense, "c": c}
            name = matrix.name
            if options["symbolic"]:
                name, values = f"{name}, {features} features", {**values, "feat_size": features}
            yield Case(name, values)


def spmv_cases(options: Options) -> Iterator[Case]:
    """Yield each matrix with a vector."""
    dtype = options["dtype"]
    for matrix in csr_cases(dtype=dtype, index_dtype=options["index_dtype"]):
        y = np.full(matrix.shape[0], UNTOUCHED, dtype)
        x = integers((matrix.shape[1],), dtype)
        yield Case(matrix.name, {**random_values(matrix), "x": x, "y": y})


def random_values(matrix: Csr) -> dict[str, Any]:
    """Return the arrays and sizes of a CSR matrix by parameter name."""
    return {
        "a": matrix.data,
        "indptr": matrix.indptr,
        "indices": matrix.indices,
        "m": matrix.shape[0],
        "n": matrix.shape[1],
        "nnz": matrix.nnz,
    }


def integers(shape: tuple[int, ...], dtype: str) -> Array:
    """Return an array of small integers, whose products and sums are exact."""
    return (np.arange(int(np.prod(shape))) * 7 % 13 - 6).astype(dtype).reshape(shape)

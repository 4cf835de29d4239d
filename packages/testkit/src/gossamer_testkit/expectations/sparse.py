"""Sparse products, in float64 and from the stored values alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer_testkit.case import Expected, Values
from gossamer_testkit.csr import Csr
from gossamer_testkit.oracles import spmm, spmm_magnitude


def csrmm(values: Values, options: Mapping[str, Any]) -> dict[str, Expected]:
    """C = A @ B."""
    matrix, dense = _matrix(values), values["b"]
    return {"c": Expected(spmm(matrix, dense), spmm_magnitude(matrix, dense), matrix.longest_row)}


def csrmv(values: Values, options: Mapping[str, Any]) -> dict[str, Expected]:
    """y = A @ x."""
    matrix, dense = _matrix(values), values["x"][:, None]
    product, magnitude = spmm(matrix, dense)[:, 0], spmm_magnitude(matrix, dense)[:, 0]
    return {"y": Expected(product, magnitude, matrix.longest_row)}


def csr_row_sums(values: Values, options: Mapping[str, Any]) -> dict[str, Expected]:
    """y[i] is the sum of row i."""
    matrix = _matrix(values)
    sums = np.zeros(matrix.shape[0])
    np.add.at(sums, matrix.rows, matrix.data.astype(np.float64))
    return {"y": Expected(sums)}


def _matrix(values: Values) -> Csr:
    shape = values["m"], values["n"]
    return Csr("of a case", shape, values["indptr"], values["indices"], values["a"])

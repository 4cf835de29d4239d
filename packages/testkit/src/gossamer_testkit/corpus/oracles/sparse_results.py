"""Oracles of sparse programs, computed in float64 from the stored values."""

from __future__ import annotations

import numpy as np

from gossamer_testkit.corpus.case import Expected, Options, Values
from gossamer_testkit.matrices import oracles
from gossamer_testkit.matrices.csr_matrix import Csr
from gossamer_testkit.matrices.oracles import spmm, spmm_magnitude, spmv, spmv_magnitude


def csrmm(values: Values, options: Options) -> dict[str, Expected]:
    """C = A @ B."""
    matrix, dense = _matrix(values), values["b"]
    return {"c": Expected(spmm(matrix, dense), spmm_magnitude(matrix, dense), matrix.longest_row)}


def csrmv(values: Values, options: Options) -> dict[str, Expected]:
    """y = A @ x."""
    matrix, x = _matrix(values), values["x"]
    return {"y": Expected(spmv(matrix, x), spmv_magnitude(matrix, x), matrix.longest_row)}


def csr_row_sums(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] is the sum of row i."""
    matrix = _matrix(values)
    sums = np.zeros(matrix.shape[0])
    np.add.at(sums, matrix.rows, matrix.data.astype(np.float64))
    return {"y": Expected(sums)}


def segment_sums(values: Values, options: Options) -> dict[str, Expected]:
    """y[i] is the sum of segment i."""
    pieces = np.split(values["a"].astype(np.float64), values["indptr"][1:-1])
    return {"y": Expected(np.array([piece.sum() for piece in pieces][: values["m"]]))}


def sddmm(values: Values, options: Options) -> dict[str, Expected]:
    """out[p] is the product of row i of X and row j of Y, for the stored element p at (i, j)."""
    pattern = _matrix(values, data="out")
    return {"out": Expected(oracles.sddmm(pattern, values["x"], values["y"]))}


def elements(values: Values, options: Options) -> dict[str, Expected]:
    """out[p] = a[p] - r[i] * x[j] for the stored element p at (i, j)."""
    matrix = _matrix(values)
    return {"out": Expected(matrix.data - values["r"][matrix.rows] * values["x"][matrix.indices])}


def row_groups(values: Values, options: Options) -> dict[str, Expected]:
    """C = A @ B."""
    groups, height = values["rows"].shape
    dense = np.zeros((groups, height, values["n"]))
    numbers = np.repeat(np.arange(groups), np.diff(values["indptr"]))
    dense[numbers, :, values["indices"]] = values["a"]
    whole = np.zeros((groups * height, values["n"]))
    whole[values["rows"].reshape(-1)] = dense.reshape(whole.shape)
    return {"c": Expected(whole[: values["m"]] @ values["b"])}


def bitmask(values: Values, options: Options) -> dict[str, Expected]:
    """C = A @ B; the values are those of the bits that are set, row by row."""
    bits = np.unpackbits(values["words"].astype("<u8").view(np.uint8), bitorder="little")
    width = 64 * -(-values["n"] // 64)
    is_stored = bits.reshape(values["m"], width)[:, : values["n"]].astype(bool)
    dense = np.zeros((values["m"], values["n"]))
    dense[is_stored] = values["a"]
    return {"c": Expected(dense @ values["b"])}


def tiled_csr(values: Values, options: Options) -> dict[str, Expected]:
    """C = C + A @ B."""
    rows, tiles = values["m"], (len(values["indptr"]) - 1) // max(values["m"], 1)
    dense = np.zeros((rows, tiles, values["n"] // max(tiles, 1)))
    fibers = np.repeat(np.arange(tiles * rows), np.diff(values["indptr"]))
    at = fibers % max(rows, 1), fibers // max(rows, 1), values["indices"]
    np.add.at(dense, at, values["a"])
    product = dense.reshape(rows, -1) @ values["b"] if dense.size else 0.0
    return {"c": Expected(values["c"] + product)}


def ell(values: Values, options: Options) -> dict[str, Expected]:
    """C = A @ B; unused slots are not multiplied."""
    dense = np.zeros((values["m"], values["n"]))
    rows, slots = np.nonzero(values["indices"] < values["n"])
    np.add.at(dense, (rows, values["indices"][rows, slots]), values["a"][rows, slots])
    return {"c": Expected(dense @ values["b"])}


def dcsr(values: Values, options: Options) -> dict[str, Expected]:
    """C = A @ B in the stored rows; other rows do not change."""
    stored, indptr = values["indices_i"], values["indptr_j"]
    shape = len(stored), values["n"]
    matrix = Csr("of a case", shape, indptr, values["indices_j"], values["a"])
    c = values["c"].astype(np.float64)
    c[stored] = spmm(matrix, values["b"])
    return {"c": Expected(c)}


def bsr(values: Values, options: Options) -> dict[str, Expected]:
    """C = A @ B, computed block by block."""
    stored = (values[name] for name in ("indptr", "indices", "a"))
    return {"c": Expected(oracles.bsr_spmm(*stored, dense=values["b"]))}


def _matrix(values: Values, *, data: str = "a") -> Csr:
    shape = values["m"], values["n"]
    return Csr("of a case", shape, values["indptr"], values["indices"], values[data])

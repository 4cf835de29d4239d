"""Products with a matrix that is stored in any format, or in parts of several formats."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operators.spmm import SCRIPT
from gossamer_formats import convert, format_names, from_scipy
from gossamer_ir.script import parse_module, print_format
from gossamer_schedule import decompose_format
from gossamer_testkit.matrices.oracles import spmm, tolerance

PARAMETERS = {
    "blocked_sell": {"block_rows": 4, "block_columns": 3, "height": 2},
    "bsr": {"block_rows": 4, "block_columns": 3},
    "dbsr": {"block_rows": 2, "block_columns": 3},
    "ell_rows": {"width": 2},
    "n_m": {"slots": 4, "group": 4},
    "tiled_csr": {"tile_columns": 7},
    "v_n_m": {"rows": 4, "group": 5, "chosen": 5, "slots": 5},
}
MATRIX_FORMATS = [name for name in format_names() if name != "ell3d"]
PROGRAM = parse_module(SCRIPT)


def matrix(shape, density, seed=0):
    rng = np.random.default_rng(seed)
    random = sparse.random_array(shape, density=density, format="csr", rng=rng, dtype=np.float32)
    if shape[0] > 8:
        random = random.tolil()
        random[3:6] = 0
        random = random.tocsr()
    return random


@cache
def kernel_of(scripts):
    names = tuple(f"p{number}" for number in range(len(scripts)))
    return gs.compile(decompose_format(PROGRAM, ("A",), names=names, formats=scripts).module)


def product(parts, dense, shape):
    """Return the sum of the products of parts, from an output that was not initialized."""
    kernel = kernel_of(tuple(print_format(part.description) for part in parts))
    output = np.full((shape[0], dense.shape[1]), np.nan, np.float32)
    arguments = {"b": dense, "c": output, "m": shape[0], "n": shape[1], "feat_size": dense.shape[1]}
    names = set(kernel.signature.order)
    for number, part in enumerate(parts):
        part_arguments = {**part.arrays, **part.sizes}
        arguments |= {
            f"{name}_p{number}": value
            for name, value in part_arguments.items()
            if f"{name}_p{number}" in names
        }
    kernel(**arguments)
    return output


@pytest.mark.parametrize("name", MATRIX_FORMATS)
@pytest.mark.parametrize("shape", [(50, 40), (1, 7), (9, 1), (23, 31)])
def test_a_product_with_a_matrix_in_a_format(name, shape):
    stored = matrix(shape, 0.2)
    dense = np.random.default_rng(1).random((shape[1], 5), dtype=np.float32)
    part = convert(from_scipy(stored), name, **PARAMETERS.get(name, {})).tensor
    np.testing.assert_allclose(
        product([part], dense, shape), spmm(stored, dense), rtol=tolerance(shape[1], "float32")
    )


@pytest.mark.parametrize(
    "names",
    [("csr", "bsr"), ("ell_rows", "ell_rows", "coo"), ("dia", "sell"), ("tiled_csr", "csr")],
)
def test_a_product_with_a_matrix_in_parts(names):
    shape = (60, 45)
    stored = matrix(shape, 0.3, seed=2)
    dense = np.random.default_rng(3).random((shape[1], 8), dtype=np.float32)
    chosen = np.random.default_rng(4).integers(0, len(names), stored.nnz)
    parts = []
    for number, name in enumerate(names):
        part = stored.copy()
        part.data = np.where(chosen == number, stored.data, np.float32(0))
        part.eliminate_zeros()
        parts.append(convert(from_scipy(part), name, **PARAMETERS.get(name, {})).tensor)
    np.testing.assert_allclose(
        product(parts, dense, shape), spmm(stored, dense), rtol=tolerance(shape[1], "float32")
    )

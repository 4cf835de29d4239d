"""Products compute with a format if the rules for their target schedule it, and else in CSR.

Rules for CPUs schedule formats that those for grids of threads do not, or only with a thread for each
element.
"""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls.operands.csr_matrix import CsrMatrix
from gossamer.operator_calls.operands.stored_matrix import (
    StoredMatrix,
    format_of_storage,
    structure_names,
    structure_values,
)
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators.spmm import PROGRAM

TARGET = "cuda-mma-sp:arch=sm_80,driver=interpreter"
BLOCKS = {"block_rows": 16, "block_columns": 16}
CASES = [
    ("spmv", "sell", {}, CsrMatrix),
    ("spmv", "sliced_dia", {}, CsrMatrix),
    ("spmv", "bsr", BLOCKS, CsrMatrix),
    ("spmm", "row_groups", {}, CsrMatrix),
    ("spmm", "bsr", BLOCKS, StoredMatrix),
]


@pytest.mark.parametrize(("name", "format", "options", "on_gpu"), CASES)
def test_the_target_decides_whether_a_product_computes_with_a_format(name, format, options, on_gpu):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((64, 48), density=0.2, format="csr", rng=rng, dtype=np.float32)
    matrix.data = rng.integers(-4, 5, matrix.nnz).astype(np.float32)
    tensor = gs.from_scipy(matrix).asformat(format, **options)
    dense = rng.integers(-4, 5, (48, 5)).astype(np.float32)
    operand = dense if name == "spmm" else dense[:, 0].copy()
    product = getattr(gs, name)
    assert type(product.checked_operands(tensor, operand).matrix) is StoredMatrix
    assert type(product.checked_operands(tensor, operand, target=TARGET).matrix) is on_gpu
    for _ in range(2):
        for target in (None, TARGET):
            assert np.array_equal(product(tensor, operand, target=target), matrix @ operand)
    result = np.zeros_like(matrix @ operand)
    product.bind(tensor, operand, out=result, target=TARGET)()
    assert np.array_equal(result, matrix @ operand)


GRIDS = {
    "sr_bcrs": {"strip": 8, "width": 4},
    "n_m": {"slots": 2, "group": 4},
    "v_n_m": {"rows": 4, "group": 8, "chosen": 4, "slots": 2},
    "bitmask": {},
    "bsr": {"block_rows": 4, "block_columns": 4},
}
"""Formats, with rows that do not fill strips and blocks, whose elements have no rule of their own."""


@pytest.mark.parametrize("features", [9, 1, None])
@pytest.mark.parametrize("name", GRIDS)
def test_programs_over_other_formats_have_a_thread_for_each_element(name, features):
    rng, count = np.random.default_rng(1), features or 5
    dense = rng.integers(-4, 5, (33, 32)).astype(np.float32)
    dense[5:9] = 0
    if name in ("n_m", "v_n_m"):
        tensor = gs.prune(dense, name, **GRIDS[name])
    else:
        dense[rng.random(dense.shape) < 0.7] = 0
        tensor = gs.from_scipy(sparse.csr_array(dense)).asformat(name, **GRIDS[name])
    stored = format_of_storage(tensor.storage)
    module = module_of(replace(PROGRAM, adds=True), Variant("float32", features=features), stored)
    assert gs.explain(module, target=TARGET).rule == "grid_dense_rows"
    names = structure_names(stored)
    arrays, sizes = structure_values(tensor.storage, stored)
    arguments = dict(
        zip((*names.arrays, *names.sizes), (*arrays, *sizes), strict=True),
        b=rng.integers(-4, 5, (32, count)).astype(np.float32),
        c=np.ones((33, count), np.float32),
        **({} if features else {"feat_size": count}),
    )
    kernel = gs.compile(module, target=TARGET)
    kernel(**arguments)
    assert np.array_equal(arguments["c"], 1 + tensor.toarray() @ arguments["b"])
    assert "%ctaid.x" in kernel.artifact.code.decode(errors="replace")

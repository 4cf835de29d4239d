"""Products of blocks: the semantics and the implementation compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_llvm_sve.machine import SME_BLOCK_PRODUCTS
from gossamer_llvm_sve.sme_intrinsics import sme_block_product, sme_intrinsics

SIZES = [
    (0, 3, 3, 3), (2, 0, 4, 4), (2, 3, 0, 5), (2, 3, 4, 0), (1, 4, 4, 12), (2, 1, 17, 1), (1, 9, 8, 13),
    (2, 5, 9, 25),
]  # fmt: skip
"""Blocks, rows, columns and features: none, whole tiles of vscale 1, and parts of tiles."""


@pytest.mark.parametrize("vscale", [1, 2, 4])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", dict(SME_BLOCK_PRODUCTS))
def test_semantics_and_implementation_compute_the_same(dtype, sizes, vscale):
    blocks, rows, columns, features = sizes
    random = np.random.default_rng(columns)
    a, b, c = (
        random.integers(-3, 4, shape).astype(kind)
        for shape, kind in (
            ((blocks, rows, columns), dtype),
            ((blocks, columns, features), dtype),
            ((rows, features), "float32"),
        )
    )
    expected = c + np.einsum("qrp,qpf->rf", a.astype("float64"), b.astype("float64"))
    intrinsic = sme_block_product(dtype)
    for text in (intrinsic.semantics, intrinsic.implementation):
        result = c.copy()
        names = ("blocks", "rows", "columns", "features")
        arguments = {"a": a, "b": b, "c": result, **dict(zip(names, sizes, strict=True))}
        run(verify(parse_module(text)), arguments, vscale=vscale)
        np.testing.assert_array_equal(result, expected)


def test_the_machine_names_the_intrinsics():
    assert tuple(intrinsic.name for intrinsic in sme_intrinsics()) == tuple(
        dict(SME_BLOCK_PRODUCTS).values()
    )

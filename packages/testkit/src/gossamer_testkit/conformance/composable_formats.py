"""The conformance suite for composable formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from gossamer_formats import (
    ComposableFormat,
    SparseTensor,
    decompose,
    from_arrays,
    require_valid_storage,
)
from gossamer_formats.internal_api import COMPOSABLE_FORMATS
from gossamer_ir.interpret import run
from gossamer_testkit.conformance.formats import DENSITIES, SHAPES, Parameters, random_dense

SPMV_SCRIPT = """
@T.prim_func
def spmv(a: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle,
         m: T.int64, n: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, n, (indptr, indices), "int32")
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
"""
"""A product with a vector, which the suite runs over the parts of each matrix."""


class ComposableFormatSuite:
    """The tests that every composable format must pass. A pytest class derives from it in three lines:

        class TestQuadrants(ComposableFormatSuite):
            format = FORMAT
            parameters = ({"side": 2}, {"side": 3})

    The format must be installed under its name. `parameters` are the options, one set for each run; every set
    must hold any matrix. The expected results are dense arrays that are made without gossamer.

    >>> sum(name.startswith("test_") for name in dir(ComposableFormatSuite))
    5
    """

    format: ClassVar[ComposableFormat]
    parameters: ClassVar[tuple[Parameters, ...]] = ({},)

    def test_it_is_installed_under_its_name(self) -> None:
        assert COMPOSABLE_FORMATS.lookup(self.format.name) == self.format

    def test_each_parameter_is_required_chosen_or_has_a_default(self) -> None:
        defaults = self.format.parameters
        assert {*self.format.chosen} <= {*defaults}
        required = {name for name, default in defaults.items() if default is None}
        required -= {*self.format.chosen}
        for parameters in (*self.parameters, self.format.example_parameters):
            assert required <= {*parameters} <= {*defaults}, f"{parameters}"

    def test_its_parts_have_each_element_once(self) -> None:
        for matrix, dense, parameters in self._cases():
            parts = decompose(matrix, self.format.name, **parameters)
            np.testing.assert_array_equal(parts.toarray(), dense, err_msg=str(parameters))
            assert parts.nnz == np.count_nonzero(dense)
            for part in parts.parts:
                require_valid_storage(part.tensor.storage)
                positions = np.flatnonzero(part.permutation >= 0)
                values = part.tensor.storage.values
                expected = matrix.storage.values[part.permutation[positions]]
                np.testing.assert_array_equal(values[positions], expected)
                # Slots without an element are multiplied, too, so that they must hold zeros.
                assert not np.delete(values, positions).any()

    def test_values_are_replaced_and_gathered(self) -> None:
        for matrix, dense, parameters in self._cases():
            parts = decompose(matrix, self.format.name, **parameters)
            values = matrix.storage.values
            np.testing.assert_array_equal(parts.with_values(2 * values).toarray(), 2 * dense)
            part_values = [part.tensor.storage.values for part in parts.parts]
            np.testing.assert_array_equal(parts.gather_values(part_values), values)

    def test_a_program_computes_with_its_parts(self) -> None:
        for matrix, dense, parameters in self._cases():
            parts = decompose(matrix, self.format.name, **parameters)
            rows, columns = dense.shape
            # Not zeros: a part that adds where it should initialize would go unnoticed.
            vector, result = np.arange(columns, dtype=np.float32), np.ones(rows, np.float32)
            sizes: Mapping[str, Any] = {"m": rows, "n": columns, **parts.arguments}
            run(parts.rewrite(SPMV_SCRIPT), {"x": vector, "y": result, **sizes})
            np.testing.assert_array_equal(result, dense @ vector, err_msg=str(parameters))

    @classmethod
    def _cases(cls) -> Iterator[tuple[SparseTensor, Any, Parameters]]:
        """Yield matrices in CSR with the dense arrays that they were made of, and parameters."""
        rng = np.random.default_rng(7)
        for shape in SHAPES[2]:
            for density in DENSITIES:
                dense = random_dense(shape, density, rng)
                for parameters in cls.parameters:
                    yield _in_csr(dense), dense, parameters


def _in_csr(dense: Any) -> SparseTensor:
    rows, columns = np.nonzero(dense)
    offsets = np.searchsorted(rows, np.arange(len(dense) + 1))
    return from_arrays(
        "csr", dense.shape, data=dense[rows, columns], indptr=offsets, indices=columns
    )

"""Conversions by kernels or by NumPy: which of them converts a tensor."""

from __future__ import annotations

import numpy as np
import pytest
from format_conversions import with_duplicates
from interpreted_kernel import InterpretedKernel
from scipy import sparse

from gossamer_formats import from_arrays, from_scipy
from gossamer_formats.conversion import convert_storage as convert_module
from gossamer_formats.conversion.destination.conversion_destination import conversion_destination
from gossamer_ir.errors import FormatError


@pytest.mark.usefixtures("converted_by")
def test_a_tensor_in_the_format_is_converted_if_more_is_asked_for():
    tensor = with_duplicates()
    assert tensor.asformat("csr") is tensor
    with pytest.raises(FormatError, match="more than once"):
        tensor.asformat("csr", duplicates="error")
    assert tensor.asformat("csr", index_dtype="int64").arrays["indices"].dtype == np.int64
    arrays = {"indptr": np.array([0, 2]), "indices": np.array([0, 1])}
    zero = from_arrays("csr", (1, 2), data=np.array([0.0, 3.0]), **arrays)
    assert zero.asformat("csr", zeros="drop").nnz == 1


def test_small_tensors_are_converted_by_kernels_after_many_conversions(monkeypatch):
    compiled = []

    def compile(module):
        compiled.append(module)
        return InterpretedKernel(module)

    tensor = from_scipy(sparse.eye_array(5)).asformat("dcsr")
    monkeypatch.setattr(convert_module, "MIN_COMPILED", 12)
    monkeypatch.setattr(convert_module, "find_compiler", lambda: compile)
    # Other tests convert between these formats, too.
    conversion_destination("ragged", {}, ndim=2).memo.clear()
    for _ in range(2):
        assert tensor.asformat("ragged").arrays["indptr"].tolist() == [0, 1, 3, 6, 10, 15]
    assert not compiled
    assert tensor.asformat("ragged").arrays["indptr"].tolist() == [0, 1, 3, 6, 10, 15]
    assert compiled

"""A format that another distribution registers: its arrays, its conversions and its operators."""

from __future__ import annotations

import importlib
import pickle
import sys

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import SparseTensor, from_arrays, from_scipy, to_scipy
from gossamer_formats.installed_formats import find_format
from gossamer_formats.operations import operation_of
from gossamer_ir.errors import FormatError

ELL = '''
import numpy as np

import gossamer_formats
from gossamer_formats import Format, Storage
from gossamer_ir.script import parse_format

DESCRIPTION = """
@T.format
def ell(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), indices, "int32", padded=True)
    A = T.sp.match_buffer(data, (I, J), "float32")
"""


def from_arrays(shape, arrays):
    width = arrays["indices"].size // max(1, shape[0])
    return Storage(parse_format(DESCRIPTION), {"m": shape[0], "n": shape[1], "width": width}, arrays)


def from_csr(storage):
    rows, columns = storage.shape
    lengths = np.diff(storage.arrays["indptr"])
    is_stored = np.arange(lengths.max(initial=0)) < lengths[:, None]
    indices = np.full(is_stored.shape, columns, np.int32)
    data = np.zeros(is_stored.shape, np.float32)
    indices[is_stored], data[is_stored] = storage.arrays["indices"], storage.values
    return from_arrays(storage.shape, {"indices": indices.ravel(), "data": data.ravel()})


def to_csr(storage):
    rows, columns = storage.shape
    is_stored = storage.arrays["indices"] < columns
    lengths = is_stored.reshape(rows, -1).sum(axis=1)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    arrays = {name: storage.arrays[name][is_stored] for name in ("indices", "data")}
    return gossamer_formats.from_arrays("csr", storage.shape, indptr=indptr, **arrays).storage


ELL = Format("ell", from_arrays, from_csr, to_csr)


def matmul(tensor, dense):
    return "the product of ELL"
'''
ENTRY_POINTS = """
[gossamer.formats]
ell = ell_of_others:ELL
wrong = ell_of_others:matmul

[gossamer.operations]
ell.matmul = ell_of_others:matmul
"""
MATRIX = sparse.csr_array(np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], dtype=np.float32))


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """Installs a distribution that registers the format."""
    info = tmp_path / "ell_of_others-1.0.dist-info"
    info.mkdir()
    (tmp_path / "ell_of_others.py").write_text(ELL)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ell-of-others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    forget()
    yield
    sys.modules.pop("ell_of_others", None)
    forget()


def forget():
    find_format.cache_clear()
    operation_of.cache_clear()


def test_a_tensor_is_converted_to_the_format_and_back():
    tensor = from_scipy(MATRIX).asformat("ell")
    assert tensor.format.name == "ell"
    assert tensor.arrays["indices"].tolist() == [0, 2, 3, 3, 1, 3]
    assert to_scipy(tensor).toarray().tolist() == MATRIX.toarray().tolist()
    assert tensor.toarray().tolist() == MATRIX.toarray().tolist()
    assert tensor.T.toarray().tolist() == MATRIX.toarray().T.tolist()
    assert tensor.stats == from_scipy(MATRIX).stats
    assert pickle.loads(pickle.dumps(tensor)).asformat("csr").format == from_scipy(MATRIX).format


def test_arrays_of_the_format_are_checked():
    indices, data = np.array([0, 3, 1, 2], np.int32), np.ones(4, np.float32)
    tensor = from_arrays("ell", (2, 3), indices=indices, data=data)
    assert tensor.toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
    with pytest.raises(FormatError, match="indices"):
        from_arrays("ell", (2, 3), indices=np.array([0, 4, 1, 2], np.int32), data=data)


def test_its_operators_come_before_those_of_csr():
    tensor = from_scipy(MATRIX).asformat("ell")
    assert tensor @ np.ones(3) == "the product of ELL"


def test_an_unknown_format_lists_those_that_are_registered():
    with pytest.raises(FormatError, match=r"'coo'; expected one of: csr, ell, wrong\."):
        from_scipy(MATRIX).asformat("coo")


def test_an_entry_point_must_name_a_format():
    with pytest.raises(FormatError) as caught:
        from_scipy(MATRIX).asformat("wrong")
    assert caught.value.code == "format.entry_point"


def test_a_format_that_is_not_registered_is_not_converted(monkeypatch):
    tensor = from_scipy(MATRIX).asformat("ell")
    monkeypatch.setattr("gossamer_formats.tensor.find_format", lambda name: None)
    with pytest.raises(FormatError) as caught:
        SparseTensor(tensor.storage).toarray()
    assert caught.value.code == "format.csr"

"""Tensors that are written are read again: shapes, coordinates, and values with the same bits."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import mmread

from gossamer_formats import from_arrays, from_scipy, read, to_scipy, write
from gossamer_formats.io import file_formats
from gossamer_formats.io.file_formats.by_suffix import FILE_FORMATS
from gossamer_ir.errors import FormatError

SUFFIXES = (".mtx", ".mtx.gz", ".tns", ".tns.gz", ".npz", ".bsp.h5")
NEED_H5PY = (".bsp.h5",)
OTHERS = {
    ".smtx": "a pattern without values, with tests of its own",
    ".bsp.hdf5": "another suffix of a format in the list",
}
"""Suffixes that are not in `SUFFIXES`, with the reasons."""


def installed(suffixes):
    return [name for name in suffixes if name not in NEED_H5PY or find_spec("h5py") is not None]


@st.composite
def tensors(draw, *, ndim=2):
    """Tensors of coordinates, sorted, with values of any bits except NaN with a payload."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=ndim, max_size=ndim)))
    cells = st.integers(0, int(np.prod(shape)) - 1)
    chosen = sorted(draw(st.sets(cells, max_size=12)))
    width = draw(st.sampled_from([32, 64]))
    values = draw(st.lists(st.floats(width=width), min_size=len(chosen), max_size=len(chosen)))
    data = np.array(values, f"float{width}")
    data[np.isnan(data)] = np.nan
    index = draw(st.sampled_from(["int32", "int64"]))
    coordinates = np.unravel_index(np.array(chosen, np.int64), shape)
    arrays = {f"indices_{number}": array.astype(index) for number, array in enumerate(coordinates)}
    return from_arrays("coo", shape, data=data, **arrays)


def bits(tensor):
    """The coordinates and the bits of the values."""
    coo = tensor.asformat("coo")
    values = coo.arrays["data"]
    names = [f"indices_{at}" for at in range(tensor.ndim)]
    return [coo.arrays[name].tolist() for name in names], values.tobytes()


@pytest.mark.parametrize("suffix", installed(SUFFIXES))
@given(tensor=tensors())
@settings(max_examples=60, deadline=None)
def test_a_matrix_is_read_as_it_was_written(suffix, tensor, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / f"a{suffix}"
    write(tensor, path)
    shape = tensor.shape if suffix.startswith(".tns") else None
    read_back = read(path, dtype=tensor.dtype.name, shape=shape)
    assert read_back.shape == tensor.shape
    assert bits(read_back) == bits(tensor)


@pytest.mark.parametrize("suffix", [".tns", ".tns.gz"])
@given(tensor=tensors(ndim=3))
@settings(max_examples=40, deadline=None)
def test_a_tensor_of_three_dimensions_is_read_as_it_was_written(suffix, tensor, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / f"a{suffix}"
    write(tensor.asformat("csf"), path)
    read_back = read(path, dtype=tensor.dtype.name, shape=tensor.shape)
    assert bits(read_back) == bits(tensor)


@given(tensor=tensors())
@settings(max_examples=40, deadline=None)
def test_a_pattern_is_read_as_it_was_written(tensor, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name in ("a.smtx", "a.mtx"):
        write(tensor, folder / name, pattern=True)
        read_back = read(folder / name)
        assert bits(read_back)[0] == bits(tensor)[0]
        assert set(read_back.arrays["data"].tolist()) <= {1.0}


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia", "ell", "dcsr"])
@pytest.mark.parametrize("suffix", installed((*SUFFIXES, ".smtx")))
@pytest.mark.parametrize("copy", [True, False])
def test_every_format_is_written(kind, suffix, copy, tmp_path):
    matrix = sparse.random_array((20, 30), density=0.1, rng=np.random.default_rng(1), format="csr")
    matrix.data[:] = 1.0
    if kind in ("ell", "dcsr"):
        tensor = from_scipy(matrix).asformat(kind)
    else:
        tensor = from_scipy(matrix.asformat(kind), format="same", copy=copy)
    write(tensor, tmp_path / f"a{suffix}")
    shape = (20, 30) if suffix.startswith(".tns") else None
    read_back = read(tmp_path / f"a{suffix}", shape=shape)
    np.testing.assert_array_equal(read_back.toarray(), matrix.toarray())


def test_scipy_reads_what_is_written(tmp_path):
    matrix = sparse.random_array((20, 30), density=0.1, rng=np.random.default_rng(1), format="csc")
    tensor = from_scipy(matrix, format="same")
    write(tensor, tmp_path / "a.mtx")
    np.testing.assert_array_equal(mmread(tmp_path / "a.mtx").toarray(), matrix.toarray())
    write(tensor, tmp_path / "a.npz")
    assert sparse.load_npz(tmp_path / "a.npz").format == "csc"
    assert to_scipy(read(tmp_path / "a.npz")).format == "csr"


def test_explicit_zeros_and_duplicates_are_written(tmp_path):
    arrays = {"indptr": np.array([0, 3]), "indices": np.array([2, 0, 2])}
    tensor = from_arrays("csr", (1, 3), data=np.array([1.0, 0.0, 2.0]), **arrays)
    write(tensor, tmp_path / "a.tns")
    assert (tmp_path / "a.tns").read_text() == "1 1 0.0\n1 3 1.0\n1 3 2.0\n"
    write(tensor, tmp_path / "a.smtx", pattern=True)
    assert (tmp_path / "a.smtx").read_text() == "1, 3, 3\n0 3\n2 0 2\n"


@pytest.mark.parametrize(
    ("code", "name", "pattern"),
    [
        ("format.write.pattern", "a.smtx", False),
        ("format.write.pattern", "a.npz", True),
        ("format.write.pattern", "a.tns", True),
        ("format.read.suffix", "a.txt", False),
        ("format.write.failed", "none/a.mtx", False),
        ("format.write.failed", "none/a.npz", False),
    ],
)
def test_what_cannot_be_written_is_refused(code, name, pattern, tmp_path):
    with pytest.raises(FormatError) as caught:
        write(from_scipy(sparse.eye_array(3) * 2), tmp_path / name, pattern=pattern)
    assert caught.value.code == code
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".mtx", ".smtx", ".npz", ".bsp.h5"])
def test_a_file_of_matrices_holds_two_dimensions(suffix, tmp_path):
    tensor = from_arrays("coo", (3,), indices_0=np.array([1]), data=np.ones(1))
    with pytest.raises(FormatError, match="files hold 2") as caught:
        write(tensor, tmp_path / f"a{suffix}")
    assert caught.value.code == "format.dimensions"


def test_every_file_format_of_the_folder_is_in_the_list():
    names = {info.name for info in pkgutil.iter_modules(file_formats.__path__)} - {"by_suffix"}
    modules = [import_module(f"{file_formats.__name__}.{name}") for name in sorted(names)]
    assert {
        module.__name__ for module in modules if module.FILE_FORMAT not in FILE_FORMATS
    } == set()
    assert len(modules) == len(FILE_FORMATS)


def test_every_suffix_is_written_and_read_back():
    suffixes = {suffix for format in FILE_FORMATS for suffix in format.suffixes}
    assert suffixes == {*SUFFIXES, *OTHERS}

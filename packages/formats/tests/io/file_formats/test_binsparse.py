"""Binsparse files: the formats of the specification, and containers that hold something else."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import from_scipy, read, write
from gossamer_ir.errors import FormatError

needs_h5py = pytest.mark.skipif(find_spec("h5py") is None, reason="h5py is not installed")

MATRIX = sparse.csr_array(np.array([[0, 1.5, 0], [0, 0, 0], [2.5, 0, -3.5]]))
"""Three elements, and an empty row."""

ARRAYS = {
    "CSR": {"pointers_to_1": [0, 1, 1, 3], "indices_1": [1, 0, 2], "values": [1.5, 2.5, -3.5]},
    "CSC": {"pointers_to_1": [0, 1, 2, 3], "indices_1": [2, 0, 2], "values": [2.5, 1.5, -3.5]},
    "COO": {"indices_0": [0, 2, 2], "indices_1": [1, 0, 2], "values": [1.5, 2.5, -3.5]},
    "COOR": {"indices_0": [0, 2, 2], "indices_1": [1, 0, 2], "values": [1.5, 2.5, -3.5]},
    "DCSR": {
        "indices_0": [0, 2], "pointers_to_1": [0, 1, 3], "indices_1": [1, 0, 2],
        "values": [1.5, 2.5, -3.5],
    },
}  # fmt: skip


def store(path, stored="CSR", *, arrays=None, index="uint64", nested=True, raw=None, **changes):
    """Write a file as the specification says, with changes of its descriptor."""
    import h5py

    contents = {
        name: np.array(array, "float64" if name == "values" else index)
        for name, array in ARRAYS[stored].items()
    }
    contents |= arrays or {}
    descriptor = {
        "version": "0.1",
        "format": stored,
        "shape": [3, 3],
        "number_of_stored_values": 3,
        "data_types": {name: array.dtype.name for name, array in contents.items()},
        **changes,
    }
    with h5py.File(path, "w") as file:
        for name, array in contents.items():
            file.create_dataset(name, data=array)
        text = json.dumps({"binsparse": descriptor} if nested else descriptor)
        file.attrs["binsparse"] = text if raw is None else raw
    return path


@needs_h5py
@pytest.mark.parametrize("format", ARRAYS)
@pytest.mark.parametrize("index", ["uint64", "int32", "uint8"])
@pytest.mark.parametrize("nested", [True, False])
def test_the_formats_of_the_specification(format, index, nested, tmp_path):
    path = store(tmp_path / "a.bsp.h5", format, index=index, nested=nested)
    tensor = read(path)
    assert tensor.format == ("coo" if format == "COOR" else format.lower())
    assert tensor.dtype == "float64"
    np.testing.assert_array_equal(tensor.toarray(), MATRIX.toarray())
    assert read(path, dtype="float32").dtype == "float32"


@needs_h5py
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", "float64"])
def test_one_value_for_all_and_integers(dtype, tmp_path):
    types = {"pointers_to_1": "uint64", "indices_1": "uint64", "values": f"iso[{dtype}]"}
    arrays = {"values": np.array([7], dtype)}
    tensor = read(store(tmp_path / "a.bsp.hdf5", arrays=arrays, data_types=types))
    assert tensor.arrays["data"].tolist() == [7, 7, 7]
    assert tensor.dtype == (dtype if dtype.startswith("float") else "float64")
    tensor = read(store(tmp_path / "b.bsp.h5", arrays={"values": np.array([1, 2, 3], dtype)}))
    assert tensor.arrays["data"].tolist() == [1, 2, 3]


@needs_h5py
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dcsr", "ell", "bsr"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tensor_is_written_in_its_format(kind, dtype, tmp_path):
    sizes = {"block_rows": 2, "block_columns": 2} if kind == "bsr" else {}
    tensor = from_scipy(MATRIX, dtype=dtype).asformat(kind, **sizes)
    write(tensor, tmp_path / "a.bsp.h5")
    read_back = read(tmp_path / "a.bsp.h5")
    assert read_back.format == (kind if kind in ("csr", "csc", "coo", "dcsr") else "csr")
    assert read_back.dtype == dtype
    np.testing.assert_array_equal(read_back.toarray(), tensor.toarray())


@needs_h5py
def test_coordinates_are_written_sorted_and_once(tmp_path):
    matrix = sparse.csr_array((np.ones(4), [2, 0, 2, 1], [0, 4]), shape=(1, 3))
    for kind in ("csr", "coo"):
        matrix_of_kind = matrix.asformat(kind)
        write(from_scipy(matrix_of_kind, format="same"), tmp_path / "a.bsp.h5")
        read_back = read(tmp_path / "a.bsp.h5")
        assert read_back.toarray().tolist() == [[1, 1, 2]]
        assert read_back.nnz == 3


BAD = {
    "DMAT": ({"format": "DMAT"}, "its format is 'DMAT'; expected COO, COOR, CSC, CSR, DCSR"),
    "format": ({"format": ["CSR"]}, "its format is"),
    "structure": ({"structure": "symmetric_lower"}, "'structure': 'symmetric_lower'"),
    "fill": ({"fill": True}, "'fill': True"),
    "base": ({"index_base": 1}, "'index_base': 1"),
    "version": ({"version": "1.0"}, "its version is '1.0'; expected 0.1"),
    "shape": ({"shape": [3, -3]}, r"its shape is \[3, -3\]"),
    "float": ({"shape": [3, 3.5]}, "its shape is"),
    "vector": ({"shape": [3]}, "its shape is"),
    "count": ({"number_of_stored_values": True}, "True stored values"),
    "fewer": ({"number_of_stored_values": 2}, "values has 3 elements; expected 2"),
    "types": ({"data_types": None}, "no data_types"),
    "type": ({"data_types": {"values": "float64"}}, "'pointers_to_1' has the type ''"),
    "complex": (
        {"data_types": {"pointers_to_1": "uint64", "indices_1": "uint64", "values": "complex[f]"}},
        "'values' has the type",
    ),
    "other": (
        {"data_types": {"pointers_to_1": "uint64", "indices_1": "int8", "values": "float64"}},
        "'indices_1' has the dtype uint64",
    ),
    "missing": ({"format": "DCSR"}, "no data set 'indices_0'"),
    "text": ({"raw": "{"}, "cannot be read"),
    "number": ({"raw": 3}, "no attribute 'binsparse'"),
    "list": ({"raw": "[]"}, "not a JSON object"),
    "long": ({"raw": " " * 70_000}, "cannot be read"),
    "range": ({"arrays": {"indices_1": np.array([1, 0, 3])}}, "Element 2 of 'indices' is 3"),
    "offsets": ({"arrays": {"pointers_to_1": np.array([0, 2, 1, 3])}}, "Element 2 of 'indptr' is 1"),
    "rows": ({"arrays": {"pointers_to_1": np.array([0, 3])}}, "indptr has 2 elements"),
    "table": ({"arrays": {"indices_1": np.zeros((3, 1), int)}}, "not a data set of one dimension"),
    "huge": ({"arrays": {"indices_1": np.array([0, 2**63, 1], "u8")}}, "9223372036854775808"),
    "iso": (
        {"data_types": {
            "pointers_to_1": "uint64", "indices_1": "uint64", "values": "iso[float64]"}},
        "values has 3 elements; expected 1",
    ),
}  # fmt: skip


@needs_h5py
@pytest.mark.parametrize("name", BAD)
def test_a_container_that_holds_something_else_is_refused(name, tmp_path):
    changes, message = BAD[name]
    try:
        path = store(tmp_path / "a.bsp.h5", **changes)
    except (OSError, ValueError, RuntimeError):  # HDF5 refuses long attributes
        path = tmp_path / "a.bsp.h5"
        path.write_bytes(b"\x89HDF")
    with pytest.raises(FormatError, match=message):
        read(path)


@needs_h5py
@pytest.mark.parametrize("cut", [0, 4, 100, 1000])
def test_a_truncated_container_is_refused(cut, tmp_path):
    path = store(tmp_path / "a.bsp.h5")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FormatError) as caught:
        read(path)
    assert caught.value.code == "format.read.malformed"


@needs_h5py
def test_arrays_outside_of_the_file_are_not_read(tmp_path):
    import h5py

    other = store(tmp_path / "other.bsp.h5")
    path = store(tmp_path / "a.bsp.h5")
    raw = tmp_path / "raw"
    raw.write_bytes(bytes(24))
    for change in (
        lambda file: file.__setitem__("values", h5py.ExternalLink(other, "values")),
        lambda file: file.__setitem__("values", h5py.SoftLink("/indices_1")),
        lambda file: file.create_dataset("values", 3, "f8", external=[(raw, 0, 24)]),
    ):
        with h5py.File(path, "a") as file:
            del file["values"]
            change(file)
        with pytest.raises(FormatError, match=r"of its own|in this file") as caught:
            read(path)
        assert caught.value.code == "format.read.malformed"


@needs_h5py
@pytest.mark.parametrize("options", [{}, {"compression": "gzip", "chunks": (1 << 22,)}])
def test_an_array_that_declares_too_much_is_refused_before_it_is_read(options, tmp_path):
    import h5py

    path = store(tmp_path / "a.bsp.h5", number_of_stored_values=10**9)
    with h5py.File(path, "a") as file:
        for name, dtype in (("values", "f8"), ("indices_1", "u8")):
            del file[name]
            file.create_dataset(name, 10**9, dtype, **options)
    assert path.stat().st_size < 100_000
    with pytest.raises(FormatError, match="declares 3 rows and 1000000000 entries") as caught:
        read(path, max_bytes=1 << 20)
    assert caught.value.code in ("format.read.max_bytes", "format.read.memory")


def test_without_h5py_a_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    path = tmp_path / "a.bsp.h5"
    path.write_bytes(b"")
    with pytest.raises(FormatError, match=r"pip install gossamer-formats\[binsparse\]") as caught:
        read(path)
    assert caught.value.code == "format.binsparse.missing"
    with pytest.raises(FormatError, match="h5py is not installed"):
        write(from_scipy(MATRIX), path)

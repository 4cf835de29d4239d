"""Reading matrix files of the three supported kinds, and the one-sentence error for each kind of bad file."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmread, mmwrite

from gossamer_formats import read, to_scipy
from gossamer_ir.errors import FormatError

HEADER = b"%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz", "A.MTX"])
def test_a_file_gives_the_matrix_that_was_written(name, tmp_path, dense):
    path = tmp_path / name
    if name.endswith("npz"):
        sparse.save_npz(path, sparse.csr_array(dense))
    elif name.endswith("gz"):
        mmwrite(tmp_path / "plain.mtx", sparse.coo_array(dense))
        path.write_bytes(gzip.compress((tmp_path / "plain.mtx").read_bytes()))
    else:
        with path.open("wb") as file:
            mmwrite(file, sparse.coo_array(dense))
    np.testing.assert_array_equal(to_scipy(read(path)).toarray(), dense)
    assert read(str(path), dtype="float32").dtype == "float32"


def test_patterns_integers_and_symmetry(tmp_path):
    path = tmp_path / "pattern.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 1\n")
    dense = to_scipy(read(path)).toarray()
    np.testing.assert_array_equal(dense, [[1, 0, 1], [0, 0, 0], [1, 0, 0]])
    path.write_text("%%MatrixMarket matrix coordinate integer general\n1 2 1\n1 2 -7\n")
    tensor = read(path)
    assert tensor.dtype == "float64"
    np.testing.assert_array_equal(to_scipy(tensor).toarray(), [[0, -7]])


def test_skew_symmetry_comments_blank_lines_and_no_entries(tmp_path):
    path = tmp_path / "skew.mtx"
    banner = "%%MatrixMarket matrix coordinate real skew-symmetric\r\n"
    path.write_text(banner + "% a comment\n\n%\n 2 2 1\n\n2 1 -3e2\n\n")
    np.testing.assert_array_equal(to_scipy(read(path)).toarray(), [[0, 300], [-300, 0]])
    path.write_bytes(HEADER + b"3 4 0\n")
    assert (read(path).shape, read(path).nnz) == ((3, 4), 0)
    path.write_bytes(HEADER + b"1 4 3\n1 4 nan\n1 1 -inf\n1 4 1\n")
    np.testing.assert_array_equal(to_scipy(read(path)).toarray(), [[-np.inf, 0, 0, np.nan]])


@pytest.mark.parametrize("shape", [(1, 1), (70, 3), (3, 70)])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_entries_agree_with_scipys_writer(shape, symmetry, tmp_path):
    matrix = sparse.random_array(shape, density=0.3, rng=np.random.default_rng(1)).tocsr()
    if symmetry == "symmetric":
        matrix = matrix @ matrix.T
    mmwrite(tmp_path / "a.mtx", matrix.tocoo(), symmetry=symmetry)
    expected = mmread(tmp_path / "a.mtx").toarray()
    np.testing.assert_array_equal(to_scipy(read(tmp_path / "a.mtx")).toarray(), expected)


def test_an_npz_of_float32_keeps_its_dtype_and_an_empty_one_is_read(tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.csc_array((0, 5), dtype=np.float32))
    tensor = read(tmp_path / "a.npz")
    assert (tensor.shape, tensor.dtype) == ((0, 5), "float32")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("1 1 1.0\n%\n\n2 2 one\n", "line 7 has the value 'one'; expected a number"),
        ("1.5 1 1.0\n", "line 4 has the coordinate '1.5'; expected an integer"),
        ("1 1\n", "line 4 has 2 numbers; expected 2 coordinates and a value"),
        ("1 1 1.0 2.0 % of two\n", "line 4 has 4 numbers; expected 2 coordinates and a value"),
        ("1 99999999999999999999 1.0\n", "line 4 has the coordinate '99999999999999999999'"),
    ],
)
@pytest.mark.parametrize("field", ["real", "integer"])
def test_a_line_that_is_not_an_entry_is_named(entries, message, field, tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text(
        f"%%MatrixMarket matrix coordinate {field} general\n% a comment\n3 3 2\n{entries}"
    )
    with pytest.raises(FormatError, match=message) as caught:
        read(path)
    assert caught.value.code == "format.read.malformed"


BAD_FILES = [
    ("format.read.suffix", "a.txt", b""),
    ("format.read.suffix", "mtx", b""),
    ("format.read.malformed", "empty.mtx", b""),
    ("format.read.malformed", "noise.mtx", b"\x00\xff\x13" * 50),
    ("format.read.malformed", "header.mtx", b"%%MatrixMarket matrix\n1 1 1\n1 1 1\n"),
    ("format.read.malformed", "dense.mtx", b"%%MatrixMarket matrix array real general\n1 1\n1\n"),
    ("format.read.malformed", "short.mtx", HEADER + b"3 3 2\n1 1 1.0\n"),
    ("format.read.malformed", "range.mtx", HEADER + b"3 3 1\n4 1 1.0\n"),
    ("format.read.malformed", "zero.mtx", HEADER + b"3 3 1\n0 1 1.0\n"),
    ("format.read.malformed", "word.mtx", HEADER + b"3 3 1\n1 1 one\n"),
    ("format.read.malformed", "more.mtx", HEADER + b"3 3 1\n1 1 1.0\n2 2 1.0\n"),
    ("format.read.malformed", "wide.mtx", HEADER + b"3 3 1\n1 1 1.0 2.0\n"),
    ("format.read.malformed", "narrow.mtx", HEADER + b"3 3 1\n1 1\n"),
    ("format.read.malformed", "half.mtx", HEADER + b"3 3 1\n1.5 1 1.0\n"),
    # SciPy's reader takes the first for 3.57, and sometimes ends the process on the second.
    ("format.read.malformed", "exponent.mtx", HEADER + b"%\n3 3 2\n1 1 3.57d9519\n1 2 1.0\n"),
    ("format.read.malformed", "crash.mtx", HEADER + b"%\n3 3 2\n1 1 3.57e+19\n1 2 1.0d"),
    (
        "format.read.malformed",
        "oblong.mtx",
        b"%%MatrixMarket matrix coordinate real symmetric\n3 2 1\n1 1 1.0\n",
    ),
    ("format.read.malformed", "negative.mtx", HEADER + b"-3 3 1\n1 1 1.0\n"),
    ("format.read.malformed", "sizes.mtx", HEADER + b"3 3\n"),
    (
        "format.read.malformed",
        "complex.mtx",
        b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n",
    ),
    ("format.read.memory", "huge.mtx", HEADER + b"100000000000000 3 1\n1 1 1.0\n"),
    ("format.read.memory", "many.mtx", HEADER + b"3 3 100000000000000\n1 1 1.0\n"),
    ("format.read.malformed", "plain.mtx.gz", HEADER + b"1 1 1\n1 1 1.0\n"),
    (
        "format.read.malformed",
        "cut.mtx.gz",
        gzip.compress(HEADER + b"1 1 1\n1 1 1\n" * 99, mtime=0)[:40],
    ),
    ("format.read.malformed", "empty.npz", b""),
    ("format.read.malformed", "noise.npz", b"PK\x03\x04" + b"\x00" * 40),
]


@pytest.mark.parametrize(("code", "name", "content"), BAD_FILES)
def test_a_bad_file_is_one_sentence(code, name, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert caught.value.code == code
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": np.ones(3)},
        {"format": np.array(b"csr"), "shape": np.array([2, 2])},
        {"format": np.array(b"xyz"), "shape": np.array([2, 2]), "data": np.ones(1)},
        {"format": np.array(7), "shape": np.array([2, 2]), "data": np.ones(1)},
        {"format": np.array({"an": "object"}, dtype=object), "shape": np.array([2, 2])},
        {
            "format": np.array(b"csr"),
            "shape": np.array([2, 2]),
            "data": np.ones(3),
            "indices": np.zeros(1, np.int32),
            "indptr": np.zeros(7, np.int32),
        },
        {
            "format": np.array(b"bsr"),
            "shape": np.array([2, 2]),
            "data": np.ones((2, 0, 0)),
            "indices": np.array([0, 1], np.int32),
            "indptr": np.array([0, 1, 2], np.int32),
        },
        {
            "format": np.array(b"csr"),
            "shape": np.array([2, 2]),
            "data": np.ones(2),
            "indices": np.array([0.0, 1.5]),
            "indptr": np.array([0, 1, 2], np.int32),
        },
    ],
)
def test_an_npz_that_holds_something_else_is_refused(arrays, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert caught.value.code == "format.read.malformed"
    assert "\n" not in str(caught.value)


def test_a_name_that_the_system_refuses_is_one_sentence(tmp_path):
    with pytest.raises(FormatError, match="cannot be read: File name too long") as caught:
        read(tmp_path / ("n" * 300 + ".mtx"))
    assert caught.value.code == "format.read.malformed"


def test_an_npz_of_three_dimensions_is_read_as_coordinates(tmp_path):
    dense = np.zeros((2, 3, 4))
    dense[1, 2, 3] = 5.0
    sparse.save_npz(tmp_path / "a.npz", sparse.coo_array(dense))
    try:
        sparse.load_npz(tmp_path / "a.npz")
    except ValueError:
        pytest.skip("this SciPy does not store arrays of three dimensions")
    tensor = read(tmp_path / "a.npz")
    assert tensor.format == "coo"
    np.testing.assert_array_equal(tensor.toarray(), dense)


def test_a_truncated_npz_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.eye_array(100))
    whole = path.read_bytes()
    for cut in (10, 100, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(FormatError):
            read(path)


def test_an_npz_with_columns_out_of_range_names_the_first(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(
        path,
        format=np.array(b"csr"),
        shape=np.array([2, 2]),
        data=np.ones(2),
        indices=np.array([0, 9], np.int32),
        indptr=np.array([0, 1, 2], np.int32),
    )
    with pytest.raises(FormatError, match=r"In '.*a\.npz': Element 1 of 'indices' is 9"):
        read(path)


def test_a_missing_file_and_a_directory_are_named(tmp_path):
    with pytest.raises(FormatError, match=r"none\.mtx' does not exist") as caught:
        read(tmp_path / "none.mtx")
    assert caught.value.code == "format.read.missing"
    (tmp_path / "folder.mtx").mkdir()
    with pytest.raises(FormatError, match=r"folder\.mtx' is not a file"):
        read(tmp_path / "folder.mtx")

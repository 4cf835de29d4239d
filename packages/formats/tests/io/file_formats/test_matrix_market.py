"""Matrix Market: symmetry, patterns, comments, and the errors of lines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmread, mmwrite

from gossamer_formats import read, to_scipy
from gossamer_ir.errors import FormatError

HEADER = b"%%MatrixMarket matrix coordinate real general\n"


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

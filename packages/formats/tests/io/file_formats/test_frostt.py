"""FROSTT's files of coordinates."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from gossamer_formats import read
from gossamer_ir.errors import FormatError

TEXT = "# a comment\n1 1 1 1.5\n\n 2 3 4 -2e3 \r\n2 3 4 1\n"


@pytest.mark.parametrize("name", ["a.tns", "a.tns.gz", "A.TNS"])
def test_a_tensor_of_three_dimensions(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(TEXT.encode()) if name.endswith("gz") else TEXT.encode())
    tensor = read(path)
    assert (tensor.format, tensor.shape, tensor.nnz) == ("coo", (2, 3, 4), 3)
    dense = np.zeros((2, 3, 4))
    dense[0, 0, 0], dense[1, 2, 3] = 1.5, -1999
    np.testing.assert_array_equal(tensor.toarray(), dense)
    assert read(path, shape=(2, 3, 9)).shape == (2, 3, 9)
    assert read(path, dtype="float32").dtype == "float32"


def test_unsorted_entries_and_many_blocks(tmp_path):
    count = 30_000
    rng = np.random.default_rng(1)
    row, column = rng.permutation(count), rng.integers(0, 50, count)
    path = tmp_path / "a.tns"
    lines = [f"{r + 1} {c + 1} {v}\n" for r, c, v in zip(row, column, range(count), strict=True)]
    path.write_text("".join(lines))
    tensor = read(path)
    np.testing.assert_array_equal(tensor.arrays["indices_0"], row)
    np.testing.assert_array_equal(tensor.arrays["indices_1"], column)
    np.testing.assert_array_equal(tensor.arrays["data"], np.arange(count))


def test_values_may_be_infinite_and_a_vector_has_one_coordinate(tmp_path):
    path = tmp_path / "a.tns"
    path.write_text("2 inf\n3 nan\n")
    np.testing.assert_array_equal(read(path).toarray(), [0, np.inf, np.nan])


def test_a_file_without_entries_needs_a_shape(tmp_path):
    path = tmp_path / "a.tns"
    path.write_text("# nothing\n")
    with pytest.raises(FormatError, match=r"pass shape=\(...\)"):
        read(path)
    assert read(path, shape=(2, 0, 3)).shape == (2, 0, 3)


BAD = {
    "1 1 1.0\n0 1 1.0\n": "line 2 has the coordinate 0 in dimension 0; expected 1 or more",
    "1 1 1.0\n1 -1 1.0\n": "line 2 has the coordinate -1 in dimension 1",
    "1 1 1.0\n\n# x\n1 1.5 1.0\n": "line 4 has the coordinate '1.5'; expected an integer",
    "1 nan 1.0\n": "line 1 has the coordinate 'nan'",
    "1 1 one\n": "line 1 has the value 'one'",
    "1 1 1.0\n1 1 1 1.0\n": "line 2 has 4 numbers; expected 2 coordinates and a value",
    "1 1 1.0\n1 1\n": "line 2 has 2 numbers",
    "1\n": "line 1 has 1 number; expected 1 to 32 coordinates",
    "1 " * 40 + "\n": "line 1 has 40 numbers",
    "1 99999999999999999999 1.0\n": "line 1 has the coordinate '99999999999999999999'",
    "1 9223372036854775808 1.0\n": "line 1 has the coordinate '9223372036854775808'",
    "1 1 1.0\0\n": "line 1",
    "1 1 0x\n": "line 1 has the value '0x'",
    "1" * 70_000: "line 1 has more than 65536 characters",
    "# x\n" * 300_000: "comments and blank lines have more than",
    "": "no entries",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_malformed_file_is_refused_with_the_line(text, tmp_path):
    path = tmp_path / "a.tns"
    path.write_text(text)
    with pytest.raises(FormatError, match=BAD[text]) as caught:
        read(path)
    assert caught.value.code == "format.read.malformed"


def test_a_truncated_archive_is_refused(tmp_path):
    path = tmp_path / "a.tns.gz"
    whole = gzip.compress(TEXT.encode() * 99)
    for cut in (5, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:cut])
        with pytest.raises(FormatError) as caught:
            read(path)
        assert caught.value.code == "format.read.malformed"


def test_a_shape_that_is_too_small_or_of_another_rank_is_refused(tmp_path):
    path = tmp_path / "a.tns"
    path.write_text(TEXT)
    with pytest.raises(
        FormatError, match="line 4 has the coordinate 4 in dimension 2; expected 1 to 3"
    ):
        read(path, shape=(2, 3, 3))
    with pytest.raises(FormatError, match="line 2 has 4 numbers; expected 2 coordinates"):
        read(path, shape=(2, 3))
    for shape, code in (((-1, 2, 3), "format.shape"), ((2.5,), "format.shape")):
        with pytest.raises(FormatError) as caught:
            read(path, shape=shape)
        assert caught.value.code == code


def test_another_file_must_have_the_shape_that_is_given(tmp_path):
    path = tmp_path / "a.smtx"
    path.write_text("1, 2, 0\n0 0\n\n")
    assert read(path, shape=(1, 2)).nnz == 0
    with pytest.raises(FormatError, match=r"the shape \(1, 2\); expected \(2, 1\)") as caught:
        read(path, shape=(2, 1))
    assert caught.value.code == "format.read.shape"


def test_large_coordinates_take_little_memory(tmp_path):
    path = tmp_path / "a.tns"
    path.write_text("1 9223372036854775807 2.0\n")
    tensor = read(path, max_bytes=10_000)
    assert tensor.shape == (1, 2**63 - 1)
    assert tensor.arrays["indices_1"].tolist() == [2**63 - 2]


def test_more_entries_than_max_bytes_allows_are_refused(tmp_path):
    path = tmp_path / "a.tns"
    path.write_text("1 1 1\n" * 50_000)
    with pytest.raises(FormatError, match="entries or more of 2 dimensions") as caught:
        read(path, max_bytes=1 << 20)
    assert caught.value.code == "format.read.max_bytes"

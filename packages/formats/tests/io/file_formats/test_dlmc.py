"""Patterns in the files of the Deep Learning Matrix Collection."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_formats import read
from gossamer_ir.errors import FormatError

TEXT = "3, 5, 4\n0 2 2 4 \n4 0 1 3\n"


def test_a_pattern_has_values_of_one(tmp_path):
    path = tmp_path / "a.smtx"
    path.write_text(TEXT)
    tensor = read(path)
    assert (tensor.format, tensor.dtype, tensor.shape) == ("csr", "float32", (3, 5))
    expected = [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 1, 0]]
    assert tensor.toarray().tolist() == expected
    assert tensor.arrays["indices"].tolist() == [4, 0, 1, 3]
    assert not tensor.description.axes[1].sorted
    assert read(path, dtype="float64").dtype == "float64"


@pytest.mark.parametrize(
    ("text", "shape"), [("0, 0, 0\n0\n\n", (0, 0)), ("2 3 0\r\n0 0 0\r\n", (2, 3))]
)
def test_a_pattern_without_entries(text, shape, tmp_path):
    path = tmp_path / "a.smtx"
    path.write_text(text)
    assert (read(path).shape, read(path).nnz) == (shape, 0)


BAD = {
    "": "line 1 is ''",
    "3, 5\n0 1 1 1\n0\n": "line 1 is '3, 5'; expected rows, columns and entries",
    "-3, 5, 4\n": "line 1 is '-3, 5, 4'",
    "3.0, 5, 4\n": "line 1",
    "nan, 5, 4\n": "line 1",
    "99999999999999999999, 5, 4\n": "below 2",
    "3, 5, 4\n0 2 2\n4 0 1 3\n": "line 2 has 3 offsets; expected 4",
    "3, 5, 4\n0 2 2 3\n4 0 1 3\n": "line 2 has offsets from 0 to 3; expected 0 to 4",
    "3, 5, 4\n1 2 2 4\n4 0 1 3\n": "line 2 has offsets from 1 to 4",
    "3, 5, 4\n0 3 2 4\n4 0 1 3\n": "line 2 has the offset 2 after 3",
    "3, 5, 4\n0 2 2 4\n4 0 1\n": "line 3 has 3 columns; expected 4",
    "3, 5, 4\n0 2 2 4\n": "line 3 has 0 columns",
    "3, 5, 4\n0 2 2 4\n4 0 1 3 3\n": "line 3 has 5 columns",
    "3, 5, 4\n0 2 2 4\n4 0 5 3\n": "line 3 has the column 5 of entry 2; expected 0 to 4",
    "3, 5, 4\n0 2 2 4\n4 0 -1 3\n": "line 3 has the column -1",
    "3, 5, 4\n0 2 2 4\n4 0 nan 3\n": "line 3 has something else than integers",
    "3, 5, 4\n0 2 2 4\n4 0 1.5 3\n": "line 3 has something else than integers",
    "3, 5, 4\n0 2 0x2 4\n4 0 1 3\n": "line 2 has something else than integers",
    "3, 5, 4\n0 2 2 4\n4 0 99999999999999999999 3\n": "line 3",
    "3, 0, 1\n0 0 0 1\n0\n": "expected none",
    "3, 5, 4\n0 2 2 4\n4 0 1 3\n1 1 1 1\n": "text after line 3",
}


@pytest.mark.parametrize("text", BAD)
def test_a_malformed_pattern_is_refused_with_the_line(text, tmp_path):
    path = tmp_path / "a.smtx"
    path.write_text(text)
    with pytest.raises(FormatError, match=BAD[text]) as caught:
        read(path)
    assert caught.value.code == "format.read.malformed"


@pytest.mark.parametrize(
    "header", ["100000000, 1, 0", "1, 1, 100000000", "9000000000000000000, 1, 1"]
)
def test_a_header_that_declares_too_much_is_refused_before_it_is_allocated(header, tmp_path):
    path = tmp_path / "a.smtx"
    path.write_text(f"{header}\n0 1\n0\n")
    with pytest.raises(FormatError, match="declares") as caught:
        read(path, max_bytes=1 << 20)
    assert caught.value.code in ("format.read.max_bytes", "format.read.memory")


def test_long_lines_are_read(tmp_path):
    indices = np.random.default_rng(1).permutation(100_000)
    path = tmp_path / "a.smtx"
    path.write_text(f"1, 100000, 100000\n0 100000\n{' '.join(map(str, indices))}\n")
    np.testing.assert_array_equal(read(path).arrays["indices"], indices)

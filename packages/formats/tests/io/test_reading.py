"""Reading matrix files of the three supported kinds, and the one-sentence error for each kind of bad file."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

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


def test_a_name_that_the_system_refuses_is_one_sentence(tmp_path):
    with pytest.raises(FormatError, match="cannot be read: File name too long") as caught:
        read(tmp_path / ("n" * 300 + ".mtx"))
    assert caught.value.code == "format.read.malformed"


def test_a_missing_file_and_a_directory_are_named(tmp_path):
    with pytest.raises(FormatError, match=r"none\.mtx' does not exist") as caught:
        read(tmp_path / "none.mtx")
    assert caught.value.code == "format.read.missing"
    (tmp_path / "folder.mtx").mkdir()
    with pytest.raises(FormatError, match=r"folder\.mtx' is not a file"):
        read(tmp_path / "folder.mtx")

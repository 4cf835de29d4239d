"""File formats that another distribution registers: they are read and written by their suffixes."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import from_scipy, read, write
from gossamer_formats.io.file_formats.by_suffix import NAMED_FILE_FORMATS
from gossamer_ir.errors import FormatError, PluginError

PLUGIN = """
from scipy import sparse

from gossamer_formats import DeclaredSizes, FileFormat


def read_diagonal(file, *, require_fits):
    lines = file.read_text().split()
    require_fits(DeclaredSizes(len(lines), len(lines), len(lines), 16 * len(lines)))
    return sparse.diags_array([float(line) for line in lines]).tocsr()


def write_diagonal(tensor, file):
    file.write_text("\\n".join(map(str, tensor.toarray().diagonal())))


def format_of(suffix, read, write=write_diagonal):
    return FileFormat((suffix,), read, write, "a diagonal", "csr", "the diagonal")


DIAGONAL = format_of(".diag", read_diagonal)
PACKED = format_of(".diag.packed", lambda file, *, require_fits: sparse.eye_array(7))
BROKEN = format_of(".broken", lambda file, *, require_fits: [][1], lambda tensor, file: 1 / 0)
WRONG = format_of(".wrong", lambda file, *, require_fits: "a diagonal")
MATRIX_MARKET = format_of(".mtx", read_diagonal)
"""
ENTRY_POINTS = """
[gossamer.file_formats]
diag = diagonals:DIAGONAL
diag.packed = diagonals:PACKED
broken = diagonals:BROKEN
wrong = diagonals:WRONG
other = diagonals:DIAGONAL
missing = diagonals_of_nobody:DIAGONAL
mtx = diagonals:MATRIX_MARKET
"""
MATRIX = sparse.csr_array(np.diag([1.0, 0.5, 3.0]))


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    (tmp_path / "diagonals.py").write_text(PLUGIN)
    install("acme-diagonals", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    NAMED_FILE_FORMATS.find.cache_clear()
    yield
    sys.modules.pop("diagonals", None)
    NAMED_FILE_FORMATS.find.cache_clear()


def install(name, folder):
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)


def test_what_is_written_by_the_suffix_is_read_back(tmp_path):
    write(from_scipy(MATRIX), tmp_path / "A.diag")
    assert (tmp_path / "A.diag").read_text().split() == ["1.0", "0.5", "3.0"]
    assert (read(tmp_path / "A.diag").toarray() == MATRIX.toarray()).all()
    assert read(tmp_path / "A.diag", dtype="float32").dtype == np.float32


def test_the_longest_suffix_decides(tmp_path):
    (tmp_path / "A.diag.packed").write_text("1.0")
    assert read(tmp_path / "A.diag.packed").shape == (7, 7)


def test_what_is_wrong_in_a_file_is_an_error_of_the_file(tmp_path):
    (tmp_path / "A.diag").write_text("1.0 two")
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "A.diag")
    assert caught.value.code == "format.read.malformed"
    (tmp_path / "A.diag").write_text("1.0 " * 1000)
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "A.diag", max_bytes=1000)
    assert caught.value.code == "format.read.max_bytes"
    with pytest.raises(FormatError, match="store values, so pattern=True"):
        write(from_scipy(MATRIX), tmp_path / "A.diag", pattern=True)


def test_an_unknown_suffix_lists_those_of_plugins(tmp_path):
    with pytest.raises(
        FormatError, match=r"unknown suffix; expected '\.mtx', .*'\.diag', .*\.wrong'"
    ):
        read(tmp_path / "A.unknown")


@pytest.mark.parametrize(
    ("suffix", "message"),
    [
        (
            "broken",
            "The plugin 'acme-diagonals' cannot read a file of the file format 'broken': IndexError",
        ),
        (
            "wrong",
            "'wrong': TypeError: it returned an object of type 'str'; expected a SparseTensor",
        ),
        (
            "other",
            r"'other' of the group 'gossamer\.file_formats' .*expected a gossamer_formats\.File",
        ),
        (
            "missing",
            "'acme-diagonals' cannot register the file format 'missing': ModuleNotFoundError",
        ),
    ],
)
def test_a_broken_format_is_an_error_of_its_distribution(tmp_path, suffix, message):
    file = tmp_path / f"A.{suffix}"
    file.write_text("1.0")
    with pytest.raises(PluginError, match=message):
        read(file)


def test_an_exception_of_a_writer_names_the_distribution(tmp_path):
    with pytest.raises(PluginError, match="cannot write a file of the file format 'broken': Zero"):
        write(from_scipy(MATRIX), tmp_path / "A.broken")


def test_a_suffix_of_the_library_is_its_own(tmp_path):
    (tmp_path / "A.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 3 0\n")
    assert read(tmp_path / "A.mtx").shape == (2, 3)
    assert [point.name for point in NAMED_FILE_FORMATS.ignored_entry_points()] == ["mtx"]


def test_a_suffix_that_two_distributions_register_is_refused(tmp_path):
    install("more-diagonals", tmp_path)
    NAMED_FILE_FORMATS.find.cache_clear()
    (tmp_path / "A.diag").write_text("1.0")
    with pytest.raises(PluginError, match="'diag': acme-diagonals, more-diagonals") as caught:
        read(tmp_path / "A.diag")
    assert caught.value.code == "plugin.duplicate"

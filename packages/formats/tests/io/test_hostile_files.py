"""Files that take much more memory or time than their size or their header suggests."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from gossamer_formats import from_scipy, read, write
from gossamer_formats.io.declared_sizes import DeclaredSizes, EntriesRead
from gossamer_ir.errors import ArgumentError, FormatError

MB = 1 << 20
REAL = b"%%MatrixMarket matrix coordinate real general\n"
PATTERN = b"%%MatrixMarket matrix coordinate pattern general\n"


def text(start, repeated):
    """A compressed text of 16 MB."""
    return gzip.compress(start + repeated * (4 * MB), 1)


def archive(arrays, *, method=zipfile.ZIP_DEFLATED, replaced=None, extra=None):
    """An archive of NumPy arrays; `replaced` changes the contents of some members, `extra` adds members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as members:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            members.writestr(f"{name}.npy", (replaced or {}).get(name, content.getvalue()))
        for name, content in (extra or {}).items():
            members.writestr(name, content)
    return file.getvalue()


def csr_arrays(data, *, shape=(2, 2)):
    indices = np.zeros(len(data), np.int32)
    indptr = np.array([0, 1, len(data)], np.int32)
    return {
        "format": np.array(b"csr"),
        "shape": np.array(shape),
        "data": data,
        "indices": indices,
        "indptr": indptr,
    }


def declaring(count):
    """An array of one element whose header declares more elements."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        content, {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    )
    return content.getvalue() + bytes(8)


SMALL = csr_arrays(np.ones(2))
MALFORMED, LIMIT = "format.read.malformed", "format.read.max_bytes"
ATTACKS = {
    "entries.mtx.gz": (MALFORMED, lambda: text(PATTERN + b"1 1 1\n", b"1 1\n")),
    "line.mtx.gz": (MALFORMED, lambda: text(REAL + b"1 1 1\n", b"1111")),
    "comment.mtx.gz": (MALFORMED, lambda: text(REAL, b"%%%%")),
    "comments.mtx.gz": (MALFORMED, lambda: text(REAL, b"% 1\n")),
    "comments-after.mtx.gz": (MALFORMED, lambda: text(REAL + b"1 1 1\n", b"% 1\n")),
    "blank.mtx.gz": (MALFORMED, lambda: text(REAL + b"1 1 1\n", b"\n\n\n\n")),
    "spaces.mtx.gz": (MALFORMED, lambda: text(REAL + b"1 1 1\n", b" \n \n")),
    "entries.tns.gz": (LIMIT, lambda: text(b"", b"1 1 1\n")),
    "line.tns.gz": (MALFORMED, lambda: text(b"1 1 1\n", b"1111")),
    "comment.tns.gz": (MALFORMED, lambda: text(b"", b"####")),
    "comments.tns.gz": (MALFORMED, lambda: text(b"", b"# 1\n")),
    "blank.tns.gz": (MALFORMED, lambda: text(b"1 1 1\n", b"\n\n \n")),
    "rows.smtx": (LIMIT, lambda: b"100000000, 1, 0\n0 0\n\n"),
    "entries.smtx": (LIMIT, lambda: b"1, 1, 100000000\n0 1\n0\n"),
    "line.smtx": (LIMIT, lambda: b"1, 1, 1\n" + b"0" * (16 * MB)),
    "rows.mtx": (LIMIT, lambda: REAL + b"100000000 1 0\n"),
    "missing.mtx": (LIMIT, lambda: PATTERN + b"3 3 100000000\n1 1\n"),
    "zeros.npz": (LIMIT, lambda: archive(csr_arrays(np.zeros(2 * MB)))),
    "rows.npz": (LIMIT, lambda: archive(csr_arrays(np.ones(2), shape=(10**8, 2)))),
    "long-shape.npz": (MALFORMED, lambda: archive(SMALL | {"shape": np.zeros(2 * MB, np.int64)})),
    "header.npz": (MALFORMED, lambda: archive(SMALL, replaced={"data": declaring(10**9)})),
    "no-header.npz": (MALFORMED, lambda: archive(SMALL, replaced={"data": bytes(16 * MB)})),
    "bytes.npz": (MALFORMED, lambda: archive(SMALL, extra={"data": bytes(16 * MB)})),
    "lzma.npz": (MALFORMED, lambda: archive(SMALL, method=zipfile.ZIP_LZMA)),
    "members.npz": (
        MALFORMED,
        lambda: archive(SMALL, extra=dict.fromkeys(map(str, range(5_000)), b"")),
    ),
    "array.npz": (MALFORMED, lambda: declaring(10**9) + archive(SMALL)),
}
"""The expected code, and the file. Without limits, most take 16 MB or more."""

CHILD = """
import json, resource, sys, time
from zipfile import ZipFile
from scipy.sparse import load_npz
from gossamer_formats import read
from gossamer_ir.errors import FormatError
limit = int(sys.argv[1])

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

for path in sys.argv[2:]:
    before, start, code = peak(), time.process_time(), "read"
    try:
        read(path, max_bytes=limit)
    except FormatError as error:
        code = error.code
    print(json.dumps([code, peak() - before, time.process_time() - start]))
"""


def measured(paths, *, max_bytes):
    """The error code, the growth of memory and the time of reading each file, measured in a separate
    process."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(max_bytes), *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for name, (_, content_of) in ATTACKS.items():
        (folder / name).write_bytes(content_of())
    return dict(
        zip(
            ATTACKS,
            measured([folder / name for name in ATTACKS], max_bytes=8 * MB),
            strict=True,
        )
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_file_is_refused_before_it_takes_memory_or_time(name, outcomes):
    code, growth, seconds = outcomes[name]
    assert code == ATTACKS[name][0]
    assert growth < 8 * MB
    assert seconds < 2


def test_reading_takes_no_more_memory_than_estimated(tmp_path):
    entries, size = 200_000, 1000
    rng = np.random.default_rng(3)
    row, column = rng.integers(0, size, (2, entries))
    row, column = np.maximum(row, column), np.minimum(row, column)
    matrix = sparse.coo_array((np.ones(entries), (row, column)), shape=(size, size))
    sparse.save_npz(tmp_path / "a.npz", matrix, compressed=False)
    mmwrite(tmp_path / "a.mtx", matrix, symmetry="symmetric")
    for name, declared in (("a.npz", entries), ("a.mtx", 2 * entries)):
        needed = DeclaredSizes(size, size, declared, 24 * entries + 2000).memory()
        ((code, growth, _),) = measured([tmp_path / name], max_bytes=needed)
        assert (code, growth <= needed) == ("read", True), name


def test_reading_coordinates_and_patterns_takes_no_more_memory_than_estimated(tmp_path):
    entries, size = 200_000, 1000
    rng = np.random.default_rng(3)
    row, column = rng.integers(0, size, (2, entries))
    matrix = sparse.coo_array((np.ones(entries), (row, column)), shape=(size, size))
    tensor = from_scipy(matrix, format="same")
    write(tensor, tmp_path / "a.tns")
    write(tensor, tmp_path / "a.smtx", pattern=True)
    text = (tmp_path / "a.smtx").stat().st_size
    for name, sizes in (
        ("a.tns", EntriesRead(2, entries)),
        ("a.smtx", DeclaredSizes(size, size, entries, 2 * text + 16 * (size + 1 + entries))),
    ):
        ((code, growth, _),) = measured([tmp_path / name], max_bytes=sizes.memory())
        assert (code, growth <= sizes.memory()) == ("read", True), name


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz"])
def test_a_file_is_read_with_as_many_bytes_as_the_error_names(name, tmp_path):
    matrix, path = sparse.eye_array(50, format="csr"), tmp_path / name
    if name.endswith("npz"):
        sparse.save_npz(path, matrix)
    else:
        mmwrite(tmp_path / "a.mtx", matrix, symmetry="general")
        text = (tmp_path / "a.mtx").read_bytes()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    with pytest.raises(FormatError, match=r"about (\d+) bytes, and max_bytes is 5\.") as caught:
        read(path, max_bytes=5)
    assert caught.value.code == "format.read.max_bytes"
    needed = int(str(caught.value).split(" bytes, and")[0].split()[-1])
    assert read(path, max_bytes=needed).nnz == 50
    with pytest.raises(FormatError):
        read(path, max_bytes=needed - 1)


def test_max_bytes_is_an_integer(tmp_path):
    with pytest.raises(ArgumentError, match="max_bytes"):
        read(tmp_path / "a.mtx", max_bytes="1 GB")


def test_by_default_a_small_file_cannot_take_much_memory(tmp_path):
    path = tmp_path / "rows.mtx"
    path.write_bytes(REAL + b"100000000 1 0\n")
    with pytest.raises(FormatError, match="max_bytes is 536870912") as caught:
        read(path)
    assert caught.value.code == "format.read.max_bytes"


def test_the_limit_of_the_address_space_bounds_what_is_read(tmp_path):
    path = tmp_path / "rows.mtx"
    path.write_bytes(REAL + b"100000000 1 0\n")
    program = (
        "import resource; from gossamer_formats import read\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({1 << 30}, {resource.RLIM_INFINITY}))\n"
        f"try: read({str(path)!r}, max_bytes={1 << 40})\n"
        "except Exception as error: print(error.code)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True
    )
    assert done.stdout == "format.read.memory\n"

"""Results are correct whatever happens to the cache; a failure of the cache causes one warning.

Each case is a separate process, which compiles a product and compares it with NumPy's.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.compilation.build_kernels import KERNELS
from gossamer.operator_calls.operator_kernels import KernelSpec, kernel_for
from gossamer.operator_calls.operator_program import Variant
from gossamer.operators.spmm import PROGRAM as PROGRAM_OF_SPMM
from gossamer_backend import ArtifactCache
from gossamer_backend.cache.entry import pack_entry
from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module

pytestmark = pytest.mark.unserialized

PROGRAM = """
import numpy as np, gossamer as gs
indptr, indices = np.array([0, 2, 2, 5], np.int32), np.array([0, 3, 1, 2, 3], np.int32)
A, data = np.zeros((3, 4), np.float32), np.arange(1, 6, dtype=np.float32)
A[[0, 0, 2, 2, 2], indices] = data
B = np.arange(32, dtype=np.float32).reshape(4, 8)
C = gs.spmm(gs.CsrArrays((3, 4), indptr, indices, data), B)
print("right" if np.array_equal(C, A @ B) else "WRONG")
"""
"""SciPy is not imported, which takes as long as all the rest."""
NOBODY = 12345


def start(cache, **variables):
    environment = {**os.environ, "GOSSAMER_CACHE_DIR": str(cache), **variables}
    command = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def warnings_of(process):
    """The warnings of the process about its cache; its result is correct, and it prints nothing else."""
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "right\n"), err
    assert "Traceback" not in err
    return [line for line in err.splitlines() if "CacheWarning" in line]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache that the program has filled."""
    directory = tmp_path_factory.mktemp("filled")
    assert warnings_of(start(directory)) == []
    return directory


@pytest.fixture
def copy(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "copy")
    return tmp_path / "copy"


def files(directory):
    return sorted((Path(directory) / "v1").glob("*.artifact"))


def truncate(directory):
    for path in files(directory):
        os.truncate(path, path.stat().st_size // 2)


def flip_bits(directory):
    for path in files(directory):
        data = bytearray(path.read_bytes())
        for at in range(0, len(data), 97):
            data[at] ^= 0x10
        path.write_bytes(data)


def exchange(directory):
    """Exchanges the contents of all entries."""
    contents = [path.read_bytes() for path in files(directory)]
    for path, data in zip(files(directory), contents[1:] + contents[:1], strict=True):
        path.write_bytes(data)


def only_links(directory):
    max(files(directory), key=lambda path: path.stat().st_size).unlink()


def remove_all(directory):
    shutil.rmtree(directory)


def file_in_its_place(directory):
    shutil.rmtree(directory)
    directory.touch()


def writable_by_others(directory):
    (directory / "v1").chmod(0o777)
    for path in files(directory):
        path.chmod(0o666)


def give_to_another_user(directory):
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    for path in (directory / "v1", *files(directory)):
        os.chown(path, NOBODY, NOBODY)


CASES = [
    (truncate, ""),
    (flip_bits, ""),
    (exchange, ""),
    (only_links, ""),
    (remove_all, ""),
    (file_in_its_place, "Not a directory"),
    (writable_by_others, "writable by others"),
    (give_to_another_user, "belongs to another user"),
]


@pytest.mark.parametrize(("attack", "said"), CASES, ids=[attack.__name__ for attack, _ in CASES])
def test_a_program_is_right_whatever_happened_to_its_cache(copy, attack, said):
    attack(copy)
    messages = warnings_of(start(copy))
    assert len(messages) == bool(said)
    assert all(said in line for line in messages)
    assert all(line.startswith("<string>:7: CacheWarning: ") for line in messages), (
        "the line of spmm"
    )


def test_a_cache_that_may_hold_nothing_holds_nothing(tmp_path):
    assert warnings_of(start(tmp_path, GOSSAMER_CACHE_LIMIT="0")) == []
    assert files(tmp_path) == []


def test_programs_that_race_for_one_entry_are_all_right(tmp_path):
    racing = [start(tmp_path) for _ in range(4)]
    assert [warnings_of(process) for process in racing] == [[]] * 4
    assert list((tmp_path / "v1").glob("*.partial")) == []
    assert warnings_of(start(tmp_path)) == []


def test_programs_killed_at_any_moment_leave_a_cache_that_is_right(tmp_path):
    moments = random.Random(3)
    begin = time.monotonic()
    assert warnings_of(start(tmp_path / "first")) == []
    lasts = time.monotonic() - begin
    for _ in range(6):
        process = start(tmp_path / "killed")
        time.sleep(moments.uniform(0.4, 1.0) * lasts)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert warnings_of(start(tmp_path / "killed")) == []


SCRIPT = """
@T.prim_func
def scale(x: T.handle, n: T.int64):
    I = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I,), "float32")
    with T.sp.iteration([I], "S", "scale") as [i]:
        X[i] = X[i] * T.float32(2)
"""


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty cache for this process, which has loaded nothing from it."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    KERNELS.forget()
    return ArtifactCache()


def build(target="generic-cpu"):
    KERNELS.forget()
    return KERNELS.build_module(parse_module(SCRIPT), target=target)


def the_artifact(store):
    """The file of the only artifact, apart from links."""
    return max(store.path.glob("*.artifact"), key=lambda path: path.stat().st_size)


def test_no_flipped_byte_of_a_real_entry_is_overlooked(store):
    built = build()
    path = the_artifact(store)
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        assert store.get(path.stem) is None
        assert not path.exists()
    assert not build().is_cached
    assert path.read_bytes()[:44] == data[:44]
    assert build().kernel.artifact.signature == built.kernel.artifact.signature


def test_the_entry_of_another_cpu_under_the_right_name_is_a_miss(store):
    build("generic-cpu:cpu=x86-64")
    other_artifact = the_artifact(store).read_bytes()
    store.clear()
    build()
    mine = the_artifact(store)
    mine.write_bytes(other_artifact)
    assert not build().is_cached
    assert build().is_cached
    assert mine.read_bytes() != other_artifact


FOREIGN = {
    "another version": {"backend_version": "0.0.1 with llvmlite 0.1"},
    "another backend": {"backend": "toy"},
    "another machine": {"target": "generic-cpu:cpu=vax", "metadata": (("triple", "vax"),)},
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN.keys())
def test_an_intact_entry_that_the_backend_refuses_is_made_again(store, change):
    """Only a bug or a forger makes such an entry: its checksum and key are correct."""
    artifact = build().kernel.artifact
    path = the_artifact(store)
    foreign = replace(artifact, **change)
    path.write_bytes(pack_entry(path.stem, "artifact", payload=foreign.encode()))
    backend = build()
    assert not backend.is_cached
    assert backend.kernel.artifact.backend_version == artifact.backend_version
    assert build().is_cached


def build_for_rows_of(elements):
    stats = Stats(1024, 1024, 1024 * elements, longest_row=64, empty_rows=0)
    return kernel_for(KernelSpec(PROGRAM_OF_SPMM, Variant(features=16), stats))


def test_another_class_of_stats_with_a_known_kernel_writes_no_file(store):
    first = build_for_rows_of(4)
    written = files(store.path.parent)
    second = build_for_rows_of(5)
    assert second.key != first.key, "the classes differ"
    assert second.kernel is first.kernel
    assert files(store.path.parent) == written


def test_a_process_that_begins_with_a_class_without_a_file_writes_it(store):
    build_for_rows_of(4)
    skipped = build_for_rows_of(5).key
    assert store.get(skipped) is None
    KERNELS.forget()
    assert build_for_rows_of(5).is_cached
    assert store.get(skipped) is not None


def test_the_command_shows_size_and_limit(command, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GOSSAMER_CACHE_LIMIT", "7")
    lines = command("cache", "info").out.splitlines()
    assert lines[0] == f"path     {tmp_path / 'v1'}"
    assert lines[1:] == ["entries  0", "bytes    0", "limit    7000000"]
    monkeypatch.setenv("GOSSAMER_CACHE_LIMIT", "much")
    refused = command("cache", "info")
    assert refused.status == 2
    assert "GOSSAMER_CACHE_LIMIT is 'much', which is not a number of megabytes" in refused.err


def test_the_command_clears_nothing_through_a_link(command, copy, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(copy)
    before = files(copy)
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "link"))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        output = command("cache", "clear")
    assert output.out == "removed 0 entries\n"
    assert f"{tmp_path / 'link'} is a symbolic link" in output.err
    assert files(copy) == before


def test_a_command_whose_cache_cannot_be_used_says_so_once(
    command, matrix_file, tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "file"))
    KERNELS.forget()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        output = command("run", "spmv", "--matrix", matrix_file, "--check")
    assert output.status == 0
    [line] = output.err.splitlines()
    assert line.startswith("warning: The kernel cache is not used: ")
    assert line.endswith("Set GOSSAMER_CACHE_DIR to a directory to which only you can write.")

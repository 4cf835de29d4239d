"""Files of the cache: complete or absent, and read only if no other user can have written them."""

import os
import time

import pytest

from gossamer_backend.cache.directory import open_directory
from gossamer_backend.cache.safe_files import PARTIAL, TOUCHED_EVERY, read_own_file, replace_file


@pytest.fixture
def directory(tmp_path):
    with open_directory(tmp_path / "cache", create=True) as opened:
        yield opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache"


def test_a_file_is_replaced_as_a_whole(directory, path):
    for data in (b"first", b"", b"third"):
        replace_file(directory, "name", data)
        assert read_own_file(directory, "name") == data
    assert os.listdir(path) == ["name"]


def test_a_failed_replacement_leaves_the_old_file_and_nothing_else(directory, path, monkeypatch):
    replace_file(directory, "name", b"old")

    def interrupted(partial, _name):
        assert partial.endswith(PARTIAL)
        assert (path / partial).read_bytes() == b"new"
        raise KeyboardInterrupt

    monkeypatch.setattr(directory, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_file(directory, "name", b"new")
    assert os.listdir(path) == ["name"]
    assert read_own_file(directory, "name") == b"old"


def test_a_file_that_others_may_write_is_not_read(directory, path):
    replace_file(directory, "name", b"code")
    (path / "name").chmod(0o666)
    assert read_own_file(directory, "name") is None


def test_what_is_not_a_regular_file_is_not_read(directory, path):
    os.mkdir(path / "name", 0o700)
    assert read_own_file(directory, "name") is None


@pytest.mark.parametrize(
    ("age", "is_touched"),
    [(2 * TOUCHED_EVERY, True), (-2 * TOUCHED_EVERY, True), (TOUCHED_EVERY / 2, False)],
    ids=["long ago", "in the future", "lately"],
)
def test_the_time_of_use_is_recorded_once_an_hour(directory, path, age, is_touched):
    replace_file(directory, "name", b"code")
    stamp = int(time.time() - age)
    os.utime(path / "name", (stamp, stamp))
    assert read_own_file(directory, "name") == b"code"
    changed = os.stat(path / "name").st_mtime != stamp
    assert changed == is_touched

"""The cache under attack: what is not intact is a miss, and nothing here stops the program."""

import multiprocessing
import os
import signal
import stat
import struct
import tempfile
import time
import warnings

import pytest

from gossamer_backend import Artifact, ArtifactCache, CacheWarning
from gossamer_backend.cache import VARIABLE, default_directory
from gossamer_backend.entry import FORMAT, pack, unpack
from gossamer_ir.build import index_var
from gossamer_ir.contracts import BufferParam, ScalarParam, Signature, Target
from gossamer_ir.errors import ArgumentError

KEY, OTHER, THIRD = "1" * 64, "a" * 64, "f" * 64


def artifact(code=b"machine code"):
    x = BufferParam("x", "X", "float32", (index_var("n"),), is_read=True, is_written=True)
    signature = Signature("f", (x,), (ScalarParam("n", "int64"),), ("x", "n"))
    return Artifact("toy", "1.0", "toy:cpu=any", signature, code, ("X",), (("cpu", "any"),))


@pytest.fixture
def cache(tmp_path):
    return ArtifactCache(tmp_path / "cache")


def the_file(cache, key=KEY):
    return cache.path / f"{key}.artifact"


def test_what_was_put_is_got_by_another_cache_of_the_directory(cache, tmp_path):
    assert cache.get(KEY) is None
    cache.put(KEY, artifact())
    again = ArtifactCache(tmp_path / "cache")
    assert again.get(KEY) == artifact()
    assert again.get(OTHER) is None


def test_a_link_leads_to_its_artifact_and_no_further(cache):
    cache.put(KEY, artifact())
    cache.put_link(OTHER, KEY)
    cache.put_link(THIRD, OTHER)
    assert cache.get(OTHER) == artifact()
    assert cache.get(THIRD) is None
    assert cache.get(OTHER) == artifact()


def test_a_link_to_what_is_gone_is_a_miss(cache):
    cache.put(KEY, artifact())
    cache.put_link(OTHER, KEY)
    the_file(cache).unlink()
    assert cache.get(OTHER) is None


def test_info_and_clear(cache):
    assert (cache.info().entries, cache.info().bytes, cache.clear()) == (0, 0, 0)
    cache.put(KEY, artifact())
    cache.put(KEY, artifact())
    cache.put(OTHER, artifact())
    info = cache.info()
    assert (info.path, info.entries) == (str(cache.path), 2)
    assert info.bytes == 2 * the_file(cache).stat().st_size
    assert cache.clear() == 2
    assert os.listdir(cache.path) == []


DAMAGE = {
    "empty": lambda data: b"",
    "half a header": lambda data: data[:10],
    "no payload": lambda data: data[:88],
    "without its last byte": lambda data: data[:-1],
    "one byte too many": lambda data: data + b"\0",
    "foreign magic": lambda data: b"GOSSAMER" + data[8:],
    "another format version": lambda data: data[:8] + struct.pack("<H", FORMAT + 1) + data[10:],
    "an unknown kind": lambda data: data[:10] + struct.pack("<H", 7) + data[12:],
    "the entry of another key": lambda data: pack(OTHER, "artifact", payload=data[88:]),
    "an intact entry that holds no artifact": lambda data: pack(
        KEY, "artifact", payload=b"nonsense"
    ),
    "zeros, as after a power cut": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_entry_is_removed_and_a_miss(cache, damage):
    cache.put(KEY, artifact())
    the_file(cache).write_bytes(damage(the_file(cache).read_bytes()))
    assert cache.get(KEY) is None
    assert not the_file(cache).exists()
    cache.put(KEY, artifact())
    assert cache.get(KEY) == artifact()


def test_every_single_flipped_bit_is_found():
    data = pack(KEY, "artifact", payload=artifact().encode())
    assert unpack(KEY, data) == ("artifact", artifact().encode())
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        assert unpack(KEY, bytes(flipped)) is None


def test_every_truncation_is_found():
    data = pack(KEY, "link", payload=OTHER.encode())
    assert [size for size in range(len(data) + 1) if unpack(KEY, data[:size])] == [len(data)]


@pytest.mark.parametrize("key", ["", "1" * 63, "G" * 64, "../" + "1" * 61, "A" * 64])
def test_what_is_no_key_is_refused(cache, key):
    for use in (cache.get, lambda key: cache.put(key, artifact())):
        with pytest.raises(ArgumentError) as caught:
            use(key)
        assert caught.value.code == "cache.key"


def test_the_directory_is_private(cache):
    cache.put(KEY, artifact())
    assert stat.S_IMODE(cache.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(the_file(cache).stat().st_mode) == 0o600


def test_a_directory_that_others_may_write_is_not_written_with_one_warning(cache):
    cache.path.mkdir(parents=True)
    cache.path.chmod(0o777)
    with pytest.warns(CacheWarning, match="writable by others"):
        cache.put(KEY, artifact())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ArtifactCache(cache.path.parent).put(OTHER, artifact())
    assert os.listdir(cache.path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("what", ["directory", "file"])
def test_what_belongs_to_another_user_is_not_used(cache, what):
    cache.put(KEY, artifact())
    os.chown(cache.path if what == "directory" else the_file(cache), 12345, 12345)
    if what == "file":
        assert cache.get(KEY) is None
    else:
        with pytest.warns(CacheWarning, match="belongs to another user"):
            cache.put(OTHER, artifact())


def test_a_file_that_others_may_write_is_not_used(cache):
    cache.put(KEY, artifact())
    the_file(cache).chmod(0o666)
    assert cache.get(KEY) is None
    assert not the_file(cache).exists()


def test_a_symbolic_link_is_not_followed(cache, tmp_path):
    cache.put(KEY, artifact())
    elsewhere = tmp_path / "elsewhere"
    the_file(cache).rename(elsewhere)
    the_file(cache).symlink_to(elsewhere)
    assert cache.get(KEY) is None
    assert elsewhere.exists()
    cache.put(KEY, artifact())
    assert cache.get(KEY) == artifact()


def test_a_pipe_in_place_of_an_entry_does_not_block(cache):
    cache.put(KEY, artifact())
    the_file(cache).unlink()
    os.mkfifo(the_file(cache))
    assert cache.get(KEY) is None


@pytest.mark.parametrize("place", ["below a file", "/proc"])
def test_an_impossible_directory_is_a_warning_once(tmp_path, place):
    (tmp_path / "file").touch()
    cache = ArtifactCache(tmp_path / "file" if place == "below a file" else "/proc/gossamer")
    with pytest.warns(CacheWarning, match=f"kernel cache is not used.*{VARIABLE}"):
        cache.put(KEY, artifact())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(KEY, artifact())
        assert cache.get(KEY) is None
    assert (cache.info().entries, cache.clear()) == (0, 0)


def as_nobody(directory, results):
    os.setgroups([])
    os.setgid(12345)
    os.setuid(12345)
    cache = ArtifactCache(directory)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cache.put(OTHER, artifact())
        cache.put(OTHER, artifact())
        found = cache.get(KEY), cache.get(OTHER)
    results.put((found, [str(item.message) for item in caught]))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user, whom only root can become")
def test_a_read_only_directory_is_read_and_not_written(cache, tmp_path):
    cache.put(KEY, artifact())
    for path in (the_file(cache), cache.path):
        os.chown(path, 12345, 12345)
    cache.path.chmod(0o500)
    for parent in cache.path.parents:
        if parent.is_relative_to(tmp_path.parent.parent):
            parent.chmod(0o755)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=as_nobody, args=(cache.path.parent, results))
    child.start()
    found, messages = results.get(timeout=20)
    child.join(timeout=20)
    assert found == (artifact(), None)
    assert len(messages) == 1
    assert "cannot be written: Permission denied" in messages[0]


def test_a_full_disk_is_a_warning_and_leaves_nothing(cache, monkeypatch):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")

    def to_full_disk(*, suffix, dir):
        return os.open("/dev/full", os.O_WRONLY), str(dir / f"x{suffix}")

    monkeypatch.setattr(tempfile, "mkstemp", to_full_disk)
    with pytest.warns(CacheWarning, match="No space left"):
        cache.put(KEY, artifact())
    assert os.listdir(cache.path) == []


def write_often(directory, start, worker):
    cache = ArtifactCache(directory)
    start.wait(timeout=20)
    for _ in range(40):
        cache.put(KEY, artifact(bytes([worker]) * 20000))
        found = cache.get(KEY)
        if found is None or len(set(found.code)) != 1:
            os._exit(1)


def test_writers_that_race_leave_one_whole_entry(cache):
    context = multiprocessing.get_context("fork")
    start = context.Event()
    workers = [
        context.Process(target=write_often, args=(cache.path.parent, start, worker))
        for worker in range(3)
    ]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(timeout=30)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(set(cache.get(KEY).code)) == 1
    assert len(os.listdir(cache.path)) == 1


def write_forever(directory, ready):
    cache = ArtifactCache(directory)
    code = bytes(1 << 22)
    while True:
        cache.put(KEY, artifact(code))
        ready.set()


def test_a_killed_writer_leaves_no_half_entry(cache):
    context = multiprocessing.get_context("fork")
    for delay in (0.0, 0.001, 0.004):
        ready = context.Event()
        child = context.Process(target=write_forever, args=(cache.path.parent, ready))
        child.start()
        assert ready.wait(timeout=20)
        time.sleep(delay)
        os.kill(child.pid, signal.SIGKILL)
        child.join(timeout=20)
        found = unpack(KEY, the_file(cache).read_bytes())
        assert found is not None
        assert cache.get(KEY) == artifact(bytes(1 << 22))
        cache.clear()
        assert os.listdir(cache.path) == []


def test_the_directory_is_chosen_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mine"))
    assert default_directory() == tmp_path / "mine"
    ArtifactCache().put(KEY, artifact())
    assert (tmp_path / "mine" / "v1" / f"{KEY}.artifact").exists()
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory().name == "gossamer"


def test_an_artifact_knows_its_target_and_metadata():
    made = artifact()
    assert made.parsed_target() == Target("toy", (("cpu", "any"),))
    assert (made.metadatum("cpu"), made.metadatum("features", "none")) == ("any", "none")


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x81\xa1x\x01", artifact().encode()[:-3]])
def test_bytes_that_are_no_artifact_are_refused(data):
    with pytest.raises(ArgumentError) as caught:
        Artifact.decode(data)
    assert caught.value.code == "artifact.malformed"

"""The artifact cache with processes that race or die, without disk space, and without permissions.

Everything is real: processes, signals, users, and file systems that are full or read-only (a small tmpfs in
a mount namespace that ends with its process).
"""

import itertools
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings

import pytest

from gossamer_backend import Artifact, ArtifactCache, CacheWarning
from gossamer_backend.cache.settings import CACHE_DIR_VARIABLE, default_directory
from gossamer_ir.interchange.records import Signature

KEY, OTHER = "1" * 64, "a" * 64
NOBODY = 12345
fork = multiprocessing.get_context("fork")
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs another user: only root can be one")


def artifact(code=b"machine code"):
    return Artifact("toy", "1.0", "toy:cpu=any", Signature("f", (), (), ()), code)


@pytest.fixture
def cache(tmp_path):
    return ArtifactCache(tmp_path / "cache")


def the_file(cache, key=KEY):
    return cache.path / f"{key}.artifact"


def entries(cache):
    return sorted(name for name in os.listdir(cache.path) if name.endswith(".artifact"))


def partials(cache):
    return [name for name in os.listdir(cache.path) if name.endswith(".partial")]


def run_all(children):
    for child in children:
        child.start()
    for child in children:
        child.join(timeout=60)
    return [child.exitcode for child in children]


def fill_and_check(directory, start, worker):
    cache = ArtifactCache(directory)
    start.wait(timeout=20)
    for turn in range(60):
        code = bytes([worker, turn]) * 10000
        cache.put(KEY, artifact(code))
        cache.put_link(OTHER, KEY)
        for key in (KEY, OTHER):
            stored = cache.get(key)
            if stored is not None and stored.code != stored.code[:2] * 10000:
                os._exit(1)
    os._exit(0)


def test_processes_that_race_to_fill_an_entry_leave_one_whole_entry(cache):
    start = fork.Barrier(4)
    arguments = [(cache.path.parent, start, worker) for worker in range(4)]
    workers = [fork.Process(target=fill_and_check, args=worker_args) for worker_args in arguments]
    assert run_all(workers) == [0, 0, 0, 0]
    assert cache.get(OTHER) == cache.get(KEY)
    assert {turn for _, turn in [cache.get(KEY).code[:2]]} == {59}
    assert len(entries(cache)) == 2
    assert partials(cache) == []


def clear_often(directory):
    cache = ArtifactCache(directory)
    for _ in range(200):
        cache.clear()
        shutil.rmtree(cache.path, ignore_errors=True)
    os._exit(0)


def test_clearing_while_others_write_gives_misses_and_nothing_else(cache):
    start = fork.Barrier(2)
    writers = [
        fork.Process(target=fill_and_check, args=(cache.path.parent, start, worker))
        for worker in range(2)
    ]
    cleaner = fork.Process(target=clear_often, args=(cache.path.parent,))
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # A directory removed twice during a write may be named.
        assert run_all([*writers, cleaner]) == [0, 0, 0]


def write_forever(directory, ready):
    cache = ArtifactCache(directory)
    made = [artifact(bytes([turn]) * (1 << 20)) for turn in range(2)]
    for content in itertools.cycle(made):
        cache.put(KEY, content)
        ready.set()


def kill_a_writer(cache, *, after):
    ready = fork.Event()
    child = fork.Process(target=write_forever, args=(cache.path.parent, ready))
    child.start()
    assert ready.wait(timeout=20)
    time.sleep(after)
    os.kill(child.pid, signal.SIGKILL)
    child.join(timeout=20)


def test_writers_killed_at_any_moment_leave_no_half_entry(cache):
    """At least 60 writers, and as many as it takes until five were killed while they wrote."""
    moments = random.Random(11)
    for turn in range(600):
        kill_a_writer(cache, after=moments.uniform(0, 0.008))
        artifact = cache.get(KEY)
        assert artifact is not None
        assert artifact.code == artifact.code[:1] * (1 << 20)
        if turn >= 60 and len(partials(cache)) >= 5:
            break
    assert len(partials(cache)) >= 5, "no writer was killed while it wrote"
    assert cache.clear() == 1
    assert not cache.path.exists()


def as_nobody(results, work, *arguments):
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = work(*arguments)
    results.put((result, [str(item.message) for item in caught]))


@pytest.fixture
def nobody(tmp_path):
    """nobody(work, *arguments) returns the result of `work` and its warnings as user "nobody"."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & stat.S_IXOTH:
            break
        folder.chmod(0o755)

    def run(work, *arguments):
        results = fork.Queue()
        child = fork.Process(target=as_nobody, args=(results, work, *arguments))
        child.start()
        result = results.get(timeout=20)
        child.join(timeout=20)
        return result

    return run


def put_twice_and_get(directory):
    cache = ArtifactCache(directory)
    cache.put(OTHER, artifact())
    cache.put(OTHER, artifact())
    return cache.get(KEY), cache.get(OTHER)


@only_root
def test_a_read_only_directory_is_read_and_not_written(cache, nobody):
    cache.put(KEY, artifact())
    for path in (the_file(cache), cache.path):
        os.chown(path, NOBODY, NOBODY)
    cache.path.parent.chmod(0o755)
    cache.path.chmod(0o500)
    result, messages = nobody(put_twice_and_get, cache.path.parent)
    assert result == (artifact(), None)
    assert len(messages) == 1
    assert "cannot be written: Permission denied" in messages[0]


@only_root
def test_a_directory_of_another_user_is_not_used_with_one_warning(cache, nobody):
    cache.put(KEY, artifact())
    cache.path.parent.chmod(0o755)
    result, messages = nobody(put_twice_and_get, cache.path.parent)
    assert result == (None, None)
    assert len(messages) == 1
    assert "belongs to another user" in messages[0]
    cache.path.chmod(0o755)
    the_file(cache).chmod(0o644)
    result, messages = nobody(put_twice_and_get, cache.path.parent)
    assert result == (None, None)
    assert len(messages) == 1
    assert "belongs to another user" in messages[0]
    assert cache.get(KEY) == artifact(), "a process of another user removed it"


def without_a_home(temporary):
    os.environ.pop("HOME", None)
    os.environ.pop("XDG_CACHE_HOME", None)
    os.environ.pop(CACHE_DIR_VARIABLE, None)
    os.environ["TMPDIR"] = temporary
    tempfile.tempdir = None
    cache = ArtifactCache()
    cache.put(KEY, artifact())
    return str(cache.path), ArtifactCache().get(KEY)


@only_root
def test_a_user_without_a_home_has_a_cache_beside_the_temporary_files(tmp_path, nobody):
    default_directory()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    result, messages = nobody(without_a_home, str(temporary))
    assert result == (str(temporary / f"gossamer-{NOBODY}" / "v1"), artifact())
    assert messages == []


def clear_without_a_home(temporary):
    result = without_a_home(temporary)
    return *result, ArtifactCache().clear()


@only_root
def test_a_user_without_a_home_is_not_led_to_a_directory_of_his_own(tmp_path, nobody):
    """Another user has put a link to it where the cache would be."""
    temporary, victim = tmp_path / "tmp", tmp_path / "victim"
    temporary.mkdir()
    temporary.chmod(0o1777)
    link = temporary / f"gossamer-{NOBODY}"
    link.symlink_to(victim)
    os.chown(link, NOBODY + 1, NOBODY + 1, follow_symlinks=False)
    (victim / "v1").mkdir(parents=True)
    (victim / "v1" / f"{OTHER}.artifact").write_bytes(b"precious")
    for path in (victim, *victim.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    result, messages = nobody(clear_without_a_home, str(temporary))
    assert result == (str(link / "v1"), None, 0)
    assert len(messages) == 1
    assert f"{link} is a symbolic link" in messages[0]
    assert os.listdir(victim / "v1") == [f"{OTHER}.artifact"]


def test_without_HOME_the_home_of_the_user_is_used(monkeypatch):
    for name in (CACHE_DIR_VARIABLE, "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert default_directory().is_absolute()


def test_a_working_directory_that_is_gone_is_a_warning(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    cache = ArtifactCache("relative")
    with pytest.warns(CacheWarning, match="No such file or directory"):
        cache.put(KEY, artifact())
    assert cache.get(KEY) is None
    monkeypatch.chdir(tmp_path)


def with_small_files(directory, results):
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    cache = ArtifactCache(directory)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for key in (KEY, OTHER):
            cache.put(key, artifact(bytes(100_000)))
        cache.put("2" * 64, artifact())
    results.put([str(item.message) for item in caught])


def test_a_limit_on_the_size_of_files_is_a_warning_and_leaves_nothing(cache):
    results = fork.Queue()
    child = fork.Process(target=with_small_files, args=(cache.path.parent, results))
    child.start()
    messages = results.get(timeout=20)
    child.join(timeout=20)
    assert len(messages) == 1
    assert "File too large. Make room" in messages[0]
    assert entries(cache) == ["2" * 64 + ".artifact"]
    assert partials(cache) == []


PRELUDE = """
import json, os, subprocess, sys, warnings
from gossamer_backend import Artifact, ArtifactCache
from gossamer_ir.interchange.records import Signature
def artifact(code):
    return Artifact("toy", "1.0", "toy", Signature("f", (), (), ()), code)
def mount(options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", sys.argv[1]], check=True)
warnings.simplefilter("always")
cache = ArtifactCache(sys.argv[1])
"""
FULL_DISK = """
mount("size=256k,mode=700")
small, large = artifact(b"small"), artifact(bytes(300_000))
cache.put("1" * 64, small)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cache.put("2" * 64, large)
    cache.put("1" * 64, large)
    for number in range(100):
        cache.put(f"{number:064x}", artifact(bytes([number]) * 5000))
    stored = [cache.get(f"{number:064x}") for number in range(100)]
print(json.dumps({
    "small": cache.get("1" * 64) == small,
    "kept": sum(entry is not None for entry in stored),
    "right": all(e is None or e.code == bytes([n]) * 5000 for n, e in enumerate(stored)),
    "partial": [name for name in os.listdir(cache.path) if name.endswith(".partial")],
    "messages": [str(item.message) for item in caught],
}))
"""
READ_ONLY_DISK = """
mount("size=256k,mode=700")
cache.put("1" * 64, artifact(b"small"))
os.utime(cache.path / ("1" * 64 + ".artifact"), (0, 0))
subprocess.run(["mount", "-o", "remount,ro", sys.argv[1]], check=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cache.put("2" * 64, artifact(b"another"))
    cache.put("2" * 64, artifact(b"another"))
    stored = cache.get("1" * 64), cache.get("2" * 64)
print(json.dumps({
    "correct": [stored[0] == artifact(b"small"), stored[1] is None],
    "messages": [str(item.message) for item in caught],
}))
"""


@pytest.fixture
def on_a_small_disk(tmp_path):
    """on_a_small_disk(script) returns the output of a script in a process that may mount its own file
    system."""
    words = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    place = tmp_path / "disk"
    place.mkdir()
    trial = f"mount -t tmpfs -o size=256k none {place}"
    if subprocess.run([*words, "sh", "-c", trial], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here, not even in a namespace")

    def run(script):
        command = [*words, sys.executable, "-c", PRELUDE + script, str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return run


def test_a_full_disk_is_a_warning_and_leaves_nothing(on_a_small_disk):
    result = on_a_small_disk(FULL_DISK)
    assert result["small"]
    assert result["right"]
    assert 10 < result["kept"] < 60
    assert result["partial"] == []
    assert len(result["messages"]) == 1
    assert (
        f"No space left on device. Make room, or set {CACHE_DIR_VARIABLE}" in result["messages"][0]
    )


def test_a_read_only_disk_is_read_and_not_written(on_a_small_disk):
    result = on_a_small_disk(READ_ONLY_DISK)
    assert result["correct"] == [True, True]
    assert len(result["messages"]) == 1
    assert "cannot be written: Read-only file system" in result["messages"][0]

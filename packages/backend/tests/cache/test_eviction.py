"""The limit of the space on disk: least recently used entries are removed, without a scan at every put."""

import multiprocessing
import os
import time

import pytest

import gossamer_backend.cache.eviction
from gossamer_backend import Artifact, ArtifactCache
from gossamer_backend.cache.directory import open_directory
from gossamer_backend.cache.eviction import COUNTER, evict_entries
from gossamer_backend.cache.settings import CACHE_LIMIT_VARIABLE, DEFAULT_LIMIT
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Signature

DAY = 86400
SIZE = 10_000
SPACE = 3 * 4096
"""The space on disk of an entry of `SIZE` bytes."""


def key(number):
    return f"{number:064x}"


def artifact(number):
    return Artifact("toy", "1.0", "toy", Signature("f", (), (), ()), bytes([number % 256]) * SIZE)


def the_file(cache, number):
    return cache.path / f"{key(number)}.artifact"


def make_old(cache, number, *, days):
    then = time.time() - days * DAY
    os.utime(the_file(cache, number), (then, then))


def kept(cache, numbers):
    return [number for number in numbers if the_file(cache, number).exists()]


def space_on_disk(directory):
    return sum(512 * os.lstat(path).st_blocks for path in (directory, *directory.iterdir()))


def sweep_to(cache, size):
    with open_directory(cache.path) as directory:
        evict_entries(directory, suffix=".artifact", size=size)


@pytest.fixture
def roomy(tmp_path):
    return ArtifactCache(tmp_path, limit=100 * SIZE)


def fill(cache, count):
    """Puts entries 0, 1, ...; the first is the least recently used."""
    for number in range(count):
        cache.put(key(number), artifact(number))
        make_old(cache, number, days=2 * count - number)


def test_the_entries_used_longest_ago_go_first(roomy):
    fill(roomy, 8)
    sweep_to(roomy, 4 * SPACE)
    assert kept(roomy, range(8)) == [5, 6, 7]
    assert roomy.info().bytes <= 4 * SPACE


def test_a_hit_makes_an_entry_and_its_link_young(roomy):
    fill(roomy, 8)
    roomy.put_link(key(8), key(0))
    make_old(roomy, 8, days=20)
    assert roomy.get(key(8)) == artifact(0)
    sweep_to(roomy, 4 * SPACE)
    assert kept(roomy, range(9)) == [0, 6, 7, 8]


def test_a_hit_touches_a_file_once_an_hour_at_most(roomy):
    roomy.put(key(0), artifact(0))
    for seconds, is_touched in ((60, False), (7200, True), (-7200, True)):
        then = time.time() - seconds
        os.utime(the_file(roomy, 0), (then, then))
        assert roomy.get(key(0)) == artifact(0)
        assert (the_file(roomy, 0).stat().st_mtime != pytest.approx(then)) is is_touched


def test_a_link_to_what_was_evicted_is_a_miss_and_removed(roomy):
    fill(roomy, 2)
    roomy.put_link(key(8), key(0))
    sweep_to(roomy, 2 * SPACE)
    assert kept(roomy, (0, 1, 8)) == [1, 8]
    assert roomy.get(key(8)) is None
    assert kept(roomy, (0, 1, 8)) == [1]


def test_the_space_stays_below_the_limit(tmp_path):
    cache = ArtifactCache(tmp_path, limit=30 * SPACE)
    for number in range(150):
        cache.put(key(number), artifact(number))
        cache.put_link(key(1000 + number), key(number))
        assert space_on_disk(cache.path) <= cache.limit
    assert len(kept(cache, range(150))) > 15
    assert cache.get(key(149)) == artifact(149)


@pytest.mark.parametrize("limit", [200_000, 1_000_000, 4_000_000])
def test_thousands_of_links_take_no_more_than_the_limit_on_disk(tmp_path, limit):
    cache = ArtifactCache(tmp_path, limit=limit)
    largest = 0
    for number in range(2000):
        if number % 20 == 0:
            cache.put(key(number), artifact(number))
        cache.put_link(key(10_000 + number), key(number - number % 20))
        if number % 29 == 0:
            largest = max(largest, space_on_disk(cache.path))
    assert 0.6 * limit < largest <= limit
    assert cache.get(key(11_999)) == artifact(1980)
    assert cache.info().bytes == space_on_disk(cache.path)


def test_the_directory_is_read_once_per_eighth_of_the_limit(roomy, monkeypatch):
    sweeps = []
    monkeypatch.setattr(
        gossamer_backend.cache.eviction,
        "evict_entries",
        lambda directory, **_: sweeps.append(len(os.listdir(directory.path))),
    )
    for number in range(100):
        roomy.put(key(number), artifact(number))
    # An entry of 10 kB has three blocks of 4 KiB; eleven of them are an eighth of a megabyte.
    assert len(sweeps) == 100 // 11


def test_what_is_larger_than_the_limit_is_not_kept(tmp_path):
    for limit in (0, SIZE):
        cache = ArtifactCache(tmp_path, limit=limit)
        cache.put(key(0), artifact(0))
        assert cache.get(key(0)) is None
    assert kept(cache, [0]) == []


def test_what_killed_writers_left_is_removed_after_an_hour(roomy):
    fill(roomy, 1)
    old, young = roomy.path / "old.partial", roomy.path / "young.partial"
    for path, hours in ((old, 2), (young, 0)):
        path.write_bytes(bytes(SIZE))
        os.utime(path, (time.time() - hours * 3600, time.time() - hours * 3600))
    sweep_to(roomy, 100 * SPACE)
    assert (old.exists(), young.exists(), kept(roomy, [0])) == (False, True, [0])
    sweep_to(roomy, SPACE)
    assert (young.exists(), kept(roomy, [0])) == (True, [])


def test_a_counter_that_cannot_be_written_means_that_every_put_sweeps(tmp_path):
    cache = ArtifactCache(tmp_path, limit=5 * SIZE)
    cache.path.mkdir(mode=0o700)
    os.mkfifo(cache.path / COUNTER)
    for number in range(20):
        cache.put(key(number), artifact(number))
        assert cache.info().bytes <= cache.limit
    assert not (cache.path / COUNTER).is_fifo()


def fill_for_long(directory, worker):
    cache = ArtifactCache(directory, limit=30 * SPACE)
    for turn in range(100):
        number = 1000 * worker + turn
        cache.put(key(number), artifact(number))
        for other in (number, turn):
            stored = cache.get(key(other))
            if stored is not None and stored != artifact(other):
                os._exit(1)
    os._exit(0)


def test_processes_that_write_and_evict_at_once_agree(tmp_path):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=fill_for_long, args=(tmp_path, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    cache = ArtifactCache(tmp_path, limit=30 * SPACE)
    assert 10 * SPACE < cache.info().bytes <= cache.limit + 3 * SPACE


@pytest.mark.parametrize(
    ("text", "limit"), [("", DEFAULT_LIMIT), ("0", 0), (" 64 ", 64_000_000), ("100000", 10**11)]
)
def test_the_environment_chooses_the_limit(tmp_path, monkeypatch, text, limit):
    monkeypatch.setenv(CACHE_LIMIT_VARIABLE, text)
    assert ArtifactCache(tmp_path).limit == limit
    assert ArtifactCache(tmp_path).info().limit == limit
    assert ArtifactCache(tmp_path, limit=7).limit == 7


@pytest.mark.parametrize("text", ["lots", "-1", "1.5", "1e3", "512MB", "²", "9" * 5000])
def test_a_limit_that_is_no_number_is_refused(tmp_path, monkeypatch, text):
    monkeypatch.setenv(CACHE_LIMIT_VARIABLE, text)
    with pytest.raises(ArgumentError, match="is not a number of megabytes") as caught:
        ArtifactCache(tmp_path)
    assert caught.value.code == "cache.limit"

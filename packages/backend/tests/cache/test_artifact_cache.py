"""The artifact cache: a damaged entry counts as a miss, and files of other users are never used."""

import os
import stat
import struct
import warnings

import pytest
from cached_artifacts import FOURTH, KEY, OTHER, THIRD, artifact

from gossamer_backend import Artifact, ArtifactCache, CacheWarning
from gossamer_backend.cache.entry import ENTRY_FORMAT, pack_entry
from gossamer_backend.cache.settings import CACHE_DIR_VARIABLE
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target


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


def test_two_links_lead_to_an_artifact_and_no_more(cache):
    cache.put(KEY, artifact())
    cache.put_link(OTHER, KEY)
    cache.put_link(THIRD, OTHER)
    cache.put_link(FOURTH, THIRD)
    assert cache.get(OTHER) == artifact()
    assert cache.get(THIRD) == artifact()
    assert cache.get(FOURTH) is None
    cache.put_link(OTHER, OTHER)
    assert cache.get(OTHER) is None


def test_links_in_a_circle_are_a_miss(cache):
    cache.put_link(KEY, OTHER)
    cache.put_link(OTHER, KEY)
    assert cache.get(KEY) is None


def test_links_to_what_is_gone_are_misses_and_removed(cache):
    cache.put(KEY, artifact())
    cache.put_link(OTHER, KEY)
    cache.put_link(THIRD, OTHER)
    the_file(cache).unlink()
    assert cache.get(THIRD) is None
    assert cache.info().entries == 0


def test_an_entry_is_discarded_with_what_it_links_to(cache):
    cache.put(KEY, artifact())
    cache.put_link(OTHER, KEY)
    cache.put_link(THIRD, OTHER)
    cache.put(FOURTH, artifact())
    cache.discard(THIRD)
    assert cache.info().entries == 1
    cache.discard(THIRD)
    assert cache.get(FOURTH) == artifact()


def test_info_and_clear(cache):
    assert (cache.info().entries, cache.info().bytes, cache.clear()) == (0, 0, 0)
    cache.put(KEY, artifact())
    cache.put(KEY, artifact())
    cache.put(OTHER, artifact())
    info = cache.info()
    assert (info.path, info.entries) == (str(cache.path), 2)
    assert info.bytes == sum(
        512 * path.stat().st_blocks for path in (cache.path, *cache.path.iterdir())
    )
    assert cache.clear() == 2
    assert not cache.path.exists()


DAMAGE = {
    "empty": lambda data: b"",
    "half a header": lambda data: data[:10],
    "no payload": lambda data: data[:88],
    "without its last byte": lambda data: data[:-1],
    "one byte too many": lambda data: data + b"\0",
    "foreign magic": lambda data: b"GOSSAMER" + data[8:],
    "another format version": lambda data: (
        data[:8] + struct.pack("<H", ENTRY_FORMAT + 1) + data[10:]
    ),
    "an unknown kind": lambda data: data[:10] + struct.pack("<H", 7) + data[12:],
    "the entry of another key": lambda data: pack_entry(OTHER, "artifact", payload=data[88:]),
    "an intact entry that holds no artifact": lambda data: pack_entry(
        KEY, "artifact", payload=b"nonsense"
    ),
    "an intact link to no key": lambda data: pack_entry(KEY, "link", payload=b"\xff" * 64),
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


@pytest.mark.parametrize("key", ["", "1" * 63, "G" * 64, "../" + "1" * 61, "A" * 64])
def test_what_is_not_a_key_is_refused(cache, key):
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


def test_a_directory_in_place_of_an_entry_is_a_miss(cache):
    cache.put(KEY, artifact())
    the_file(cache).unlink()
    the_file(cache).mkdir()
    assert cache.get(KEY) is None
    with pytest.warns(CacheWarning, match="Is a directory"):
        cache.put(KEY, artifact())
    assert cache.get(KEY) is None


def test_a_pipe_in_place_of_an_entry_does_not_block(cache):
    cache.put(KEY, artifact())
    the_file(cache).unlink()
    os.mkfifo(the_file(cache))
    assert cache.get(KEY) is None


@pytest.mark.parametrize("place", ["below a file", "/proc"])
def test_an_impossible_directory_is_a_warning_once(tmp_path, place):
    (tmp_path / "file").touch()
    cache = ArtifactCache(tmp_path / "file" if place == "below a file" else "/proc/gossamer")
    with pytest.warns(CacheWarning, match=f"kernel cache is not used.*{CACHE_DIR_VARIABLE}"):
        cache.put(KEY, artifact())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(KEY, artifact())
        assert cache.get(KEY) is None
    assert (cache.info().entries, cache.clear()) == (0, 0)


def test_an_artifact_knows_its_target_and_metadata():
    made = artifact()
    assert made.parsed_target() == Target("toy", (("cpu", "any"),))
    assert (made.metadatum("cpu"), made.metadatum("features", "none")) == ("any", "none")


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x81\xa1x\x01", artifact().encode()[:-3]])
def test_bytes_that_are_no_artifact_are_refused(data):
    with pytest.raises(ArgumentError) as caught:
        Artifact.decode(data)
    assert caught.value.code == "artifact.malformed"

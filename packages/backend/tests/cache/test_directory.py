"""A directory that another user may have chosen is neither read, written nor cleared."""

import contextlib
import itertools
import linecache
import os
import threading
import time
import warnings
from functools import partial

import pytest

from gossamer_backend import Artifact, ArtifactCache, CacheWarning
from gossamer_ir.interchange.records import Signature

KEY, OTHER = "1" * 64, "a" * 64
SOMEBODY = 12345
pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no owners")
only_root = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root can give a file away"
)


def artifact():
    return Artifact("toy", "1.0", "toy", Signature("f", (), (), ()), b"machine code")


@pytest.fixture
def shared(tmp_path):
    """A directory such as /tmp: everybody may write to it, but may only remove their own files."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    return tmp_path / "shared"


@pytest.fixture
def elsewhere(tmp_path):
    """A cache of the user to which another user wants to redirect accesses."""
    cache = ArtifactCache(tmp_path / "elsewhere")
    cache.put(KEY, artifact())
    return cache.path.parent


def give_away(path):
    os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)


def link_for_the_directory(base, elsewhere):
    base.symlink_to(elsewhere)
    return base


def link_for_the_last_level(base, elsewhere):
    base.mkdir(mode=0o700)
    (base / "v1").symlink_to(elsewhere / "v1")
    return base / "v1"


def moved(elsewhere, base):
    elsewhere.rename(base)
    return base


def directory_of_another_user(base, elsewhere):
    give_away(moved(elsewhere, base))
    return base


def last_level_of_another_user(base, elsewhere):
    give_away(moved(elsewhere, base) / "v1")
    return base / "v1"


def directory_that_a_group_may_write(base, elsewhere):
    moved(elsewhere, base).chmod(0o770)
    return base


def directory_that_all_may_write(base, elsewhere):
    moved(elsewhere, base).chmod(0o777)
    return base


def last_level_that_a_group_may_write(base, elsewhere):
    (moved(elsewhere, base) / "v1").chmod(0o770)
    return base / "v1"


def last_level_that_all_may_write(base, elsewhere):
    (moved(elsewhere, base) / "v1").chmod(0o1777)
    return base / "v1"


def parent_where_all_may_rename(base, elsewhere):
    moved(elsewhere, base)
    base.parent.chmod(0o777)
    return base.parent


LEVELS = [
    (link_for_the_directory, "is a symbolic link"),
    (link_for_the_last_level, "is a symbolic link"),
    pytest.param(directory_of_another_user, "belongs to another user", marks=only_root),
    pytest.param(last_level_of_another_user, "belongs to another user", marks=only_root),
    (directory_that_a_group_may_write, "is writable by others"),
    (directory_that_all_may_write, "is writable by others"),
    (last_level_that_a_group_may_write, "is writable by others"),
    (last_level_that_all_may_write, "is writable by others"),
    (parent_where_all_may_rename, "is writable by all users, and not sticky"),
]


def contents(directory):
    return sorted(
        (str(path.relative_to(directory)), path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    )


USES = {
    "get": lambda cache: cache.get(KEY),
    "put": lambda cache: cache.put(OTHER, artifact()),
    "link": lambda cache: cache.put_link(OTHER, KEY),
    "discard": lambda cache: cache.discard(KEY),
    "clear": lambda cache: cache.clear() or None,
    "info": lambda cache: cache.info().entries or None,
}


def require_unused(cache, where, reason, *, watched):
    """Each use returns None and neither writes nor removes a file; the first warning names the directory
    level."""
    before = contents(watched)
    with pytest.warns(CacheWarning) as caught:
        assert [use(cache) for use in USES.values()] == [None] * len(USES)
    [message] = [str(warning.message) for warning in caught]
    assert f"is not used: {where} {reason}" in message
    assert contents(watched) == before


@pytest.mark.parametrize(("prepare", "reason"), LEVELS)
def test_an_unsafe_level_is_not_used(shared, elsewhere, prepare, reason):
    where = prepare(shared / "gossamer", elsewhere)
    require_unused(ArtifactCache(shared / "gossamer"), where, reason, watched=shared.parent)


@pytest.mark.parametrize("use", USES)
def test_each_use_alone_warns(shared, elsewhere, use):
    (shared / "gossamer").symlink_to(elsewhere)
    with pytest.warns(CacheWarning, match="gossamer is a symbolic link"):
        assert USES[use](ArtifactCache(shared / "gossamer")) is None


@only_root
@pytest.mark.parametrize("what", ["link", "directory"])
def test_what_another_user_put_above_the_directory_is_not_followed(shared, elsewhere, what):
    if what == "link":
        (shared / "between").symlink_to(elsewhere.parent)
    else:
        (shared / "between").mkdir()
    give_away(shared / "between")
    cache = ArtifactCache(shared / "between" / "elsewhere")
    require_unused(cache, shared / "between", "belongs to another user", watched=elsewhere.parent)


def test_levels_that_are_created_are_private(shared):
    cache = ArtifactCache(shared / "some" / "where" / "cache")
    before = os.umask(0o002)
    try:
        cache.put(KEY, artifact())
    finally:
        os.umask(before)
    assert cache.get(KEY) == artifact()
    for level in (cache.path, *cache.path.parents[:3]):
        assert level.stat().st_mode & 0o777 == 0o700


def test_a_link_of_the_users_above_the_directory_is_followed(tmp_path, elsewhere):
    (tmp_path / "absolute").symlink_to(elsewhere.parent)
    (tmp_path / "relative").symlink_to("absolute/../" + tmp_path.name)
    for name in ("absolute", "relative"):
        assert ArtifactCache(tmp_path / name / "elsewhere").get(KEY) == artifact()


def test_links_in_a_circle_are_a_warning(tmp_path):
    (tmp_path / "circle").symlink_to("circle")
    with pytest.warns(CacheWarning, match="Too many levels of symbolic links"):
        assert ArtifactCache(tmp_path / "circle" / "cache").get(KEY) is None


def test_a_sticky_directory_may_hold_the_last_level(shared):
    cache = ArtifactCache(shared)
    cache.put(KEY, artifact())
    assert cache.get(KEY) == artifact()


def test_a_directory_may_be_searchable_only(tmp_path):
    cache = ArtifactCache(tmp_path / "above" / "cache")
    cache.put(KEY, artifact())
    (tmp_path / "above").chmod(0o100)
    (tmp_path / "above" / "cache").chmod(0o300)
    assert cache.get(KEY) == artifact()
    (tmp_path / "above").chmod(0o700)
    cache.path.parent.chmod(0o700)


def exchange_for_ever(base, elsewhere, done):
    """Replaces the directory by a link repeatedly, while the cache may create the directory."""
    for turn in itertools.count():
        if done.is_set():
            return
        spare = base.with_name(f"spare{turn}")
        for step in (
            partial(base.rename, spare),
            partial(base.symlink_to, elsewhere),
            base.unlink,
            partial(spare.rename, base),
        ):
            with contextlib.suppress(OSError):
                step()


def test_a_level_that_is_exchanged_during_a_use_never_leads_elsewhere(shared, elsewhere):
    base, done = shared / "gossamer", threading.Event()
    ArtifactCache(base).put(OTHER, artifact())
    before = contents(elsewhere)
    thread = threading.Thread(target=exchange_for_ever, args=(base, elsewhere, done))
    thread.start()
    end = time.monotonic() + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end:
            cache = ArtifactCache(base)
            cache.put(OTHER, artifact())
            assert cache.get(KEY) is None
            cache.clear()
    done.set()
    thread.join()
    assert contents(elsewhere) == before


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors cannot be counted")
def test_no_use_leaves_a_descriptor_open(shared, elsewhere):
    cache = ArtifactCache(elsewhere)
    (cache.path / f"{OTHER}.artifact").mkdir()
    (shared / "gossamer").symlink_to(elsewhere)
    unsafe = ArtifactCache(shared / "gossamer")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = descriptors()
        for _ in range(3):
            assert cache.get(OTHER) is None
            for use in USES.values():
                use(cache)
                use(unsafe)
        assert descriptors() == before


OURS = """
def use(cache, key):
    return cache.get(key)
"""


@pytest.mark.parametrize("module", ["gossamer", "gossamer.deep.inside", "gossamer_plugin.x"])
def test_the_warning_names_the_line_that_called_gossamer(shared, elsewhere, module):
    (shared / "gossamer").symlink_to(elsewhere)
    inside = {"__name__": module}
    exec(compile(OURS, "inside.py", "exec"), inside)
    with pytest.warns(CacheWarning) as caught:
        inside["use"](ArtifactCache(shared / "gossamer"), KEY)
    [warning] = caught
    assert warning.filename == __file__
    assert 'inside["use"](Art' in linecache.getline(__file__, warning.lineno)

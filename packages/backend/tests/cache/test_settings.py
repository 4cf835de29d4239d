"""The directory and the limit of the cache, as the environment sets them."""

from cached_artifacts import KEY, artifact

from gossamer_backend import ArtifactCache
from gossamer_backend.cache.settings import CACHE_DIR_VARIABLE, default_directory


def test_the_directory_is_chosen_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_DIR_VARIABLE, str(tmp_path / "mine"))
    assert default_directory() == tmp_path / "mine"
    ArtifactCache().put(KEY, artifact())
    assert (tmp_path / "mine" / "v1" / f"{KEY}.artifact").exists()
    monkeypatch.delenv(CACHE_DIR_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory().name == "gossamer"

"""Versions of the packages whose code a cached kernel depends on."""

import gossamer_ir
from gossamer_backend import package_versions


def test_an_edited_source_file_changes_the_version(tmp_path, monkeypatch):
    package = tmp_path / "edited_package"
    package.mkdir()
    (package / "__init__.py").touch()
    info = tmp_path / "edited_package-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: edited-package\nVersion: 2.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert package_versions(["edited-package"]) == {"edited-package": "2.0"}
    (info / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}')
    first = package_versions(["edited-package"])["edited-package"]
    (package / "__init__.py").write_text("x = 1\n")
    second = package_versions(["edited-package"])["edited-package"]
    assert first != second
    assert first.startswith("2.0+edited.")


def test_another_wheel_of_the_same_version_is_another_version(tmp_path, monkeypatch):
    info = tmp_path / "some_package-2.0.dist-info"
    info.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert package_versions(["some-package"]) == {"some-package": "2.0"}
    (info / "direct_url.json").write_text('{"url": "file:///x.whl", "archive_info": {}}')
    keys = []
    for digest in ("1", "2", "2"):
        (info / "RECORD").write_text(f"some_package/__init__.py,sha256={digest},12\n")
        keys.append(package_versions(["some-package"])["some-package"])
    assert keys[0].startswith("2.0+local.")
    assert keys[0] != keys[1] == keys[2]


def test_versions_of_gossamers_own_packages_are_found():
    assert gossamer_ir.__name__ == "gossamer_ir"
    assert package_versions(["gossamer-ir"])["gossamer-ir"]

"""Keys of the artifact cache: what they depend on, and versions of the source files in them."""

import os
import subprocess
import sys

import pytest

import gossamer_ir
from gossamer_backend import object_key, package_versions, request_key
from gossamer_ir.interchange.records import Schedule, Step, Target
from gossamer_ir.nodes import Function, Module, Param
from gossamer_machine import Machine

MODULE = Module("coordinate", (Function("f", (Param("x", "handle"),), ()),), "f")
OTHER = Module("coordinate", (Function("g", (Param("x", "handle"),), ()),), "g")
SPLIT = Schedule(loop=(Step("split", {"loop": "i", "factors": (None, 4)}),))
BASE = {
    "module": MODULE,
    "schedule": Schedule(),
    "target": "toy:cpu=a",
    "machine": Machine(),
    "versions": {"ir": "1", "lower": "2"},
}
CHANGES = {
    "module": OTHER,
    "schedule": SPLIT,
    "target": "toy:cpu=b",
    "machine": Machine(vector_registers=16),
    "versions": {"ir": "1", "lower": "3"},
}


def key_of(**changes):
    options = BASE | changes
    return request_key(**options)


@pytest.mark.parametrize(("part", "value"), CHANGES.items())
def test_each_part_changes_the_request_key(part, value):
    assert key_of(**{part: value}) != key_of()


def test_what_is_equal_has_one_key():
    assert key_of() == key_of(target=Target("toy", (("cpu", "a"),)))
    assert key_of() == key_of(versions={"lower": "2", "ir": "1"})
    assert len({key_of(versions={"ab": "c"}), key_of(versions={"a": "bc"})}) == 2


def test_the_two_kinds_of_key_differ():
    options = {"target": "toy", "versions": {}}
    assert object_key(MODULE, **options) != request_key(
        MODULE, Schedule(), machine=Machine(), **options
    )
    assert object_key(MODULE, **options) != object_key(OTHER, **options)


def test_keys_are_the_same_in_another_process():
    script = (
        "from gossamer_backend import object_key\n"
        "from gossamer_ir.nodes import Function, Module, Param\n"
        "f = Function('f', (Param('x', 'handle'),), ())\n"
        "print(object_key(Module('coordinate', (f,), 'f'), target='toy', versions={'a': '1'}))\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": "123"}
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert process.stdout.strip() == object_key(MODULE, target="toy", versions={"a": "1"})


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

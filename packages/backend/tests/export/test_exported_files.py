"""The files of an export: all of them or none."""

import json

import pytest
from exported_kernels import OBJECT, artifact, elf

from gossamer_backend.export import export_artifact
from gossamer_ir.errors import ArgumentError, UnsupportedError

BROKEN = {
    "no bytes": b"",
    "wire text": b'{"gossamer_ir":[0,1]}' * 10,
    "cut off": OBJECT[:100],
    "sections cut off": OBJECT[:-1],
    "32 bits": OBJECT[:4] + b"\x01" + OBJECT[5:],
    "an executable": OBJECT[:16] + b"\x02" + OBJECT[17:],
    "no kernel in it": elf(("other", True)),
    "the kernel undefined": elf(("gossamer_kernel", False)),
    "no symbols": OBJECT[: -128 + 4] + b"\x00" + OBJECT[-128 + 5 :],
    "symbols beyond the end": OBJECT[: -128 + 32] + b"\xff\xff\xff" + OBJECT[-128 + 35 :],
}


@pytest.mark.parametrize("code", BROKEN.values(), ids=BROKEN)
def test_what_is_not_an_object_file_is_refused_and_nothing_is_written(code, tmp_path):
    with pytest.raises(UnsupportedError) as caught:
        export_artifact(artifact(code), tmp_path / "out")
    assert caught.value.code == "backend.export"
    assert not (tmp_path / "out").exists()


def test_without_a_linker_the_rest_is_written_and_the_reason_given(tmp_path, no_linker):
    stale = tmp_path / "out" / "libk.so"
    stale.parent.mkdir()
    stale.write_bytes(b"of an earlier export")
    files = export_artifact(artifact(), tmp_path / "out", name="k")
    assert files.library is None
    assert files.no_library == "no linker was found (cc, gcc, clang, ld, ld.lld)"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["k.h", "k.json", "k.o"]


def test_a_linker_that_fails_is_no_failure(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("cc", "ld"):
        (programs / name).write_text(
            f"#!/bin/sh\necho details >&2\necho {name} is broken >&2\nexit 1\n"
        )
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    files = export_artifact(artifact(), tmp_path / "out", name="k")
    assert files.library is None
    assert files.no_library == "ld failed: ld is broken"


def test_an_export_replaces_an_earlier_one(tmp_path, no_linker):
    export_artifact(artifact(), tmp_path, name="k")
    files = export_artifact(artifact(bounds_checked_buffers=("P",)), tmp_path, name="k")
    assert json.loads(files.manifest.read_text())["bounds_checked_buffers"] == ["P"]
    assert len(list(tmp_path.glob("*k*"))) == 3


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_directory_that_cannot_be_written_is_named(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="file") as caught:
        export_artifact(artifact(), tmp_path / place)
    assert caught.value.code == "export.directory"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["k.o", "k.json", "libk.so"])
def test_a_file_in_the_way_leaves_the_directory_as_it_was(tmp_path, no_linker, name):
    (tmp_path / "out" / name).mkdir(parents=True)
    with pytest.raises(ArgumentError, match=name):
        export_artifact(artifact(), tmp_path / "out", name="k")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]

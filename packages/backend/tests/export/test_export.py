"""Exported artifacts: the renamed symbol of the object, the header and the manifest; all files or none."""

import ctypes
import hashlib
import json
import shutil
import struct
import subprocess

import pytest
from msgspec import structs

from gossamer_backend import Artifact
from gossamer_backend.export import export_artifact
from gossamer_backend.export.object_symbols import rename_symbol, undefined_symbols
from gossamer_backend.export.symbol import symbol_for
from gossamer_ir.core.build import add, index, index_var, mul
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.nodes import (
    Distinct,
    InRange,
    Load,
    Monotone,
    PaddedSlots,
    Relation,
    SortedSegments,
)

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

N = index_var("n")
FACTS = (
    InRange("P", index(0), add(N, index(1))),
    Monotone("P"),
    SortedSegments("P", "P", unique=True),
    SortedSegments("Q", None, unique=False),
    Distinct("Q"),
    PaddedSlots("P", N),
    Relation("subset", "P", "Q"),
)
SIGNATURE = Signature(
    "scale",
    (
        BufferParam("p", "P", "int32", (add(N, index(1)),), True, False, FACTS),
        BufferParam("x", "X", "float64", (N, Load("P", (N,), "int32")), True, True),
        BufferParam("flags", "F", "bool", (), False, False),
    ),
    (ScalarParam("n", "int64"), ScalarParam("k", "int8"), ScalarParam("factor", "float32")),
    ("p", "n", "x", "flags", "k", "factor"),
)


def elf(*symbols):
    """A relocatable object that contains only symbols: (name, whether it is defined)."""
    names = b"\0"
    table = bytes(24)
    for name, is_defined in symbols:
        table += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1 if is_defined else 0, 0, 0)
        names += name.encode() + b"\0"
    sections_at = 64 + len(table) + len(names)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 64, len(table), 2, 1, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(table), len(names), 0, 0, 1, 0)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 1, 62, 1, 0, 0, sections_at, 0, 64, 0, 0, 64, 3, 2
    )  # fmt: skip
    return header + table + names + sections


OBJECT = elf(("local", True), ("gossamer_kernel", True), ("free", False), ("calloc", False))


def artifact(code=OBJECT, *, guarded=(), target="toy:cpu=a"):
    return Artifact("toy", "1.0", target, SIGNATURE, code, guarded, (("cpu", "a"),))


@pytest.fixture
def no_linker(monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def test_a_symbol_is_renamed_and_the_others_stay():
    renamed = rename_symbol(OBJECT, "gossamer_kernel", new="another_name_of_any_length")
    assert undefined_symbols(renamed) == undefined_symbols(OBJECT) == ("calloc", "free")
    again = rename_symbol(renamed, "another_name_of_any_length", new="a")
    with pytest.raises(UnsupportedError, match="define no symbol 'gossamer_kernel'"):
        rename_symbol(again, "gossamer_kernel", new="b")


@needs_compiler
def test_a_real_object_links_under_its_new_name(tmp_path):
    (tmp_path / "k.c").write_text(
        "#include <stdlib.h>\nlong gossamer_kernel(long n)"
        "{ void *p = calloc(1, n); free(p); return n + 1; }\n"
    )
    run = {"cwd": tmp_path, "check": True}
    subprocess.run([COMPILER, "-c", "-O1", "-fPIC", "-fno-builtin", "k.c"], **run)
    code = (tmp_path / "k.o").read_bytes()
    assert {"calloc", "free"} <= set(undefined_symbols(code))
    (tmp_path / "k.o").write_bytes(rename_symbol(code, "gossamer_kernel", new="my_kernel"))
    subprocess.run([COMPILER, "-shared", "-o", "k.so", "k.o"], **run)
    library = ctypes.CDLL(str(tmp_path / "k.so"))
    assert library.my_kernel(4) == 5
    assert not hasattr(library, "gossamer_kernel")


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
def test_what_is_no_object_file_is_refused_and_nothing_is_written(code, tmp_path):
    with pytest.raises(UnsupportedError) as caught:
        export_artifact(artifact(code), tmp_path / "out")
    assert caught.value.code == "backend.export"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["my_kernel", "K2", "_k", "x" * 200])
def test_a_name_may_be_any_identifier(name):
    assert symbol_for(artifact(), name) == name


@pytest.mark.parametrize(
    "name",
    [
        "a-b",
        "2k",
        "a b",
        "int",
        "class",
        "main",
        "é",
        "__k",
        "_K",
        "x" * 201,
        "gossamer_workspace",
        3,
    ],
)
def test_a_name_that_c_has_no_room_for_is_refused(name):
    with pytest.raises(ArgumentError) as caught:
        symbol_for(artifact(), name)
    assert caught.value.code == "export.name"


def test_the_files_say_how_much_scratch_memory_is_needed_and_where(tmp_path, no_linker):
    buffers = tuple(structs.replace(param, space="global") for param in SIGNATURE.buffers)
    scratch = mul(N, index(8))
    signature = structs.replace(SIGNATURE, buffers=buffers, scratch=scratch)
    files = export_artifact(structs.replace(artifact(), signature=signature), tmp_path)
    manifest = json.loads(files.manifest.read_text())
    assert manifest["scratch_bytes"] == "n * 8"
    assert {parameter.get("space") for parameter in manifest["parameters"]} == {"global", None}
    needs = "Arrays are in global memory. Each call needs n * 8 bytes of scratch memory there."
    assert needs in files.header.read_text()


def test_the_manifest_has_all_that_a_caller_needs(tmp_path, no_linker):
    files = export_artifact(
        artifact(guarded=("X",)), tmp_path, name="scaled", versions={"b": "2", "a": "1"}
    )
    manifest = json.loads(files.manifest.read_text())
    assert (manifest["symbol"], manifest["entry"]) == ("scaled", "scale")
    assert manifest["abi_version"] == 2
    assert manifest["versions"] == {"a": "1", "b": "2"}
    assert manifest["guarded"] == ["X"]
    assert manifest["requires"] == ["calloc", "free"]
    assert manifest["returns"]["statuses"] == {
        "OK": 0,
        "OUT_OF_BOUNDS": 1,
        "OUT_OF_MEMORY": 2,
        "INTERRUPTED": 3,
    }
    fields = [field["name"] for field in manifest["workspace"]["fields"]]
    assert fields == ["threads", "parallel", "failed_buffer", "is_interrupted"]
    parameters = {parameter["name"]: parameter for parameter in manifest["parameters"]}
    assert list(parameters) == list(SIGNATURE.order)
    assert parameters["x"]["shape"] == ["n", "p[n]"]
    assert {parameters[name]["space"] for name in ("p", "x", "flags")} == {"host"}
    assert manifest["scratch_bytes"] is None
    assert (parameters["x"]["read"], parameters["x"]["written"]) == (True, True)
    assert [parameter["c_type"] for parameter in parameters.values()] == [
        "int32_t *", "int64_t", "double *", "uint8_t *", "int64_t", "float",
    ]  # fmt: skip
    assert parameters["p"]["facts"][0] == {
        "fact": "InRange",
        "low": "0",
        "high": "n + 1",
        "says": "every value is at least 0 and less than n + 1",
    }
    assert [fact["says"] for fact in parameters["p"]["facts"][1:]] == [
        "no value is less than the one before it",
        "in each segment of p, every value is greater than the one before it",
        "in each row, every value is at least the one before it",
        "no two values are the same",
        "a value of n is padding",
        "subset(p, p)",
    ]
    for entry in manifest["files"].values():
        contents = (tmp_path / entry["name"]).read_bytes()
        assert hashlib.sha256(contents).hexdigest() == entry["sha256"]


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
    files = export_artifact(artifact(guarded=("P",)), tmp_path, name="k")
    assert json.loads(files.manifest.read_text())["guarded"] == ["P"]
    assert len(list(tmp_path.glob("*k*"))) == 3


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_directory_that_cannot_be_written_is_named(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="file") as caught:
        export_artifact(artifact(), tmp_path / place)
    assert caught.value.code == "export.directory"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["k.o", "k.json", "libk.so"])
def test_what_is_in_the_way_leaves_the_directory_as_it_was(tmp_path, no_linker, name):
    (tmp_path / "out" / name).mkdir(parents=True)
    with pytest.raises(ArgumentError, match=name):
        export_artifact(artifact(), tmp_path / "out", name="k")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]


def test_nothing_from_outside_ends_a_comment_of_the_header(tmp_path, no_linker):
    files = export_artifact(artifact(target="toy:cpu=*/evil/*"), tmp_path)
    text = files.header.read_text()
    assert "*/evil" not in text
    assert text.count("/*") == text.count("*/")


@needs_compiler
@pytest.mark.parametrize("language", ["c99", "c17", "c++11", "c++17"])
def test_headers_compile_without_a_warning(tmp_path, language):
    compiler = COMPILER if language.startswith("c1") or language == "c99" else shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    for name in ("first", "second"):
        export_artifact(artifact(guarded=("X", "P")), tmp_path, name=name)
    source = tmp_path / ("main.c" if "++" not in language else "main.cpp")
    source.write_text(
        '#define n 1\n#include "first.h"\n#include "second.h"\n#include "first.h"\n'
        "int main(void) {\n"
        "    struct gossamer_workspace workspace = gossamer_one_thread();\n"
        "    workspace.failed_buffer = 1;\n"
        "    return first_failed_buffer(&workspace)[0] == 'P' ? 0 : 1;\n}\n"
    )
    flags = [f"-std={language}", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command = [compiler, *flags, "-o", "main", source.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0

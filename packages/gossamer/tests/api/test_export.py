"""Exported kernels: the files that the API and the command line write, and invalid exports."""

import json
import re

import numpy as np
import pytest

import gossamer as gs
from gossamer.cli import main
from gossamer.operators.spmv import SCRIPT
from gossamer.targets.resolve_target import registry
from gossamer_ir.errors import ArgumentError, UserError

TWICE = """
@T.prim_func
def twice(x: T.handle, y: T.handle, n: T.int64, k: T.int64) -> None:
    X = T.match_buffer(x, (n, k), "float32")
    Y = T.match_buffer(y, (n, k), "float32")
    for i, j in T.grid(n, k):
        with T.block("twice"):
            vi = T.axis.spatial(n, i)
            vj = T.axis.spatial(k, j)
            Y[vi, vj] = X[vi, vj] + X[vi, vj]
"""


def manifest_of(directory):
    (path,) = directory.glob("*.json")
    return json.loads(path.read_text())


def shape_of(manifest, name):
    return next(
        parameter["shape"] for parameter in manifest["parameters"] if parameter["name"] == name
    )


def dtype_of(manifest, name):
    return next(
        parameter["dtype"] for parameter in manifest["parameters"] if parameter["name"] == name
    )


def test_a_script_is_specialized_and_exported(tmp_path):
    files = gs.export(
        TWICE, tmp_path, name="twice4", specialize={"k": 4}, dtypes={"X": "float64", "Y": "float64"}
    )
    assert files.symbol == "twice4"
    assert files.object.read_bytes().startswith(b"\x7fELF")
    manifest = json.loads(files.manifest.read_text())
    assert shape_of(manifest, "x") == ["n", "4"]
    assert dtype_of(manifest, "y") == "float64"
    assert "gossamer-lower" in manifest["versions"]


def test_a_compiled_kernel_is_exported_as_it_is(tmp_path):
    kernel = gs.compile(TWICE)
    files = gs.export(kernel, tmp_path)
    assert files.symbol == "gossamer_twice"
    assert manifest_of(tmp_path)["target"] == kernel.artifact.target
    for other in ({"specialize": {"k": 4}}, {"target": "generic-cpu:cpu=x86-64-v3"}):
        with pytest.raises(ArgumentError) as caught:
            gs.export(kernel, tmp_path, **other)
        assert caught.value.code == "export.kernel"


def test_the_same_program_gives_the_same_files(tmp_path):
    for name in ("a", "b"):
        gs.export(SCRIPT, tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_what_the_cache_has_is_not_compiled_again(tmp_path, monkeypatch):
    """The code is found by the key of the program, and by that of its flat module."""
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))

    def export(program):
        files = gs.export(program, tmp_path / "files", target="generic-cpu:cpu=x86-64-v3")
        entries = (tmp_path / "cache").rglob("*.artifact")
        return files.object.read_bytes(), {path.stat().st_ino for path in entries}

    code, entries = export(TWICE)
    assert len(entries) == 2
    assert export(TWICE) == (code, entries)
    same_code, more = export(TWICE.replace('"twice"', '"doubled"'))
    assert same_code == code
    assert more > entries
    assert len(more) == 3


def test_the_kernel_may_be_of_a_cpu_that_this_machine_has_not(tmp_path):
    gs.export(SCRIPT, tmp_path, target="generic-cpu:cpu=x86-64-v2")
    assert "avx2" not in manifest_of(tmp_path)["machine"]["features"].split()


@pytest.mark.parametrize("program", [3, "no script", None])
def test_what_is_not_a_program_writes_nothing(program, tmp_path):
    with pytest.raises(UserError):
        gs.export(program, tmp_path / "out")
    assert not (tmp_path / "out").exists()


COMMANDS = {
    "spmm with any number of features": (
        ["spmm"], "gossamer_csrmm", {"b": ["n", "feat_size"]}, {"a": "float32", "indptr": "int32"},
    ),
    "spmm with some": (
        ["spmm", "--features", "33", "--name", "mm33"], "mm33", {"b": ["n", "33"]}, {"c": "float32"},
    ),
    "spmv of other dtypes": (
        ["spmv", "--dtype", "float64", "--index-dtype", "int64"], "gossamer_csrmv", {"x": ["n"]},
        {"y": "float64", "indptr": "int64", "indices": "int64"},
    ),
    "a script": (["SCRIPT"], "gossamer_twice", {"x": ["n", "k"]}, {"x": "float32"}),
    "a script with sizes and a dtype": (
        ["SCRIPT", "--specialize", "k=8", "--specialize", "n=2", "--dtype", "float64"],
        "gossamer_twice", {"x": ["2", "8"]}, {"y": "float64"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_writes_and_names_the_files(command, tmp_path, capsys):
    words, symbol, shapes, dtypes = COMMANDS[command]
    (tmp_path / "twice.py").write_text(TWICE)
    words = [str(tmp_path / "twice.py") if word == "SCRIPT" else word for word in words]
    assert main(["export", *words, "-o", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["object", "header", "manifest", "library"]
    assert lines[0].endswith(f"{symbol}.o")
    manifest = manifest_of(tmp_path / "out")
    assert manifest["symbol"] == symbol
    for name, shape in shapes.items():
        assert shape_of(manifest, name) == shape
    for name, dtype in dtypes.items():
        assert dtype_of(manifest, name) == dtype


def test_a_script_with_sparse_axes_is_retyped(tmp_path):
    (tmp_path / "spmv.py").write_text(SCRIPT)
    command = ["export", str(tmp_path / "spmv.py"), "-o", str(tmp_path / "out")]
    assert main([*command, "--dtype", "float64", "--index-dtype", "int64"]) == 0
    manifest = manifest_of(tmp_path / "out")
    assert [dtype_of(manifest, name) for name in ("a", "x", "indptr")] == [
        "float64",
        "float64",
        "int64",
    ]


BAD = {
    "no such program": (["nothing.py"], r"script 'nothing.py' cannot be read", "option.script"),
    "features of a vector": (
        ["spmv", "--features", "3"],
        "spmv has no --features",
        "option.features",
    ),
    "features of a script": (
        ["SCRIPT", "--features", "3"],
        "--features applies to operators",
        "option.features",
    ),
    "no features": (["spmm", "--features", "0"], "--features is 0", "option.range"),
    "a strange dtype": (["spmm", "--dtype", "int3"], "--dtype is 'int3'", "option.dtype"),
    "a strange index dtype": (
        ["spmm", "--index-dtype", "int8"],
        "--index-dtype is 'int8'",
        "option.storage",
    ),
    "no integer": (
        ["SCRIPT", "--specialize", "k=four"],
        "--specialize is 'k=four'",
        "option.specialize",
    ),
    "no value": (["SCRIPT", "--specialize", "k"], "--specialize is 'k'", "option.specialize"),
    "an unknown parameter": (
        ["SCRIPT", "--specialize", "z=1"],
        "There is no scalar parameter 'z'",
        "specialize.unknown",
    ),
    "no indices": (
        ["SCRIPT", "--index-dtype", "int64"],
        "has no axis that stores indices",
        "option.retype",
    ),
    "a bad name": (["spmm", "--name", "a-b"], "'a-b' cannot be the name", "export.name"),
    "an unknown backend": (
        ["spmm", "--target", "nope"],
        "There is no backend 'nope'",
        "backend.unknown",
    ),
    "an unknown cpu": (["spmm", "--target", "generic-cpu:cpu=nope"], "nope", "generic_cpu.cpu"),
    "no directory": (["spmm", "-o", "SCRIPT"], "cannot be exported to", "export.directory"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_writes_nothing(case, tmp_path, capsys):
    words, message, code = BAD[case]
    script = tmp_path / "twice.py"
    script.write_text(TWICE)
    words = [str(script) if word == "SCRIPT" else word for word in words]
    if "-o" not in words:
        words += ["-o", str(tmp_path / "out")]
    assert main(["export", *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert re.fullmatch(r"error: .*\n", output.err)
    assert re.search(message, output.err)
    assert f"[{code}" in output.err
    assert [path.name for path in tmp_path.iterdir()] == ["twice.py"]


def test_the_directory_is_asked_for(capsys):
    assert main(["export", "spmm"]) == 2
    assert "--output" in capsys.readouterr().err


def test_a_backend_without_object_files_is_refused(tmp_path):
    kernel = gs.compile(TWICE)
    kernel.artifact = type(kernel.artifact)(
        "generic-cpu", "1", "generic-cpu", kernel.signature, np.zeros(99, np.uint8).tobytes()
    )
    with pytest.raises(UserError, match="not an ELF file"):
        gs.export(kernel, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_kernels_of_this_machine_have_no_files_but_object_code():
    artifact = gs.compile(TWICE).artifact
    assert registry.backend(artifact.backend).export_parts(artifact, symbol="twice") is None

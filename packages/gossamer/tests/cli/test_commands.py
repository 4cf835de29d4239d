"""The command line: its output, and one sentence with exit code 2 for every bad input."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest
import typer
from scipy import sparse

from gossamer.cli import commands
from gossamer.cli.app import app
from gossamer.cli.commands.run import REPORTED_FIELDS, require_within
from gossamer.cli.commands.show import SHOWN_STAGES
from gossamer.comparison.accuracy import Comparison
from gossamer.comparison.baselines import baseline_of
from gossamer.comparison.operator_run import OperatorRun
from gossamer.operators import NAMES


def last_object(text):
    return json.loads(text.strip().splitlines()[-1])


@pytest.mark.parametrize("op", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_run_ends_with_one_object(op, dtype, command, matrix_file):
    output = command(
        "run", op, "--matrix", matrix_file, "--features", "7", "--dtype", dtype, "--threads", "2",
        "--repeat", "2", "--check", "--json",
    )  # fmt: skip
    assert (output.status, output.err) == (0, "")
    record = last_object(output.out)
    assert tuple(record) == REPORTED_FIELDS
    assert record["op"] == op
    assert record["matrix"] == matrix_file
    assert record["shape"] == [30, 40]
    assert record["nnz"] == 240
    assert record["features"] == (None if baseline_of(op).of_vectors else 7)
    assert (record["dtype"], record["threads"], record["target"]) == (dtype, 2, "generic-cpu")
    assert 0 <= record["max_rel_error"] < 1e-5
    assert isinstance(record["cached"], bool)
    assert min(record["compile_ms"], record["median_ms"], record["scipy_ms"]) > 0
    assert record["ratio_vs_scipy"] == pytest.approx(record["scipy_ms"] / record["median_ms"])
    assert output.out.count("{") == 1


def test_run_says_what_it_did(command, matrix_file):
    output = command("run", "spmm", "--matrix", matrix_file, "--repeat", "1", "--check")
    assert (output.status, output.err) == (0, "")
    assert "30 by 40, 240 nonzeros, 64 features, float32" in output.out
    assert "within the rounding" in output.out


def test_a_graph_is_run_without_a_matrix(command):
    output = command("run", "spmv", "--repeat", "1", "--check", "--json")
    assert (output.status, output.err) == (0, "")
    assert "spmv of a generated power-law graph" in command("run", "spmv", "--repeat", "1").out
    record = last_object(output.out)
    assert (record["matrix"], record["shape"], record["nnz"]) == (None, [10_000, 10_000], 100_000)


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (4, 4)])
@pytest.mark.parametrize("op", NAMES)
def test_matrices_without_nonzeros_are_run(op, shape, command, tmp_path):
    path = str(tmp_path / "empty.npz")
    sparse.save_npz(path, sparse.csr_array(shape, dtype=np.float32))
    output = command("run", op, "--matrix", path, "--repeat", "1", "--check", "--json")
    assert (output.status, output.err) == (0, "")
    assert last_object(output.out)["max_rel_error"] == 0


@pytest.mark.parametrize(
    ("name", "text"), [("a.smtx", "2, 3, 2\n0 1 2\n2 0\n"), ("a.tns", "1 3 1.5\n2 1 2.5\n")]
)
def test_files_of_every_kind_are_run(name, text, command, tmp_path):
    (tmp_path / name).write_text(text)
    output = command("run", "spmm", "--matrix", str(tmp_path / name), "--check", "--repeat", "1")
    assert (output.status, output.err) == (0, "")
    (tmp_path / name).write_text("1 1 1 2.0\n")
    output = command("run", "spmm", "--matrix", str(tmp_path / name))
    assert output.status == 2


@pytest.mark.parametrize("op", ["spmm", "sddmm"])
def test_no_features_are_run(op, command, matrix_file):
    output = command(
        "run", op, "--matrix", matrix_file, "--features", "0", "--repeat", "1", "--check", "--json"
    )
    assert output.status == 0
    assert last_object(output.out)["features"] == 0


@pytest.mark.parametrize("op", NAMES)
def test_a_wrong_result_is_exit_code_1_where_it_is_checked(op, command, matrix_file, monkeypatch):
    monkeypatch.setattr(OperatorRun, "run", lambda run: np.full_like(run.out, 1e3))
    words = ("run", op, "--matrix", matrix_file, "--repeat", "1", "--json")
    assert command(*words).status == 0
    output = command(*words, "--check")
    assert output.status == 1
    assert last_object(output.out)["max_rel_error"] > 1e-3
    assert output.err.startswith("check failed: ")


def test_a_failed_check_is_exit_code_1(capsys):
    require_within(Comparison(1e-9, 1e-6, is_within=True))
    with pytest.raises(typer.Exit) as caught:
        require_within(Comparison(0.5, 1e-6, is_within=False))
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err.startswith("check failed: the largest error is 0.5 of a sum's ")


BAD_COMMANDS = [
    ("operator.unknown", "'solve'", "run solve --matrix FILE"),
    ("operator.unknown", "'solve'", "show solve --stage flat"),
    ("option.stage", "'ptx'", "show spmm --stage ptx"),
    ("option.range", "--features is 0", "show spmm --stage flat --features 0"),
    ("option.range", "--features is -1", "run spmm --matrix FILE --features -1"),
    ("option.range", "--repeat is 0", "run spmm --matrix FILE --repeat 0"),
    ("option.range", "--repeat is -3", "run spmm --matrix FILE --repeat -3"),
    (
        "option.memory",
        "TiB, more than the memory",
        "run spmm --matrix FILE --features 1000000000000",
    ),
    (
        "option.memory",
        "TiB, more than the memory",
        "run sddmm --matrix FILE --features 1000000000000",
    ),
    (
        "option.memory",
        "TiB, more than the memory",
        "run spmm --matrix FILE --features 10" + 40 * "0",
    ),
    ("option.dtype", "'float16'", "run spmm --matrix FILE --dtype float16"),
    ("option.dtype", "''", "run spmm --matrix FILE --dtype="),
    ("threads.count", "is 0", "run spmm --matrix FILE --threads 0"),
    ("threads.count", "is -2", "run spmm --matrix FILE --threads -2"),
    ("threads.count", "is 100000", "run spmm --matrix FILE --threads 100000"),
    ("backend.unknown", "'cuda'", "run spmm --matrix FILE --target cuda"),
    ("format.read.missing", "none.mtx' does not exist", "run spmm --matrix none.mtx"),
    ("format.read.missing", "none.mtx' does not exist", "demo --matrix none.mtx"),
    ("format.read.max_bytes", "and max_bytes is 9", "demo --matrix FILE --max-bytes 9"),
    ("format.read.max_bytes", "and max_bytes is 9", "run spmm --matrix FILE --max-bytes 9"),
    ("format.read.max_bytes", "max_bytes is 9", "show spmm --guards --matrix FILE --max-bytes 9"),
    ("option.integer", "--max-bytes is '1G'", "run spmm --matrix FILE --max-bytes 1G"),
    ("format.read.suffix", "data.txt", "run spmm --matrix data.txt"),
    ("format.read.suffix", "", "run spmm --matrix="),
    ("format.read.malformed", "BAD", "run spmm --matrix BAD"),
    ("option.range", "--features is 0", "demo --features 0"),
    ("option.range", "--features is 0", "info FILE --features 8 --features 0"),
    ("option.range", "--calls is 0", "info FILE --calls 0"),
    ("option.integer", "--features is 'all'", "info FILE --features all"),
    ("option.integer", "--calls is ''", "info FILE --calls="),
    ("option.dtype", "'int8'", "info FILE --dtype int8"),
    ("backend.unknown", "'cuda'", "info FILE --target cuda"),
    ("threads.count", "is 0", "info FILE --threads 0"),
    ("format.read.missing", "none.mtx' does not exist", "info none.mtx"),
    ("format.read.malformed", "BAD", "info BAD"),
    ("format.read.max_bytes", "and max_bytes is 9", "info FILE --max-bytes 9"),
    ("option.memory", "more than the memory", "info FILE --measure --features 1000000000000"),
    ("", "Missing argument '", "info"),
    ("option.stage", "--stage is missing", "show spmm"),
    ("", "Missing argument '", "run"),
    ("option.integer", "--features is 'many'", "run spmm --matrix FILE --features many"),
    ("option.integer", "--threads is '1.5'", "run spmm --matrix FILE --threads 1.5"),
    ("option.integer", "--features is ''", "demo --features="),
    ("", "see gossamer run --help", "run spmm --matrix FILE --feature_size 3"),
    ("", "No such command 'bench'", "bench"),
    ("", "No such command 'empty'", "cache empty"),
    ("", "Missing command", ""),
    ("", "unexpected extra argument", "backends all"),
]


@pytest.mark.parametrize(("code", "named", "line"), BAD_COMMANDS)
def test_bad_input_is_one_sentence_and_exit_code_2(code, named, line, command, matrix_file):
    bad = matrix_file.replace("a.npz", "bad.mtx")
    with open(bad, "w") as file:
        file.write("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n")
    words = line.replace("FILE", matrix_file).replace("BAD", bad).split()
    output = command(*words)
    assert (output.status, output.out) == (2, "")
    assert output.err.startswith("error: ")
    assert named.replace("BAD", bad) in output.err
    assert output.err.count("\n") == 1
    assert (f"[{code}]" in output.err) == bool(code)


def test_a_name_of_several_lines_is_an_error_of_one(command):
    output = command("run", "spmv", "--matrix", "no\nsuch.mtx")
    assert output.err.startswith("error: 'no such.mtx' does not exist")
    assert output.err.count("\n") == 1


def test_a_bad_environment_is_named(command, matrix_file, monkeypatch):
    monkeypatch.setenv("GOSSAMER_NUM_THREADS", "many")
    output = command("run", "spmm", "--matrix", matrix_file)
    assert output.status == 2
    assert "GOSSAMER_NUM_THREADS is 'many'" in output.err


def test_a_cache_of_no_user_is_named(command, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", "~nobody-of-that-name/cache")
    output = command("cache", "clear")
    assert (output.status, output.out) == (2, "")
    assert "~nobody-of-that-name/cache', and there is no such user" in output.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_output_that_cannot_be_written_is_one_sentence():
    script = os.path.join(os.path.dirname(sys.executable), "gossamer")
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [script, "show", "spmm", "--stage", "flat"], stdout=full, stderr=-1, text=True
        )
    assert process.returncode == 2
    assert process.stderr == "error: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("op", NAMES)
@pytest.mark.parametrize("stage", SHOWN_STAGES)
def test_show_prints_a_stage(op, stage, command):
    marks = {
        "coordinate": "T.sp.iteration",
        "position": "T.block(",
        "loop": "T.block(",
        "flat": "def ",
        "llvm": "define",
        "asm": "ret",
    }
    output = command("show", op, "--stage", stage, "--features", "16")
    assert (output.status, output.err) == (0, "")
    assert marks[stage] in output.out


def test_backends_lists_the_embedded_one(command):
    output = command("backends")
    assert output.status == 0
    lines = [line.split(maxsplit=1) for line in output.out.splitlines()]
    # Other backends may be installed, too.
    first = lines.index(["generic-cpu"])
    assert lines[first + 1] == ["usable", "yes"]
    assert ["targets", "generic-cpu"] in lines


def test_the_cache_is_described_and_cleared(command, matrix_file, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "own"))
    assert command("cache", "path").out.strip().startswith(str(tmp_path / "own"))
    assert "entries  0" in command("cache", "info").out
    code = "import sys; from gossamer.cli import main; sys.exit(main())"
    words = ["run", "spmv", "--matrix", matrix_file, "--repeat", "1", "--json"]
    for is_cached in (False, True):
        process = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, env=os.environ
        )
        assert (process.returncode, process.stderr) == (0, "")
        assert last_object(process.stdout)["cached"] is is_cached
    assert "entries  0" not in command("cache", "info").out
    assert command("cache", "clear").out.startswith("removed ")
    assert "entries  0" in command("cache", "info").out


COMMANDS = {registered.name for registered in (*app.registered_commands, *app.registered_groups)}


def test_help_names_every_command(command):
    output = command("--help")
    assert output.status == 0
    for name in (*COMMANDS, "--version"):
        assert name in output.out


def test_every_command_is_registered():
    """A command is in a file of its name."""
    assert {info.name for info in pkgutil.iter_modules(commands.__path__)} == COMMANDS


def test_version_lists_every_distribution_of_gossamer_with_its_version(command):
    output = command("--version")
    assert (output.status, output.err) == (0, "")
    first, *others = output.out.splitlines()
    assert first == f"gossamer {metadata.version('gossamer')}"
    listed = dict(line.split() for line in others)
    required = [re.split(r"[=<> ;]", text)[0] for text in metadata.requires("gossamer")]
    distributions = [name for name in required if name.startswith("gossamer-")]
    assert "gossamer-generic-cpu" in distributions, "the embedded plugin is listed, too"
    assert {name: listed.get(name) for name in distributions} == {
        name: metadata.version(name) for name in distributions
    }


@pytest.mark.parametrize("group", ["plugins", "extensions", "formats", "operators"])
def test_version_lists_a_plugin_of_any_kind_and_name(group, tmp_path, command, monkeypatch):
    folder = tmp_path / "acme-2.5.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 2.5\n")
    (folder / "entry_points.txt").write_text(f"[gossamer.{group}]\nacme = acme\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    listed = [line.split() for line in command("--version").out.splitlines()]
    assert ["acme", "2.5"] in listed
    assert [name for name, _ in listed].count("gossamer") == 1


def test_the_installed_script_fails_without_a_traceback():
    script = os.path.join(os.path.dirname(sys.executable), "gossamer")
    process = subprocess.run(
        [script, "run", "spmm", "--matrix", "none.npz"], capture_output=True, text=True
    )
    assert process.returncode == 2
    assert process.stderr.startswith("error: 'none.npz' does not exist")
    assert "Traceback" not in process.stderr


def test_the_demo_runs_on_a_file(command, matrix_file):
    output = command("demo", "--matrix", matrix_file, "--features", "8", "--threads", "1")
    assert (output.status, output.err) == (0, "")
    assert "T.sp.iteration" in output.out
    assert output.out.count(", right") == 2
    program = ("@", "    ", matrix_file)
    beside = [line for line in output.out.splitlines() if not line.startswith(program)]
    assert [line for line in beside if len(line) > 80] == []
    assert "SciPy / gossamer" in output.out

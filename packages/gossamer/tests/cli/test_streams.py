"""Standard streams that are closed or broken pipes, and arguments that the locale cannot decode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy import sparse

SCRIPT = """@T.prim_func
def double(x: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    for i in T.serial(n):
        X[i] = X[i] * 2.0
"""

COMMANDS = {
    "version": "--version",
    "help": "--help",
    "demo": "demo --matrix FILE --features 2 --threads 1",
    "run": "run spmv --matrix FILE --repeat 1 --threads 1",
    "check": "run spmv --matrix FILE --repeat 1 --check --json",
    "show": "show spmm --stage coordinate",
    "schedule": "show spmm --schedule --matrix FILE",
    "guards": "show spmm --guards",
    "opt": "opt PROGRAM",
    "list": "opt --list",
    "export": "export spmv -o FOLDER",
    "backends": "backends",
    "path": "cache path",
    "info": "cache info",
    "clear": "cache clear",
}
QUICK = {name: COMMANDS[name] for name in ("version", "show", "opt", "info", "check")}
BAD = {"unknown": "solve", "missing": "run spmm --matrix none.npz", "stdin": "opt -"}

# Each command is run in a fork, since starting Python takes longer than most commands. The fork has the
# streams that Python would make of its descriptors, and ends as a process does. One process is forked for all
# tests, which share its imports and kernels.
DRIVER = """
import contextlib, gc, io, json, os, sys
from gossamer.cli import app, main

def with_streams(closed, broken):
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if name in closed:
            os.close(number)
            setattr(sys, name, None)
            setattr(sys, f"__{name}__", None)
        elif name in broken:
            reading, writing = os.pipe()
            os.close(reading)
            os.dup2(writing, number)
            os.close(writing)
            if number:
                old = getattr(sys, name)
                new = open(number, "w", encoding=old.encoding, errors=old.errors, closefd=False)
                setattr(sys, name, new)

def run(words, errors, closed, broken):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        with_streams(closed, broken)
        sys.exit(main(words))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

with contextlib.redirect_stdout(io.StringIO()):  # so that forks need not import what these import
    main(["show", "spmm", "--stage", "asm"])
    main(["opt", "--list"])
    main(["export", "spmv", "-o", "exported"])
gc.collect()
gc.freeze()  # so that forks need not look for garbage in it at their end

def report(folder, closed, broken, commands):
    os.chdir(folder)
    endings = {}
    for name, words in commands.items():
        errors = os.path.join(folder, name + ".err")
        code = run(words, errors, closed, broken)
        with open(errors) as file:
            endings[name] = code, file.read()
    with open("endings.json", "w") as file:
        json.dump(endings, file)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        report(*json.loads(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """The process that forks for each test."""
    folder = tmp_path_factory.mktemp("driver")
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={
            **os.environ,
            "GOSSAMER_CACHE_DIR": str(folder / "kernels"),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONIOENCODING": "ascii:strict",
        },
    )
    with process:
        yield process


@pytest.fixture
def outcomes(driver, tmp_path):
    """Runs commands, and returns the exit code and the text on standard error of each."""
    return partial(_outcomes, driver, tmp_path)


def _outcomes(driver, tmp_path, commands, *, closed=(), broken=()):
    matrix = sparse.random_array((30, 40), density=0.2, rng=np.random.default_rng(5), format="csr")
    sparse.save_npz(tmp_path / "a.npz", matrix)
    (tmp_path / "program.py").write_text(SCRIPT)
    places = {"FILE": "a.npz", "PROGRAM": "program.py", "FOLDER": "out"}
    words = {
        name: [
            str(tmp_path / places[word]) if word in places else word
            for word in (line.split() if isinstance(line, str) else line)
        ]
        for name, line in commands.items()
    }
    print(json.dumps([str(tmp_path), closed, broken, words]), file=driver.stdin, flush=True)
    assert driver.stdout.readline() == "0\n"
    return json.loads((tmp_path / "endings.json").read_text())


@pytest.mark.parametrize("state", ["closed", "broken"])
def test_output_that_nobody_reads_is_exit_code_2(state, outcomes):
    for name, (code, errors) in outcomes(COMMANDS, **{state: ["stdout"]}).items():
        assert code == 2, (name, errors)
        expected = "error: The output cannot be written: standard output is closed.\n"
        assert errors == (expected if state == "closed" else ""), name


@pytest.mark.parametrize("state", ["closed", "broken"])
def test_without_standard_error_the_exit_codes_are_the_same(state, outcomes):
    endings = outcomes(QUICK | BAD, **{state: ["stderr"]})
    assert {name: code for name, (code, _) in endings.items()} == {
        **dict.fromkeys(QUICK, 0),
        **dict.fromkeys(BAD, 2),
    }


def test_without_standard_input_only_a_command_that_reads_it_fails(outcomes):
    endings = outcomes(QUICK | {"stdin": "opt -"}, closed=["stdin"])
    code, errors = endings.pop("stdin")
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith("error: The program on standard input cannot be read: it is closed.")
    assert {code for code, _ in endings.values()} == {0}


@pytest.mark.parametrize("state", ["closed", "broken"])
def test_without_any_stream_bad_input_is_exit_code_2(state, outcomes):
    endings = outcomes(QUICK | BAD, **{state: ["stdout", "stderr"]})
    assert {name: code for name, (code, _) in endings.items()} == dict.fromkeys(QUICK | BAD, 2)


ODD = os.fsdecode(b"\xff\xc3\xa9")
"""Bytes that are not UTF-8, and a letter that is not ASCII."""


def test_paths_of_any_bytes_are_read_and_printed(outcomes, tmp_path):
    try:
        (tmp_path / f"{ODD}.npz").touch()
    except OSError:
        pytest.skip("the file system takes no such names")
    sparse.save_npz(tmp_path / f"{ODD}.npz", sparse.eye_array(30, format="csr"))
    (tmp_path / f"{ODD}.py").write_text(SCRIPT)
    (tmp_path / f"{ODD}.json").write_text("[]")
    commands = {
        "demo": ["demo", "--matrix", f"{ODD}.npz", "--features", "2"],
        "run": ["run", "spmv", "--matrix", f"{ODD}.npz", "--repeat", "1"],
        "json": ["run", "spmv", "--matrix", f"{ODD}.npz", "--repeat", "1", "--json"],
        "schedule": ["show", "spmm", "--schedule", "--matrix", f"{ODD}.npz"],
        "show": ["show", f"{ODD}.py", "--stage", "flat"],
        "opt": ["opt", f"{ODD}.py", "--trace", f"{ODD}.json"],
        "export": ["export", f"{ODD}.py", "-o", ODD],
    }
    endings = outcomes(commands)
    assert endings == {name: [0, ""] for name in commands}


def test_bad_arguments_of_any_bytes_are_one_sentence(outcomes):
    show, run = ["show", "spmm"], ["run", "spmm", "--matrix", "FILE"]
    commands = {
        "command": [ODD],
        "demo": ["demo", "--matrix", f"{ODD}.npz"],
        "matrix": ["run", "spmm", "--matrix", f"{ODD}.mtx"],
        "suffix": ["run", "spmm", "--matrix", ODD],
        "operator": ["run", ODD, "--matrix", "FILE"],
        "dtype": [*run, "--dtype", ODD],
        "features": [*run, "--features", ODD],
        "target of run": [*run, "--target", ODD],
        "option": [*run, f"--{ODD}"],
        "stage": [*show, "--stage", ODD],
        "target": [*show, "--stage", "flat", "--target", ODD],
        "script": ["show", f"{ODD}.py", "--stage", "flat"],
        "program": ["opt", ODD],
        "trace": ["opt", "PROGRAM", "--trace", ODD],
        "pass": ["opt", "PROGRAM", "--pass", ODD],
        "argument": ["opt", "PROGRAM", "--pass", f'split(loop="{ODD}", factors=[None, 8])'],
        "exported": ["export", ODD, "-o", "FOLDER"],
        "name": ["export", "spmm", "-o", "FOLDER", "--name", ODD],
        "value": ["export", "spmm", "-o", "FOLDER", "--specialize", f"{ODD}={ODD}"],
        "parameter": ["export", "spmm", "-o", "FOLDER", "--specialize", f"{ODD}=3"],
        "index": ["export", "spmm", "-o", "FOLDER", "--index-dtype", ODD],
    }
    for name, (code, errors) in outcomes(commands).items():
        assert code == 2, (name, errors)
        assert errors.startswith("error: "), (name, errors)
        assert "Traceback" not in errors, (name, errors)


@pytest.mark.parametrize("line", ["--version >&-", "--version | true", "opt - <&-"])
def test_the_installed_script_ends_with_code_2(line):
    script = os.path.join(os.path.dirname(sys.executable), "gossamer")
    words, _, piped = line.partition("|")
    command = f"'{script}' {words}" + (f"| {piped}" if piped else "")
    process = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout) == (2, "")
    assert "Traceback" not in process.stderr

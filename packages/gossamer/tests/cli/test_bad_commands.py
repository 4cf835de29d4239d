"""The command line: its output, and one sentence with exit code 2 for every bad input."""

from __future__ import annotations

import pytest

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

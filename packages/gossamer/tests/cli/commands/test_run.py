"""`gossamer run`: an operator beside its baselines, with one object of figures."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

from gossamer.cli.commands.run import REPORTED_FIELDS
from gossamer.cli.comparison.baselines import baseline_of
from gossamer.cli.comparison.operator_run import OperatorRun
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
    assert record["features"] == (None if baseline_of(op).is_of_vectors else 7)
    assert (record["dtype"], record["threads"], record["target"]) == (dtype, 2, "generic-cpu")
    assert 0 <= record["max_rel_error"] < 1e-5
    assert isinstance(record["cached"], bool)
    assert min(record["compile_ms"], record["median_ms"], record["scipy_ms"]) > 0
    assert record["ratio_vs_scipy"] == pytest.approx(record["scipy_ms"] / record["median_ms"])
    assert output.out.count("{") == 1


def test_the_length_of_vectors_is_an_option_of_the_target(command, matrix_file):
    run = ("run", "spmv", "--matrix", matrix_file, "--repeat", "1", "--check", "--json")
    output = command(*run, "--backend", "generic-cpu", "--vector-bits", "256")
    assert last_object(output.out)["target"] == "generic-cpu:vector_bits=256"
    output = command(*run, "--target", "generic-cpu:threads=1", "--vector-bits", "512")
    assert last_object(output.out)["target"] == "generic-cpu:threads=1,vector_bits=512"


def test_two_lengths_of_vectors_are_refused(command, matrix_file):
    how = ("--target", "generic-cpu:vector_bits=512", "--vector-bits", "256")
    output = command("run", "spmv", "--matrix", matrix_file, *how)
    assert output.status != 0
    assert "gives the option 'vector_bits' more than once" in output.err


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

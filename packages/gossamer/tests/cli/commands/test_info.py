"""`gossamer info`: sizes and structure of matrices, the choices of the model, and timings."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs

FIELDS = (
    "file", "format", "shape", "nnz", "density", "dtype", "bytes", "rows", "bandwidth", "block_fill",
    "choices",
)  # fmt: skip


@pytest.fixture
def pruned_file(tmp_path):
    """A matrix that is expected to be multiplied faster in tiles than in CSR."""
    matrix = sparse.random_array(
        (300, 1024), density=0.3, format="csr", dtype=np.float32, rng=np.random.default_rng(0)
    )
    sparse.save_npz(tmp_path / "pruned.npz", matrix)
    return str(tmp_path / "pruned.npz")


def record_of(command, *arguments):
    output = command("info", *arguments, "--json")
    assert (output.status, output.err) == (0, "")
    record = json.loads(output.out)
    assert tuple(record) == FIELDS
    return record


def test_the_record_has_sizes_and_structure(command, matrix_file):
    record = record_of(command, matrix_file)
    matrix = sparse.load_npz(matrix_file)
    lengths = np.diff(matrix.indptr)
    assert (record["file"], record["format"], record["shape"]) == (matrix_file, "csr", [30, 40])
    assert (record["nnz"], record["density"], record["dtype"]) == (240, 0.2, "float64")
    assert record["bytes"] == gs.from_scipy(matrix).nbytes
    rows = record["rows"]
    assert (rows["mean"], rows["longest"]) == (8.0, lengths.max())
    assert rows["deviation"] == pytest.approx(lengths.std())
    assert rows["empty"] == np.count_nonzero(lengths == 0)
    assert sum(bucket["rows"] for bucket in rows["histogram"]) == 30
    assert record["bandwidth"].keys() == {"lower", "upper", "mean"}
    assert record["block_fill"].keys() == {"2", "3", "4", "6", "8", "16"}


def test_the_choice_of_prepare_is_given_for_each_number_of_features(command, pruned_file):
    options = ("--features", "64", "--features", "128", "--features", "64", "--calls", "5000")
    record = record_of(command, pruned_file, *options)
    matrix = sparse.load_npz(pruned_file)
    assert [choice["features"] for choice in record["choices"]] == [64, 128]
    for choice in record["choices"]:
        expected = gs.explain(gs.prepare(matrix, features=choice["features"], calls=5000))
        assert (choice["chosen"], choice["calls"]) == (expected.chosen.text, 5000)
        assert choice["chosen"].startswith("tiled_csr")
        assert choice["speedup"] == pytest.approx(expected.speedup)
        assert choice["paying_calls"] == expected.paying_calls
        for entry, estimate in zip(choice["estimates"], expected.estimates, strict=True):
            assert entry["format"] == estimate.format
            assert entry["parameters"] == estimate.parameters
            assert (entry["reason"], entry["measured_seconds"]) == (estimate.reason, None)


def test_one_call_does_not_pay_for_a_conversion(command, pruned_file):
    (choice,) = record_of(command, pruned_file, "--calls", "1")["choices"]
    assert (choice["features"], choice["chosen"], choice["paying_calls"]) == (64, "csr", None)


def test_another_machine_may_have_another_choice(command, pruned_file):
    narrow = record_of(command, pruned_file, "--target", "generic-cpu:vector_bits=128")
    wide = record_of(command, pruned_file, "--target", "generic-cpu:vector_bits=512")
    cycles = [each["choices"][0]["estimates"][0]["cycles"] for each in (narrow, wide)]
    assert cycles[0] > cycles[1]


def test_the_text_has_bars_estimates_and_reasons(command, pruned_file):
    machine = "generic-cpu:vector_bits=512,gathers=fast,l2=2097152,l3=16777216,cores=2"
    options = ("--features", "128", "--calls", "1000000", "--target", machine)
    output = command("info", pruned_file, *options)
    assert (output.status, output.err) == (0, "")
    lines = output.out.splitlines()
    assert lines[1].split() == ["shape", "300", "by", "1,024"]
    assert lines[2].split() == ["nonzeros", "92,160,", "density", "0.3"]
    bars = [line for line in lines if "━" in line]
    assert bars
    assert bars[0].split()[:3] == ["257", "to", "512"]
    (choice,) = (line for line in lines if line.startswith("spmm, "))
    assert choice.startswith("spmm, 128 features, 1,000,000 calls: tiled_csr (tile_columns=")
    assert "because" in output.out
    assert "rows are gathered from an operand" in output.out
    assert max(map(len, lines)) <= 100


def test_formats_are_timed(command, pruned_file):
    options = ("--measure", "--features", "32", "--threads", "1", "--dtype", "float32")
    (choice,) = record_of(command, pruned_file, *options)["choices"]
    seconds = {
        entry["format"]: entry["measured_seconds"]
        for entry in choice["estimates"]
        if entry["measured_seconds"] is not None
    }
    assert seconds.keys() >= {"csr", "tiled_csr"}
    assert min(seconds.values()) > 0
    text = command("info", pruned_file, *options).out
    assert " ms " in text
    assert "measured" in text


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (4, 4)])
@pytest.mark.parametrize("options", [(), ("--measure",)])
def test_matrices_without_nonzeros_are_described(shape, options, command, tmp_path):
    path = str(tmp_path / "empty.npz")
    sparse.save_npz(path, sparse.csr_array(shape, dtype=np.float32))
    record = record_of(command, path, *options)
    assert (record["shape"], record["nnz"], record["density"]) == ([*shape], 0, 0)
    assert record["rows"]["empty"] == shape[0]
    assert record["choices"][0]["chosen"] == "csr"
    assert command("info", path, *options).status == 0


def test_coordinates_are_described_as_the_matrix_in_csr(command, tmp_path, matrix_file):
    path = str(tmp_path / "a.tns")
    gs.write(gs.read(matrix_file).asformat("coo"), path)
    record, expected = record_of(command, path), record_of(command, matrix_file)
    assert record["format"] == "coo"
    assert {**record, **dict.fromkeys(("file", "format", "bytes"))} == {
        **expected,
        **dict.fromkeys(("file", "format", "bytes")),
    }


def test_of_a_tensor_the_sizes_are_described(command, tmp_path):
    path = tmp_path / "cube.tns"
    path.write_text("1 1 2 5.0\n2 3 1 -1.0\n")
    record = record_of(command, str(path))
    assert (record["shape"], record["nnz"], record["density"]) == ([2, 3, 2], 2, 2 / 12)
    assert (record["rows"], record["bandwidth"], record["block_fill"]) == (None, None, None)
    assert record["choices"] == []
    output = command("info", str(path))
    assert "2 by 3 by 2" in output.out
    assert "spmm" not in output.out
    for option in (("--measure",), ("--features", "8")):
        output = command("info", str(path), *option)
        assert (output.status, output.out) == (2, "")
        assert f"{option[0]} applies to matrices, and '{path}' has 3 dimensions. [" in output.err
        code = "option.dimensions"
        assert f"[{code}]" in output.err

"""`python -m benchmarks`: what a run leaves, and how it fails."""

from __future__ import annotations

import pytest
from scipy import sparse

from benchmarks import __main__, matrices, run_files
from benchmarks.harness import tasks
from benchmarks.harness.process import Remote
from benchmarks.parts import kernels, startup
from benchmarks.parts.processes import fresh_process
from tests.benchmarks.benchmark_cases import CSR, cell, run_of

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


def test_a_run_leaves_data_page_and_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GOSSAMER_DATASETS", str(tmp_path))
    matrices.load_matrix.cache_clear()
    sparse.save_npz(tmp_path / "cora.npz", sparse.csr_matrix(CSR))
    words = "--matrix cora pubmed --op spmm sddmm --features 4 --threads 1 --rounds 3 --budget 0.5 "
    words += "--contenders scipy numba --dtype float32 --parts kernels --output"
    assert __main__.main([*words.split(), str(tmp_path / "out")]) == 0
    matrices.load_matrix.cache_clear()
    (path,) = (tmp_path / "out").glob("*.json")
    run = run_files.load_run(path)
    assert [(cell.op, cell.matrix) for cell in run.cells] == [
        ("spmm", "cora"),
        ("sddmm", "cora"),
    ]
    assert "pubmed" in run.missing
    assert run.settings["features"] == "4"
    assert str(tmp_path) not in str(run.settings)
    assert path.stem == f"{run.machine.name}-selected"
    assert __main__.main([*words.split(), str(tmp_path / "out")]) == 0  # replaces the first run
    assert list((tmp_path / "out").glob("*.json")) == [path]
    assert __main__.main(["report", str(path)]) == 0
    assert "median ms" in capsys.readouterr().out
    page_text = path.with_suffix(".md").read_text().replace(" *", "")  # disturbed or not
    assert "| cora | 4 | 1 |" in page_text


def test_a_wrong_result_makes_the_command_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(
        __main__, "measure_run", lambda job, console: run_of(cell(wrong={"a": "b"}))
    )
    words = ["--no-save", "--parts", "startup"]
    assert __main__.main(words) == 1


def test_a_part_that_fails_is_named_and_the_rest_is_kept(monkeypatch, tmp_path, capsys):
    def fail(start):
        raise fresh_process.ProcessError("it broke")

    monkeypatch.setattr(startup, "measure_startup", fail)
    words = ["--parts", "startup", "--output", str(tmp_path)]
    assert __main__.main(words) == 1
    assert "FAILED: startup: it broke" in capsys.readouterr().out
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_nothing_is_measured_if_gossamer_does_not_start(tmp_path, capsys):
    words = "--parts kernels --op bsr_spmm --features 1 --threads 1 --no-save --python"
    assert __main__.main([*words.split(), f"gossamer={tmp_path}/python"]) == 1
    assert "does not start" in capsys.readouterr().out


def test_an_interrupted_run_keeps_what_it_has(monkeypatch, tmp_path, capsys):
    def measure(batch, *others):
        if batch.tasks[0].features == 2:
            raise KeyboardInterrupt
        return [cell()]

    monkeypatch.setattr(tasks, "MAX_ENTRIES", 1)
    monkeypatch.setattr(Remote, "ensure_started", lambda remote: None)
    monkeypatch.setattr(kernels, "measure_batch", measure)
    words = "--parts kernels startup --op bsr_spmm --features 1 2 --threads 1 --output"
    assert __main__.main([*words.split(), str(tmp_path)]) == 1
    assert "FAILED: the rest: interrupted" in capsys.readouterr().out
    (path,) = tmp_path.glob("*.json")
    run = run_files.load_run(path)
    assert len(run.cells) == 1
    assert run.results_of(startup.Startup) == ()

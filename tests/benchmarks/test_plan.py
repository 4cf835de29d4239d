"""Options, matrices and the order in which problems are measured."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse

from benchmarks import contenders, matrices, options, ordered_parts
from benchmarks.harness import tasks
from benchmarks.operators import PROBLEMS
from tests.benchmarks.benchmark_cases import QUICK, problem, task

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


def test_a_missing_matrix_is_named_with_its_path(monkeypatch, tmp_path):
    monkeypatch.setenv("GOSSAMER_DATASETS", str(tmp_path))
    matrices.load_matrix.cache_clear()
    planned, missing = tasks.plan_batches(tasks.Selection(("spmm",), (2,), matrices=("cora",)))
    assert planned == []
    assert "cora.npz does not exist" in missing["cora"]


def test_patterns_get_values_that_differ(tmp_path, monkeypatch):
    pattern = sparse.csr_matrix(np.array([[1, 0, 1], [0, 1, 0]], dtype=np.float64))
    sparse.save_npz(tmp_path / "cora.npz", pattern)
    monkeypatch.setenv("GOSSAMER_DATASETS", str(tmp_path))
    matrices.load_matrix.cache_clear()
    matrix = matrices.load_matrix("cora", "float64").csr
    matrices.load_matrix.cache_clear()
    assert (matrix.dtype, matrix.indices.dtype, matrix.indptr.dtype) == (
        "float64",
        "int32",
        "int32",
    )
    assert len(set(matrix.data)) == 3


def test_a_selection_is_what_was_chosen():
    chosen = options.parse_options(
        ["--quick", "--op", "sddmm", "spmv", "--features", "8", "--threads", "1"]
    )
    selection = options.selection_of(chosen)
    assert selection.threads_of("spmv") == (1,)
    assert selection.features_of("sddmm") == (8,)
    assert selection.features_of("spmv") == (1,)
    assert selection.matrices_of("bsr_spmm") == ("blocks_4096",)
    assert "power_law_170k" not in selection.matrices_of("spmm")
    quick = options.selection_of(options.parse_options(["--quick"]))
    assert quick.features_of("spmm") == (32, 512)
    assert quick.features_of("attention") == (32,)
    everything = options.selection_of(options.parse_options([]))
    assert everything.features_of("spmm") == (16, 32, 64, 128, 256, 512, 1024)
    assert everything.features_of("sddmm") == (16, 32, 64, 128, 256, 512)
    assert everything.dtypes_of("spmm") == ("float32", "float64")
    assert everything.threads_of("spmm") == (1, 2)
    assert 8 <= len(everything.matrices_of("spmm")) <= 12
    assert {"mkl", "scipy", "numba", "torch"} < set(everything.contenders_of("spmv"))
    rare = options.selection_of(
        options.parse_options(["--matrix", "web_cnr2000", "--contenders", "mkl_bsr"])
    )
    assert rare.matrices_of("spmm") == ("web_cnr2000",)
    assert rare.contenders_of("spmm") == ()


def test_a_contender_has_the_interpreter_that_was_named(capsys):
    chosen = options.parse_options(["--python", "mkl=/a/python", "--python", "mkl_bsr=/b/python"])
    pythons = [options.python_of(chosen, name) for name in ("mkl", "mkl_plain", "mkl_bsr", "numba")]
    assert pythons == ["/a/python", "/a/python", "/b/python", sys.executable]
    assert options.settings(chosen) == {}
    for wrong in ("mkl", "nobody=/a"):
        with pytest.raises(SystemExit):
            options.parse_options(["--python", wrong])
    assert "expected CONTENDER=PATH" in capsys.readouterr().err


def test_every_part_can_be_chosen():
    parts = tuple(ordered_parts.PARTS.values())
    assert options.selected_parts(options.parse_options([])) == parts
    quick = [part.name for part in options.selected_parts(options.parse_options(["--quick"]))]
    assert quick == ["roofline", "kernels", "calls", "startup"]
    (chosen,) = options.selected_parts(options.parse_options(["--parts", "first", "--quick"]))
    assert chosen.name == "first"


def test_batches_hold_what_fits_in_memory_and_in_a_turn():
    names = ("gossamer", "scipy")
    small = [tasks.Task("spmm", problem().matrix, size, (1, 2), names) for size in range(1, 41)]
    batches = tasks.batches_of(small, tasks.MAX_CASE_BYTES)
    assert [one for batch in batches for one in batch.tasks] == small
    assert max(len(batch.tasks) for batch in batches) == tasks.MAX_ENTRIES // 2
    few = tasks.batches_of(4 * small[:1], 3 * small[0].bytes)
    assert [len(batch.tasks) for batch in few] == [3, 1]
    assert len(tasks.batches_of([task("spmm"), task("spmv")], tasks.MAX_CASE_BYTES)) == 2
    assert tasks.too_large(small[:1], tasks.MAX_CASE_BYTES) == {}
    assert list(tasks.too_large(small[:2], 1)) == ["spmm tiny float32 K=1 2"]


@pytest.mark.parametrize("op", PROBLEMS)
def test_sizes_are_estimated_from_shapes(op):
    posed = problem(op, features=64)
    estimated = PROBLEMS[op].estimated_bytes(posed.matrix, posed.features)
    assert 0.5 < estimated / posed.working_bytes() < 2


def test_larger_problems_are_expected_to_take_longer():
    matrix = matrices.random_blocks("large", 2048, 16, 0.2, dtype="float32")
    small, large = (
        tasks.Task("bsr_spmm", matrix, features, (1,), contenders.NAMES[:3])
        for features in (8, 512)
    )
    assert small.estimated_seconds(QUICK) < large.estimated_seconds(QUICK)
    assert tasks.Batch((small, large)).describe() == (
        "bsr_spmm large K=8 float32 ... large K=512 float32"
    )

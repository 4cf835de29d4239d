"""The harness: what it counts, what it throws away, what it says of the results."""

from __future__ import annotations

import doctest
import importlib
import io

import numpy as np
import pytest
from rich.console import Console
from scipy import sparse

from benchmarks import kernels, matrices, meter, problem, records, report, rounds
from benchmarks.contenders import Prepared, UnavailableError, prepare_scipy
from benchmarks.machine import cpu_name, describe_machine
from benchmarks.meter import Reading
from benchmarks.roofline import Bandwidth, Roofline
from benchmarks.rounds import Plan, Timed
from benchmarks.variants import load_variants

QUICK = Plan(
    rounds=4, sample_seconds=1e-4, settle_seconds=0.0, budget_seconds=5.0, quiet_seconds=0.1
)


def tiny_problem(op="spmm", features=3):
    matrix = sparse.csr_matrix(np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], dtype=np.float32))
    return problem.make_problem(op, "tiny", matrix, features)


def cell(**changes):
    figures = {"gossamer": (1.0, 2.0, 9.0), "mkl": (3.0, 3.0, 3.0), "scipy": (8.0, 8.0, 8.0)}
    given = {
        "op": "spmm", "matrix": "tiny", "shape": (3, 3), "nnz": 3, "features": 3, "threads": 2,
        "least_bytes": 100, "operations": 18, "bound_ms": 1.0, "skipped": {}, "thrown_away": 0,
        "is_disturbed": False,
        "figures": {name: records.Figure(ms, 0.0) for name, ms in figures.items()},
    }  # fmt: skip
    return records.Cell(**{**given, **changes})


def run_of(*cells):
    roof = Roofline(2, (Bandwidth(1024, 100.0),), 40.0, 250.0)
    return records.Run(
        date="2026-11-21T21:15+00:00",
        machine=describe_machine(),
        versions={"gossamer": "0.1.0"},
        settings={},
        rooflines=(roof,),
        cells=cells,
        compile_times=(records.CompileTime("spmm", 64, "imports", 200.0, 30.0, 15.0, 2.0),),
        skipped_matrices={"cora": "the file does not exist"},
    )


@pytest.mark.parametrize("name", ["kernels", "meter", "problem", "report", "roofline", "rounds"])
def test_the_examples_of_the_harness(name):
    module = importlib.import_module(f"benchmarks.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    ("busy", "stolen", "own", "disturbed"),
    [
        (1.0, 0.0, 1.0, False),  # all ours
        (1.5, 0.0, 1.0, True),  # half a processor was somebody else's
        (1.0, 0.5, 1.0, True),  # the host took half a processor
        (1.05, 0.0, 1.0, False),  # five per cent are tolerated
        (0.9, 0.0, 1.0, False),  # ticks are coarse: never negative
    ],
)
def test_foreign_work_disturbs(busy, stolen, own, disturbed):
    after = Reading(wall=1.0, busy=busy, stolen=stolen, own=own)
    assert meter.is_disturbed(Reading(0.0, 0.0, 0.0, 0.0), after) == disturbed


def test_each_contender_is_timed_in_every_round_and_activated_before():
    seen = []
    contenders = {
        name: Timed(lambda name=name: seen.append(name), lambda name=name: seen.append(f"+{name}"))
        for name in ("a", "b")
    }
    samples = rounds.measure(contenders, QUICK)
    counts = {len(seconds) for seconds in samples.seconds.values()}
    assert len(counts) == 1
    assert counts.pop() >= 3
    assert seen.count("+a") == seen.count("+b") >= QUICK.rounds
    assert all(second > 0 for seconds in samples.seconds.values() for second in seconds)


def test_nobody_takes_part_without_contenders():
    assert rounds.measure({}, QUICK).seconds == {}


def test_disturbed_rounds_count_only_where_quiet_ones_are_missing():
    few = rounds.Samples({"a": [1.0]}, disturbed=[{"a": 5.0}])
    rounds.fall_back(few, at_least=3)
    assert few.is_disturbed
    assert few.seconds == {"a": [1.0, 5.0]}
    enough = rounds.Samples({"a": [1.0, 1.0, 1.0]}, disturbed=[{"a": 5.0}])
    rounds.fall_back(enough, at_least=3)
    assert not enough.is_disturbed
    assert enough.seconds == {"a": [1.0, 1.0, 1.0]}


@pytest.mark.parametrize(("op", "features"), [("spmm", 3), ("spmv", 1)])
def test_a_cell_holds_verified_times(op, features):
    given = tiny_problem(op, features)
    found = kernels.measure_cell(given, 1, {"scipy": prepare_scipy}, None, QUICK)
    assert found.features == features
    assert found.operations == 2 * 3 * features
    assert found.figures["scipy"].max_rel_error <= problem.allowed_error(given)
    assert found.fraction("scipy") is None


@pytest.mark.parametrize(("op", "features"), [("spmm", 32), ("spmv", 1)])
def test_a_schedule_can_take_part(op, features, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "variants.py"
    file.write_text(
        "from benchmarks.variants import with_rule\n"
        "from gossamer_schedule.rules import choose\n"
        "VARIANTS = {'default': with_rule(choose)}\n"
    )
    found = kernels.measure_cell(tiny_problem(op, features), 2, load_variants(file), None, QUICK)
    assert list(found.figures) == ["default"]


def test_a_wrong_result_stops_the_benchmark():
    given = tiny_problem()
    wrong = given.empty_result()
    wrong[:] = given.reference
    wrong[2, 1] += 1e-3

    def prepare(problem, threads):
        return Prepared(Timed(lambda: None), lambda: wrong)

    with pytest.raises(
        kernels.WrongResultError, match=r"liar is wrong on spmm tiny with 3 features"
    ):
        kernels.measure_cell(given, 1, {"liar": prepare}, None, QUICK)


def test_an_element_that_was_never_written_is_wrong():
    given = tiny_problem()
    assert np.isnan(problem.relative_error(given, given.empty_result()))


def test_who_cannot_take_part_is_named_with_the_reason():
    def prepare(problem, threads):
        raise UnavailableError("not installed")

    found = kernels.measure_cell(tiny_problem(), 1, {"absent": prepare}, None, QUICK)
    assert found.skipped == {"absent": "not installed"}


def test_a_missing_matrix_is_named_with_its_path(monkeypatch, tmp_path):
    monkeypatch.setenv("GOSSAMER_DATASETS", str(tmp_path))
    with pytest.raises(matrices.MissingMatrixError, match=r"cora\.npz does not exist"):
        matrices.load_matrix("cora")


def test_patterns_get_values_that_differ(tmp_path, monkeypatch):
    pattern = sparse.csr_matrix(np.array([[1, 0, 1], [0, 1, 0]], dtype=np.float64))
    sparse.save_npz(tmp_path / "cora.npz", pattern)
    monkeypatch.setenv("GOSSAMER_DATASETS", str(tmp_path))
    matrix = matrices.load_matrix("cora")
    assert (matrix.dtype, matrix.indices.dtype, matrix.indptr.dtype) == (
        "float32",
        "int32",
        "int32",
    )
    assert len(set(matrix.data)) == 3


def test_ratios_are_of_medians():
    assert cell().ratio("mkl", "gossamer") == 1.5
    assert cell().ratio("numba", "gossamer") is None
    assert cell().fraction("gossamer") == 0.5


def test_a_goal_counts_the_fastest_peer_of_each_cell():
    goal = report.Goal("spmm", ("mkl", "scipy"), threads=2, mean=1.0)
    assert goal.ratios([cell(), cell(threads=1), cell(op="spmv")], "gossamer") == [1.5]
    assert goal.ratios([cell(is_disturbed=True)], "gossamer") == []
    absent = report.Goal("spmm", ("mkl", "numba"), threads=2, mean=1.0)
    assert absent.ratios([cell()], "gossamer") == []


def test_a_run_is_the_same_after_it_was_stored(tmp_path):
    run = run_of(cell(), cell(threads=1, bound_ms=None))
    path = records.save(run, tmp_path)
    assert path.name.startswith("2026-11-21-2115-")
    assert records.load(path) == run


def test_the_tables_say_time_bound_ratio_and_verdict():
    out = io.StringIO()
    report.print_run(run_of(cell(), cell(is_disturbed=True)), Console(file=out, width=160))
    text = out.getvalue()
    for expected in (
        "2 (50%)",
        "1.50",
        "4.00",
        "met",
        "not measured",
        "tiny *",
        "1 of 2",
        "2.00",
        "0.067",
    ):
        assert expected in text
    assert "skipped: cora: the file does not exist" in text


def test_the_processor_is_named_with_its_model(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text(
        "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\nmodel name\t: other\n"
    )
    assert cpu_name(info) == "AMD EPYC (family 26, model 2)"

"""A cell of the results holds verified times."""

from __future__ import annotations

import io

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from benchmarks.contenders import load_prepare
from benchmarks.contenders.contender import Contender, Prepared, UnavailableError
from benchmarks.harness import cells, tasks, worker
from benchmarks.harness.process import ContenderStart
from benchmarks.harness.progress import progress_bar
from benchmarks.schedule_variants import load_variants
from tests.benchmarks.benchmark_cases import QUICK, problem, run_of, task

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


class Local:
    """A contender in this process, for tests."""

    def __init__(self, name, prepare, *, threaded=True):
        self.start, self.worker = ContenderStart(name), worker.Worker(prepare)
        self.contender, self.versions = Contender("here", (), threaded=threaded), {}

    def prepare(self, key, folder, description, threads):
        answer = self.worker.prepare(
            {"key": key, "folder": folder, "description": description, "threads": threads}
        )
        return answer["skipped"]

    def result(self, key, threads):
        return worker.result_of(self.worker.prepared[key, threads], self.worker.cases[key])

    def conversion(self, key, threads):
        return self.worker.conversion({"key": key, "threads": threads})["seconds"]

    def time(self, samples):
        return self.worker.time({"samples": samples})["seconds"]

    def forget(self):
        self.worker.forget({})

    def cpu_seconds(self):
        return 0.0


def measured(*chosen, contenders, is_missed=lambda cell: False):
    """The cells of tasks in one batch."""
    with progress_bar(Console(file=io.StringIO()), 1.0) as bar:
        roofs = {roof.threads: roof for roof in run_of().rooflines}
        batch = tasks.Batch(chosen)
        return cells.measure_batch(batch, contenders, roofs, QUICK, bar, is_missed)


@pytest.mark.parametrize("op", ["spmm", "spmv", "bsr_spmm"])
def test_a_cell_holds_verified_times(op):
    contenders = {"scipy": Local("scipy", load_prepare("scipy"))}
    first, second = measured(task(op), contenders=contenders)
    posed, times = problem(op), first.figures["scipy"]
    assert (first.threads, second.threads) == (1, 2)
    assert first.features == posed.features
    assert first.operations == 2 * posed.csr.nnz * posed.features
    assert first.fits_cache == (posed.working_bytes() <= first.cache_bytes)
    assert times.max_rel_error <= posed.allowed_error()
    assert times.bound_share == pytest.approx(first.bound_ms / times.median_ms, rel=0.01)
    assert contenders["scipy"].worker.cases == {}


def test_cells_that_miss_a_goal_are_measured_again():
    contenders = {"scipy": Local("scipy", load_prepare("scipy"))}
    asked = []

    def is_missed(cell):
        asked.append(cell)
        return cell.threads == 2

    cells = measured(task("spmm"), contenders=contenders, is_missed=is_missed)
    assert [one.is_measured_again for one in cells] == [False, True]
    assert asked[0] == cells[0]
    # More samples have another median; all else is the same.
    assert replace(asked[1], figures={}, is_measured_again=True) == replace(cells[1], figures={})


def test_the_time_of_a_conversion_is_kept():
    names = ("gossamer", "gossamer_sell")
    contenders = {name: Local(name, load_prepare(name)) for name in names}
    cell, _ = measured(task("spmv", names=names), contenders=contenders)
    assert cell.figures["gossamer"].conversion_ms is None
    assert cell.figures["gossamer_sell"].conversion_ms > 0


def test_a_contender_without_threads_is_timed_once_for_all_numbers():
    contenders = {"scipy": Local("scipy", load_prepare("scipy"), threaded=False)}
    cells = measured(task(), task(features=2), contenders=contenders)
    assert [(one.features, one.threads) for one in cells] == [(3, 1), (3, 2), (2, 1), (2, 2)]
    times = [one.figures["scipy"] for one in cells]
    assert times[0] == times[1]
    assert times[2] == times[3]


@pytest.mark.parametrize(("op", "features"), [("spmm", 32), ("spmv", 1)])
def test_a_schedule_can_take_part(op, features, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "variants.py"
    file.write_text(
        "from benchmarks.schedule_variants import with_rule\n"
        "from gossamer_schedule.rules import default_schedule\n"
        "VARIANTS = {'default': with_rule(default_schedule)}\n"
    )
    contenders = {"default": Local("default", load_variants(file)["default"])}
    (cell,) = measured(task(op, features, (2,), ("default",)), contenders=contenders)
    assert list(cell.figures) == ["default"]


def test_a_wrong_result_is_not_timed():
    wrong = problem().oracle.astype(np.float32)
    wrong[2, 1] += 1e-3
    contenders = {
        "liar": Local("liar", lambda case, threads: Prepared(lambda: None, result=lambda: wrong)),
        "scipy": Local("scipy", load_prepare("scipy")),
    }
    (cell,) = measured(task(threads=(1,), names=("liar", "scipy")), contenders=contenders)
    assert list(cell.figures) == ["scipy"]
    assert "liar is wrong on spmm tiny with 3 features" in cell.wrong["liar"]


@pytest.mark.parametrize("result", [np.zeros((3, 3)), np.zeros((3, 2), np.float32)])
def test_a_result_of_another_shape_or_dtype_is_wrong(result):
    with pytest.raises(cells.WrongResultError, match="expected float32"):
        cells.error_of(problem(), "liar", result)


@pytest.mark.parametrize("elements", [1, 4, 1 << 18])
def test_an_element_that_was_never_written_is_wrong(elements, monkeypatch):
    monkeypatch.setattr("benchmarks.operators.problem.ELEMENTS_AT_ONCE", elements)
    posed = problem()
    assert np.isnan(posed.relative_error(posed.case().out))
    exact = posed.oracle.astype(np.float32)
    assert posed.relative_error(exact) <= posed.allowed_error()
    exact[0, 0] = np.nan
    assert np.isnan(posed.relative_error(exact))


def test_a_contender_that_cannot_run_is_named_with_the_reason():
    def prepare(case, threads):
        raise UnavailableError("not installed")

    contenders = {"absent": Local("absent", prepare)}
    cells = measured(task(names=("absent",)), contenders=contenders)
    assert [one.skipped for one in cells] == 2 * [{"absent": "not installed"}]

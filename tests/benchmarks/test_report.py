"""Ratios, goals, tables, pictures and the page of results."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from rich.console import Console

from benchmarks import goals, run_files
from benchmarks.operators import PROBLEMS
from benchmarks.report import (
    cell_tables,
    goal_tables,
    ratio_tables,
    roofline_picture,
    run_report,
    stored_runs,
)
from tests.benchmarks.benchmark_cases import cell, figure, run_of

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


def test_ratios_are_of_medians():
    assert cell().ratio("mkl", "gossamer") == 1.5
    assert cell().ratio("numba", "gossamer") is None
    assert cell().figures["gossamer"].bound_share == 0.5


def test_a_goal_counts_the_fastest_other_contender_of_each_cell():
    goal = goals.Goal("spmm", mean=1.2, least=0.9)
    slow = cell(matrix="slow", figures={"gossamer": figure(2.0), "torch": figure(1.0)})
    alone = cell(figures={"gossamer": figure(2.0)})
    outcome = goal.outcome([cell(), slow, alone, cell(op="spmv")])
    assert outcome.ratios == [1.5, 0.5]
    assert outcome.mean == pytest.approx(0.75**0.5)
    assert (outcome.least, outcome.worst, outcome.below) == (0.5, slow, 1)
    assert not outcome.is_met
    assert goal.outcome([cell()]).is_met
    assert goal.outcome([alone]) is None


def test_disturbed_cells_count_only_without_others():
    goal, disturbed = goals.main_goal("spmm"), cell(is_disturbed=True, features=1024)
    outcome = goal.outcome([cell(features=16), disturbed])
    assert [one.features for one in outcome.cells] == [16]
    assert outcome.disturbed == 1
    assert goal.outcome([disturbed]).cells == (disturbed,)


def test_the_parts_of_a_goal_that_were_not_measured_are_named():
    cells = [cell(features=size) for size in (16, 32, 64, 128, 256, 512)]
    outcome = goals.main_goal("spmm").outcome(cells)
    assert outcome.absent == ["numba", "torch", "K=1024", "float64", "threads=1"]
    assert goal_tables.verdict_of(outcome) == (
        "met, not measured: numba torch K=1024 float64 threads=1"
    )


@pytest.mark.parametrize(
    ("ms", "matrix", "is_missed"),
    [
        ({"gossamer": 2.0, "mkl": 2.0}, "tiny", False),
        ({"gossamer": 2.0, "mkl": 1.7}, "tiny", True),
        # The goal of finite elements is about the prepared matrix, and more than that of all matrices.
        ({"gossamer": 2.0, "gossamer_prepared": 2.0, "mkl": 1.9}, "bcsstk16", True),
        ({"gossamer": 2.0, "gossamer_prepared": 2.0, "mkl": 1.9}, "tiny", False),
        ({"gossamer": 2.0}, "tiny", False),
    ],
)
def test_a_cell_misses_a_goal_by_its_ratio(ms, matrix, is_missed):
    measured = cell(matrix=matrix, figures={name: figure(value) for name, value in ms.items()})
    assert goals.misses_goal(measured, goals.goals_for("Intel")) == is_missed


def test_cells_that_were_measured_again_are_counted():
    lines = list(run_report.absence_lines(run_of(cell(), cell(is_measured_again=True))))
    assert "1 of 2 cells missed a goal and were measured in further rounds" in lines


def test_goals_of_prepared_matrices_are_about_groups_of_matrices():
    figures = {"gossamer": figure(2.0), "gossamer_prepared": figure(1.0), "mkl": figure(2.0)}
    cells = [
        cell(matrix=name, features=size, figures=figures)
        for name in ("dlmc_tr_mag80_dec3_ffn1", "cora")
        for size in (16, 32)
    ]
    rows = {
        row[2]: row
        for row in goal_tables.goals_sheet(cells, ["gossamer"], goals.goals_for("Intel")).rows
    }
    pruned = rows["pruned weights"]
    assert pruned[:2] == ("gossamer_prepared", "spmm")
    assert pruned[4:9] == ("1", "2.00", "1.60", "2.00", "1.10")
    assert rows["real graphs"][4:6] == ("2", "2.00")
    assert "finite elements" not in rows
    (amd,) = [goal for goal in goals.goals_for("AMD") if goal.on == "pruned weights"]
    assert (amd.mean, amd.vendor) == (2.5, "AMD")


def test_a_run_is_the_same_after_it_was_stored(tmp_path):
    run = run_of(cell(), cell(threads=1, bound_ms=None))
    path = run_files.save_run(run, tmp_path)
    assert path.name == "some-machine.json"
    assert run_files.load_run(path) == run
    quick = replace(run, name="quick")
    assert run_files.save_run(quick, tmp_path).name == "some-machine-quick.json"
    assert list(run_files.stored_runs(tmp_path).values()) == [run, quick]


def test_the_tables_say_time_bound_ratio_and_verdict():
    out = io.StringIO()
    liar = cell(wrong={"liar": "liar is wrong"}, skipped={"torch": "absent"})
    run = run_of(cell(), cell(is_disturbed=True), liar)
    run_report.print_run(run, Console(file=out, width=200))
    text = out.getvalue()
    for expected in (
        "2 (50%)", "1.50", "4.00", "met", "not measured", "tiny *", "1 disturbed", "2.00", "0.067",
        "skipped: cora: the file does not exist", "skipped: torch on spmm: absent",
        "WRONG: liar is wrong", "in cache", "not loaded", "1.25", "1 of 3 cells",
        "tiny K=3, 2 threads", "other processes used 0.25 processors", "1.50 (1.50)",
    ):  # fmt: skip
        assert expected in text


def test_the_calls_that_pay_for_a_conversion_are_counted():
    fast = replace(figure(0.5), conversion_ms=10.0)
    slow = replace(figure(2.0), conversion_ms=10.0)
    cells = [
        cell(
            op="spmv", figures={"gossamer": figure(1.0), "mkl": figure(0.75), "gossamer_sell": one}
        )
        for one in (fast, slow)
    ]
    sheet = cell_tables.conversion_pays_sheet("spmv", [*cells, cell()], "gossamer_sell")
    assert [row[3:] for row in sheet.rows] == [
        ("1", "0.5", "2.00", "1.50", "10", "20 calls"),
        ("1", "2", "0.50", "0.38", "10", "never"),
    ]


def test_means_are_apart_for_what_caches_hold():
    figures = {"gossamer": figure(1.0), "mkl": figure(4.0)}
    sheet = ratio_tables.means_sheet(
        [cell(), cell(working_bytes=2000, figures=figures)], "gossamer"
    )
    assert [row[:5] for row in sheet.rows] == [
        ("spmm", "float32", "in cache", "2", "1"),
        ("spmm", "float32", "beyond cache", "2", "1"),
    ]
    assert "4.00 (4.00)" in sheet.rows[1]


def test_ratios_to_the_fastest_other_contender_are_apart_for_dtypes_threads_and_sizes():
    cells = [cell(), cell(features=9), cell(dtype="float64"), cell(threads=1)]
    rows = ratio_tables.best_sheet(cells, "gossamer").rows
    assert [row[1:4] for row in rows] == [
        ("float32", "2", "2"),
        ("float64", "2", "1"),
        ("float32", "1", "1"),
    ]
    sheet = ratio_tables.sizes_sheet(cells, "gossamer")
    assert sheet.columns[3:] == ("3", "9")
    assert [row[4] for row in sheet.rows] == ["1.50 (1.50)", "-", "-"]


def test_the_picture_has_a_point_for_each_cell_and_the_roofs():
    shown = [cell(op=op, threads=threads, least_bytes=10) for op in PROBLEMS for threads in (1, 2)]
    hidden = cell(figures={"mkl": figure(3.0)})
    picture_text = roofline_picture.draw(run_of(*shown, hidden))
    root = ElementTree.fromstring(picture_text)
    titles = [node.text for node in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(shown)
    assert all("tiny K=3: 0.0 GFLOP/s" in title for title in titles)
    assert picture_text.count('class="roof"') == 2 * picture_text.count("memory 40 GB/s") == 4
    assert "nan" not in picture_text


def test_every_operator_has_a_shape_and_a_color_of_its_own():
    assert {kind.marker for kind in PROBLEMS.values()} == set(roofline_picture.SHAPES)
    assert len({kind.color for kind in PROBLEMS.values()}) == len(PROBLEMS)


def test_the_page_shows_one_run_of_each_processor_between_the_marks(tmp_path):
    readme, results = tmp_path / "README.md", tmp_path / "results"
    readme.write_text(f"before\n\n{stored_runs.BEGIN}\nold\n{stored_runs.END}\n\nafter\n")
    stored_run = run_of(cell())
    intel = replace(stored_run.machine, name="other", vendor="Intel")
    amd = replace(stored_run.machine, vendor="AMD")
    chosen = {"machine": amd, "name": "quick"}
    for changes in ({"machine": amd}, chosen):
        run = replace(stored_run, **changes)
        run_report.write_report(run_files.save_run(run, results), run)
    stored_runs.show_in_readme(readme, results)
    assert "### Intel\n\nNo run is stored yet." in readme.read_text()
    run = replace(stored_run, machine=intel)
    run_report.write_report(run_files.save_run(run, results), run)
    stored_runs.show_in_readme(readme, results)
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\n\nafter\n")
    assert "old" not in text
    assert "not stored" not in text
    assert text.index("### AMD: ") < text.index("![roofline](results/some-machine.svg)")
    assert text.index("### AMD: ") < text.index("### Intel: ")
    assert text.count("#### goals") == 2


def test_the_page_shows_what_is_stored():
    """`python -m benchmarks report FILE --readme` after the tables have changed."""
    text = stored_runs.README.read_text()
    shown = text.partition(stored_runs.BEGIN)[2].partition(stored_runs.END)[0]
    runs = run_files.stored_runs()
    assert shown.strip() == stored_runs.stored_runs_text(runs, stored_runs.README.parent).strip()
    for path, run in runs.items():
        if run.name is None:
            assert path.with_suffix(".svg").read_text() == roofline_picture.draw(run)


def test_stored_runs_have_one_file_for_each_processor_and_options():
    paths = [*run_files.RESULTS.glob("*.json")]
    assert paths != []
    for path in paths:
        run = run_files.load_run(path)
        assert path.name == run_files.file_name(run)
        assert run.machine.vendor in stored_runs.VENDORS


def test_no_figure_of_the_summary_is_against_mkl_alone():
    figures = {"gossamer": figure(1.0), "mkl": figure(100.0), "torch": figure(3.0)}
    text = run_report.summary(run_of(cell(figures=figures)))
    assert "3.00" in text
    assert "100.00" not in text

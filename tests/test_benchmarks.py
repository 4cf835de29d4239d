"""The benchmark harness: what it measures, discards and reports."""

from __future__ import annotations

import doctest
import importlib
import io
import sys
from contextlib import closing
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from rich.console import Console
from scipy import sparse

from benchmarks import (
    __main__,
    call_overhead,
    compiling,
    fresh,
    goals,
    machine,
    matrices,
    mini_batches,
    options,
    page,
    peers,
    picture,
    python_share,
    records,
    report,
    running,
    startup,
)
from benchmarks.harness import cells, meter, rounds, tasks
from benchmarks.harness.meter import Reading
from benchmarks.harness.progress import progress_bar
from benchmarks.harness.rounds import Plan, Timed, timed_call
from benchmarks.operators import OPERATORS
from benchmarks.peers.mkl_blocks import MklBlocks
from benchmarks.peers.peer import Prepared, UnavailableError
from benchmarks.peers.torch import Torch
from benchmarks.roofline import Bandwidth, Roofline
from benchmarks.variants import load_variants
from gossamer.cli.bench import mkl
from gossamer_ir.errors import ArgumentError
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_testkit import attention, sddmm, spmm, spmv

QUICK = Plan(
    rounds=4, sample_seconds=1e-4, settle_seconds=0.0, budget_seconds=5.0, quiet_seconds=0.1
)
CSR = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 0]], dtype=np.float32)
EMPTY = np.zeros((3, 4), dtype=np.float32)
DOCTESTS = [
    "compiling", "goals", "machine", "matrices", "picture", "report", "roofline", "tables",
    "harness.cells", "harness.meter", "harness.rounds", "harness.tasks", "operators.attention",
    "operators.sddmm", "operators.spmm",
]  # fmt: skip


def problem(op="spmm", features=3, dense=CSR, dtype="float32"):
    if op == "bsr_spmm":
        matrix = matrices.random_blocks("blocks_tiny", 12, 4, 0.4, dtype=dtype)
    else:
        matrix = matrices.matrix_of("tiny", sparse.csr_matrix(dense), dtype)
    return OPERATORS[op](matrix, 1 if op == "spmv" else features)


def exact(given):
    """The result of a problem by the oracles of the testkit, for each row of the stored elements."""
    if given.op in ("spmm", "spmv", "bsr_spmm"):
        product = spmv if given.op == "spmv" else spmm
        return product(given.csr, *given.operands)
    return {"sddmm": sddmm, "attention": attention}[given.op](given.csr, *given.operands)


def figure(ms):
    return records.Figure(ms, (ms, ms), (ms,), 0.0, of_bandwidth=1.0 / ms, of_peak=0.25 / ms)


def cell(**changes):
    given = {
        "op": "spmm", "matrix": "tiny", "kind": "graph", "shape": (3, 3), "nnz": 3, "features": 3,
        "dtype": "float32", "threads": 2, "least_bytes": 100, "operations": 18,
        "working_bytes": 200, "cache_bytes": 1000, "bound_ms": 1.0, "skipped": {}, "wrong": {},
        "thrown_away": 0, "is_disturbed": False,
        "figures": {"gossamer": figure(2.0), "mkl": figure(3.0), "scipy": figure(8.0)},
    }  # fmt: skip
    return records.Cell(**{**given, **changes})


def run_of(*found):
    read = (Bandwidth(1 << 16, 200.0), Bandwidth(1 << 28, 40.0))
    peaks = {"float32": 250.0, "float64": 125.0}
    return records.Run(
        date="2026-11-21T21:15+00:00",
        machine=machine.describe_machine("some machine"),
        versions={"gossamer": "0.1.0"},
        settings={},
        rooflines=(Roofline(1, read, 40.0, peaks), Roofline(2, read, 40.0, peaks)),
        cells=found,
        compile_times=(records.CompileTime("spmm", 64, "imports", 200.0, 30.0, 15.0, 2.0),),
        python_shares=(records.PythonShare("200 nodes, lowering", 6.0, 12.0, 1.0),),
        startups=(records.Startup("import gossamer", 90.0, (90.0,), 200.0, loads_llvm=False),),
        call_costs=(records.CallCost("spmv", "bound()", 1.25, 3.0),),
        mini_batches=(records.MiniBatches("cora", 500, 1000, 0.5, 0, 20.0, 60.0),),
        missing={"cora": "the file does not exist"},
    )


@pytest.mark.parametrize("name", DOCTESTS)
def test_the_examples_of_the_harness(name):
    module = importlib.import_module(f"benchmarks.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    assert name == "compiling" or name == "report" or result.attempted > 0


# what is disturbed


@pytest.mark.parametrize(
    ("busy", "stolen", "own", "disturbed"),
    [
        (1.0, 0.0, 1.0, False),  # all ours
        (1.5, 0.0, 1.0, True),  # another process used half a processor
        (1.0, 0.5, 1.0, True),  # the host took half a processor
        (1.05, 0.0, 1.0, False),  # five per cent are tolerated
        (0.9, 0.0, 1.0, False),  # ticks are coarse: never negative
    ],
)
def test_foreign_work_disturbs(busy, stolen, own, disturbed):
    after = Reading(wall=1.0, busy=busy, stolen=stolen, own=own)
    assert meter.is_disturbed(Reading(0.0, 0.0, 0.0, 0.0), after) == disturbed


def test_the_work_of_our_other_processes_is_not_foreign():
    assert meter.read_meter([lambda: 1.0, lambda: 2.5]).own == 3.5
    clock = lambda: 1.0  # noqa: E731
    contenders = {name: Timed(lambda calls: 0.0, clock=clock) for name in ("a", "b")}
    assert rounds.our_clocks(contenders)[1:] == (clock,)


def test_each_contender_is_timed_in_every_round_and_activated_before():
    seen = []
    contenders = {
        name: timed_call(
            lambda name=name: seen.append(name), lambda name=name: seen.append(f"+{name}")
        )
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


# operators and peers


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dense", [CSR, EMPTY], ids=["some", "none"])
@pytest.mark.parametrize("op", OPERATORS)
def test_the_oracle_is_what_dense_arithmetic_gives(op, dense, dtype):
    given = problem(op, dense=dense, dtype=dtype)
    assert given.reference.dtype == np.float64
    np.testing.assert_allclose(given.reference, exact(given), rtol=1e-12, atol=1e-12)
    assert (given.magnitude >= np.abs(given.reference) * (1 - 1e-12)).all()
    assert given.relative_error(given.reference.astype(dtype)) <= given.allowed_error()
    assert given.least_work().bytes <= given.working_bytes()


def test_the_oracle_of_sampled_products_works_in_parts(monkeypatch):
    whole = problem("sddmm").reference
    monkeypatch.setattr("benchmarks.operators.sddmm.NONZEROS_AT_ONCE", 2)
    np.testing.assert_array_equal(problem("sddmm").reference, whole)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", OPERATORS)
def test_everybody_is_right_or_says_why_not(op, dtype, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    everybody = peers.contenders(Torch())
    assert tuple(everybody) == peers.NAMES
    given = problem(op, features=5, dtype=dtype)
    prepared, skipped = cells.prepare_all(given, 2, everybody)
    errors, wrong = cells.verify_all(given, prepared)
    assert wrong == {}
    assert set(errors) | set(skipped) == set(peers.NAMES)
    assert all(skipped.values())
    assert "torch" in skipped["torch"]
    if op != "sddmm":
        assert "scipy" in errors
    if compiling.find_compiler() is not None and op != "attention":
        assert "taco_like" in errors


def test_without_a_compiler_the_c_kernels_are_absent(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    compiling.load_library.cache_clear()
    prepare = peers.contenders(Torch())["taco_like"]
    with pytest.raises(UnavailableError, match="no C compiler"):
        prepare(problem(), 1)
    assert compiling.find_compiler() is None


def test_torch_is_absent_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.delenv("GOSSAMER_BENCH_TORCH", raising=False)
    with pytest.raises(UnavailableError, match="GOSSAMER_BENCH_TORCH"):
        Torch().prepare(problem(), 1)
    with pytest.raises(UnavailableError, match="does not start"):
        Torch(str(tmp_path / "python")).prepare(problem(), 1)
    with pytest.raises(UnavailableError, match=r"ended: .*worker\.py"):
        Torch(sys.executable, worker=tmp_path / "worker.py").prepare(problem(), 1)


def test_another_process_takes_part_over_a_pipe(tmp_path):
    """Tests the protocol with a process that echoes the requests."""
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import json, shutil, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if asked['do'] == 'load': shutil.copy(asked['file'], __file__ + '.npz')\n"
        "    refused = asked['do'] == 'result'\n"
        "    answer = {'error': 'no'} if refused else {'seconds': 0.5, 'version': 'x'}\n"
        "    print(json.dumps(answer), flush=True)\n"
    )
    with closing(Torch(sys.executable, worker=worker)) as torch:
        given = problem("sddmm")
        prepared = torch.prepare(given, 2)
        prepared.timed.activate()
        assert prepared.timed.seconds(3) == 0.5
        assert prepared.timed.clock() == 0.5
        with pytest.raises(UnavailableError, match="torch does not do this: no"):
            prepared.result()
    with np.load(f"{worker}.npz") as stored:
        assert sorted(stored.files) == ["data", "indices", "indptr", "operand0", "operand1"]
        np.testing.assert_array_equal(stored["operand1"], given.operands[1])


# cells


@pytest.mark.parametrize("op", ["spmm", "spmv", "bsr_spmm"])
def test_a_cell_holds_verified_times(op):
    given = problem(op)
    chosen = {"scipy": peers.scipy.prepare}
    found = cells.measure_cell(given, 1, chosen, run_of().rooflines[0], QUICK)
    times = found.figures["scipy"]
    assert found.features == given.features
    assert found.operations == 2 * given.csr.nnz * given.features
    assert found.fits_cache == (given.working_bytes() <= found.cache_bytes)
    assert times.max_rel_error <= given.allowed_error()
    assert times.quartiles_ms[0] <= times.median_ms <= times.quartiles_ms[1]
    assert min(times.samples_ms) <= times.median_ms <= max(times.samples_ms)
    assert times.of_bound == pytest.approx(found.bound_ms / times.median_ms, rel=0.01)


@pytest.mark.parametrize(("op", "features"), [("spmm", 32), ("spmv", 1)])
def test_a_schedule_can_take_part(op, features, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "variants.py"
    file.write_text(
        "from benchmarks.variants import with_rule\n"
        "from gossamer_schedule.rules import choose\n"
        "VARIANTS = {'default': with_rule(choose)}\n"
    )
    found = cells.measure_cell(problem(op, features), 2, load_variants(file), None, QUICK)
    assert list(found.figures) == ["default"]
    assert found.bound_ms is None


def test_a_wrong_result_is_not_timed():
    given = problem()
    wrong = given.reference.astype(np.float32)
    wrong[2, 1] += 1e-3

    def prepare(problem, threads):
        return Prepared(timed_call(lambda: None), lambda: wrong)

    chosen = {"liar": prepare, "scipy": peers.scipy.prepare}
    found = cells.measure_cell(given, 1, chosen, None, QUICK)
    assert list(found.figures) == ["scipy"]
    assert "liar is wrong on spmm tiny with 3 features" in found.wrong["liar"]


@pytest.mark.parametrize("result", [np.zeros((3, 3)), np.zeros((3, 2), np.float32)])
def test_a_result_of_another_shape_or_dtype_is_wrong(result):
    prepared = Prepared(timed_call(lambda: None), lambda: result)
    with pytest.raises(cells.WrongResultError, match="expected float32"):
        cells.verify(problem(), "liar", prepared)


def test_an_element_that_was_never_written_is_wrong():
    given = problem()
    assert np.isnan(given.relative_error(given.empty_result()))


def test_who_cannot_take_part_is_named_with_the_reason():
    def prepare(problem, threads):
        raise UnavailableError("not installed")

    found = cells.measure_cell(problem(), 1, {"absent": prepare}, None, QUICK)
    assert found.skipped == {"absent": "not installed"}


# matrices and the plan


def test_a_missing_matrix_is_named_with_its_path(monkeypatch, tmp_path):
    monkeypatch.setenv("GOSSAMER_DATASETS", str(tmp_path))
    matrices.load_matrix.cache_clear()
    planned, missing = tasks.plan_tasks(tasks.Selection(("spmm",), (2,), matrices=("cora",)))
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
    chosen = options.parse(
        ["--quick", "--op", "sddmm", "spmv", "--features", "8", "--threads", "1"]
    )
    selection = options.selection_of(chosen)
    assert selection.threads == (1,)
    assert selection.features_of("sddmm") == (8,)
    assert selection.features_of("spmv") == (1,)
    assert selection.matrices_of("bsr_spmm") == ("blocks_4096",)
    assert "power_law_170k" not in selection.matrices_of("spmm")
    everything = options.selection_of(options.parse([]))
    assert everything.features_of("sddmm") == (32, 128)
    assert everything.matrices_of("spmm") == OPERATORS["spmm"].matrices


def test_every_part_can_be_chosen():
    assert tuple(running.PARTS) == options.PARTS


def test_larger_problems_are_expected_to_take_longer():
    matrix = matrices.random_blocks("large", 2048, 16, 0.2, dtype="float32")
    small, large = (tasks.Task("bsr_spmm", matrix, features, (1,)) for features in (8, 512))
    assert small.estimated_seconds(3, QUICK) < large.estimated_seconds(3, QUICK)
    assert large.describe(2) == "bsr_spmm large K=512, 2 threads"


# the command


def test_a_run_leaves_data_page_and_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GOSSAMER_DATASETS", str(tmp_path))
    matrices.load_matrix.cache_clear()
    sparse.save_npz(tmp_path / "cora.npz", sparse.csr_matrix(CSR))
    words = "--matrix cora pubmed --op spmm sddmm --features 4 --threads 1 --rounds 3 --budget 0.5 "
    words += "--peers scipy numba --parts kernels --output"
    assert __main__.main([*words.split(), str(tmp_path / "out")]) == 0
    matrices.load_matrix.cache_clear()
    (path,) = (tmp_path / "out").glob("*.json")
    run = records.load(path)
    assert [(found.op, found.matrix) for found in run.cells] == [
        ("spmm", "cora"),
        ("sddmm", "cora"),
    ]
    assert "pubmed" in run.missing
    assert str(tmp_path) not in str(run.settings)
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
    def fail(bar):
        raise fresh.ProcessError("it broke")

    monkeypatch.setattr("benchmarks.startup.measure_startups", fail)
    words = ["--parts", "startup", "--output", str(tmp_path)]
    assert __main__.main(words) == 1
    assert "FAILED: startup: it broke" in capsys.readouterr().out
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_an_interrupted_run_keeps_what_it_has(monkeypatch, tmp_path, capsys):
    def measure(given, *others):
        if given.features == 2:
            raise KeyboardInterrupt
        return cell()

    monkeypatch.setattr(running, "measure_cell", measure)
    words = "--parts kernels startup --op bsr_spmm --features 1 2 --threads 1 --output"
    assert __main__.main([*words.split(), str(tmp_path)]) == 1
    assert "FAILED: the rest: interrupted" in capsys.readouterr().out
    (path,) = tmp_path.glob("*.json")
    run = records.load(path)
    assert len(run.cells) == 1
    assert run.startups == ()


def test_calls_are_right_and_their_costs_are_told_apart(monkeypatch, tmp_path):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(call_overhead, "CALLS", 50)
    monkeypatch.setattr(call_overhead, "QUIET_SECONDS", 0.0)
    with progress_bar(Console(file=io.StringIO()), 1.0) as bar:
        costs = call_overhead.measure_call_costs(bar)
    assert {cost.op for cost in costs} == set(call_overhead.OPERATORS)
    assert all(cost.median_us > 0 for cost in costs)
    assert [cost.what for cost in costs if cost.limit_us is not None] == ["bound()"] * 2


def test_mini_batches_are_measured_in_a_fresh_process():
    found = mini_batches.measure_graph("power_law_170k", 3)
    assert (found.graph, found.batches, found.rows) == ("power_law_170k", 3, 1000)
    assert found.scipy_us > 0
    worse = msgspec.structs.replace(found, grown_mb=0.0, late_files=1, overhead_us=0.0)
    assert not worse.is_met
    assert msgspec.structs.replace(worse, late_files=0).is_met


def test_starts_are_measured_in_processes_of_their_own():
    seconds, loads_llvm = startup.measure_statement("import gossamer")
    assert seconds > 0
    assert not loads_llvm
    assert startup.measure_statement("import llvmlite")[1]
    with pytest.raises(fresh.ProcessError, match="no_such_module"):
        startup.measure_statement("import no_such_module")


# what is said


def test_ratios_are_of_medians():
    assert cell().ratio("mkl", "gossamer") == 1.5
    assert cell().ratio("numba", "gossamer") is None
    assert cell().figures["gossamer"].of_bound == 0.5


def test_a_goal_counts_the_fastest_peer_of_each_cell():
    goal = goals.Goal("spmm", ("mkl", "scipy"), threads=2, mean=1.0)
    others = [cell(threads=1), cell(op="spmv"), cell(dtype="float64")]
    assert goal.ratios([cell(), *others], "gossamer") == [1.5]
    assert goal.ratios([cell(is_disturbed=True)], "gossamer") == []
    absent = goals.Goal("spmm", ("mkl", "numba"), threads=2, mean=1.0)
    assert absent.ratios([cell()], "gossamer") == []
    beyond = goals.Goal("spmm", ("mkl",), threads=2, mean=1.0, where=goals.on_graphs)
    assert beyond.ratios([cell()], "gossamer") == []
    assert beyond.ratios([cell(working_bytes=2000)], "gossamer") == [1.5]


def test_a_run_is_the_same_after_it_was_stored(tmp_path):
    run = run_of(cell(), cell(threads=1, bound_ms=None))
    path = records.save(run, tmp_path)
    assert path.name == "2026-11-21-2115-some-machine.json"
    assert records.load(path) == run


def test_the_tables_say_time_bound_ratio_and_verdict():
    out = io.StringIO()
    liar = cell(wrong={"liar": "liar is wrong"}, skipped={"torch": "absent"})
    run = run_of(cell(), cell(is_disturbed=True), liar)
    report.print_run(run, Console(file=out, width=200))
    text = out.getvalue()
    for expected in (
        "2 (50%)", "1.50", "4.00", "met", "not measured", "tiny *", "2 of 3", "2.00", "0.067",
        "skipped: cora: the file does not exist", "skipped: torch on spmm: absent",
        "WRONG: liar is wrong", "in cache", "not loaded",
        "1.25",
    ):  # fmt: skip
        assert expected in text


def test_means_are_apart_for_what_caches_hold():
    figures = {"gossamer": figure(1.0), "mkl": figure(4.0)}
    sheet = report.means_sheet([cell(), cell(working_bytes=2000, figures=figures)], "gossamer")
    assert [row[:4] for row in sheet.rows] == [
        ("spmm", "in cache", "2", "1"),
        ("spmm", "beyond cache", "2", "1"),
    ]
    assert "4.00 (4.00)" in sheet.rows[1]


def test_the_picture_has_a_point_for_each_cell_and_the_roofs():
    shown = [cell(op=op, threads=threads, least_bytes=10) for op in OPERATORS for threads in (1, 2)]
    hidden = cell(figures={"mkl": figure(3.0)})
    picture_text = picture.draw(run_of(*shown, hidden))
    root = ElementTree.fromstring(picture_text)
    titles = [node.text for node in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(shown)
    assert all("tiny K=3: 0.0 GFLOP/s" in title for title in titles)
    assert picture_text.count('class="roof"') == 2 * picture_text.count("memory 40 GB/s") == 4
    assert "nan" not in picture_text


@pytest.mark.parametrize("op", OPERATORS)
def test_every_operator_has_a_shape_and_a_colour(op):
    assert op in picture.SHAPES
    assert op in picture.COLOURS


def test_the_page_shows_the_run_between_the_marks(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n")
    run = run_of(cell())
    path = records.save(run, tmp_path / "results")
    report.write_report(path, run)
    page.show_in_readme(path, run, readme)
    page.show_in_readme(path, run, readme)
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\n\nafter\n")
    assert "old" not in text
    assert f"![roofline](results/{path.stem}.svg)" in text
    assert text.count("goals") == 1


def test_the_page_shows_what_is_stored():
    """`python -m benchmarks report FILE --readme` after the tables have changed."""
    text = page.README.read_text()
    shown = text.partition(page.BEGIN)[2].partition(page.END)[0]
    (path,) = [path for path in records.RESULTS.glob("*.json") if path.name in shown]
    run = records.load(path)
    assert shown.strip() == page.shown(path, run, page.README.parent).strip()
    assert path.with_suffix(".svg").read_text() == picture.draw(run)


# the machine


def test_the_processor_is_named_with_its_model(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text(
        "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\nmodel name\t: other\n"
    )
    assert machine.cpu_name(info) == "AMD EPYC (family 26, model 2)"


def test_caches_count_as_far_as_they_are_ours(tmp_path, monkeypatch):
    facts = {
        "index0": ("1", "48K", "0"),
        "index2": ("2", "1024K", "0"),
        "index3": ("3", "32M", "0-3"),
    }
    for name, (level, size, sharing) in facts.items():
        (tmp_path / name).mkdir()
        for part, text in (("level", level), ("size", size), ("shared_cpu_list", sharing)):
            (tmp_path / name / part).write_text(text + "\n")
        (tmp_path / name / "type").write_text("Unified\n")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    assert machine.cache_share(1, tmp_path) == (1 << 20) + (16 << 20)
    assert machine.cache_share(2, tmp_path) == (2 << 20) + (16 << 20)
    assert machine.caches(tmp_path)["L3 Unified"] == "32M"


def test_the_subjects_of_compiling_are_what_they_are_called():
    assert python_share.SUBJECTS.keys() == goals.PYTHON_SHARES.keys()
    assert len(python_share.STEPS) == 30
    layers = parse_module(python_share.layers_script(python_share.LAYERS))
    assert 190 <= sum(1 for _ in walk(layers)) <= 210


def test_python_is_measured_beside_llvm():
    python, llvm = python_share.replaying_steps()
    assert python > 0
    assert llvm > 0


@pytest.mark.skipif(mkl.library_path() is None, reason="MKL is not installed beside this Python")
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mkl_multiplies_blocks(dtype, optimize):
    random = np.random.default_rng(1)
    mask = np.kron(random.random((5, 7)) < 0.5, np.ones((4, 4)))
    dense = (random.integers(-3, 4, (20, 28)) * mask).astype(dtype)
    blocks = sparse.bsr_array(dense, blocksize=(4, 4))
    operand, out = random.integers(-3, 4, (28, 5)).astype(dtype), np.empty((20, 5), dtype)
    MklBlocks(blocks, features=5, optimize=optimize).product(operand, out)()
    np.testing.assert_array_equal(out, dense @ operand)
    with pytest.raises(ArgumentError, match="4 x 2"):
        MklBlocks(sparse.bsr_array(dense, blocksize=(4, 2)), features=5)

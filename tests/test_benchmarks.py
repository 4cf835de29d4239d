"""The benchmark harness: what it measures, discards and reports."""

from __future__ import annotations

import doctest
import importlib
import io
import json
import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from rich.console import Console
from scipy import sparse

from benchmarks import (
    __main__,
    call_overhead,
    case,
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
    worker,
)
from benchmarks.harness import cells, meter, rounds, tasks
from benchmarks.harness.meter import Reading
from benchmarks.harness.process import Process, Remote, Start
from benchmarks.harness.progress import progress_bar
from benchmarks.harness.rounds import Plan, Sample, Samples
from benchmarks.operators import OPERATORS
from benchmarks.peers.mkl_blocks import MklBlocks
from benchmarks.peers.peer import Prepared, UnavailableError
from benchmarks.roofline import Bandwidth, Roofline
from benchmarks.variants import load_variants
from gossamer.cli.bench import mkl
from gossamer_ir.errors import ArgumentError
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_testkit import attention, sddmm, spmm, spmv

QUICK = Plan(rounds=4, sample_seconds=1e-4, pause_seconds=0.0, budget_seconds=5.0)
CSR = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 0]], dtype=np.float32)
EMPTY = np.zeros((3, 4), dtype=np.float32)
DOCTESTS = [
    "compiling", "goals", "machine", "matrices", "options", "picture", "report", "roofline", "tables",
    "harness.cells", "harness.meter", "harness.process", "harness.rounds", "harness.tasks",
    "operators.attention", "operators.sddmm", "operators.spmm",
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
        "is_disturbed": False,
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
        foreign=0.25,
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
    assert 0 < meter.cpu_seconds_of(os.getpid()) < 10_000
    assert meter.cpu_seconds_of(2**30) == 0.0


class Contestant:
    """Answers with a constant, and notes what it is asked for."""

    def __init__(self, log, name, *, fails_after=99):
        self.log, self.name, self.fails_after = log, name, fails_after

    def time(self, samples):
        self.log.append((self.name, samples))
        if sum(name == self.name for name, _ in self.log) > self.fails_after:
            raise UnavailableError("it ended")
        return [1e-5 * threads for _, threads, _, _ in samples]

    def cpu_seconds(self):
        return 0.0


ENTRIES = [("0", 1), ("0", 2), ("1", 1)]


def test_each_contender_has_a_turn_with_all_cases_in_every_round():
    log = []
    contestants = {name: Contestant(log, name) for name in ("a", "b")}
    samples = rounds.measure(contestants, dict.fromkeys(contestants, ENTRIES), QUICK)
    turns = [name for name, _ in log]
    assert turns[:4] == ["a", "a", "b", "b"]  # they warm up
    assert turns[4:8] == ["a", "b", "b", "a"]  # the order rotates
    assert [(key, threads, warm, calls) for key, threads, warm, calls in log[4][1]] == [
        ("0", 1, 3, 10), ("0", 2, 1, 5), ("1", 1, 3, 10)
    ]  # fmt: skip
    for name in contestants:
        for entry in ENTRIES:
            seconds, _ = samples.chosen(name, entry)
            assert len(samples.found[name][entry]) >= QUICK.rounds
            assert set(seconds) == {1e-5 * entry[1]}


def test_a_contender_whose_process_ends_is_given_up_and_the_others_go_on():
    log = []
    contestants = {"a": Contestant(log, "a"), "b": Contestant(log, "b", fails_after=3)}
    samples = rounds.measure(contestants, dict.fromkeys(contestants, ENTRIES), QUICK)
    assert samples.ended == {"b": "it ended"}
    assert list(samples.found) == ["a"]
    assert len(samples.found["a"]["0", 1]) >= QUICK.rounds


def test_nobody_takes_part_without_contenders():
    assert rounds.measure({}, {}, QUICK).found == {}


def test_disturbed_samples_count_only_where_quiet_ones_are_missing():
    quiet, disturbed = Sample(1.0), Sample(5.0, foreign=0.5)
    entry = ("0", 1)
    few = Samples({"a": {entry: [quiet, disturbed, quiet, disturbed]}})
    assert few.chosen("a", entry) == ([1.0, 5.0, 1.0, 5.0], True)
    assert few.disturbed()
    enough = Samples({"a": {entry: [quiet, disturbed, quiet, quiet]}})
    assert enough.chosen("a", entry) == ([1.0, 1.0, 1.0], False)
    assert not enough.disturbed()


def test_rounds_go_on_beside_a_busy_process_but_not_for_ever():
    busy = Samples({"a": {("0", 1): [Sample(1.0, foreign=1.0)]}})
    quiet = Samples({"a": {("0", 1): [Sample(1.0)]}})
    later, passed = rounds.time.perf_counter() + 60, 0.0
    assert rounds.is_wanted(busy, 4, later, QUICK)
    assert not rounds.is_wanted(busy, 4 + rounds.FURTHER, later, QUICK)
    assert not rounds.is_wanted(quiet, 4, later, QUICK)
    assert not rounds.is_wanted(busy, 3, passed, QUICK)
    assert rounds.is_wanted(busy, 2, passed, QUICK)


def test_progress_is_printed_without_a_terminal():
    out = io.StringIO()
    with progress_bar(Console(file=out, width=80), 10.0) as bar:
        bar.advance(5.0)
        bar.says("spmm cora")
        bar.details("round 1")
    assert "50 %: spmm cora" in out.getvalue()


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


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # of torch, where it is installed
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", OPERATORS)
def test_everybody_is_right_or_says_why_not(op, dtype, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    given, errors, absent = problem(op, features=5, dtype=dtype), {}, {}
    names = tasks.Selection((op,), peers=peers.NAMES).contenders_of(op)
    for name in names:
        try:
            one = given.case()
            result = worker.result_of(peers.load_prepare(name)(one, 2), one)
        except (UnavailableError, ImportError) as error:
            absent[name] = str(error)
        else:
            errors[name] = cells.error_of(given, name, result)
    assert all(absent.values())
    assert "gossamer" in errors
    assert ("scipy" in errors) == (op != "sddmm")
    if compiling.find_compiler() is not None and op != "attention":
        assert "taco_like" in errors


def test_every_operator_has_peers_and_a_goal():
    for op in OPERATORS:
        usual = tasks.Selection((op,)).contenders_of(op)
        assert peers.OURS in usual
        assert set(goals.main_goal(op).peers) <= set(usual)


def test_without_a_compiler_the_c_kernels_are_absent(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    compiling.load_library.cache_clear()
    prepare = peers.load_prepare("taco_like")
    with pytest.raises(UnavailableError, match="no C compiler"):
        prepare(problem().case(), 1)
    assert compiling.find_compiler() is None


@pytest.mark.parametrize("op", ["sddmm", "bsr_spmm", "spmv"])
def test_a_case_is_the_same_after_it_was_written(op, tmp_path):
    given = problem(op).case()
    description = json.loads(json.dumps(case.write_case(given, tmp_path)))
    found = case.read_case(tmp_path, description)
    assert (found.op, found.result_shape) == (given.op, given.result_shape)
    assert (found.features, found.dtype) == (given.features, given.dtype)
    np.testing.assert_array_equal(found.csr.toarray(), given.csr.toarray())
    assert found.csr.indices.dtype == np.int32
    for one, other in zip(found.operands, given.operands, strict=True):
        np.testing.assert_array_equal(one, other)
    if given.bsr is not None:
        np.testing.assert_array_equal(found.bsr.data, given.bsr.data)
    assert np.isnan(found.out).all()


# processes


@pytest.fixture(scope="module")
def remote():
    """SciPy in a process of its own."""
    with closing(Remote(Start("scipy"))) as found:
        yield found


def test_a_contender_runs_in_a_process_of_its_own(remote, tmp_path):
    given = problem("spmm")
    description = case.write_case(given.case(), tmp_path)
    assert remote.prepare("7", tmp_path, description, [1]) == {}
    assert cells.error_of(given, "scipy", remote.result("7", 1)) <= given.allowed_error()
    assert all(seconds > 0 for seconds in remote.time([("7", 1, 0, 3), ("7", 1, 2, 1)]))
    assert remote.versions.keys() == {"numpy", "scipy"}
    assert remote.process.process.pid != os.getpid()


def test_a_contender_that_ends_is_named_and_starts_again(remote, tmp_path):
    description = case.write_case(problem("spmm").case(), tmp_path)
    remote.prepare("0", tmp_path, description, [1])
    remote.process.process.send_signal(signal.SIGKILL)
    with pytest.raises(UnavailableError, match="scipy ended with status -9"):
        remote.time([("0", 1, 0, 1)])
    with pytest.raises(UnavailableError, match="ended"):  # its cases are lost
        remote.prepare("1", tmp_path, description, [1])
    remote.forget()
    assert remote.prepare("1", tmp_path, description, [1]) == {}


def test_a_contender_that_cannot_start_is_absent_with_the_reason(tmp_path):
    absent = Remote(Start("scipy", str(tmp_path / "python")))
    with pytest.raises(UnavailableError, match="does not start"):
        absent.started()
    variants = tmp_path / "variants.py"
    variants.write_text("import no_such_library")
    absent = Remote(Start("mine", variants=variants))
    for _ in range(2):
        with pytest.raises(UnavailableError, match="no_such_library"):
            absent.started()


def test_settings_of_libraries_do_not_travel(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", "/somewhere")
    environment = Start("mkl").environment()
    assert "OMP_NUM_THREADS" not in environment
    assert environment["GOSSAMER_CACHE_DIR"] == "/somewhere"
    assert environment["MKL_THREADING_LAYER"] == "intel"
    assert environment["PYTHONPATH"] == str(Path(worker.__file__).parents[1])


def test_a_refusal_is_raised():
    program = "import json; print(json.dumps({})); input(); print(json.dumps({'error': 'no'}))"
    with (
        closing(Process("liar", [sys.executable, "-c", program], {})) as started,
        pytest.raises(UnavailableError, match=r"^no$"),
    ):
        started.ask("anything")


def test_what_a_library_prints_is_not_an_answer(tmp_path):
    variants = tmp_path / "variants.py"
    variants.write_text(
        "from benchmarks.peers.scipy import prepare\nprint('noise')\nVARIANTS = {'mine': prepare}\n"
    )
    description = case.write_case(problem("spmm").case(), tmp_path)
    with closing(Remote(Start("mine", variants=variants))) as remote:
        assert remote.prepare("0", tmp_path, description, [1]) == {}


# cells


class Local:
    """A contender in this process, for tests."""

    def __init__(self, name, prepare, *, threaded=True):
        self.start, self.worker = Start(name), worker.Worker(prepare)
        self.contender, self.versions = peers.Contender("here", threaded=threaded), {}

    def prepare(self, key, folder, description, threads):
        answer = self.worker.prepare(
            {"key": key, "folder": folder, "description": description, "threads": threads}
        )
        return answer["skipped"]

    def result(self, key, threads):
        return worker.result_of(self.worker.prepared[key, threads], self.worker.cases[key])

    def time(self, samples):
        return self.worker.time({"samples": samples})["seconds"]

    def forget(self):
        self.worker.forget({})

    def cpu_seconds(self):
        return 0.0


def task(op="spmm", features=3, threads=(1, 2), names=("scipy",)):
    given = problem(op, features)
    return tasks.Task(op, given.matrix, given.features, threads, names)


def measured(*chosen, contenders):
    """The cells of tasks in one batch."""
    with progress_bar(Console(file=io.StringIO()), 1.0) as bar:
        roofs = {roof.threads: roof for roof in run_of().rooflines}
        batch = tasks.Batch(chosen)
        return cells.measure_batch(batch, contenders, roofs, QUICK, bar)


@pytest.mark.parametrize("op", ["spmm", "spmv", "bsr_spmm"])
def test_a_cell_holds_verified_times(op):
    contenders = {"scipy": Local("scipy", peers.load_prepare("scipy"))}
    found, second = measured(task(op), contenders=contenders)
    given, times = problem(op), found.figures["scipy"]
    assert (found.threads, second.threads) == (1, 2)
    assert found.features == given.features
    assert found.operations == 2 * given.csr.nnz * given.features
    assert found.fits_cache == (given.working_bytes() <= found.cache_bytes)
    assert times.max_rel_error <= given.allowed_error()
    assert times.quartiles_ms[0] <= times.median_ms <= times.quartiles_ms[1]
    assert min(times.samples_ms) <= times.median_ms <= max(times.samples_ms)
    assert times.of_bound == pytest.approx(found.bound_ms / times.median_ms, rel=0.01)
    assert contenders["scipy"].worker.cases == {}


def test_a_contender_without_threads_is_timed_once_for_all_numbers():
    contenders = {"scipy": Local("scipy", peers.load_prepare("scipy"), threaded=False)}
    found = measured(task(), task(features=2), contenders=contenders)
    assert [(one.features, one.threads) for one in found] == [(3, 1), (3, 2), (2, 1), (2, 2)]
    times = [one.figures["scipy"].samples_ms for one in found]
    assert times[0] == times[1]
    assert times[2] == times[3]


@pytest.mark.parametrize(("op", "features"), [("spmm", 32), ("spmv", 1)])
def test_a_schedule_can_take_part(op, features, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "variants.py"
    file.write_text(
        "from benchmarks.variants import with_rule\n"
        "from gossamer_schedule.rules import choose\n"
        "VARIANTS = {'default': with_rule(choose)}\n"
    )
    contenders = {"default": Local("default", load_variants(file)["default"])}
    (found,) = measured(task(op, features, (2,), ("default",)), contenders=contenders)
    assert list(found.figures) == ["default"]


def test_a_wrong_result_is_not_timed():
    wrong = problem().reference.astype(np.float32)
    wrong[2, 1] += 1e-3
    contenders = {
        "liar": Local("liar", lambda case, threads: Prepared(lambda: None, result=lambda: wrong)),
        "scipy": Local("scipy", peers.load_prepare("scipy")),
    }
    (found,) = measured(task(threads=(1,), names=("liar", "scipy")), contenders=contenders)
    assert list(found.figures) == ["scipy"]
    assert "liar is wrong on spmm tiny with 3 features" in found.wrong["liar"]


@pytest.mark.parametrize("result", [np.zeros((3, 3)), np.zeros((3, 2), np.float32)])
def test_a_result_of_another_shape_or_dtype_is_wrong(result):
    with pytest.raises(cells.WrongResultError, match="expected float32"):
        cells.error_of(problem(), "liar", result)


@pytest.mark.parametrize("elements", [1, 4, 1 << 18])
def test_an_element_that_was_never_written_is_wrong(elements, monkeypatch):
    monkeypatch.setattr("benchmarks.operators.problem.ELEMENTS_AT_ONCE", elements)
    given = problem()
    assert np.isnan(given.relative_error(given.case().out))
    exact = given.reference.astype(np.float32)
    assert given.relative_error(exact) <= given.allowed_error()
    exact[0, 0] = np.nan
    assert np.isnan(given.relative_error(exact))


def test_who_cannot_take_part_is_named_with_the_reason():
    def prepare(case, threads):
        raise UnavailableError("not installed")

    contenders = {"absent": Local("absent", prepare)}
    found = measured(task(names=("absent",)), contenders=contenders)
    assert [one.skipped for one in found] == 2 * [{"absent": "not installed"}]


# matrices and the plan


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
    chosen = options.parse(
        ["--quick", "--op", "sddmm", "spmv", "--features", "8", "--threads", "1"]
    )
    selection = options.selection_of(chosen)
    assert selection.threads_of("spmv") == (1,)
    assert selection.features_of("sddmm") == (8,)
    assert selection.features_of("spmv") == (1,)
    assert selection.matrices_of("bsr_spmm") == ("blocks_4096",)
    assert "power_law_170k" not in selection.matrices_of("spmm")
    quick = options.selection_of(options.parse(["--quick"]))
    assert quick.features_of("spmm") == (32, 512)
    assert quick.features_of("attention") == (32,)
    everything = options.selection_of(options.parse([]))
    assert everything.features_of("spmm") == (16, 32, 64, 128, 256, 512, 1024)
    assert everything.features_of("sddmm") == (16, 32, 64, 128, 256, 512)
    assert everything.dtypes_of("spmm") == ("float32", "float64")
    assert everything.threads_of("spmm") == (1, 2)
    assert 8 <= len(everything.matrices_of("spmm")) <= 12
    assert {"mkl", "scipy", "numba", "torch"} < set(everything.contenders_of("spmv"))
    rare = options.selection_of(options.parse(["--matrix", "web_cnr2000", "--peers", "mkl_bsr"]))
    assert rare.matrices_of("spmm") == ("web_cnr2000",)
    assert rare.contenders_of("spmm") == ()


def test_a_contender_has_the_interpreter_that_was_named(capsys):
    chosen = options.parse(["--python", "mkl=/a/python", "--python", "mkl_bsr=/b/python"])
    pythons = [options.python_of(chosen, name) for name in ("mkl", "mkl_plain", "mkl_bsr", "numba")]
    assert pythons == ["/a/python", "/a/python", "/b/python", sys.executable]
    assert options.settings(chosen) == {}
    for wrong in ("mkl", "nobody=/a"):
        with pytest.raises(SystemExit):
            options.parse(["--python", wrong])
    assert "expected PEER=PATH" in capsys.readouterr().err


def test_every_part_can_be_chosen():
    assert tuple(running.PARTS) == options.PARTS
    assert options.parts_of(options.parse([])) == options.PARTS
    assert set(options.parts_of(options.parse(["--quick"]))) < set(options.PARTS)


def test_batches_hold_what_fits_in_memory_and_in_a_turn():
    names = ("gossamer", "scipy")
    small = [tasks.Task("spmm", problem().matrix, size, (1, 2), names) for size in range(1, 41)]
    batches = tasks.batches_of(small, tasks.MOST_BYTES)
    assert [one for batch in batches for one in batch.tasks] == small
    assert max(len(batch.tasks) for batch in batches) == tasks.MOST_ENTRIES // 2
    few = tasks.batches_of(4 * small[:1], 3 * small[0].bytes)
    assert [len(batch.tasks) for batch in few] == [3, 1]
    assert len(tasks.batches_of([task("spmm"), task("spmv")], tasks.MOST_BYTES)) == 2
    assert tasks.too_large(small[:1], tasks.MOST_BYTES) == {}
    assert list(tasks.too_large(small[:2], 1)) == ["spmm tiny float32 K=1 2"]


@pytest.mark.parametrize("op", OPERATORS)
def test_sizes_are_estimated_from_shapes(op):
    given = problem(op, features=64)
    estimated = OPERATORS[op].estimated_bytes(given.matrix, given.features)
    assert 0.5 < estimated / given.working_bytes() < 2


def test_larger_problems_are_expected_to_take_longer():
    matrix = matrices.random_blocks("large", 2048, 16, 0.2, dtype="float32")
    small, large = (
        tasks.Task("bsr_spmm", matrix, features, (1,), peers.NAMES[:3]) for features in (8, 512)
    )
    assert small.estimated_seconds(QUICK) < large.estimated_seconds(QUICK)
    assert tasks.Batch((small, large)).describe() == (
        "bsr_spmm large K=8 float32 ... large K=512 float32"
    )


# the command


def test_a_run_leaves_data_page_and_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GOSSAMER_DATASETS", str(tmp_path))
    matrices.load_matrix.cache_clear()
    sparse.save_npz(tmp_path / "cora.npz", sparse.csr_matrix(CSR))
    words = "--matrix cora pubmed --op spmm sddmm --features 4 --threads 1 --rounds 3 --budget 0.5 "
    words += "--peers scipy numba --dtype float32 --parts kernels --output"
    assert __main__.main([*words.split(), str(tmp_path / "out")]) == 0
    matrices.load_matrix.cache_clear()
    (path,) = (tmp_path / "out").glob("*.json")
    run = records.load(path)
    assert [(found.op, found.matrix) for found in run.cells] == [
        ("spmm", "cora"),
        ("sddmm", "cora"),
    ]
    assert "pubmed" in run.missing
    assert run.settings["features"] == "4"
    assert str(tmp_path) not in str(run.settings)
    assert path.stem.startswith(f"{run.machine.name}-op-spmm-sddmm-matrix-cora")
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
    def fail(bar):
        raise fresh.ProcessError("it broke")

    monkeypatch.setattr("benchmarks.startup.measure_startups", fail)
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

    monkeypatch.setattr(tasks, "MOST_ENTRIES", 1)
    monkeypatch.setattr(Remote, "started", lambda remote: None)
    monkeypatch.setattr(running, "measure_batch", measure)
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
    with progress_bar(Console(file=io.StringIO()), 1.0) as bar:
        costs = call_overhead.measure_call_costs(bar)
    assert {cost.op for cost in costs} == set(call_overhead.OPERATORS)
    assert all(cost.median_us > 0 for cost in costs)
    assert [cost.what for cost in costs if cost.limit_us is not None] == ["bound()"] * 2


def test_mini_batches_are_measured_in_a_fresh_process():
    assert mini_batches.chosen_graphs(None) == mini_batches.USUAL
    assert mini_batches.chosen_graphs(["cora", "bcsstk16"]) == ("cora",)
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
    found = [cell(features=size) for size in (16, 32, 64, 128, 256, 512)]
    outcome = goals.main_goal("spmm").outcome(found)
    assert outcome.absent == ["numba", "torch", "K=1024", "float64", "threads=1"]
    assert report.verdict_of(outcome) == ("met, not measured: numba torch K=1024 float64 threads=1")


def test_a_run_is_the_same_after_it_was_stored(tmp_path):
    run = run_of(cell(), cell(threads=1, bound_ms=None))
    path = records.save(run, tmp_path)
    assert path.name == "some-machine.json"
    assert records.load(path) == run
    quick = msgspec.structs.replace(run, name="quick")
    assert records.save(quick, tmp_path).name == "some-machine-quick.json"
    assert records.default_runs(tmp_path) == {path: run}


def test_the_tables_say_time_bound_ratio_and_verdict():
    out = io.StringIO()
    liar = cell(wrong={"liar": "liar is wrong"}, skipped={"torch": "absent"})
    run = run_of(cell(), cell(is_disturbed=True), liar)
    report.print_run(run, Console(file=out, width=200))
    text = out.getvalue()
    for expected in (
        "2 (50%)", "1.50", "4.00", "met", "not measured", "tiny *", "1 disturbed", "2.00", "0.067",
        "skipped: cora: the file does not exist", "skipped: torch on spmm: absent",
        "WRONG: liar is wrong", "in cache", "not loaded", "1.25", "1 of 3 cells",
        "tiny K=3, 2 threads", "other processes used 0.25 processors", "1.50 (1.50)",
    ):  # fmt: skip
        assert expected in text


def test_means_are_apart_for_what_caches_hold():
    figures = {"gossamer": figure(1.0), "mkl": figure(4.0)}
    sheet = report.means_sheet([cell(), cell(working_bytes=2000, figures=figures)], "gossamer")
    assert [row[:5] for row in sheet.rows] == [
        ("spmm", "float32", "in cache", "2", "1"),
        ("spmm", "float32", "beyond cache", "2", "1"),
    ]
    assert "4.00 (4.00)" in sheet.rows[1]


def test_ratios_to_the_best_peer_are_apart_for_dtypes_threads_and_sizes():
    found = [cell(), cell(features=9), cell(dtype="float64"), cell(threads=1)]
    rows = report.best_sheet(found, "gossamer").rows
    assert [row[1:4] for row in rows] == [
        ("float32", "2", "2"), ("float64", "2", "1"), ("float32", "1", "1")
    ]  # fmt: skip
    sheet = report.sizes_sheet(found, "gossamer")
    assert sheet.columns[3:] == ("3", "9")
    assert [row[4] for row in sheet.rows] == ["1.50 (1.50)", "-", "-"]


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


def test_the_page_shows_one_run_of_each_processor_between_the_marks(tmp_path):
    readme, results = tmp_path / "README.md", tmp_path / "results"
    readme.write_text(f"before\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n")
    found = run_of(cell())
    intel = msgspec.structs.replace(found.machine, name="other", vendor="Intel")
    amd = msgspec.structs.replace(found.machine, vendor="AMD")
    chosen = {"machine": amd, "name": "quick"}
    for changes in ({"machine": amd}, chosen):
        run = msgspec.structs.replace(found, **changes)
        report.write_report(records.save(run, results), run)
    page.show_in_readme(readme, results)
    assert "### Intel\n\nNo run is stored yet." in readme.read_text()
    run = msgspec.structs.replace(found, machine=intel)
    report.write_report(records.save(run, results), run)
    page.show_in_readme(readme, results)
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
    text = page.README.read_text()
    shown = text.partition(page.BEGIN)[2].partition(page.END)[0]
    runs = records.default_runs()
    assert shown.strip() == page.shown(runs, page.README.parent).strip()
    for path, run in runs.items():
        assert path.with_suffix(".svg").read_text() == picture.draw(run)


def test_stored_runs_have_one_file_for_each_processor_and_options():
    for path in records.RESULTS.glob("*.json"):
        run = records.load(path)
        assert path.name == records.file_name(run)
        assert run.machine.vendor in page.VENDORS


def test_no_figure_of_the_summary_is_against_mkl_alone():
    figures = {"gossamer": figure(1.0), "mkl": figure(100.0), "torch": figure(3.0)}
    text = report.summary(run_of(cell(figures=figures)))
    assert "3.00" in text
    assert "100.00" not in text


# the machine


def test_the_processor_is_named_with_its_model(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text(
        "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\nmodel name\t: other\n"
    )
    assert machine.cpu_name(info) == "AMD EPYC (family 26, model 2)"
    assert machine.vendor_name(info) == "unknown vendor"
    info.write_text("vendor_id\t: AuthenticAMD\n" + info.read_text())
    assert machine.vendor_name(info) == "AMD"
    assert machine.cpu_fields(tmp_path / "absent") == {}


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

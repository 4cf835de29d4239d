"""The parts of a run beside kernels: calls, mini-batches, start-up, compile time."""

from __future__ import annotations

import io
from functools import partial
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console
from scipy import sparse

import gossamer as gs
from benchmarks import options, ordered_parts
from benchmarks.goals import INSTRUCTION_GOALS
from benchmarks.harness.job import Job
from benchmarks.harness.progress import progress_bar
from benchmarks.instruction_counts.counted_operators import (
    COUNTED,
    KERNEL_TARGETS,
    RVV_KERNEL,
    name_of_loop,
)
from benchmarks.parts import (
    call_overhead,
    choice,
    conversions,
    first_calls,
    instructions,
    mini_batches,
    programs,
    python_share,
    startup,
)
from benchmarks.parts.choice import ChoiceTime
from benchmarks.parts.conversions import ConversionTime, FormatBuild, ThreadedConversion
from benchmarks.parts.processes import choice as choice_process
from benchmarks.parts.processes import conversions as conversion_process
from benchmarks.parts.processes import fresh_process
from benchmarks.parts.processes import programs as program_process
from benchmarks.parts.processes import python_share as python_process
from benchmarks.parts.programs import ProgramTime
from examples import EXAMPLES
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


def job(**chosen):
    """A job without contenders, as it is with these options."""
    return Job(SimpleNamespace(**chosen), None, (), {}, {}, (1,), results=[])


def test_each_file_of_the_folder_is_a_part(root):
    files = {path.stem for path in (root / "benchmarks/parts").glob("*.py")} - {"__init__"}
    assert files == set(ordered_parts.FILES)
    names = [series.name for series in ordered_parts.SERIES]
    assert len({*names}) == len(names)


@pytest.mark.parametrize("part", ordered_parts.PARTS.values(), ids=lambda part: part.name)
def test_a_part_is_selected_by_the_options_that_it_names(part):
    """Its estimate fails if it reads another option."""
    usual = vars(options.parse_options([]))
    assert part.estimate(job(quick=False, **{name: usual[name] for name in part.options})) >= 0
    assert part.description in options.part_lines()


def test_calls_are_right_and_their_costs_are_told_apart(monkeypatch, tmp_path):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(call_overhead, "CALL_COUNT", 50)
    with progress_bar(Console(file=io.StringIO()), 1.0) as bar:
        costs = list(call_overhead.measure_call_costs(job(), bar))
    assert {cost.op for cost in costs} == set(call_overhead.OPERATORS)
    assert all(cost.median_us > 0 for cost in costs)
    assert [cost.what for cost in costs if cost.limit_us is not None] == ["bound()"] * 2


def test_mini_batches_are_measured_in_a_fresh_process():
    assert mini_batches.chosen_graphs(None) == mini_batches.USUAL
    assert mini_batches.chosen_graphs(["cora", "bcsstk16"]) == ("cora",)
    batches = mini_batches.measure_graph("power_law_170k", 3)
    assert (batches.graph, batches.batches, batches.rows) == ("power_law_170k", 3, 1000)
    assert batches.scipy_us > 0
    worse = replace(batches, grown_mb=0.0, late_files=1, overhead_us=0.0)
    assert not worse.is_met
    assert replace(worse, late_files=0).is_met


def test_starts_are_measured_in_processes_of_their_own():
    seconds, loads_llvm = startup.measure_stmt("import gossamer")
    assert seconds > 0
    assert not loads_llvm
    assert startup.measure_stmt("import llvmlite")[1]
    with pytest.raises(fresh_process.ProcessError, match="no_such_module"):
        startup.measure_stmt("import no_such_module")


def test_first_calls_are_measured_in_processes_of_their_own():
    call = first_calls.measure_first_call("spmv", "second kernel", processes=1)
    assert call.least_cpu_ms > 0
    assert call.median_ms > 0
    assert call.is_met
    late = replace(call, limit_ms=call.least_cpu_ms / 2)
    assert not late.is_met
    assert [row[-1] for row in first_calls.first_calls_sheet([call, late]).rows] == ["", "MISSED"]
    assert {state for _, state in first_calls.LIMITS_MS} == set(
        get_args(first_calls.FirstCallState)
    )


def test_the_subjects_of_compiling_are_what_they_are_called():
    assert python_process.SUBJECTS.keys() == python_share.LIMITS.keys()
    assert len(python_process.STEPS) == 30
    layers = parse_module(python_process.layers_script(python_process.LAYERS))
    assert 190 <= sum(1 for _ in walk(layers)) <= 210


def test_python_is_measured_beside_llvm():
    python, llvm = python_process.replaying_steps()
    assert python > 0
    assert llvm > 0


def test_conversions_of_all_pairs_are_compared_with_scipy():
    matrix = sparse.random_array((9, 14), density=0.5, format="csr", rng=np.random.default_rng(0))
    times = [ConversionTime(**one) for one in conversion_process.time_pairs("small", matrix, 0.0)]
    assert len(times) == len(conversion_process.FORMATS) * (len(conversion_process.FORMATS) - 1)
    assert all(one.gossamer_ms > 0 and one.scipy_ms > 0 for one in times)
    assert [row[0] for row in conversions.conversions_sheet(times).rows] == list(
        conversion_process.FORMATS
    )
    assert len(conversions.conversion_times_sheet(times).rows) == len(times)
    assert not conversion_process.suits_diagonals(sparse.eye_array(40).tocsr()[::-1])


def test_conversions_are_measured_on_one_thread_and_on_two():
    matrix = sparse.random_array((9, 14), density=0.5, format="csr", rng=np.random.default_rng(0))
    before = gs.get_num_threads()
    measured = conversion_process.time_threads("small", matrix, 0.0)
    gs.set_num_threads(before)
    times = [ThreadedConversion(**one) for one in measured]
    assert len(times) == 2 * len(conversion_process.LIBRARY_FORMATS)
    assert all(one.speedup > 0 for one in times)
    assert len(conversions.threads_sheet(times).rows) == len(times)


def test_a_wrong_conversion_is_detected():
    matrix = sparse.eye_array(4, format="csr")
    with pytest.raises(AssertionError, match="eye"):
        conversion_process.require_equal(gs.from_scipy(matrix), 2.0 * matrix, "eye")


def test_formats_are_built_in_a_fresh_process():
    with progress_bar(Console(file=io.StringIO()), 1.0) as bar:
        builds = list(conversions.measure_builds(bar, rows=400))
    assert {build.format for build in builds} == set(conversion_process.BUILDS)
    assert all(isinstance(build, FormatBuild) and build.is_met for build in builds)
    assert [row[-1] for row in conversions.builds_sheet(builds).rows] == ["met"] * len(builds)


def test_the_chosen_format_is_timed_beside_all_others(monkeypatch):
    monkeypatch.setattr(choice_process, "SAMPLE_SECONDS", 0.0)
    nodes = sparse.random_array((20, 80), density=0.3, rng=np.random.default_rng(0))
    matrix = sparse.kron(nodes, np.ones((2, 2)), format="csr").astype(np.float32)
    formats = choice_process.StoredFormats(gs.from_scipy(matrix))
    cases = choice.selected_cases(["spmm", "sddmm", "spmv"], [16], None, [1])
    assert [(case.op, case.features) for case in cases] == [("spmm", 16), ("spmv", 1)]
    times = [ChoiceTime(matrix="tiny", **choice_process.time_case(formats, case)) for case in cases]
    product, vector = times
    assert {"csr", "hyb (c=1)", "tiled_csr (tile_columns=64)"} <= product.times_ms.keys()
    assert {
        "bsr (block_rows=2, block_columns=2)",
        "row_groups (height=2)",
    } <= product.times_ms.keys()
    assert {"csr", "sell (height=8)"} <= vector.times_ms.keys()
    for one in times:
        assert one.chosen in one.times_ms
        assert 0 < one.best_ratio <= 1
        assert one.expected_cycles["csr"] > 0
    assert len(choice.choices_sheet(times).rows) == len(choice.format_times_sheet(times).rows) == 2


def test_a_bad_choice_is_below_the_goals():
    ms = {"csr": 1.0, "bsr": 1.5, "hyb": 0.9}
    chosen = [
        ChoiceTime("tiny", "spmm", 16, "float32", 1, name, expected_cycles={}, times_ms=ms)
        for name in ms
    ]
    assert [one.best for one in chosen] == ["hyb"] * 3
    sheet = choice.choices_sheet(chosen)
    assert [row[-1] for row in sheet.rows] == ["", "BELOW", ""]
    assert "MISSED by 1 of 3" in sheet.note


def choice_of_csr(op, csr_ms):
    """A choice of CSR, which takes so long; blocks take a millisecond."""
    ms = {"csr": csr_ms, "bsr": 1.0}
    return ChoiceTime("tiny", op, 16, "float32", 1, "csr", expected_cycles={}, times_ms=ms)


@pytest.mark.parametrize(
    ("again", "counted", "is_met"), [((1.0, 1.05), 1.05, True), ((1.0, 1.3), 1.25, False)]
)
def test_a_case_that_misses_is_measured_in_further_processes_of_which_the_median_counts(
    monkeypatch, again, counted, is_met
):
    processes = iter(
        [
            [choice_of_csr("spmm", 1.0), choice_of_csr("spmv", 1.25)],
            *([choice_of_csr("spmv", csr_ms)] for csr_ms in again),
        ]
    )
    asked = []

    def time_in_process(name, cases):
        asked.append([case.op for case in cases])
        return next(processes)

    monkeypatch.setattr(choice, "time_in_process", time_in_process)
    monkeypatch.setattr(choice, "available", lambda names: ["tiny"])
    with progress_bar(Console(file=io.StringIO()), 1.0) as bar:
        chosen = job(op=["spmm", "spmv"], matrix=None, features=[16], dtype=None, threads=[1])
        met, again = choice.measure_choices(chosen, bar)
    assert asked == [["spmm", "spmv"], ["spmv"], ["spmv"]]
    assert (met.times_ms["csr"], met.processes) == (1.0, 1)
    assert (again.times_ms["csr"], again.processes, again.is_met) == (counted, 3, is_met)


def test_a_change_of_the_clock_does_not_change_ratios():
    steady = [{"csr": 2.0, "bsr": 1.0}] * 3
    # Blocks have the fast rounds in the first half of a round, CSR in the second one.
    clocks = [(1.0, 1.0), (1.5, 1.5), (1.5, 1.0), (1.0, 1.5), (1.5, 1.5)]
    changing = [{"csr": 2.0 * csr, "bsr": 1.0 * bsr} for csr, bsr in clocks]
    for rounds in (steady, changing):
        seconds = choice_process.typical_seconds(rounds)
        assert seconds["csr"] / seconds["bsr"] == pytest.approx(2.0)


def test_a_program_of_a_paper_is_compared_with_baselines():
    """A small case, which needs no data set."""
    example = EXAMPLES["block_sparse_attention"]
    times = programs.measure_case(example, "random", threads=1, turns=1)
    ours = {one.what for one in times if one.is_ours}
    assert ours == set(example.programs)
    assert {one.what for one in times} >= ours | {"numpy_dense"}
    assert all(one.median_ms > 0 and one.relative_error <= 1 for one in times)


def test_a_wrong_program_is_refused():
    example = EXAMPLES["block_sparse_attention"]
    wrong = replace(
        example,
        datasets=example.cases,
        programs={"fused": lambda inputs: lambda: np.ones(inputs.q.shape, np.float32)},
    )
    with pytest.raises(ValueError, match="error of 'fused'"):
        program_process.verified_call(wrong, "random", "fused")


def test_programs_are_reported_beside_the_fastest_baseline():
    times = [
        ProgramTime("spmm", "cora", what, is_ours, 2, ms, 0.1, 0.01)
        for what, is_ours, ms in (("hyb", True, 4.0), ("csr", True, 2.0), ("scipy", False, 8.0))
    ]
    first, second = programs.programs_sheet(times).rows
    assert first == ("spmm", "cora", "2", "csr", "2", "scipy", "8", "4.00", "1.00")
    assert second[-2:] == ("2.00", "0.50")
    assert len(programs.program_times_sheet(times).rows) == 3
    assert programs.programs_sheet(times[:2]).rows == []


def test_each_counted_operator_has_a_c_loop():
    loops = {
        name_of_loop(op)
        for op, counted in COUNTED.items()
        if not KERNEL_TARGETS.keys() >= set(counted.compiled_by)
    }
    assert loops == {"spmv", "spmm", "sddmm", "bsr_spmm"}
    assert all((instructions.LOOPS / f"{name}.c").exists() for name in loops)
    assert INSTRUCTION_GOALS.keys() <= COUNTED.keys()


@pytest.mark.usefixtures("emulated")
def test_instructions_are_counted_exactly(tmp_path):
    problem = COUNTED["spmv"].problem()
    ours, again = (
        instructions.measure_count("spmv", "gossamer", problem, vector_bits=512, folder=tmp_path)
        for _ in range(2)
    )
    assert ours == again
    loop = instructions.measure_count("spmv", "gcc", problem, vector_bits=512, folder=tmp_path)
    short = instructions.measure_count("spmv", "gcc", problem, vector_bits=128, folder=tmp_path)
    assert 0.1 < loop.per_nonzero < short.per_nonzero
    # The value, the column and the element of the vector, and what rows need.
    assert 12 <= loop.loaded_bytes < 20
    rows = instructions.instruction_sheet([ours, loop, short]).rows
    assert [row[:2] for row in rows] == [
        ("spmv", "gossamer"),
        ("spmv", "gcc"),
        ("spmv", "times fewer"),
    ]
    assert rows[0][2] == "-"
    assert rows[2][4] == f"{loop.per_nonzero / ours.per_nonzero:.2f}"
    assert rows[2][7] in ("1.3: met", "1.3: MISSED")
    (fewer,) = instructions.fewer_sheet([ours, loop, short]).rows
    assert fewer == ("spmv", *rows[2][2:])
    assert instructions.loads_sheet([short]).rows[0][2] == f"{short.loaded_bytes:.0f}"


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("op", COUNTED)
def test_kernels_in_scalable_vectors_need_fewer_instructions_with_longer_vectors(op, tmp_path):
    problem = COUNTED[op].problem()
    count = partial(instructions.measure_count, op, problem=problem, folder=tmp_path)
    kernel = COUNTED[op].compiled_by[0]
    short, long = (count(kernel, vector_bits=bits) for bits in (128, 512))
    assert long.per_nonzero < 0.6 * short.per_nonzero
    assert (long.loaded_bytes is None) == (kernel == RVV_KERNEL)
    # Products with tiles have packed rows with the shortest vectors only.
    if name_of_loop(op) not in ("spmv", "tiled_spmm") and kernel != RVV_KERNEL:
        assert long.per_nonzero < short.per_nonzero / 3
    if "gossamer, SME" in COUNTED[op].compiled_by:
        in_tiles = count("gossamer, SME", vector_bits=512)
        assert in_tiles.per_nonzero < long.per_nonzero / 2
        (row,) = instructions.fewer_sheet([long, in_tiles]).rows
        assert row[3] == f"{long.per_nonzero / in_tiles.per_nonzero:.2f}"

"""Every stage of every operator, in both encodings, and the compiled kernel agree with an oracle that does
not use gossamer.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import gossamer
from gossamer.compilation.build_kernels import KERNELS
from gossamer.compilation.pipeline import lower_by_stage, schedule_for_target
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import operator_named
from gossamer.targets.resolve_target import resolve_target
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import diagnostics
from gossamer_testkit import csr_cases, max_relative_error, spmm_magnitude, tolerance
from gossamer_testkit import spmm as exact_spmm

FEATURES = 5
STAGES = ("coordinate", "position", "loop", "flat")
PROGRAMS = [
    pytest.param(op, dtype, index, id=f"{op}-{dtype}-{index}")
    for op in ("spmm", "spmv")
    for dtype in ("float32", "float64")
    for index in ("int32", "int64")
]
SMALL = (
    "0 rows",
    "0 nonzeros",
    "empty rows at both ends",
    "unsorted",
    "duplicates",
    "explicit zeros",
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    base = tmp_path_factory.getbasetemp() / "kernels"
    base.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(base))
    return base


def stats_of(case):
    empty = int((case.row_lengths == 0).sum())
    return Stats(*case.shape, case.nnz, case.longest_row, empty)


def program(op, dtype, index):
    features = FEATURES if op == "spmm" else None
    return module_of(operator_named(op).program, Variant(dtype, index, index, features))


def dense_for(case, op):
    shape = (case.shape[1], FEATURES) if op == "spmm" else (case.shape[1],)
    values = np.arange(np.prod(shape), dtype=np.int64) % 13 - 6
    return values.reshape(shape).astype(case.data.dtype)


def arguments(op, case, dense):
    """Arguments by the names of the operator's parameters; the result is initially NaN."""
    result = np.full((case.shape[0], *dense.shape[1:]), np.nan, dtype=dense.dtype)
    right, left = ("b", "c") if op == "spmm" else ("x", "y")
    arrays = {"a": case.data, right: dense, left: result}
    return result, {**arrays, "indptr": case.indptr, "indices": case.indices}


def sizes(case):
    return {"m": case.shape[0], "n": case.shape[1], "nnz": case.nnz}


def assert_exact(op, case, dense, result):
    """The data are small integers, so that every order of the sums gives the same result."""
    wanted = exact_spmm(case, dense[:, None] if op == "spmv" else dense).reshape(result.shape)
    np.testing.assert_array_equal(result, wanted.astype(result.dtype))


def stages_of(module, stats):
    schedule = schedule_for_target(module, Target("generic-cpu"), stats)
    return list(lower_by_stage(module, schedule))


@pytest.mark.parametrize(("op", "dtype", "index"), PROGRAMS)
def test_every_stage_is_valid_and_survives_both_encodings(op, dtype, index):
    case = next(each for each in csr_cases(dtype=dtype, index_dtype=index) if each.nnz)
    stages = stages_of(program(op, dtype, index), stats_of(case))
    assert tuple(module.stage for module in stages) == STAGES
    for module in stages:
        assert diagnostics(module) == ()
        assert parse_module(print_module(module)) == module
        assert loads(dumps(module)) == module


@pytest.mark.parametrize(("op", "dtype", "index"), PROGRAMS)
def test_every_stage_means_the_same(op, dtype, index):
    cases = [case for case in csr_cases(dtype=dtype, index_dtype=index) if case.name in SMALL]
    assert len(cases) == len(SMALL)
    for case in cases:
        dense = dense_for(case, op)
        for module in stages_of(program(op, dtype, index), stats_of(case)):
            result, arrays = arguments(op, case, dense)
            run(module, {**arrays, **sizes(case)})
            assert_exact(op, case, dense, result)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("op", "dtype", "index"), PROGRAMS)
def test_kernels_are_exact_on_every_matrix(op, dtype, index, threads):
    before = gossamer.get_num_threads()
    gossamer.set_num_threads(threads)
    for case in csr_cases(dtype=dtype, index_dtype=index):
        if case.name == "nan and infinity":
            continue
        dense = dense_for(case, op)
        result, arrays = arguments(op, case, dense)
        KERNELS.build_module(program(op, dtype, index), stats=stats_of(case)).kernel(**arrays)
        assert_exact(op, case, dense, result)
    gossamer.set_num_threads(before)


def encoded_at(stage, case):
    stages = stages_of(program("spmm", "float32", "int32"), stats_of(case))
    return {module.stage: dumps(module) for module in stages}[stage]


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_a_kernel_can_be_built_from_the_bytes_of_any_stage(stage):
    case = next(each for each in csr_cases() if each.name == "a power law")
    dense = dense_for(case, "spmm")
    result, arrays = arguments("spmm", case, dense)
    KERNELS.build_module(loads(encoded_at(stage, case)), stats=stats_of(case)).kernel(**arrays)
    assert_exact("spmm", case, dense, result)


def test_a_backend_takes_the_bytes_of_the_flat_stage():
    case = next(each for each in csr_cases() if each.name == "a power law")
    dense = dense_for(case, "spmm")
    result, arrays = arguments("spmm", case, dense)
    backend, target = resolve_target("generic-cpu")
    artifact = backend.compile(loads(encoded_at("flat", case)), target)
    backend.load(artifact)(**arrays)
    assert_exact("spmm", case, dense, result)


def test_accesses_of_parallel_flat_code_from_outside_are_not_trusted():
    case = next(each for each in csr_cases() if each.name == "a power law")
    with pytest.raises(UnsupportedError) as caught:
        KERNELS.build_module(loads(encoded_at("flat", case)))
    assert caught.value.code == "lower.bounds_check_flat.not_proved"


@pytest.mark.parametrize("features", [1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 128, 130])
def test_any_feature_size_keeps_within_rounding(features):
    case = next(each for each in csr_cases() if each.name == "row lengths 0 to 40")
    dense = np.random.default_rng(features).standard_normal((40, features)).astype(np.float32)
    matrix = sparse.csr_array((case.data, case.indices, case.indptr), shape=case.shape)
    error = max_relative_error(
        gossamer.spmm(matrix, dense),
        exact_spmm(case, dense),
        magnitude=spmm_magnitude(case, dense),
    )
    assert error <= tolerance(case.longest_row + 1, "float32")


BUILD = """
import json, sys
from gossamer.compilation.build_kernels import KERNELS
from gossamer.operators import operator_named
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer_backend import ArtifactCache
from gossamer_ir.interchange.records import Schedule, Stats, Step

SCHEDULES = {
    "by the rules": None,
    "plain": Schedule(),
    "unrolled": Schedule(loop=(Step("unroll", {"loop": "k"}),)),
    "as it was": Schedule(
        coordinate=(Step("sparse_reorder", {"iteration": "csrmm", "order": ("i", "j", "k")}),)
    ),
}
module = module_of(operator_named("spmm").program, Variant(features=9))
built = KERNELS.build_module(module, stats=Stats(9, 9, 30, 9, 0), schedule=SCHEDULES[sys.argv[1]])
record = {"cached": built.is_cached}
record["entries"] = ArtifactCache().info().entries
record["lowered"] = "gossamer_lower" in sys.modules
print(json.dumps(record))
"""


def built_in_a_process(cache, schedule):
    environment = {**os.environ, "GOSSAMER_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "error", "-c", BUILD, schedule]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_a_second_process_finds_the_request_and_lowers_nothing(tmp_path):
    first, second = (built_in_a_process(tmp_path, "by the rules") for _ in range(2))
    assert (first["cached"], second["cached"]) == (False, True)
    assert (first["lowered"], second["lowered"]) == (True, False)
    assert first["entries"] == second["entries"] == 2  # an object, and the request's link to it


def test_another_schedule_is_another_request_and_equal_flat_code_one_object(tmp_path):
    plain = built_in_a_process(tmp_path, "plain")
    unrolled = built_in_a_process(tmp_path, "unrolled")
    assert (plain["cached"], unrolled["cached"]) == (False, False)
    assert (plain["entries"], unrolled["entries"]) == (2, 4)
    same = built_in_a_process(tmp_path, "as it was")
    assert (same["cached"], same["lowered"], same["entries"]) == (True, True, 5)
    again = built_in_a_process(tmp_path, "as it was")
    assert (again["cached"], again["lowered"], again["entries"]) == (True, False, 5)


@pytest.mark.parametrize("op", ["spmm", "spmv"])
def test_the_installed_command_checks_its_result(op, tmp_path):
    matrix = sparse.random_array(
        (300, 200), density=0.05, rng=np.random.default_rng(1), format="csr"
    )
    sparse.save_npz(tmp_path / "a.npz", matrix)
    options = ["--matrix", str(tmp_path / "a.npz"), "--check", "--json", "--repeat", "3"]
    command = [Path(sys.executable).parent / "gossamer", "run", op, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout.splitlines()[-1])
    assert (record["op"], record["shape"], record["nnz"]) == (op, [300, 200], 3000)
    assert record["max_rel_error"] < 1e-5
    assert record["ratio_vs_scipy"] > 0


NAMED = """
import json, sys
from gossamer.operator_calls.operator_kernels import KernelSpec, kernel_for
from gossamer.operators import operator_named
from gossamer.operator_calls.operator_program import Variant
from gossamer_ir.interchange.records import Stats

spec = KernelSpec(operator_named("spmm").program, Variant(features=9), Stats(9, 9, 30, 9, 0))
built = kernel_for(spec)
slow = ("llvmlite", "gossamer_ir.script.parse", "gossamer_lower", "importlib.metadata")
unneeded = (
    "gossamer_ir.script.print",
    "gossamer_lower.math.function_table",
    "gossamer_formats.conversion.convert_storage",
    "gossamer_formats.conversion.by_numpy.stored_elements",
)
assert not [name for name in unneeded if name in sys.modules]
print(json.dumps({"cached": built.is_cached, "imported": [name for name in slow if name in sys.modules]}))
"""


def test_a_cached_operator_needs_neither_its_script_nor_llvm(tmp_path):
    environment = {**os.environ, "GOSSAMER_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", NAMED]
    first, second = (
        json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
        for _ in range(2)
    )
    assert (first["cached"], second["cached"]) == (False, True)
    assert "llvmlite" in first["imported"]
    if sys.platform == "linux" and platform.machine() == "x86_64":
        assert second["imported"] == []

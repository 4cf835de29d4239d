"""The problems of a benchmark have right oracles, and every contender computes them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import contenders, goals, operator_case
from benchmarks.contenders.contender import UnavailableError
from benchmarks.harness import cells, tasks, worker
from benchmarks.machine import c_libraries
from benchmarks.operators import PROBLEMS
from tests.benchmarks.benchmark_cases import CSR, EMPTY, exact, problem

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dense", [CSR, EMPTY], ids=["some", "none"])
@pytest.mark.parametrize("op", PROBLEMS)
def test_the_oracle_is_what_dense_arithmetic_gives(op, dense, dtype):
    posed = problem(op, dense=dense, dtype=dtype)
    assert posed.oracle.dtype == np.float64
    np.testing.assert_allclose(posed.oracle, exact(posed), rtol=1e-12, atol=1e-12)
    assert (posed.magnitude >= np.abs(posed.oracle) * (1 - 1e-12)).all()
    assert posed.relative_error(posed.oracle.astype(dtype)) <= posed.allowed_error()
    assert posed.min_work().bytes <= posed.working_bytes()


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # of torch, where it is installed
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", PROBLEMS)
def test_each_contender_is_right_or_gives_a_reason(op, dtype, tmp_path, monkeypatch):
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    posed, errors, absent = problem(op, features=5, dtype=dtype), {}, {}
    names = tasks.Selection((op,), contenders=contenders.NAMES).contenders_of(op)
    for name in names:
        try:
            one = posed.case()
            result = worker.result_of(contenders.load_prepare(name)(one, 2), one)
        except (UnavailableError, ImportError) as error:
            absent[name] = str(error)
        else:
            errors[name] = cells.error_of(posed, name, result)
    assert all(absent.values())
    assert "gossamer" in errors
    assert ("scipy" in errors) == (op != "sddmm")
    if c_libraries.find_c_compiler() is not None and op != "attention":
        assert "taco_like" in errors


def test_every_operator_has_contenders_and_a_goal():
    for op in PROBLEMS:
        usual = tasks.Selection((op,)).contenders_of(op)
        assert contenders.OURS in usual
        assert set(goals.main_goal(op).contenders) <= set(usual)


def test_without_a_compiler_the_c_kernels_are_absent(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    c_libraries.load_library.cache_clear()
    prepare = contenders.load_prepare("taco_like")
    with pytest.raises(UnavailableError, match="no C compiler"):
        prepare(problem().case(), 1)
    assert c_libraries.find_c_compiler() is None


@pytest.mark.parametrize("op", ["sddmm", "bsr_spmm", "spmv"])
def test_a_case_is_the_same_after_it_was_written(op, tmp_path):
    case = problem(op).case()
    description = json.loads(json.dumps(operator_case.write_case(case, tmp_path)))
    read_back = operator_case.read_case(tmp_path, description)
    assert (read_back.op, read_back.result_shape) == (case.op, case.result_shape)
    assert (read_back.features, read_back.dtype) == (case.features, case.dtype)
    np.testing.assert_array_equal(read_back.csr.toarray(), case.csr.toarray())
    assert read_back.csr.indices.dtype == np.int32
    for one, other in zip(read_back.operands, case.operands, strict=True):
        np.testing.assert_array_equal(one, other)
    if case.bsr is not None:
        np.testing.assert_array_equal(read_back.bsr.data, case.bsr.data)
    assert np.isnan(read_back.out).all()

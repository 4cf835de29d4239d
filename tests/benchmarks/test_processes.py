"""Contenders run in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import operator_case
from benchmarks.contenders.contender import UnavailableError
from benchmarks.harness import cells, worker
from benchmarks.harness.process import ContenderStart, Process, Remote
from tests.benchmarks.benchmark_cases import problem

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


@pytest.fixture(scope="module")
def remote():
    """SciPy in a process of its own."""
    with closing(Remote(ContenderStart("scipy"))) as remote:
        yield remote


def test_a_contender_runs_in_a_process_of_its_own(remote, tmp_path):
    posed = problem("spmm")
    description = operator_case.write_case(posed.case(), tmp_path)
    assert remote.prepare("7", tmp_path, description, [1]) == {}
    assert cells.error_of(posed, "scipy", remote.result("7", 1)) <= posed.allowed_error()
    assert all(seconds > 0 for seconds in remote.time([("7", 1, 0, 3), ("7", 1, 2, 1)]))
    assert remote.versions.keys() == {"numpy", "scipy"}
    assert remote.process.process.pid != os.getpid()


@pytest.mark.parametrize("name", ["scipy", "mkl"])
def test_a_contender_in_an_environment_of_its_own_needs_numpy_and_scipy_only(name):
    code = f"""
import sys
hidden = ("gossamer", "gossamer_backend", "gossamer_formats", "gossamer_ir", "msgspec", "rich", "numba")
sys.modules.update(dict.fromkeys(hidden))
import benchmarks.contenders.{name}, benchmarks.harness.worker
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_contender_that_ends_is_named_and_starts_again(remote, tmp_path):
    description = operator_case.write_case(problem("spmm").case(), tmp_path)
    remote.prepare("0", tmp_path, description, [1])
    remote.process.process.send_signal(signal.SIGKILL)
    with pytest.raises(UnavailableError, match="scipy ended with status -9"):
        remote.time([("0", 1, 0, 1)])
    with pytest.raises(UnavailableError, match="ended"):  # its cases are lost
        remote.prepare("1", tmp_path, description, [1])
    remote.forget()
    assert remote.prepare("1", tmp_path, description, [1]) == {}


def test_a_contender_that_cannot_start_is_absent_with_the_reason(tmp_path):
    absent = Remote(ContenderStart("scipy", str(tmp_path / "python")))
    with pytest.raises(UnavailableError, match="does not start"):
        absent.ensure_started()
    variants = tmp_path / "variants.py"
    variants.write_text("import no_such_library")
    absent = Remote(ContenderStart("mine", variants=variants))
    for _ in range(2):
        with pytest.raises(UnavailableError, match="no_such_library"):
            absent.ensure_started()


def test_settings_of_libraries_do_not_travel(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", "/somewhere")
    environment = ContenderStart("mkl").environment()
    assert "OMP_NUM_THREADS" not in environment
    assert environment["GOSSAMER_CACHE_DIR"] == "/somewhere"
    assert environment["MKL_THREADING_LAYER"] == "intel"
    assert environment["PYTHONPATH"] == str(Path(worker.__file__).parents[2])


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
        "from benchmarks.contenders.scipy import prepare\nprint('noise')\nVARIANTS = {'mine': prepare}\n"
    )
    description = operator_case.write_case(problem("spmm").case(), tmp_path)
    with closing(Remote(ContenderStart("mine", variants=variants))) as remote:
        assert remote.prepare("0", tmp_path, description, [1]) == {}


IMPORTS_OF_OTHERS = """
import sys
for name in ("msgspec", "gossamer", "gossamer_ir", "gossamer_formats"):
    sys.modules[name] = None
import benchmarks.contenders.scipy
import benchmarks.harness.worker
"""


def test_interpreters_of_contenders_need_numpy_and_scipy_only(root):
    subprocess.run([sys.executable, "-c", IMPORTS_OF_OTHERS], check=True, cwd=root)

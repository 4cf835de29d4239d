"""The number of threads: its default, the environment variable, and the setter."""

import os
import threading

import numpy as np
import pytest

from gossamer_backend import get_num_threads, set_num_threads
from gossamer_backend.call.threads import (
    NUM_THREADS_VARIABLE,
    OPENMP_VARIABLE,
    available_cpus,
    cpu_quotas,
    follow_num_threads,
    reset_num_threads,
)
from gossamer_ir.errors import ArgumentError


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.delenv(NUM_THREADS_VARIABLE, raising=False)
    monkeypatch.delenv(OPENMP_VARIABLE, raising=False)
    # Another package's tests in this process may have set it.
    monkeypatch.setattr("gossamer_backend.call.threads._followed", None)
    reset_num_threads()
    yield
    reset_num_threads()


def test_the_default_is_what_the_process_may_use():
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert 1 <= get_num_threads() == available_cpus() <= most


@pytest.mark.parametrize(
    ("text", "expected"), [("3", 3), (" 5 ", 5), ("6,2,1", 6), ("4096", 4096), (" 7 , 2", 7)]
)
def test_the_first_number_of_openmp_counts(monkeypatch, text, expected):
    monkeypatch.setenv(OPENMP_VARIABLE, text)
    assert get_num_threads() == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "two", ",3", "4097", "9" * 5000, "²", "1.5"])
def test_an_openmp_number_that_is_malformed_is_ignored(monkeypatch, text):
    monkeypatch.setenv(OPENMP_VARIABLE, text)
    assert get_num_threads() == available_cpus()


def test_our_own_variable_precedes_that_of_openmp(monkeypatch):
    monkeypatch.setenv(OPENMP_VARIABLE, "3")
    monkeypatch.setenv(NUM_THREADS_VARIABLE, "2")
    assert get_num_threads() == 2


@pytest.fixture
def followed():
    """The number of threads of a library, in a list."""
    numbers = [3]
    follow_num_threads(lambda: numbers[0])
    return numbers


def test_the_number_of_a_library_is_followed_from_call_to_call(monkeypatch, followed):
    monkeypatch.setenv(OPENMP_VARIABLE, "2")
    assert get_num_threads() == 3
    followed[0] = 5
    assert get_num_threads() == 5
    followed[0] = 5000
    assert get_num_threads() == 4096


def test_the_users_number_precedes_that_of_a_library(monkeypatch, followed):
    set_num_threads(2)
    assert get_num_threads() == 2
    monkeypatch.setenv(NUM_THREADS_VARIABLE, "4")
    reset_num_threads()
    assert get_num_threads() == 4


V2, V1 = "0::/a/b\n", "5:memory:/m\n4:cpu,cpuacct:/a\n"
QUOTAS = {
    "v2": (V2, {"a/b/cpu.max": "150000 100000\n"}, [1.5]),
    "v2, without a limit": (V2, {"a/b/cpu.max": "max 100000\n"}, []),
    "v2, of ancestors": (V2, {"a/cpu.max": "50000 100000", "a/b/cpu.max": "max 100000"}, [0.5]),
    "v2, of a container": (V2, {"cpu.max": "200000 100000"}, [2.0]),
    "v1": (V1, {"cpu,cpuacct/a/cpu.cfs_quota_us": "250000",
                "cpu,cpuacct/a/cpu.cfs_period_us": "100000"}, [2.5]),
    "v1, linked by one name": (V1, {"cpu/a/cpu.cfs_quota_us": "100000",
                                    "cpu/a/cpu.cfs_period_us": "50000"}, [2.0]),
    "v1, without a limit": (V1, {"cpu/a/cpu.cfs_quota_us": "-1",
                                 "cpu/a/cpu.cfs_period_us": "100000"}, []),
    "malformed": ("0:x\n::\nnonsense\n" + V2, {"a/b/cpu.max": "1 2 3", "cpu.max": "0 0"}, []),
    "no cgroups": ("", {}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", QUOTAS)
def test_quotas_of_cgroups(case, tmp_path):
    line, files, expected = QUOTAS[case]
    groups = {f"groups/{name}": text for name, text in files.items()}
    for name, text in {"proc/self/cgroup": line, **groups}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    quotas = cpu_quotas(proc=tmp_path / "proc", cgroups=tmp_path / "groups")
    assert list(quotas) == expected


@pytest.mark.parametrize(("quota", "expected"), [(0.1, 1), (1.0, 1), (1.01, 2), (1000.0, None)])
def test_the_quota_is_rounded_up(monkeypatch, quota, expected):
    unlimited = available_cpus()
    monkeypatch.setattr("gossamer_backend.call.threads.cpu_quotas", lambda: iter([quota]))
    assert available_cpus() == min(unlimited, expected or unlimited)


def test_the_environment_is_read(monkeypatch):
    monkeypatch.setenv(NUM_THREADS_VARIABLE, " 3 ")
    assert get_num_threads() == 3


def test_a_number_of_threads_that_is_set_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv(NUM_THREADS_VARIABLE, "3")
    set_num_threads(5)
    assert get_num_threads() == 5


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "4097", "99999999999999999999", "²"])
def test_a_bad_variable_is_refused_whenever_it_is_asked_for(monkeypatch, text):
    monkeypatch.setenv(NUM_THREADS_VARIABLE, text)
    for _ in range(2):
        with pytest.raises(ArgumentError, match=f"{NUM_THREADS_VARIABLE} is '{text}'") as caught:
            get_num_threads()
        assert caught.value.code == "threads.count"


@pytest.mark.parametrize("count", [0, -2, 4097, 2.0, "2", True, None])
def test_a_bad_number_is_refused_and_changes_nothing(count):
    set_num_threads(2)
    with pytest.raises(ArgumentError, match="not an integer from 1 to 4096"):
        set_num_threads(count)
    assert get_num_threads() == 2


def test_an_integer_of_numpy_is_a_number():
    set_num_threads(np.int64(2))
    assert type(get_num_threads()) is int


def test_many_threads_see_one_of_the_numbers_set():
    seen = []

    def work(count):
        for _ in range(50):
            set_num_threads(count)
            seen.append(get_num_threads())

    workers = [threading.Thread(target=work, args=(count,)) for count in (1, 2, 3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(seen) == 150
    assert set(seen) <= {1, 2, 3}

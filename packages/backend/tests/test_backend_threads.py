"""The number of threads: its default, the environment variable, and the setter."""

import os
import threading

import numpy as np
import pytest

from gossamer_backend import get_num_threads, set_num_threads
from gossamer_backend.call.threads import VARIABLE, reset_num_threads
from gossamer_ir.errors import ArgumentError


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    reset_num_threads()
    yield
    reset_num_threads()


def test_the_default_is_what_the_process_may_use():
    expected = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert get_num_threads() == expected


def test_the_environment_is_read(monkeypatch):
    monkeypatch.setenv(VARIABLE, " 3 ")
    assert get_num_threads() == 3


def test_what_is_set_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, "3")
    set_num_threads(5)
    assert get_num_threads() == 5


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "4097", "99999999999999999999", "²"])
def test_a_bad_variable_is_refused_whenever_it_is_asked_for(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    for _ in range(2):
        with pytest.raises(ArgumentError, match=f"{VARIABLE} is '{text}'") as caught:
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

"""Bounded dicts that several threads fill."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from gossamer_support.bounded_dict import put_bounded


@pytest.fixture
def _frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_frequent_switches")
def test_threads_fill_one_dict():
    table = {}

    def fill(thread):
        for number in range(20_000):
            put_bounded(table, (thread, number), number, limit=4)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fill, range(4)))
    assert len(table) <= 4 + 4

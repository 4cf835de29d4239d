"""Times of competitors."""

from __future__ import annotations

import time
from functools import partial

from gossamer.cli.comparison.timing import SAMPLE_SECONDS, interleave_calls


def test_competitors_take_turns():
    order = []

    def call(name):
        order.append(name)
        time.sleep(1.1 * SAMPLE_SECONDS)

    calls = {name: partial(call, name) for name in "ab"}
    times = interleave_calls(calls, rounds=3, after_round=lambda: order.append("-"))
    assert "".join(order) == "aabb" + 3 * "ab-"
    assert all(time > 1e3 * SAMPLE_SECONDS for time in times.values())

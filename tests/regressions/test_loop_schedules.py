"""Regression tests: schedule steps and passes that once changed the meaning of a program without axes, or of
one in which all of them are lowered. Each is now rejected, or correct.
"""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module
from tests.fuzzing.lowered.judging import finding_of
from tests.fuzzing.lowered.programs.lowered_program import Lowered
from tests.fuzzing.lowered.step_drawing import replayed
from tests.regressions.loop_programs import (
    ABSENT_BEFORE,
    ABSENT_ROW,
    AGAIN,
    BEYOND,
    CONDITIONED,
    COPIED_LOOP,
    COUNTED,
    DROPPED,
    ELEMENT,
    EVERY_TURN,
    GOING_ON,
    IDLE,
    IN_TURN,
    IN_TURNS,
    MASKED,
    OTHER_POINTS,
    OWN_END,
    SHARED,
    STARTED,
    SUMMED,
    TOGETHER,
    TRIPLED,
    TURNED,
    UNREAD,
    UNUSED,
    WRAPPED_LAST,
)
from tests.regressions.refusals import refusals

pytestmark = pytest.mark.no_error_examples

I32 = np.int32

CASES = {
    "an init runs once if a version of its block is for one iteration of a loop": (
        SUMMED,
        {"y": np.full(2, 7, I32), "n": 2},
        {
            "loop": (
                Step("add_unit_loop", {"name": "i"}),
                Step("loop_version", {"name": "step", "condition": "i == 1"}),
                Step("fuse", {"loops": ("i_unit", "i")}),
            )
        },
    ),
    "an init stays before all iterations that write its element if their loop is lifted out of a block": (
        COUNTED,
        {"y": np.full(2, 7, I32), "n": 2},
        {"loop": (Step("blockize", {"loop": "i"}), Step("lift_loop", {"loop": "i"}))},
        "schedule.lift_loop.init",
    ),
    "an init in each iteration of an outer loop stays in each if a bound of that loop is added": (
        AGAIN,
        {"y": np.full(2, 7, I32), "p": np.array([0, 1, 3, 2]), "n": 2},
        {"loop": (Step("loop_partition", {"loop": "j", "points": (0,)}),)},
        "schedule.loop_partition.not_proved",
    ),
    "points of an outer loop that write one element are not split into parts that each initialize it": (
        TOGETHER % (1, 0, 0, 0),
        {"y": np.full(8, 7, I32)},
        {"loop": (Step("loop_partition", {"loop": "i", "points": ("t // 2",)}),)},
        "schedule.loop_partition.not_proved",
    ),
    "points that write one element across an outer loop are not of parts that each initialize it": (
        TOGETHER % (4, *3 * ("vt + vi",)),
        {"y": np.full(8, 7, I32)},
        {"loop": (Step("loop_partition", {"loop": "i", "points": (2,)}),)},
        "schedule.loop_partition.not_proved",
    ),
    "points that write one element across an outer loop are not of versions that each initialize it": (
        TOGETHER % (4, *3 * ("vt + vi",)),
        {"y": np.full(8, 7, I32)},
        {"loop": (Step("loop_version", {"name": "step", "condition": "i < 2"}),)},
        "schedule.loop_version.not_proved",
    ),
    "an init in each iteration of an outer loop stays in each if a block is put around it": (
        TURNED,
        {"y": np.full(4, 7, I32), "n": 4},
        {"loop": (Step("blockize", {"loop": "j"}),)},
        "schedule.blockize.not_proved",
    ),
    "a cache over the points of a block is not started anew for points that meet beyond its nest": (
        CONDITIONED,
        {"y": np.full(2, 7, I32), "n": 2},
        {
            "loop": (
                Step("reindex_cache_write", {"block": "step", "buffer": "Y", "scope": "local"}),
            )
        },
        "schedule.reindex_cache_write.not_proved",
    ),
    "a cache that starts at 0 is reset each time after it was added to the old value": (
        GOING_ON,
        {"y": np.full(2, 7, I32), "n": 2},
        {
            "loop": (
                Step("reindex_cache_write", {"block": "step", "buffer": "Y", "scope": "local"}),
            )
        },
        "schedule.reindex_cache_write.not_proved",
    ),
    "a cache that is loaded once for points that meet beyond its nest holds what others store there": (
        TRIPLED,
        {"y": np.full(2, 7, I32), "n": 2},
        {"loop": (Step("cache_write", {"block": "step", "buffer": "Y", "scope": "local"}),)},
        "schedule.cache_write.other_access",
    ),
    "a cache that is initialized once for points that meet beyond its nest holds what others store": (
        STARTED,
        {"y": np.full(2, 7, I32), "n": 2},
        {"loop": (Step("cache_write", {"block": "step", "buffer": "Y", "scope": "local"}),)},
        "schedule.cache_write.other_access",
    ),
    "parts that start at 0 are reset each time after they were combined": (
        IN_TURNS,
        {"y": np.full(2, 7, I32), "n": 2},
        {"loop": (Step("rfactor", {"loop": "j"}),)},
        "schedule.rfactor.not_proved",
    ),
    "an init in each iteration of an outer loop stays in each if that loop is fused with its points": (
        EVERY_TURN,
        {"y": np.full(2, 7, I32), "n": 2},
        {"loop": (Step("fuse", {"loops": ("t", "i")}),)},
        "schedule.fuse.not_proved",
    ),
    "a row beyond the last one stops the program for every position in it": (
        ABSENT_ROW,
        {
            "a": np.zeros(0, I32),
            "indptr": np.zeros(1, I32),
            "p": np.array([-1]),
            "y": np.zeros(1, I32),
            "n": 0,
            "nnz": 0,
        },
        {},
    ),
    "the start of a loop is evaluated even if none of its parts runs": (
        IDLE,
        {"p": np.zeros(0, np.int64), "n": 0},
        {"loop": (Step("loop_partition", {"loop": "i", "points": (1,)}),)},
    ),
    "an unread value does not stop the program after it is computed at its reads": (
        UNREAD,
        {"p": np.zeros(2, np.int64), "y": np.zeros(1, np.int64), "n": 2},
        {"loop": (Step("compute_inline", {"block": "make"}),)},
    ),
    "the start of a loop with one iteration is evaluated": (
        UNUSED % (0, 0),
        {"p": np.zeros(1, np.int64), "y": np.zeros(1, np.int64), "n": 1},
        {},
    ),
    "the values of block iterators are evaluated even if the condition of the block is false": (
        UNUSED % (0, 0),
        {"p": np.zeros(2, np.int64), "y": np.zeros(2, np.int64), "n": 2},
        {},
    ),
    "the condition of an empty block is evaluated": (
        UNUSED % (0, 3),
        {"p": np.zeros(3, np.int64), "y": np.zeros(3, np.int64), "n": 3},
        {},
    ),
    "a copy that runs ahead stays a copy even if nothing reads it": (
        DROPPED,
        {"y": np.zeros(3, I32), "h": np.arange(3, dtype=I32), "p": np.arange(8), "m": 3},
        {
            "loop": (
                Step("reindex_cache_read", {"block": "step", "buffer": "P", "scope": "global"}),
                Step("reverse_compute_at", {"block": "step", "loop": "i_c"}),
                Step("pipeline", {"loop": "i_c"}),
            )
        },
    ),
    "a loop loses its pipeline annotation if its copies share a buffer": (
        COPIED_LOOP,
        {"y": np.zeros(4, I32)},
        {"loop": (Step("pipeline", {"loop": "j"}),)},
    ),
    "a predicate is evaluated where an iterator is outside its domain": (
        MASKED,
        {
            "indptr": np.array([0, 2, 3], I32),
            "a": np.array([5, 6, 7], I32),
            "c": np.array([-1, 0]),
            "y": np.zeros(8, I32),
            "n": 2,
            "nnz": 3,
        },
        {},
    ),
    **{
        f"lanes of {at} accumulate one by one into what iterations share": (
            SHARED % (at, at),
            {
                "z": np.arange(32, dtype=I32),
                "x": np.arange(48, dtype=I32),
                "p": np.arange(16)[::-1].copy(),
                "m": 3,
            },
            {
                "loop": (
                    Step("parallel", {"loop": "i", "accumulate": "atomic"}),
                    Step("vectorize", {"loop": "k", "remainder": "masked"}),
                )
            },
        )
        for at in ("k_0 * 4 + k", "P[k_0 * 4 + k]", "k_0 + k * 8")
    },
    "an index is read out of bounds even if a preceding axis has no such position": (
        ABSENT_BEFORE,
        {
            "a": np.ones(3, I32),
            "indptr": np.array([0, 0, 1], I32),
            "c": np.zeros(4, np.int64),
            "y": np.zeros(1, I32),
            "n": 2,
            "nnz": 1,
        },
        {},
    ),
    "an init does not run before a loop whose end is read from what it writes": (
        OWN_END,
        {"z": np.array([3, -1, 1, 5], I32)},
        {},
    ),
    "inits do not run before a loop that reads the elements of other points": (
        OTHER_POINTS,
        {"y": np.array([3, 1, -2, 2], I32), "q": np.array([1, 2, 3, 0], I32), "n": 1},
        {"loop": (Step("blockize", {"loop": "j"}),)},
        "schedule.blockize.not_proved",
    ),
    "no region contains an element outside of its buffer": (
        BEYOND,
        {"g": np.zeros(2, I32), "slots": np.zeros((2, 1), I32), "q": np.ones(2, I32), "n": 2},
        {
            "position": (
                Step("hide_buffer_access", {"block": "b", "access": "read", "buffers": ("Q",)}),
            )
        },
    ),
    "a region of a buffer that moves into the block is no longer declared": (
        IN_TURN,
        {"x": np.arange(4, dtype=I32), "y": np.zeros(4, I32)},
        {
            "loop": (
                Step("blockize", {"loop": "i"}),
                Step("reindex_cache_read", {"block": "use", "buffer": "X", "scope": "local"}),
                Step("hide_buffer_access", {"block": "use_o", "access": "read", "buffers": ()}),
                Step("compute_at", {"block": "use_X_local", "loop": "i"}),
            )
        },
    ),
    "a region that leaves out an element in a version is not declared there": (
        ELEMENT,
        {"z": np.arange(3, dtype=I32), "q": np.zeros(3, I32), "y": np.zeros(3, I32), "n": 3},
        {
            "loop": (
                Step("hide_buffer_access", {"block": "pick", "access": "read", "buffers": ("Q",)}),
                Step("loop_version", {"name": "i", "condition": "n == 1"}),
            )
        },
    ),
    "a condition that wraps in the last iteration of an intrinsic does not hold in all": (
        WRAPPED_LAST,
        {"y": np.array([-3, -1, 2, -3, 3, -1, 3, 3], I32), "n": 6},
        {
            "loop": (
                Step("cache_inplace", {"block": "b", "buffer": "Y", "scope": "local"}),
                Step("sparse_tensorize", {"loop": "i_c_1", "intrinsic": "copy_8_int32"}),
            )
        },
        "schedule.sparse_tensorize.predicate",
    ),
}
"""Scripts, their arguments, steps by stage, and the codes of those that are rejected."""


@pytest.mark.parametrize("name", CASES)
def test_the_schedule_is_refused_or_changes_no_result(name):
    text, values, traces, *refused = CASES[name]
    arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
    sizes = {key: value for key, value in values.items() if key not in arrays}
    module = parse_module(text)
    assert refusals(module, traces) == refused
    assert finding_of(Lowered(module, arrays, sizes), schedule=replayed(traces)) is None

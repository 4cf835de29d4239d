"""Rolling buffers and sampled compute locations, interpreted and as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stepwise_schedules import integers, require_schedule, step

from gossamer_ir.errors import ScheduleError
from gossamer_ir.script import parse_module
from gossamer_schedule import ScheduleBuilder, replay

BLUR = """
@T.prim_func
def blur(x: T.handle, y: T.handle, n: T.int64, k: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n + 2, k), "float32")
    Y = T.match_buffer(y, (n, k), "float32")
    M = T.decl_buffer((n + 2, k), "float32")
    for i in T.serial(n + 2):
        for j in T.serial(k):
            with T.block("made"):
                vi, vj = T.axis.remap("SS", [i, j])
                M[vi, vj] = X[vi, vj] * 2.0
    for p in T.serial(n):
        for q in T.serial(k):
            with T.block("used"):
                vp, vq = T.axis.remap("SS", [p, q])
                Y[vp, vq] = M[vp, vq] + M[vp + 1, vq] - M[vp + 2, vq]
"""
BLURRED = {
    "row by row": [
        step("compute_at", "made", loop="p"),
        step("rolling_buffer", "made", buffer="M"),
    ],
    "four rows at a time": [
        step("split", "p", factors=(None, 4)),
        step("compute_at", "made", loop="p_0"),
        step("rolling_buffer", "made", buffer="M"),
        step("split", "q", factors=(None, 4)),
        step("vectorize", "q_1"),
    ],
    "a copy of the input": [
        step("cache_read", "made", buffer="X", scope="local"),
        step("compute_inline", "made"),
        step("compute_at", "made_X_local", loop="p"),
        step("rolling_buffer", "made_X_local", buffer="X_local"),
    ],
    "columns outside": [
        step("reorder", "q", "p"),
        step("compute_at", "made", loop="p"),
        step("rolling_buffer", "made", buffer="M"),
        step("parallel", "q"),
    ],
    "at a place that is drawn": [
        step("sample_compute_location", "made", name="place", decision="p"),
        step("compute_at", "made", loop="$place"),
        step("rolling_buffer", "made", buffer="M"),
    ],
}


@pytest.mark.parametrize("name", BLURRED)
@pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 1), (6, 0), (9, 5)])
def test_rows_of_a_window_are_made_once(name, n, k):
    x = integers(np.random.default_rng(n), n + 2, k)
    expected = 2 * (x[:-2] + x[1:-1] - x[2:])
    arguments = {"x": x, "y": np.full((n, k), 7, np.float32), "n": n, "k": k}
    require_schedule(parse_module(BLUR), [(arguments, {"y": expected})], loop=BLURRED[name])


CONVOLUTION = """
@T.prim_func
def convolution(x: T.handle, w: T.handle, y: T.handle, c: T.handle, n: T.int64, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n + 4, m), "float32")
    W = T.match_buffer(w, (m,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    C = T.match_buffer(c, (1,), "int32")
    for o in T.serial(2):
        for t in T.serial(1, n):
            M = T.alloc_buffer((n + 4,), "float32", scope="local")
            for i in T.serial(4):
                for j in T.serial(m):
                    with T.block("made"):
                        vi = T.axis.spatial(n + 4, t + i)
                        vj = T.axis.reduce(m, j)
                        T.where(vi != 3)
                        with T.init():
                            M[vi] = 1.0
                        M[vi] = M[vi] + X[vi, vj] * W[vj]
            with T.block("used"):
                vt = T.axis.spatial(n, t)
                T.where(vt != 3)
                Y[vt] = Y[vt] + M[vt] * 2.0 + T.if_then_else(vt != 0, M[vt + 3], 0.0)
            C[0] = C[0] + 1
"""


@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 0), (8, 3)])
def test_reductions_under_conditions_are_made_once(n, m):
    random = np.random.default_rng(m)
    x, w, y = integers(random, n + 4, m), integers(random, m), integers(random, n)
    made, expected = 1 + x @ w, y.copy()
    for t in range(1, n):
        if t != 3:
            expected[t] += 2 * (made[t] * 2 + made[t + 3])
    arguments = {"x": x, "w": w, "y": y, "c": np.zeros(1, np.int32), "n": n, "m": m}
    counted = np.array([2 * max(n - 1, 0)], np.int32)
    steps = [step("rolling_buffer", "made", buffer="M")]
    require_schedule(
        parse_module(CONVOLUTION), [(arguments, {"y": expected, "c": counted})], loop=steps
    )


def test_iterations_that_keep_values_do_not_run_at_once():
    builder = ScheduleBuilder(parse_module(BLUR)).compute_at("made", loop="p")
    builder.rolling_buffer("made", buffer="M")
    with pytest.raises(ScheduleError) as raised:
        builder.parallel("p")
    assert raised.value.code in ("schedule.parallel.race", "schedule.parallel.not_proved")


def test_a_place_that_was_drawn_is_the_same_in_a_replay():
    module = parse_module(BLUR)
    places = set()
    for seed in range(20):
        builder = ScheduleBuilder(module).sample_compute_location("made", name="place", seed=seed)
        builder.compute_at("made", loop="$place")
        places.add(builder.trace[0].args["decision"])
        assert replay(module, builder.trace) == builder.module
        assert ScheduleBuilder.from_json(module, builder.to_json()).module == builder.module
    assert places == {"p", "q"}


BUCKETS = """
@T.prim_func
def buckets(x: T.handle, t: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    W = T.match_buffer(t, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        with T.block("first_w"):
            vi = T.axis.spatial(n, i)
            W[vi] = X[vi] * 2.0
    for j in T.serial(n):
        with T.block("first"):
            vj = T.axis.spatial(n, j)
            Y[vj] = W[vj]
    for k in T.serial(n):
        with T.block("second_w"):
            vk = T.axis.spatial(n, k)
            W[vk] = X[vk] * 3.0
    for l in T.serial(n):
        with T.block("second"):
            vl = T.axis.spatial(n, l)
            Y[vl] = Y[vl] + W[vl]
"""


def test_blocks_of_a_filter_share_a_buffer_of_their_own():
    steps = [
        step("set_block_filter", "group_0"),
        step("annotate", "first_w", key="group_0", value=1),
        step("annotate", "first", key="group_0", value=1),
        step("unsafe_match_to_alloc", "first_w", buffer="W"),
        step("set_scope", "W_alloc", scope="local"),
        step("compute_at", "first_w", loop="j"),
        step("hide_buffer_access", "first", access="read", buffers=("W_alloc",)),
        step("unset_block_filter"),
    ]
    x = integers(np.random.default_rng(5), 7)
    arguments: dict[str, Any] = {
        "x": x,
        "t": np.zeros(7, np.float32),
        "y": np.zeros(7, np.float32),
        "n": 7,
    }
    expected = {"y": 5 * x, "t": 3 * x}
    require_schedule(parse_module(BUCKETS), [(arguments, expected)], loop=steps)


def test_look_ups_find_the_blocks_that_a_filter_lets_through():
    builder = ScheduleBuilder(parse_module(BUCKETS)).annotate("first", key="group_0", value=1)
    assert builder.get_consumers("first_w") == ("first", "second")
    builder.set_block_filter("group_0")
    assert builder.get_blocks() == ("first",)
    assert builder.get_consumers("first_w") == ("first",)
    assert builder.get_producers("first") == ()
    assert builder.unset_block_filter().get_producers("first") == ("first_w", "second_w")

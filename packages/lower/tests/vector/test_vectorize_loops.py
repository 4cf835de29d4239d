"""Vectorized loops compute what serial loops do, with fixed and scalable vectors."""

from __future__ import annotations

import numpy as np
import pytest
from vector_programs import HEADER, SCRATCH

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Compare, For, Guard, If, LaneReduce, Prefetch, Ramp
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import lower_to_flat

CONDITION = "if t * (4) + l < n and n > 2:"


def tiled(lanes, *body):
    """A loop over n in vectors, masked at the end."""
    lines = [
        f"    for t in T.serial((n + ({lanes} - 1)) // ({lanes})):",
        f"        for l in T.vectorized({lanes}):",
        f"            if t * ({lanes}) + l < n:",
        *(f"                {line.replace('@', f't * ({lanes}) + l')}" for line in body),
    ]
    return HEADER + "\n".join(lines) + "\n"


BODIES = {
    "run": (["Y[@] = X[@] * 2.0"], lambda x, p: 2 * x),
    "gather": (["Y[@] = X[T.int64(P[@])]"], lambda x, p: x[p]),
    "let": (["v = X[@]", "Y[@] = v + v"], lambda x, p: 2 * x),
    "select": (
        ["Y[@] = T.Select(X[@] > 1.0, X[@], T.float32(0))"],
        lambda x, p: np.where(x > 1, x, 0),
    ),
    "lazy": (
        ["Y[@] = T.if_then_else(@ > 2, X[@ - 3], T.float32(5))"],
        lambda x, p: np.concatenate([np.full(min(3, len(x)), 5), x[: max(len(x) - 3, 0)]]),
    ),
    "if and else": (
        ["if X[@] > 1.0:", "    Y[@] = X[@]", "else:", "    Y[@] = T.float32(0)"],
        lambda x, p: np.where(x > 1, x, 0),
    ),
}


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 16, 37])
@pytest.mark.parametrize("lanes", ["4", "16", "T.vscale() * 4"])
@pytest.mark.parametrize("name", BODIES)
def test_vectors_with_a_masked_tail(name, lanes, n):
    lines, expected = BODIES[name]
    module = lower_to_flat(parse_module(tiled(lanes, *lines)))
    assert any(isinstance(node, Ramp) for node in walk(module))
    x = np.arange(n, dtype=np.float32) % 7 - 2
    p = (np.arange(n, dtype=np.int32) * 3) % max(n, 1)
    for vscale in (1, 2) if "vscale" in lanes else (1,):
        y = np.full(n, np.nan, dtype=np.float32)
        run(module, {"x": x, "y": y, "p": p.astype(np.int32), "s": SCRATCH, "n": n}, vscale=vscale)
        np.testing.assert_array_equal(y, expected(x, p))


REDUCERS = {
    "add": ("S[0] + {}", lambda x: x.sum()),
    "max": ("T.max(S[0], {})", lambda x: x.max(initial=1)),
    "min": ("T.min(S[0], {})", lambda x: x.min(initial=1)),
}


@pytest.mark.parametrize("n", [1, 3, 4, 9, 37])
@pytest.mark.parametrize("lanes", ["4", "T.vscale() * 4"])
@pytest.mark.parametrize("op", REDUCERS)
def test_a_reduction_over_lanes(op, lanes, n):
    update, expected = REDUCERS[op]
    text = tiled(lanes, f"S[0] = {update.format('X[@]')}")
    text = text.replace("in_range(P, 0, n))\n", "in_range(P, 0, n))\n    S[0] = 1.0\n")
    module = lower_to_flat(parse_module(text))
    assert any(isinstance(node, LaneReduce) for node in walk(module))
    x = np.arange(n, dtype=np.float32) % 5 - 2
    total = np.zeros(1, dtype=np.float32)
    run(module, {"x": x, "y": x.copy(), "p": np.zeros(n, np.int32), "s": total, "n": n})
    assert total[0] == expected(x.astype(np.float64)) + (1 if op == "add" else 0)


BOUNDS = ["t * (4) + l < n", "t * 4 + l <= n - 1", "n > l + t * 4", "4 * t - n < -l"]


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_reduction_with_fixed_lanes_runs_whole_vectors_and_a_scalar_rest(bound):
    text = tiled("4", "S[0] = S[0] + X[@]").replace(BOUNDS[0], bound)
    module = lower_to_flat(parse_module(text))
    loops = [node.var for node in walk(module) if isinstance(node, For)]
    assert loops == ["t", "t_rest"]


@pytest.mark.parametrize("n", [0, 1, 4, 5, 6, 9, 13])
@pytest.mark.parametrize("start", [1, 4])
def test_a_reduction_in_lanes_that_start_after_the_first_element(start, n):
    text = tiled("4", "S[0] = S[0] + X[@]")
    text = text.replace("T.vectorized(4)", f"T.vectorized({start}, {start + 4})")
    x = np.arange(1, n + 1, dtype=np.float32)
    total = np.zeros(1, dtype=np.float32)
    module = lower_to_flat(parse_module(text))
    run(module, {"x": x, "y": x.copy(), "p": np.zeros(n, np.int32), "s": total, "n": n})
    assert total[0] == x[start:].sum()


@pytest.mark.parametrize("n", [0, 1, 4, 7, 12])
def test_an_unrolled_reduction_up_to_a_bound_keeps_its_masks(n):
    text = tiled("4", "S[0] = S[0] + X[@]").replace("+ l < n:", "+ l < T.min(n, 12):")
    text = text.replace("T.serial((n + (4 - 1)) // (4))", "T.unroll(3)")
    module = lower_to_flat(parse_module(text))
    assert not any(isinstance(node, For) for node in walk(module))
    x = np.arange(1, n + 1, dtype=np.float32)
    total = np.ones(1, dtype=np.float32)
    run(module, {"x": x, "y": x.copy(), "p": np.zeros(n, np.int32), "s": total, "n": n})
    assert total[0] == 1 + x.sum()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 9, 37])
def test_the_rest_of_a_reduction_may_be_one_masked_vector(n):
    text = tiled("4", "S[0] = S[0] + X[@]").replace(
        "T.vectorized(4)", 'T.vectorized(4, annotations={"remainder": "masked"})'
    )
    module = lower_to_flat(parse_module(text))
    assert [node.var for node in walk(module) if isinstance(node, For)] == ["t"]
    x = np.arange(n, dtype=np.float32) % 5 - 2
    total = np.ones(1, dtype=np.float32)
    run(module, {"x": x, "y": x.copy(), "p": np.zeros(n, np.int32), "s": total, "n": n})
    assert total[0] == 1 + x.sum()


@pytest.mark.parametrize("remainder", ["scalar", "masked"])
@pytest.mark.parametrize("n", [0, 1, 2, 4, 5, 6, 9, 21])
def test_a_reduction_up_to_a_negative_bound_is_empty(n, remainder):
    text = tiled("4", "S[0] = S[0] + X[@]").replace("+ l < n:", "+ l < n - 5:")
    marked = f'T.vectorized(4, annotations={{"remainder": "{remainder}"}})'
    module = lower_to_flat(parse_module(text.replace("T.vectorized(4)", marked)))
    x = np.arange(1, n + 1, dtype=np.float32)
    total = np.ones(1, dtype=np.float32)
    run(module, {"x": x, "y": x.copy(), "p": np.zeros(n, np.int32), "s": total, "n": n})
    assert total[0] == 1 + x[: max(n - 5, 0)].sum()


def grouped(lanes, bound="n"):
    """A reduction in groups of two vectors."""
    group = f"2 * ({lanes})"
    position = f"t * ({group}) + u * ({lanes}) + l"
    return (
        HEADER
        + f"""
    for t in T.serial(({bound} + ({group} - 1)) // ({group})):
        for u in T.unroll(2):
            for l in T.vectorized({lanes}, annotations={{"remainder": "masked"}}):
                if {position} < {bound} and {position} >= 2:
                    S[0] = S[0] + X[{position}]
"""
    )


@pytest.mark.parametrize("n", [0, 1, 3, 7, 8, 9, 12, 15, 16, 17, 24, 37])
@pytest.mark.parametrize("bound", ["n", "(n - 5)"])
@pytest.mark.parametrize("lanes", ["4", "T.vscale() * 4"])
def test_groups_of_vectors_are_whole_and_the_rest_is_masked(lanes, bound, n):
    module = lower_to_flat(parse_module(grouped(lanes, bound)))
    groups, remainder = [node for node in walk(module) if isinstance(node, For)]
    assert [groups.var, remainder.var] == ["t", "u_rest"]
    bounds = [
        any(isinstance(node, Compare) and node.op == "lt" for node in walk(*loop.body))
        for loop in (groups, remainder)
    ]
    assert bounds == [False, True]
    x = np.arange(1, n + 1, dtype=np.float32)
    for vscale in (1, 2, 4) if "vscale" in lanes else (1,):
        total = np.ones(1, dtype=np.float32)
        arguments = {"x": x, "y": x.copy(), "p": np.zeros(n, np.int32), "s": total, "n": n}
        run(module, arguments, vscale=vscale)
        end = n if bound == "n" else max(n - 5, 0)
        assert total[0] == 1 + x[2 : max(end, 2)].sum()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (', annotations={"remainder": "masked"}', ""),
        ("T.serial((n + ", "T.serial(1 + (n + "),
        ("for u in T.unroll(2)", "for u in T.serial(2)"),
        ("S[0]", "S[u // 2]"),
    ],
    ids=[
        "a scalar remainder",
        "more groups",
        "a loop that is not unrolled",
        "an element for a vector",
    ],
)
def test_other_nests_are_not_groups(old, new):
    text = grouped("4")
    assert old in text
    module = lower_to_flat(parse_module(text.replace(old, new)))
    assert "u_rest" not in {node.var for node in walk(module) if isinstance(node, For)}


PREFETCHES = """        T.prefetch(X, t * ({group}) + 64)
        for q in T.unroll(2):
            if t < 3:
                T.prefetch(P, t * ({group}) + q)
"""


@pytest.mark.parametrize("n", [0, 1, 7, 8, 21])
@pytest.mark.parametrize("is_grouped", [False, True])
def test_prefetches_after_a_reduction_run_with_whole_vectors_only(is_grouped, n):
    text = grouped("4") if is_grouped else tiled("4", "S[0] = S[0] + X[@]")
    text += PREFETCHES.format(group=8 if is_grouped else 4)
    module = lower_to_flat(parse_module(text))
    whole, remainder = [node for node in walk(module) if isinstance(node, For)]
    counts = [
        sum(isinstance(node, Prefetch) for node in walk(*loop.body)) for loop in (whole, remainder)
    ]
    assert counts == [3, 0]
    assert not any(isinstance(node, LaneReduce) for node in walk(*whole.body))
    x = np.arange(1, n + 1, dtype=np.float32)
    total = np.ones(1, dtype=np.float32)
    run(module, {"x": x, "y": x.copy(), "p": np.zeros(n, np.int32), "s": total, "n": n})
    assert total[0] == 1 + x[2 if is_grouped else 0 :].sum()


@pytest.mark.parametrize(
    "after", ["        T.prefetch(X, T.int64(S[0]))", "        Y[t] = S[0]", "        P[t] = 1"]
)
def test_what_else_follows_a_reduction_runs_after_each_vector(after):
    text = tiled("4", "S[0] = S[0] + X[@]") + after + "\n"
    module = lower_to_flat(parse_module(text))
    (loop,) = [node for node in walk(module) if isinstance(node, For)]
    assert any(isinstance(node, LaneReduce) for node in walk(*loop.body))


def test_a_guard_reads_only_in_the_lanes_that_the_mask_lets_through():
    text = tiled("4", "Y[@] = X[T.int64(P[@])]").replace("    T.assume(in_range(P, 0, n))\n", "")
    module = lower_to_flat(parse_module(text))
    assert any(isinstance(node, Guard) for node in walk(module))
    x, y, p = np.arange(6, dtype=np.float32), np.zeros(6, np.float32), np.arange(6, dtype=np.int32)
    run(module, {"x": x, "y": y, "p": p, "s": SCRATCH, "n": 6})
    np.testing.assert_array_equal(y, x)


def test_lanes_that_the_mask_holds_back_read_nothing_to_find_what_they_store_to():
    module = lower_to_flat(parse_module(tiled("4", "Y[T.int64(P[@])] = X[@]")))
    x, y, p = np.arange(6, dtype=np.float32), np.zeros(6, np.float32), np.arange(6, dtype=np.int32)
    run(module, {"x": x, "y": y, "p": p[::-1].copy(), "s": SCRATCH, "n": 6})
    np.testing.assert_array_equal(y, x[::-1])


REFUSED = {
    "the same element from every lane": ["S[0] = X[@]"],
    "a sum of what depends on the sum": ["S[0] = S[0] + S[0] * X[@]"],
    "a sum that asks for the sum": ["if S[0] < 5.0:", "    S[0] = S[0] + X[@]"],
    "different trip counts": ["for q in T.serial(@):", "    Y[@] = X[@]"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_vector_form_is_refused_by_name(name):
    with pytest.raises(UnsupportedError) as caught:
        lower_to_flat(parse_module(tiled("4", *REFUSED[name])))
    assert caught.value.code == "lower.vectorize_loops.no_vector_form"


@pytest.mark.parametrize(
    "branches",
    ["if l < n:\n{X}", "if l >= n:\n{zero}        else:\n{X}"],
    ids=["then", "else"],
)
def test_an_access_that_only_a_lane_condition_protects_is_refused(branches):
    read, zero = ("            Y[l] = X[n - 1]\n", "            Y[l] = 0.0\n")
    body = branches.format(X=read, zero=zero)
    text = f"{HEADER}    for l in T.vectorized(4):\n        {body}"
    with pytest.raises(UnsupportedError) as caught:
        lower_to_flat(parse_module(text))
    assert caught.value.code == "lower.insert_bounds_checks.unmasked_lane"


def test_the_part_of_a_condition_that_no_lane_changes_stands_outside_the_vectors():
    text = tiled("4", "Y[@] = X[@] + X[n - 3]").replace("if t * (4) + l < n:", CONDITION)
    module = lower_to_flat(parse_module(text))
    assert [type(stmt) for stmt in module.functions[0].body] == [If]
    for n in (0, 2, 3, 6):
        x, y = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
        arrays = {"x": x, "y": y, "p": np.zeros(n, np.int32), "s": SCRATCH}
        run(module, {**arrays, "n": n})
        expected = x + x[-3] if n > 2 else np.full(n, np.nan)
        np.testing.assert_array_equal(y, expected)


def test_a_loop_that_runs_only_under_a_condition_stands_under_it():
    extent = "T.if_then_else(n > 2, 2, 0)"
    body = f"    for q in T.serial({extent}):\n        for l in T.vectorized(2):\n            "
    module = lower_to_flat(parse_module(HEADER + body + "Y[l] = Y[l] + X[q + 1]\n"))
    assert not any(isinstance(node, Guard) for node in walk(module))
    x, y = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    run(module, {"x": x, "y": y, "p": np.zeros(3, np.int32), "s": SCRATCH, "n": 3})
    np.testing.assert_array_equal(y, [3, 3, 0])


def test_a_condition_that_reads_memory_is_evaluated_under_the_one_around_it():
    text = tiled("4", "if X[@] > 1.0:", "    S[0] = S[0] + X[@]")
    module = lower_to_flat(parse_module(text))
    assert any(isinstance(node, LaneReduce) for node in walk(module))
    x, total = np.arange(6, dtype=np.float32), np.zeros(1, np.float32)
    run(module, {"x": x, "y": x.copy(), "p": np.zeros(6, np.int32), "s": total, "n": 6})
    assert total[0] == 2 + 3 + 4 + 5


def nested(depth):
    """A choice whose condition is a choice, and so on; each condition contains a load."""
    condition = "X[@] > 1.0"
    for _ in range(depth):
        condition = f"T.if_then_else({condition}, True, X[T.int64(P[@])] > 1.0)"
    return tiled("4", f"Y[@] = T.if_then_else({condition}, X[@], 5.0)")


def test_choices_in_conditions_are_made_once_however_deep_they_are():
    sizes = {}
    for depth in (0, 2, 6, 12):
        module = lower_to_flat(parse_module(nested(depth)))
        sizes[depth] = sum(1 for _ in walk(module))
        x, p = np.arange(9, dtype=np.float32) % 4, np.arange(9, dtype=np.int32)[::-1].copy()
        y = np.full(9, np.nan, np.float32)
        run(module, {"x": x, "y": y, "p": p, "s": SCRATCH, "n": 9})
        holds = (x > 1) | (x[p] > 1) if depth else x > 1
        np.testing.assert_array_equal(y, np.where(holds, x, 5))
    assert sizes[12] - sizes[6] < 2 * (sizes[6] - sizes[0])


def test_what_all_lanes_read_under_a_condition_of_the_outer_loop_stays_under_it():
    lines = ["for t in T.serial(4):", "    for l in T.vectorized(2):",
             "        if t < T.int64(P[0]) and t < n:", "            S[0] = S[0] + X[t]"]  # fmt: skip
    module = lower_to_flat(parse_module(HEADER + "".join(f"    {line}\n" for line in lines)))
    x, total = np.arange(1, 3, dtype=np.float32), np.zeros(1, np.float32)
    p = np.array([2, 0], np.int32)
    run(module, {"x": x, "y": x.copy(), "p": p, "s": total, "n": 2})
    assert total[0] == 2 * (1 + 2)


def test_the_condition_of_a_select_is_used_in_proofs():
    text = (
        HEADER + "    for i in T.serial(n):\n        Y[i] = T.if_then_else(i > 2, X[i - 3], 0.0)\n"
    )
    module = lower_to_flat(parse_module(text))
    assert not any(isinstance(node, Guard) for node in walk(module))


def test_a_let_of_a_lane_is_no_condition_of_all_lanes():
    text = tiled("4", "v = n - @", "if v > 2:", "    Y[@] = X[n - 3]")
    with pytest.raises(UnsupportedError) as caught:
        lower_to_flat(parse_module(text))
    assert caught.value.code == "lower.insert_bounds_checks.unmasked_lane"

"""The rule for sampled dot products: the programs that it recognizes, and correct results for every number
of features.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from rule_programs import machine

from gossamer_ir.core.annotations import REASSOCIATES
from gossamer_ir.interchange.records import Schedule, Stats
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.verify import verify
from gossamer_machine import Machine
from gossamer_schedule import get_loops, replay
from gossamer_schedule.rules import default_schedule
from gossamer_schedule.rules.library.row_sddmm import (
    LONG_GROUP,
    LONG_GROUP_ROW,
    SHORT_GROUP,
    UNROLLED_VECTORS,
    row_sddmm,
)
from gossamer_schedule.rules.patterns.sampled_products import sampled_products

PARAMETERS = """
@T.prim_func
def main(x: T.handle, y: T.handle, s: T.handle, out: T.handle, indptr: T.handle, indices: T.handle,
         m: T.int64, n: T.int64, feat: T.int64, nnz: T.int64) -> None:
"""
COORDINATE = f"""{PARAMETERS}
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat)
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (J_detach, K), "float32")
    S = T.sp.match_buffer(s, (I, J), "float32")
    Out = T.sp.match_buffer(out, (I, J), "float32")
    with T.sp.iteration([I, J, K], "SSR", "products") as [i, j, k]:
        with T.init():
            Out[i, j] = 0.0
        Out[i, j] = Out[i, j] + X[i, k] * Y[j, k]
"""
LOOP = f"""{PARAMETERS}
    T.func_attr({{"sparse_tir_level": 0}})
    X_data = T.match_buffer(x, (m, feat), "float32")
    Y_data = T.match_buffer(y, (n, feat), "float32")
    S_data = T.match_buffer(s, (nnz,), "float32")
    Out_data = T.match_buffer(out, (nnz,), "float32")
    J_indptr = T.match_buffer(indptr, (m + 1,), "int32")
    J_indices = T.match_buffer(indices, (nnz,), "int32")
    T.assume(in_range(J_indptr, 0, nnz + 1))
    T.assume(monotone(J_indptr))
    T.assume(in_range(J_indices, 0, n))
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            for k in T.serial(feat):
                with T.block("products"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        Out_data[T.int64(J_indptr[vi]) + vj] = 0.0
                    Out_data[T.int64(J_indptr[vi]) + vj] = (
                        Out_data[T.int64(J_indptr[vi]) + vj]
                        + X_data[vi, vk]
                        * Y_data[T.int64(J_indices[T.int64(J_indptr[vi]) + vj]), vk]
                    )
"""
WIDE = Machine()
NARROW = machine("vector_bits=256")


def rows_of(mean, *, columns=100):
    return Stats(100, columns, int(mean * 100), 1000, 0)


SHORT, LONG = rows_of(3), rows_of(LONG_GROUP_ROW)
FAR = rows_of(3, columns=1 << 18)


def sized(text, features=None, *, dtype="float32"):
    constants = {} if features is None else {"feat": features}
    return specialize(parse_module(text.replace("float32", dtype)), constants)


def changed(old, new):
    assert old in COORDINATE
    return COORDINATE.replace(old, new)


def ops(schedule):
    return [step.op for step in schedule.loop]


VECTORIZED = ["split", "split", "decompose_reduction", "vectorize", "unroll", "unroll", "parallel"]


def test_products_are_recognized_with_their_sizes():
    pattern = sampled_products(sized(COORDINATE, 40))
    assert (pattern.block, pattern.row, pattern.position, pattern.feature) == (
        "products",
        "i",
        "j",
        "k",
    )
    assert (pattern.features, pattern.dtype, pattern.gather.operand) == (40, "float32", "Y_data")
    assert pattern.before == "T.int64(J_indptr[i])"
    assert sampled_products(sized(COORDINATE)).features is None


def renamed():
    """The program with all names replaced."""
    text = COORDINATE
    words = {"main": "f", "products": "q", "I": "R", "J": "S_", "K": "F", "i": "r", "j": "c"}
    words |= {"k": "z", "X": "P", "Y": "Q", "Out": "W", "m": "h", "n": "w", "nnz": "l"}
    for old, new in words.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


def test_names_do_not_matter():
    for stats in (None, SHORT, LONG, FAR):
        schedule = default_schedule(sized(renamed(), 40), WIDE, stats)
        assert ops(schedule) == ops(default_schedule(sized(COORDINATE, 40), WIDE, stats))
        assert schedule.loop[-1].args["weight"] == "T.int64(S__indptr[r]) + 4 * r"


ALIKE = {
    "another reducer": (
        "Out[i, j] + X[i, k] * Y[j, k]",
        "T.max(Out[i, j], X[i, k] * Y[j, k])",
    ),
    "products of products": (
        "Out[i, j] + X[i, k] * Y[j, k]",
        "Out[i, j] * (X[i, k] * Y[j, k])",
    ),
    "another first value": ("= 0.0", "= 5.0"),
    "one operand": (" * Y[j, k]", ""),
    "scaled by the element": ("Y[j, k]", "Y[j, k] * S[i, j]"),
    "counted": ("X[i, k] * Y[j, k]", "1.0"),
    "int64 indptr": ('"int32", sorted', '"int64", sorted'),
    "sorted and unique columns": (", sorted=False, unique=False", ""),
}


def test_rows_selected_by_positions_are_guarded_so_that_lanes_are_not_combined():
    old = 'compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)'
    ragged = changed(old, "dense_varied(I, (n, nnz), indptr)")
    assert ops(default_schedule(sized(ragged, 40), WIDE)) == ["parallel"]


@pytest.mark.parametrize(("old", "new"), ALIKE.values(), ids=ALIKE)
def test_similar_programs_have_the_same_schedule(old, new):
    assert ops(default_schedule(sized(changed(old, new), 40), WIDE)) == VECTORIZED


IRREGULAR = {
    "features that are not side by side": ("(I, K), ", "(K, I), ", "X[i, k]", "X[k, i]"),
    "features of others": ("X[i, k]", "X[i, k // 2]", "", ""),
    "rows of another length": ("X[i, k]", "X[j, k]", "", ""),
}


@pytest.mark.parametrize("edits", IRREGULAR.values(), ids=IRREGULAR)
def test_operands_that_vectors_cannot_read_are_read_one_by_one(edits):
    text = changed(*edits[:2])
    if edits[2]:
        text = text.replace(*edits[2:])
    assert ops(default_schedule(sized(text, 40), WIDE)) == ["parallel"]


OTHER = {
    "no reduction": ("Out[i, j] + X[i, k]", "X[i, k]"),
    "no init of the element": ("            Out[i, j] = 0.0", "            Out[i, 0] = 0.0"),
    "no init": ("        with T.init():\n            Out[i, j] = 0.0\n", ""),
    "an element of its own term": ("X[i, k] *", "Out[i, j] *"),
    "another order of axes": (
        '[I, J, K], "SSR", "products") as [i, j, k]',
        '[K, I, J], "RSS", "products") as [k, i, j]',
    ),
    "numbered elements": ("[I, J, K]", "[T.sp.fuse(I, J), K]"),
    "a matrix of every pair": ("(out, (I, J)", "(out, (I, J_detach)"),
    "an index array's name that is taken": ("nnz", "J_indptr"),
}


@pytest.mark.parametrize(("old", "new"), OTHER.values(), ids=OTHER)
def test_other_computations_are_left_alone(old, new):
    module = sized(changed(old, new), 40)
    assert row_sddmm(module) is None


def test_padded_rows_run_slot_by_slot():
    module = sized(changed("unique=False)", "unique=False, padded=True)"), 40)
    schedule = default_schedule(module, WIDE, FAR)
    ops = [(step.op, step.args.get("loop")) for step in schedule.loop]
    assert ops == [
        ("split", "k"), ("decompose_reduction", "k_0"), ("vectorize", "k_1"), ("unroll", "k_0"),
        ("parallel", "i"),
    ]  # fmt: skip


def test_without_features_nothing_is_reordered():
    assert row_sddmm(sized(COORDINATE, 0)) is None
    assert default_schedule(sized(COORDINATE, 0), WIDE) == Schedule()


def factors(schedule):
    return [step.args["factors"] for step in schedule.loop if step.op == "split"]


GROUPS = [
    (None, SHORT_GROUP),
    (SHORT, SHORT_GROUP),
    (rows_of(LONG_GROUP_ROW - 1), SHORT_GROUP),
    (LONG, LONG_GROUP),
]


@pytest.mark.parametrize(("stats", "group"), GROUPS)
def test_groups_follow_the_length_of_rows(stats, group):
    assert factors(default_schedule(sized(COORDINATE, 40), WIDE, stats))[0] == (None, group)


@pytest.mark.parametrize(("features", "group"), [(48, LONG_GROUP), (49, SHORT_GROUP)])
def test_groups_of_long_rows_follow_the_features(features, group):
    assert factors(default_schedule(sized(COORDINATE, features), WIDE, LONG))[0] == (None, group)


LANES = [
    (40, WIDE, "float32", (3, 16)),
    (39, WIDE, "float64", (5, 8)),
    (39, NARROW, "float32", (5, 8)),
    (16, WIDE, "float32", (1, 16)),
    (None, WIDE, "float32", (None, 16)),
]


ALIGNED = [
    (32, WIDE, "float32", 16, (3, 16)),
    (48, NARROW, "float64", 4, (13, 4)),
    (16 * (UNROLLED_VECTORS - 1), WIDE, "float32", 16, (UNROLLED_VECTORS, 16)),
]


@pytest.mark.parametrize(("features", "target", "dtype", "lanes", "expected"), ALIGNED)
def test_rows_of_whole_vectors_are_read_where_lines_begin(features, target, dtype, lanes, expected):
    schedule = default_schedule(sized(COORDINATE, features, dtype=dtype), target)
    (step,) = [step for step in schedule.loop if step.op == "align"]
    assert step.args == {"loop": "k", "buffer": "Y_data", "lanes": lanes}
    assert factors(schedule)[1] == expected


@pytest.mark.parametrize("features", [None, 1, 16, 33, 16 * UNROLLED_VECTORS])
def test_other_rows_are_read_from_their_beginning(features):
    schedule = default_schedule(sized(COORDINATE, features), WIDE)
    assert "align" not in [step.op for step in schedule.loop]


def test_rows_of_an_operand_that_is_far_away_are_read_from_their_beginning():
    module = sized(COORDINATE, 32)
    for columns, aligned in ((1 << 16, 1), (1 << 17, 0)):
        steps = default_schedule(module, WIDE, rows_of(3, columns=columns)).loop
        assert [step.op for step in steps].count("align") == aligned


@pytest.mark.parametrize(("features", "target", "dtype", "expected"), LANES)
def test_vectors_have_the_width_of_the_target(features, target, dtype, expected):
    assert (
        factors(default_schedule(sized(COORDINATE, features, dtype=dtype), target))[1] == expected
    )


@pytest.mark.parametrize("features", [2, 16 * UNROLLED_VECTORS, 16 * UNROLLED_VECTORS + 1, None])
def test_as_many_vectors_are_unrolled_as_code_stays_short(features):
    steps = default_schedule(sized(COORDINATE, features), WIDE).loop
    unrolled = [step.args["loop"] for step in steps if step.op == "unroll"]
    few = features is not None and features <= 16 * UNROLLED_VECTORS
    assert unrolled == (["k_0", "j_1"] if few else ["j_1"])


def test_rows_of_one_feature_run_as_they_are():
    assert ops(default_schedule(sized(COORDINATE, 1), WIDE)) == ["parallel"]


def prefetched(text, stats, features=128):
    steps = default_schedule(sized(text, features), WIDE, stats).loop
    return [step.args["buffer"] for step in steps if step.op == "prefetch"]


def test_gathered_rows_are_asked_for_where_they_are_far():
    for stats in (FAR, rows_of(LONG_GROUP_ROW, columns=1 << 18)):
        assert prefetched(COORDINATE, stats) == ["Y_data"]
    for stats in (None, SHORT):
        assert prefetched(COORDINATE, stats) == []
    for features in (31, None):
        assert prefetched(COORDINATE, FAR, features=features) == []


@pytest.mark.parametrize("stats", [None, LONG, FAR], ids=["short", "long", "far"])
def test_fused_axes_are_iterated_one_by_one(stats):
    fused = changed("[I, J, K]", "[T.sp.fuse(I, J), K]")
    plain, unfused = (
        default_schedule(sized(text, 33), WIDE, stats) for text in (COORDINATE, fused)
    )
    assert [step.op for step in unfused.coordinate] == ["sparse_unfuse"]
    assert unfused.loop == plain.loop != ()


def test_only_one_operand_whose_name_is_known_is_asked_for():
    both = changed("X[i, k] * Y[j, k]", "Z[j, k] * Y[j, k]").replace("X = ", "Z = ")
    both = both.replace("(I, K)", "(J_detach, K)")
    none = changed(" * Y[j, k]", "")
    taken = changed("nnz", "Y_data")
    for text in (both, none, taken):
        assert prefetched(text, FAR) == []


def require_products(module, features, *, dtype, lengths):
    """Check rows of these lengths, with unordered columns and duplicates."""
    verify(module)
    random = np.random.default_rng(features)
    rows, columns, nnz = len(lengths), 5, sum(lengths)
    x, y = (random.integers(-3, 4, (length, features)).astype(dtype) for length in (rows, columns))
    indices = random.integers(0, columns, nnz).astype(np.int32)
    out = np.full(nnz, 77, dtype)
    arrays = {"x": x, "y": y, "s": np.ones(nnz, dtype), "out": out, "indices": indices}
    arrays |= {"indptr": np.cumsum([0, *lengths]).astype(np.int32)}
    arrays |= {"m": rows, "n": columns, "feat": features, "nnz": nnz}
    run(module, {param.name: arrays[param.name] for param in module.functions[0].params})
    expected = x.astype("float64") @ y.astype("float64").T
    np.testing.assert_array_equal(out, expected[np.repeat(np.arange(rows), lengths), indices])


def scheduled(features=None, *, dtype="float32", stats=None, target=WIDE):
    schedule = default_schedule(sized(COORDINATE, features, dtype=dtype), target, stats)
    return replay(sized(LOOP, features, dtype=dtype), schedule.loop)


LENGTHS = {
    "empty at both ends": [0, 0, 3, 0, 9, 4, 1, 0],
    "a long row": [1, 40],
    "no rows": [],
    "no elements": [0, 0],
}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("stats", [None, LONG, FAR], ids=["short", "long", "far"])
@pytest.mark.parametrize("features", [0, 1, 7, 16, 33])
def test_schedules_keep_the_meaning(features, stats, lengths):
    require_products(sized(LOOP, features), features, dtype="float32", lengths=lengths)
    module = scheduled(features, stats=stats)
    require_products(module, features, dtype="float32", lengths=lengths)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_symbolic_number_of_features(target, dtype):
    for stats in (None, LONG, FAR):
        module = scheduled(dtype=dtype, stats=stats, target=target)
        for features in (0, 1, 8, 17):
            lengths = LENGTHS["empty at both ends"]
            require_products(module, features, dtype=dtype, lengths=lengths)


@pytest.mark.parametrize("features", [16 * UNROLLED_VECTORS + 3, 16 * UNROLLED_VECTORS + 16])
def test_more_vectors_than_are_unrolled(features):
    require_products(scheduled(features), features, dtype="float32", lengths=[0, 21, 5])


def test_the_loops_of_a_group():
    module = scheduled(40)
    assert ".".join(get_loops(module, "products")) == "i.j_0.j_1.k_0.k_1"
    assert REASSOCIATES in print_module(module)


@pytest.mark.parametrize(
    ("features", "stats", "groups"),
    [
        (16 * UNROLLED_VECTORS, LONG, False),
        (16 * UNROLLED_VECTORS + 16, LONG, True),
        (16 * UNROLLED_VECTORS + 17, LONG, False),
        (16 * UNROLLED_VECTORS + 16, Stats(8, 8, 8, 1, 0), False),
    ],
)
def test_a_loop_over_many_vectors_has_groups_of_elements(features, stats, groups):
    schedule = default_schedule(sized(COORDINATE, features), WIDE, stats)
    assert ("loop_partition" in [step.op for step in schedule.loop]) == groups

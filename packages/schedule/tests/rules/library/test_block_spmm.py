"""The rule for sums over dense blocks: the programs that it recognizes, the tiles that it chooses, and
correct results for every kind of size.
"""

from __future__ import annotations

import numpy as np
import pytest
from block_programs import COORDINATE, LOOP
from msgspec.structs import replace
from rule_programs import machine
from scipy import sparse

from gossamer_ir.core.annotations import REASSOCIATES
from gossamer_ir.interchange.records import Stats
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.verify import verify
from gossamer_machine import Machine
from gossamer_schedule import get_loops, reorder, replay, split
from gossamer_schedule.rules import default_schedule, schedule_report
from gossamer_schedule.rules.decisions.block_tile import best_tile
from gossamer_schedule.rules.library.block_spmm import block_spmm
from gossamer_schedule.rules.patterns.block_reduction import block_reduction

WIDE = Machine()
NARROW = machine("vector_bits=256")


def sized(text, *, height=None, width=None, features=None, dtype="float32"):
    optional = {"bh": height, "bw": width, "feat": features}
    constants = {name: size for name, size in optional.items() if size is not None}
    return specialize(parse_module(text.replace("float32", dtype)), constants)


def pattern_of(**sizes):
    return block_reduction(sized(COORDINATE, **sizes))


def test_blocks_are_recognized_with_their_sizes():
    pattern = pattern_of(height=5, width=3)
    assert (pattern.height, pattern.width, pattern.features) == (5, 3, None)
    loops = (
        pattern.row,
        pattern.position,
        pattern.inner_row,
        pattern.inner_position,
        pattern.feature,
    )
    assert loops == ("io", "jo", "ii", "ji", "k")
    assert (pattern.output, pattern.before) == ("C_data", "T.int64(JO_indptr[io])")


@pytest.mark.parametrize(
    ("sizes", "decision"),
    [
        (
            {"height": 3, "width": 3, "features": 32},
            "columns of a block unrolled: there are 18 multiply-adds of vectors for all of them",
        ),
        ({"height": 4, "width": 4, "features": 128}, "columns of a block unrolled"),
        (
            {"height": 8, "width": 8, "features": 128},
            "a loop over columns of a block: 128 multiply-adds of vectors for all of them, more than 64, are "
            "too much code",
        ),
        (
            {"height": 3, "features": 32},
            "a loop over columns of a block: their number is unknown",
        ),
    ],
)
def test_columns_of_small_blocks_are_unrolled(sizes, decision):
    report = schedule_report(sized(COORDINATE, **sizes), WIDE)
    decisions = [f"{made.what}: {made.why}" for made in report.decisions]
    assert any(text.startswith(decision) for text in decisions)
    unrolled = [step for step in report.schedule.loop if step.op == "unroll"]
    assert any("ji" in str(step) for step in unrolled) == decision.startswith("columns")


# Tiles of 4 rows by 2 vectors: 192 and 200 multiply-adds.
@pytest.mark.parametrize(("width", "is_unrolled"), [(24, True), (25, False)])
def test_more_multiply_adds_of_narrow_vectors_are_unrolled(width, is_unrolled):
    report = schedule_report(sized(COORDINATE, height=16, width=width, features=128), NARROW)
    unrolled = [step for step in report.schedule.loop if step.op == "unroll"]
    assert any("ji" in str(step) for step in unrolled) == is_unrolled


COUNTED = (
    COORDINATE.replace("(IO, II, K)", "(I, K)")
    .replace("C[io, ii, k]", "C[io * bh + ii, k]")
    .replace("    II =", "    I = T.sp.dense_fixed(mb * bh)\n    II =")
)


@pytest.mark.parametrize("height", [2, 5, 16, 29])
def test_rows_may_be_counted_over_all_blocks(height):
    module = sized(COUNTED, height=height, width=2, features=16)
    pattern = block_reduction(module)
    assert pattern.counts_rows
    assert not pattern_of(height=height).counts_rows
    assert replace(pattern, counts_rows=False) == pattern_of(height=height, width=2, features=16)
    assert height % best_tile(pattern, WIDE).rows == 0
    adding = parse_module(print_module(module).replace(INIT.format(height), ""))
    assert not adding.functions[0].body[0].init
    assert block_reduction(adding) == pattern


def test_rows_counted_over_blocks_of_unknown_height_are_left_to_other_rules():
    """Whether they are different rows cannot be proved, because the product may wrap around."""
    assert block_reduction(parse_module(COUNTED)) is None


INIT = """\
        with T.init():
            C[io * {} + ii, k] = 0.0
"""


ANY_ORDER = COORDINATE.replace('[IO, JO, II, JI, K], "SRSRS"', '[K, IO, II, JI, JO], "SSSRR"')
ANY_ORDER = ANY_ORDER.replace("as [io, jo, ii, ji, k]", "as [k, io, ii, ji, jo]")


def test_the_order_of_the_axes_does_not_matter():
    pattern = block_reduction(parse_module(ANY_ORDER))
    assert pattern.order == ("k", "io", "ii", "ji", "jo")
    assert replace(pattern, order=pattern_of().order) == pattern_of()


def without_features():
    text = COORDINATE.replace("(JO_detach, JI, K)", "(JO_detach, JI)").replace("II, K)", "II)")
    text = text.replace('JI, K], "SRSRS"', 'JI], "SRSR"').replace("ji, k]", "ji]")
    return text.replace("ii, k]", "ii]").replace("C[io, ii, k]", "C[io, ii]")


def test_a_vector_has_no_features():
    assert block_reduction(parse_module(without_features())).feature is None


OTHER = {
    "a product": ("A[io, jo, ii, ji] *", "C[io, ii, k] *"),
    "no init of the element": ("            C[io, ii, k] = 0.0", "            C[io, ii, 0] = 0.0"),
    "a plain store": ("C[io, ii, k] = C[io, ii, k] +", "C[io, ii, k] ="),
    "two inits": ("            C[io, ii, k] = 0.0\n", "            C[io, ii, k] = 0.0\n" * 2),
    "an output in blocks": (
        "C = T.sp.match_buffer(c, (IO, II, K)",
        "C = T.sp.match_buffer(c, (IO, JO, II)",
    ),
    "features that are not side by side": ("B[jo, ji, k]", "B[jo, k, ji]"),
    "a feature that is reduced": ('"SRSRS"', '"SRSRR"'),
}


@pytest.mark.parametrize(("old", "new"), OTHER.values(), ids=OTHER)
def test_other_computations_are_left_to_other_rules(old, new):
    assert old in COORDINATE
    text = COORDINATE.replace(old, new, 1)
    if new.startswith("k_c"):
        text = text.replace("buffer(c,", "buffer(k_c,")
    assert block_spmm(parse_module(text)) is None


SAME = {
    "padding": ('"int32")', '"int32", padded=True)'),
    "an output that is gone on from": (
        "        with T.init():\n            C[io, ii, k] = 0.0\n",
        "",
    ),
}


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_neither_padding_nor_an_init_makes_a_difference(old, new):
    assert old in COORDINATE
    module = parse_module(COORDINATE.replace(old, new, 1))
    expected = block_spmm(parse_module(COORDINATE))
    assert block_spmm(module) == expected is not None


def test_blocks_without_elements_have_no_schedule():
    for sizes in ({"height": 0}, {"features": 0}):
        assert block_spmm(sized(COORDINATE, **sizes)) is None


TILES = [
    # height, features, target, dtype, rows, vectors, lanes
    (16, 32, WIDE, "float32", 8, 2, 16),
    (16, 128, WIDE, "float32", 8, 2, 16),
    (16, 512, WIDE, "float32", 8, 3, 16),
    (16, None, WIDE, "float32", 8, 2, 16),
    (16, 128, WIDE, "float64", 8, 2, 8),
    (16, 128, NARROW, "float32", 4, 2, 8),
    (16, 48, NARROW, "float32", 4, 3, 8),
    (12, 128, WIDE, "float32", 12, 2, 16),
    (4, 128, WIDE, "float32", 4, 4, 16),
    (3, 5, WIDE, "float32", 3, 1, 8),
    (1, 512, WIDE, "float32", 1, 4, 16),
    (13, 128, WIDE, "float32", 13, 1, 16),
    (29, 32, WIDE, "float32", 8, 2, 16),
    (5, 1, WIDE, "float32", 5, 1, 1),
    (None, 128, WIDE, "float32", 1, 4, 16),
    (None, None, WIDE, "float32", 1, 4, 16),
]


@pytest.mark.parametrize(
    ("height", "features", "target", "dtype", "rows", "vectors", "lanes"), TILES
)
def test_tiles(height, features, target, dtype, rows, vectors, lanes):
    pattern = pattern_of(height=height, width=4, features=features, dtype=dtype)
    tile = best_tile(pattern, target)
    assert (tile.rows, tile.features.vectors, tile.features.lanes) == (rows, vectors, lanes)


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_accumulators_leave_registers_for_operands(target):
    pattern, machine = pattern_of(), target
    for height in range(1, 70):
        for features in (*range(1, 70), 100, 512, None):
            tile = best_tile(replace(pattern, height=height, features=features), machine)
            assert tile.rows * tile.features.vectors <= 1.5 * machine.accumulators


def scheduled(target=WIDE, **sizes):
    schedule = default_schedule(sized(COORDINATE, **sizes), target)
    assert [step.op for step in schedule.loop][-1] == "parallel"
    return replay(sized(LOOP, **sizes), schedule.loop)


SIZES = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 3), (3, 5), (8, 8), (16, 2), (29, 2), (67, 1)]
FEATURES = [1, 2, 3, 16, 17, 40]


def blocks(height, width):
    """Four block rows by three: the first and the last empty, one with every block."""
    random = np.random.default_rng(height * 31 + width)
    columns = np.array([0, 1, 2, 1])
    data = random.integers(-3, 4, (4, height, width)).astype(np.float32)
    return sparse.bsr_array(
        (data, columns, np.array([0, 0, 3, 4, 4])), shape=(4 * height, 3 * width)
    )


def require_product(module, matrix, features):
    verify(module)
    height, width = matrix.blocksize
    dense = np.random.default_rng(7).integers(-3, 4, (3 * width, features)).astype(np.float32)
    result = np.full((4, height, features), 77, np.float32)
    arrays = {"a": matrix.data, "b": dense.reshape(3, width, features), "c": result}
    arrays |= {"indptr": matrix.indptr.astype(np.int32), "indices": matrix.indices.astype(np.int32)}
    arrays |= {"mb": 4, "nb": 3, "nnzb": 4, "bh": height, "bw": width, "feat": features}
    run(module, {param.name: arrays[param.name] for param in module.functions[0].params})
    np.testing.assert_array_equal(result.reshape(4 * height, features), matrix @ dense)


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_schedules_keep_the_meaning(height, width):
    matrix = blocks(height, width)
    for features in FEATURES if height < 20 else (1, 17):
        module = scheduled(height=height, width=width, features=features)
        require_product(module, matrix, features)


@pytest.mark.parametrize("constants", [("height", "width"), ("features",), ()])
def test_symbolic_sizes(constants):
    sizes = {"height": 3, "width": 2, "features": 19}
    module = scheduled(**{name: sizes[name] for name in constants})
    require_product(module, blocks(3, 2), 19)


def test_the_loops_of_a_tile():
    module = scheduled(height=16, width=16, features=512)
    assert ".".join(get_loops(module, "bsrmm")) == "io.k_0.ii_0.jo.ji.ii_1.k_1.k_2"


def is_reassociating(module):
    return REASSOCIATES in print_module(module)


def test_terms_are_added_in_the_order_of_the_program():
    """Row loops move past two loops of the sum, which keep their order."""
    assert not is_reassociating(scheduled(height=16, width=16, features=128))
    parts = split(sized(LOOP, width=16), "ji", factors=(4, 4)).module
    assert not is_reassociating(reorder(parts, "ji_0", "ji_1", "ii").module)
    assert is_reassociating(reorder(parts, "ji_1", "ji_0", "ii").module)


# --- tiles of the dense operand


DENSE_BLOCKS = Stats(rows=64, columns=64, nnz=64 * 128, longest_row=4, empty_rows=0)
L2 = 1 << 20


def packing(stats=DENSE_BLOCKS, *, features=128, l2=L2, text=COORDINATE):
    """The decision about packing, and the names of the primitives of the schedule."""
    target = machine(f"vector_bits=512,l2={l2}")
    module = sized(text, height=4, width=4, features=features)
    report = schedule_report(module, target, stats)
    decision = report.decisions[-2]
    return decision, [step.op for step in decision.steps]


def test_tiles_are_packed_if_they_are_read_often():
    decision, steps = packing()
    assert decision.what == "B_data packed for each tile of features"
    assert steps == ["cache_region", "split", "vectorize", "unroll", "parallel"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"stats": None}, "the size of B_data is unknown"),
        ({"features": 32}, "several tiles of features"),
        ({"features": None}, "several tiles of features"),
        ({"l2": 4096}, "the copy would take"),
        ({"stats": Stats(64, 64, 64 * 120, 4, 0)}, "used fewer than 128 times on average"),
    ],
)
def test_tiles_that_are_not_packed(changes, reason):
    decision, steps = packing(**changes)
    assert reason in decision.why
    assert steps == []


@pytest.mark.parametrize("features", [100, 128])
def test_packed_tiles_keep_the_meaning(features):
    module = sized(LOOP, height=4, width=4, features=features)
    schedule = default_schedule(
        sized(COORDINATE, height=4, width=4, features=features),
        machine(f"vector_bits=512,l2={L2}"),
        DENSE_BLOCKS,
    )
    assert "cache_region" in {step.op for step in schedule.loop}
    require_product(replay(module, schedule.loop), blocks(4, 4), features)

"""The rule for tiles of columns times dense: the programs that it recognizes, the tiles that it chooses, and
correct results for every kind of size.
"""

from __future__ import annotations

import numpy as np
import pytest
from rule_programs import machine

from gossamer_heuristics.column_tiles import MAX_PACKED_VECTORS, MAX_PANEL, MIN_PANEL, PACKED_BYTES
from gossamer_ir.interchange.records import Stats
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.verify import verify
from gossamer_machine import Machine
from gossamer_schedule import get_loops, replay
from gossamer_schedule.rules import default_schedule, schedule_report
from gossamer_schedule.rules.library.tile_spmm import tile_spmm
from gossamer_schedule.rules.patterns.tiled_reduction import tiled_reduction
from gossamer_schedule.rules.schedule_rule import RuleContext

PARAMETERS = """
@T.prim_func
def tiledmm(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle, m: T.int64,
            tiles: T.int64, nnz: T.int64, width: T.int64, feat: T.int64) -> None:
"""
COORDINATE = f"""{PARAMETERS}
    JO = T.sp.dense_fixed(tiles)
    I = T.sp.dense_fixed(m, parent=JO)
    J = T.sp.compressed_varied(I, (width, nnz), (p, q), "int32")
    M = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(tiles * width)
    K = T.sp.dense_fixed(feat)
    A = T.sp.match_buffer(a, (JO, I, J), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    C = T.sp.match_buffer(c, (M, K), "float32")
    with T.sp.iteration([JO, I, J, K], "RSRS", "tiledmm") as [jo, i, j, k]:
        C[i, k] = C[i, k] + A[jo, i, j] * B[jo * width + j, k]
"""
ROW = "jo * m + i"
LOOP = f"""{PARAMETERS}
    T.func_attr({{"sparse_tir_level": 0}})
    A_data = T.match_buffer(a, (nnz,), "float32")
    B_data = T.match_buffer(b, (tiles * width, feat), "float32")
    C_data = T.match_buffer(c, (m, feat), "float32")
    J_indptr = T.match_buffer(p, (tiles * m + 1,), "int32")
    J_indices = T.match_buffer(q, (nnz,), "int32")
    T.assume(in_range(J_indptr, 0, nnz + 1))
    T.assume(monotone(J_indptr))
    T.assume(in_range(J_indices, 0, width))
    for jo in T.serial(tiles):
        for i in T.serial(m):
            for j in T.serial(T.int64(J_indptr[{ROW} + 1]) - T.int64(J_indptr[{ROW}])):
                for k in T.serial(feat):
                    with T.block("tiledmm"):
                        vjo, vi, vj, vk = T.axis.remap("RSRS", [jo, i, j, k])
                        C_data[vi, vk] = C_data[vi, vk] + A_data[
                            T.int64(J_indptr[vjo * m + vi]) + vj
                        ] * B_data[
                            vjo * width + T.int64(J_indices[T.int64(J_indptr[vjo * m + vi]) + vj]),
                            vk
                        ]
"""
WIDE = Machine()
NARROW = machine("vector_bits=256")


def sized(text, *, features=None, width=None, dtype="float32"):
    optional = {"feat": features, "width": width}
    constants = {name: size for name, size in optional.items() if size is not None}
    return specialize(parse_module(text.replace("float32", dtype)), constants)


def test_tiles_are_recognized_with_their_sizes():
    pattern = tiled_reduction(sized(COORDINATE, features=40, width=6))
    assert (pattern.column_tile, pattern.row, pattern.position, pattern.feature) == (
        "jo",
        "i",
        "j",
        "k",
    )
    assert (pattern.features, pattern.tile_columns) == (40, 6)
    assert (pattern.output, pattern.operand, pattern.operand_dtype) == (
        "C_data",
        "B_data",
        "float32",
    )


OTHER = {
    "an init": ("        C[i, k] =", "        with T.init():\n            C[i, k] = 0.0\n        C[i, k] ="),
    "a difference": ("C[i, k] + A", "C[i, k] - A"),
    "other kinds": ('"RSRS"', '"RSRR"'),
    "a plain store": ("C[i, k] = C[i, k] +", "C[i, k] ="),
    "an output of other rows": ("C = T.sp.match_buffer(c, (M, K)", "C = T.sp.match_buffer(c, (N, K)"),
    "rows that a tile does not select": ("B[jo * width + j, k]", "B[j, k]"),
    "rows of all tiles": ("B[jo * width + j, k]", "B[j * tiles + jo, k]"),
    "rows that depend on the row": ("B[jo * width + j, k]", "B[jo * width + j + i, k]"),
    "rows that depend on the feature": ("B[jo * width + j, k]", "B[jo * width + j + k, k]"),
    "features in another order": ("B[jo * width + j, k]", "B[jo * width + j, 0]"),
    "two operands": ("A[jo, i, j] * B", "A[jo, i, j] * D[jo * width + j, k] * B"),
    "elements of another row": ("A[jo, i, j]", "A[jo, 0, j]"),
    "rows of each tile": ("parent=JO", "parent=O"),
    "stored rows": (
        "I = T.sp.dense_fixed(m, parent=JO)",
        "I = T.sp.dense_varied(JO, (m, nnz), o)",
    ),
    "a fiber of fixed width": (
        '(width, nnz), (p, q), "int32")', '(width, 4), q, "int32")',
    ),
    "a single tile": ("JO = T.sp.dense_fixed(tiles)", "JO = T.sp.dense_fixed(1)"),
    "storage after the last row": ('(N, K), "float32")', '(N, K), "float32", extra_storage=3)'),
    "a computed number of rows": ("dense_fixed(m", "dense_fixed(m * 2"),
}  # fmt: skip


def changed(old, new):
    assert old in COORDINATE
    text = COORDINATE.replace(old, new, 1)
    if ": T.handle" in new:
        text = text.replace("buffer(c,", f"buffer({new.split(':')[0]},")
    if "D[" in new:
        text = text.replace("c: T.handle", "c: T.handle, d: T.handle", 1)
        text = text.replace(
            "    C = T", '    D = T.sp.match_buffer(d, (N, K), "float32")\n    C = T', 1
        )
    if new == "dense_fixed(m * 2":
        text = text.replace("dense_fixed(m)", new + ")")
    if new == "parent=O":
        text = text.replace("    I =", "    O = T.sp.dense_fixed(tiles)\n    I =", 1)
    if "dense_varied" in new:
        text = text.replace("c: T.handle", "c: T.handle, o: T.handle", 1)
    if "compressed_varied(I, (width, 4)" in text:
        text = text.replace("compressed_varied(I", "compressed_fixed(I")
    return text


@pytest.mark.parametrize(("old", "new"), OTHER.values(), ids=OTHER)
def test_other_computations_are_left_to_other_rules(old, new):
    assert tile_spmm(sized(changed(old, new), features=40, width=6)) is None


@pytest.mark.parametrize("sizes", [{"features": 40}, {"width": 6}, {"features": 0, "width": 6}])
def test_symbolic_sizes_and_no_features_are_left_to_other_rules(sizes):
    assert tile_spmm(sized(COORDINATE, **sizes)) is None


ALIKE = {
    "a scaled sum": ("A[jo, i, j] *", "2.0 * A[jo, i, j] *"),
    "a maximum": ("C[i, k] + A[jo, i, j] * B[jo * width + j, k]",
                  "T.max(C[i, k], A[jo, i, j] * B[jo * width + j, k])"),
    "padding": ('"int32")', '"int32", padded=True)'),
    "columns that begin later": ("jo * width + j,", "jo * width + j + 1,"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), ALIKE.values(), ids=ALIKE)
def test_similar_programs_have_the_same_schedule(old, new):
    assert old in COORDINATE
    plain = sized(COORDINATE, features=40, width=6)
    module = sized(COORDINATE.replace(old, new, 1), features=40, width=6)
    assert default_schedule(module, WIDE) == default_schedule(plain, WIDE)
    assert schedule_report(module, WIDE).rule == "tile_spmm"


# --- tiles


def loops(features, width, *, target=WIDE, dtype="float32", stats=None):
    """The tiles, vectors and lanes of the features, the rows of a panel, and the number of packed rows."""
    report = tile_spmm(
        sized(COORDINATE, features=features, width=width, dtype=dtype),
        RuleContext(stats, machine=target),
    )
    words = report.decisions[1].what.replace(",", "").split()
    numbers = [int(word) for word in words if word.isdigit()]
    panel, *tile = numbers
    packed = report.decisions[2].what.split()[0]
    return (*tile, panel, int(packed) if packed.isdigit() else 0)


TILES = [
    # features, width, target, dtype: tiles, vectors, lanes, panel, packed rows
    (1, 24, WIDE, "float32", (1, 1, 1, 512, 24)),
    (2, 24, WIDE, "float32", (1, 1, 2, 512, 24)),
    (3, 24, WIDE, "float32", (1, 1, 4, 512, 24)),
    (15, 24, WIDE, "float32", (1, 1, 16, 512, 24)),
    (16, 24, WIDE, "float32", (1, 1, 16, 512, 24)),
    (100, 24, WIDE, "float32", (1, 7, 16, 512, 24)),
    (128, 24, WIDE, "float32", (1, 8, 16, 512, 24)),
    (129, 24, WIDE, "float32", (2, 5, 16, 512, 24)),
    (300, 24, WIDE, "float32", (3, 7, 16, 512, 24)),
    (300, 24, WIDE, "float64", (5, 8, 8, 512, 24)),
    (128, 24, NARROW, "float32", (2, 8, 8, 512, 24)),
    (128, 128, WIDE, "float32", (1, 8, 16, 512, 128)),
    (128, 129, WIDE, "float32", (2, 4, 16, 512, 129)),
    (512, 256, WIDE, "float32", (8, 4, 16, 512, 256)),
    (64, 1024, WIDE, "float32", (4, 1, 16, 512, 1024)),
    (64, 1025, WIDE, "float32", (1, 4, 16, 512, 0)),
    (1, 10**6, WIDE, "float32", (1, 1, 1, 512, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("features", "width", "target", "dtype", "expected"), TILES)
def test_tiles(features, width, target, dtype, expected):
    assert loops(features, width, target=target, dtype=dtype) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 7, 64, 255, 256, 1000, 1024, 5000])
def test_packed_rows_fit_a_private_cache_and_the_stack(width, dtype):
    for features in (*range(1, 70), 100, 512, 1000):
        tiles, vectors, lanes, _, packed = loops(features, width, dtype=dtype)
        assert vectors <= MAX_PACKED_VECTORS
        assert tiles * vectors * lanes >= features > (tiles - 1) * vectors * lanes
        size = vectors * lanes * width * int(dtype[-2:]) // 8
        assert packed in (0, width)
        assert (packed > 0) == (size <= PACKED_BYTES) or packed == 0


@pytest.mark.parametrize(
    ("rows", "panel"), [(0, 64), (100, 64), (256, 128), (1024, 512), (10**7, 512)]
)
def test_a_matrix_has_two_panels_or_more_if_it_has_enough_rows(rows, panel):
    stats = Stats(rows=rows, columns=100, nnz=4 * rows, longest_row=9, empty_rows=0)
    assert loops(100, 24, stats=stats)[3] == panel
    assert MIN_PANEL <= panel <= MAX_PANEL


@pytest.mark.parametrize(
    ("features", "panel", "parallel"),
    [(384, 128, "panels"), (385, 256, "feature tiles of panels")],
)
def test_threads_share_the_feature_tiles_of_a_panel_if_there_are_enough(features, panel, parallel):
    """Each panel packs the dense operand again."""
    stats = Stats(rows=256, columns=100, nnz=1024, longest_row=9, empty_rows=0)
    module = sized(COORDINATE, features=features, width=24)
    report = tile_spmm(module, RuleContext(stats, machine=WIDE))
    assert loops(features, 24, stats=stats)[3] == panel
    assert report.decisions[-1].what.startswith(f"{parallel} in parallel")
    fused = [step for step in report.schedule.loop if step.op == "fuse"]
    assert len(fused) == (parallel != "panels")


def test_threads_have_fewer_panels_if_rows_are_long():
    def grain(mean):
        stats = Stats(rows=1024, columns=1024, nnz=1024 * mean, longest_row=99, empty_rows=0)
        return (
            default_schedule(sized(COORDINATE, features=16, width=64), WIDE, stats)
            .loop[-1]
            .args["grain"]
        )

    assert [grain(1), grain(4), grain(64)] == [16, 4, 1]


@pytest.mark.parametrize("features", [1, 16, 100, 300])
@pytest.mark.parametrize("width", [1, 24, 256, 5000])
def test_each_decision_is_a_sentence_with_a_reason(features, width):
    report = schedule_report(sized(COORDINATE, features=features, width=width), WIDE)
    assert report.pattern.startswith("each element C_data[i, k] reduces over j")
    for decision in report.decisions:
        for text in (decision.what, decision.why):
            assert text == text.strip().rstrip(".")
            assert "None" not in text
            assert "  " not in text
            assert " 1 rows" not in text
            assert " 1 lanes" not in text
    limits = [decision for decision in report.decisions if "64 KB" in decision.why]
    assert limits


# --- results


def tiled(rows, tiles, width, *, dtype="float32"):
    """A matrix with an empty tile, and empty rows at both ends; and its arrays."""
    random = np.random.default_rng(rows + tiles)
    whole = random.integers(-3, 4, (rows, tiles, width)) * (
        random.random((rows, tiles, width)) < 0.3
    )
    whole[:1] = whole[-1:] = 0
    whole[:, 1:2] = 0
    lengths, places = np.zeros(tiles * rows, int), []
    values = []
    for tile in range(tiles):
        for row in range(rows):
            columns = np.flatnonzero(whole[row, tile])
            lengths[tile * rows + row] = columns.size
            places.append(columns)
            values.append(whole[row, tile, columns])
    arrays = {
        "a": np.concatenate([np.empty(0), *values]).astype(dtype),
        "q": np.concatenate([np.empty(0), *places]).astype(np.int32),
        "p": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        "m": rows, "tiles": tiles, "nnz": int(lengths.sum()), "width": width,
    }  # fmt: skip
    return whole.reshape(rows, tiles * width), arrays


def require_product(module, rows, tiles, width, *, features, dtype="float32"):
    matrix, arrays = tiled(rows, tiles, width, dtype=dtype)
    dense = np.random.default_rng(7).integers(-3, 4, (tiles * width, features)).astype(dtype)
    before = np.random.default_rng(8).integers(-3, 4, (rows, features)).astype(dtype)
    values = arrays | {"b": dense, "c": before.copy(), "feat": features}
    run(module, {param.name: values[param.name] for param in module.functions[0].params})
    np.testing.assert_array_equal(values["c"], before + matrix @ dense.astype(np.float64))


def scheduled(target=WIDE, stats=None, **sizes):
    schedule = default_schedule(sized(COORDINATE, **sizes), target, stats)
    assert schedule.coordinate == ()
    return verify(replay(sized(LOOP, **sizes), schedule.loop))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("features", [1, 2, 3, 16, 17, 100])
def test_schedules_keep_the_meaning(features, dtype):
    module = scheduled(features=features, width=5, dtype=dtype)
    for rows, tiles in ((0, 0), (0, 2), (4, 0), (1, 1), (9, 3)):
        require_product(module, rows, tiles, 5, features=features, dtype=dtype)


def test_the_last_panel_and_the_last_tile_of_features_may_be_partial():
    stats = Stats(rows=64, columns=64, nnz=256, longest_row=9, empty_rows=0)
    module = scheduled(stats=stats, features=150, width=3)
    assert ".".join(get_loops(module, "tiledmm_rf")) == "i_0.k_0.jo.i_1.j.k_1.k_2"
    require_product(module, 70, 2, 3, features=150)


@pytest.mark.parametrize(("width", "features"), [(1, 1), (1, 17), (2000, 17), (70000, 1)])
def test_unusual_widths(width, features):
    module = scheduled(features=features, width=width)
    require_product(module, 2, 2 if width < 9000 else 1, width, features=features)


@pytest.mark.parametrize("features", [1, 128])
def test_scalable_vectors_have_tiles_whose_rows_are_not_packed(features):
    scalable = Machine(min_vector_bits=256, is_scalable=True, fixed_vscale=None)
    report = schedule_report(sized(COORDINATE, features=features, width=6), scalable)
    factors = [step.args["factors"] for step in report.schedule.loop if step.op == "split"]
    assert "4 * T.vscale()" in {factor for each in factors for factor in each}
    assert "cache_region" not in {step.op for step in report.schedule.loop}
    (decision,) = (each for each in report.decisions if each.what == "rows of B_data not packed")
    assert "scalable" in decision.why


def test_vectors_of_the_least_length_have_a_version_of_their_own():
    """Packed rows take fewer instructions there."""
    scalable = Machine(min_vector_bits=128, is_scalable=True, fixed_vscale=None)
    report = schedule_report(sized(COORDINATE, features=128, width=6), scalable)
    steps = report.schedule.loop
    assert [step.args["condition"] for step in steps if step.op == "loop_version"] == [
        "T.vscale() <= 1"
    ]
    assert len([step for step in steps if step.op == "cache_region"]) == 1
    assert len([step for step in steps if step.op == "parallel"]) == 2
    assert any(each.what.startswith("a version for vectors of 128") for each in report.decisions)

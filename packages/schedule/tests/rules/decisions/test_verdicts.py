"""Verdicts at both sides of each limit, with words of the reason."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer_heuristics.gathered_rows import PREFETCH, min_aligned, min_aligned_in_sums
from gossamer_ir.interchange.records import Stats
from gossamer_machine import Machine
from gossamer_schedule.rules.analysis.gathers import Gather
from gossamer_schedule.rules.decisions.alignment import row_alignment_verdict
from gossamer_schedule.rules.decisions.gather_tiling import gather_tiling, tiles_of
from gossamer_schedule.rules.decisions.nontemporal import nontemporal_verdict
from gossamer_schedule.rules.decisions.packing import row_packing_verdict
from gossamer_schedule.rules.decisions.prefetching.row_prefetching import (
    prefetch_distance,
    row_prefetching_verdict,
)
from gossamer_schedule.rules.decisions.rows_in_lanes import row_group, rows_in_lanes_verdict
from gossamer_schedule.rules.decisions.slice_lanes import slice_lanes
from gossamer_schedule.rules.decisions.thread_tiles import thread_tiles
from gossamer_schedule.rules.decisions.tile_loops import tile_loop
from gossamer_schedule.rules.steps.vector_loops import VectorTiles, tiles_holding

MACHINE = Machine(private_cache=1 << 20, shared_cache=16 << 20, gathers="fast", cores=2)
NARROW = replace(MACHINE, min_vector_bits=256, vector_registers=16)


def gather(features, *, operand="B_data", dtype="float32"):
    return Gather(operand, features, dtype, "product", "j", "k")


def matrix(columns, *, rows=1000, mean=8, longest=None):
    return Stats(
        rows=rows, columns=columns, nnz=rows * mean, longest_row=longest or mean, empty_rows=0
    )


def require(verdict, reason):
    """Check a verdict: for something if there is no reason, else against it with words of the reason."""
    assert verdict.is_profitable == (reason is None)
    assert reason is None or reason in verdict.why


# A quarter of the shared cache has 4 MB: 8192 rows of 128 float32.
@pytest.mark.parametrize(
    ("pattern", "stats", "reason"),
    [
        (gather(32), None, None),
        (gather(16), None, "1 vector; one more, and masks for two, pay from 2"),
        (gather(40), None, "not a few whole vectors"),
        (gather(None), None, "not a few whole vectors"),
        (gather(32, operand=None), None, "not a few whole vectors"),
        (gather(128), matrix(8192), None),
        (gather(128), matrix(8193), "masked loads take longer above"),
        (gather(128), matrix(8193, rows=8193, mean=16), None),
        (gather(128), matrix(32769, rows=32769, mean=16), "masked loads take longer above"),
    ],
)
def test_vectors_are_aligned_to_whole_rows_of_an_operand_in_the_cache(pattern, stats, reason):
    least = min_aligned(MACHINE)
    require(row_alignment_verdict(pattern, MACHINE, stats=stats, least=least), reason)


@pytest.mark.parametrize(("vectors", "is_aligned"), [(1, False), (2, True), (3, True), (4, False)])
def test_aligned_rows_have_a_number_of_vectors_within_limits(vectors, is_aligned):
    assert (
        row_alignment_verdict(
            gather(16 * vectors), MACHINE, stats=None, least=2, most=3
        ).is_profitable
        is is_aligned
    )


def test_a_vector_of_a_cache_line_is_aligned_by_itself():
    assert (min_aligned_in_sums(MACHINE), min_aligned_in_sums(NARROW)) == (1, min_aligned(NARROW))


# Half of the vectors of 256 bits cross a line, and masks take vector registers.
@pytest.mark.parametrize(
    ("features", "bits", "reason"),
    [
        (32, 512, None),
        (88, 256, None),
        (80, 256, "10 vectors; one more, and masks for two, pay from 11"),
        (512, 128, "no masked loads"),
    ],
)
def test_narrow_vectors_are_aligned_to_long_rows_only(features, bits, reason):
    machine = replace(MACHINE, min_vector_bits=bits)
    tiling = gather_tiling(gather(features), machine, stats=None, has_cacheable_accumulators=True)
    require(tiling.aligning, reason)


# The operand must have twice the private cache: 4096 rows of 128 float32.
@pytest.mark.parametrize(
    ("pattern", "stats", "is_aligned", "reason"),
    [
        (gather(128), matrix(4096), False, None),
        (gather(128), matrix(4095), False, "prefetching pays from 2 MiB"),
        (gather(32), matrix(16384), False, None),
        (gather(31), matrix(1 << 20), False, "a row of B_data has 124 bytes"),
        (gather(128), matrix(4096), True, "stays in the shared cache"),
        (gather(None), matrix(4096), False, "length of the rows of B_data is unknown"),
        (gather(128, operand=None), matrix(4096), False, "not exactly one operand"),
        (gather(128), None, False, "the size of B_data is unknown"),
    ],
)
def test_rows_of_a_large_operand_are_prefetched(pattern, stats, is_aligned, reason):
    require(
        row_prefetching_verdict(
            pattern, MACHINE, stats=stats, thresholds=PREFETCH, is_aligned=is_aligned
        ),
        reason,
    )


@pytest.mark.parametrize(
    ("features", "tiles", "distance"),
    [(16, 1, 16), (48, 1, 16), (64, 1, 12), (128, 1, 6), (512, 1, 2), (512, 4, 6)],
)
def test_rows_are_prefetched_48_lines_ahead(features, tiles, distance):
    assert prefetch_distance(gather(features), tiles=tiles) == distance


@pytest.mark.parametrize(
    ("pattern", "stats", "reason"),
    [
        (gather(16), matrix(8192, rows=8192, mean=32), None),
        (gather(16), matrix(8193, rows=8193, mean=32), "of the private cache are for it"),
        (gather(16), matrix(8192, rows=8192, mean=31), "fewer than 32 times"),
        (gather(16), None, "the size of B_data is unknown"),
        (gather(16, operand=None), matrix(8, mean=40), "not exactly one dense operand"),
    ],
)
def test_all_gathered_rows_are_packed_if_they_fit_half_of_the_private_cache(pattern, stats, reason):
    require(row_packing_verdict(pattern, MACHINE, stats=stats), reason)


@pytest.mark.parametrize(
    ("pattern", "stats", "machine", "reason"),
    [
        (gather(512), matrix(4096, rows=4096, mean=64), MACHINE, None),
        (gather(512), matrix(256, rows=256, mean=64), MACHINE, "pay for packing from 1 MiB"),
        (gather(512), matrix(8192, rows=512, mean=64), MACHINE, "fewer than 16 times"),
        (gather(512), matrix(16385, rows=16385, mean=64), MACHINE, "of the shared cache"),
        (gather(500), matrix(4096, rows=4096, mean=64), MACHINE, "several whole tiles"),
        (
            gather(512),
            matrix(4096, rows=4096, mean=64),
            replace(MACHINE, cores=16),
            "8 tiles would not keep 16 cores busy",
        ),
        (gather(512), None, MACHINE, "the size of B_data is unknown"),
        (gather(512, operand=None), matrix(4096, mean=64), MACHINE, "not exactly one dense"),
    ],
)
def test_threads_pack_tiles_of_a_large_operand_that_is_used_often(pattern, stats, machine, reason):
    require(thread_tiles(pattern, machine, stats=stats).packing, reason)


@pytest.mark.parametrize(
    ("machine", "stats", "reason"),
    [
        (MACHINE, matrix(9, mean=4, longest=8), None),
        (MACHINE, matrix(9, mean=4, longest=9), "wait for the longest row"),
        (MACHINE, matrix(9, mean=2, longest=6), None),
        (MACHINE, matrix(9, mean=2, longest=7), "wait for the longest row"),
        (MACHINE, matrix(9, mean=5, longest=5), "wait for the longest row"),
        (MACHINE, None, "not known to be short"),
        (replace(MACHINE, gathers="moderate"), matrix(9, mean=4), "too slow"),
    ],
)
def test_short_rows_of_about_one_length_are_lanes(machine, stats, reason):
    require(rows_in_lanes_verdict(machine, stats), reason)


@pytest.mark.parametrize(
    ("machine", "dtype", "rows", "window"),
    [(MACHINE, "float32", 8, 32), (MACHINE, "float64", 8, 32), (NARROW, "float32", 8, 0)],
)
def test_rows_share_a_window_if_registers_are_permuted(machine, dtype, rows, window):
    group = row_group(machine, dtype)
    assert (group.rows, group.window) == (rows, window)


# Half of the shared cache has 8 MB: 65,536 rows of 128 bytes.
@pytest.mark.parametrize(
    ("rows", "row_bytes", "reason"),
    [
        (1 << 16, 128, None),
        ((1 << 16) - 1, 128, "stays in the shared cache"),
        (1 << 16, 0, "the size of C_data is unknown"),
        (None, 128, "the size of C_data is unknown"),
    ],
)
def test_a_result_of_half_the_shared_cache_is_stored_around_it(rows, row_bytes, reason):
    stats = None if rows is None else matrix(9, rows=rows)
    require(nontemporal_verdict("C_data", row_bytes, machine=MACHINE, stats=stats), reason)


@pytest.mark.parametrize(
    ("tiles", "rows", "form"),
    [
        (VectorTiles(9, 8, 16, is_exact=True), 1, "loop"),
        (VectorTiles(None, 4, 16, is_exact=False), 1, "loop"),
        (VectorTiles(4, 8, 16, is_exact=False), 1, "unrolled"),
        (VectorTiles(4, 8, 16, is_exact=False), 2, "unrolled"),
        (VectorTiles(4, 8, 16, is_exact=False), 3, "peeled"),
        (VectorTiles(5, 8, 16, is_exact=False), 1, "peeled"),
    ],
)
def test_a_few_tiles_of_which_the_last_is_partial_are_unrolled(tiles, rows, form):
    assert tile_loop(tiles, rows=rows).form == form


@pytest.mark.parametrize(
    ("features", "options", "expected"),
    [
        (256, {}, (1, 16, 16)),
        (257, {}, (2, 9, 16)),
        (512, {}, (2, 16, 16)),
        (272, {"is_aligned": True}, (2, 9, 16)),
        (256, {"is_aligned": True}, (1, 17, 16)),
        (256, {"is_prefetched": True}, (2, 8, 16)),
        (128, {"rows": 3}, (2, 4, 16)),
        (5, {}, (1, 1, 8)),
        (None, {}, (None, 4, 16)),
    ],
)
def test_tiles_have_as_many_vectors_as_their_sums_have_registers(features, options, expected):
    flags = {"is_aligned": False, "is_prefetched": False} | options
    tiles, _ = tiles_of(features, "float32", machine=MACHINE, **flags)
    assert (tiles.tiles, tiles.vectors, tiles.lanes) == expected


@pytest.mark.parametrize(
    ("height", "lanes"), [(0, 8), (1, 1), (8, 8), (64, 8), (65, 1), (12, 4), (36, 1), (1024, 1)]
)
def test_rows_of_a_slice_are_lanes_if_eight_vectors_hold_them(height, lanes):
    assert slice_lanes(height) == lanes


def test_tiles_that_hold_all_elements_are_exact_without_a_rest():
    assert tiles_holding(64, vectors=2, lanes=16) == VectorTiles(2, 2, 16, is_exact=True)
    assert not tiles_holding(65, vectors=2, lanes=16).is_exact
    assert not tiles_holding(None, vectors=2, lanes=16).is_exact

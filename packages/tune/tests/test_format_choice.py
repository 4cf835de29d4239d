"""The choice of a format: the cases that were measured, and what it depends on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_machine.machine import Machine
from gossamer_tune import Estimate, Workload, choose_format, measure_formats, properties_of

MANY = 10**6


DEFAULT = Machine()


def chosen(matrix, features, calls=MANY, machine=DEFAULT):
    properties = properties_of(matrix.shape, matrix.indptr, matrix.indices)
    return choose_format(properties, Workload(features, machine=machine), calls=calls)


def pruned(density, shape=(512, 2048)):
    rng = np.random.default_rng(1)
    return sparse.random_array(shape, density=density, format="csr", rng=rng)


def elements(size, count=300):
    """Blocks at random: a matrix of finite elements with `size` unknowns for each node."""
    rng = np.random.default_rng(2)
    nodes = sparse.random_array((count, count), density=0.05, format="csr", rng=rng)
    return sparse.kron(nodes, np.ones((size, size)), format="csr")


# Measured on pruned weights (DLMC), Zen 4 and one thread: the fastest of CSR and four widths of tiles.
@pytest.mark.parametrize(
    ("density", "features", "columns"), [(0.5, 128, 64), (0.3, 512, 64), (0.2, 128, 64)]
)
def test_pruned_weights_are_stored_in_tiles(density, features, columns):
    choice = chosen(pruned(density), features)
    assert choice.chosen.text == f"tiled_csr (tile_columns={columns})"
    assert 1.3 < choice.speedup < 3.5


def test_very_sparse_matrices_stay_in_csr():
    assert chosen(pruned(0.01), 128).chosen.format == "csr"
    assert chosen(sparse.eye_array(5000, format="csr"), 128).chosen.format == "csr"


# Blocks of 16 are computed in two panels of 8 rows (measured: blocks of 8 are 1.0 to 1.15 times as fast).
# Tiles of 8 rows have 2 vectors of 128 features, those of 4 rows have 4 (measured: blocks of 4 are 1.1 to
# 1.2 times as fast on Zen 4 and on Emerald Rapids).
# Blocks of 2 lose with many features (measured on linear programs and finite elements: 0.3 to 0.8).
@pytest.mark.parametrize(
    ("size", "stored", "features"),
    [
        *((2, 2, 32), (8, 8, 32), (16, 8, 32), (8, 4, 128), (16, 4, 128)),
        *((size, size, features) for size in (3, 4) for features in (32, 128)),
    ],
)
def test_blocks_are_found(size, stored, features):
    parameters = {"block_rows": stored, "block_columns": stored}
    assert chosen(elements(size), features).chosen.parameters == parameters


def test_a_conversion_is_made_only_if_it_pays():
    matrix = pruned(0.2)
    choice = chosen(matrix, 64)
    assert choice.paying_calls is not None
    assert choice.paying_calls > 1
    assert chosen(matrix, 64, calls=1).chosen.format == "csr"
    assert chosen(matrix, 64, calls=100 * choice.paying_calls).chosen == choice.chosen
    assert chosen(pruned(0.01), 128).paying_calls is None


def test_smaller_caches_make_random_rows_slower():
    matrix = pruned(0.2)
    small = Machine(private_cache=1 << 18, shared_cache=1 << 21)
    assert chosen(matrix, 512, machine=small).csr.cycles > chosen(matrix, 512).csr.cycles


def test_the_text_has_all_estimates_and_reasons():
    choice = chosen(elements(3), 32)
    text = str(choice)
    assert text.startswith("bsr (block_rows=3, block_columns=3), expected to be ")
    assert all(estimate.text in text and estimate.reason in text for estimate in choice.estimates)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 3)])
def test_empty_matrices_stay_in_csr(shape):
    assert chosen(sparse.csr_array(shape), 16).chosen.format == "csr"


def test_measured_times_decide():
    choice = chosen(pruned(0.2), 128)
    seconds = {estimate.text: 1.0 for estimate in choice.estimates} | {"csr": 0.5}
    measured = measure_formats(choice, lambda estimate: seconds[estimate.text], most=2)
    assert measured.chosen.format == "csr"
    assert len(measured.seconds) == 3
    assert "measured 500 ms" in str(measured)


def test_the_conversion_counts_in_proportion_to_the_measured_time_of_csr():
    csr = Estimate("csr", {}, 100.0, 0.0, "")
    other = Estimate("bsr", {}, 50.0, 1000.0, "")
    choice = chosen(pruned(0.2), 128)._replace(estimates=(other, csr), chosen=other)
    times = {"csr": 1.0, "bsr": 0.5}
    for calls, expected in [(10, "csr"), (30, "bsr")]:
        measured = measure_formats(choice._replace(calls=calls), lambda each: times[each.format])
        assert measured.chosen.format == expected

"""Sparse attention on a GPU, in the interpreter of PTX, against NumPy in float64: heads and batches, and the
default schedules of its stages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operators.attention import SCRIPT
from gossamer_ir.script import parse_module
from tests.integration.gpu_programs import ARCHITECTURES, INTERPRETED, ptx_of, require_assembled


def band(size, width):
    diagonals = range(-width, width + 1)
    return sparse.diags_array(
        [np.ones(size - abs(k)) for k in diagonals], offsets=list(diagonals), format="csr"
    )


def ragged(rows, columns):
    """Empty rows, a dense one, and rows of few elements."""
    random = np.random.default_rng(rows)
    dense = (random.random((rows, columns)) < 0.2).astype(np.float32)
    dense[0] = dense[-1] = 0
    dense[rows // 2] = 1
    return sparse.csr_array(dense)


def blocks(size, height):
    mask = np.kron(
        np.tri(size // height, k=0) - np.tri(size // height, k=-2), np.ones((height,) * 2)
    )
    return sparse.csr_array(mask.astype(np.float32))


PATTERNS = {
    "band": band(24, 3),
    "ragged": ragged(19, 23),
    "blocks": blocks(16, 4),
    "short rows": band(20, 1),
    "no elements": sparse.csr_array((5, 4), dtype=np.float32),
}


def attended(pattern, Q, K, V):
    scores = Q.astype(np.float64) @ np.swapaxes(K, -1, -2).astype(np.float64) / np.sqrt(Q.shape[-1])
    stored = pattern.toarray() != 0
    scores = np.where(stored, scores, -np.inf)
    most = np.where(stored.any(axis=1), scores.max(axis=-1), 0)
    weights = np.exp(scores - most[..., np.newaxis])
    total = weights.sum(axis=-1, keepdims=True)
    return weights @ V / np.where(total == 0, 1, total)


def operands(pattern, features, heads=()):
    random = np.random.default_rng(features)
    rows, columns = pattern.shape
    shapes = [(*heads, size, features) for size in (rows, columns, columns)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("features", [1, 8, 33])
@pytest.mark.parametrize("name", PATTERNS)
def test_attention_is_that_of_the_dense_matrix(name, features):
    pattern = PATTERNS[name].astype(np.float32)
    dense = operands(pattern, features)
    result = gs.attention(pattern, *dense, target=INTERPRETED)
    np.testing.assert_allclose(result, attended(pattern, *dense), rtol=3e-5, atol=1e-5)


def test_heads_and_batches_are_computed_one_after_the_other():
    pattern = PATTERNS["ragged"]
    dense = operands(pattern, 8, heads=(2, 3))
    result = gs.attention(pattern, *dense, target=INTERPRETED)
    np.testing.assert_allclose(result, attended(pattern, *dense), rtol=3e-5, atol=1e-5)


def test_every_stage_has_a_schedule_of_its_own():
    report = gs.explain("attention", target=INTERPRETED)
    assert report.rule == "grid_iterations"
    bound = {step.args["loop"] for step in report.schedule.loop if step.op == "bind"}
    assert len(bound) == 6 * 2 + 1 + 2 * 2
    # Scores, maximum, powers, sum, products and quotients; nothing runs on one thread.
    text = ptx_of(parse_module(SCRIPT))
    assert text.count(".entry") == 6
    assert "statements" not in text


def test_threads_of_a_warp_share_long_rows():
    stats = gs.from_scipy(band(24, 3)).stats
    report = gs.explain("attention", target=INTERPRETED, stats=stats)
    decisions = [decision.what for decision in report.decisions]
    assert decisions.count("4 threads for each row add up what they have") == 2
    # Scores and powers, which find the row of an element.
    assert decisions.count("one loop over all elements") == 2


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ptxas_assembles_all_stages(architecture, tmp_path):
    require_assembled(parse_module(SCRIPT), architecture, tmp_path)

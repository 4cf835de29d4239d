"""The buckets of `hyb`: which rows they have, and what their descriptions declare."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gossamer_formats import decompose


def test_a_bucket_has_rows_of_similar_length_in_a_partition():
    lengths = np.array([0, 1, 2, 3, 4, 5, 8, 9, 17])
    rows = np.repeat(np.arange(9), lengths)
    columns = np.concatenate([np.arange(length) for length in lengths])
    stored = sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(9, 40))
    formats = {
        part.name: part.tensor.arrays["rows"].tolist()
        for part in decompose(stored, "hyb", k=3).parts
    }
    assert formats == {
        "p0b0": [1],
        "p0b1": [2],
        "p0b2": [3, 4],
        "p0b3": [5, 6, 7, 7, 8, 8, 8],
    }
    parts = decompose(stored, "hyb", c=4, k=3).parts
    assert [part.name for part in parts] == ["p0b0", "p0b1", "p0b2", "p0b3", "p1b3"]
    assert all(
        np.all(part.tensor.arrays["indices"][part.permutation >= 0] < 10) for part in parts[:4]
    )


def test_only_rows_that_are_not_cut_are_declared_unique():
    lengths = np.array([1, 1, 3, 4, 7])
    rows = np.repeat(np.arange(5), lengths)
    columns = np.concatenate([np.arange(length) for length in lengths])
    stored = sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(5, 9))
    cut = decompose(stored, "hyb", k=2)
    assert [part.tensor.description.axes[1].unique for part in cut.parts] == [True, False]
    whole = decompose(stored, "hyb", k=3)
    assert [part.tensor.description.axes[1].unique for part in whole.parts] == [True, True, True]


def test_equal_parts_have_equal_descriptions():
    rng = np.random.default_rng(0)
    stored = sparse.random_array((50, 64), density=0.3, format="csr", rng=rng)
    parts = decompose(stored, "hyb", c=4, k=6).parts
    by_width = {part.fixed_sizes["width"]: part.tensor.description for part in parts}
    assert len(by_width) < len(parts)
    assert all(part.tensor.description == by_width[part.fixed_sizes["width"]] for part in parts)

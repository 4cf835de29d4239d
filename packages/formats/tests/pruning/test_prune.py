"""Pruned matrices, compared with loops over rows and groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from gossamer_formats import SparseTensor, prune, require_valid_storage
from gossamer_ir.errors import ArgumentError, FormatError


def keep_largest(magnitudes, count):
    """Returns a mask of the largest magnitudes; the first of equal ones count as larger."""
    order = sorted(range(magnitudes.size), key=lambda at: (-magnitudes.flat[at], at))
    mask = np.zeros(magnitudes.size, bool)
    mask[order[:count]] = True
    return mask.reshape(magnitudes.shape)


def n_m_mask(dense, slots, group):
    mask = np.zeros(dense.shape, bool)
    for row in range(dense.shape[0]):
        for begin in range(0, dense.shape[1], group):
            part = np.s_[row, begin : begin + group]
            mask[part] = keep_largest(abs(dense[part]), slots)
    return mask


def v_n_m_mask(dense, rows, group, chosen, slots):
    mask = np.zeros(dense.shape, bool)
    for top in range(0, dense.shape[0], rows):
        for begin in range(0, dense.shape[1], group):
            part = np.s_[top : top + rows, begin : begin + group]
            columns = keep_largest(abs(dense[part]).sum(axis=0), chosen)
            mask[part] = columns & n_m_mask(np.where(columns, dense[part], 0), slots, group)
    return mask


def bsr_mask(dense, height, width, density):
    m, n = dense.shape
    rows, columns = -(-m // height), -(-n // width)
    padded = np.zeros((rows * height, columns * width))
    padded[:m, :n] = dense
    squares = (padded.reshape(rows, height, columns, width) ** 2).sum(axis=(1, 3))
    blocks = keep_largest(squares, round(density * squares.size))
    return np.kron(blocks, np.ones((height, width), bool))[:m, :n].astype(bool)


@st.composite
def matrices(draw):
    """Small integers, so that there are ties, and sums are exact."""
    shape = draw(st.tuples(st.integers(0, 9), st.integers(0, 11)))
    values = draw(
        st.lists(st.integers(-3, 3), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    )
    return np.array(values, np.float32).reshape(shape)


def check(dense, mask, format, **parameters):
    expected = np.where(mask, dense, 0)
    for source in (dense, sparse.csc_array(dense), SparseTensor(sparse.csr_array(dense))):
        pruned = prune(source, format, **parameters)
        assert pruned.format == format
        require_valid_storage(pruned.storage)
        np.testing.assert_array_equal(pruned.toarray(), expected)


@settings(max_examples=40, deadline=None)
@given(dense=matrices(), density=st.sampled_from([0.0, 0.1, 0.5, 1.0]), data=st.data())
def test_the_largest_elements_are_kept(dense, density, data):
    size = st.integers(1, 4)
    check(dense, keep_largest(abs(dense), round(density * dense.size)), "csr", density=density)
    height, width = data.draw(size), data.draw(size)
    mask = bsr_mask(dense, height, width, density)
    check(dense, mask, "bsr", density=density, block_rows=height, block_columns=width)
    group = data.draw(st.integers(1, 6))
    slots = data.draw(st.integers(1, group))
    check(dense, n_m_mask(dense, slots, group), "n_m", slots=slots, group=group)
    chosen, rows = data.draw(st.integers(slots, group)), data.draw(size)
    sizes = {"rows": rows, "group": group, "chosen": chosen, "slots": slots}
    check(dense, v_n_m_mask(dense, **sizes), "v_n_m", **sizes)


def test_long_groups_are_sorted():
    dense = np.random.default_rng(0).integers(-50, 50, (3, 250)).astype(np.float64)
    check(dense, n_m_mask(dense, 7, 100), "n_m", slots=7, group=100)


def test_infinite_elements_are_the_largest():
    dense = np.array([[1.0, -np.inf, 2.0, np.inf]])
    assert prune(dense, "n_m").toarray().tolist() == [[0.0, -np.inf, 0.0, np.inf]]


REFUSED = {
    "a format without a rule": (("ell",), {}, "format.prune"),
    "a missing density": (("csr",), {}, "format.prune"),
    "a density that is too large": (("csr",), {"density": 1.5}, "format.prune"),
    "a density that is nan": (("csr",), {"density": float("nan")}, "format.prune"),
    "a density that is not needed": (("n_m",), {"density": 0.5}, "format.prune"),
    "a size that is missing": (("bsr",), {"density": 0.5}, "format.parameter.missing"),
    "a size that is none": (("n_m",), {"width": 2}, "format.parameter"),
    "a size of zero": (("n_m",), {"slots": 0}, "format.parameter.value"),
}


@pytest.mark.parametrize(("arguments", "keywords", "code"), REFUSED.values(), ids=REFUSED)
def test_impossible_requests_are_refused(arguments, keywords, code):
    with pytest.raises(FormatError) as caught:
        prune(np.eye(4), *arguments, **keywords)
    assert caught.value.code == code


def test_elements_that_cannot_be_compared_are_named():
    dense = np.ones((3, 4))
    dense[2, 1] = np.nan
    with pytest.raises(FormatError, match="row 2 and column 1 is nan") as caught:
        prune(dense, "n_m")
    assert caught.value.code == "format.prune.nan"


def test_other_arrays_are_refused():
    with pytest.raises(FormatError, match="3 dimensions"):
        prune(np.ones((2, 2, 2)), "n_m")
    with pytest.raises(FormatError) as caught:
        prune(np.ones((2, 2), np.int64), "n_m")
    assert caught.value.code == "format.dtype"
    with pytest.raises(ArgumentError):
        prune(np.ones((2, 2)), "csr", density="half")


@pytest.mark.parametrize(
    ("pattern", "slots", "group"), [("2:4", 2, 4), ("1:2", 1, 2), ("4:10", 4, 10)]
)
def test_a_pattern_is_the_format_with_its_slots_and_its_group(pattern, slots, group):
    dense = np.random.default_rng(0).integers(-9, 9, (5, 11)).astype(np.float32)
    for source in (dense, sparse.csc_array(dense), SparseTensor(sparse.csr_array(dense))):
        pruned = prune(source, pattern)
        assert pruned.format == "n_m"
        assert (pruned.sizes["slots"], pruned.sizes["group"]) == (slots, group)
        np.testing.assert_array_equal(pruned.toarray(), dense * n_m_mask(dense, slots, group))


@pytest.mark.parametrize(("pattern", "parameters"), [("5:4", {}), ("2:4", {"slots": 1})])
def test_a_pattern_has_no_more_slots_than_columns_and_no_parameters(pattern, parameters):
    with pytest.raises(FormatError, match="expected no more slots than columns") as caught:
        prune(np.eye(4, dtype=np.float32), pattern, **parameters)
    assert caught.value.code == "format.prune"

"""Tensors that are converted when their calls have paid for it: when, in which format, and the results."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from csr_matrices import integers
from scipy import sparse

import gossamer as gs
import gossamer_tune
from gossamer.operator_calls.fast_path import repeated_products
from gossamer.operator_calls.fast_path.repeated_products import count_call
from gossamer.operator_calls.prepared_formats.chosen_format import CHOICE
from gossamer.operators import operator_named
from gossamer_formats import Decomposition
from gossamer_formats.internal_api import replace_values
from gossamer_ir.errors import ArgumentError
from gossamer_tune import properties_of
from gossamer_tune.properties.row_sample import sample_rows

MAX_CALLS = 100_000


def pruned(dtype=np.float32, density=0.2, shape=(512, 1030)):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array(shape, density=density, format="csr", dtype=dtype, rng=rng)
    matrix.data = integers(matrix.nnz, dtype)
    return matrix


def blocks(size, *, fill=1.0, count=128):
    """Dense blocks at random, of whose slots some are not stored."""
    rng = np.random.default_rng(2)
    nodes = sparse.random_array((count, count), density=0.1, format="coo", rng=rng)
    matrix = sparse.kron(nodes, np.ones((size, size)), format="csr")
    matrix.data = np.where(rng.random(matrix.nnz) < fill, integers(matrix.nnz) + 5, 0)
    matrix.eliminate_zeros()
    return sparse.csr_array(matrix.astype(np.float32))


def convert(tensor, operator, sizes):
    """Count calls without computing until the tensor is converted; return it in its format, and their
    number."""
    dense, program = np.empty((0, *sizes), tensor.dtype), operator_named(operator).program
    for number in range(1, MAX_CALLS):
        stored = count_call(program, tensor, dense).prepared
        if stored is not tensor:
            return stored, number
    return None, MAX_CALLS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tensor_is_converted_when_its_calls_have_paid(dtype):
    matrix = pruned(dtype)
    tensor, dense = gs.from_scipy(matrix), integers((1030, 64), dtype)
    assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)
    stored, calls = convert(tensor, "spmm", (64,))
    assert isinstance(stored, Decomposition)
    assert 10 < calls < MAX_CALLS
    choice = gs.explain(tensor)
    assert (choice.chosen.format, choice.calls) == ("tiled_csr", calls + 1)
    for _ in range(2):
        assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)
        assert np.array_equal(tensor @ dense, matrix @ dense)
        out = np.full((512, 64), np.nan, dtype)
        assert gs.spmm(tensor, dense, out=out) is out
        assert np.array_equal(out, matrix @ dense)


def test_the_choice_is_explained_before_it_is_made():
    tensor = gs.from_scipy(pruned())
    dense = np.empty((1030, 64), np.float32)
    while CHOICE.find(tensor.pattern) is None:
        assert count_call(gs.spmm.program, tensor, dense).prepared is tensor
    choice = gs.explain(tensor)
    assert choice.chosen.format == "csr"
    assert choice.estimates[0].format == "tiled_csr"


def test_each_call_is_counted_once():
    tensor, dense = gs.from_scipy(pruned()), integers((1030, 64))
    for _ in range(9):
        gs.spmm(tensor, dense)
    with pytest.raises(ArgumentError):
        gs.spmm(tensor, dense, out=np.empty((3, 3), np.float32))
    assert count_call(gs.spmm.program, tensor, dense).history.calls == 11


def test_calls_before_and_after_a_conversion_use_the_stored_matrix():
    matrix = blocks(4)
    tensor, dense = gs.from_scipy(matrix), integers((512, 64))
    for _ in range(3):
        assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)
    stored, _ = convert(tensor, "spmm", (64,))
    for _ in range(3):
        assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)
    calls = gs.spmm._plans.last_calls.find(tensor).values()
    values = stored.storage.values
    assert [any(array is values for array in call.arguments.arrays) for call in calls] == [True]


def test_other_numbers_of_columns_have_choices_of_their_own():
    matrix = pruned()
    tensor = gs.from_scipy(matrix)
    assert convert(tensor, "spmm", (64,))[0] is not None
    for features in (1, 7, 64, 65):
        dense = integers((1030, features))
        assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)


def test_full_blocks_are_chosen():
    matrix = blocks(4)
    tensor, dense = gs.from_scipy(matrix), integers((512, 64))
    stored, _ = convert(tensor, "spmm", (64,))
    assert stored.format == "bsr"
    assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)


def test_infinite_operands_meet_no_zeros_that_fill_blocks():
    matrix = blocks(4, fill=0.95)
    assert gs.explain(gs.prepare(matrix, features=64, calls=10**9)).chosen.format == "bsr"
    tensor = gs.from_scipy(matrix)
    stored, _ = convert(tensor, "spmm", (64,))
    assert getattr(stored, "format", "") != "bsr"
    dense = np.full((512, 64), np.inf, np.float32)
    assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)


def test_a_slot_that_is_not_stored_is_found_outside_of_the_sample():
    elements = blocks(16, count=200).tocoo()
    csr = elements.tocsr()
    sampled = np.unique(sample_rows(csr.indptr, csr.indices).rows)
    missing = int(np.flatnonzero(~np.isin(elements.row, sampled))[0])
    kept = np.arange(elements.nnz) != missing
    coordinates = (elements.row[kept], elements.col[kept])
    tensor = gs.from_scipy(sparse.csr_array((elements.data[kept], coordinates), elements.shape))
    stored, _ = convert(tensor, "spmm", (64,))
    assert stored is None


def with_other_values(tensor, seed):
    return replace_values(tensor, integers(tensor.nnz, tensor.dtype, seed))


@pytest.fixture
def moves_values(monkeypatch):
    """Whether moving values pays depends on the machine; here, it does."""
    monkeypatch.setattr(repeated_products, "MOVE_CYCLES", 0)


@pytest.mark.usefixtures("moves_values")
def test_calls_with_other_values_in_one_pattern_count_together(monkeypatch):
    computed = []
    monkeypatch.setattr(
        gossamer_tune,
        "properties_of",
        lambda *arrays: computed.append(arrays) or properties_of(*arrays),
    )
    matrix, dense = pruned(), integers((1030, 64))
    tensor = gs.from_scipy(matrix)
    first, calls = convert(tensor, "spmm", (64,))
    for seed in range(3):
        # The integers have zeros, which keep their places.
        other = with_other_values(tensor, seed)
        counted = count_call(gs.spmm.program, other, dense)
        assert counted.history.calls > calls
        assert isinstance(counted.prepared, Decomposition)
        assert counted.prepared is not first
        matrix.data = other.arrays["data"]
        for _ in range(2):
            assert np.array_equal(gs.spmm(other, dense), matrix @ dense)
    assert len(computed) == 1


@pytest.mark.usefixtures("moves_values")
def test_a_pattern_is_converted_by_calls_with_different_values():
    tensor, dense = gs.from_scipy(pruned()), np.empty((0, 64), np.float32)
    calls = convert(gs.from_scipy(pruned()), "spmm", (64,))[1]
    for number in range(1, calls + 1):
        values = replace_values(tensor, tensor.arrays["data"])
        stored = count_call(gs.spmm.program, values, dense).prepared
        assert (stored is values) == (number < calls)


@pytest.mark.usefixtures("moves_values")
def test_zeros_of_the_converting_tensor_have_places_for_other_values():
    matrix = blocks(4)
    tensor, dense = gs.from_scipy(matrix), integers((512, 64))
    zeros = replace_values(tensor, np.zeros(tensor.nnz, np.float32))
    stored, _ = convert(zeros, "spmm", (64,))
    assert stored.format == "bsr"
    assert count_call(gs.spmm.program, tensor, dense).prepared.format == "bsr"
    assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)


def test_values_are_moved_only_if_the_calls_with_them_pay():
    tensor, dense = gs.from_scipy(pruned()), np.empty((0, 64), np.float32)
    history = count_call(gs.spmm.program, tensor, dense).history
    convert(tensor, "spmm", (64,))
    history.moving_calls = 3
    other = with_other_values(tensor, 1)
    counted = [count_call(gs.spmm.program, other, dense) for _ in range(4)]
    assert [call.prepared is other for call in counted] == [True, True, False, False]
    assert counted[2].prepared is counted[3].prepared


def test_dtypes_of_one_pattern_have_formats_of_their_own():
    matrix, dense = pruned(), integers((1030, 64), np.float64)
    tensor = gs.from_scipy(matrix)
    assert convert(tensor, "spmm", (64,))[0].dtype == np.float32
    wide = tensor.astype("float64")
    assert convert(wide, "spmm", (64,))[0].dtype == np.float64
    assert np.array_equal(gs.spmm(wide, dense), matrix.astype(np.float64) @ dense)


def test_a_vector_counts_for_spmv():
    matrix = pruned()
    tensor, vector = gs.from_scipy(matrix), integers(1030)
    for operator in (gs.spmm, gs.spmv):
        assert np.array_equal(operator(tensor, vector), matrix @ vector)
    assert convert(tensor, "spmm", ())[0] is None


@pytest.mark.parametrize("operator", ["sddmm", "attention"])
def test_other_operators_keep_the_tensor_as_it_is(operator):
    tensor = gs.from_scipy(pruned())
    assert convert(tensor, operator, (64,))[0] is None


def test_errors_are_those_of_csr():
    tensor, dense = gs.from_scipy(pruned()), integers((1030, 64))
    errors = []
    for _ in range(2):
        for wrong in (dense[:-1], dense.astype(np.float64)):
            with pytest.raises(ArgumentError) as caught:
                gs.spmm(tensor, wrong)
            errors.append((caught.value.code, str(caught.value)))
        convert(tensor, "spmm", (64,))
    assert errors[:2] == errors[2:]


def test_converted_formats_end_with_the_tensor():
    tensor = gs.from_scipy(pruned())
    stored, _ = convert(tensor, "spmm", (64,))
    reference = weakref.ref(stored)
    del stored, tensor
    assert reference() is None


def test_which_tensors_are_never_converted():
    matrix = pruned()
    repeated = sparse.csr_array(
        (np.ones(40_000, np.float32), np.zeros(40_000, np.int32), np.arange(0, 40_001, 400)),
        shape=(100, 5),
    )
    never = [
        gs.from_scipy(pruned(density=0.01)),
        gs.prepare(matrix, features=64, calls=1),
        gs.from_scipy(repeated),
        gs.from_scipy(matrix, copy=False),
        gs.from_scipy(matrix).asformat("coo"),
    ]
    for tensor in never:
        assert convert(tensor, "spmm", (64,))[0] is None
        assert convert(tensor, "spmv", ())[0] is None

"""The generated check of index arrays against the NumPy check: arrays of every shape, SciPy's matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.compilation.build_kernels import KERNELS, fact_checker
from gossamer_backend import GeneratedCheck
from gossamer_backend.arguments.fact_errors import require_facts
from gossamer_backend.call.threads import reset_num_threads, set_num_threads
from gossamer_backend.compiled_checks.chunk_loops import MIN_THREAD_ELEMENTS
from gossamer_formats import borrow_scipy
from gossamer_ir.core.build import index, index_var
from gossamer_ir.errors import ArgumentError, FormatError
from gossamer_ir.nodes import (
    BitCounts,
    Distinct,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    Relation,
    SortedSegments,
)
from gossamer_testkit.matrices.oracles import tolerance

LENGTH = index_var("n")
IN_RANGE, OFFSETS = InRange("X", index(0), LENGTH), (Monotone("P"),)
CHECK = GeneratedCheck(
    lambda name, program: KERNELS.build_program(name, program).kernel, max_numpy_elements=-1
)
SIZES = (0, 1, 2, 3, 63, 64, 65, 4095, 4096, 4097, 9000)


@pytest.fixture(autouse=True, params=[1, 2])
def threads(request):
    set_num_threads(request.param)
    yield
    reset_num_threads()


def holds(facts, arrays, **scalars):
    """The result of the NumPy check, with which the generated check must agree."""
    names = {name: name for name in arrays}
    try:
        require_facts(facts, scalars, arrays=arrays, names=names)
        expected = True
    except ArgumentError:
        expected = False
    result = CHECK(facts, scalars, arrays)
    assert result == expected
    return result


def places(count):
    return {0, 1, count // 2, count - 2, count - 1} & set(range(count))


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint8", "uint16"])
@pytest.mark.parametrize("size", SIZES)
def test_one_value_out_of_range_is_found_wherever_it_is(dtype, size):
    values = (np.arange(size) % 100).astype(dtype)
    assert holds((IN_RANGE,), {"X": values}, n=100)
    for at in places(size):
        for wrong in (100, 127, -1, np.iinfo(dtype).min, np.iinfo(dtype).max):
            changed = values.copy()
            changed[at] = np.array(wrong).astype(dtype)
            assert holds((IN_RANGE,), {"X": changed}, n=100) == (0 <= int(changed[at]) < 100)


@pytest.mark.parametrize("bounds", [(-3, 5), (2, 3), (5, 5), (7, 2), (-(2**62), 2**62)])
def test_ranges_need_not_begin_at_zero_and_may_be_wider_than_the_dtype(bounds):
    low, high = (index(value) for value in bounds)
    for value in (-4, -3, 0, 2, 4, 5):
        array = np.full(70, value, np.int32)
        result = CHECK((InRange("X", low, high),), {}, {"X": array})
        assert result == (bounds[0] <= value < bounds[1])
    assert (
        CHECK((InRange("X", low, high), InRange("X", index(9), index(9))), {}, {"X": array})
        is False
    )


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("size", SIZES)
def test_one_fall_is_found_wherever_it_is(dtype, size):
    values = np.minimum(np.arange(size) // 2, 200).astype(dtype)
    assert holds((Monotone("X"),), {"X": values})
    for at in places(size):
        changed = values.copy()
        changed[at] = 250 if dtype == "uint8" else 2**30
        assert holds((Monotone("X"),), {"X": changed}) == (at == size - 1)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint16"])
@pytest.mark.parametrize("size", SIZES)
def test_a_value_that_is_there_twice_is_found_wherever_it_is(dtype, size):
    values = np.random.default_rng(size).permutation(size).astype(dtype)
    facts = (IN_RANGE, Distinct("X"))
    assert holds(facts, {"X": values}, n=max(size, 1))
    assert holds((Distinct("X"),), {"X": values})
    for at in places(size):
        changed = values.copy()
        changed[at] = values[(at + 1) % size]
        assert holds(facts, {"X": changed}, n=size) == (size == 1)
    assert holds((*facts, PaddedSlots("X", LENGTH)), {"X": values}, n=max(size, 1))


@pytest.mark.parametrize("pad", [-1, 0, 40, 99])
def test_padding_may_be_there_any_number_of_times(pad):
    values = np.random.default_rng(pad + 1).permutation(40).astype(np.int32)
    facts, array = (Distinct("X"), PaddedSlots("X", LENGTH)), values.reshape(5, 8).copy()
    assert holds(facts, {"X": array}, n=pad)
    array[2, 3:] = array[4, :2] = pad
    assert holds(facts, {"X": array}, n=pad)
    array[0, 0] = array[0, 1]
    assert not holds(facts, {"X": array}, n=pad)


@pytest.mark.parametrize("values", [(5, -7), (2**62, 3), (-(2**63), 2**63 - 1), (9, 9)])
def test_distinct_values_may_be_far_apart_and_negative(values):
    assert holds((Distinct("X"),), {"X": np.array(values, np.int64)}) == (values[0] != values[1])
    more = np.array((*values, *range(100)), np.int64)
    assert holds((Distinct("X"),), {"X": more}) == (len(set(more.tolist())) == 102)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("size", SIZES)
def test_distinct_values_of_a_large_range_are_sorted(dtype, size):
    limits, generator = np.iinfo(dtype), np.random.default_rng(size)
    size = min(size, int(limits.max) // 2)
    wide = generator.integers(limits.min, limits.max, 2 * size, dtype, endpoint=True)
    values = generator.permutation(np.unique(wide)[:size])
    facts = (Distinct("X"), PaddedSlots("X", LENGTH))
    padded = np.append(values, [7, 7]).astype(dtype)
    for at in places(values.size):
        changed = values.copy()
        changed[at] = changed[(at + 1) % values.size]
        assert holds((Distinct("X"),), {"X": changed}) == (values.size == 1)
    assert holds((Distinct("X"),), {"X": values})
    assert holds(facts, {"X": padded}, n=7)


def sets(generator, *, is_unique):
    """Return offsets and two arrays of sorted segments, all values of the first one in the second."""
    lengths = generator.integers(0, 8, 3000)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = [np.sort(generator.choice(30, size, replace=not is_unique)) for size in lengths]
    columns = np.concatenate(columns)
    kept = generator.random(columns.size) < 0.5
    counts = np.add.reduceat(np.append(kept, 0), indptr[:-1]) * (lengths > 0)
    inner = np.concatenate([[0], np.cumsum(counts)])
    return indptr, columns.astype(np.int32), inner, columns[kept]


@pytest.mark.parametrize("is_unique", [False, True])
@pytest.mark.parametrize("kind", ["subset", "disjoint"])
def test_relations_of_segments(kind, is_unique):
    generator = np.random.default_rng(5)
    outer, columns, inner, inside = sets(generator, is_unique=is_unique)
    inside = inside if kind == "subset" else inside + 30
    facts = (
        Monotone("P"),
        SortedSegments("X", "P", is_unique),
        Monotone("Q"),
        SortedSegments("Y", "Q", is_unique),
        Relation(kind, "X", "Y"),
    )
    arrays = {"P": inner, "X": inside, "Q": outer, "Y": columns}
    assert holds(facts, arrays)
    for at in generator.integers(0, inside.size, 5):
        changed = inside.copy()
        changed[at] = (
            99 if kind == "subset" else columns[outer[np.searchsorted(inner, at, "right") - 1]]
        )
        segment = slice(*inner[np.searchsorted(inner, at, "right") - 1 :][:2])
        changed[segment].sort()
        assert not holds(facts, {**arrays, "X": changed})


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("size", SIZES)
def test_bits_are_counted(dtype, size):
    width = 8 * np.dtype(dtype).itemsize
    words = np.random.default_rng(size).integers(0, 1 << (width - 1), size, dtype)
    steps = [int(word).bit_count() for word in words]
    offsets = np.concatenate([[0], np.cumsum(steps, dtype=np.int64)])
    facts = (Monotone("P"), BitCounts("W", "P", LENGTH))
    assert holds(facts, {"W": words, "P": offsets}, n=width)
    assert holds(facts, {"W": words, "P": offsets}, n=width - 1)
    for at in places(size):
        for bit in (0, width - 1):
            changed = words.copy()
            changed[at] ^= np.array(1 << bit, dtype)
            assert not holds(facts, {"W": changed, "P": offsets}, n=width - 1)


def rows(lengths, generator):
    """Offsets and sorted columns of rows of these lengths."""
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = [np.sort(generator.choice(10_000, count, replace=False)) for count in lengths]
    return indptr, np.concatenate([*columns, np.zeros(0, np.int64)])


LENGTHS = {
    "no rows": [],
    "empty rows": [0, 0, 0],
    "one dense row": [0, 5000, 0],
    "empty at both ends": [0, 0, 3, 0, 2, 0, 0],
    "many": [3, 0, 1, 7, 2] * 900,
}


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", LENGTHS)
def test_order_within_segments(name, dtype, unique):
    generator = np.random.default_rng(len(name))
    indptr, columns = rows(LENGTHS[name], generator)
    facts = (*OFFSETS, SortedSegments("X", "P", unique), IN_RANGE)
    arrays = {"X": columns.astype(dtype), "P": indptr.astype(dtype)}
    assert holds(facts, arrays, n=10_000)
    for at in generator.integers(0, max(columns.size, 1), 6 if columns.size else 0):
        for source in (at - 1, at + 1):
            changed = arrays["X"].copy()
            changed[at] = changed[source % columns.size]
            holds(facts, {**arrays, "X": changed}, n=10_000)
            holds((*OFFSETS, facts[1]), {**arrays, "X": changed})


def test_large_arrays_are_checked_by_all_threads():
    columns = np.tile(np.arange(1000, dtype=np.int32), 2000)
    offsets = np.arange(0, columns.size + 1, 1000, dtype=np.int32)
    facts = (*OFFSETS, SortedSegments("X", "P", True), IN_RANGE)
    assert columns.size > 3 * MIN_THREAD_ELEMENTS
    assert holds(facts, {"X": columns, "P": offsets}, n=1000)
    for at in (1, 700_001, 1_999_999):
        for wrong in (-1, 1000, columns[at - 1]):
            changed = columns.copy()
            changed[at] = wrong
            assert not holds(facts, {"X": changed, "P": offsets}, n=1000)
    offsets[1500] = offsets[1501] + 1
    assert not holds(OFFSETS, {"P": offsets})


def test_offsets_that_leave_something_out_or_are_wild_are_left_to_numpy():
    facts = (*OFFSETS, SortedSegments("X", "P", unique=True))
    for indptr in ([1, 3], [0, 2], [0, 2, 1, 3], [0, -5, 3], [0, 10**6, 3], [2**30, 3], []):
        arrays = {"X": np.array([2, 1, 3], np.int32), "P": np.array(indptr, np.int32)}
        assert CHECK(facts, {}, arrays) is False
    assert CHECK(facts, {}, {"X": np.zeros(0, np.int32), "P": np.zeros(1, np.int32)})


@pytest.mark.parametrize("width", [1, 2, 63, 64, 100])
def test_rows_of_a_buffer_are_its_segments_and_pads_may_repeat(width):
    count = 5000 // width
    slots = np.tile(np.arange(width, dtype=np.int32), (count, 1))
    facts = (
        SortedSegments("X", None, unique=True),
        PaddedSlots("X", LENGTH),
        InRange("X", index(0), index(10**6)),
    )
    assert holds(facts, {"X": slots}, n=width)
    assert holds((Monotone("X"),), {"X": slots})
    padded = slots.copy()
    padded[1::2, width // 2 :] = 500
    assert holds(facts, {"X": padded}, n=500)
    assert holds(facts, {"X": padded}, n=499) == (width - width // 2 < 2)
    swapped = slots.copy()
    swapped[count - 1] = swapped[count - 1, ::-1]
    assert holds(facts, {"X": swapped}, n=500) == (width < 2)


@pytest.mark.parametrize("count", [1, 7, 5000])
def test_random_small_values_agree_with_numpy(count):
    generator = np.random.default_rng(count)
    for _ in range(40):
        cuts = np.sort(generator.integers(0, count + 1, 4))
        arrays = {
            "P": np.array([0, *cuts, count], np.int32),
            "X": np.sort(generator.integers(-1, 4, count)).astype(np.int32),
        }
        holds((*OFFSETS, SortedSegments("X", "P", bool(generator.integers(2)))), arrays)
        holds((InRange("X", index(-1), LENGTH),), arrays, n=int(generator.integers(2, 5)))


@pytest.mark.parametrize("others", [(), (Monotone("X"),)])
@pytest.mark.parametrize(("at", "expected"), [(0, True), (4, True), (5, False), (-1, False)])
def test_one_value_is_looked_at_where_it_is(others, at, expected):
    arrays = {"X": np.zeros(5, np.int32), "P": np.full(5, 7, np.int32)}
    assert CHECK((HasValue("P", index(at), index(7)), *others), {}, arrays) == expected
    assert not CHECK((HasValue("P", index(at), index(6)), *others), {}, arrays)


def test_what_cannot_be_tested_is_not_found_to_hold():
    x = np.zeros(5, np.int32)
    assert not CHECK((Relation("subset", "X", "X"), Monotone("X")), {}, {"X": x})
    assert not CHECK((Monotone("X"), SortedSegments("X", None, unique=False)), {}, {"X": x})
    assert not CHECK((Monotone("X"),), {}, {"X": np.zeros(10, np.int32)[::2]})
    assert not CHECK((Monotone("X"),), {}, {"X": x.astype(float)})
    assert not CHECK(
        (SortedSegments("X", "P", unique=False), InRange("P", index(0), index(9))),
        {},
        {"X": x, "P": x},
    )


def large_matrix(index_dtype):
    matrix = sparse.random_array(
        (400, 3000), density=0.1, format="csr", dtype=np.float32, rng=np.random.default_rng(0)
    )
    matrix.indices, matrix.indptr = (
        matrix.indices.astype(index_dtype),
        matrix.indptr.astype(index_dtype),
    )
    return matrix


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("name", "at", "value", "code"),
    [
        ("indices", 77_777, 3000, "format.range"),
        ("indices", 119_999, -1, "format.range"),
        ("indptr", 200, 10**9, "format.monotone"),
        ("indptr", 200, -1, "format.monotone"),
    ],
)
def test_a_large_matrix_that_was_tampered_with_is_refused_with_the_culprit(
    index_dtype, name, at, value, code
):
    matrix = large_matrix(index_dtype)
    x = np.ones(3000, np.float32)
    assert np.allclose(gs.spmv(matrix, x), matrix @ x, rtol=tolerance(2 * 3000, "float32"))
    storage = borrow_scipy(matrix)
    from gossamer_formats.checks.storage_checks import axis_facts

    assert fact_checker("generic-cpu")(
        axis_facts(storage.description), storage.sizes, storage.arrays
    )
    getattr(matrix, name)[at] = value
    with pytest.raises(FormatError) as caught:
        gs.spmv(matrix, x)
    assert caught.value.code == code
    assert f"of '{name}' is" in str(caught.value)


def test_a_kernel_checks_large_foreign_arrays():
    script = """
@T.prim_func
def gather(x: T.handle, p: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    P = T.match_buffer(p, (m,), "int32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(in_range(P, 0, n))
    for i in T.serial(m):
        Y[i] = X[T.int64(P[i])]
"""
    kernel = gs.compile(script)
    x, p = np.arange(1000, dtype=np.float32), np.arange(100_000, dtype=np.int32) % 1000
    y = np.empty(100_000, np.float32)
    kernel(x, p, y)
    assert np.array_equal(y, x[p])
    p[70_000] = 1000
    with pytest.raises(ArgumentError, match="Element 70000 of 'p' is 1000") as caught:
        kernel(x, p, y)
    assert caught.value.code == "kernel.range"

"""How an axis that stores coordinates is built: its slots are those of the source, or new ones."""

from __future__ import annotations

import numpy as np
import pytest
from build_state_of import build_state_of, compressed, value_of
from scipy import sparse

from gossamer_formats import convert, from_scipy
from gossamer_formats.conversion.by_kernels.axes.compressed_axes import add_compressed
from gossamer_formats.conversion.by_kernels.axes.dense_axes import add_dense_varied, add_fixed
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import (
    coordinate_along,
    length_of_axis,
)
from gossamer_formats.conversion.by_kernels.build_state.build_state import with_axis
from gossamer_ir.core.axis_kinds import indptr_of

MATRIX = sparse.random_array((6, 9), density=0.4, format="csr", rng=4, dtype=np.float64)


def built(source, destination, name, **parameters):
    """The axes before an axis, built, and the result of the axis."""
    axes = build_state_of(
        convert(from_scipy(MATRIX), source).tensor.storage, destination, **parameters
    )
    for before in axes.description.buffer.axes:
        axis = axes.by_name[before]
        if before == name:
            return axes, add_compressed(axes, compressed(axes, name))
        fixed = add_fixed(
            axes, axis, position=coordinate_along(axes, before), width=length_of_axis(axes, axis)
        )
        axes = with_axis(axes, axis, fixed)
    raise LookupError(name)


@pytest.mark.parametrize(
    ("source", "destination", "axis", "slots"),
    [
        ("csr", "csr", "J", {"are_of_source", "are_filled"}),
        ("coo", "csr", "J", {"are_of_source", "are_filled"}),
        ("csr", "csc", "I", {"are_filled"}),
        # The elements of a block share its slot.
        ("csr", "bsr", "JO", set()),
    ],
)
def test_slots_are_those_of_the_source_or_new(source, destination, axis, slots):
    sizes = {"block_rows": 2, "block_columns": 3} if destination == "bsr" else {}
    _, result = built(source, destination, axis, **sizes)
    facts = {name for name, holds in result.storage.slots._asdict().items() if holds is True}
    assert facts - {"are_own"} == slots


def test_offsets_of_rows_are_those_of_scipy():
    axes, result = built("coo", "csr", "J")
    (offsets,) = [each for each in result.storage.arrays.values() if each.array is not None]
    assert value_of(axes, offsets.array).tolist() == MATRIX.indptr.tolist()
    (stored,) = result.storage.stored
    assert (stored.axis, stored.largest, stored.unused) == ("J", 8, None)


def test_ragged_rows_end_at_their_last_element():
    axes = build_state_of(from_scipy(MATRIX).storage, "ragged")
    outer, inner = (axes.by_name[name] for name in axes.description.buffer.axes)
    position = coordinate_along(axes, outer.name)
    fixed = add_fixed(axes, outer, position=position, width=length_of_axis(axes, outer))
    axes = with_axis(axes, outer, fixed)
    parent = axes.axis_slots[outer.name]
    result = add_dense_varied(axes, inner, indptr=indptr_of(inner), parent=parent)
    (offsets,) = result.storage.arrays.values()
    dense = MATRIX.toarray()
    lengths = [int(np.flatnonzero(row)[-1]) + 1 if row.any() else 0 for row in dense]
    assert np.diff(value_of(axes, offsets.array)).tolist() == lengths


def test_bits_of_words_are_those_of_the_elements():
    axes, result = built("csr", "bitmask", "J")
    words = value_of(axes, result.storage.arrays[compressed(axes, "J").indices.handle].array)
    expected = [sum(1 << int(column) for column in np.flatnonzero(row)) for row in MATRIX.toarray()]
    assert [int(word) for word in words] == expected

"""The coordinates of elements along the axes of a destination are its map, inverted."""

from __future__ import annotations

import numpy as np
import pytest
from build_state_of import build_state_of, value_of
from scipy import sparse

from gossamer_formats import from_scipy
from gossamer_formats.conversion.by_kernels.coordinates.array_contents import range_of
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_numpy.array_expressions import evaluate_arrays
from gossamer_formats.conversion.destination.inverse_map import Solved, logical_var
from gossamer_ir.core.build import add, index, mul, sub

MATRIX = sparse.random_array((7, 10), density=0.3, format="csr", rng=2, dtype=np.float64)
ROWS, COLUMNS = (each.reshape(-1) for each in np.indices(MATRIX.shape))


def coordinates(destination, **parameters):
    """The coordinates of all elements that the matrix could have, by axis, and the lengths of the axes."""
    axes = build_state_of(from_scipy(MATRIX).storage, destination, **parameters)
    coordinates = axes.elements.coordinates
    logical = {"l0": ROWS, "l1": COLUMNS}
    values = {name: evaluate_arrays(each.value, logical) for name, each in coordinates.items()}
    return values, {name: value_of(axes, each.length.value) for name, each in coordinates.items()}


def test_blocks_have_a_coordinate_outside_and_one_inside():
    values, lengths = coordinates("bsr", block_rows=2, block_columns=3)
    expected = {"IO": ROWS // 2, "JO": COLUMNS // 3, "II": ROWS % 2, "JI": COLUMNS % 3}
    assert values.keys() == expected.keys()
    for name, each in expected.items():
        np.testing.assert_array_equal(values[name], each)
    assert lengths == {"IO": 4, "JO": 4, "II": 2, "JI": 3}


@pytest.mark.parametrize(
    ("destination", "parameters"), [("csr", {}), ("tiled_csr", {"tile_columns": 4})]
)
def test_no_coordinate_is_outside_of_its_axis(destination, parameters):
    values, lengths = coordinates(destination, **parameters)
    assert {
        name: each.min() >= 0 and each.max() < lengths[name] for name, each in values.items()
    } == (dict.fromkeys(values, True))
    # All axes together tell elements apart.
    assert len({*zip(*(each.tolist() for each in values.values()), strict=True)}) == ROWS.size


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (0, 4)])
@pytest.mark.parametrize(
    "value",
    [
        sub(logical_var(1), logical_var(0)),
        add(mul(logical_var(0), index(-2)), add(mul(logical_var(1), index(3)), index(7))),
        index(4),
    ],
    ids=["diagonals", "both signs", "constant"],
)
def test_the_range_of_an_affine_expression_is_that_of_its_values(value, shape):
    rows, columns = (each.reshape(-1) for each in np.indices([max(size, 1) for size in shape]))
    values = np.broadcast_to(evaluate_arrays(value, {"l0": rows, "l1": columns}), rows.shape)
    low, count = range_of(Solved(value, None), shape)
    assert (low, low + count - 1) == (values.min(), values.max())


def test_the_range_of_another_expression_is_unknown():
    with pytest.raises(NotDirectError, match="not affine"):
        range_of(Solved(mul(logical_var(0), logical_var(1)), None), (3, 3))
    assert range_of(Solved(mul(logical_var(0), logical_var(1)), 9), (3, 3)) == (0, 9)

"""Inverse maps: coordinates along axes from logical ones, and maps that have no inverse."""

from __future__ import annotations

import itertools

import pytest

from gossamer_formats.conversion.destination.inverse_map import (
    dimensions_of,
    inverse_map,
    logical_var,
    require_map_sizes,
)
from gossamer_formats.conversion.destination.known_sizes import KnownSizes
from gossamer_formats.descriptions.bsr import bsr
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.descriptions.dia import dia
from gossamer_ir.core.build import add
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.script import parse_format, print_expr

SIZES = {"m": 6, "n": 8, "block_rows": 2, "block_columns": 4}

SCRIPT = """
@T.format
def mapped(data: T.handle, m: T.int64, n: T.int64) -> None:
    I = T.sp.dense_fixed({first})
    J = T.sp.dense_fixed({second})
    A = T.sp.match_buffer(data, (I, J), "float32")
    T.sp.map(lambda i, j: ({results}), shape=(m, n))
"""


def mapped(*results, first="m", second="n"):
    """A dense format with these logical coordinates in terms of i and j."""
    return parse_format(SCRIPT.format(first=first, second=second, results=", ".join(results)))


def inverse(description, shape=(6, 8), sizes=SIZES):
    return inverse_map(description, sizes, shape)


def texts(inverted):
    return {name: print_expr(solved.value) for name, solved in inverted.coordinates.items()}


def test_without_a_map_coordinates_are_logical():
    inverted = inverse(csr())
    assert [*texts(inverted).values()] == ["l0", "l1"]
    assert [solved.extent for solved in inverted.coordinates.values()] == [6, 8]
    assert inverted.reaches_all


def test_a_coordinate_in_blocks_has_two_digits():
    description = bsr()
    inverted = inverse(description)
    values = [print_expr(solved.value) for solved in inverted.coordinates.values()]
    assert sorted(values) == ["l0 % 2", "l0 // 2", "l1 % 4", "l1 // 4"]
    assert sorted(solved.extent for solved in inverted.coordinates.values()) == [2, 2, 3, 4]
    assert inverted.reaches_all


def test_contents_of_an_index_array_are_solved_for():
    inverted = inverse(dia())
    ((load, solved),) = inverted.contents.items()
    assert (load.buffer, print_expr(solved.value), solved.extent) == ("OFFSETS", "l1 - l0", None)


@pytest.mark.parametrize(
    ("result", "text", "extent"),
    [
        ("j - i", "l1 + l0", 13),
        ("j + i - 5", "l1 - l0 + 5", 13),
        ("j + i - 4", "l1 - l0 + 4", None),
        ("j + i", "l1 - l0", None),
    ],
)
def test_a_shifted_coordinate_has_a_range_unless_it_may_be_negative(result, text, extent):
    inverted = inverse(mapped("i", result))
    assert texts(inverted) == {"i": "l0", "j": text}
    assert inverted.coordinates["i"].extent == 6
    assert inverted.coordinates["j"].extent == extent


def test_a_negated_coordinate_is_solved_for():
    assert texts(inverse(mapped("i", "7 - j"))) == {"i": "l0", "j": "0 - l1 + 7"}


def test_a_map_with_gaps_does_not_reach_all_coordinates():
    assert not inverse(mapped("i", "j * 2")).reaches_all
    assert inverse(mapped("i", "j")).reaches_all


@pytest.mark.parametrize(
    "results", [("i // 2", "j"), ("i * j", "j"), ("i % 2", "j")], ids=" and ".join
)
def test_maps_without_an_inverse_are_refused(results):
    with pytest.raises(
        UnsupportedError, match="The map of the format 'mapped' cannot be"
    ) as caught:
        inverse(mapped(*results))
    assert caught.value.code == "format.inverse"


def test_sizes_in_a_map_must_be_known():
    description = bsr()
    with pytest.raises(FormatError) as caught:
        require_map_sizes(description, KnownSizes(description, {}))
    assert caught.value.code == "format.parameter.missing"
    names = [param.name for param in description.params if param.dtype != "handle"]
    require_map_sizes(description, KnownSizes(description, dict.fromkeys(names, 2)))


def test_the_dimensions_of_an_expression():
    assert dimensions_of(add(logical_var(0), logical_var(2))) == {0, 2}
    for first, second in itertools.combinations(range(3), 2):
        assert dimensions_of(logical_var(first)).isdisjoint(dimensions_of(logical_var(second)))

"""The pattern of a matrix: the coordinates of its elements, for each of its parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from gossamer_formats import Array, Decomposition, Part, SparseTensor
from gossamer_formats.internal_api import UNSTORED, stored_elements
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements
from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import amount, with_parameters


class Layer(msgspec.Struct, frozen=True, eq=False):
    """The stored coordinates of one part of a matrix.

    `rows`, `columns` and `places` have one integer for each: its coordinates, and the place of its value in
    the array of values. `is_filling` is true where a zero fills a dense axis, as within a block.
    """

    label: str
    rows: Array
    columns: Array
    places: Array
    is_filling: Array


class StoredPattern(NamedTuple):
    """The shape and the format of a matrix, and a layer for each of its parts; a matrix that is not in parts
    has one layer."""

    shape: tuple[int, int]
    format: str
    layers: tuple[Layer, ...]

    @property
    def nnz(self) -> int:
        """The number of elements; zeros that fill dense axes do not count."""
        return sum(int(np.count_nonzero(~layer.is_filling)) for layer in self.layers)


def pattern_of(A: Any) -> StoredPattern:
    """Return the pattern of a `SparseTensor`, a `Decomposition` or a SciPy matrix.

    Raises `ArgumentError` (`spy.dimensions`) unless it has two dimensions, and `FormatError` if it is not
    valid.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> blocks = from_scipy(eye_array(3)).asformat("bsr", block_rows=2, block_columns=2)
    >>> pattern = pattern_of(blocks)
    >>> pattern.format, pattern.nnz, pattern.layers[0].is_filling.tolist()
    ('bsr', 3, [False, True, True, False, False])
    """
    matrix = A if isinstance(A, (SparseTensor, Decomposition)) else SparseTensor(A)
    if len(matrix.shape) != 2:
        raise ArgumentError(
            "spy.dimensions",
            f"The tensor has {amount(len(matrix.shape), 'dimension')}; expected a matrix.",
        )
    rows, columns = matrix.shape
    if isinstance(matrix, SparseTensor):
        return StoredPattern((rows, columns), matrix.format, (_layer_of_tensor(matrix),))
    return StoredPattern((rows, columns), matrix.name, tuple(map(_layer_of_part, matrix.parts)))


def _layer_of_tensor(tensor: SparseTensor) -> Layer:
    storage = tensor.checked_storage()
    (rows, columns), places = stored_elements(storage)
    is_filling = np.zeros(places.size, bool)
    if not stores_only_elements(storage.description):
        is_filling = storage.values[places] == 0
    return Layer(tensor.format, rows, columns, places, is_filling)


def _layer_of_part(part: Part) -> Layer:
    (rows, columns), places = stored_elements(part.tensor.storage)
    label = f"{part.name}: {with_parameters(part.tensor.format, part.fixed_sizes)}"
    return Layer(label, rows, columns, places, part.permutation[places] == UNSTORED)


def merged_layers(layers: Iterable[Layer]) -> Layer:
    """Return one layer of the coordinates of several, whose arrays of values follow each other.

    >>> one = Layer("a", *np.zeros((3, 2), int), np.zeros(2, bool))
    >>> merged_layers([one, one]).places.tolist()
    [0, 0, 1, 1]
    """
    listed, places, begin = [*layers], [], 0
    for layer in listed:
        places.append(layer.places + begin)
        begin += int(layer.places.max(initial=-1)) + 1
    if not listed:
        none = np.zeros(0, np.int64)
        return Layer("", none, none, none, none.astype(bool))
    return Layer(
        "",
        np.concatenate([layer.rows for layer in listed]),
        np.concatenate([layer.columns for layer in listed]),
        np.concatenate(places),
        np.concatenate([layer.is_filling for layer in listed]),
    )

"""The conformance suite for formats of tensors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np

from gossamer_formats import (
    Format,
    SparseTensor,
    convert,
    format_named,
    from_arrays,
    require_valid_storage,
)
from gossamer_ir.core.axis_kinds import index_handles
from gossamer_ir.errors import FormatError
from gossamer_ir.script import parse_format, print_format

Parameters: TypeAlias = Mapping[str, Any]
"""Options of a conversion or of a composable format."""

SHAPES = {
    1: ((0,), (1,), (7,)),
    2: ((0, 5), (5, 0), (1, 1), (4, 6), (9, 7)),
    3: ((0, 2, 2), (1, 1, 1), (4, 3, 5)),
}
"""The shapes of tensors by number of dimensions; some sizes are not multiples of those of tiles."""

DENSITIES = (0.0, 0.3, 1.0)


class FormatSuite:
    """The tests that every format of tensors must pass. A pytest class derives from it in three lines:

        class TestTiles(FormatSuite):
            format = FORMAT
            parameters = ({"side": 2}, {"side": 3})

    The format must be installed under its name. `parameters` are the options of conversions, one set for
    each run; every set must hold any tensor of `ndim` dimensions. The expected results are dense arrays that
    are made without gossamer.

    >>> sum(name.startswith("test_") for name in dir(FormatSuite))
    7
    """

    format: ClassVar[Format]
    parameters: ClassVar[tuple[Parameters, ...]] = ({},)
    ndim: ClassVar[int] = 2

    def test_it_is_installed_under_its_name(self) -> None:
        assert format_named(self.format.name) == self.format

    def test_its_description_has_its_name_and_can_be_printed(self) -> None:
        parameters = {"ndim": self.ndim} if self.format.is_of_any_ndim else {}
        description = self.format.describe(**parameters)
        assert description.name == self.format.name
        assert parse_format(print_format(description)) == description

    def test_each_parameter_is_required_or_has_a_default(self) -> None:
        # Only functions that order contents can choose a value for 0.
        least = 0 if self.format.orders else 1
        for name, default in self.format.parameters.items():
            assert default is None or default >= least, f"the default of '{name}' is {default}"
        required = {name for name, default in self.format.parameters.items() if default is None}
        for chosen in (*self.parameters, self.format.example_parameters):
            assert required <= {*chosen}, f"{chosen} lacks {required - {*chosen}}"

    def test_conversions_to_it_keep_all_elements(self) -> None:
        for source, dense, chosen in self._cases():
            tensor, permutation = convert(source, self.format.name, **chosen)
            np.testing.assert_array_equal(tensor.todense(), dense, err_msg=str(chosen))
            require_valid_storage(tensor.storage)
            assert permutation is not None
            # -1, the index of a slot without an element, selects the zero at the end.
            values = np.append(source.storage.values, np.float32(0))
            np.testing.assert_array_equal(tensor.storage.values, values[permutation])

    def test_conversions_from_it_keep_all_elements(self) -> None:
        for source, dense, chosen in self._cases():
            back = source.asformat(self.format.name, **chosen).asformat("coo")
            np.testing.assert_array_equal(back.todense(), dense, err_msg=str(chosen))
            # Zeros that fill a dense axis must not have become elements.
            assert back.nnz == np.count_nonzero(dense)
            for number, coordinates in enumerate(np.nonzero(dense)):
                np.testing.assert_array_equal(back.arrays[f"indices_{number}"], coordinates)

    def test_its_arrays_make_the_same_tensor(self) -> None:
        for source, dense, chosen in self._cases():
            tensor = source.asformat(self.format.name, **chosen)
            again = self._from_arrays(tensor, tensor.arrays)
            _require_equal(again, tensor)
            np.testing.assert_array_equal(again.todense(), dense, err_msg=str(chosen))
            _require_equal(pickle.loads(pickle.dumps(tensor)), tensor)

    def test_positions_and_coordinates_out_of_range_are_refused(self) -> None:
        for source, _, chosen in self._cases():
            tensor = source.asformat(self.format.name, **chosen)
            # An empty array has nothing that could be wrong.
            for name in filter(lambda name: tensor.arrays[name].size, _arrays_of_axes(tensor)):
                changed = tensor.arrays[name].copy()
                changed[changed.size // 2] = np.iinfo(changed.dtype).max
                arrays = {**tensor.arrays, name: changed}
                assert _is_refused(self._from_arrays, tensor, arrays), f"{name}: {changed}"

    def _from_arrays(self, tensor: SparseTensor, arrays: Mapping[str, Any]) -> SparseTensor:
        """Return a tensor of arrays in the place of those of a tensor, whose sizes it has."""
        names = (name for name in self.format.parameters if name in tensor.sizes)
        sizes = {name: tensor.sizes[name] for name in names}
        return from_arrays(self.format.name, tensor.shape, **sizes, **arrays)

    @classmethod
    def _cases(cls) -> Iterator[tuple[SparseTensor, Any, Parameters]]:
        """Yield tensors in COO with the dense arrays that they were made of, and parameters."""
        rng = np.random.default_rng(7)
        for shape in SHAPES[cls.ndim]:
            for density in DENSITIES:
                dense = random_dense(shape, density, rng)
                for chosen in cls.parameters:
                    yield _in_coordinates(dense), dense, chosen


def _arrays_of_axes(tensor: SparseTensor) -> list[str]:
    """Return the names of the arrays that an axis stores its positions or coordinates in."""
    return [name for axis in tensor.description.axes for name in index_handles(axis)]


def _is_refused(make: Callable[..., SparseTensor], *arguments: Any) -> bool:
    try:
        make(*arguments)
    except FormatError:
        return True
    return False


def random_dense(shape: tuple[int, ...], density: float, rng: np.random.Generator) -> Any:
    """Return an array of which this share of elements are integers other than zero."""
    values = rng.integers(1, 9, shape).astype(np.float32)
    return np.where(rng.random(shape) < density, values, np.float32(0))


def _in_coordinates(dense: Any) -> SparseTensor:
    coordinates = np.nonzero(dense)
    arrays = {f"indices_{number}": indices for number, indices in enumerate(coordinates)}
    return from_arrays("coo", dense.shape, data=dense[coordinates], **arrays)


def _require_equal(actual: SparseTensor, expected: SparseTensor) -> None:
    assert actual.description == expected.description
    assert actual.shape == expected.shape
    assert [*actual.arrays] == [*expected.arrays]
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(actual.arrays[name], array)

"""The loops over the elements of a storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from gossamer_formats.conversion.compiled.loop_order import (
    SolvedAxis,
    layout_sizes,
    lexicographic_loops,
    solved_axis,
)
from gossamer_formats.conversion.compiled.program import Operand, indented, widened
from gossamer_formats.conversion.dtypes import index_dtypes
from gossamer_formats.conversion.inverse_map import with_sizes
from gossamer_formats.storage import Array, Storage, axes_by_name, evaluate, index_array, shape_of
from gossamer_ir.analysis.logical_elements import map_results, map_variables
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.axis_kinds import Indices, indices_of, indptr_of, width_of
from gossamer_ir.core.build import add, index, index_var, mul
from gossamer_ir.nodes import Axis, Buffer, Expr, FormatDescription, Load, Var
from gossamer_ir.script import print_expr
from gossamer_ir.traversal.rewrite import rewrite

VALUES = "S_values"
"""The array of the values of the source."""

LARGEST_CONSTANT = 16
"""The largest width that is a constant of the program, so that the loop can be unrolled. A program with
another constant is compiled anew."""


MOST_SKIPPED = 2
"""The most iterations of a loop over a logical dimension for each one of a loop over the axis that is solved:
a matrix with few columns may have very many rows."""

_NOTHING: Mapping[str, Array] = MappingProxyType({})


class ElementLoop(NamedTuple):
    """Lines that bind, for each element, `p` (the position of its value) and `l0`, `l1`, ... (its logical
    coordinates, which are less than `d0`, `d1`, ...).

    `header` is followed by statements at `depth`. `axes`: the axes of the loops, from the outermost.
    `is_in_order`: positions ascend. `visits_all`: every value is that of an element. `loaded`: the index
    arrays that have a logical coordinate at `p`, by its number. `size`: the text of the number of values;
    `value` that of the value, and `value_shape` that of the shape of the array `VALUES`.
    `solved`: the axis without a loop, whose coordinate follows from the others. `condition` is true for the
    elements that are wanted; None: all are.
    """

    header: tuple[str, ...]
    depth: int
    arguments: dict[str, Array | Operand | int]
    axes: tuple[str, ...]
    solved: SolvedAxis | None
    is_in_order: bool
    visits_all: bool
    loaded: dict[int, Array]
    size: str
    value: str
    value_shape: str
    condition: str | None

    @property
    def counts_values(self) -> bool:
        """Positions of elements are 0, 1, 2, ..."""
        return self.visits_all and self.is_in_order

    def around(self, body: Sequence[str]) -> list[str]:
        """Return the loops around statements, for the elements that are wanted."""
        if self.condition is None:
            return self.around_all(body)
        return self.around_all([f"if {self.condition}:", *indented(body)])

    def around_all(self, body: Sequence[str]) -> list[str]:
        """Return the loops around statements, also for elements that are not wanted."""
        return [*self.header, *indented(body, self.depth)]


def element_loop(
    storage: Storage,
    *,
    drop_zeros: bool,
    in_storage_order: bool = False,
    sorted_slots: Mapping[str, Array] = _NOTHING,
) -> ElementLoop:
    r"""Return the loops over the elements of a checked storage.

    Positions ascend if elements are wanted `in_storage_order`. Otherwise loops over dense axes are moved
    outwards, as that over the rows within a block, if the elements are sorted by coordinates then.
    `sorted_slots` has the slots of an axis in the order in which they are visited; those of other axes are
    visited in their own order.

    >>> import numpy as np
    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 0, 1]), "indices": np.array([0]), "data": np.ones(1)}
    >>> loop = element_loop(Storage(csr("float64"), {"m": 2, "n": 1, "nnz": 1}, arrays), drop_zeros=False)
    >>> print(*loop.header, sep="\n")
    for x_I in T.serial(d0):
        for e_J in T.serial(T.int64(S_indptr[x_I]), T.int64(S_indptr[x_I + 1])):
            c_J = T.int64(S_indices[e_J])
            p = e_J
            l0 = x_I
            l1 = c_J
    """
    layout = layout_sizes(storage.description, storage.sizes)
    widths = tuple(
        min(value, LARGEST_CONSTANT + 1)
        for value in _stored_widths(storage.description, storage.sizes)
    )
    loops = None if in_storage_order else lexicographic_loops(storage.description, layout)
    solved = None if in_storage_order else _solved_axis(storage, layout)
    text = _loop_text(
        storage.description,
        layout,
        widths,
        loops or storage.description.buffer.axes,
        frozenset(sorted_slots),
        solved,
        drop_zeros=drop_zeros,
    )
    arguments: dict[str, Array | Operand | int] = {
        f"d{number}": size for number, size in enumerate(storage.shape)
    }
    arguments |= {_order_name(axis): slots for axis, slots in sorted_slots.items()}
    for name, value in text.arguments.items():
        arguments[name] = value(storage, arguments)
    loaded = {number: storage.arrays[handle] for number, handle in text.loaded.items()}
    return ElementLoop(
        text.header,
        text.depth,
        arguments,
        axes=text.axes,
        solved=solved,
        is_in_order=text.axes == storage.description.buffer.axes
        and not sorted_slots
        and solved is None,
        visits_all=text.visits_all,
        loaded=loaded,
        size=text.size,
        value=text.value,
        value_shape=text.value_shape,
        condition=text.condition,
    )


Argument: TypeAlias = Callable[
    [Storage, "dict[str, Array | Operand | int]"], "Array | Operand | int"
]
"""Returns an argument of a program from a storage and the arguments before it."""


class _LoopText(NamedTuple):
    """The part of an `ElementLoop` that is the same for all storages with equal lengths of axes."""

    header: tuple[str, ...]
    depth: int
    arguments: dict[str, Argument]
    axes: tuple[str, ...]
    visits_all: bool
    loaded: dict[int, str]
    size: str
    value: str
    value_shape: str
    condition: str | None


@lru_cache(maxsize=512)
def _loop_text(
    description: FormatDescription,
    layout: tuple[tuple[str, int], ...],
    widths: tuple[int, ...],
    loops: tuple[str, ...],
    sorted_axes: frozenset[str],
    solved: SolvedAxis | None,
    *,
    drop_zeros: bool,
) -> _LoopText:
    """Return the loops over elements; `widths` are those of `_stored_widths`, if they are constants."""
    writer = _Writer(description, dict(layout), widths, sorted_axes)
    return writer.write(loops, solved, drop_zeros=drop_zeros)


def _solved_axis(storage: Storage, layout: tuple[tuple[str, int], ...]) -> SolvedAxis | None:
    """Return the axis that is solved for, so that the elements are sorted; None if they would not be."""
    solved = solved_axis(storage.description, layout)
    if solved is None:
        return None
    length = evaluate(axes_by_name(storage.description)[solved.axis].length, storage.sizes)
    if storage.shape[solved.dimension] > MOST_SKIPPED * length:
        return None
    contents = index_array(storage, solved.array)
    return solved if bool((contents[1:] > contents[:-1]).all()) else None


def _stored_widths(description: FormatDescription, sizes: Mapping[str, int]) -> list[int]:
    """Return the widths of the compressed axes with fibers of fixed width."""
    return [evaluate(width_of(axis), sizes) for axis in _axes_with_width(description)]


@lru_cache(maxsize=256)
def _axes_with_width(description: FormatDescription) -> tuple[Axis, ...]:
    return tuple(
        axis
        for axis in description.axes
        if indices_of(axis) is not None and indptr_of(axis) is None
    )


ONE = "1"
"""The text of the number of elements before all axes."""


class _Writer:
    """The loops so far, from the outermost to the innermost."""

    def __init__(
        self,
        description: FormatDescription,
        sizes: dict[str, int],
        widths: tuple[int, ...],
        sorted_axes: frozenset[str],
    ) -> None:
        self.description = description
        self.sizes = sizes
        self.sorted_axes = sorted_axes
        self.axes = axes_by_name(description)
        self.widths = {
            axis.name: width
            for axis, width in zip(_axes_with_width(description), widths, strict=True)
        }
        self.shape = tuple(evaluate(size, sizes) for size in shape_of(description))
        self.dtypes = index_dtypes(description)
        self.header: list[str] = []
        self.depth = 0
        self.arguments: dict[str, Argument] = {}
        self.elements: dict[str | None, str] = {None: "0"}
        self.coordinates: dict[str, str] = {}
        self.counts: dict[str | None, str] = {None: ONE}
        self.at_position: dict[str, str] = {}
        self.visits_all = True

    def write(
        self, loops: tuple[str, ...], solved: SolvedAxis | None, *, drop_zeros: bool
    ) -> _LoopText:
        if solved is None:
            for name in loops:
                self._add_axis(self.axes[name])
        else:
            self._open(f"for l{solved.dimension} in T.serial(d{solved.dimension}):")
            self._add_axis(self.axes[solved.outer])
            self._add_solved(solved)
        position, size = self._position()
        self._line(f"p = {position}")
        self._bind_logical(solved)
        value, shape, condition = f"{VALUES}[p]", size, None
        if solved is not None:
            # Both coordinates are known to be in bounds, but not the position that is made of them.
            axes = solved.outer, solved.axis
            value = f"{VALUES}[{', '.join(self.coordinates[name] for name in axes)}]"
            shape = ", ".join(self._length(self.axes[name]) for name in axes)
        if drop_zeros:
            self.arguments[VALUES] = lambda storage, _: Operand(storage.values, shape)
            condition = f"{value} != T.{self.description.buffer.dtype}(0)"
        loaded = {}
        for number, result in enumerate(map_results(self.description)):
            axis = self._axis_of(result)
            if axis in self.at_position and position == self.elements[axis]:
                loaded[number] = self.at_position[axis]
        return _LoopText(
            tuple(self.header),
            self.depth,
            self.arguments,
            axes=loops,
            visits_all=self.visits_all and not drop_zeros,
            loaded=loaded,
            size=size,
            value=value,
            value_shape=shape,
            condition=condition,
        )

    def _position(self) -> tuple[str, str]:
        """Return the position of the value, and the number of values."""
        position, count = "0", ONE
        for name in self.description.buffer.axes:
            axis = self.axes[name]
            if indptr_of(axis) is not None or position == self.elements[axis.parent]:
                position, count = self.elements[name], self.counts[name]
                continue
            width = self._width(axis)
            if width != ONE:
                position = _combined(position, width, f"x_{name}")
                count = self._product(f"k_values_{name}", count, width)
        extra = self.description.buffer.extra_storage
        return position, f"{count} + {extra}" if extra else count

    def _line(self, text: str) -> None:
        self.header += indented([text], self.depth)

    def _open(self, text: str) -> None:
        self._line(text)
        self.depth += 1

    def _add_axis(self, axis: Axis) -> None:
        parent, indptr, indices = self.elements[axis.parent], indptr_of(axis), indices_of(axis)
        name = axis.name
        if indptr is not None:
            offsets = self._offsets(axis, indptr.handle)
            begin, end = offsets.format(parent), offsets.format(_plus_one(parent))
            if name in self.sorted_axes:
                self._open(f"for s_{name} in T.serial({begin}, {end}):")
                self._line(f"e_{name} = {self._sorted_slot(axis)}")
            elif indices is not None and indices.is_mask:
                # The slots of a fiber are counted from 0: `find_nth_bit` of such a loop needs few steps.
                self._open(f"for s_{name} in T.serial({end} - {begin}):")
                self._line(f"e_{name} = {begin} + s_{name}")
            else:
                self._open(f"for e_{name} in T.serial({begin}, {end}):")
            self.elements[name] = f"e_{name}"
            if indices is None:
                self._line(f"c_{name} = e_{name} - {begin}")
        else:
            self._add_fixed(axis, parent)
        if indices is None:
            return
        self.coordinates[name] = f"c_{name}"
        if indices.is_mask:
            self._line(f"c_{name} = {self._bit(axis, indices, parent)}")
            return
        self._line(f"c_{name} = {self._indices(axis, indices)}")
        self.at_position[name] = indices.handle
        if indices.padded:
            self._open(f"if c_{name} < {self._length(axis)}:")
            self.visits_all = False

    def _add_fixed(self, axis: Axis, parent: str) -> None:
        name, width = axis.name, self._width(axis)
        self.counts[name] = self._product(f"k_{name}", self.counts[axis.parent], width)
        if width == ONE:
            self.elements[name], self.coordinates[name] = parent, "0"
            return
        self._open(f"for x_{name} in T.serial({width}):")
        self.coordinates[name] = f"x_{name}"
        element = _combined(parent, width, f"x_{name}")
        if element != f"x_{name}":
            self._line(f"e_{name} = {element}")
            element = f"e_{name}"
        self.elements[name] = element

    def _add_solved(self, solved: SolvedAxis) -> None:
        """Add the axis whose coordinate follows from the logical one; it may be outside of the axis."""
        axis = self.axes[solved.axis]
        self.counts[axis.name] = width = self._width(axis)
        coordinate = f"x_{axis.name}"
        self.elements[axis.name] = self.coordinates[axis.name] = coordinate
        self._line(f"{coordinate} = l{solved.dimension} - ({self._text(solved.rest)})")
        self._open(f"if {coordinate} >= 0:")
        self._open(f"if {coordinate} < {width}:")
        self.visits_all = False

    def _offsets(self, axis: Axis, handle: str) -> str:
        """Add an array of offsets, and return the text of an element at `{}`."""
        parents, total, buffer = self.counts[axis.parent], f"k_{axis.name}", f"S_{handle}"
        self.counts[axis.name] = total
        self.arguments[total] = lambda storage, _: int(storage.arrays[handle][-1])
        facts = (
            f"monotone({buffer})",
            f"in_range({buffer}, 0, {total} + 1)",
            f"has_value({buffer}, 0, 0)",
            f"has_value({buffer}, {parents}, {total})",
        )
        self._add_array(handle, f"{parents} + 1", facts)
        return widened(f"{buffer}[{{}}]", self.dtypes[handle])

    def _sorted_slot(self, axis: Axis) -> str:
        """Add the array of slots in the order of their coordinates, and return the text of the next one."""
        name, count = _order_name(axis.name), self.counts[axis.name]
        self.arguments[name] = lambda _, known: _operand(
            known[name], count, (f"in_range({name}, 0, {count})",)
        )
        return f"T.int64({name}[s_{axis.name}])"

    def _indices(self, axis: Axis, indices: Indices) -> str:
        """Add an array of coordinates, and return the text of the coordinate."""
        handle = indices.handle
        last = " + 1" if indices.padded else ""
        facts = (f"in_range(S_{handle}, 0, {self._length(axis)}{last})",)
        self._add_array(handle, self.counts[axis.name], facts)
        return widened(f"S_{handle}[{self.elements[axis.name]}]", self.dtypes[handle])

    def _bit(self, axis: Axis, indices: Indices, parent: str) -> str:
        """Add an array of words, and return the text of the coordinate: the position of a bit."""
        handle = indices.handle
        self._add_array(handle, self.counts[axis.parent])
        word = f"T.int64(S_{handle}[{parent}])"
        return f"T.min(T.find_nth_bit({word}, s_{axis.name}), {self._length(axis)} - 1)"

    def _add_array(self, handle: str, size: str, facts: tuple[str, ...] = ()) -> None:
        self.arguments[f"S_{handle}"] = lambda storage, _: Operand(
            storage.arrays[handle], size, facts
        )

    def _width(self, axis: Axis) -> str:
        """Return the text of the number of slots of a fiber of fixed width."""
        if indices_of(axis) is None:
            return self._length(axis)
        width = self.widths[axis.name]
        if width > LARGEST_CONSTANT:
            name, expr = f"s_{axis.name}", width_of(axis)
            self.arguments[name] = lambda storage, _: evaluate(expr, storage.sizes)
            return name
        return str(width)

    def _length_value(self, axis: Axis) -> int:
        return evaluate(axis.length, self.sizes)

    def _length(self, axis: Axis) -> str:
        """Return the text of the number of coordinates of an axis."""
        length = self._length_value(axis)
        if length == 1:
            return ONE
        for number, result in enumerate(map_results(self.description)):
            if self._axis_of(result) == axis.name and length == self.shape[number]:
                return f"d{number}"
        if length <= LARGEST_CONSTANT:
            return str(length)
        name = f"n_{axis.name}"
        self.arguments[name] = lambda *_: length
        return name

    def _product(self, name: str, first: str, second: str) -> str:
        """Return the text of a product: one of names is an argument of its own, so that sizes are linear."""
        if ONE in (first, second):
            return second if first == ONE else first
        if first.isdigit() or second.isdigit():
            return f"({first}) * {second}"
        self.arguments[name] = lambda _, known: _value(first, known) * _value(second, known)
        return name

    def _map_array(self, buffer: Buffer) -> str:
        """Add an array of the map, and return its name."""
        handle = buffer.handle or buffer.name
        indexing = [axis for axis in self.axes.values() if buffer.shape == (axis.length,)]
        if indexing:
            size = self._length(indexing[0])
        else:
            size = f"k_{handle}"
            self.arguments[size] = lambda storage, _: storage.arrays[handle].size
        self._add_array(handle, size)
        return f"S_{handle}"

    def _axis_of(self, result: Expr) -> str | None:
        """Return the name of the axis whose coordinate is a result of the map."""
        if not isinstance(result, Var):
            return None
        return self._axes_by_variable()[result.name]

    def _bind_logical(self, solved: SolvedAxis | None) -> None:
        results = map_results(self.description)
        for number, result in enumerate(results):
            if solved is not None and number == solved.dimension:
                continue
            name = self._axis_of(result)
            text = self._text(result) if name is None else self._coordinate(name)
            self._line(f"l{number} = {text}")
        for number, result in enumerate(results):
            if solved is not None and number == solved.dimension:
                continue
            low, high = self._bounds(result)
            size = self.shape[number]
            if low is None or low < 0:
                self._open(f"if l{number} >= 0:")
                self.visits_all = False
            if high is None or high >= size:
                self._open(f"if l{number} < d{number}:")
                self.visits_all = False

    def _coordinate(self, axis: str) -> str:
        return self.coordinates.get(axis, f"c_{axis}")

    def _axes_by_variable(self) -> dict[str, str]:
        names = self.description.buffer.axes
        return dict(zip(map_variables(self.description), names, strict=True))

    def _text(self, result: Expr) -> str:
        """Return the text of a result of the map, with the names of the program."""
        variables = self._axes_by_variable()
        arrays = {buffer.name: buffer for buffer in self.description.index_arrays}

        def renamed(node: object) -> Expr | None:
            if isinstance(node, Load):
                buffer = arrays[node.buffer]
                shape = [evaluate(size, self.sizes) for size in buffer.shape]
                at: Expr = index(0)
                for number, length in zip(node.indices, shape, strict=True):
                    at = add(mul(at, index(length)), number)
                return Load(self._map_array(buffer), (at,), node.dtype)
            if isinstance(node, Var) and node.name in variables:
                text = self._coordinate(variables[node.name])
                return index(0) if text == "0" else index_var(text)
            if isinstance(node, Var):
                return index(self.sizes[node.name])
            return None

        return print_expr(rewrite(result, renamed))

    def _bounds(self, result: Expr) -> tuple[int | None, int | None]:
        """Return the least and the largest value of a result, None where it is not known."""
        lengths = {
            variable: self._length_value(self.axes[name])
            for variable, name in self._axes_by_variable().items()
        }
        form = affine_of(with_sizes(result, self.sizes))
        low = high = form.constant
        for atom, coefficient in form.terms.items():
            if not isinstance(atom, Var):
                return None, None
            most = coefficient * (lengths[atom.name] - 1)
            low, high = low + min(most, 0), high + max(most, 0)
        return low, high


def _order_name(axis: str) -> str:
    return f"ORDER_{axis}"


def _operand(array: Array | Operand | int, size: str, facts: tuple[str, ...]) -> Operand:
    assert isinstance(array, np.ndarray)
    return Operand(array, size, facts)


def _value(text: str, known: Mapping[str, Array | Operand | int]) -> int:
    """Return the value of a size that is a name, a number, or a product of both."""
    value = 1
    for factor in text.replace("(", "").replace(")", "").split(" * "):
        number = known[factor] if factor in known else int(factor)
        assert isinstance(number, int)
        value *= number
    return value


def _plus_one(text: str) -> str:
    return "1" if text == "0" else f"{text} + 1"


def _combined(number: str, size: str, digit: str) -> str:
    """Return the text of a number with one more digit.

    >>> _combined("0", "4", "x"), _combined("e + 1", "4", "x")
    ('x', '(e + 1) * 4 + x')
    """
    if number == "0":
        return digit
    return f"{number if number.isidentifier() else f'({number})'} * {size} + {digit}"

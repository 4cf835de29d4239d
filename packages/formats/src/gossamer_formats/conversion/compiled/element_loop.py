"""The loops over the elements of a storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gossamer_formats.conversion.compiled.program import indented
from gossamer_formats.conversion.inverse_map import with_sizes
from gossamer_formats.storage import Array, Storage, axes_by_name, evaluate, index_array
from gossamer_ir.analysis.logical_elements import map_results, map_variables
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, width_of
from gossamer_ir.core.build import add, index, index_var, mul
from gossamer_ir.nodes import Axis, Expr, Load, Var
from gossamer_ir.script import print_expr
from gossamer_ir.traversal.rewrite import rewrite

VALUES = "S_values"
"""The array of the values of the source."""

LARGEST_CONSTANT = 16
"""The largest width that is a constant of the program, so that the loop can be unrolled. A program with
another constant is compiled anew."""


class ElementLoop(NamedTuple):
    """Lines that bind, for each element, `p` (the position of its value) and `l0`, `l1`, ... (its logical
    coordinates).

    `header` is followed by statements at `depth`. `visits_all`: every value is that of an element, and `p`
    counts them. `loaded`: the index arrays that have a logical coordinate at `p`, by its number.
    """

    header: list[str]
    depth: int
    arguments: dict[str, Array | int]
    visits_all: bool
    loaded: dict[int, Array]

    def around(self, body: Sequence[str]) -> list[str]:
        """Return the loops around statements."""
        return [*self.header, *indented(body, self.depth)]


def element_loop(storage: Storage, *, drop_zeros: bool) -> ElementLoop:
    r"""Return the loops over the elements of a checked storage in the order of their values.

    >>> import numpy as np
    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 0, 1]), "indices": np.array([0]), "data": np.ones(1)}
    >>> loop = element_loop(Storage(csr("float64"), {"m": 2, "n": 1, "nnz": 1}, arrays), drop_zeros=False)
    >>> print(*loop.header, sep="\n")
    for x_I in T.serial(2):
        for e_J in T.serial(T.int64(S_indptr[x_I]), T.int64(S_indptr[x_I + 1])):
            c_J = T.int64(S_indices[e_J])
            p = e_J
            l0 = x_I
            l1 = c_J
    """
    return _Writer(storage).write(drop_zeros=drop_zeros)


class _Writer:
    """The loops so far, from the outermost to the innermost."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.header: list[str] = []
        self.depth = 0
        self.arguments: dict[str, Array | int] = {}
        self.elements: dict[str | None, str] = {None: "0"}
        self.position = "0"
        self.coordinates: dict[str, str] = {}
        self.at_position: dict[str, Array] = {}
        self.visits_all = True

    def write(self, *, drop_zeros: bool) -> ElementLoop:
        axes = axes_by_name(self.storage.format)
        for name in self.storage.format.buffer.axes:
            self._add_axis(axes[name])
        self._line(f"p = {self.position}")
        self._bind_logical()
        if drop_zeros:
            self.arguments[VALUES] = self.storage.values
            self._open(f"if {VALUES}[p] != T.{self.storage.values.dtype.name}(0):")
            self.visits_all = False
        loaded = {}
        for number, result in enumerate(map_results(self.storage.format)):
            axis = self._axis_of(result)
            if axis in self.at_position and self.position == self.elements[axis]:
                loaded[number] = self.at_position[axis]
        return ElementLoop(self.header, self.depth, self.arguments, self.visits_all, loaded)

    def _line(self, text: str) -> None:
        self.header += indented([text], self.depth)

    def _open(self, text: str) -> None:
        self._line(text)
        self.depth += 1

    def _add_axis(self, axis: Axis) -> None:
        parent, indptr, indices = self.elements[axis.parent], indptr_of(axis), indices_of(axis)
        name = axis.name
        if indptr is not None:
            offsets = self._array(indptr.handle)
            begin, end = f"{offsets}[{parent}]", f"{offsets}[{_plus_one(parent)}]"
            self._open(f"for e_{name} in T.serial(T.int64({begin}), T.int64({end})):")
            self.elements[name] = self.position = f"e_{name}"
            if indices is None:
                self._line(f"c_{name} = e_{name} - T.int64({begin})")
        else:
            self._add_fixed(axis, parent)
        if indices is None:
            return
        coordinates = self._array(indices.handle)
        self._line(f"c_{name} = T.int64({coordinates}[{self.elements[name]}])")
        self.coordinates[name] = f"c_{name}"
        self.at_position[name] = self.storage.arrays[indices.handle]
        if indices.padded:
            self.arguments[f"n_{name}"] = evaluate(axis.length, self.storage.sizes)
            self._open(f"if c_{name} < n_{name}:")
            self.visits_all = False

    def _add_fixed(self, axis: Axis, parent: str) -> None:
        name, width = axis.name, evaluate(width_of(axis), self.storage.sizes)
        if width == 1:
            self.elements[name], self.coordinates[name] = parent, "0"
            return
        size = str(width) if width <= LARGEST_CONSTANT else f"s_{name}"
        if width > LARGEST_CONSTANT:
            self.arguments[f"s_{name}"] = width
        self._open(f"for x_{name} in T.serial({size}):")
        self.coordinates[name] = f"x_{name}"
        element = _combined(parent, size, f"x_{name}")
        if element != f"x_{name}":
            self._line(f"e_{name} = {element}")
            element = f"e_{name}"
        same = self.position == parent
        self.elements[name] = element
        self.position = element if same else _combined(self.position, size, f"x_{name}")

    def _array(self, handle: str) -> str:
        self.arguments[f"S_{handle}"] = self.storage.arrays[handle]
        return f"S_{handle}"

    def _axis_of(self, result: Expr) -> str | None:
        """Return the name of the axis whose coordinate is a result of the map."""
        if not isinstance(result, Var):
            return None
        return self._axes_by_variable()[result.name]

    def _bind_logical(self) -> None:
        results = map_results(self.storage.format)
        for number, result in enumerate(results):
            name = self._axis_of(result)
            text = self._text(result) if name is None else self._coordinate(name)
            self._line(f"l{number} = {text}")
        for number, result in enumerate(results):
            low, high = self._bounds(result)
            size = self.storage.shape[number]
            if low is None or low < 0:
                self._open(f"if l{number} >= 0:")
                self.visits_all = False
            if high is None or high >= size:
                self.arguments[f"s_l{number}"] = size
                self._open(f"if l{number} < s_l{number}:")
                self.visits_all = False

    def _coordinate(self, axis: str) -> str:
        return self.coordinates.get(axis, f"c_{axis}")

    def _axes_by_variable(self) -> dict[str, str]:
        description = self.storage.format
        return dict(zip(map_variables(description), description.buffer.axes, strict=True))

    def _text(self, result: Expr) -> str:
        """Return the text of a result of the map, with the names of the program."""
        variables = self._axes_by_variable()

        def renamed(node: object) -> Expr | None:
            if isinstance(node, Load):
                array = index_array(self.storage, node.buffer)
                handle = next(
                    buffer.handle or buffer.name
                    for buffer in self.storage.format.index_arrays
                    if buffer.name == node.buffer
                )
                at: Expr = index(0)
                for number, length in zip(node.indices, array.shape, strict=True):
                    at = add(mul(at, index(length)), number)
                return Load(self._array(handle), (at,), node.dtype)
            if isinstance(node, Var) and node.name in variables:
                text = self._coordinate(variables[node.name])
                return index(0) if text == "0" else index_var(text)
            if isinstance(node, Var):
                return index(self.storage.sizes[node.name])
            return None

        return print_expr(rewrite(result, renamed))

    def _bounds(self, result: Expr) -> tuple[int | None, int | None]:
        """Return the least and the largest value of a result, None where it is not known."""
        axes = axes_by_name(self.storage.format)
        lengths = {
            variable: evaluate(axes[name].length, self.storage.sizes)
            for variable, name in self._axes_by_variable().items()
        }
        form = affine_of(with_sizes(result, self.storage.sizes))
        low = high = form.constant
        for atom, coefficient in form.terms.items():
            if not isinstance(atom, Var):
                return None, None
            most = coefficient * (lengths[atom.name] - 1)
            low, high = low + min(most, 0), high + max(most, 0)
        return low, high


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

"""One call of a program, its expected results, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from gossamer_support.arrays import Array
from gossamer_testkit.matrices.oracles import max_relative_error, tolerance

Options: TypeAlias = Mapping[str, Any]
"""The options of a program's cases."""
Values: TypeAlias = Mapping[str, Any]
"""An array or a number for each parameter."""


class Case(msgspec.Struct, frozen=True, eq=False):
    """The arguments of one call.

    `raises` is the code of the error that the call must raise, `names` a text that its message must contain;
    None: none.

    >>> case = Case("doubled", {"x": np.array([1, 2])})
    >>> call(lambda x: np.add(x, x, out=x), case)
    {'x': array([2, 4])}
    """

    name: str
    values: Values
    raises: str | None = None
    names: str | None = None


class Expected(NamedTuple):
    """The expected contents of an array.

    They are compared exactly if `magnitude` is None, else within the rounding errors of a sum of `length`
    products whose absolute values add up to `magnitude`.

    >>> Expected(np.array([1, 2])).array
    array([1, 2])
    """

    array: Array
    magnitude: Array | None = None
    length: int = 0


def fresh(case: Case) -> dict[str, Any]:
    """Return the values of a case, with copies of the arrays."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in case.values.items()
    }


def call(kernel: Callable[..., object], case: Case) -> dict[str, Array]:
    """Return the arrays of a case after a call of the kernel on copies of its values."""
    values = fresh(case)
    kernel(**values)
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def differences(
    case: Case, results: Mapping[str, Array], expected: Mapping[str, Expected]
) -> list[str]:
    """Return one sentence for each array that is wrong after a call.

    Arrays without an entry in `expected` must not have changed.

    >>> case = Case("two", {"x": np.array([1, 2]), "y": np.array([0, 0])})
    >>> differences(case, {"x": np.array([1, 2]), "y": np.array([1, 3])},
    ...             {"y": Expected(np.array([1, 2]))})
    ['y[1] is 3; expected 2.']
    """
    lines = []
    for name, array in results.items():
        wanted = expected.get(name, Expected(case.values[name]))
        wrong = _wrong_elements(array, wanted)
        if wrong is not None:
            lines.append(_sentence(name, array, wanted.array, wrong))
    return lines


def same_bytes(first: Mapping[str, Array], second: Mapping[str, Array]) -> bool:
    """Return whether two calls gave the same arrays, bit by bit."""
    return {name: array.tobytes() for name, array in first.items()} == {
        name: array.tobytes() for name, array in second.items()
    }


def _wrong_elements(array: Array, wanted: Expected) -> Array | None:
    """Return a mask of the wrong elements, None if all are right."""
    expected = wanted.array
    if wanted.magnitude is not None:
        bound = tolerance(wanted.length, array.dtype.name)
        if max_relative_error(array, expected, magnitude=wanted.magnitude) <= bound:
            return None
        # One element at a time, only to name those that are wrong.
        errors = [
            max_relative_error(*(part.reshape(1) for part in parts), magnitude=size.reshape(1))
            for *parts, size in zip(
                array.reshape(-1), expected.reshape(-1), wanted.magnitude.reshape(-1), strict=True
            )
        ]
        return np.array(errors).reshape(array.shape) > bound
    with np.errstate(invalid="ignore"):
        is_same = array == expected
    if array.dtype.kind == "f":
        # Which of the patterns of NaN a machine makes does not matter.
        is_same |= np.isnan(array) & np.isnan(expected)
    return None if is_same.all() else ~is_same


def _sentence(name: str, array: Array, expected: Array, wrong: Array) -> str:
    at = tuple(int(index[0]) for index in np.nonzero(wrong))
    subscript = ", ".join(map(str, at))
    more = int(wrong.sum()) - 1
    are = "element is" if more == 1 else "elements are"
    rest = f", and {more} more {are} wrong" if more else ""
    return f"{name}[{subscript}] is {array[at]}; expected {expected[at]}{rest}."

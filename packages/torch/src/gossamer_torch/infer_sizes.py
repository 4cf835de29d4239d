"""The sizes of a call of a program, which follow from the shapes of its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gossamer_backend.internal_api import to_linear
from gossamer_ir.arith.evaluate_integer import evaluate_integer
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam
from gossamer_ir.nodes import Expr


class SizeSource(NamedTuple):
    """An array dimension that determines a size: the length of a dimension is `factor * size + offset`."""

    size: str
    array: int
    dimension: int
    factor: int
    offset: int


def size_sources(params: Sequence[BufferParam]) -> list[SizeSource]:
    """Return how sizes follow from arrays, for the first array that determines each of them."""
    by_name: dict[str, SizeSource] = {}
    for array, param in enumerate(params):
        for dimension, length in enumerate(param.shape):
            form = to_linear(length)
            if form is not None and form.name is not None:
                source = SizeSource(form.name, array, dimension, form.factor, form.offset)
                by_name.setdefault(form.name, source)
    return list(by_name.values())


def infer_sizes(
    sources: Sequence[SizeSource],
    shapes: Sequence[Sequence[int]],
    passed: Mapping[str, int],
    *,
    names: Sequence[str],
) -> list[int]:
    """Return the values of the sizes `names`: those that were passed, and others from the shapes.

    Raises `ArgumentError` (`kernel.size`) for one that is not known.
    """
    solved = {
        size: (shapes[array][dimension] - offset) // factor
        for size, array, dimension, factor, offset in sources
    }
    solved |= passed
    for name in names:
        if name not in solved:
            raise ArgumentError(
                "kernel.size",
                f"The size '{name}' of the program does not follow from the shapes of its arrays.",
                hint=f"Pass it by name: {name}=...",
            )
    return [solved[name] for name in names]


def symbolic_size(size: Expr, sizes: Mapping[str, Any]) -> Any:
    """Return the value of a size; one of torch's symbols for those.

    >>> from gossamer_ir.core.build import add, index, index_var
    >>> symbolic_size(add(index_var("m"), index(1)), {"m": 4})
    5
    """
    form = to_linear(size)
    if form is None:
        return evaluate_integer(size, sizes)
    return form.offset if form.name is None else form.offset + form.factor * sizes[form.name]

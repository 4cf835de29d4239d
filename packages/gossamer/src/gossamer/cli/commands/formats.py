"""`gossamer formats`: the formats of tensors, and those with parts, with the arrays of a small matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from gossamer_formats import (
    Array,
    Format,
    SparseTensor,
    convert,
    decompose,
    format_named,
    format_names,
    from_arrays,
)
from gossamer_formats.internal_api import (
    COMPOSABLE_FORMATS,
    FORMATS,
    NAMED_FILE_FORMATS,
    ignored_operators,
)
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.errors import FormatError, GossamerError
from gossamer_support.plugins.named_objects import NamedObjects
from gossamer_support.plugins.plugin_errors import errors_as_plugin_errors
from gossamer_tune import COST_MODELS

_ROWS = (0, 0, 1, 1, 3)
_COLUMNS = (0, 4, 0, 5, 2)
_SHAPE = (4, 6)


def formats() -> None:
    """List the formats that tensors can have, then the composable formats, which have several parts.

    For each, print what it stores, the parameters of a conversion to it, and the arrays of a small matrix, in
    which letters are values. A dot is a value that fills a slot. A format of a plugin that is broken is
    listed with the reason, and so is one that is ignored because gossamer has a format of its name, and an
    operator of a plugin that is not used. File formats and cost models of plugins follow.
    """
    print(_draw(_example().toarray()))
    for name in format_names():
        print(f"\n{_describe(name, _describe_format)}")
    for name in COMPOSABLE_FORMATS.names():
        print(f"\n{_describe(name, _describe_composable_format)}")
    for point in (*FORMATS.ignored_entry_points(), *COMPOSABLE_FORMATS.ignored_entry_points()):
        print(
            f"\n{point.name} of {point.distribution}: ignored, as gossamer has a format of this name"
        )
    for point, reason in ignored_operators().items():
        print(f"\noperator {point.name} of {point.distribution}: not used: {reason}")
    for objects in (NAMED_FILE_FORMATS, COST_MODELS):
        for line in _registered_lines(objects):
            print(f"\n{line}")


def _registered_lines(objects: NamedObjects[Any]) -> Iterator[str]:
    """Yield a line for each object that another distribution registers."""
    for name in objects.registered_names():
        try:
            objects.find(name)
            state = "registered by a plugin"
        except GossamerError as error:
            state = f"broken: {error}"
        yield f"{objects.kind} {name}: {state}"
    for point in objects.ignored_entry_points():
        yield f"{objects.kind} {point.name} of {point.distribution}: ignored, as gossamer has one"


def _example() -> SparseTensor:
    arrays = {"indices_0": np.array(_ROWS), "indices_1": np.array(_COLUMNS)}
    return from_arrays("coo", _SHAPE, data=np.arange(1.0, len(_ROWS) + 1), **arrays)


def _draw(dense: Array) -> str:
    return "\n".join("  " + " ".join(_letter(value) for value in row) for row in dense)


def _letter(value: float) -> str:
    """Return the letter of a value, a dot for zero.

    >>> _letter(0.0), _letter(2.0)
    ('.', 'b')
    """
    return "." if value == 0 else "abcdefghijklmnopqrstuvwxyz"[int(value) - 1]


def _describe(name: str, describe: Callable[[str], str]) -> str:
    try:
        # The functions of a plugin's format may raise anything.
        with errors_as_plugin_errors(name, doing="be drawn", passing=GossamerError):
            return describe(name)
    except GossamerError as error:
        return f"{name}: broken: {error}"


def _describe_format(name: str) -> str:
    format = format_named(name)
    return "\n".join([*_heading(name, format.describe, format.parameters), *_arrays(format)])


def _describe_composable_format(name: str) -> str:
    composable = COMPOSABLE_FORMATS.lookup(name)
    lines = _heading(name, composable.decompose, composable.parameters)
    parameters: dict[str, Any] = dict(composable.example_parameters)
    for part in decompose(_example(), name, **parameters).parts:
        lines += [f"  {part.name}", *(f"  {line}" for line in _arrays_of(part.tensor))]
    return "\n".join(lines)


def _heading(
    name: str, function: Callable[..., Any], parameters: Mapping[str, int | None]
) -> list[str]:
    """Return the first line of the documentation of the module of a function, and the parameters."""
    summary = (import_module(function.__module__).__doc__ or "").strip().partition("\n")[0]
    lines = [f"{name}: {summary}".rstrip(": ")]
    if parameters:
        lines.append(f"  parameters  {', '.join(map(_parameter, parameters.items()))}")
    return lines


def _parameter(parameter: tuple[str, int | None]) -> str:
    """Return a parameter with its default, if it has one.

    >>> _parameter(("width", 4)), _parameter(("block_rows", None))
    ('width=4', 'block_rows')
    """
    name, default = parameter
    return name if default is None else f"{name}={default}"


def _arrays(format: Format) -> list[str]:
    """Return a line for each array of the example in a format; none if matrices cannot have it."""
    parameters: dict[str, Any] = dict(format.example_parameters)
    try:
        tensor = convert(_example(), format.name, **parameters).tensor
    except FormatError as error:
        if error.code == "format.dimensions":
            return []
        raise
    return _arrays_of(tensor)


def _arrays_of(tensor: SparseTensor) -> list[str]:
    width = max(map(len, tensor.arrays))
    return [f"  {name:<{width}}  {_elements(tensor, name)}" for name in tensor.arrays]


def _elements(tensor: SparseTensor, name: str) -> str:
    array = tensor.arrays[name]
    if array is tensor.storage.values:
        return " ".join(map(_letter, array))
    return " ".join(map(bin if name in _words(tensor) else str, array))


def _words(tensor: SparseTensor) -> set[str]:
    """Return the names of the arrays that have words of bits."""
    stored = (indices_of(axis) for axis in tensor.description.axes)
    return {indices.handle for indices in stored if indices is not None and indices.is_mask}

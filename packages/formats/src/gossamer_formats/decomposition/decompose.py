"""`decompose`: a tensor in the parts of a composable format, or in formats that are listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import Parameter
from typing import Any

import numpy as np

from gossamer_formats.conversion.recognized_formats import is_format
from gossamer_formats.decomposition.chosen_formats import ChosenFormat, chosen_parts
from gossamer_formats.decomposition.decomposition import Decomposition
from gossamer_formats.decomposition.installed_decompositions import (
    LIBRARY,
    ComposableFormat,
    composable_format_named,
    parameters_of,
)
from gossamer_formats.decomposition.part import Part
from gossamer_formats.storage import Array
from gossamer_formats.tensor import SparseTensor, convert
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.errors import FormatError, PluginError
from gossamer_ir.support.counted import counted
from gossamer_ir.support.typed_calls import typed


@typed
def decompose(
    tensor: Any, formats: str | Sequence[ChosenFormat], **parameters: int | None
) -> Decomposition:
    """Return a matrix in the parts of a composable format, or of a list of formats. It is a `SparseTensor` or
    a SciPy matrix.

    The composable format `hyb` has the parameters `c`, the number of partitions of the columns (default 1),
    and `k`: the widest bucket has rows of 2**k slots (default: the first that holds an average row). An entry
    of a list is a format, or a tuple of a format, a function, and a dict of the format's parameters. The
    function takes the rows and the columns of all elements, and returns which of them are in the part unless
    they are in an earlier one. Without a function, all that are left are.

    Operators such as `gossamer.spmm` accept the result: parts that are equal but for their elements share one
    kernel. Raises `FormatError`: `format.unknown`, `format.parameter` (an unknown name),
    `format.parameter.missing`, `format.parameter.value`, `format.parts` (a list that is not valid, or does
    not have all elements), `format.dimensions`, `format.duplicate`.

    >>> from scipy.sparse import csr_array
    >>> from gossamer_formats import SparseTensor
    >>> matrix = SparseTensor(csr_array(np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 0.0]])))
    >>> A = decompose(matrix, "hyb", k=2)
    >>> [(part.name, part.tensor.arrays["rows"].tolist()) for part in A.parts]
    [('p0b0', [1]), ('p0b2', [0])]
    >>> decompose(matrix, [("dia", lambda i, j: i == j), "csr"]).parts[1].tensor.arrays["data"]
    array([2., 3.])
    """
    if not isinstance(tensor, SparseTensor):
        tensor = SparseTensor(tensor)
    if tensor.ndim != 2:
        raise FormatError(
            "format.dimensions",
            f"The tensor has {counted(tensor.ndim, 'dimension')}; expected 2.",
        )
    if isinstance(formats, str):
        composable = composable_format_named(formats)
        _require_parameters(formats, composable, parameters)
        matrix, positions = _sorted_csr(tensor)
        name, parts = formats, list(composable(matrix, **parameters))
        if formats not in LIBRARY:
            _require_each_once(name, parts, matrix.nnz)
    else:
        if parameters:
            raise FormatError(
                "format.parameter",
                f"A list of formats has no parameter '{next(iter(parameters))}'.",
                hint="Write the parameters of a format in its entry, in a dict after the function.",
            )
        matrix, positions = _sorted_csr(tensor)
        name, parts = "list", list(chosen_parts(matrix, formats))
    if positions is not None:
        parts = [_of_source(part, positions) for part in parts]
    return Decomposition(name, tensor.shape, tensor.dtype, parts, value_count=tensor.nnz)


def _sorted_csr(tensor: SparseTensor) -> tuple[SparseTensor, Array | None]:
    """Return the matrix in CSR with sorted and unique columns, and the positions of its values in the tensor;
    None if these are the same."""
    indices = indices_of(tensor.format.axes[-1])
    if (
        is_format(tensor.format, "csr")
        and not tensor.is_borrowed
        and indices is not None
        and indices.sorted
        and indices.unique
    ):
        return tensor, None
    return convert(tensor, "csr", duplicates="error")


def _of_source(part: Part, positions: Array) -> Part:
    """Return a part of a converted tensor as a part of the tensor, where values have other positions."""
    # The last element is for slots without an element, whose position is -1.
    permutation = np.append(positions, -1)[part.permutation]
    permutation.flags.writeable = False
    return part._replace(permutation=permutation)


def _require_parameters(
    name: str, format: ComposableFormat, parameters: dict[str, int | None]
) -> None:
    known = parameters_of(format)
    for given, value in parameters.items():
        if given not in known:
            raise FormatError(
                "format.parameter",
                f"The format '{name}' has no parameter '{given}'; it has {', '.join(known) or 'none'}.",
            )
        # None is the default of a parameter that the format chooses itself.
        if value is None and known[given] is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
            raise FormatError(
                "format.parameter.value",
                f"The parameter '{given}' is {value!r}; expected an integer from 0 to 2**31 - 1.",
            )
    for needed, default in known.items():
        if default is Parameter.empty and needed not in parameters:
            raise FormatError(
                "format.parameter.missing",
                f"A decomposition as '{name}' needs the parameter '{needed}'.",
                hint=f"Pass {needed}=...",
            )


def _require_each_once(name: str, parts: Iterable[Part], count: int) -> None:
    """Raise unless the parts of a composable format have each of `count` elements once."""
    positions = [part.permutation[part.permutation >= 0] for part in parts]
    times = np.bincount(np.concatenate([np.zeros(0, np.int64), *positions]), minlength=count)
    if times.size > count or np.any(times != 1):
        at = int(np.argmax(times != 1))
        raise PluginError(
            "plugin.decomposition",
            f"The parts of the composable format '{name}' have the value {at} of the matrix "
            f"{counted(int(times[at]), 'time')}; expected each value in one part.",
        )

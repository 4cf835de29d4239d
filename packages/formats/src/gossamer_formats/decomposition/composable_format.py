"""A composable format: a function that stores a matrix in parts, and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gossamer_formats.decomposition.decomposition import Decomposition
from gossamer_formats.decomposition.decomposition_from_csr import decomposition_from_csr
from gossamer_formats.decomposition.part import Part
from gossamer_formats.decomposition.part_checks import required_parts
from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_ir.errors import FormatError


class ComposableFormat(NamedTuple):
    """A format of tensors with several parts, each in a format of its own.

    `decompose` takes a CSR matrix, whose columns are sorted and unique in each row, and the parameters by
    keyword, which are integers from 0. It returns the parts: together they have each element of the matrix
    once. `parameters` are the options with their defaults (None: the option is required). Those in `chosen`
    need no default: the function chooses a value if they are not passed. `example_parameters` are the options
    with which `gossamer formats` draws a matrix of 4 by 6.

    >>> ComposableFormat("halves", lambda matrix, *, at: (), parameters={"at": None}).chosen
    ()
    """

    name: str
    decompose: Callable[..., Iterable[Part]]
    parameters: Mapping[str, int | None] = {}
    chosen: tuple[str, ...] = ()
    example_parameters: Mapping[str, int] = {}

    def decomposition_of(
        self, tensor: SparseTensor, parameters: Mapping[str, int | None]
    ) -> Decomposition:
        """Return a matrix in the parts of this format, once they are checked.

        Raises `FormatError` as `with_defaults` does, and for a matrix that cannot be decomposed, and
        `PluginError` for parts of another distribution that are not valid.

        >>> from scipy.sparse import eye_array
        >>> from gossamer_formats.decomposition.library.hyb import FORMAT
        >>> FORMAT.decomposition_of(SparseTensor(eye_array(3)), {"k": 0}).parts[0].name
        'p0b0'
        """
        values = with_defaults(self, parameters)

        def parts_of(matrix: SparseTensor) -> list[Part]:
            with COMPOSABLE_FORMATS.errors_of(self.name, doing="decompose a matrix by the"):
                # The function may be a generator, whose body runs here.
                parts = list(self.decompose(matrix, **values))
            return required_parts(parts, matrix, format_name=self.name)

        return decomposition_from_csr(tensor, self.name, parts_of)


def with_defaults(
    format: ComposableFormat, parameters: Mapping[str, int | None]
) -> dict[str, int | None]:
    """Return the parameters of a call with the defaults of those that are not passed.

    Raises `FormatError`: `format.parameter` for an unknown name, `format.parameter.value`,
    `format.parameter.missing`.

    >>> from gossamer_formats.decomposition.library.hyb import FORMAT
    >>> with_defaults(FORMAT, {"k": 3})
    {'c': 1, 'k': 3}
    """
    defaults = format.parameters
    for name, value in parameters.items():
        if name not in defaults:
            raise FormatError(
                "format.parameter",
                f"The composable format '{format.name}' has no parameter '{name}'; it has "
                f"{', '.join(defaults) or 'none'}.",
            )
        if value is None and name in format.chosen:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
            raise FormatError(
                "format.parameter.value",
                f"The parameter '{name}' is {value!r}; expected an integer from 0 to 2**31 - 1.",
            )
    values = {**defaults, **parameters}
    for name, value in values.items():
        if value is None and name not in format.chosen:
            raise FormatError(
                "format.parameter.missing",
                f"The composable format '{format.name}' needs the parameter '{name}'.",
                hint=f"Pass {name}=...",
            )
    return values

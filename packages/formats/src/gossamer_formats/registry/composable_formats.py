"""The composable formats: those of the library, and those that installed distributions register.

A distribution registers a composable format by an entry point of the group `gossamer.composable_formats`,
whose name is that of the format and whose object is a `ComposableFormat`:

    [project.entry-points."gossamer.composable_formats"]
    quadrants = "my_package.quadrants:FORMAT"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, get_args, runtime_checkable

from gossamer_formats.registry.composable_names import ComposableName
from gossamer_formats.registry.formats import FORMATS
from gossamer_formats.registry.named_formats import NamedFormats, formats_in
from gossamer_ir.nodes import FormatDescription
from gossamer_support.plugins import groups


@runtime_checkable
class Decomposer(Protocol):
    """The attributes of a `ComposableFormat` that tensors use.

    A protocol, because `SparseTensor.asformat` cannot import the class: its module imports `SparseTensor`, of
    which parts are made."""

    @property
    def name(self) -> str:
        """The name of the format."""

    @property
    def decompose(self) -> Callable[..., Iterable[Any]]:
        """The function that makes the parts of a matrix in CSR, without checks."""

    @property
    def parameters(self) -> Mapping[str, int | None]:
        """The options with their defaults; None: the option is required, or the format chooses it."""

    @property
    def example_parameters(self) -> Mapping[str, int]:
        """The options with which `gossamer formats` draws a matrix."""

    def decomposition_of(self, tensor: Any, parameters: Mapping[str, int | None]) -> Any:
        """Return the `Decomposition` of a `SparseTensor`."""


COMPOSABLE_FORMATS: NamedFormats[Decomposer] = NamedFormats(
    groups.COMPOSABLE_FORMAT_GROUP.name,
    "composable format",
    expected="a gossamer_formats.ComposableFormat with this name",
    is_valid=lambda value, name: isinstance(value, Decomposer) and value.name == name,
    built_in=formats_in("gossamer_formats.decomposition.library", get_args(ComposableName)),
)


def find_composable(format: str | FormatDescription) -> Decomposer | None:
    """Return the composable format of a name; None for a description and for any other name. A format of one
    storage takes precedence over a composable one of the same name.

    >>> find_composable("hyb").name, find_composable("csr")
    ('hyb', None)
    """
    if not isinstance(format, str) or FORMATS.find(format) is not None:
        return None
    return COMPOSABLE_FORMATS.find(format)

"""Formats by name: those of the library, and those that installed distributions register."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from gossamer_ir.errors import FormatError
from gossamer_support.plugins.named_objects import NamedObjects

T = TypeVar("T")


class NamedFormats(NamedObjects[T]):
    """Formats of one kind, such as the composable ones."""

    def lookup(self, name: str) -> T:
        """Return the format of a name; raises `FormatError` (`format.unknown`) if there is none."""
        format = self.find(name)
        if format is None:
            raise FormatError(
                "format.unknown",
                f"There is no {self.kind} '{name}'; expected one of: {', '.join(self.names())}.",
            )
        return format


def formats_in(package: str, names: Iterable[str]) -> dict[str, Callable[[], Any]]:
    """Return the functions that import the formats of a package: the constant `FORMAT` of each module.

    >>> formats_in("gossamer_formats.descriptions", ["csr"])["csr"]().name
    'csr'
    """
    return {name: partial(_format_in, f"{package}.{name}") for name in names}


def _format_in(module_name: str) -> Any:
    return import_module(module_name).FORMAT

"""The compiler of the programs of conversions, which distribution `gossamer` registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gossamer_formats.registry.named_objects import NamedObjects
from gossamer_ir.plugins import groups

COMPILERS: NamedObjects[Callable[..., Any]] = NamedObjects(
    groups.COMPILERS.name,
    "compiler",
    expected="a function",
    is_valid=lambda found, name: callable(found),
)


def find_compiler() -> Callable[..., Any] | None:
    """Return the function that compiles a module, or None if no installed distribution has one."""
    return COMPILERS.find("compile")

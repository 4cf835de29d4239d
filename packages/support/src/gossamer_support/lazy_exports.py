"""Exports of a package that are imported on first access, so that importing the package is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from gossamer_support.garbage_collection import pause_collection


def lazy_exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, which exports names from other modules.

    `homes` has the module of each name. A name is imported when it is first used, and is from
    then on an attribute of the package. `python -m tools.generate exports` writes `homes` and `__all__` from
    the imports that the package has for type checkers.

    >>> get, _ = lazy_exports("gossamer_support", {"amount": "gossamer_support.message_texts"})
    >>> get("amount")(3, "row")
    '3 rows'
    >>> get("missing")
    Traceback (most recent call last):
    ...
    AttributeError: module 'gossamer_support' has no attribute 'missing'
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        with pause_collection():
            value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    # Names that the package imports for itself, such as this function, are not for its users.
    def names() -> list[str]:
        special = [name for name in vars(sys.modules[package]) if name.startswith("__")]
        return sorted({*special, *homes})

    return get, names

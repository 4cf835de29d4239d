"""Names for the other distributions of the release, besides the exports of the package.

Targets and their machines. A release pins the versions of its distributions, so these names may change with
each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer.targets.parse_target import DEFAULT_TARGET
    from gossamer.targets.resolve_target import machine_for

_HOMES = {
    "DEFAULT_TARGET": "gossamer.targets.parse_target",
    "machine_for": "gossamer.targets.resolve_target",
}

__all__ = [
    "DEFAULT_TARGET",
    "machine_for",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)

"""The machine that schedules, code generation and models of costs assume: vectors, registers and caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_machine.machine import Grid, Machine, ProductTile, machine_of

_HOMES = {
    "Grid": "gossamer_machine.machine",
    "Machine": "gossamer_machine.machine",
    "ProductTile": "gossamer_machine.machine",
    "machine_of": "gossamer_machine.machine",
}

__all__ = [
    "Grid",
    "Machine",
    "ProductTile",
    "machine_of",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)

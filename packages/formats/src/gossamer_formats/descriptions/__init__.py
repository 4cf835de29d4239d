"""The library of format descriptions, one file per format.

`python -m tools.generate formats` writes the imports, `DESCRIPTIONS` and `__all__` from the files here.
"""

from __future__ import annotations

from collections.abc import Callable

from gossamer_formats.descriptions.csr import csr
from gossamer_formats.descriptions.dia import dia
from gossamer_formats.descriptions.sell import sell
from gossamer_ir.nodes import FormatDescription

DESCRIPTIONS: dict[str, Callable[..., FormatDescription]] = {
    "csr": csr,
    "dia": dia,
    "sell": sell,
}
"""The functions that describe formats, by the name of the format."""

__all__ = [
    "DESCRIPTIONS",
    "csr",
    "dia",
    "sell",
]

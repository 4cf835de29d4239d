"""The composable formats of the library, one file per format.

Each module has a function that returns the parts of a matrix, and a constant `FORMAT`. `python -m
tools.generate formats` writes `NAMES` from the files here."""

from __future__ import annotations

NAMES = ("hyb",)
"""The names of the modules, which are those of the composable formats."""

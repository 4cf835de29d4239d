"""The composable formats of the library, one file per format.

Each module has a function that returns the parts of a matrix, and a constant `FORMAT`."""

from __future__ import annotations

from typing import get_args

from gossamer_formats.composable_names import ComposableName

NAMES: tuple[str, ...] = get_args(ComposableName)
"""The names of the modules, which are those of the composable formats."""

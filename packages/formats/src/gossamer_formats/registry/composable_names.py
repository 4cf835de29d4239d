"""The names of the composable formats of the library. `python -m tools.generate formats` writes them from
the folder `decomposition/library`."""

from __future__ import annotations

from typing import Literal, TypeAlias

ComposableName: TypeAlias = Literal["hyb"]
"""A name for which `SparseTensor.asformat` returns a `Decomposition`, for type checkers. For a composable
format of another distribution call `decompose`, which returns one whatever the name."""

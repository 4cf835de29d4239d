"""The parts of a run, in the order in which they are measured, listed and reported."""

from __future__ import annotations

from importlib import import_module

from benchmarks.part import RunPart
from gossamer_support.items_by_name import items_by_name

FILES = (
    # First, since the cells say which share of the rooflines they reach.
    "rooflines",
    "kernels",
    "call_overhead",
    "startup",
    "compile_time",
    "first_calls",
    "python_share",
    "mini_batches",
    "conversions",
    "programs",
    "models",
    "choice",
    "instructions",
)
"""The files of the folder `parts`. The names of stored runs list parts in this order."""


def load_part(file: str) -> RunPart:
    """Return the part that a file of the folder defines."""
    part: RunPart = import_module(f"benchmarks.parts.{file}").PART
    return part


PARTS = items_by_name(map(load_part, FILES))
SERIES = tuple(series for part in PARTS.values() for series in part.series)

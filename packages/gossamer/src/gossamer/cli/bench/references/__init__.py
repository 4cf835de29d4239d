"""What each operator is compared with, one file each: an oracle, and what SciPy's users would write."""

from __future__ import annotations

from importlib import import_module

from gossamer.cli.bench.references.reference import Reference


def reference_of(op: str) -> Reference:
    """The reference of an operator that there is."""
    found: Reference = import_module(f"gossamer.cli.bench.references.{op}").REFERENCE
    return found

"""References of the operators, one file each: an oracle, and the code that users of SciPy would write."""

from __future__ import annotations

from importlib import import_module

from gossamer.cli.bench.references.reference import Reference


def reference_of(op: str) -> Reference:
    """Return the reference of an operator."""
    found: Reference = import_module(f"gossamer.cli.bench.references.{op}").REFERENCE
    return found

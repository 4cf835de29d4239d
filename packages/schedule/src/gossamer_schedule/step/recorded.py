"""The arguments of a step in a trace."""

from __future__ import annotations

from gossamer_ir.interchange.records import Arg


def step(**args: Arg) -> dict[str, Arg]:
    """Return the arguments that are not None, the default of every optional argument."""
    return {name: value for name, value in args.items() if value is not None}

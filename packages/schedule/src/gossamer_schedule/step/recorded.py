"""Arguments of a step of a trace."""

from __future__ import annotations

from gossamer_ir.interchange.records import Arg


def step(**args: Arg) -> dict[str, Arg]:
    """The arguments without those that are None, which is the default of every optional one."""
    return {name: value for name, value in args.items() if value is not None}

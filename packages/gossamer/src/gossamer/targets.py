"""Targets as arguments."""

from __future__ import annotations

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

DEFAULT_TARGET = "generic-cpu"
"""The target of functions and commands that are not given one."""


def parse_target(target: str | Target) -> Target:
    """Return the target of a text or of a record.

    >>> parse_target("generic-cpu:threads=2").options
    (('threads', '2'),)
    """
    if isinstance(target, Target):
        return target
    if not isinstance(target, str):
        raise ArgumentError(
            "target.type",
            f"The target is {target!r}; expected a text such as 'generic-cpu:threads=2'.",
        )
    return Target.parse(target)

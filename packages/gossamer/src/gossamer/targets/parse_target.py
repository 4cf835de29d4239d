"""Targets as arguments."""

from __future__ import annotations

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

DEFAULT_TARGET = "generic-cpu"
"""The target of functions and commands that are not given one."""


def is_default_target(target: str | Target | None) -> bool:
    """Return whether a target is the default one: the CPU of this machine, without options.

    >>> is_default_target(None), is_default_target("generic-cpu:vector_bits=256")
    (True, False)
    """
    return target is None or str(getattr(target, "text", target)) == DEFAULT_TARGET


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

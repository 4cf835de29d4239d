"""The names of the parameters of a part in a program over parts."""

from __future__ import annotations


def part_parameter(name: str, part: str) -> str:
    """Return the name that a parameter of a format has in a program, for a part with this name.

    Programs are called by these names, so they are never changed: a program that has such a name already
    cannot be decomposed.

    >>> part_parameter("indices", "p0b0")
    'indices_p0b0'
    """
    return f"{name}_{part}"

"""Prints the body of a function, the part of a script that schedules change."""

from __future__ import annotations

from itertools import dropwhile
from textwrap import dedent

from gossamer_ir.nodes import Module
from gossamer_ir.script import print_module

_STARTS = ("    for ", "    if ", "    with ")


def body_text(module: Module) -> str:
    """The script of a module with one function, from its first loop, condition or block on.

    >>> from gossamer_testkit.examples import SCALE
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    """
    lines = print_module(module).splitlines()
    return dedent("\n".join(dropwhile(lambda line: not line.startswith(_STARTS), lines)))

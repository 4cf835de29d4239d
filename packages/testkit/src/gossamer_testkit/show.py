"""Prints the body of a function, the part of a script that schedules and passes change."""

from __future__ import annotations

import re
from itertools import dropwhile
from textwrap import dedent

from gossamer_ir.nodes import Module
from gossamer_ir.script import print_module

_DECLARATION = re.compile(
    r" +(T\.(func_attr|stage|assume)\("
    r"|\w+ = T\.(match_buffer|decl_buffer|comm_reducer|sp\.(?!iteration)\w+)\()"
)


def body_text(module: Module) -> str:
    """Return the statements of a module with one function, without parameters and declarations.

    >>> from gossamer_testkit.examples import program
    >>> print(body_text(program("for i in T.serial(n): Y[i] = X[i]")))
    for i in T.serial(n):
        Y[i] = X[i]
    """
    lines = print_module(module).partition(") -> None:\n")[2].splitlines()
    return dedent("\n".join(dropwhile(_DECLARATION.match, lines)))

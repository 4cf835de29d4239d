"""Statements that are executed once after inner loops, instead of once for each element."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gossamer_formats.conversion.compiled.element_loop import ElementLoop
from gossamer_formats.conversion.compiled.program import indented

INDENTATION = 4
"""The number of spaces of one level."""


def hoisted(loop: ElementLoop, bindings: Sequence[str], statement: str) -> str:
    """Return a statement, indented so that it follows the loops whose variables it does not read.

    Names that `bindings` or the loop bind are replaced by what they are bound to. A condition of the
    loop that is the same in all iterations of these loops may be needed: then it follows the elements.
    """
    values, depths, conditions = {}, {}, []
    for line in [*loop.header, *indented(bindings, loop.depth)]:
        text = line.lstrip()
        opened = re.match(r"for (\w+) in ", text)
        name, _, value = text.partition(" = ")
        if opened is not None:
            depths[opened[1]] = (len(line) - len(text)) // INDENTATION + 1
        elif text.startswith("if "):
            conditions.append(text)
        elif name.isidentifier():
            values[name] = f"({value})"
    inlined = _inlined(statement, values)
    depth = _depth(inlined, depths)
    if any(_depth(_inlined(text, values), depths) <= depth for text in conditions):
        inlined, depth = statement, loop.depth
    return " " * INDENTATION * depth + inlined


def _inlined(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values in place of names."""
    while bound := names_of(text) & set(values):
        pattern = "|".join(sorted(bound))
        text = re.sub(rf"\b({pattern})\b", lambda name: values[name[0]], text)
    return text


def _depth(text: str, depths: Mapping[str, int]) -> int:
    """Return the number of loops whose variables a text may read, and those around them."""
    return max((depths[name] for name in names_of(text) if name in depths), default=0)


def names_of(text: str) -> set[str]:
    """Return the names in a text.

    >>> sorted(names_of("x_I * 2 + T.int64(k)"))
    ['T', 'int64', 'k', 'x_I']
    """
    return set(re.findall(r"[A-Za-z_]\w*", text))

"""Loops over the elements whose innermost loop is over a dense axis, in vectors.

The elements of a fiber of a dense axis of constant width, as the columns of a block, go to consecutive slots
if they are appended. Their slots are counted once for all of them, so that vectors are stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gossamer_formats.conversion.compiled.element_loop import ElementLoop
from gossamer_formats.conversion.compiled.hoisted import INDENTATION, names_of
from gossamer_formats.conversion.compiled.program import indented

WIDTHS = (2, 4, 8, 16)
"""The numbers of lanes."""


class VectorRun(NamedTuple):
    """A loop over elements whose innermost loop, over `variable`, has `width` lanes.

    `outer`: the lines before that loop, with the bindings of names that are the same in all lanes, at
    `depth`. `bindings`: those of other names; `position` is the text of the position of the value.
    """

    outer: tuple[str, ...]
    depth: int
    bindings: tuple[str, ...]
    variable: str
    width: int
    position: str

    def around(self, before: Sequence[str], body: Sequence[str], after: Sequence[str]) -> list[str]:
        """Return the loops: `before` and `after` are outside of the innermost one."""
        inner = [f"for {self.variable} in T.vectorized({self.width}):"]
        inner += indented([*self.bindings, *body])
        return [*self.outer, *indented([*before, *inner, *after], self.depth)]


def vector_run(loop: ElementLoop, statements: Sequence[str]) -> VectorRun | None:
    """Return the loops with statements that bind names; None if the innermost loop is none over a dense axis
    of a suitable width, or if some of its elements are left out."""
    loops = [number for number, line in enumerate(loop.header) if line.lstrip().startswith("for ")]
    if not loops:
        return None
    at = loops[-1]
    line = loop.header[at].strip()
    found = re.fullmatch(r"for (x_\w+) in T\.serial\((\d+)\):", line)
    bindings = [line.strip() for line in loop.header[at + 1 :]]
    depth = (len(loop.header[at]) - len(line)) // INDENTATION
    is_whole = loop.condition is None and depth + 1 == loop.depth
    if found is None or int(found[2]) not in WIDTHS or not is_whole:
        return None
    varying = {found[1]}
    same, others = [], []
    for binding in [*bindings, *statements]:
        name, _, value = binding.partition(" = ")
        if not name.isidentifier():
            return None
        if varying.isdisjoint(names_of(value)):
            same.append(binding)
            continue
        varying.add(name)
        others.append(binding)
    position = next(value for value in bindings if value.startswith("p = "))
    return VectorRun(
        (*loop.header[:at], *indented(same, depth)),
        depth,
        tuple(others),
        found[1],
        int(found[2]),
        position.removeprefix("p = "),
    )

"""The nodes of a function by their kind: one walk for all that ask about a function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from gossamer_ir.nodes import Function, Node
from gossamer_ir.remembered import remembered
from gossamer_ir.walk import walk


def of_kind(function: Function, *kinds: type[Node]) -> Iterator[Any]:
    """The nodes of a function that are of some kinds, those of one kind in the order of `walk`.

    >>> from gossamer_ir.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Const, Store
    >>> function = Function("f", (), (Store("Y", (ZERO,), ONE),))
    >>> [found.text for found in of_kind(function, Const)]
    ['0', '1']
    """
    known = nodes_by_kind(function)
    for kind in kinds:
        yield from known.get(kind, ())


@remembered
def nodes_by_kind(function: Function) -> Mapping[type[Node], list[Any]]:
    """All nodes of a function, itself included."""
    found: defaultdict[type[Node], list[Any]] = defaultdict(list)
    for node in walk(function):
        found[type(node)].append(node)
    return dict(found)

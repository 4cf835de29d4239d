"""Pure functions of nodes that remember what they found."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

N = TypeVar("N")
R = TypeVar("R")

LIMIT = 4
"""How many answers a function remembers: those to what it was asked about last."""


def memoize_by_identity(function: Callable[[N], R]) -> Callable[[N], R]:
    """The function, which finds out only once what several callers ask about one module.

    What it is asked about never changes (a node, a place in a function), so that it is told apart by
    identity, which costs nothing however large it is. Threads may miss what others found, and never
    see half of it.

    >>> from gossamer_ir.core.build import ONE
    >>> asked = []
    >>> @memoize_by_identity
    ... def name_of(node):
    ...     asked.append(node)
    ...     return type(node).__name__
    >>> name_of(ONE), name_of(ONE), len(asked)
    ('Const', 'Const', 1)
    """
    recent: tuple[tuple[N, R], ...] = ()

    @wraps(function)
    def remembering(node: N) -> R:
        nonlocal recent
        for known, found in recent:
            if known is node:
                return found
        result = function(node)
        recent = ((node, result), *recent[: LIMIT - 1])
        return result

    return remembering

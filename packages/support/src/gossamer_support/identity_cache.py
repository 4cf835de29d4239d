"""Memoization of pure functions of nodes, keyed by object identity."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

N = TypeVar("N")
R = TypeVar("R")

MAX_RESULTS = 4
"""The number of results that are kept. Passes and primitives work on one module at a time, so the same
few arguments recur; a small cache also releases old modules soon."""


def memoize_by_identity(function: Callable[[N], R]) -> Callable[[N], R]:
    """Memoize the last `MAX_RESULTS` results, keyed by object identity.

    Arguments must be immutable, such as nodes. Comparing identities takes constant time, comparing equal
    nodes takes time proportional to their size. The cache is thread-safe without a lock: it is an immutable
    tuple that is replaced as a whole, so a race loses an entry at worst.

    >>> node = object()
    >>> calls = []
    >>> @memoize_by_identity
    ... def name_of(node):
    ...     calls.append(node)
    ...     return type(node).__name__
    >>> name_of(node), name_of(node), len(calls)
    ('object', 'object', 1)
    """
    recent: tuple[tuple[N, R], ...] = ()

    @wraps(function)
    def wrapper(node: N) -> R:
        nonlocal recent
        for cached_node, value in recent:
            if cached_node is node:
                return value
        result = function(node)
        recent = ((node, result), *recent[: MAX_RESULTS - 1])
        return result

    return wrapper

"""Named items as a dictionary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def items_by_name(items: Iterable[N]) -> dict[str, N]:
    """Return axes, buffers or other items by their names, in their order.

    >>> from types import SimpleNamespace
    >>> list(items_by_name([SimpleNamespace(name="n"), SimpleNamespace(name="m")]))
    ['n', 'm']
    """
    return {item.name: item for item in items}

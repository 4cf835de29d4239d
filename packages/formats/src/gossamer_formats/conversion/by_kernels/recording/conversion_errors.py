"""Errors that end an attempt to convert a storage by kernels: another attempt, or NumPy, follows."""

from __future__ import annotations


class NotDirectError(Exception):
    """The kernels cannot build this storage from these elements; `needs_order` if they could from sorted and
    distinct ones."""

    def __init__(self, reason: str, *, needs_order: bool = False) -> None:
        super().__init__(reason)
        self.needs_order = needs_order


class UnsortedFibersError(NotDirectError):
    """The storage could be built if the fibers of the source were visited in the order of coordinates."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, needs_order=True)

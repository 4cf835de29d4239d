"""Handles: names that follow what they name through a schedule."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import Module
from gossamer_schedule.refusals import listing, refusal
from gossamer_schedule.result import Result
from gossamer_schedule.sites import name_of, statements


class Handle(str):
    """The name that a loop, block or iteration had after so many steps of a schedule.

    Given to a later step it stands for what has become of it: `split` forwards a loop to the loops it
    makes, `fuse` to the one loop. It is the text of the name to everything else.
    """

    __slots__ = ("taken",)
    taken: int

    def __new__(cls, name: str, *, taken: int) -> Handle:
        handle = super().__new__(cls, name)
        handle.taken = taken
        return handle


def forwarded(handle: Handle, results: Sequence[Result]) -> tuple[str, ...]:
    """The names that a handle stands for after all steps: none where what it named is gone."""
    names: tuple[str, ...] = (str(handle),)
    for result in results[handle.taken :]:
        left = _names(result.module)
        names = tuple(
            name
            for old in names
            for name in result.forwards.get(old, (old,) if old in left else ())
        )
    return names


def _names(module: Module) -> frozenset[str]:
    """What steps can address."""
    return frozenset(
        name_of(found) for function in module.functions for found in statements(function.body)
    )


def current(handle: Handle, results: Sequence[Result]) -> str:
    """The one name that a handle stands for.

    Raises `ScheduleError`: `schedule.handle.gone`, `schedule.handle.several`.
    """
    names = forwarded(handle, results)
    if len(names) == 1:
        return names[0]
    if not names:
        raise refusal(
            "handle.gone",
            f"What the handle '{handle}' stood for is gone.",
            hint=listing("names that exist", sorted(_names(results[-1].module) - {""})),
        )
    raise refusal(
        "handle.several",
        f"The handle '{handle}' stands for several loops.",
        hint=listing("loops it has become", names),
    )

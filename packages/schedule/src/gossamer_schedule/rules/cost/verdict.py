"""What the cost model answers to a question of yes or no."""

from __future__ import annotations

from typing import NamedTuple


class Verdict(NamedTuple):
    """Whether something pays, and why it does or does not."""

    pays: bool
    why: str


def pays(why: str) -> Verdict:
    """Return a verdict for something.

    >>> pays("gathers are fast").pays
    True
    """
    return Verdict(pays=True, why=why)


def pays_not(why: str) -> Verdict:
    """Return a verdict against something."""
    return Verdict(pays=False, why=why)

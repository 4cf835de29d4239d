"""Answers to the question whether something pays, with the reason."""

from __future__ import annotations

import msgspec


class Verdict(msgspec.Struct, frozen=True):
    """An answer, yes or no, with its reason."""

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


def unknown_size_verdict(operand: str) -> Verdict:
    """Return the verdict against something that depends on the size of an operand, for unknown data."""
    return pays_not(f"without statistics of the data, the size of {operand} is unknown")


def chosen_verdict(verdict: Verdict, *, is_prior: bool) -> Verdict:
    """Return a verdict, or at another point of the space of schedules than its own one for what was chosen.

    >>> chosen_verdict(pays_not("gathers are slow"), is_prior=False)
    Verdict(pays=True, why='it was chosen, although the rule itself decides otherwise: gathers are slow')
    """
    if is_prior:
        return verdict
    return pays(f"it was chosen, although the rule itself decides otherwise: {verdict.why}")

"""Answers to the question whether something is profitable, with the reason."""

from __future__ import annotations

import msgspec


class Verdict(msgspec.Struct, frozen=True):
    """An answer, yes or no, with its reason."""

    is_profitable: bool
    why: str


def profitable_verdict(why: str) -> Verdict:
    """Return the verdict that a transformation is profitable.

    >>> profitable_verdict("gathers are fast").is_profitable
    True
    """
    return Verdict(is_profitable=True, why=why)


def unprofitable_verdict(why: str) -> Verdict:
    """Return the verdict that a transformation is not profitable."""
    return Verdict(is_profitable=False, why=why)


def unknown_size_verdict(operand: str) -> Verdict:
    """Return the verdict that a transformation is not profitable, as the size of an operand is unknown."""
    return unprofitable_verdict(f"without statistics of the data, the size of {operand} is unknown")


def chosen_verdict(verdict: Verdict, *, is_prior: bool) -> Verdict:
    """Return a verdict, or at another point of the space of schedules than its own one for what was chosen.

    >>> chosen_verdict(unprofitable_verdict("gathers are slow"), is_prior=False).why
    'it was chosen, although the rule itself decides otherwise: gathers are slow'
    """
    if is_prior:
        return verdict
    return profitable_verdict(
        f"it was chosen, although the rule itself decides otherwise: {verdict.why}"
    )

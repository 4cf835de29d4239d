"""Generators of random numbers beside that of a program."""

from __future__ import annotations

from random import Random


def beside(rng: Random) -> Random:
    """Return a generator that depends on the state of another one, which it does not change.

    Choices that are added later take their numbers from it. So the other programs of a seed stay as they are,
    and with them the programs that are known to reveal a defect (`tests/golden/shown.json`).
    """
    _, state, _ = rng.getstate()
    return Random(f"{state[0]}/{state[-1]}")

"""Selection of the largest of several magnitudes; the first of equal ones counts as larger."""

from __future__ import annotations

import numpy as np

from gossamer_support.arrays import Array

FEW = 32
"""The largest group whose members are compared pairwise, which takes a pass over all for each distance."""


def are_largest(magnitudes: Array, count: int) -> Array:
    """Return which are the `count` largest magnitudes.

    >>> are_largest(np.array([1.0, 3.0, 1.0, 2.0]), 3)
    array([ True,  True, False,  True])
    """
    if count <= 0:
        return np.zeros(magnitudes.size, bool)
    if count >= magnitudes.size:
        return np.ones(magnitudes.size, bool)
    least = np.partition(magnitudes, magnitudes.size - count)[magnitudes.size - count]
    chosen: Array = magnitudes > least
    # In order, so that of equal magnitudes the first are chosen.
    equal = np.flatnonzero(magnitudes == least)
    chosen[equal[: count - np.count_nonzero(chosen)]] = True
    return chosen


def ranks_in_groups(groups: Array, magnitudes: Array) -> Array:
    """Return the rank of each magnitude in its group, from 0 for the largest. Groups are consecutive.

    >>> ranks_in_groups(np.array([0, 0, 0, 4, 4]), np.array([1.0, 5.0, 1.0, 2.0, 3.0]))
    array([1, 0, 2, 1, 0])
    """
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1])[: groups.size])
    lengths = np.diff(np.append(starts, groups.size))
    ranks = np.zeros(groups.size, np.int64)
    longest = int(lengths.max(initial=0))
    if longest > FEW:
        order = np.lexsort((-magnitudes, np.repeat(np.arange(starts.size), lengths)))
        ranks[order] = np.arange(groups.size) - np.repeat(starts, lengths)
        return ranks
    for distance in range(1, longest):
        together = groups[distance:] == groups[:-distance]
        is_later_larger = magnitudes[distance:] > magnitudes[:-distance]
        ranks[:-distance] += together & is_later_larger
        ranks[distance:] += together & ~is_later_larger
    return ranks

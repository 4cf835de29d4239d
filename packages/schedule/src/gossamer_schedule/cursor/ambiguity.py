"""Warnings about names that may address another loop than intended.

A step that makes a loop whose name is taken appends a number: if a loop `k_1` exists, splitting `k` gives
`k_0` and `k_1_1`. A later step that addresses `k_1` may mean either loop. There is no warning if an earlier
step of the schedule made that `k_1`: the author has then seen the name.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Set

from gossamer_ir.nodes import Module
from gossamer_schedule.cursor.handles import loop_names
from gossamer_schedule.primitive_result import PrimitiveResult


class AmbiguousNameWarning(UserWarning):
    """A step addresses a loop by a text that an earlier step would have given to another loop.

    >>> import warnings
    >>> from gossamer_schedule import AmbiguousNameWarning
    >>> warnings.simplefilter("error", AmbiguousNameWarning)  # makes it an error
    """


def name_conflicts(
    before: Module, result: PrimitiveResult, *, made: Set[str] = frozenset()
) -> Mapping[str, str]:
    """Return the existing loops whose names a step would have used, with the loops that it made instead.

    Loops that earlier steps have made are left out.

    >>> from gossamer_schedule import split
    >>> from gossamer_testkit.examples import SPMM
    >>> name_conflicts(SPMM, split(SPMM, "k", factors=(None, 8)))
    {}
    """
    numbered = {
        name: match[1] for name in result.names if (match := re.fullmatch(r"(\w+)_\d+", name))
    }
    if not numbered:
        return {}
    old, new = loop_names(before), loop_names(result.module)
    return {
        base: name
        for name, base in numbered.items()
        if name in new - old and base in old & new - made and base not in result.forwards
    }


def warn_ambiguous_name(name: str, other: str, op: str) -> None:
    """Warn about a name that was taken when step `op` made the loop `other`."""
    warnings.warn(
        f"'{name}' is the loop that existed before {op} made '{other}', which would otherwise have this "
        f"name. Give a handle, for example of get_loops, or write '{other}' to address the new loop.",
        AmbiguousNameWarning,
        stacklevel=5,
    )

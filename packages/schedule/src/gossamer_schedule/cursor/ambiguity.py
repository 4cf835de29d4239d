"""Names that may mean another loop than the reader thinks.

A step that makes a loop whose name is taken adds a number: where a loop `k_1` exists, the halves of `k`
are `k_0` and `k_1_1`. Who then writes `k_1` may mean either. Where an earlier step has made that `k_1`, who
wrote the step has seen the name, and is not warned.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Set

from gossamer_ir.nodes import Module
from gossamer_schedule.cursor.handles import loop_names
from gossamer_schedule.result import Result

_NUMBERED = re.compile(r"(\w+)_\d+")


class AmbiguousNameWarning(UserWarning):
    """A step addresses a loop by a text that an earlier step would have given to another loop.

    >>> import warnings
    >>> from gossamer_schedule import AmbiguousNameWarning
    >>> warnings.simplefilter("error", AmbiguousNameWarning)  # for those who would rather stop
    """


def doubles(before: Module, result: Result, *, made: Set[str] = frozenset()) -> Mapping[str, str]:
    """The loops that kept a step from using their names, with the loops that it made instead; without
    those that earlier steps have made.

    >>> from gossamer_schedule import split
    >>> from gossamer_testkit.examples import SPMM
    >>> doubles(SPMM, split(SPMM, "k", factors=(None, 8)))
    {}
    """
    numbered = {name: found[1] for name in result.names if (found := _NUMBERED.fullmatch(name))}
    if not numbered:
        return {}
    old, new = loop_names(before), loop_names(result.module)
    return {
        base: name
        for name, base in numbered.items()
        if name in new - old and base in old & new - made and base not in result.forwards
    }


def warn(name: str, other: str, op: str) -> None:
    """Warns about a name that was taken when a step made a loop, which is called otherwise since."""
    warnings.warn(
        f"'{name}' is the loop that had this name before {op} made '{other}', whose name it would "
        f"have been. Give a handle, for example of get_loops, or write '{other}' if that is meant.",
        AmbiguousNameWarning,
        stacklevel=5,
    )

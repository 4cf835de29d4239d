"""The guards before a statement check each part of a condition once, and never less than what is needed."""

from __future__ import annotations

import pytest

from gossamer_ir.core.build import ZERO, index, index_var
from gossamer_ir.core.conditions import conjunction, short_circuit_or
from gossamer_ir.nodes import Compare, Guard
from gossamer_lower.bounds_checks.check_list import CheckList

AT_LEAST = Compare("ge", index_var("i"), ZERO)
LESS = Compare("lt", index_var("i"), index_var("n"))
EMPTY = Compare("eq", index_var("n"), ZERO)
UNUSED = Compare("lt", index_var("j"), index(3))
BOTH = short_circuit_or(EMPTY, UNUSED)


def checks(*required):
    """The guards for conditions with their exceptions."""
    checks = CheckList()
    for condition, unless in required:
        checks.require(condition, unless, "X")
    return list(checks)


def test_a_later_guard_has_only_the_parts_that_none_has_checked():
    whole = conjunction(AT_LEAST, LESS)
    assert checks((AT_LEAST, None), (whole, None)) == [Guard(AT_LEAST, "X"), Guard(LESS, "X")]


@pytest.mark.parametrize(
    ("first", "second", "needed"),
    [
        (None, EMPTY, 1),
        (EMPTY, EMPTY, 1),
        # The first exception is evaluated first, so a guard with fewer exceptions checks more.
        (EMPTY, BOTH, 1),
        (UNUSED, BOTH, 2),
        (EMPTY, None, 2),
        (BOTH, EMPTY, 2),
    ],
    ids=str,
)
def test_a_part_is_checked_again_only_if_the_guard_before_has_other_exceptions(
    first, second, needed
):
    assert len(checks((LESS, first), (LESS, second))) == needed

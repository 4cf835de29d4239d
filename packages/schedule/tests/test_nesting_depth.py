"""Expressions that are nested too deeply are rejected with an error."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer_ir.core.build import add
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Module, Store
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_schedule import split
from gossamer_testkit.examples import SCALE

LEVELS = 2000


def deep() -> Module:
    """A module that stores a sum of a sum of a sum."""

    def rule(node):
        if not isinstance(node, Store):
            return None
        value = node.value
        for _ in range(LEVELS):
            value = add(value, node.value)
        return replace(node, value=value)

    return rewrite(SCALE, rule)


def test_what_is_nested_too_deep_is_refused():
    with pytest.raises(ScheduleError) as caught:
        split(deep(), "i", factors=(None, 2))
    assert caught.value.code == "schedule.split.depth"
    assert "nested too deep" in str(caught.value)

"""The error with which a call is refused."""

from __future__ import annotations

import pytest

from gossamer_ir.errors import ScheduleError


def code_of(primitive, /, *args, **keywords) -> str:
    with pytest.raises(ScheduleError) as caught:
        primitive(*args, **keywords)
    return caught.value.code


def reason_of(primitive, /, *args, **keywords) -> str:
    """The code without the part that all errors of schedules have."""
    return code_of(primitive, *args, **keywords).removeprefix("schedule.")

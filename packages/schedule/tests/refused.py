"""The error code with which a call is refused."""

from __future__ import annotations

import pytest

from gossamer_ir.errors import ScheduleError


def code_of(primitive, /, *args, **keywords) -> str:
    with pytest.raises(ScheduleError) as caught:
        primitive(*args, **keywords)
    return caught.value.code

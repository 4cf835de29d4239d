"""The change that a primitive makes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer_ir.interchange.records import Arg
from gossamer_ir.nodes import Function
from gossamer_schedule.cursor.cursor_at import Cursor


class Change(msgspec.Struct, frozen=True):
    """The cursor at the changed function, and the names that the primitive made or moved.

    `forwards` and `values` are those of the `PrimitiveResult` that the decorator `primitive` makes of it.
    `recorded` holds arguments that the step records instead of the given ones, such as the decision that a
    sampling step has drawn.
    """

    root: Cursor[Function]
    names: tuple[str, ...]
    forwards: Mapping[str, tuple[str, ...]] = {}
    values: dict[str, int | str | None] = {}
    recorded: Mapping[str, Arg] = {}

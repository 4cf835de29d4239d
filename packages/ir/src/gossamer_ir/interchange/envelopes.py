"""The outermost object of serialized text: a header with the version, and a module or a record."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from gossamer_ir.interchange.records import (
    Intrinsic,
    Schedule,
    ScheduleReport,
    ScheduleSpace,
    Signature,
    Stats,
    Target,
)
from gossamer_ir.nodes import FormatDescription, Function, StageName

VERSION = (0, 1)
"""The major and minor version of the language that is written."""

AnyRecord: TypeAlias = (
    ScheduleSpace
    | ScheduleReport
    | Schedule
    | Target
    | Stats
    | Signature
    | Intrinsic
    | FormatDescription
)
"""The records that `dumps_record` accepts."""

RECORDS: dict[type[AnyRecord], str] = {
    ScheduleSpace: "ScheduleSpace",
    ScheduleReport: "Choice",  # the name of the class in version 0.1
    Schedule: "Schedule",
    Target: "Target",
    Stats: "Stats",
    Signature: "Signature",
    Intrinsic: "Intrinsic",
    FormatDescription: "FormatDescription",
}
"""The types of records, each with its name in serialized text, which must not change with the class."""


class ModuleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A serialized module: the header, then the fields of `Module`."""

    gossamer_ir: tuple[int, int]
    stage: StageName
    functions: tuple[Function, ...]
    entry: str


class RecordText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A serialized record: the header, the name of its kind, and its value."""

    gossamer_ir: tuple[int, int]
    record: str
    value: msgspec.Raw

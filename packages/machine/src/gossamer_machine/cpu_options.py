"""The options of a target that describe a CPU to the rules for schedules: the one list of them.

A backend for CPUs adds them to a resolved target and checks those that a user gives. Rules read them. In code
generation, they change only how gathers are compiled, and what becomes of scalable vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal, TypeAlias, get_args

import msgspec

from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

GatherSpeed: TypeAlias = Literal["fast", "moderate", "slow"]
GATHER_SPEEDS: tuple[GatherSpeed, ...] = get_args(GatherSpeed)
"""Time of a vector of gathered elements compared with loads of its elements one by one: less, about as
long, or longer."""


NATIVE_VSCALE = "native"
"""The vscale that follows from the width of the vectors of a target."""
NO_VSCALE = "none"
"""The vscale of a target on which scalable vectors are an error."""


class CpuOption(msgspec.Struct, frozen=True):
    """An option: its name, the function that parses a value (None: it is not valid), the default, and the
    values in words."""

    name: str
    parse: Callable[[str], int | str | None]
    default: int | str
    expected: str

    def value_of(self, target: Target) -> int | str:
        """Return the value that a target gives, the default if it gives none that is valid.

        >>> CPU_OPTIONS[0].value_of(Target.parse("generic-cpu:vector_bits=256"))
        256
        """
        value = self.parse(target.option(self.name))
        return self.default if value is None else value


def _bytes(text: str) -> int | None:
    return _positive(text, limit=1 << 62)


def _vscale(text: str) -> int | str | None:
    if text in (NATIVE_VSCALE, NO_VSCALE):
        return text
    return {"1": 1, "2": 2, "4": 4, "8": 8, "16": 16}.get(text)


def _cores(text: str) -> int | None:
    return _positive(text, limit=1 << 16)


def _positive(text: str, *, limit: int) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) < 20 and 0 < int(text) < limit
    return int(text) if is_number else None


CPU_OPTIONS = (
    CpuOption(
        "vector_bits",
        {"128": 128, "256": 256, "512": 512}.get,
        512,
        "one of 128, 256, 512",
    ),
    CpuOption("l2", _bytes, 1 << 20, "a number of bytes"),
    CpuOption("l3", _bytes, 32 << 20, "a number of bytes"),
    CpuOption(
        "gathers",
        dict[str, str](zip(GATHER_SPEEDS, GATHER_SPEEDS, strict=True)).get,
        "moderate",
        f"one of {', '.join(GATHER_SPEEDS)}",
    ),
    CpuOption("cores", _cores, 32, "a number of cores"),
    CpuOption(
        "vscale",
        _vscale,
        NATIVE_VSCALE,
        f"one of {NATIVE_VSCALE}, {NO_VSCALE}, 1, 2, 4, 8, 16",
    ),
)
"""The defaults describe a server with vectors of 512 bits."""


def require_options(
    target: Target, *, names: Collection[str], model: Mapping[str, CpuOption], errors: str
) -> None:
    """Raise `ArgumentError` unless the options of a target have these names, and those of the `model` values
    that are valid.

    The codes are `<errors>.option` and `<errors>.option_value`.

    >>> cores = {option.name: option for option in CPU_OPTIONS if option.name == "cores"}
    >>> target = Target.parse("toy:cores=4,cpu=any")
    >>> require_options(target, names=("cpu", *cores), model=cores, errors="toy")
    """
    for name, value in target.options:
        if name not in names:
            raise ArgumentError(
                f"{errors}.option",
                f"'{name}' is not an option of {target.backend}.",
                hint=f"Expected one of {', '.join(names)}.",
            )
        if name in model and model[name].parse(value) is None:
            raise option_value_error(target, name, expected=model[name].expected, errors=errors)


def option_value_error(target: Target, name: str, *, expected: str, errors: str) -> ArgumentError:
    """Return the error (`<errors>.option_value`) for an option whose value is not as `expected`, in words."""
    return ArgumentError(
        f"{errors}.option_value",
        f"The option {name} of '{target.text}' is '{target.option(name)}'.",
        hint=f"Expected {expected}.",
    )

"""Every pass by its name, and how one is applied to a module."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any, get_type_hints

import msgspec

from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Module
from gossamer_lower.constructs import has_construct
from gossamer_lower.lowering_pass import PassRecord, listed_records, require_stage
from gossamer_lower.passes import LANGUAGE_PASSES, PASS_RECORDS
from gossamer_lower.pipelines.bounds_check_flat import bounds_check_flat
from gossamer_lower.pipelines.lower_to_device import lower_to_device
from gossamer_lower.pipelines.lower_to_flat import lower_to_flat
from gossamer_support.items_by_name import items_by_name

COMPOSED_PASSES = listed_records((lower_to_flat, lower_to_device, bounds_check_flat))
"""Passes made of those of `passes.py`, which can therefore not be in that list themselves."""

PASSES: dict[str, PassRecord] = items_by_name((*PASS_RECORDS, *COMPOSED_PASSES, *LANGUAGE_PASSES))
"""Every pass by its name, in the order in which they run."""


def apply_pass(name: str, module: Module, *, arguments: Mapping[str, Any] | None = None) -> Module:
    """Apply a pass by its name; `arguments` are those besides the module.

    Raises `ArgumentError`: `pass.name`, `pass.arguments` (missing, unknown or of a wrong type), `pass.stage`
    (the module is of another stage), `pass.order` (it has constructs that an earlier pass must have removed);
    and the errors of the pass.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program("for i in T.serial(n): Y[i + 0] = X[i] ")
    >>> print(body_text(apply_pass("simplify", before)))
    for i in T.serial(n):
        Y[i] = X[i]
    """
    record = PASSES.get(name)
    if record is None:
        raise ArgumentError(
            "pass.name", f"There is no pass '{name}'.", hint="gossamer opt --list shows them."
        )
    return apply_record(record, module, arguments=arguments)


def apply_record(
    record: PassRecord, module: Module, *, arguments: Mapping[str, Any] | None = None
) -> Module:
    """Apply the pass of a record, which need not be one of `PASSES`; arguments and errors are those of
    `apply_pass`."""
    require_stage(record, module)
    for construct in record.without:
        _require_none_left(record, construct, module)
    return record.function(module, **_arguments(record, arguments or {}))


def _require_none_left(record: PassRecord, construct: str, module: Module) -> None:
    if has_construct(module, construct):
        earlier = next(key for key, other in PASSES.items() if construct in other.removes)
        raise ArgumentError(
            "pass.order",
            f"The pass '{record.name}' takes a module without {construct}, but this one has some.",
            hint=f"Apply '{earlier}' before.",
        )


def _arguments(record: PassRecord, passed: Mapping[str, Any]) -> dict[str, Any]:
    _, *parameters = inspect.signature(record.function).parameters.values()
    by_name = items_by_name(parameters)
    wrong = [key for key in passed if key not in by_name]
    missing = [
        key
        for key, parameter in by_name.items()
        if parameter.default is parameter.empty and key not in passed
    ]
    if wrong or missing:
        what = f"has no argument '{wrong[0]}'" if wrong else f"needs the argument '{missing[0]}'"
        listed = f"Its arguments are {', '.join(by_name)}." if by_name else "It has no arguments."
        raise ArgumentError("pass.arguments", f"The pass '{record.name}' {what}.", hint=listed)
    types = get_type_hints(record.function)
    return {key: _read(record.name, key, value, wanted=types[key]) for key, value in passed.items()}


ARGUMENT_TYPES: Mapping[Any, str] = {
    bool: "true or false",
    int: "an integer",
    str: "text",
    int | None: "an integer",
    str | None: "text",
    Collection[str]: "a list of names",
    Collection[str] | None: "a list of names",
    tuple[str, ...]: "a list of names",
    tuple[int, ...]: "a list of integers",
}
"""The types that an argument of a pass may have, each with its description in errors. A test checks that
each argument has one of them."""


def _read(name: str, argument: str, value: object, *, wanted: Any) -> object:
    """Return an argument, converted from JSON or from literals to its type."""
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        raise ArgumentError(
            "pass.arguments",
            f"The argument '{argument}' of the pass '{name}' is {value!r}; expected "
            f"{ARGUMENT_TYPES[wanted]}.",
        ) from None

"""Every pass by its name, with what it takes: the stage, and what must not be left in the module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import msgspec

from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import (
    Block,
    For,
    Module,
    Node,
    Search,
    StageName,
)
from gossamer_ir.walk import walk

_Test = Callable[[Node], bool]

_LEFT: dict[str, tuple[_Test, str]] = {
    "blocks": (lambda node: isinstance(node, Block), "lower_blocks"),
    "vectorized loops": (
        lambda node: isinstance(node, For) and node.kind == "vectorized",
        "vectorize_loops",
    ),
    "unrolled loops": (
        lambda node: isinstance(node, For) and node.kind == "unrolled",
        "unroll_loops",
    ),
    "searches": (lambda node: isinstance(node, Search), "expand_search"),
}
"""What a pass may not find in a module, and the pass that takes it out."""


class Pass(msgspec.Struct, frozen=True):
    """A pass takes a module of one of the stages `takes` (any, where there are none) without `without`,
    and gives one of `gives`, or of the same stage."""

    takes: tuple[StageName, ...] = ()
    gives: StageName | None = None
    without: tuple[str, ...] = ()


_LOOPS = Pass(("loop",), "loop", ("blocks",))

PASSES: dict[str, Pass] = {
    "lower_iterations": Pass(("coordinate",), "position"),
    "lower_buffers": Pass(("position",), "loop"),
    "lower_to_flat": Pass(("loop",), "flat"),
    "extract_preprocess": Pass(("position", "loop")),
    "remove_preprocess": Pass(("position", "loop")),
    "specialize_buffer": Pass(("loop",), "loop"),
    "remove_unused_args": Pass(),
    "expand_reducers": Pass(("loop",), "loop"),
    "lower_blocks": Pass(("loop",), "loop"),
    "plan_allocations": _LOOPS,
    "hoist_conditions": _LOOPS,
    "guard_accesses": _LOOPS,
    "hoist_guards": _LOOPS,
    "peel_last": _LOOPS,
    "peel_rest": _LOOPS,
    "vectorize_loops": _LOOPS,
    "unroll_loops": _LOOPS,
    "remove_masks": _LOOPS,
    "combine_lane_reductions": _LOOPS,
    "hoist_vectors": _LOOPS,
    "hoist_searches": _LOOPS,
    "merge_searches": _LOOPS,
    "expand_search": _LOOPS,
    "part_loops": _LOOPS,
    "outline_parallel": Pass(
        ("loop",), "flat", ("blocks", "vectorized loops", "unrolled loops", "searches")
    ),
    "hoist_allocations": Pass(("flat",), "flat"),
    "lower_atomics": Pass(("flat",), "flat"),
    "unswitch_loops": Pass(("flat",), "flat"),
    "guard_flat": Pass(("flat",), "flat"),
    "lower_math": Pass(("flat",), "flat"),
    "simplify": Pass(),
    "declare_regions": Pass(),
}
"""Those from one stage to the next, and what `lower_to_flat` consists of, in its order."""

_HOMES = {
    "lower_to_flat": "gossamer_lower.pipeline",
    "simplify": "gossamer_ir.simplify",
    "declare_regions": "gossamer_ir.regions",
}


def function_of(name: str) -> Callable[..., Module]:
    """The function of a pass.

    >>> function_of("lower_buffers").__module__
    'gossamer_lower.lower_buffers'
    """
    home = import_module(_HOMES.get(name, f"gossamer_lower.{name}"))
    found: Callable[..., Module] = getattr(home, name)
    return found


def apply_pass(name: str, module: Module, *, arguments: Mapping[str, Any] | None = None) -> Module:
    """Applies a pass by its name; `arguments` are those that it takes besides the module.

    Raises `ArgumentError`: `pass.name`, `pass.arguments` (missing, unknown or of a wrong type),
    `pass.stage` and `pass.order` (the module is of another stage, or holds what an earlier pass must
    have taken out), and what the pass raises.

    >>> from gossamer_lower.examples import body_text, program
    >>> before = program("for i in T.serial(n): Y[i + 0] = X[i] ")
    >>> print(body_text(apply_pass("simplify", before)))
    for i in T.serial(n):
        Y[i] = X[i]
    """
    found = PASSES.get(name)
    if found is None:
        raise ArgumentError(
            "pass.name", f"There is no pass '{name}'.", hint="gossamer opt --list shows them."
        )
    _require_stage(name, found, module)
    for what in found.without:
        _require_none_left(name, what, module)
    function = function_of(name)
    return function(module, **_arguments(name, function, arguments or {}))


def _require_stage(name: str, found: Pass, module: Module) -> None:
    if not found.takes or module.stage in found.takes:
        return
    raise ArgumentError(
        "pass.stage",
        f"The pass {name} takes a module of the {' or '.join(found.takes)} stage, this one is of the "
        f"{module.stage} stage.",
        hint="gossamer opt --list says what each takes.",
    )


def _require_none_left(name: str, what: str, module: Module) -> None:
    is_left, earlier = _LEFT[what]
    if any(is_left(node) for node in walk(module)):
        raise ArgumentError(
            "pass.order",
            f"The pass {name} takes a module without {what}, and it has some.",
            hint=f"Apply {earlier} before.",
        )


def _arguments(
    name: str, function: Callable[..., Module], given: Mapping[str, Any]
) -> dict[str, Any]:
    _, *parameters = inspect.signature(function).parameters.values()
    known = {found.name: found for found in parameters}
    wrong = [key for key in given if key not in known]
    missing = [
        key for key, found in known.items() if found.default is found.empty and key not in given
    ]
    if wrong or missing:
        what = f"has no argument '{wrong[0]}'" if wrong else f"needs the argument '{missing[0]}'"
        listed = f"Its arguments are {', '.join(known)}." if known else "It has no arguments."
        raise ArgumentError("pass.arguments", f"The pass {name} {what}.", hint=listed)
    return {key: _read(name, known[key], value) for key, value in given.items()}


_WHAT = {
    "str": "text",
    "Collection[str]": "a list of names",
    "tuple[str, ...]": "a list of names",
    "tuple[int, ...]": "a list of integers",
}
"""What the annotations of passes mean in a list of arguments."""


def _read(name: str, parameter: inspect.Parameter, value: object) -> object:
    """A text, or a list of names or integers, which is what passes take."""
    try:
        return msgspec.convert(value, _TYPES[parameter.annotation])
    except msgspec.ValidationError:
        raise ArgumentError(
            "pass.arguments",
            f"The argument '{parameter.name}' of the pass {name} is {value!r}, expected "
            f"{_WHAT[parameter.annotation]}.",
        ) from None


_TYPES: Mapping[str, Any] = {
    "str": str,
    "Collection[str]": frozenset[str],
    "tuple[str, ...]": tuple[str, ...],
    "tuple[int, ...]": tuple[int, ...],
}

"""Every pass by its name, with what it takes: the stage, and what must not be left in the module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.nodes import (
    Block,
    Combine,
    For,
    Function,
    Iteration,
    Module,
    Node,
    Search,
    StageName,
)  # fmt: skip
from gossamer_ir.traversal.node_index import of_kind
from gossamer_ir.verify import diagnostics

_Finder = Callable[[Function], bool]


def _has(*kinds: type[Node]) -> _Finder:
    return lambda function: any(True for _ in of_kind(function, *kinds))


def _has_loops(kind: str) -> _Finder:
    return lambda function: any(loop.kind == kind for loop in of_kind(function, For))


def _has_declared(function: Function) -> bool:
    return any(found.handle is None for found in function.buffers)


CONTENTS: dict[str, _Finder] = {
    "iterations": _has(Iteration),
    "axes": lambda function: bool(function.axes),
    "reducers": _has(Combine),
    "blocks": _has(Block),
    "declared scratch": _has_declared,
    "vectorized loops": _has_loops("vectorized"),
    "unrolled loops": _has_loops("unrolled"),
    "searches": _has(Search),
    "parallel loops": _has_loops("parallel"),
}
"""What a function may hold until a pass takes it out."""


class Pass(msgspec.Struct, frozen=True):
    """A pass takes a module of one of the stages `takes` (any, where there are none) without `without`,
    and gives one of `gives`, or of the same stage, in which there is none of what it `removes`."""

    takes: tuple[StageName, ...] = ()
    gives: StageName | None = None
    without: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()


_LOOPS = Pass(("loop",), "loop", ("blocks",))

PASSES: dict[str, Pass] = {
    "lower_iterations": Pass(("coordinate",), "position", removes=("iterations",)),
    "lower_buffers": Pass(("position",), "loop", removes=("axes",)),
    "lower_to_flat": Pass(("loop",), "flat", removes=tuple(CONTENTS)),
    "extract_inspector": Pass(("position", "loop")),
    "use_inspector_results": Pass(("position", "loop")),
    "specialize_buffer": Pass(("loop",), "loop"),
    "remove_unused_args": Pass(),
    "expand_reducers": Pass(("loop",), "loop", removes=("reducers",)),
    "lower_blocks": Pass(("loop",), "loop", removes=("blocks",)),
    "contract_buffers": replace(_LOOPS, removes=("declared scratch",)),
    "unswitch_uniform_conditions": _LOOPS,
    "insert_bounds_checks": _LOOPS,
    "hoist_bounds_checks": _LOOPS,
    "peel_last_iteration": _LOOPS,
    "peel_remainder": _LOOPS,
    "vectorize_loops": replace(_LOOPS, removes=("vectorized loops",)),
    "unroll_loops": replace(_LOOPS, removes=("unrolled loops",)),
    "eliminate_redundant_masks": _LOOPS,
    "combine_lane_reductions": _LOOPS,
    "hoist_invariant_loads": _LOOPS,
    "hoist_searches": _LOOPS,
    "merge_searches": _LOOPS,
    "expand_search": replace(_LOOPS, removes=("searches",)),
    "split_index_set": _LOOPS,
    "outline_parallel": Pass(
        ("loop",),
        "flat",
        without=("blocks", "vectorized loops", "unrolled loops", "searches"),
        removes=("parallel loops",),
    ),
    "hoist_allocations": Pass(("flat",), "flat"),
    "lower_atomics": Pass(("flat",), "flat"),
    "unswitch_on_alignment": Pass(("flat",), "flat"),
    "bounds_check_flat": Pass(("flat",), "flat"),
    "lower_math": Pass(("flat",), "flat"),
    "simplify": Pass(),
    "declare_regions": Pass(),
}
"""Those from one stage to the next, and what `lower_to_flat` consists of, in its order."""

_HOMES = {
    "simplify": "gossamer_ir.arith.simplify",
    "declare_regions": "gossamer_ir.analysis.regions",
}


def function_of(name: str) -> Callable[..., Module]:
    """The function of a pass.

    >>> function_of("lower_buffers").__module__
    'gossamer_lower.buffers.lower_buffers'
    """
    home = import_module(_HOMES.get(name, "gossamer_lower"))
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
    if holds(module, what):
        earlier = next(key for key, found in PASSES.items() if found.removes == (what,))
        raise ArgumentError(
            "pass.order",
            f"The pass {name} takes a module without {what}, and it has some.",
            hint=f"Apply {earlier} before.",
        )


def holds(module: Module, what: str) -> bool:
    """Whether a function of a module holds any of these `CONTENTS`."""
    return any(map(CONTENTS[what], module.functions))


def require_kept_promise(name: str, module: Module) -> None:
    """What a pass has given is a valid module of the stage and with the contents that the table says.

    Raises `InternalError`: a pass that breaks its promise is a bug of the pass.
    """
    promised = PASSES[name]
    wrong = [f"{one.message} [{one.code}]" for one in diagnostics(module)]
    wrong += [f"it still holds {what}" for what in promised.removes if holds(module, what)]
    if promised.gives not in (None, module.stage):
        wrong.append(f"it is of the {module.stage} stage")
    if wrong:
        raise InternalError(f"The pass {name} has given a module that is wrong: {'; '.join(wrong)}")


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
    "bool": "true or false",
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
    "bool": bool,
    "str": str,
    "Collection[str]": frozenset[str],
    "tuple[str, ...]": tuple[str, ...],
    "tuple[int, ...]": tuple[int, ...],
}

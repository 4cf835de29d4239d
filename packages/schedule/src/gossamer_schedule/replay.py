"""Applying a trace: the same steps on another module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gossamer_ir.contracts import Step, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.primitives.cache_write import cache_write
from gossamer_schedule.primitives.decompose_reduction import decompose_reduction
from gossamer_schedule.primitives.parallel import parallel
from gossamer_schedule.primitives.prefetch import prefetch
from gossamer_schedule.primitives.reorder import reorder
from gossamer_schedule.primitives.reverse_compute_at import reverse_compute_at
from gossamer_schedule.primitives.sparse_fuse import sparse_fuse
from gossamer_schedule.primitives.sparse_reorder import sparse_reorder
from gossamer_schedule.primitives.sparse_unfuse import sparse_unfuse
from gossamer_schedule.primitives.split import split
from gossamer_schedule.primitives.unroll import unroll
from gossamer_schedule.primitives.vectorize import vectorize
from gossamer_schedule.refusals import listing, refusal
from gossamer_schedule.result import Result

PRIMITIVES: dict[str, Callable[..., Result]] = {
    "cache_write": cache_write,
    "decompose_reduction": decompose_reduction,
    "parallel": parallel,
    "prefetch": prefetch,
    "reorder": reorder,
    "reverse_compute_at": reverse_compute_at,
    "sparse_fuse": sparse_fuse,
    "sparse_reorder": sparse_reorder,
    "sparse_unfuse": sparse_unfuse,
    "split": split,
    "unroll": unroll,
    "vectorize": vectorize,
}
"""Every primitive by the name that steps give it."""


def apply(module: Module, step: Step) -> Result:
    """Applies one step of a trace.

    Raises `ScheduleError`: `schedule.replay.no_primitive`, `schedule.replay.arguments` (missing,
    unknown, or of a wrong type), and whatever the primitive raises.

    >>> from gossamer_ir.contracts import Step
    >>> from gossamer_schedule.examples import SCALE
    >>> apply(SCALE, Step("split", {"loop": "i", "factors": (None, 8)})).names
    ('i_0', 'i_1')
    >>> apply(SCALE, Step("split", {"loop": "i"}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.ScheduleError: The step split needs argument 'factors'. ...
    """
    primitive = PRIMITIVES.get(step.op)
    if primitive is None:
        raise refusal(
            "replay.no_primitive",
            f"There is no primitive '{step.op}'.",
            hint=listing("primitives", PRIMITIVES),
        )
    return primitive(module, **_arguments(step))


def replay(module: Module, trace: Trace) -> Module:
    """Applies the steps of a trace in order; errors as in `apply`.

    >>> from gossamer_ir.contracts import Step
    >>> from gossamer_schedule.examples import SCALE
    >>> from gossamer_schedule.show import body_text
    >>> steps = (Step("split", {"loop": "i", "factors": (None, 8)}), Step("vectorize", {"loop": "i_1"}))
    >>> print(body_text(replay(SCALE, steps)))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.vectorized(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    """
    for step in trace:
        module = apply(module, step).module
    return module


def _arguments(step: Step) -> dict[str, Any]:
    types, required = _parameters(step.op)
    wrong = [name for name in step.args if name not in types]
    missing = [name for name in required if name not in step.args]
    if wrong or missing:
        what = f"has no argument '{wrong[0]}'" if wrong else f"needs argument '{missing[0]}'"
        raise refusal(
            "replay.arguments",
            f"The step {step.op} {what}.",
            hint=listing("arguments", types),
        )
    return {name: _checked(step, name, types[name]) for name in step.args}


def _checked(step: Step, name: str, expected: Any) -> Any:
    try:
        return msgspec.convert(step.args[name], expected)
    except msgspec.ValidationError as error:
        raise refusal(
            "replay.arguments",
            f"The argument '{name}' of the step {step.op} is {step.args[name]!r}, which is not "
            "of its type.",
            hint=f"{error}.",
        ) from error


_TYPES: dict[str, Any] = {
    "int": int,
    "str": str,
    "str | None": str | None,
    "int | None": int | None,
    "tuple[str, ...]": tuple[str, ...],
    "tuple[int | str | None, ...]": tuple[int | str | None, ...],
}
"""The types of arguments by how primitives write them (evaluating annotations takes longer than a
schedule)."""


def parameters_of(op: str) -> tuple[str, ...]:
    """The arguments of a primitive, optional ones with dots.

    >>> parameters_of("parallel")[:2]
    ('loop', 'weight=...')
    """
    types, required = _parameters(op)
    return tuple(name if name in required else f"{name}=..." for name in types)


def _parameters(op: str) -> tuple[dict[str, Any], list[str]]:
    """The types of a primitive's arguments, and which must be given."""
    primitive: Any = PRIMITIVES[op]
    hints = primitive.__annotations__
    types = {name: _TYPES[hints[name]] for name in hints if name not in ("module", "return")}
    return types, [name for name in types if name not in primitive.__kwdefaults__]

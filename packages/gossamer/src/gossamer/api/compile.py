"""`compile`: a kernel from a program in any form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from gossamer.compilation.build_kernels import KERNELS
from gossamer.compilation.pipeline import stage_lowering
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_backend import Kernel
from gossamer_ir.errors import ArgumentError, ScheduleError
from gossamer_ir.interchange.records import Schedule, Target
from gossamer_ir.interchange.serialization import dumps, dumps_record, loads, loads_record
from gossamer_ir.nodes import STAGES, Module, StageName
from gossamer_ir.script import parse_function, parse_module
from gossamer_ir.transform.specialize import specialize as specialize_module
from gossamer_ir.verify import verify
from gossamer_support.message_texts import either

if TYPE_CHECKING:
    from gossamer_schedule import ScheduleBuilder

ProgramSource: TypeAlias = Module | str | Callable[..., Any]
"""A module, a script's text, or a decorated function."""


def compile(
    program: ProgramSource,
    *,
    target: str | Target = DEFAULT_TARGET,
    schedule: Schedule | ScheduleBuilder | None = None,
    specialize: Mapping[str, int] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> Kernel:
    """Compile a script, a decorated function or a module for a target.

    `specialize` maps scalar parameters to values; `dtypes` maps buffers (their values) and axes (their index
    arrays) to dtypes. `schedule` is a `Schedule`, or a builder of one (`gossamer.schedule`); by default the
    rules for the target choose one. The kernel's arguments are the remaining parameters of the program, in
    order.
    Raises `ParseError`, `VerifyError`, `ScheduleError`, `UnsupportedError`, `PluginError`.

    >>> import numpy as np, gossamer as gs
    >>> script = '''
    ... @T.prim_func
    ... def scale(x: T.handle, y: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     Y = T.match_buffer(y, (n,), "float32")
    ...     for i in T.serial(n):
    ...         with T.block("scale"):
    ...             vi = T.axis.spatial(n, i)
    ...             Y[vi] = 2.0 * X[vi]
    ... '''
    >>> kernel = gs.compile(script)
    >>> x, y = np.ones(3, np.float32), np.empty(3, np.float32)
    >>> kernel(x, y)
    >>> y
    array([2., 2., 2.], dtype=float32)
    """
    module = specialized_module(program, specialize=specialize, dtypes=dtypes)
    checked = checked_schedule(schedule, module, target=target)
    return KERNELS.build_module(module, target=target, schedule=checked).kernel


def specialized_module(
    program: ProgramSource,
    *,
    specialize: Mapping[str, int] | None,
    dtypes: Mapping[str, str] | None,
) -> Module:
    """Return the module of a program with these parameters fixed and these buffers and axes retyped."""
    module = to_module(program)
    _require_mapping("specialize", specialize, values=(bool, int, float))
    _require_mapping("dtypes", dtypes, values=(str,))
    if specialize or dtypes:
        module = specialize_module(module, specialize or {}, dtypes=dtypes or {})
    return module


def to_module(program: ProgramSource) -> Module:
    """Return the module of a program in any form."""
    if isinstance(program, Module):
        return loads(dumps(program))  # constructors of nodes do not check their fields
    if isinstance(program, str):
        return parse_module(program)
    module = getattr(program, "module", None)
    if isinstance(module, Module):
        return module
    if not callable(program):
        raise ArgumentError(
            "compile.program",
            f"The program is of type {type(program).__name__}; expected a script's text, a decorated "
            "function or a module.",
        )
    return parse_function(program)


def checked_schedule(
    schedule: Schedule | ScheduleBuilder | None, module: Module, *, target: str | Target
) -> Schedule | None:
    """Return the schedule for a module from a schedule or a builder of one.

    Raises `ArgumentError` (`compile.schedule`: it is neither) and `ScheduleError`
    (`schedule.other_program`: the builder is for another program).
    """
    if schedule is None:
        return None
    if not isinstance(schedule, Schedule):
        schedule = _builder_schedule(schedule, module, target)
    return loads_record(dumps_record(schedule), Schedule)


def _builder_schedule(builder: object, module: Module, target: str | Target) -> Schedule:
    """Return the schedule of a builder, if the builder is for this module."""
    from gossamer_schedule import ScheduleBuilder

    if not isinstance(builder, ScheduleBuilder):
        raise ArgumentError(
            "compile.schedule",
            f"The schedule is of type {type(builder).__name__}; expected a gossamer_ir Schedule or a "
            "ScheduleBuilder.",
        )
    # The later stage of both, as a program can be lowered, but not raised.
    stage = max(module.stage, builder.program.stage, key=STAGES.index)
    program_text, builder_text = (_text_at(stage, of, target) for of in (module, builder.program))
    if program_text != builder_text:
        raise ScheduleError(
            "schedule.other_program",
            "The builder was made of another program than the one that is compiled.",
            hint="Give the program, specialize and dtypes that the builder was made with, or "
            "schedule=builder.schedule, whose steps apply to any program with these names.",
        )
    return builder.schedule


def _text_at(stage: StageName, module: Module, target: str | Target) -> bytes:
    """Return a module, lowered to a stage, as bytes, so that a program can be compared with that of a builder
    even if only one of them has been lowered."""
    if module.stage != stage:
        module, lower = verify(module), stage_lowering(target)
        while module.stage != stage:
            module = lower(module)
    return dumps(module)


def _require_mapping(name: str, argument: object, *, values: tuple[type, ...]) -> None:
    """Raise unless the argument is None, or a mapping of names to values of these types."""
    if argument is None:
        return
    if isinstance(argument, Mapping) and all(isinstance(key, str) for key in argument):
        bad = [value for value in argument.values() if not isinstance(value, values)]
        if not bad:
            return
        argument = bad[0]
    kinds = either(kind.__name__ for kind in values)
    raise ArgumentError(
        "compile.names", f"{name} contains {argument!r}; expected a mapping of names to {kinds}."
    )

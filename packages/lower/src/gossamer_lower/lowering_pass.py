"""The decorator of passes, and the record of their contract: stages, and constructs of modules.

A pass is a function with the decorator `lowering_pass` in a file of its name. `passes.py` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, Literal, ParamSpec, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.software_pipelining import without_stale_pipelines
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.nodes import For, Function, Module, StageName
from gossamer_ir.traversal.walk import every_stmt
from gossamer_ir.verify import diagnostics
from gossamer_lower.constructs import has_construct
from gossamer_support.message_texts import either
from gossamer_support.typed_calls import typed

P = ParamSpec("P")
_NONE: Mapping[str, str] = MappingProxyType({})

PipelineName: TypeAlias = Literal["flat", "device"]
"""The flat pipeline leads to the flat stage: `lower_iterations` and `lower_buffers` lead to the loop stage,
and `lower_to_flat` runs its other passes. That for devices (`lower_to_device`) continues from there."""


class PassRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A pass and its contract, from which the pipeline, its checks and the lists of passes are derived."""

    name: str
    function: Callable[..., Module]
    takes: tuple[StageName, ...] = ()
    """The stages of modules that it accepts; any stage, if empty."""
    gives: StageName | None = None
    """The stage of its result; None for the stage of its argument."""
    without: tuple[str, ...] = ()
    """The `CONSTRUCTS` that an earlier pass must have removed."""
    removes: tuple[str, ...] = ()
    """The `CONSTRUCTS` that its result does not have."""
    acts_on: str | None = None
    """The one of `CONSTRUCTS` without which it returns a module as it is: a pipeline then neither imports nor
    runs it. None if it acts on any module."""
    after: Mapping[str, str] = _NONE
    """The passes that run earlier if both run, each with the reason."""
    before: Mapping[str, str] = _NONE
    """The passes that run later if both run, each with the reason."""
    pipeline: PipelineName | None = "flat"
    """The pipeline that runs it; None if it runs only where a front end or a user applies it by name."""
    is_stable: bool = False
    """True if passes of plugins may run before and after it: its name, its stages and its place among the
    other stable passes are part of the plugin API."""

    def require_postconditions(self, result: Module) -> None:
        """Raise `InternalError`, a bug of the pass, unless its result is a valid module of the declared stage
        that has none of the constructs that the pass removes.

        >>> from gossamer_lower.loops.unroll_loops import unroll_loops
        >>> from gossamer_testkit.examples import program
        >>> record = record_of(unroll_loops)
        >>> unrolled = program("for i in T.unroll(4): Y[i] = X[i]")
        >>> record.require_postconditions(unroll_loops(unrolled))
        >>> record.require_postconditions(unrolled)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        gossamer_support.errors.InternalError: The pass 'unroll_loops' returned a wrong module: ...
        """
        wrong = [f"{diagnostic.message} [{diagnostic.code}]" for diagnostic in diagnostics(result)]
        wrong += [
            f"it still holds {construct}"
            for construct in self.removes
            if has_construct(result, construct)
        ]
        if self.gives not in (None, result.stage):
            wrong.append(f"it is of the {result.stage} stage")
        if wrong:
            raise InternalError(
                f"The pass '{self.name}' returned a wrong module: {'; '.join(wrong)}"
            )


def lowering_pass(
    *,
    takes: tuple[StageName, ...] = (),
    gives: StageName | None = None,
    without: tuple[str, ...] = (),
    removes: tuple[str, ...] = (),
    acts_on: str | None = None,
    after: Mapping[str, str] = _NONE,
    before: Mapping[str, str] = _NONE,
    pipeline: PipelineName | None = "flat",
    is_stable: bool = False,
    checks_stage: bool = True,
) -> Callable[[Callable[P, Module]], Callable[P, Module]]:
    """Return the decorator of a pass, which attaches the `PassRecord` with these fields.

    The decorated function checks the stage of its argument `module`, unless `checks_stage` is False because
    it has an error of its own for that. If a call fails, it checks the types of the arguments. `gives`
    defaults to the stage taken, if there is only one. `after` and `before` map the names of other passes to
    the reason, which completes the sentence "it must run after that pass: ...".
    """
    new_record = partial(
        PassRecord,
        takes=takes,
        gives=takes[0] if gives is None and len(takes) == 1 else gives,
        without=without,
        removes=removes,
        acts_on=acts_on,
        after=after,
        before=before,
        pipeline=pipeline,
        is_stable=is_stable,
    )
    return lambda function: _with_record(function, new_record, checks_stage=checks_stage)


def _with_record(
    function: Callable[P, Module], new_record: Callable[..., PassRecord], *, checks_stage: bool
) -> Callable[P, Module]:
    """Return the decorated function of a pass, with the record that `new_record` makes of it."""

    @wraps(function)
    def wrapper(*args: P.args, **keywords: P.kwargs) -> Module:
        if checks_stage:
            # `inspect.signature` would tell which argument it is, but takes longer than some passes.
            module: Any = args[0] if args else keywords["module"]
            require_stage(record, module)
        return function(*args, **keywords)

    called = typed(wrapper)
    record = new_record(name=function.__name__, function=called)
    vars(called)["lowering_pass"] = record
    return called


def require_stage(record: PassRecord, module: Module) -> None:
    """Raise `ArgumentError` (`pass.stage`) for a module of a stage that the pass does not take."""
    if not record.takes or module.stage in record.takes:
        return
    raise ArgumentError(
        "pass.stage",
        f"The pass '{record.name}' takes a module of the {either(record.takes)} stage; this one is "
        f"of the {module.stage} stage.",
        hint="gossamer opt --list shows the stages that each pass takes.",
    )


def record_of(function: object) -> PassRecord | None:
    """Return the record of a pass; None for anything else.

    >>> from gossamer_lower.loops.unroll_loops import unroll_loops
    >>> record = record_of(unroll_loops)
    >>> record.name, record.takes, record.removes
    ('unroll_loops', ('loop',), ('unrolled loops',))
    >>> record_of(print)
    """
    record = getattr(function, "lowering_pass", None)
    return record if isinstance(record, PassRecord) else None


def listed_records(passes: Iterable[object]) -> tuple[PassRecord, ...]:
    """Return the records of passes; raise `InternalError` for a function without the decorator.

    >>> listed_records([len])
    Traceback (most recent call last):
    ...
    gossamer_support.errors.InternalError: 'len' is listed as a pass, but has no decorator `lowering_pass`
    """
    return tuple(map(listed_record, passes))


def listed_record(function: object) -> PassRecord:
    """Return the record of a pass; raise `InternalError` for a function without the decorator."""
    record = record_of(function)
    if record is None:
        name = getattr(function, "__name__", function)
        raise InternalError(f"'{name}' is listed as a pass, but has no decorator `lowering_pass`")
    return record


def _rewrite_function(function: Function, by: Callable[[Function], Function]) -> Function:
    result = by(function)
    # No pass adds an annotation, and most functions have none.
    is_annotated = any(isinstance(stmt, For) and stmt.annotations for stmt in every_stmt(function))
    return without_stale_pipelines(result) if is_annotated else result


def map_functions(
    module: Module, function: Callable[[Function], Function], *, stage: StageName | None = None
) -> Module:
    """Return the module with each function replaced, at `stage` if that is another one. Annotations of loops
    that a replaced function no longer satisfies are dropped."""
    functions = tuple(_rewrite_function(original, function) for original in module.functions)
    return replace(module, stage=stage or module.stage, functions=functions)

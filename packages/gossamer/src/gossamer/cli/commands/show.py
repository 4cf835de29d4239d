"""`gossamer show`: the text of a program at a stage, its bounds checks, or the reasons for its schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gossamer.cli.options import (
    FEATURES,
    OPERATOR_NAMES,
    Features,
    MaxBytes,
    TargetName,
    require_dtype_option,
    require_range,
)
from gossamer.cli.scripts import dtype_overrides, is_script, operator_module, read_script
from gossamer.operators import operator_named
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import STAGES, Module

if TYPE_CHECKING:
    from gossamer_lower.internal_api import BoundsCheck

SHOWN_STAGES = (*STAGES, "llvm", "asm")
DEVICE_STAGES = ("ptx", "cuda")
"""Further stages, of targets for GPUs."""
ALL_STAGES = (*SHOWN_STAGES, *DEVICE_STAGES)


def show(
    program: Annotated[str, typer.Argument(help=f"{OPERATOR_NAMES}, or a script's file")],
    *,
    stage: Annotated[str | None, typer.Option(help=f"one of {', '.join(ALL_STAGES)}")] = None,
    features: Features = FEATURES,
    dtype: Annotated[
        str | None, typer.Option(help="float32 or float64, for all buffers of floats")
    ] = None,
    target: TargetName = DEFAULT_TARGET,
    matrix: Annotated[
        str | None, typer.Option(help="a matrix file; the schedule is chosen for its row lengths")
    ] = None,
    max_bytes: MaxBytes = None,
    guards: Annotated[
        bool, typer.Option("--guards", help="list the accesses that are not proved in bounds")
    ] = False,
    schedule: Annotated[
        bool,
        typer.Option("--schedule", help="print the decisions of the schedule rules, with reasons"),
    ] = False,
) -> None:
    """Print a program at a stage of its lowering, its bounds checks, or the reasons for its schedule.

    The default target is this machine; the default dtype of an operator is float32.
    """
    module = _program_module(program, features, dtype=dtype)
    _require_one(stage, {"--guards": guards, "--schedule": schedule})
    stats = None if matrix is None else _matrix_stats(matrix, max_bytes)
    if schedule:
        from gossamer.cli.print_reasons import print_reasons

        print_reasons(module, target=target, stats=stats)
    elif guards:
        print(_check_lines(module, target, stats))
    else:
        assert stage is not None, "there is one if nothing else was asked for"
        print(_stage_text(module, stage, target=target, stats=stats))


def _require_one(stage: str | None, others: dict[str, bool]) -> None:
    """Raise unless exactly one of the stage and the other options is given."""
    named = [name for name, is_given in others.items() if is_given]
    if (len(named) == 1 and stage is None) or (not named and stage in ALL_STAGES):
        return
    stated = f"given with {' and '.join(named)}" if named else f"'{stage}'" if stage else "missing"
    raise ArgumentError(
        "option.stage",
        f"--stage is {stated}; expected one of {', '.join(ALL_STAGES)}.",
        hint=f"Give --stage, or one of {' and '.join(others)}.",
    )


def _program_module(program: str, features: int, *, dtype: str | None) -> Module:
    if dtype is not None:
        require_dtype_option(dtype)
    if is_script(program):
        from gossamer_ir.transform.specialize import specialize

        module = read_script(program)
        return (
            specialize(module, {}, dtypes=dtype_overrides(module, dtype=dtype)) if dtype else module
        )
    has_features = operator_named(program).program.features is not None
    require_range("--features", features, low=1, high=2**40)
    return operator_module(program, features if has_features else None, dtype=dtype)


def _matrix_stats(path: str, max_bytes: int | None) -> Stats:
    from gossamer_formats import read

    return read(path, dtype="float32", max_bytes=max_bytes).stats


def _stage_text(module: Module, stage: str, *, target: str, stats: Stats | None) -> str:
    from gossamer.compilation.pipeline import stage_texts

    texts = stage_texts(module, target=target, stats=stats)
    # Which stages follow the flat one depends on the backend.
    if stage not in texts:
        raise ArgumentError(
            "option.stage", f"There is no stage '{stage}' here; there are: {', '.join(texts)}."
        )
    return texts[stage].rstrip("\n")


def _check_lines(module: Module, target: str, stats: Stats | None) -> str:
    """Return a line for each bounds check: its loops, and the condition that was not proved."""
    from gossamer.compilation.pipeline import flat_module
    from gossamer_lower.internal_api import bounds_checks_of

    checks = bounds_checks_of(flat_module(module, target=target, stats=stats))
    if not checks:
        return "no access is guarded: all are proved in bounds"
    return "\n".join(map(_check_text, checks))


def _check_text(check: BoundsCheck) -> str:
    from gossamer_ir.script import print_expr

    loops = " > ".join("while" if loop is None else loop for loop in check.loops)
    loop_path = f"{'inner loop' if check.is_inner else 'loop'} {loops}" if loops else "no loop"
    conditions = ", ".join(map(print_expr, check.conditions))
    return f"{check.function}, {loop_path}: {check.buffer} is guarded, not proved: {conditions}"

"""`gossamer opt`: passes and primitives on the text of a program."""

from __future__ import annotations

from typing import Annotated

import typer

from gossamer.cli.options import TargetName
from gossamer.cli.read_input import STANDARD_INPUT, read_input
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_ir.nodes import Module


def opt(
    file: Annotated[
        str, typer.Argument(help="a script or canonical JSON; - for standard input")
    ] = "-",
    *,
    steps: Annotated[
        list[str] | None,
        typer.Option("--pass", metavar="<step>", help="a pass or a primitive; may be repeated"),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(metavar="<file>", help="a JSON list of steps, applied before --pass"),
    ] = None,
    verify_each: Annotated[
        bool,
        typer.Option("--verify-each", help="verify after every pass, also within a step"),
    ] = False,
    target: TargetName = DEFAULT_TARGET,
    as_json: Annotated[bool, typer.Option("--json", help="print canonical JSON")] = False,
    listed: Annotated[bool, typer.Option("--list", help="print all steps")] = False,
) -> None:
    """Apply passes and schedule primitives to a program, and print the result.

    The program is the text of any stage, as gossamer show prints it, or canonical JSON. A step is a
    name, or a name with arguments: --pass lower_buffers --pass 'split(loop="i", factors=[None, 8])'.
    Those of an installed plugin are <plugin>.<name>. The intrinsics that steps name are those of the target.
    The module is verified before the first step and after each.
    """
    from gossamer.cli.single_steps import apply_steps, parse_program_text, steps_text, to_step
    from gossamer_schedule.internal_api import trace_from_json

    if listed:
        print(steps_text())
        return
    wanted = [*trace_from_json(_read(trace, "trace"))] if trace is not None else []
    wanted += map(to_step, steps or [])
    module = apply_steps(
        parse_program_text(_read(file, "program"), name=_file_name(file)),
        wanted,
        verify_each=verify_each,
        target=target,
    )
    print(_module_text(module, as_json=as_json))


def _module_text(module: Module, *, as_json: bool) -> str:
    from gossamer_ir.interchange.serialization import dumps
    from gossamer_ir.script import print_module

    return dumps(module).decode() if as_json else print_module(module).rstrip("\n")


def _file_name(file: str) -> str:
    return "standard input" if file == STANDARD_INPUT else file


def _read(file: str, what: str) -> str:
    hint = "Give a file, or - for standard input."
    return read_input(file, what=what, code="option.file", hint=hint)

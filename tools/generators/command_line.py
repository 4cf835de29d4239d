"""`docs/command-line.md`: the reference of the commands, from the command line itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.main import get_command

from gossamer.cli.app import app
from tools import ROOT

PAGE = ROOT / "docs/command-line.md"
HEAD = """\
# Command line

<!-- Generated from gossamer/cli by tools/generators/command_line.py. -->

`gossamer COMMAND --help` prints the same text. The exit code is 0 for success, 1 if a check failed, and 2 for
bad input or output that cannot be written, which one sentence on standard error explains (none if a pipe
is broken).
"""


def files() -> dict[Path, str]:
    """Return the whole page."""
    group: Any = get_command(app)
    top = section("gossamer", group)
    return {PAGE: "\n".join([HEAD, top, *command_sections("gossamer", group.commands)])}


def command_sections(prefix: str, commands: Mapping[str, Any]) -> Iterator[str]:
    """Yield a section for each command, in the order in which `--help` lists them."""
    for name, command in commands.items():
        path = f"{prefix} {name}"
        if hasattr(command, "commands"):
            yield from command_sections(path, command.commands)
        else:
            yield section(path, command)


def section(path: str, command: Any) -> str:
    """Describe how a command (or the group of all) is called, what it does, and its parameters."""
    arguments = [
        parameter for parameter in command.params if parameter.param_type_name == "argument"
    ]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    words = [path, *map(usage_of, arguments), *(["[OPTIONS]"] if options else [])]
    words += ["COMMAND"] if hasattr(command, "commands") else []
    parts = [f"## {path}", f"```text\n{' '.join(words)}\n```", inspect.cleandoc(command.help or "")]
    rows = [*map(parameter_row, arguments), *map(parameter_row, options)]
    if rows:
        parts.append("\n".join(["| parameter | means | default |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def usage_of(argument: Any) -> str:
    """Return an argument as the first line of a command shows it."""
    name = argument.name.upper()
    return name if argument.required else f"[{name}]"


def parameter_row(parameter: Any) -> str:
    """Return the line of a parameter in the table."""
    is_option = parameter.param_type_name == "option"
    names = [*parameter.opts, *parameter.secondary_opts] if is_option else [usage_of(parameter)]
    meaning = (getattr(parameter, "help", None) or "").replace("|", "\\|")
    return f"| {', '.join(f'`{name}`' for name in names)} | {meaning} | {default_text(parameter)} |"


def default_text(parameter: Any) -> str:
    """Return the value of a parameter that is not given."""
    if parameter.required:
        return "required"
    value = parameter.default
    return "" if value in (None, False, "", (), []) else f"`{value}`"

"""Prints and stores the results of fuzzer runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.fuzzing.programs.program import Program


def show_program(program: Program, console: Console) -> None:
    """Prints a program and what it is called with."""
    plain(console, repr(program))


def plain(console: Console, text: str) -> None:
    """Prints text as it is."""
    console.print(text, markup=False, highlight=False)


def write(path: Path, data: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, sort_keys=True))

"""The source of a program of the corpus, and helpers that write its text."""

from __future__ import annotations

from textwrap import indent
from typing import Any, NamedTuple

from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module


class CorpusProgram(NamedTuple):
    """A flat module with the fields of its manifest, except the capabilities, which are derived."""

    name: str
    says: str
    module: Module
    cases: str
    oracle: str
    options: dict[str, Any]


def function(name: str, params: str, *, buffers: str, body: str, facts: str = "") -> str:
    """Return the text of a function. `params` has the form `x: handle, n: int64`, and `buffers` lines of the
    form `X = x (n,) float32`."""
    declared = ", ".join(
        f"{param}: T.{dtype}"
        for param, dtype in (item.strip().split(": ") for item in params.split(","))
    )
    lines = [f"@T.prim_func\ndef {name}({declared}) -> None:", '    T.stage("flat")']
    for line in filter(None, (line.strip() for line in buffers.splitlines())):
        left, _, right = line.partition(" = ")
        handle, shape = right.split(" ", 1)
        shape, dtype = shape.rsplit(" ", 1)
        lines.append(f'    {left} = T.match_buffer({handle}, {shape}, "{dtype}")')
    lines += [f"    T.assume({fact.strip()})" for fact in facts.splitlines() if fact.strip()]
    return "\n".join([*lines, indent(body.strip("\n"), "    "), ""])


def flat(*functions: str) -> Module:
    """Return the module of these functions; the first is the entry."""
    first, *others = functions
    entry = first.replace("@T.prim_func", "@T.prim_func(entry=True)") if others else first
    return parse_module("\n\n".join([entry, *others]))

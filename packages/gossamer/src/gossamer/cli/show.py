"""`gossamer show`: the text of a program at a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gossamer.cli.options import FEATURES, OPERATORS, Features, require_range
from gossamer.cli.scripts import is_script, read_script
from gossamer.operators import operator_named
from gossamer.operators.operator import Variant, module_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Module

if TYPE_CHECKING:
    from gossamer_lower.guards import GuardedAccess

STAGES = ("coordinate", "position", "loop", "flat", "llvm", "asm")


def show(
    program: Annotated[str, typer.Argument(help=f"{OPERATORS}, or a script's file")],
    *,
    stage: Annotated[str | None, typer.Option(help=f"one of {', '.join(STAGES)}")] = None,
    features: Features = FEATURES,
    guards: Annotated[
        bool, typer.Option("--guards", help="list the accesses that are not proved in bounds")
    ] = False,
) -> None:
    """Print a program at a stage of its lowering, or what is guarded in it.

    It is that for this machine; an operator's is that for float32.
    """
    module = _module(program, features)
    if guards and stage is None:
        print(_guards(module))
        return
    if stage not in STAGES or guards:
        given = "given with --guards" if guards else f"'{stage}'" if stage else "missing"
        raise ArgumentError(
            "option.stage", f"--stage is {given}; expected one of {', '.join(STAGES)}."
        )
    from gossamer.build import stages

    texts = stages(module, target="generic-cpu")
    if stage not in texts:
        raise ArgumentError(
            "option.stage", f"There is no stage '{stage}' here; there are: {', '.join(texts)}."
        )
    print(texts[stage].rstrip("\n"))


def _module(program: str, features: int) -> Module:
    if is_script(program):
        return read_script(program)
    found = operator_named(program)
    require_range("--features", features, low=1, high=2**40)
    return module_of(found, Variant(features=features))


def _guards(module: Module) -> str:
    """A line for each guarded access: where it is, and what was not proved."""
    from gossamer.build import flat_module
    from gossamer_lower.guards import guarded_accesses

    found = guarded_accesses(flat_module(module, target="generic-cpu"))
    if not found:
        return "no access is guarded: all are proved in bounds"
    return "\n".join(map(_guard_text, found))


def _guard_text(found: GuardedAccess) -> str:
    from gossamer_ir.script import print_expr

    loops = " > ".join(loop or "while" for loop in found.loops)
    place = f"{'inner loop' if found.is_inner else 'loop'} {loops}" if loops else "no loop"
    conditions = ", ".join(map(print_expr, found.conditions))
    return f"{found.function}, {place}: {found.buffer} is guarded, not proved: {conditions}"

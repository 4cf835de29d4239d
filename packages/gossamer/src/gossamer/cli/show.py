"""`gossamer show`: the text of a program at a stage."""

from __future__ import annotations

from typing import Annotated

import typer

from gossamer.cli.options import FEATURES, OPERATORS, Features, require_range
from gossamer.operators import operator_named
from gossamer.operators.operator import Variant, module_of
from gossamer_ir.errors import ArgumentError

STAGES = ("coordinate", "position", "loop", "flat", "llvm", "asm")


def show(
    op: Annotated[str, typer.Argument(help=OPERATORS)],
    stage: Annotated[str, typer.Option(help=f"one of {', '.join(STAGES)}")],
    features: Features = FEATURES,
) -> None:
    """Print an operator's program at a stage of its lowering.

    It is that for float32 and this machine.
    """
    found = operator_named(op)
    if stage not in STAGES:
        raise ArgumentError(
            "option.stage", f"--stage is '{stage}'; expected one of {', '.join(STAGES)}."
        )
    require_range("--features", features, low=1, high=2**40)
    from gossamer.build import stages

    texts = stages(module_of(found, Variant(features=features)), target="generic-cpu")
    if stage not in texts:
        raise ArgumentError(
            "option.stage", f"There is no stage '{stage}' here; there are: {', '.join(texts)}."
        )
    print(texts[stage].rstrip("\n"))

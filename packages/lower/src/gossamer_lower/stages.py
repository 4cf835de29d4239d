"""What every pass shares: from which stage to which."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Function, Module, StageName


def map_functions(
    module: Module, before: StageName, after: StageName, function: Callable[[Function], Function]
) -> Module:
    """Applies a pass to every function of a module that is at the stage it expects."""
    require_stage(module, before)
    functions = tuple(function(found) for found in module.functions)
    return msgspec.structs.replace(module, stage=after, functions=functions)


def require_stage(module: Module, stage: StageName) -> None:
    """Raises `ArgumentError` (`pass.stage`) for a module of another stage than a pass takes."""
    if module.stage != stage:
        raise ArgumentError(
            "pass.stage",
            f"The pass takes a module of the {stage} stage, this one is of the {module.stage} stage.",
            hint="gossamer opt --list says what each takes.",
        )

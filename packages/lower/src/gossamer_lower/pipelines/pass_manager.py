"""The pass manager: runs the passes of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from gossamer_ir.nodes import Module
from gossamer_lower.pipelines.pipeline_step import PipelineStep

_NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})


def _keep(_position: str, module: Module) -> Module:
    return module


class PassManager(msgspec.Struct, frozen=True, kw_only=True):
    """Runs the passes that a module needs one after the other, and whatever else is to run between them.

    >>> from gossamer_lower.pipelines.flat_steps import FLAT_STEPS
    >>> from gossamer_testkit.examples import SCALE
    >>> PassManager(steps=FLAT_STEPS, is_verifying=True).run(SCALE).stage
    'flat'
    """

    steps: tuple[PipelineStep, ...]
    is_verifying: bool = False
    """True if the result of each pass is verified, also against the record of the pass."""
    arguments: Mapping[str, Any] = _NO_ARGUMENTS
    """The arguments of passes by name. A pass runs only if its argument has a value other than None."""
    extend: Callable[[str, Module], Module] = _keep
    """Returns the module to go on with at a position, such as "before lower_blocks"."""

    def run(self, module: Module) -> Module:
        """Return the module after the passes. Raise their errors, and `InternalError` for the first one
        whose result is not verified."""
        for step in self.steps:
            # Also where the pass is not needed: a plugin's pass may add what it acts on.
            module = self.extend(f"before {step.name}", module)
            module = self._run_step(step, module)
            module = self.extend(f"after {step.name}", module)
        return module

    def _run_step(self, step: PipelineStep, module: Module) -> Module:
        """Return the module after the pass of a step, if it runs."""
        arguments = {}
        if step.argument is not None:
            arguments[step.argument] = self.arguments.get(step.argument)
        if None in arguments.values() or not step.is_needed(module):
            return module
        result = step.record.function(module, **arguments)
        if self.is_verifying:
            step.record.require_postconditions(result)
        return result

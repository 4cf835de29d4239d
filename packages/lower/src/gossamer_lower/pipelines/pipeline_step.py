"""A pass at its place in a pipeline, known by name until a module needs it."""

from __future__ import annotations

from importlib import import_module

import msgspec

from gossamer_ir.nodes import Module
from gossamer_lower.constructs import has_construct
from gossamer_lower.lowering_pass import PassRecord, listed_record


class PipelineStep(msgspec.Struct, frozen=True):
    """A pass by its name and its module, with the construct that it acts on and the argument that it
    needs."""

    name: str
    home: str
    acts_on: str | None = None
    """The field of the same name of its record."""
    argument: str | None = None
    """Its argument without a default, which follows from the target; None if it has none."""

    def is_needed(self, module: Module) -> bool:
        """Return whether the pass may change a module, if there is a value for its argument.

        >>> from gossamer_lower.pipelines.flat_steps import FLAT_STEPS
        >>> from gossamer_testkit.examples import SCALE
        >>> [step.name for step in FLAT_STEPS if step.is_needed(SCALE)][:3]
        ['lower_vscale', 'lower_blocks', 'contract_buffers']
        """
        return self.acts_on is None or has_construct(module, self.acts_on)

    @property
    def record(self) -> PassRecord:
        """The record of the pass, which is imported."""
        return listed_record(getattr(import_module(self.home), self.name))

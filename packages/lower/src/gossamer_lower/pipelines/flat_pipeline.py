"""The passes from the loop stage to the flat stage for a target, in the order in which they run.

Two of them have an argument that follows from the target: the pipeline runs each only if it is given a value
for the argument.
"""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.nodes import Module
from gossamer_lower.math.lower_math import lower_math
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES
from gossamer_lower.vector.lower_vscale import lower_vscale

FLAT_PIPELINE: tuple[Callable[..., Module], ...] = (
    # --- For a target without scalable vectors.
    lower_vscale,
    *FLAT_PASSES,
    # --- For the math functions of a target.
    lower_math,
)
"""The passes that `lower_to_flat` runs, in this order."""

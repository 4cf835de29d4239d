"""The pipeline: the passes from the loop stage to the flat stage, one after the other."""

from __future__ import annotations

from collections.abc import Collection

from gossamer_ir.nodes import Module
from gossamer_lower.constructs import REMOVED_CONSTRUCTS
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.pipelines.flat_steps import FLAT_STEPS
from gossamer_lower.pipelines.pass_manager import PassManager


@lowering_pass(takes=("loop",), gives="flat", removes=REMOVED_CONSTRUCTS, pipeline=None)
def lower_to_flat(
    module: Module,
    *,
    vscale: int | None = None,
    instructions: Collection[str] | None = None,
    verify_each: bool = False,
) -> Module:
    """Lower a module from the loop stage to the flat stage, which backends compile.

    With `vscale`, `lower_vscale` makes scalable vectors fixed ones. With `instructions`, the math functions
    of a target, `lower_math` lowers all others to arithmetic.

    Raises the errors of the passes. With `verify_each`, raises `InternalError` after the first pass whose
    result is invalid or still has constructs that the pass removes.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> flat = lower_to_flat(program("for i in T.serial(n): Y[i] = X[P[i]]"))
    >>> flat.stage
    'flat'
    >>> print(body_text(flat))
    for i in T.serial(n):
        T.guard(P[i] >= 0 and P[i] < n, X)
        Y[i] = X[P[i]]
    """
    arguments = {"vscale": vscale, "instructions": instructions}
    return PassManager(steps=FLAT_STEPS, arguments=arguments, is_verifying=verify_each).run(module)

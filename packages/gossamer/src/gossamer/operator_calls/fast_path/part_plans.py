"""Plans of repeated calls with a matrix in parts, which the matrix keeps: they end with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gossamer.bounded_dict import put_bounded
from gossamer_backend import BoundCall, JointPlan
from gossamer_formats import Array, Decomposition
from gossamer_ir.interchange.records import Target

MAX_PLANS = 64
"""The number of plans that a matrix keeps: one for each operator, target, and number of columns."""

_MEMO = "gossamer.operator_calls.fast_path.part_plans"
"""The name under which a matrix keeps its plans."""

_generations: dict[str, int] = {}
"""How often the plans of each operator were dropped."""


def plan_of_parts(
    operator: str, matrix: Decomposition, target: str | Target | None, sizes: tuple[int, ...]
) -> JointPlan | None:
    """Return the plan of an earlier call, None if there is none; `sizes` are those of the first dense operand
    after the first one."""
    plans: dict[object, JointPlan] | None = matrix.memo.get(_MEMO)
    if plans is None:
        return None
    return plans.get((operator, _generations.get(operator, 0), target, sizes))


def keep_plan_of_parts(
    operator: str,
    matrix: Decomposition,
    target: str | Target | None,
    *,
    calls: Sequence[BoundCall],
    dense: Sequence[str],
    output: str,
    prepare: Callable[[Array], None] | None,
) -> None:
    """Keep a plan of these calls, one for each part, for later ones with other dense operands."""
    sizes = np.shape(calls[0].arguments[dense[0]])[1:]
    plan = JointPlan(calls, passed=(*dense, output), prepare=prepare)
    plans = matrix.memo.setdefault(_MEMO, {})
    key = (operator, _generations.get(operator, 0), target, sizes)
    put_bounded(plans, key, plan, limit=MAX_PLANS)


def forget_plans_of_parts(operator: str) -> None:
    """Let no matrix use the plans that it keeps for an operator."""
    _generations[operator] = _generations.get(operator, 0) + 1

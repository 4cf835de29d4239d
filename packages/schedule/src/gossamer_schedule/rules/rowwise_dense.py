"""A value for each feature of each row (`B[i, k] = f(A[i, k], ...)`), or one for each row, in vectors.

Only as a part of what runs over rows: by themselves such programs are dense ones.
"""

from __future__ import annotations

from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Decision, ScheduleReport, Stats, Step, Target, Trace
from gossamer_ir.nodes import Iteration, Module, SparseBuffer, Store
from gossamer_schedule.rules.cost.machine import accumulators_of, lanes_of
from gossamer_schedule.rules.recognise.regular_reads import is_dense_root, reads_regularly
from gossamer_schedule.rules.recognise.row_reduction import axes_of, single_iteration


def rowwise_dense(module: Module, target: Target, _stats: Stats | None) -> ScheduleReport | None:
    """The schedule of a part for one row; None for anything else."""
    found = single_iteration(module)
    if found is None:
        return None
    function, iteration = found
    axes = axes_of(function, iteration)
    if not axes or not all(map(is_dense_root, axes)) or not _is_plain(iteration):
        return None
    if len(axes) == 1:
        return ScheduleReport("rowwise_dense", f"a value for each row {iteration.vars[0]}")
    if len(axes) != 2 or not reads_regularly(function, iteration, lane=iteration.vars[1]):
        return None
    dtypes = {found.name: found.dtype for found in function.buffers
              if isinstance(found, SparseBuffer)}  # fmt: skip
    (store,) = iteration.body
    assert isinstance(store, Store)
    vectors = _vectors(
        iteration.vars[1],
        integer_value(axes[1].length),
        lanes=lanes_of(target, dtypes[store.buffer]),
        most=accumulators_of(target),
    )
    text = f"a value for each feature {iteration.vars[1]} of row {iteration.vars[0]}"
    return ScheduleReport("rowwise_dense", text, (vectors,))


def _is_plain(iteration: Iteration) -> bool:
    """Whether it is one assignment to the element of its variables."""
    if set(iteration.kinds) != {"S"} or iteration.init or len(iteration.body) != 1:
        return False
    store = iteration.body[0]
    return isinstance(store, Store) and store.predicate is None and _selects(store, iteration)


def _selects(store: Store, iteration: Iteration) -> bool:
    names = tuple(getattr(index, "name", "") for index in store.indices)
    return names == iteration.vars


def _vectors(feature: str, count: int | None, *, lanes: int, most: int) -> Decision:
    steps: Trace = (
        Step("split", {"loop": feature, "factors": (None, lanes)}),
        Step("vectorize", {"loop": f"{feature}_1"}),
    )
    if count is not None and 0 < count <= most * lanes:
        outer = -(-count // lanes)
        steps = (
            Step("split", {"loop": feature, "factors": (outer, lanes)}),
            Step("vectorize", {"loop": f"{feature}_1"}),
            Step("unroll", {"loop": f"{feature}_0"}),
        )
    return Decision(f"vectors of {lanes} features", "neighbouring features lie side by side", steps)

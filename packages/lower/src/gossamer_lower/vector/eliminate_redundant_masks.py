"""Removes masks that are proved to be true in all lanes.

A loop around vectors has the same masks in each of its iterations, though often only the first and the last
need them. This pass runs after unrolling, where each copy has its own mask that can be proved.
"""

from __future__ import annotations

from contextlib import ExitStack

from msgspec.structs import replace

from gossamer_ir.analysis.lane_projection import in_lane
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.arith.simplify import simplify_body
from gossamer_ir.core.build import ZERO, index, index_var, integer_value
from gossamer_ir.core.conditions import TRUE
from gossamer_ir.nodes import Broadcast, Compare, Expr, For, Function, Lanes, Module, Node, Ramp
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.node_index import nodes_in_body, nodes_of_type
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_lower.lowering_pass import lowering_pass, map_functions


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    after={
        "unroll_loops": "constant indices of the copies prove masks, often in all copies but one"
    },
    before={
        "hoist_invariant_loads": "a load stays in the loop if its mask varies, even if it is always true"
    },
)
def eliminate_redundant_masks(module: Module) -> Module:
    """Replace comparisons of ramps that hold in all lanes by true.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n // 8):
    ...     X[T.ramp(8, 1, 4)] = T.Select(
    ...         T.ramp(8 - n % 8, 1, 4) >= T.broadcast(0, 4), Y[T.ramp(0, 1, 4)], Y[T.ramp(4, 1, 4)])
    ... ''')
    >>> print(body_text(eliminate_redundant_masks(before)))
    for i in T.serial(n // 8):
        X[T.ramp(8, 1, 4)] = Y[T.ramp(0, 1, 4)]

    Loops of constant range are known to be in it:

    >>> before = program('''
    ... for i in T.serial(2):
    ...     X[T.ramp(4 * i, 1, 4)] = T.Select(
    ...         T.ramp(4 * i, 1, 4) < T.broadcast(8, 4), Y[T.ramp(0, 1, 4)], Y[T.ramp(4, 1, 4)])
    ... ''')
    >>> print(body_text(eliminate_redundant_masks(before)))
    for i in T.serial(2):
        X[T.ramp(4 * i, 1, 4)] = Y[T.ramp(0, 1, 4)]
    """
    return map_functions(module, _remove_in_function)


def _remove_in_function(function: Function) -> Function:
    if not any(isinstance(comparison.lhs, Ramp) for comparison in nodes_in_body(function, Compare)):
        return function
    remover = _MaskEliminator(function)
    body = rewrite_body(function.body, remover.rule, leaves=False)
    return replace(function, body=simplify_body(body)) if remover.has_removed else function


class _MaskEliminator:
    """Proves comparisons of one function, each once: copies of a body repeat them."""

    def __init__(self, function: Function) -> None:
        self._point = ProgramPoint(function)
        # All variables at once: the rule below visits comparisons wherever they are, without
        # entering loops.
        self._point.overflow.bind_all(function.body)
        self._lane = index_var(namer_of(function).fresh("lane"))
        self._loops = _loops_of_constant_range(function)
        self._holding: dict[Compare, bool] = {}

    @property
    def has_removed(self) -> bool:
        return any(self._holding.values())

    def rule(self, node: Node) -> Expr | None:
        """Return true in all lanes for a comparison that is proved."""
        match node:
            # A scalable number of lanes has no constant range to prove the comparison for.
            case Compare(lhs=Ramp(lanes=Lanes(scalable=False) as lanes)):
                if node not in self._holding:
                    self._holding[node] = self._holds(node, lanes)
                # Simplification turns a select, or a predicate,
                # of all-true lanes into the plain value.
                return Broadcast(TRUE, lanes) if self._holding[node] else None
        return None

    def _holds(self, condition: Compare, lanes: Lanes) -> bool:
        lane = For(self._lane.name, ZERO, index(lanes.count), ())
        around = [self._loops[name] for name in free_vars(condition) if name in self._loops]
        with ExitStack() as scopes:
            for loop in (*around, lane):
                scopes.enter_context(self._point.inside(loop))
            return self._point.proves(in_lane(condition, self._lane))


def _loops_of_constant_range(function: Function) -> dict[str, For]:
    """Return the loops by variable whose range is constant, such as those over tiles. Variables of several
    loops are left out: which of them a comparison is in is not known here."""
    loops: dict[str, list[For]] = {}
    for loop in nodes_of_type(function, For):
        loops.setdefault(loop.var, []).append(replace(loop, body=()))
    return {
        name: same_var[0]
        for name, same_var in loops.items()
        if len(same_var) == 1
        and integer_value(same_var[0].start) is not None
        and integer_value(same_var[0].extent) is not None
    }

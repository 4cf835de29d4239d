"""Shares gathers between copies of statements whose indices are often equal.

Neighboring rows of a matrix from finite elements have the same columns. If such rows are unrolled, each of
them gathers the same elements of the dense operand. Indices are loaded by whole vectors and compared at once,
which costs less than a gather of as many elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.annotations import EQUAL_INDICES, without_annotation
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import (
    Broadcast,
    Cast,
    Compare,
    Expr,
    For,
    IfThenElse,
    LaneReduce,
    Lanes,
    Let,
    Load,
    Module,
    Ramp,
    Stmt,
    Var,
)
from gossamer_ir.traversal.fields import has_bodies
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.statement_queries import always_evaluated
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.statements.point_visitor import rewrite_annotated
from gossamer_lower.statements.rebuild import Stmts
from gossamer_lower.statements.serial_loops import SerialLoopVisitor


@lowering_pass(
    takes=("loop",),
    acts_on="gathers of equal indices",
    without=("blocks", "vectorized loops", "unrolled loops"),
    after={"unroll_loops": "a gather is shared between copies"},
    before={"hoist_invariant_loads": "it hides the indices of gathers in variables"},
)
def share_gathers(module: Module) -> Module:
    """Share gathers with equal indices in loops with the annotation `equal_indices`.

    A gather by indices that are loaded as a vector takes the elements of the one before it, from the same
    array, if all indices are equal. This is tested at run time. Lanes that are not enabled have the index -1,
    which no enabled lane has, so that lanes with equal indices are enabled in both gathers or in neither.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n // 8, annotations={"equal_indices": True}):
    ...     Y[T.ramp(i * 8, 1, 4)] = X[P[T.ramp(i * 8, 1, 4)]]
    ...     Y[T.ramp(i * 8 + 4, 1, 4)] = X[P[T.ramp(i * 8 + 4, 1, 4)]]
    ... ''')
    >>> print(body_text(share_gathers(before)))
    for i in T.serial(n // 8):
        X_at: T.int64x4 = P[T.ramp(i * 8, 1, 4)]
        X_elements: T.float32x4 = X[X_at]
        Y[T.ramp(i * 8, 1, 4)] = X_elements
        X_at_1: T.int64x4 = P[T.ramp(i * 8 + 4, 1, 4)]
        X_elements_1: T.float32x4 = T.if_then_else(T.lane_reduce("and", X_at_1 == X_at), X_elements, \
X[X_at_1])
        Y[T.ramp(i * 8 + 4, 1, 4)] = X_elements_1
    """
    return rewrite_annotated(module, EQUAL_INDICES, _GatherSharer)


class _Elements(msgspec.Struct, frozen=True):
    """The result of a gather but for its indices: elements of an array, by indices of a dtype, and the values
    of lanes that are not enabled."""

    buffer: str
    dtype: str
    index_dtype: str
    passthrough: Expr | None


class _GatherSharer(SerialLoopVisitor):
    """Shares the gathers of the loops of one function."""

    def serial_loop(self, loop: For) -> Stmts:
        plain = without_annotation(loop, EQUAL_INDICES)
        if not dict(loop.annotations).get(EQUAL_INDICES, False):
            return (self.inside(plain),)
        gathers = {stmt: tuple(self._gathers(stmt)) for stmt in loop.body}
        counts = Counter(_elements_of(load) for stmt in loop.body for load in gathers[stmt])
        body: list[Stmt] = []
        previous: dict[_Elements, tuple[Let, Let]] = {}
        for stmt in loop.body:
            variables: dict[Expr, Expr] = {}
            # The annotation is only a request: one gather alone stays as it is.
            for load in gathers[stmt]:
                elements = _elements_of(load)
                if counts[elements] > 1:
                    lets = self._lets(load, previous.get(elements))
                    previous[elements] = lets
                    variables[load] = lets[1].var
                    body += lets
            body.append(rewrite(stmt, variables.get, leaves=False) if variables else stmt)
        return (replace(plain, body=tuple(body)),)

    def _gathers(self, stmt: Stmt) -> Iterator[Load]:
        """Yield the different gathers that a statement always executes, by indices that are loaded as a
        vector."""
        if has_bodies(type(stmt)):
            return
        loads = dict.fromkeys(
            load for part in effects_of(stmt).evaluates for load in _evaluated_loads(part)
        )
        yield from filter(self._is_shared, loads)

    def _is_shared(self, load: Load) -> bool:
        """Return whether a gather may share its elements: neither they nor its indices change meanwhile, and
        lanes that are not enabled can be told apart."""
        indices = _loaded_indices(load)
        if indices is None or not {load.buffer, indices.buffer} <= self.constant_shapes.keys():
            return False
        is_signed = DType.parse(indices.dtype).kind == "int"
        return indices.predicate == load.predicate and (load.predicate is None or is_signed)

    def _lets(self, load: Load, previous: tuple[Let, Let] | None) -> tuple[Let, Let]:
        """Return the lets of the indices and of the elements of a gather."""
        indices = _loaded_indices(load)
        assert indices is not None
        at = Let(
            Var(self.namer.fresh(f"{load.buffer}_at"), indices.dtype), _mark_disabled_lanes(indices)
        )
        (index,) = load.indices
        same_index = replace(index, value=at.var) if isinstance(index, Cast) else at.var
        elements: Expr = replace(load, indices=(same_index,))
        if previous is not None:
            before, gathered = previous
            is_equal = LaneReduce("and", Compare("eq", at.var, before.var))
            elements = IfThenElse(is_equal, gathered.var, elements)
        return at, Let(Var(self.namer.fresh(f"{load.buffer}_elements"), load.dtype), elements)


def _evaluated_loads(expr: Expr) -> Iterator[Load]:
    """Yield the loads that are evaluated whenever an expression is, those of lanes that are not enabled
    included."""
    if isinstance(expr, Load):
        yield expr
    for part in always_evaluated(expr):
        yield from _evaluated_loads(part)


def _elements_of(load: Load) -> _Elements:
    indices = _loaded_indices(load)
    assert indices is not None
    return _Elements(load.buffer, load.dtype, indices.dtype, load.passthrough)


def _loaded_indices(load: Load) -> Load | None:
    """Return the vector of the indices of a gather if it is loaded from consecutive elements; None for any
    other load."""
    if len(load.indices) != 1:
        return None
    (index,) = load.indices
    match index.value if isinstance(index, Cast) else index:
        case Load(indices=(Ramp(),)) as vector:
            return vector
    return None


def _mark_disabled_lanes(indices: Load) -> Load:
    """Return a load of indices that gives -1 in lanes that are not enabled."""
    if indices.predicate is None:
        return indices
    dtype = DType.parse(indices.dtype)
    minus_one = constant(-1, dtype.scalar)
    return replace(indices, passthrough=Broadcast(minus_one, Lanes(dtype.lanes, dtype.scalable)))

"""The check of each type of node, and the stages at which it is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from gossamer_ir.nodes import (
    STAGES,
    Allocate,
    AsyncCopy,
    Atomic,
    Barrier,
    Binary,
    Block,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Combine,
    CommitGroup,
    Compare,
    Const,
    For,
    Guard,
    If,
    IfThenElse,
    Iteration,
    LaneReduce,
    Launch,
    Let,
    Load,
    Node,
    ParallelFor,
    Prefetch,
    Ramp,
    Reinterpret,
    Search,
    Select,
    Shuffle,
    SparseBuffer,
    StageName,
    Store,
    TransposeReduce,
    Unary,
    Var,
    VScale,
    WaitGroup,
    While,
)
from gossamer_ir.verify.context import ExprCheck, Stage, StmtCheck
from gossamer_ir.verify.declarations.reducers import check_combine
from gossamer_ir.verify.expressions import buffer_accesses, expression_checks, vector_expressions
from gossamer_ir.verify.stages import coordinate, flat
from gossamer_ir.verify.statements import async_copies, statement_checks
from gossamer_ir.verify.statements.atomics import check_atomic
from gossamer_support.items_by_name import items_by_name

Stages: TypeAlias = tuple[StageName, ...]

_ALL: Stages = STAGES
_WITH_LOOPS: Stages = ("position", "loop", "flat")
_WITH_BLOCKS: Stages = ("position", "loop")
_WITH_VECTORS: Stages = ("loop", "flat")


class ExprRule(msgspec.Struct, frozen=True):
    """The check of a type of expression, and the stages that allow it."""

    check: ExprCheck
    stages: Stages = _ALL


class StmtRule(msgspec.Struct, frozen=True):
    """The check of a type of statement, and the stages that allow it."""

    check: StmtCheck
    stages: Stages = _ALL


EXPR_RULES: dict[type[Node], ExprRule] = {
    Const: ExprRule(expression_checks.check_const),
    Var: ExprRule(expression_checks.check_var),
    Unary: ExprRule(expression_checks.check_unary),
    Binary: ExprRule(expression_checks.check_binary),
    Compare: ExprRule(expression_checks.check_compare),
    Cast: ExprRule(expression_checks.check_cast),
    Reinterpret: ExprRule(expression_checks.check_reinterpret),
    Select: ExprRule(expression_checks.check_select),
    IfThenElse: ExprRule(expression_checks.check_if_then_else),
    Call: ExprRule(expression_checks.check_call),
    Load: ExprRule(buffer_accesses.check_load),
    Search: ExprRule(buffer_accesses.check_search, _WITH_BLOCKS),
    VScale: ExprRule(vector_expressions.check_vscale, _WITH_LOOPS),
    Ramp: ExprRule(vector_expressions.check_ramp, _WITH_VECTORS),
    Broadcast: ExprRule(vector_expressions.check_broadcast, _WITH_VECTORS),
    LaneReduce: ExprRule(vector_expressions.check_lane_reduce, _WITH_VECTORS),
    TransposeReduce: ExprRule(vector_expressions.check_transpose_reduce, _WITH_VECTORS),
}
"""One entry for each type of expression."""

STMT_RULES: dict[type[Node], StmtRule] = {
    Store: StmtRule(buffer_accesses.check_store),
    Let: StmtRule(statement_checks.check_let),
    If: StmtRule(statement_checks.check_if),
    Prefetch: StmtRule(buffer_accesses.check_prefetch),
    Combine: StmtRule(check_combine, ("coordinate", "position", "loop")),
    Iteration: StmtRule(coordinate.check_iteration, ("coordinate",)),
    Allocate: StmtRule(statement_checks.check_allocate, _WITH_LOOPS),
    While: StmtRule(statement_checks.check_while, _WITH_LOOPS),
    For: StmtRule(statement_checks.check_for, _WITH_LOOPS),
    Guard: StmtRule(flat.check_guard, _WITH_LOOPS),
    Block: StmtRule(statement_checks.check_block, _WITH_BLOCKS),
    Atomic: StmtRule(check_atomic, ("flat",)),
    Barrier: StmtRule(flat.check_barrier, ("flat",)),
    Shuffle: StmtRule(flat.check_shuffle, ("flat",)),
    AsyncCopy: StmtRule(async_copies.check_async_copy, ("flat",)),
    CommitGroup: StmtRule(async_copies.check_commit_group, ("flat",)),
    WaitGroup: StmtRule(async_copies.check_wait_group, ("flat",)),
    ParallelFor: StmtRule(flat.check_parallel_for, ("flat",)),
    Launch: StmtRule(flat.check_launch, ("flat",)),
}
"""One entry for each type of statement."""


def _exprs_at(stage: StageName) -> Mapping[type[Node], ExprCheck]:
    return {kind: rule.check for kind, rule in EXPR_RULES.items() if stage in rule.stages}


def _stmts_at(stage: StageName) -> Mapping[type[Node], StmtCheck]:
    return {kind: rule.check for kind, rule in STMT_RULES.items() if stage in rule.stages}


def _stage(
    name: StageName,
    *buffers: type[Node],
    loops: frozenset[str] = statement_checks.LOOP_KINDS,
    has_axes: bool = False,
    has_reducers: bool = True,
) -> Stage:
    return Stage(
        name,
        _exprs_at(name),
        _stmts_at(name),
        buffers,
        loops=loops,
        has_axes=has_axes,
        has_reducers=has_reducers,
    )


RULES_BY_STAGE: dict[str, Stage] = items_by_name(
    (
        _stage("coordinate", SparseBuffer, loops=frozenset(), has_axes=True),
        _stage("position", SparseBuffer, Buffer, has_axes=True),
        _stage("loop", Buffer),
        # Other kinds of loops have become parallel regions, vectors and copies of their bodies.
        _stage("flat", Buffer, loops=frozenset({"serial", "thread_binding"}), has_reducers=False),
    )
)
"""The stages, with the nodes that each allows."""

"""Checks that facts and relations refer to axes and buffers that exist."""

from __future__ import annotations

from gossamer_ir.analysis.invariants import NAMING_FIELDS
from gossamer_ir.nodes import (
    AnyBuffer,
    Distinct,
    Fact,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    ProductSteps,
    Relation,
    SortedSegments,
)
from gossamer_ir.traversal.references import buffers_read
from gossamer_ir.verify.context import At, VerifyContext
from gossamer_ir.verify.operand_dtypes import check_size

RELATIONS = ("subset", "disjoint", "covers")


def check_relations(ctx: VerifyContext, relations: tuple[Relation, ...], at: At) -> None:
    """Check relations, which are between axes or, once these are lowered, between index buffers."""
    for count, relation in enumerate(relations):
        _check_relation(ctx, relation, at.down("relations", count))


def _check_relation(ctx: VerifyContext, relation: Relation, at: At) -> None:
    if relation.kind not in RELATIONS:
        ctx.report(
            "verify.relation.kind",
            f"'{relation.kind}' is not a relation; expected one of {', '.join(RELATIONS)}.",
            at,
        )
    for name in (relation.left, relation.right):
        if name not in ctx.axes and name not in ctx.buffers:
            ctx.report(
                "verify.relation.name",
                f"'{name}' in '{relation.kind}' is neither an axis nor an index buffer.",
                at,
            )


def check_facts(
    ctx: VerifyContext, facts: tuple[Fact, ...], buffers: tuple[AnyBuffer, ...], at: At
) -> None:
    """Check that facts are about buffers that the caller passes, and mark these as read-only.

    Facts are checked when a kernel is called, which is not possible for buffers that it allocates.
    """
    passed = {buffer.name for buffer in buffers if buffer.handle is not None}
    for count, fact in enumerate(facts):
        inner = at.down("facts", count)
        _check_fact(ctx, fact, inner)
        named = [str(getattr(fact, field, "")) for field in NAMING_FIELDS]
        for name in sorted(buffers_read(fact).union(named) & ctx.buffers.keys() - passed):
            ctx.report(
                "verify.fact.unchecked",
                f"A fact is about '{name}', which the function allocates, so it cannot be checked at "
                "the call.",
                inner,
                hint="Remove it; values that are read from the buffer are checked where they are used.",
            )


def _check_fact(ctx: VerifyContext, fact: Fact, at: At) -> None:
    if isinstance(fact, Relation):
        _check_relation(ctx, fact, at)
        return
    _check_subject(ctx, fact.buffer, at)
    match fact:
        case InRange():
            check_size(ctx, fact.low, at.down("low"))
            check_size(ctx, fact.high, at.down("high"))
        case HasValue():
            check_size(ctx, fact.index, at.down("index"))
            check_size(ctx, fact.value, at.down("value"))
        case ProductSteps():
            _check_subject(ctx, fact.left, at)
            _check_subject(ctx, fact.right, at)
        case PaddedSlots():
            check_size(ctx, fact.length, at.down("length"))
        case SortedSegments() if fact.indptr is not None:
            _check_subject(ctx, fact.indptr, at)
        case SortedSegments() | Monotone() | Distinct():
            pass


def _check_subject(ctx: VerifyContext, name: str, at: At) -> None:
    if name in ctx.buffers:
        ctx.trusted.add(name)
    else:
        ctx.report("verify.fact.buffer", f"A fact is about '{name}', which is not a buffer.", at)

"""Checks of facts and relations: what they are about exists."""

from __future__ import annotations

from gossamer_ir.nodes import (
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
from gossamer_ir.verify.context import At, Context
from gossamer_ir.verify.values import check_size

RELATIONS = ("subset", "disjoint", "covers")


def check_relations(ctx: Context, relations: tuple[Relation, ...], at: At) -> None:
    """Relations are between axes, or after lowering between index buffers."""
    for count, relation in enumerate(relations):
        _check_relation(ctx, relation, at.down("relations", count))


def _check_relation(ctx: Context, relation: Relation, at: At) -> None:
    if relation.kind not in RELATIONS:
        ctx.report(
            "verify.relation.kind",
            f"'{relation.kind}' is no relation, expected one of {', '.join(RELATIONS)}.",
            at,
        )
    for name in (relation.left, relation.right):
        if name not in ctx.axes and name not in ctx.buffers:
            ctx.report(
                "verify.relation.name",
                f"'{name}' in '{relation.kind}' is neither an axis nor an index buffer.",
                at,
            )


def check_facts(ctx: Context, facts: tuple[Fact, ...], at: At) -> None:
    """Facts are about buffers of the function, which it must not write then."""
    for count, fact in enumerate(facts):
        inner = at.down("facts", count)
        if isinstance(fact, Relation):
            _check_relation(ctx, fact, inner)
            continue
        _check_subject(ctx, fact.buffer, inner)
        match fact:
            case InRange():
                check_size(ctx, fact.low, inner.down("low"))
                check_size(ctx, fact.high, inner.down("high"))
            case HasValue():
                check_size(ctx, fact.index, inner.down("index"))
                check_size(ctx, fact.value, inner.down("value"))
            case ProductSteps():
                _check_subject(ctx, fact.left, inner)
                _check_subject(ctx, fact.right, inner)
            case PaddedSlots():
                check_size(ctx, fact.length, inner.down("length"))
            case SortedSegments() if fact.indptr is not None:
                _check_subject(ctx, fact.indptr, inner)
            case SortedSegments() | Monotone() | Distinct():
                pass


def _check_subject(ctx: Context, name: str, at: At) -> None:
    if name in ctx.buffers:
        ctx.trusted.add(name)
    else:
        ctx.report("verify.fact.buffer", f"A fact is about '{name}', which is no buffer.", at)

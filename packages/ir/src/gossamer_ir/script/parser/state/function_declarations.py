"""The declarations of a function, collected while its body is parsed."""

from __future__ import annotations

from gossamer_ir.nodes import (
    AnnotationValue,
    AnyBuffer,
    Axis,
    Expr,
    Fact,
    IndexMap,
    InRange,
    Param,
    Reducer,
    Relation,
    StageName,
)


class FunctionDeclarations:
    """Parameters, declarations and attributes, in the order of the text.

    `hints` are those of `facts` that are dropped if the function writes their buffer.
    """

    def __init__(self) -> None:
        self.params: list[Param] = []
        self.axes: list[Axis] = []
        self.buffers: list[AnyBuffer] = []
        self.reducers: list[Reducer] = []
        self.relations: list[Relation] = []
        self.facts: list[Fact] = []
        self.hints: list[InRange] = []
        self.annotations: list[tuple[str, AnnotationValue]] = []
        self.stage: StageName | None = None
        self.map: IndexMap | None = None
        self.shape: tuple[Expr, ...] | None = None

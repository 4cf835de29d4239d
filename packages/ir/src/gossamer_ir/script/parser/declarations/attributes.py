"""Reads annotations: `T.func_attr`, `T.block_attr`, `T.sp.iteration_attr`, `annotations=`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from gossamer_ir.nodes import STAGES, Annotations, AnnotationValue, StageName
from gossamer_ir.script.parser.arguments.call_arguments import bind
from gossamer_ir.script.parser.arguments.statics import required_text, static_text, static_value
from gossamer_ir.script.parser.expressions.index_maps import set_map
from gossamer_ir.script.parser.state.context import ParserContext

STAGE_KEY = "sparse_tir_level"
STAGES_OF_LEVELS: Mapping[int, StageName] = {2: "coordinate", 1: "position", 0: "loop"}


def read_annotations(ctx: ParserContext, node: ast.expr) -> Annotations:
    """Return the annotations in a dictionary display that maps strings to bools, integers and strings."""
    if not isinstance(node, ast.Dict):
        raise ctx.error("annotation", "Expected a dictionary such as {'key': 1}.", node)
    annotations = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise ctx.error("annotation", "A dictionary cannot be unpacked here.", value)
        annotations.append((required_text(ctx, key, "a key"), _value(ctx, value)))
    return tuple(annotations)


def func_attr(ctx: ParserContext, call: ast.Call) -> None:
    """Read `T.func_attr({...})`; the key `sparse_tir_level` gives the stage and is not an annotation."""
    node = bind(ctx, call, "attributes", required=1)["attributes"]
    for key, value in read_annotations(ctx, _without_map(ctx, node)):
        if key != STAGE_KEY:
            ctx.function.annotations.append((key, value))
        elif not isinstance(value, int) or value not in STAGES_OF_LEVELS:
            hint = "Expected 2 (coordinate), 1 (position) or 0 (loop)."
            raise ctx.error("stage", f"There is no level {value!r}.", call, hint=hint)
        else:
            _set_stage(ctx, call, STAGES_OF_LEVELS[value])


def _without_map(ctx: ParserContext, node: ast.expr) -> ast.expr:
    """Return the attributes without the published `inv_idx_map`, which becomes the map of the format."""
    if not isinstance(node, ast.Dict):
        return node
    pairs = list(zip(node.keys, node.values, strict=True))
    for pair in pairs:
        if isinstance(pair[0], ast.Constant) and pair[0].value == "inv_idx_map":
            set_map(ctx, pair[1])
            pairs.remove(pair)
            keys, values = [key for key, _ in pairs], [value for _, value in pairs]
            return ast.copy_location(ast.Dict(keys, values), node)
    return node


def stage(ctx: ParserContext, call: ast.Call) -> None:
    """Read `T.stage("flat")`, or another stage by name."""
    node = bind(ctx, call, "name", required=1)["name"]
    text = required_text(ctx, node, "a stage")
    for name in STAGES:
        if name == text:
            return _set_stage(ctx, call, name)
    hint = f"Stages are: {', '.join(STAGES)}."
    raise ctx.error("stage", f"'{text}' is not a stage.", node, hint=hint)


def block_attr(ctx: ParserContext, call: ast.Call) -> None:
    """Read `T.block_attr({...})` and `T.sp.iteration_attr({...})`, at most once per block or iteration."""
    node = bind(ctx, call, "attributes", required=1)["attributes"]
    if ctx.parts is None:
        raise ctx.error(
            "outside_block", "This is allowed only directly in a block or iteration.", call
        )
    if ctx.parts.annotations is not None:
        raise ctx.error("duplicate", "The attributes are given twice.", call)
    ctx.parts.annotations = read_annotations(ctx, node)


def _set_stage(ctx: ParserContext, node: ast.AST, name: StageName) -> None:
    if ctx.function.stage not in (None, name):
        raise ctx.error(
            "stage", f"The stage is '{name}' here, but '{ctx.function.stage}' before.", node
        )
    ctx.function.stage = name


def _value(ctx: ParserContext, node: ast.expr) -> AnnotationValue:
    text = static_text(ctx, node)
    if text is not None:
        return text
    value = static_value(ctx, node)
    if isinstance(value, (bool, int)):
        return value
    raise ctx.error("annotation", "Expected a bool, an integer or a string.", node)

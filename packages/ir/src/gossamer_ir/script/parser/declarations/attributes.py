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


def parse_annotations(context: ParserContext, node: ast.expr) -> Annotations:
    """Return the annotations in a dictionary display that maps strings to bools, integers and strings."""
    if not isinstance(node, ast.Dict):
        raise context.error("annotation", "Expected a dictionary such as {'key': 1}.", node)
    annotations = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise context.error("annotation", "A dictionary cannot be unpacked here.", value)
        annotations.append((required_text(context, key, "a key"), _value(context, value)))
    return tuple(annotations)


def parse_func_attr(context: ParserContext, call: ast.Call) -> None:
    """Parse `T.func_attr({...})`; the key `sparse_tir_level` gives the stage and is not an annotation."""
    node = bind(context, call, "attributes", required=1)["attributes"]
    for key, value in parse_annotations(context, _without_map(context, node)):
        if key != STAGE_KEY:
            context.function.annotations.append((key, value))
        elif not isinstance(value, int) or value not in STAGES_OF_LEVELS:
            hint = "Expected 2 (coordinate), 1 (position) or 0 (loop)."
            raise context.error("stage", f"There is no level {value!r}.", call, hint=hint)
        else:
            _set_stage(context, call, STAGES_OF_LEVELS[value])


def _without_map(context: ParserContext, node: ast.expr) -> ast.expr:
    """Return the attributes without the published `inv_idx_map`, which becomes the map of the format."""
    if not isinstance(node, ast.Dict):
        return node
    pairs = list(zip(node.keys, node.values, strict=True))
    for pair in pairs:
        if isinstance(pair[0], ast.Constant) and pair[0].value == "inv_idx_map":
            set_map(context, pair[1])
            pairs.remove(pair)
            keys, values = [key for key, _ in pairs], [value for _, value in pairs]
            return ast.copy_location(ast.Dict(keys, values), node)
    return node


def parse_stage(context: ParserContext, call: ast.Call) -> None:
    """Parse `T.stage("flat")`, or another stage by name."""
    node = bind(context, call, "name", required=1)["name"]
    text = required_text(context, node, "a stage")
    for name in STAGES:
        if name == text:
            return _set_stage(context, call, name)
    hint = f"Stages are: {', '.join(STAGES)}."
    raise context.error("stage", f"'{text}' is not a stage.", node, hint=hint)


def parse_block_attr(context: ParserContext, call: ast.Call) -> None:
    """Parse `T.block_attr({...})` and `T.sp.iteration_attr({...})`, at most once per block or iteration."""
    node = bind(context, call, "attributes", required=1)["attributes"]
    if context.declarations is None:
        raise context.error(
            "outside_block", "This is allowed only directly in a block or iteration.", call
        )
    if context.declarations.annotations is not None:
        raise context.error("duplicate", "The attributes are given twice.", call)
    context.declarations.annotations = parse_annotations(context, node)


def _set_stage(context: ParserContext, node: ast.AST, name: StageName) -> None:
    if context.function.stage not in (None, name):
        raise context.error(
            "stage", f"The stage is '{name}' here, but '{context.function.stage}' before.", node
        )
    context.function.stage = name


def _value(context: ParserContext, node: ast.expr) -> AnnotationValue:
    text = static_text(context, node)
    if text is not None:
        return text
    value = static_value(context, node)
    if isinstance(value, (bool, int)):
        return value
    raise context.error("annotation", "Expected a bool, an integer or a string.", node)

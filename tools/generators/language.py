"""`docs/language.md`: the reference of node kinds, math functions and annotations, from the source."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

from gossamer_ir import nodes
from gossamer_ir.core.annotations import ANNOTATIONS
from gossamer_ir.core.math_functions import FUNCTIONS
from gossamer_ir.nodes import STAGES, Buffer, Node, SparseBuffer
from gossamer_ir.verify.context import Stage
from gossamer_ir.verify.stages.node_checks import (
    EXPR_RULES,
    RULES_BY_STAGE,
    STMT_RULES,
    ExprRule,
    Stages,
    StmtRule,
)
from tools import ROOT

PAGE = ROOT / "docs/language.md"
SECTION = re.compile(r"# --- (.+?) -+")
DECLARATIONS: dict[str, Callable[[Stage], bool]] = {
    "axes": lambda stage: stage.has_axes,
    "`Reducer`": lambda stage: stage.has_reducers,
    "`SparseBuffer`": lambda stage: SparseBuffer in stage.buffers,
    "`Buffer`": lambda stage: Buffer in stage.buffers,
}
"""The declarations that some stages lack, and whether a stage has them."""
NOTE = "<!-- Generated from gossamer_ir/nodes.py by tools/generators/language.py. -->"


def fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the name of each field of a node, and its declared type with the default."""
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            default = "" if item.value is None else f" = {ast.unparse(item.value)}"
            yield item.target.id, f"{ast.unparse(item.annotation)}{default}"


def describe_node(node: ast.ClassDef) -> Iterator[str]:
    """Yield the heading of a node, its docstring and the table of its fields."""
    yield f"### {node.name}"
    meaning = ast.get_docstring(node)
    if meaning:
        yield meaning
    held = list(fields(node))
    if held:
        rows = "\n".join(
            f"| `{name}` | `{text.replace('|', chr(92) + '|')}` |" for name, text in held
        )
        yield f"| field | type |\n|---|---|\n{rows}"


def describe_alias(node: ast.AnnAssign, following: ast.stmt | None) -> str:
    """Return the line of a union of nodes or a set of words, with its docstring if that follows."""
    text = " ".join(ast.unparse(node.value).split()) if node.value else ""
    line = f"`{ast.unparse(node.target)}` is `{text}`."
    match following:
        case ast.Expr(value=ast.Constant(value=str(meaning))):
            return f"{line} {meaning}"
    return line


def describe_module(source: str) -> Iterator[str]:
    """Yield the sections of the page in the order of the source."""
    tree = ast.parse(source)
    starts = {
        number: title[1]
        for number, line in enumerate(source.splitlines(), 1)
        if (title := SECTION.match(line))
    }
    yield "# The language: every node"
    yield NOTE
    yield ast.get_docstring(tree) or ""
    for node, following in zip_longest(tree.body, tree.body[1:]):
        for number in [number for number in starts if number < node.lineno]:
            yield f"## {starts.pop(number).capitalize()}"
        if isinstance(node, ast.ClassDef):
            yield from describe_node(node)
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            yield describe_alias(node, following)


def describe_stages() -> Iterator[str]:
    """Yield the table of the stages that allow each node, one line for nodes with the same stages."""
    yield "## Which stage holds which node"
    names: dict[Stages, list[str]] = {STAGES: ["facts", "all other expressions and statements"]}
    rules: dict[type[Node], ExprRule | StmtRule] = {**EXPR_RULES, **STMT_RULES}
    for node, rule in rules.items():
        if rule.stages != STAGES:
            names.setdefault(rule.stages, []).append(f"`{node.__name__}`")
    for name, holds in DECLARATIONS.items():
        stages = tuple(stage for stage in STAGES if holds(RULES_BY_STAGE[stage]))
        names.setdefault(stages, []).append(name)
    rows = [
        f"| {', '.join(listed)} | {' | '.join('x' if stage in stages else '' for stage in STAGES)} |"
        for stages, listed in sorted(names.items(), key=lambda item: STAGES.index(item[0][0]))
    ]
    columns = len(STAGES)
    yield f"| node | {' | '.join(STAGES)} |\n|---{'|:-:' * columns}|\n" + "\n".join(rows)


def describe_functions() -> Iterator[str]:
    """Yield the table of the functions that a `Call` may call."""
    yield "## Math functions"
    rows = [
        f"| `{function.name}` | {function.arity} | {function.operands} |"
        for function in FUNCTIONS.values()
    ]
    yield "| function | arguments | operands |\n|---|---|---|\n" + "\n".join(rows)


def describe_annotations() -> Iterator[str]:
    """Yield the table of the annotations that mean something."""
    yield "## Annotations"
    yield "Other keys are kept for readers and block filters, and change nothing else."
    rows = [
        f"| `{key}` | {', '.join(kind.on) or 'none'} | {kind.value} | {kind.writers or 'users'} "
        f"| {kind.readers} | {kind.says} |"
        for key, kind in ANNOTATIONS.items()
    ]
    yield (
        "| key | on | value | written by | read by | says |\n|---|---|---|---|---|---|\n"
        + "\n".join(rows)
    )


def files() -> dict[Path, str]:
    """Return the text of `language.md`."""
    parts = [
        *describe_module(inspect.getsource(nodes)),
        *describe_stages(),
        *describe_functions(),
        *describe_annotations(),
    ]
    return {PAGE: "\n\n".join(part.strip() for part in parts) + "\n"}

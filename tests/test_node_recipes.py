"""The lists "Add a node", "Add an axis", "Add an iteration axis" and "Add a fact" in CONTRIBUTING.md are
complete: what distinguishes all types is a table, each table is in the list, and no other code asks for the
type of an axis or of a fact."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

from gossamer_ir.nodes import (
    AXES,
    EXPRESSIONS,
    FACTS,
    ITERATION_AXES,
    STATEMENTS,
    Name,
    Node,
)

TABLES = {
    "Add an axis": {
        "gossamer_ir.core.axis_kinds": "AXIS_KINDS",
        "gossamer_ir.script.printer.declarations": "AXIS_PRINTERS",
        "gossamer_ir.interpret.memory.levels": "AXIS_LEVELS",
    },
    "Add an iteration axis": {
        "gossamer_ir.core.iteration_axes": "ITERATION_AXIS_KINDS",
        "gossamer_ir.script.printer.statements": "ITERATION_AXIS_TEXTS",
        "gossamer_ir.verify.stages.coordinate": "ORDER_CHECKS",
    },
    "Add a fact": {
        "gossamer_ir.traversal.fact_kinds": "FACT_KINDS",
        "gossamer_ir.script.printer.declarations": "FACT_PRINTERS",
        "gossamer_ir.traversal.fact_violations": "FACT_CHECKS",
        "gossamer_backend.export.spelling": "FACT_SENTENCES",
    },
}
"""The tables that have an entry for each type, by the list that names their files."""
TYPES = {"Add an axis": AXES, "Add an iteration axis": ITERATION_AXES, "Add a fact": FACTS}
ALL = [(recipe, *table) for recipe, tables in TABLES.items() for table in tables.items()]


class Unknown(Node, frozen=True):
    """A type of axis, iteration axis or fact that the language lacks."""

    buffer: Name


def lacking(table, types):
    """The types without an entry, and the entries without a type."""
    return set(table) ^ set(types)


@pytest.mark.parametrize(("recipe", "module", "name"), ALL)
def test_a_table_covers_every_type_and_fails_for_a_new_one(recipe, module, name):
    table = getattr(importlib.import_module(module), name)
    assert lacking(table, TYPES[recipe]) == set()
    assert lacking(table, (*TYPES[recipe], Unknown)) == {Unknown}


@pytest.mark.parametrize("recipe", ["Add a node", *TABLES])
def test_every_table_of_types_is_in_the_list(root, recipe):
    """Those of expressions and statements have a list of tables with entries for some types only."""
    types = TYPES.get(recipe, (*EXPRESSIONS, *STATEMENTS))
    names = {kind.__name__ for kind in types}
    text = (root / "CONTRIBUTING.md").read_text()
    section = re.search(rf"^##+ {recipe}\n(.*?)^##", text, re.MULTILINE | re.DOTALL)[1]
    listed = set(re.findall(r"`([\w/-]+\.py)`", section))
    found = {
        path.relative_to(root).as_posix()
        for place in ("packages", "plugins")
        for path in root.glob(f"{place}/*/src/**/*.py")
        if _has_table_of(names, ast.parse(path.read_text()))
    }
    assert found - listed == set()
    assert {_path_of(module) for module in TABLES.get(recipe, ())} <= found


def _path_of(module):
    package = module.partition(".")[0].removeprefix("gossamer_")
    return f"packages/{package}/src/{module.replace('.', '/')}.py"


def _has_table_of(names, tree):
    """Whether a file has a dict whose keys include two or more of these types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.id for key in node.keys if isinstance(key, ast.Name)]
            if len(names & {*keys}) > 1:
                return True
    return False


@pytest.mark.parametrize("types", [AXES, FACTS], ids=["axes", "facts"])
def test_no_other_code_asks_for_the_type_of_an_axis_or_a_fact(root, types):
    """Code that asks what an axis stores, or what holds of a buffer, needs no change for a new type; code
    that asks for the type does."""
    names = {kind.__name__ for kind in types}
    asking = {
        path.relative_to(root).as_posix()
        for place in ("packages", "plugins")
        for path in root.glob(f"{place}/*/src/**/*.py")
        if names & set(_types_asked_for(ast.parse(path.read_text())))
    }
    assert asking == set()


def _types_asked_for(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.MatchClass):
            yield from _names(node.cls)
        elif isinstance(node, ast.Call) and _names(node.func) == ["isinstance"]:
            yield from _names(node.args[1])
        elif isinstance(node, ast.Compare):
            yield from (name for side in (node.left, *node.comparators) for name in _names(side))


def _names(node):
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]

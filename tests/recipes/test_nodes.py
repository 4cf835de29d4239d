"""The recipes "Add a node", "Add an axis", "Add an iteration axis" and "Add a fact" in docs/extending are
complete: what distinguishes all types is a table, each table is in the list, and no other code asks for the
type of an axis or of a fact. Code that tells some types of nodes apart is in the list, or is right for a new
type."""

from __future__ import annotations

import ast
import importlib
import textwrap
from typing import get_args

import pytest

from gossamer_ir.nodes import AXES, EXPRS, FACTS, STMTS, IterationAxis, Name, Node
from tests.conventions.syntax_trees import nodes_of, tree_of
from tests.recipes.other_types import others_above_definitions, wrong_comments
from tests.recipes.recipe_pages import definitions, listed_files, path_of, sources

pytestmark = pytest.mark.unserialized

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
        "gossamer_ir.facts.fact_kinds": "FACT_KINDS",
        "gossamer_ir.script.printer.declarations": "FACT_PRINTERS",
        "gossamer_ir.facts.fact_violations": "FACT_CHECKS",
        "gossamer_backend.export.spelling": "FACT_SENTENCES",
    },
}
"""The tables that have an entry for each type, by the list that names their files."""
NODE_TABLES = {
    "gossamer_ir.core.expression_kinds": {"EXPR_KINDS": EXPRS},
    "gossamer_ir.core.statement_kinds": {"STMT_KINDS": STMTS},
    "gossamer_ir.script.printer.expressions": {"EXPR_PRINTERS": EXPRS},
    "gossamer_ir.script.printer.statements": {"STMT_PRINTERS": STMTS},
    "gossamer_ir.verify.stages.node_checks": {
        "EXPR_RULES": EXPRS,
        "STMT_RULES": STMTS,
    },
    "gossamer_ir.interpret.expressions.expression_translators": {"EXPR_TRANSLATIONS": EXPRS},
    "gossamer_ir.interpret.statements.statement_translators": {"STMT_TRANSLATIONS": STMTS},
    "gossamer_llvm.dispatch": {
        "EXPR_EMITTERS": EXPRS,
        "STMT_EMITTERS": STMTS,
    },
}
"""The tables of the list "Add a node", each with the types that it covers."""
TYPES = {"Add an axis": AXES, "Add an iteration axis": get_args(IterationAxis), "Add a fact": FACTS}
FOUND_BY_TYPE_ALONE = {"Store", "For", "If", "Block", "Iteration", "ParallelFor", "Launch"}
"""Types of statements that code may ask for without a reason. Any other type, a new one too, can be found by
what `STMT_KINDS` says of it."""
DESCRIBED = {kind.__name__ for kind in STMTS} - FOUND_BY_TYPE_ALONE
WALKS = {"collect", "contains", "nodes_of_type", "outermost"}
"""The functions that find nodes by their types."""
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


@pytest.mark.parametrize("module", NODE_TABLES)
def test_all_tables_of_expressions_and_of_statements_have_the_same_types(root, module):
    home = importlib.import_module(module)
    assert all(set(getattr(home, name)) == {*types} for name, types in NODE_TABLES[module].items())
    assert path_of(module) in listed_files(root, "Add a node")


@pytest.mark.parametrize("recipe", ["Add a node", *TABLES])
def test_every_table_of_types_is_in_the_list(root, recipe):
    """Those of expressions and statements have a list of tables with entries for some types only."""
    types = TYPES.get(recipe, (*EXPRS, *STMTS))
    names = {kind.__name__ for kind in types}
    groups = {
        path.relative_to(root).as_posix()
        for path in sources(root)
        if _has_table_of(names, tree_of(path.read_text()))
    }
    assert groups - listed_files(root, recipe) == set()
    assert {path_of(module) for module in TABLES.get(recipe, ())} <= groups


def _has_table_of(names, tree):
    """Whether a file has a dict whose keys include two or more of these types."""
    for node in nodes_of(tree, ast.Dict):
        keys = [key.id for key in node.keys if isinstance(key, ast.Name)]
        if len(names & {*keys}) > 1:
            return True
    return False


@pytest.mark.parametrize(("word", "types"), [("statements", STMTS), ("expressions", EXPRS)])
def test_all_other_code_that_distinguishes_types_says_what_it_does_with_others(root, word, types):
    """Functions and constants about two or more types are in a file of the list "Add a node", or below a
    comment `# Other statements: ...` or `# Other expressions: ...`, which is right for a new one. A package
    may have it instead."""
    names = {kind.__name__ for kind in types}
    listed = listed_files(root, "Add a node")

    def groups_in(path, text):
        if path.relative_to(root).as_posix() in listed:
            return set()
        return {name for name, group in _groups_of_types(text) if _needs_reason(names & group)}

    assert wrong_comments(root, word, groups_in) == []


def _needs_reason(group):
    return len(group) > 1 or not group.isdisjoint(DESCRIBED)


def _groups_of_types(text):
    """The names of types that one function, or one tuple or set outside of types, tells apart, after the name
    of the function, of the method of a class or of the constant."""
    tree = tree_of(text)
    skipped = {id(node.slice) for node in nodes_of(tree, ast.Subscript)}
    for name, definition in definitions(tree):
        for node in ast.walk(definition):
            if isinstance(node, ast.FunctionDef):
                yield name, set(_types_asked_for(node))
            elif isinstance(node, (ast.Tuple, ast.Set)) and id(node) not in skipped:
                group = {item.id for item in node.elts if isinstance(item, ast.Name)}
                yield name, group if len(group) > 1 else set()


@pytest.mark.parametrize(
    ("body", "group"),
    [
        ("if isinstance(x, Let):\n  return 1\n if isinstance(x, For):\n  return 2", {"Let", "For"}),
        ("return 1 if type(x) is If else 2 if type(x) is For else 3", {"If", "For"}),
        ("match x:\n  case Store(value=Load()):\n   return 1", {"Store", "Load"}),
        ("return collect(Allocate, x)", {"Allocate"}),
        ("return Let(x, Load(y))", set()),
    ],
    ids=["early returns", "comparisons", "match", "walk", "construction"],
)
def test_the_types_that_a_function_tells_apart_are_found_together(body, group):
    types = {kind.__name__ for kind in (*EXPRS, *STMTS)}
    function = f"def f(x, y):\n {body}\n"
    groups = _groups_of_types("class A:\n" + textwrap.indent(function, " "))
    assert ("A.f", group) in [(name, types & names) for name, names in groups]


def test_a_comment_about_others_belongs_to_the_definition_below():
    text = (
        "# Other statements and expressions: stay.\n# More.\n@cache\ndef f():\n    ...\n\nT = 1\n"
    )
    assert [*others_above_definitions(text)] == [
        ("f", "statements", "stay"),
        ("f", "expressions", "stay"),
    ]


@pytest.mark.parametrize(
    ("package", "functions", "wrong"),
    [
        ("", ["", "", ""], ["p.code:f0", "p.code:f1", "p.code:f2"]),
        ("# Other statements: not optimized.", ["", "", ""], []),
        (
            "# Other statements: not optimized.",
            ["# Other statements: stay.\n", "", "", ""],
            [],
        ),
        (
            "# Other statements: not optimized.",
            ["# Other statements: not optimized.\n", "", "", ""],
            ["p.code:f0"],
        ),
        ("# Other statements: not optimized.", ["", ""], ["p: not optimized"]),
        ("# Other statements: stay.", ["", "", ""], ["p: stay"]),
        ("# Other expressions: not optimized.", [""], ["p.code:f0"]),
    ],
    ids=["silent", "covered", "other", "repeated", "needless", "unsafe", "other word"],
)
def test_a_package_may_say_what_all_of_its_code_does_with_others(
    tmp_path, package, functions, wrong
):
    folder = tmp_path / "packages/p/src/p"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(f'"""A package."""\n\n{package}\n')
    code = (f"{comment}def f{number}():\n    ...\n\n" for number, comment in enumerate(functions))
    (folder / "code.py").write_text("\n" + "\n".join(code))

    def groups_in(path, _text):
        names = {f"f{number}" for number in range(len(functions))}
        return names if path.name == "code.py" else set()

    assert wrong_comments(tmp_path, "statements", groups_in) == wrong


def test_one_test_for_a_type_that_the_table_describes_needs_a_reason():
    assert _needs_reason({"Let"})
    assert not _needs_reason({"Store"})


@pytest.mark.parametrize("types", [AXES, FACTS], ids=["axes", "facts"])
def test_no_other_code_asks_for_the_type_of_an_axis_or_a_fact(root, types):
    """Code that asks what an axis stores, or what holds of a buffer, needs no change for a new type; code
    that asks for the type does."""
    names = {kind.__name__ for kind in types}
    asking = {
        path.relative_to(root).as_posix()
        for path in sources(root)
        if names & set(_types_asked_for(tree_of(path.read_text())))
    }
    assert asking == set()


def _types_asked_for(tree):
    for node in nodes_of(tree, ast.MatchClass, ast.Call, ast.Compare):
        if isinstance(node, ast.MatchClass):
            yield from _names(node.cls)
        elif isinstance(node, ast.Call) and _names(node.func) == ["isinstance"]:
            yield from _names(node.args[1])
        elif isinstance(node, ast.Call) and {*_names(node.func)} & WALKS:
            yield from (arg.id for arg in node.args if isinstance(arg, ast.Name))
        elif isinstance(node, ast.Compare):
            yield from (name for side in (node.left, *node.comparators) for name in _names(side))


def _names(node):
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]

"""The recipes of docs/extending, one page for each kind of thing that can be added, and the sources that
tests search for what a recipe must list."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

FOLDER = "docs/extending"

PREFIXED_TABLE = re.compile(
    r"(?<=Paths below are relative to `)([\w./-]+)(`[^|]*\n\n)((?:\|.*\n)+)"
)
"""The folder that a table's paths are relative to, the rest of the paragraph above it, and the table."""

TABLE_PATH = re.compile(r"`(/?)((?:[\w.-]+/)+[\w.-]+|[\w.-]+\.(?:md|py))`")
"""A path in such a table. A leading slash stands for the root of the repository."""


def recipe_pages(root: Path) -> dict[str, str]:
    """Return the texts of the recipes by their titles, such as "Add a pass"."""
    texts = [with_whole_paths(path.read_text()) for path in sorted((root / FOLDER).glob("*.md"))]
    return {re.match("# (.+)\n", text)[1]: text for text in texts}


def with_whole_paths(text: str) -> str:
    """Return a text with the paths of its tables from the root of the repository."""
    return PREFIXED_TABLE.sub(_with_whole_paths_in_table, text)


def _with_whole_paths_in_table(match: re.Match[str]) -> str:
    """Return the match of `PREFIXED_TABLE` with the paths of the table from the root."""
    folder, words, table = match.groups()
    whole = TABLE_PATH.sub(
        lambda path: f"`{path[2]}`" if path[1] else f"`{folder}/{path[2]}`",
        table,
    )
    return f"{folder}{words}{whole}"


def recipe(root: Path, title: str) -> str:
    """Return the text of the recipe with a title."""
    return recipe_pages(root)[title]


def listed_files(root: Path, title: str) -> set[str]:
    """Return the Python files that a recipe names."""
    return set(re.findall(r"`([\w/-]+\.py)`", recipe(root, title)))


def sources(root: Path) -> Iterator[Path]:
    """Yield the source files of all distributions."""
    for place in ("packages", "plugins"):
        yield from root.glob(f"{place}/*/src/**/*.py")


def path_of(module_name: str) -> str:
    """Return the path of a module of a package from the root."""
    package = module_name.partition(".")[0].removeprefix("gossamer_")
    return f"packages/{package}/src/{module_name.replace('.', '/')}.py"


def module_of(path: Path) -> str:
    """Return the name of the module in a source file."""
    return ".".join(path.parts[path.parts.index("src") + 1 :]).removesuffix(".py")


def definitions(tree: ast.Module | ast.ClassDef) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the functions and constants of a module, and those of its classes as `Class.name`."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{name}", inner) for name, inner in definitions(node))
        elif isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield ast.unparse(target), node


def named_together(tree: ast.Module, names: Collection[str]) -> Iterator[str]:
    """Yield the functions and constants that have two or more of the names in comparisons, cases of `match`,
    tuples, lists, sets or dicts."""
    for definition, body in definitions(tree):
        together = {*chain.from_iterable(_constants_in(node) for node in ast.walk(body))}
        if len(together & {*names}) > 1:
            yield definition


def _constants_in(node: ast.AST) -> Iterator[object]:
    """Yield the constants that a node of the syntax tree compares or contains by itself."""
    items: list[ast.expr | None] = []
    match node:
        case ast.Compare():
            items = [node.left, *node.comparators]
        case ast.MatchValue():
            items = [node.value]
        case ast.Dict():
            items = node.keys
        case ast.Tuple() | ast.List() | ast.Set():
            items = node.elts
    yield from (item.value for item in items if isinstance(item, ast.Constant))

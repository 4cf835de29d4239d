"""The comments in which code says what it does with "other statements", "other expressions" or "other
operations" than those that it tells apart: above a function or constant, or, for a whole package, in its
`__init__.py`."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.conventions.syntax_trees import tree_of
from tests.recipes.recipe_pages import definitions, module_of, sources

OF_PACKAGES = {
    "nothing is concluded from them",
    "not optimized",
    "stay, or only their bodies change",
    "their operands are visited",
    "refused if they access fragments",
    "none is in the nests that this package makes",
    "none occurs; these are instructions of PTX, some with the names of operations",
}
"""The texts that a package may have. They are right for code that is added to the package, too: a type that
this code does not tell apart is no reason for a wrong result."""
FEWEST = 3
"""A package that has fewer such functions and constants leaves it to them."""
_COMMENT = re.compile(r"# Other (.+?): (.+)\.")


def others_above_definitions(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the function or constant, the word, and what it does, from each such comment above it."""
    lines = text.split("\n")
    for name, node in definitions(tree_of(text)):
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        line = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        while (comment := lines[line - 2].strip()).startswith("#"):
            yield from ((name, word, says) for word, says in _stated(comment))
            line -= 1


def others_of_package(text: str) -> dict[str, str]:
    """Return what a package says in its `__init__.py`, by the word."""
    return dict(pair for line in text.split("\n") for pair in _stated(line))


def _stated(comment: str) -> Iterator[tuple[str, str]]:
    words = _COMMENT.fullmatch(comment)
    if words:
        yield from ((word, words[2]) for word in words[1].split(" and "))


def wrong_comments(root: Path, word: str, groups_in: Callable[[Path, str], set[str]]) -> list[str]:
    """Return the functions and constants that do not say what they do with others, or say it without need, or
    repeat what their package says; and the packages that say what may be wrong, or what few need.

    `groups_in` returns those of a file and its text that tell several types apart."""
    packages = {
        path.parent: says[word]
        for path in sources(root)
        if path.name == "__init__.py" and word in (says := others_of_package(path.read_text()))
    }
    wrong, covered = set(), Counter()
    for path in sources(root):
        text = path.read_text()
        groups = groups_in(path, text)
        stated = {
            name: says for name, about, says in others_above_definitions(text) if about == word
        }
        package = next((folder for folder in path.parents if folder in packages), None)
        silent = groups - stated.keys()
        if package is not None:
            covered[package] += len(silent)
            silent = {name for name, says in stated.items() if says == packages[package]}
        wrong |= {f"{module_of(path)}:{name}" for name in silent | (stated.keys() - groups)}
    wrong |= {
        f"{module_of(package)}: {says}"
        for package, says in packages.items()
        if says not in OF_PACKAGES or covered[package] < FEWEST
    }
    return sorted(wrong)

"""The recipes of docs/extending: one page for each kind of thing that can be added."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = "docs/extending"


def recipe_pages(root: Path) -> dict[str, str]:
    """Return the texts of the recipes by their titles, such as "Add a pass"."""
    texts = [path.read_text() for path in sorted((root / FOLDER).glob("*.md"))]
    return {re.match("# (.+)\n", text)[1]: text for text in texts}


def recipe(root: Path, title: str) -> str:
    """Return the text of the recipe with a title."""
    return recipe_pages(root)[title]


def listed_files(root: Path, title: str) -> set[str]:
    """Return the Python files that a recipe names."""
    return set(re.findall(r"`([\w/-]+\.py)`", recipe(root, title)))

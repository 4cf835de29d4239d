"""Tutorials as Jupyter notebooks: the text of a page, its code, and the outputs that the tests check.

A notebook is made of the page alone and executes nothing. A cell of code ends where its output begins.
"""

from __future__ import annotations

import ast
import doctest
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CODE = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^]]*)\]\((?!\w+:)[^)]*\)")
PICTURE = re.compile(r"^!\[.*?\]\(.*?\)\n*", re.MULTILINE)
DIRECTIVE = re.compile(r" *# doctest:.*")
TUTORIALS = ("docs/tutorials/*.md", "docs/spmm-step-by-step.md")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def tutorials(root: Path) -> list[Path]:
    """Return the pages that are notebooks, too: those of tutorials that have code."""
    pages = [path for place in TUTORIALS for path in sorted(root.glob(place))]
    return [path for path in pages if CODE.search(path.read_text())]


def place_of(page: Path) -> str:
    """Return where the notebook of a page stands on the site."""
    return f"notebooks/{page.stem}.ipynb"


def notebooks(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the content of the notebook of each tutorial."""
    for page in tutorials(root):
        content = json.dumps(notebook(page.read_text()), indent=1)
        yield place_of(page), content + "\n"


def notebook(text: str) -> dict[str, Any]:
    """Return a page as a notebook of format 4.5."""
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(CODE.split(text)):
        if number % 2:
            cells += code_cells(part)
        elif part.strip():
            cells.append(cell("markdown", without_links(part.strip())))
    for number, entry in enumerate(cells):
        entry["id"] = hashlib.sha256(f"{number}".encode()).hexdigest()[:8]
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def without_links(text: str) -> str:
    """Return the text with the names of links in their place, and without pictures: notebooks are opened
    elsewhere.

    >>> without_links("See [the list](../list.md).")
    'See the list.'
    """
    return LINK.sub(r"\1", PICTURE.sub("", text))


def code_cells(code: str) -> Iterator[dict[str, Any]]:
    """Yield statements as one cell, or examples as a cell up to each output."""
    if not code.startswith(">>> "):
        yield {**cell("code", code.rstrip()), "execution_count": None, "outputs": []}
        return
    sources: list[str] = []
    for example in doctest.DocTestParser().get_examples(code):
        sources.append(DIRECTIVE.sub("", example.source))
        if example.want:
            yield code_cell(sources, example)
            sources = []
    if sources:
        yield code_cell(sources, None)


def code_cell(sources: list[str], example: doctest.Example | None) -> dict[str, Any]:
    """Return a cell with the output of the example that it ends with; not if that varies."""
    outputs: list[dict[str, Any]] = []
    if example is not None and not example.options:
        outputs.append(output(example))
    return {**cell("code", "".join(sources).rstrip()), "execution_count": None, "outputs": outputs}


def output(example: doctest.Example) -> dict[str, Any]:
    """Return the output that a cell printed, or the value of its last expression."""
    shown = example.want.replace("<BLANKLINE>\n", "\n")
    last = ast.parse(example.source).body[-1]
    if isinstance(last, ast.Expr) and not ast.unparse(last).startswith("print("):
        data = {"text/plain": lines_of(shown.rstrip("\n"))}
        return {
            "output_type": "execute_result",
            "execution_count": None,
            "metadata": {},
            "data": data,
        }
    return {"output_type": "stream", "name": "stdout", "text": lines_of(shown)}


def cell(kind: str, source: str) -> dict[str, Any]:
    """Return the members that every cell has."""
    return {"cell_type": kind, "metadata": {}, "source": lines_of(source)}


def lines_of(text: str) -> list[str]:
    """Return a text as notebooks hold it: lines with their ends."""
    return text.splitlines(keepends=True)

"""Checks the built site: `python docs/site/check.py SITE` fails where a page needs the network or a
notebook is wrong.

Links that a reader follows may lead anywhere. Scripts, styles, pictures and fonts must be files of the site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\ssrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*\shref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|url\(["']?((?:https?:)?//[^"')]+)|@import\s+["']((?:https?:)?//[^"']+)""",
    re.IGNORECASE,
)


def external_addresses(text: str) -> list[str]:
    """Return the addresses outside of the site from which a page or style sheet loads something.

    >>> external_addresses('<a href="https://a.org">a</a> <script src="https://b.org/b.js"></script>')
    ['https://b.org/b.js']
    >>> external_addresses('<link rel="stylesheet" href="//c.org/c.css"> @import "https://d.org"')
    ['//c.org/c.css', 'https://d.org']
    """
    return [next(filter(None, groups)) for groups in LOADED.findall(text)]


def problems(site: Path) -> Iterator[str]:
    """Yield the problems of the site, one line for each."""
    pages = [path for kind in ("html", "css", "svg") for path in sorted(site.rglob(f"*.{kind}"))]
    if not pages:
        yield f"{site} has no pages"
    for path in pages:
        for address in external_addresses(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} loads {address}"
    yield from wrong_notebooks(site)


def wrong_notebooks(site: Path) -> Iterator[str]:
    """Yield the notebooks that break the format."""
    nbformat: Any = import_module("nbformat")
    notebooks = sorted(site.glob("notebooks/*.ipynb"))
    if not notebooks:
        yield "there are no notebooks"
    for path in notebooks:
        try:
            nbformat.validate(nbformat.read(path, as_version=4))
        except nbformat.ValidationError as error:
            yield f"{path.relative_to(site)}: {error}"


def main() -> None:
    """Print what is wrong, and exit with 1 if there is anything."""
    wrong = list(problems(Path(sys.argv[1])))
    print("\n".join(wrong) or "the site loads nothing over the network; its notebooks are valid")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

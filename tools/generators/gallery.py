"""`docs/gallery.md`: every format with its pictures, and when to use it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import get_args

from gossamer_formats.descriptions import NAMES
from gossamer_formats.registry.composable_names import ComposableName
from tools import ROOT
from tools.drawing.examples import EXAMPLES

PAGE = ROOT / "docs/gallery.md"
WIDTH = 110
"""The longest line of the page."""

HEAD = """\
# Gallery of formats

<!-- Generated from tools/drawing/examples.py by tools/generators/gallery.py. -->

Each format has two pictures. The first one shows the arrays that store a small matrix. Each row of the matrix
has a color, and gray slots do not hold an element. The second one shows a larger matrix of the kind that
suits the format. Colors show the order in which its values are stored; zeros that fill blocks or diagonals
are faint. `gossamer.spy(tensor, order=True)` draws your own matrices so.

[Formats](formats.md) explains axes, conversions, and formats of your own. `gossamer info FILE` says which
format is expected to be fastest for a matrix, and `gossamer.prepare` stores it so.

## Formats of tensors
"""
COMPOSABLE = """\
## Composable formats

`gossamer.decompose` stores a matrix in [several parts](formats.md#a-tensor-in-parts), each in a format of its
own. Colors show the parts, as those of `gossamer.spy` do.
"""
LIST = """\
### A list of formats

For matrices with parts that you know: dense blocks, a band, and the rest, for example; or the columns of a
graph that many rows have, and the others. Each entry of the list is a format with a function that chooses its
elements.

![A matrix in blocks, diagonals and csr](pictures/parts_pattern.svg)
"""


def files() -> dict[Path, str]:
    """Return the whole page."""
    parts = get_args(ComposableName)
    missing = sorted({*NAMES, *parts} ^ EXAMPLES.keys())
    if missing:
        raise ValueError(
            f"'{missing[0]}' is either not a format or not in tools/drawing/examples.py"
        )
    sections = [
        HEAD,
        *(_section(name, "gossamer_formats.descriptions") for name in NAMES),
        COMPOSABLE,
        *(_section(name, "gossamer_formats.decomposition.library") for name in parts),
        LIST,
    ]
    return {PAGE: "\n".join(sections)}


def _section(name: str, package: str) -> str:
    return "\n\n".join(_paragraphs(name, package)) + "\n"


def _paragraphs(name: str, package: str) -> Iterator[str]:
    summary = (import_module(f"{package}.{name}").__doc__ or "").partition("\n")[0]
    yield f"### {name}"
    yield summary
    yield fill(EXAMPLES[name].use, WIDTH)
    yield f"![The arrays of {name}](pictures/{name}.svg)"
    yield f"![A matrix in {name}](pictures/{name}_pattern.svg)"

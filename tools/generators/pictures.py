"""`docs/pictures`: for each format the arrays of a small matrix and the pattern of a larger one; a matrix in
parts; the stages of a program; and lanes and masks of vectors."""

from __future__ import annotations

from pathlib import Path

from tools import ROOT
from tools.drawing.arrays import picture_of_arrays
from tools.drawing.examples import EXAMPLES, matrix_in_parts, small_example, stored_example
from tools.drawing.lanes import pictures_of_lanes
from tools.drawing.pattern import picture_of_pattern
from tools.drawing.stages import picture_of_stages

FOLDER = ROOT / "docs/pictures"


def files() -> dict[Path, str]:
    """Return the content of every picture."""
    drawings = {
        "stages": picture_of_stages(),
        **pictures_of_lanes(),
        "parts_pattern": picture_of_pattern(matrix_in_parts(), "A matrix in three formats"),
    }
    for name in EXAMPLES:
        drawings[name] = picture_of_arrays(small_example(name), f"The arrays of {name}")
        drawings[f"{name}_pattern"] = picture_of_pattern(
            stored_example(name), f"A matrix in {name}"
        )
    return {FOLDER / f"{name}.svg": content for name, content in drawings.items()}

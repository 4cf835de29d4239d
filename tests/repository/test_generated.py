"""Generated files are what their generators give now."""

from __future__ import annotations

import difflib
import math
import re
from itertools import chain

import numpy as np
import pytest

from gossamer_formats import SparseTensor, format_names
from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
from gossamer_ir.facts.index_arrays import bits_of_words
from gossamer_schedule import PRIMITIVES
from tests.doctests.docstrings import run_docstrings
from tools import ROOT
from tools.drawing.examples import EXAMPLES, small_example, stored_example
from tools.drawing.pattern import SIDE
from tools.generate import NAMES, generated_files, main, outdated_files
from tools.generators.primitives import primitives

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


@pytest.mark.parametrize("name", NAMES)
def test_a_generated_file_is_up_to_date(name):
    changes = [change for file in outdated_files(name).items() for change in change_of(*file)]
    assert changes == [], f"run: python -m tools.generate {name}"


def change_of(path, content):
    """The lines that differ, of a text; the name of another file."""
    if path.suffix == ".gz":
        return [path.name]
    stored = path.read_text().splitlines() if path.exists() else []
    return list(difflib.unified_diff(stored, content.decode().splitlines(), path.name, n=0))


def test_each_generator_is_in_the_list():
    modules = {path.stem for path in (ROOT / "tools/generators").glob("[!_]*.py")}
    assert modules == {*NAMES}
    table = (ROOT / "docs/generated-files.md").read_text()
    assert [name for name in NAMES if f"| `{name}` |" not in table] == []


def test_every_primitive_of_the_folder_is_registered():
    assert {name for _, name in primitives()} == PRIMITIVES.keys()


@pytest.mark.parametrize("name", ["arrays", "examples", "pattern"])
def test_examples_of_the_modules_that_draw(name):
    assert run_docstrings(f"tools.drawing.{name}") > 0


def test_every_picture_is_drawn():
    assert generated_files("pictures").keys() == {*ROOT.glob("docs/pictures/*.svg")}


def drawn_entries(array, values, tensor):
    """The numbers in the cells of an array. Words are drawn bit by bit, one for each column."""
    if array == "words":
        return bits_of_words(values)[:, : tensor.shape[1]].ravel()
    return values


def test_the_gallery_has_every_format_with_the_arrays_that_store_it():
    page = (ROOT / "docs/gallery.md").read_text()
    names = [*format_names(), *COMPOSABLE_FORMATS.names()]
    assert [line[4:] for line in page.splitlines() if line.startswith("### ")][
        : len(names)
    ] == names
    for name in names:
        tensor = small_example(name)
        stored = (
            [tensor] if isinstance(tensor, SparseTensor) else [part.tensor for part in tensor.parts]
        )
        picture = (ROOT / f"docs/pictures/{name}.svg").read_text()
        for array, values in chain(*(one.arrays.items() for one in stored)):
            assert f">{array}</text>" in picture, name
            drawn = drawn_entries(array, values, tensor)
            assert all(f">{int(value)}</text>" in picture for value in drawn), (name, array)
        assert f"(pictures/{name}_pattern.svg)" in page
        # The matrix itself has one cell for each coordinate, the arrays one for each entry.
        cells = sum(
            len(drawn_entries(*item, tensor)) for one in stored for item in one.arrays.items()
        )
        assert picture.count("<rect") == 1 + math.prod(tensor.shape) + cells, name


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_pattern_has_every_element_of_its_matrix(name):
    tensor = stored_example(name)
    picture = (ROOT / f"docs/pictures/{name}_pattern.svg").read_text()
    squares = re.findall(f'width="{SIDE - 1}" height="{SIDE - 1}" fill="#[0-9a-f]+"/>', picture)
    assert len(squares) == np.count_nonzero(tensor.toarray())


def test_files_that_differ_are_listed_and_then_written(monkeypatch, tmp_path, capsys):
    path = tmp_path / "page.md"
    monkeypatch.setattr("tools.generate.ROOT", tmp_path)
    monkeypatch.setattr("tools.generators.language.files", lambda: {path: "new"})
    assert main(["language", "--check"]) == 1
    assert not path.exists()
    assert main(["language"]) == 0
    assert path.read_text() == "new"
    assert main(["language", "--check"]) == 0
    assert capsys.readouterr().out == "language: page.md\n" * 2


def test_an_unknown_generator_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["pages"])
    assert "unknown generator 'pages'; expected one of primitives" in capsys.readouterr().err

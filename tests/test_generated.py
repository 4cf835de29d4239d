"""Generated files are what their generators give now."""

from __future__ import annotations

import difflib

import pytest

from gossamer_schedule import PRIMITIVES
from tools import ROOT
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
    table = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in NAMES if f"| `{name}` |" not in table] == []


def test_every_primitive_of_the_folder_is_registered():
    assert {name for _, name in primitives()} == PRIMITIVES.keys()


def test_every_picture_is_drawn():
    assert generated_files("pictures").keys() == {*ROOT.glob("docs/pictures/*.svg")}


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
